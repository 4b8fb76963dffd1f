//! Help, completions and errors of the command line.

use crate::Scene;

#[test]
fn help_lists_commands_by_group() {
    let scene = Scene::new(&[]);
    let runs = [&["--help"][..], &["diff", "--help"], &["tool", "-h"], &["nonsense"]];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
}

#[test]
fn completions_exist_for_every_shell() {
    let scene = Scene::new(&[]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = scene.run(&["completions", shell], b"");
        assert_eq!(output.status.code(), Some(0));
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("--inline") && script.contains("completions"), "{shell}");
    }
    let checked = sayso_testkit::programs::run(
        scene.directory.path(),
        "bash",
        &["-n"],
        &scene.run(&["completions", "bash"], b"").stdout,
    );
    assert!(checked.status.success());
}

#[test]
fn invalid_number_error_has_an_example() {
    let scene = Scene::new(&[]);
    for (arguments, example) in [
        (&["show", "abc"][..], "the number of a change, as `sayso log` lists it, such as 3"),
        (&["review", "abc"], "the number of a change"),
        (&["watch", "--after", "x"], "the number of an event, such as 120, or 0 for all of them"),
        (&["gc", "--older-than", "x"], "a number of days, such as 30"),
        (&["gc", "--most", "x"], "a number of megabytes, such as 500"),
        (&["log", "-n", "x"], "a number, such as 20"),
        (&["serve", "--port", "99999"], "a port from 0 to 65535, such as 7777"),
        (&["serve", "--allow-origin", "foo"], "scheme://host or scheme://host:port, such as http://localhost:5173"),
    ] {
        let said = scene.transcript(arguments);
        assert!(said.contains(example) && said.ends_with("--- exit 2\n"), "{said}");
    }
}

#[test]
fn undo_and_redo_have_own_help() {
    let scene = Scene::new(&[]);
    let (undo, redo) = (scene.transcript(&["undo", "--help"]), scene.transcript(&["redo", "--help"]));
    assert!(undo.contains("Undo the last change") && undo.contains("was not captured"), "{undo}");
    assert!(redo.contains("Redo undone changes") && !redo.contains("Undo the last change"), "{redo}");
}

#[test]
fn server_start_failure_has_a_remedy() {
    let scene = Scene::new(&[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, hint) in [
        (&["serve", "--port", &port][..], "Hint: pass another port to --port, or 0 for any free port"),
        (&["serve", "--listen", "192.0.2.1"], "Hint: pass an address of this machine to --listen"),
        (&["serve", "--log", "bogus"], "Error: `bogus` is not a log level\nHint: use error, warn,"),
        (&["serve", "--log", "info,bogus"], "Error: `bogus` is not a log level"),
    ] {
        let said = scene.transcript(arguments);
        assert!(said.contains(hint) && said.ends_with("--- exit 2\n"), "{said}");
    }
    // The records folder cannot be created, not even by root.
    let scene = Scene::new(&[]);
    std::fs::write(scene.state_path().join("sayso"), "in the way").unwrap();
    let said = scene.transcript(&["serve", "--port", "0"]);
    assert!(said.contains("Error:") && said.contains("Hint:"), "{said}");
}
