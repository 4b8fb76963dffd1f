//! `sayso diff` of two files into a pipe.

use std::process::{Command, Stdio};

use crate::Scene;

fn scene() -> Scene {
    Scene::new(&[
        ("old.txt", b"one\ntwo\nthree\n"),
        ("new.txt", b"one\n2\nthree\n"),
        ("same.txt", b"one\ntwo\nthree\n"),
        ("crlf.txt", b"one\r\ntwo\r\nthree"),
        ("a.png", b"\x89PNG\0\x01"),
        ("b.png", b"\x89PNG\0\x02"),
        ("wide.txt", b"\xFF\xFEa\0\n\0"),
        ("empty.txt", b""),
    ])
}

#[test]
fn diff_prints_every_form() {
    let scene = scene();
    let runs = [
        &["diff", "old.txt", "new.txt"][..],
        &["diff", "old.txt", "same.txt"],
        &["diff", "old.txt", "new.txt", "--context", "0", "--label-a", "before", "--label-b", "two words"],
        &["diff", "old.txt", "new.txt", "--inline"],
        &["diff", "--inline", "old.txt", "new.txt"],
        &["diff", "old.txt", "new.txt", "--inline", "1"],
        &["diff", "old.txt", "crlf.txt", "--inline"],
        &["diff", "old.txt", "crlf.txt", "--inline", "0", "--json"],
        &["diff", "a.png", "b.png", "--inline", "--json"],
        &["diff", "wide.txt", "/dev/null"],
        &["diff", "empty.txt", "crlf.txt"],
        &["diff", "old.txt", "new.txt", "--json"],
        &["diff", "old.txt", "new.txt", "--json", "--inline", "2"],
        &["diff", "old.txt", "crlf.txt"],
        &["diff", "/dev/null", "new.txt"],
        &["diff", "new.txt", "/dev/null"],
        &["diff", "a.png", "b.png"],
        &["diff", "a.png", "b.png", "--json"],
        &["diff", "a.png", "b.png", "--json", "--text"],
    ];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
}

#[test]
fn diff_errors_have_remedies() {
    let scene = scene();
    std::fs::create_dir(scene.path("folder")).unwrap();
    let runs = [
        &["diff", "old.txt", "absent.txt"][..],
        &["diff", "old.txt", "absent.txt", "--json"],
        &["diff", "folder", "absent"],
        &["diff", "-", "-"],
        &["diff", "folder", "old.txt"],
        &["diff", "folder", "folder", "--label-a", "x"],
        &["diff", "old.txt"],
        &["diff", "old.txt", "new.txt", "--context", "-1"],
        &["diff", "old.txt", "new.txt", "--inline=many"],
        &["diff", "bad\x1b[31mname", "new.txt"],
        &["diff", "--bad\x1b[31mflag"],
        &["diff", "old.txt", "new.txt", "--color", "red"],
    ];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
}

#[test]
fn diff_accepts_stdin_on_either_side() {
    let scene = scene();
    let old = scene.run(&["diff", "-", "new.txt"], b"one\ntwo\nthree\n");
    assert_eq!(String::from_utf8_lossy(&old.stdout).lines().next(), Some("--- -"));
    assert_eq!(old.status.code(), Some(1));
    let new = scene.run(&["diff", "new.txt", "-"], b"one\n2\nthree\n");
    assert_eq!((new.stdout.as_slice(), new.status.code()), (&b""[..], Some(0)));
}

#[test]
fn patch_of_binary_bytes_is_exact() {
    let scene = scene();
    let output = scene.run(&["diff", "--text", "a.png", "b.png"], b"");
    assert!(output.stdout.windows(6).any(|bytes| bytes == b"PNG\0\x02\n"));
}

#[test]
fn closed_output_is_no_error() {
    let scene = scene();
    scene.write("large", "line\n".repeat(500_000).as_bytes());
    let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["diff", "/dev/null", "large"])
        .current_dir(scene.directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(141));
}
