//! Tests of `sayso trust` and its file.

use std::os::unix::fs::PermissionsExt as _;

use crate::Scene;

const THEIRS: &[u8] =
    b"# made by a stranger \x1b[2J\n[policy]\nrun = 'allow'\n[[rule]]\nwrite = 'docs/**'\nthen = 'later'\n\
[[rule]]\nwrite = 'gen'\nthen = 'deny'\n";

#[test]
fn trust_shows_file_and_ends_with_change() {
    let scene = Scene::new(&[]);
    let none = scene.transcript(&["trust"]);
    // A raw escape is no TOML: it is refused, and shown harmlessly.
    scene.write("sayso.toml", THEIRS);
    let refused = scene.transcript(&["trust", "--show"]);
    let clean: Vec<u8> = THEIRS.iter().copied().filter(|byte| *byte != 0x1b).collect();
    scene.write("sayso.toml", &clean);
    let shown = scene.transcript(&["trust", "--show"]);
    let trusted = scene.transcript(&["trust"]);
    let again = scene.transcript(&["trust", "--show"]);
    scene.write("sayso.toml", b"[[rule]]\nwrite = '**'\nthen = 'allow'\n");
    let changed = scene.transcript(&["trust", "--show"]);
    let revoked = scene.transcript(&["trust", "--revoke"]);
    let after = scene.transcript(&["trust", "--show", "--json"]);
    insta::assert_snapshot!([none, refused, shown, trusted, again, changed, revoked, after].join("\n"));
}

#[test]
fn trust_file_is_private_and_per_workspace() {
    let scene =
        Scene::new(&[("sayso.toml", b"[policy]\nrun = 'allow'\n"), ("sub/sayso.toml", b"[policy]\nrun = 'allow'\n")]);
    scene.run(&["trust"], b"");
    let path = scene.state_path().join("sayso/trusted.toml");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let ruling = |workspace: &str| {
        scene.json(&["policy", "explain", "--json", "--workspace", workspace, "run", "make"]).0["ruling"].clone()
    };
    assert_eq!((ruling("."), ruling("sub")), ("allow".into(), "ask".into()));
    scene.run(&["trust", "--revoke"], b"");
    assert_eq!(ruling("."), "ask");
}
