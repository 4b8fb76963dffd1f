//! `sayso diff` as a person sees it.

use crate::Scene;

const OLD: &str = "use std::fmt;\n\npub fn greet(name: &str) -> String {\n\tformat!(\"Hello, {name}\")\n}\n";
const NEW: &str =
    "use std::fmt;\n\npub fn greet(who: &str) -> String {\n\tformat!(\"Hello, {who}\")\n}\n\nfn \u{202E}evil() {}";

fn scene() -> Scene {
    Scene::new(&[
        ("old.rs", OLD.as_bytes()),
        ("new.rs", NEW.as_bytes()),
        ("lf.txt", b"same words\nhere\n"),
        ("crlf.txt", b"same words\r\nhere\r\n"),
        ("escape.txt", b"same words\n\x1b[2Jhere\n"),
    ])
}

#[test]
fn dark_light_and_cards() {
    let scene = scene();
    let runs = [
        &["diff", "old.rs", "new.rs", "--color", "always"][..],
        &["diff", "old.rs", "new.rs", "--color", "always", "--theme", "light", "--context", "0"],
        &["diff", "old.rs", "new.rs", "--color", "always", "--inline", "3"],
        &["diff", "lf.txt", "crlf.txt", "--color", "always"],
        &["diff", "lf.txt", "escape.txt", "--color", "always"],
    ];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
}

#[test]
fn on_a_terminal_without_colours() {
    let scene = scene();
    let program = env!("CARGO_BIN_EXE_sayso");
    // `script` gives the program a terminal of its own.
    let command = format!("NO_COLOR=1 TERM=xterm {program} diff old.rs new.rs");
    let arguments = ["--quiet", "--return", "--command", &command, "/dev/null"];
    let output = sayso_testkit::programs::run(scene.directory.path(), "script", &arguments, b"");
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn ten_thousand_lines_and_one_very_long_one_are_drawn() {
    let scene = scene();
    scene.write("many.rs", "let x = 1;\n".repeat(10_000).as_bytes());
    scene.write("long.json", format!("{{\"a\": \"{}\"}}\n", "x".repeat(300_000)).as_bytes());
    for name in ["many.rs", "long.json"] {
        let output = scene.run(&["diff", "/dev/null", name, "--color", "always"], b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.len() > 100_000, "{name}");
    }
}
