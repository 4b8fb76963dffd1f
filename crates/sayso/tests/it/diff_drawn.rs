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
        ("bin", b"\0\x01"),
        ("crlf.txt", b"same words\r\nhere\r\n"),
        ("escape.txt", b"same words\n\x1b[2Jhere\n"),
    ])
}

#[test]
fn diff_uses_theme_of_background() {
    let scene = scene();
    let runs = [
        &["diff", "old.rs", "new.rs", "--color", "always"][..],
        &["diff", "old.rs", "new.rs", "--color", "always", "--theme", "light", "--context", "0"],
        &["diff", "old.rs", "new.rs", "--color", "always", "--inline", "3"],
        &["diff", "lf.txt", "crlf.txt", "--color", "always"],
        &["diff", "lf.txt", "escape.txt", "--color", "always"],
        &["diff", "lf.txt", "bin", "--label-b", "b\x1b[31min", "--color", "always"],
    ];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
}

#[test]
fn diff_without_colours_is_plain() {
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
fn distant_hunk_is_highlighted_from_nearby_lines() {
    let scene = scene();
    let filler = "fn filler() {}\n".repeat(50_000);
    scene.write("deep.rs", format!("{filler}let x = \"text\";\n").as_bytes());
    scene.write("deeper.rs", format!("{filler}let y = \"text\";\n").as_bytes());
    let transcript = scene.transcript(&["diff", "deep.rs", "deeper.rs", "--color", "always", "--context", "0"]);
    // The keyword and the string have colours of their own.
    insta::assert_snapshot!(transcript);
}

#[test]
fn huge_diff_is_drawn() {
    let scene = scene();
    scene.write("many.rs", "let x = 1;\n".repeat(10_000).as_bytes());
    let many = scene.run(&["diff", "/dev/null", "many.rs", "--color", "always"], b"");
    assert_eq!(many.stdout.split(|&byte| byte == b'\n').count(), 10_000 + 3);

    scene.write("long.json", format!("{{\"a\": \"{}\"}}\n", "ü".repeat(300_000)).as_bytes());
    for form in ["--color=always", "--inline"] {
        let long = scene.run(&["diff", "/dev/null", "long.json", form], b"");
        let text = String::from_utf8(long.stdout).unwrap();
        assert!(text.len() < 5_000 && text.contains(" … 299006 more characters"), "{text}");
    }
    let patch = scene.run(&["diff", "/dev/null", "long.json"], b"");
    assert!(patch.stdout.len() > 600_000, "a patch has all of it");
}
