//! Directories of commands, the workspace of a directory, and captured files.

use std::process::{Command, Output};

use crate::Scene;
use crate::concurrent_clients::Terminal;

/// Runs `sayso` in a directory of the scene.
fn run_in(scene: &Scene, directory: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sayso"));
    command.args(arguments).current_dir(scene.path(directory)).env_clear().envs(scene.environment());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns the review of a command, and denies it.
fn asked(scene: &Scene, arguments: &[&str]) -> String {
    let mut waits = Terminal::start(scene, arguments);
    waits.until("waits for a decision");
    let asked = scene.dialogue(&["review"], "n\n\n");
    waits.ended();
    asked
}

#[test]
fn command_runs_in_directory_of_user() {
    let scene = Scene::new(&[("source.txt", b"keep\n"), ("build/object.o", b"x\n"), (".git/HEAD", b"ref: x\n")]);
    // The workspace is known by a history, so that its root is found from below.
    scene.transcript(&["exec", "--approve", "true"]);
    let ran = run_in(&scene, "build", &["exec", "--approve", "rm -f *"]);
    assert!(ran.status.success(), "{}", said(&ran));
    assert_eq!(scene.read("source.txt"), "keep\n");
    assert!(!scene.path("build/object.o").exists());
    let shown = scene.transcript(&["show", "2"]);
    assert!(shown.contains("in build/"), "{shown}");
    assert!(scene.transcript(&["log"]).contains("`rm -f *` in build/"));
    // A directory is named from where the user is.
    let named = run_in(&scene, "build", &["exec", "--approve", "--directory", "..", "pwd"]);
    assert_eq!(
        String::from_utf8_lossy(&named.stdout).trim(),
        scene.path(".").canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn command_question_names_its_directory() {
    let scene = Scene::new(&[("build/a", b"x\n"), (".git/HEAD", b"ref: x\n")]);
    let asked = asked(&scene, &["exec", "--directory", "build", "make one"]);
    assert!(asked.contains("Command  in build/") && asked.contains("Run it in build/ ["), "{asked}");
}

#[test]
fn undo_restores_ignored_files_named_by_command() {
    let ignore: &[u8] = b"build/\n*.log\n";
    let scene = Scene::new(&[
        (".gitignore", ignore),
        ("build/deep/object.o", b"object\n"),
        ("a.log", b"log\n"),
        ("b.log", b"other log\n"),
        (".git/HEAD", b"ref: x\n"),
    ]);
    let ran = scene.transcript(&["exec", "--approve", "rm -rf build a.log"]);
    assert!(ran.contains("build/deep/object.o (deleted)") && ran.contains("a.log (deleted)"), "{ran}");
    let undone = scene.transcript(&["undo"]);
    assert!(undone.contains("Undone.") && undone.contains("exit 0"), "{undone}");
    assert_eq!((scene.read("build/deep/object.o"), scene.read("a.log")), ("object\n".to_owned(), "log\n".to_owned()));
    // By a pattern, and by a redirection.
    let ran = scene.transcript(&["exec", "--approve", "rm -f *.log; echo new > build/made"]);
    assert!(ran.contains("b.log (deleted)") && ran.contains("build/made (new)"), "{ran}");
    assert!(scene.transcript(&["undo"]).contains("exit 0"));
    assert_eq!(scene.read("b.log"), "other log\n");
    assert!(!scene.path("build/made").exists());
}

#[test]
fn uncaptured_files_are_reported_at_every_stage() {
    let scene = Scene::new(&[
        (".gitignore", b"build/\n"),
        ("clean.sh", b"rm -rf build\n"),
        ("build/object.o", b"x\n"),
        (".git/HEAD", b"ref: x\n"),
    ]);
    let ran = scene.transcript(&["exec", "--approve", "sh clean.sh"]);
    let gone = "cannot be put back: build: it is gone, and was not captured because git ignores it";
    assert!(ran.contains(gone), "{ran}");
    let undone = scene.transcript(&["undo"]);
    assert!(undone.contains(gone) && undone.contains("exit 4"), "{undone}");
    // Before it runs, where it can be known.
    scene.write("build/object.o", b"x\n");
    let variable = asked(&scene, &["exec", "rm -rf $OUT"]);
    assert!(variable.contains("undo cannot restore all of `$OUT`"), "{variable}");
    scene.configure("[snapshot]\nmax_file_size = \"1 MB\"\n");
    scene.write("build/large.bin", &vec![b'x'; 2_000_000]);
    let large = asked(&scene, &["exec", "rm build/large.bin"]);
    assert!(large.contains("undo cannot restore all of `build/large.bin`"), "{large}");
}

#[test]
fn workspace_of_repository_is_its_top_level() {
    let scene = Scene::new(&[(".git/HEAD", b"ref: x\n"), ("deep/er/a.txt", b"1\n")]);
    run_in(&scene, "deep/er", &["exec", "--approve", "true"]);
    let (status, _) = scene.json(&["status", "--json"]);
    assert_eq!(status["changes"], 1, "{status:#}");
    assert_eq!(status["workspace"], scene.path(".").canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn nested_pending_changes_are_reviewed_from_parent() {
    let scene = Scene::new(&[(".git/HEAD", b"ref: x\n"), ("t1/a.txt", b"1\n")]);
    scene.transcript(&["exec", "--approve", "true"]);
    let mut waits = Terminal::start(&scene, &["exec", "--workspace", "t1", "touch here"]);
    waits.until("waits for a decision");
    let nested = scene.path("t1").canonicalize().unwrap();
    let line = "1 waits in [DIR]/t1: `sayso review --everywhere`";
    assert!(scene.transcript(&["status"]).contains(line));
    assert!(scene.transcript(&["review"]).contains(line));
    let reviewed = scene.transcript(&["review", "--everywhere", "--approve", "all"]);
    assert!(reviewed.contains("Change 1 may go ahead."), "{reviewed}");
    assert_eq!(waits.ended(), Some(0));
    assert!(nested.join("here").exists());
}
