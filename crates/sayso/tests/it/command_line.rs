//! Help, version, completions.

use crate::Scene;

#[test]
fn help_is_something_to_learn_from() {
    let scene = Scene::new(&[]);
    let runs = [&["--help"][..], &["diff", "--help"], &["tool", "-h"], &["nonsense"]];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
}

#[test]
fn completions_for_every_shell() {
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
fn what_is_no_number_is_answered_with_an_example() {
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
fn undo_and_redo_each_say_what_they_do() {
    let scene = Scene::new(&[]);
    let (undo, redo) = (scene.transcript(&["undo", "--help"]), scene.transcript(&["redo", "--help"]));
    assert!(undo.contains("Takes changes back: the last one") && undo.contains("was not captured"), "{undo}");
    assert!(redo.contains("Makes changes again that were taken back") && !redo.contains("Takes changes"), "{redo}");
}

#[test]
fn where_a_server_cannot_listen_or_write_is_said_with_a_remedy() {
    let scene = Scene::new(&[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, hint) in [
        (&["serve", "--port", &port][..], "Hint: name another port with --port, or 0 for any"),
        (&["serve", "--listen", "192.0.2.1"], "Hint: --listen takes an address of this machine"),
        (&["serve", "--log", "bogus"], "Error: `bogus` is no level of a log\nHint: error, warn,"),
        (&["serve", "--log", "info,bogus"], "Error: `bogus` is no level of a log"),
    ] {
        let said = scene.transcript(arguments);
        assert!(said.contains(hint) && said.ends_with("--- exit 2\n"), "{said}");
    }
    // Where nothing can be made, whoever it is.
    let scene = Scene::new(&[]);
    std::fs::write(scene.state_path().join("sayso"), "in the way").unwrap();
    let said = scene.transcript(&["serve", "--port", "0"]);
    assert!(said.contains("Error:") && said.contains("Hint:"), "{said}");
}
