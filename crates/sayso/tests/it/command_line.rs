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
