//! `sayso diff` of two directories.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use sayso_testkit::programs;

use crate::Scene;

/// Two trees with everything that can differ between files.
fn scene() -> Scene {
    let scene = Scene::new(&[
        ("old/gone", b"one\n"),
        ("new/added file", b"two\n"),
        ("old/sub/changed", b"a\nb\n"),
        ("new/sub/changed", b"a\nc\n"),
        ("old/same", b"same\n"),
        ("new/same", b"same\n"),
        ("old/mode", b"run\n"),
        ("new/mode", b"run\n"),
        ("new/empty", b""),
        ("old/emptied", b"x"),
        ("new/emptied", b""),
        ("new/quo\"te\nd", b"odd\n"),
        ("old/type", b"file\n"),
    ]);
    let not_text = std::ffi::OsStr::from_bytes(b"new/not\xFFutf8");
    std::fs::write(scene.directory.path().join(not_text), b"x\n").unwrap();
    std::fs::set_permissions(scene.path("new/mode"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("here", scene.path("old/link")).unwrap();
    symlink("there", scene.path("new/link")).unwrap();
    symlink("target", scene.path("new/type")).unwrap();
    scene
}

#[test]
fn tree_diff_prints_every_form() {
    let scene = scene();
    scene.write("old/a.bin", b"\0\x01");
    scene.write("new/a.bin", b"\0\x02");
    scene.write("old/crlf", b"x\r\n");
    scene.write("new/crlf", b"x\n");
    let runs = [
        &["diff", "old", "new"][..],
        &["diff", "old", "new", "--color", "always"],
        &["diff", "old", "new", "--inline", "1"],
        &["diff", "old/sub", "new/sub", "--json"],
        &["diff", "old", "old"],
        &["diff", "/dev/null", "old/sub"],
        &["diff", "old/sub", "/dev/null"],
    ];
    insta::assert_snapshot!(runs.map(|arguments| scene.transcript(arguments)).join("\n"));
}

#[test]
fn git_apply_accepts_tree_diff_both_ways() {
    let scene = scene();
    for (from, to) in [("old", "new"), ("new", "old")] {
        let patch = scene.run(&["diff", from, to], b"").stdout;
        let copied = programs::run(scene.directory.path(), "cp", &["-a", from, "work"], b"");
        assert!(copied.status.success());
        let applied = programs::run(&scene.path("work"), "git", &["apply", "-"], &patch);
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        assert_eq!(scene.transcript(&["diff", "work", to]), format!("$ sayso diff work {to}\n--- exit 0\n"));
        std::fs::remove_dir_all(scene.path("work")).unwrap();
    }
}

#[test]
fn unreadable_file_does_not_stop_tree_diff() {
    let scene = scene();
    std::fs::set_permissions(scene.path("new/same"), std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read every file, so that the test drops its privileges.
    let program = env!("CARGO_BIN_EXE_sayso");
    std::fs::set_permissions(scene.directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let readable = scene.path("sayso");
    std::fs::copy(program, &readable).unwrap();
    let am_root = programs::run(scene.directory.path(), "id", &["-u"], b"").stdout == b"0\n";
    let arguments = ["diff", "old", "new"];
    let output = if am_root {
        let all = [&["--reuid=65534", "--regid=65534", "--clear-groups", "./sayso"][..], &arguments].concat();
        programs::run(scene.directory.path(), "setpriv", &all, b"")
    } else {
        scene.run(&arguments, b"")
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("Error: cannot read `new/same`"), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("+++ b/sub/changed"));
}

#[test]
fn tree_diff_skips_pipes() {
    let scene = scene();
    assert!(programs::run(scene.directory.path(), "mkfifo", &["old/pipe"], b"").status.success());
    let output = scene.run(&["diff", "old", "old"], b"");
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`old/pipe` is not a regular file, left out"));
}

#[test]
fn tree_diff_prints_files_in_order() {
    let scene = Scene::new(&[]);
    for number in 0..500 {
        scene.write(&format!("a/{number:03}"), b"x\n");
        scene.write(&format!("b/{number:03}"), "y\n".repeat(number % 7 + 1).as_bytes());
    }
    let output = scene.run(&["diff", "a", "b"], b"");
    let text = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> = text.lines().filter(|line| line.starts_with("diff --git")).collect();
    assert_eq!(names.len(), 500);
    assert!(names.is_sorted());
    assert!(
        String::from_utf8_lossy(&output.stderr).starts_with("500 files changed, 1994 insertions(+), 500 deletions(-)")
    );
}
