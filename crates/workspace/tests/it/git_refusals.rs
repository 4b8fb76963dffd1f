//! Refused switches, which change no file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use sayso_review::ErrorKind;
use sayso_workspace::Workspace;
use sayso_workspace::git::{BranchPlan, Git, GitError, Refusal, WithoutRepository};

use crate::git::{Scene, name};
use crate::git_states::{diverged, everything_in_progress};

/// Returns the reason for a refused switch, and checks that no file changed.
fn refusal(scene: &Scene, task: &str) -> Refusal {
    let before = scene.everything();
    let plan = scene.plan(task);
    let error = scene.program().execute(&scene.workspace(), &plan).unwrap_err();
    assert_eq!(scene.everything(), before);
    match (plan, error) {
        (BranchPlan::Refused { reason, .. }, GitError::Refused(said)) => {
            assert_eq!(reason, said);
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn operation_in_progress_prevents_switch() {
    for (operation, scene) in everything_in_progress() {
        let reason = refusal(&scene, "task");
        assert_eq!((&reason, reason.kind()), (&Refusal::InProgress(operation), ErrorKind::Conflict));
        assert!(reason.hint().unwrap().contains(&format!("git {operation}")), "{reason:?}");
    }
}

#[test]
fn unmerged_files_prevent_switch() {
    let scene = diverged();
    scene.write("a", "stashed\n");
    scene.git(&["stash", "--quiet"]);
    scene.commit(&[("a", "other\n")]);
    scene.git_stops(&["stash", "pop"]);
    assert_eq!(refusal(&scene, "task"), Refusal::Unmerged { files: vec!["a".into()] });
}

#[test]
fn branch_of_other_worktree_is_refused() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["worktree", "add", "--quiet", "-b", "sayso/task", "../linked"]);
    let worktree = scene.root.with_file_name("linked");
    let expected = Refusal::CheckedOut { branch: name("task"), worktree: worktree.clone() };
    assert_eq!(refusal(&scene, "task"), expected);
    // Git keeps the worktree until it is pruned, even if its directory is gone.
    std::fs::remove_dir_all(worktree).unwrap();
    assert_eq!(refusal(&scene, "task"), expected);
}

#[test]
fn branch_rebased_in_other_worktree_is_refused() {
    let scene = diverged();
    scene.git(&["worktree", "add", "--quiet", "-b", "sayso/task", "../linked", "main"]);
    let worktree = scene.root.with_file_name("linked");
    let stopped = sayso_testkit::programs::run(
        &worktree,
        "git",
        &["-c", "user.name=a", "-c", "user.email=a@b", "rebase", "side"],
        b"",
    );
    assert!(!stopped.status.success());
    let (tree, head) = (scene.tree(), scene.git(&["symbolic-ref", "HEAD"]));
    let error = scene.take_up("task").unwrap_err();
    assert!(
        matches!(&error, GitError::Refused(Refusal::CheckedOut { worktree: at, .. }) if *at == worktree),
        "{error}"
    );
    assert_eq!((scene.tree(), scene.git(&["symbolic-ref", "HEAD"])), (tree, head));
}

#[test]
fn conflicting_branch_names_are_refused() {
    let scene = Scene::new(&[("a", "1\n")]);
    scene.git(&["branch", "sayso"]);
    assert_eq!(refusal(&scene, "task"), Refusal::NameTaken { branch: name("task"), existing: "sayso".into() });
    scene.git(&["branch", "-m", "sayso", "sayso/task/part"]);
    let expected = Refusal::NameTaken { branch: name("task"), existing: "sayso/task/part".into() };
    assert_eq!(refusal(&scene, "task"), expected);
    // A name with the same prefix does not conflict, packed or not; nor does a tag.
    scene.git(&["branch", "-m", "sayso/task/part", "sayso/task-part"]);
    scene.git(&["tag", "sayso/task"]);
    scene.git(&["pack-refs", "--all"]);
    scene.take_up("task").unwrap();
    assert_eq!(scene.git(&["symbolic-ref", "HEAD"]), "refs/heads/sayso/task\n");
}

#[test]
fn branch_is_preferred_to_tag() {
    let scene = Scene::with_task_branch(&[("a", "1\n")], &[("a", "2\n")]);
    scene.git(&["tag", "sayso/task", "main"]);
    scene.take_up("task").unwrap();
    assert_eq!(
        (scene.read("a"), scene.git(&["symbolic-ref", "HEAD"])),
        ("2\n".into(), "refs/heads/sayso/task\n".into())
    );
}

#[test]
fn repository_without_working_tree_is_refused() {
    let scene = Scene::new(&[("a", "1\n")]);
    let workspace = Workspace::open(&scene.root.join(".git")).unwrap();
    for without in [WithoutRepository::Refuse, WithoutRepository::Initialise] {
        let plan = scene.program().plan(&workspace, &name("task"), without).unwrap();
        let BranchPlan::Refused { reason: Refusal::Bare { directory }, .. } = plan else { panic!("{plan:?}") };
        assert_eq!(directory, scene.root.join(".git"));
    }
}

#[test]
fn missing_git_program_is_refusal() {
    let scene = Scene::new(&[("a", "1\n")]);
    let program = scene.program_on("/nowhere".as_ref(), Duration::from_mins(1));
    let plan = program.plan(&scene.workspace(), &name("task"), WithoutRepository::Initialise).unwrap();
    assert!(matches!(plan, BranchPlan::Refused { reason: Refusal::NoGit, .. }), "{plan:?}");
}

/// Checks that git refuses to switch to `sayso/task`, names these files, and changes no file.
fn would_overwrite(scene: &Scene, expected: &[&str]) {
    let state = || {
        let index = scene.git(&["ls-files", "--stage"]);
        (scene.tree(), index, scene.git(&["symbolic-ref", "HEAD"]), scene.git(&["for-each-ref"]))
    };
    let before = state();
    let error = scene.take_up("task").unwrap_err();
    assert!(matches!(&error, GitError::WouldOverwrite { files, .. } if files == expected), "{error}");
    assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Conflict, true));
    assert_eq!(state(), before);
}

#[test]
fn switch_over_changes_is_refused() {
    let scene = Scene::with_task_branch(&[("a", "1\n"), ("b", "1\n")], &[("a", "2\n"), ("b", "2\n")]);
    scene.write("a", "mine\n");
    would_overwrite(&scene, &["a"]);
    scene.git(&["add", "a"]);
    would_overwrite(&scene, &["a"]);
    scene.write("b", "mine\n");
    would_overwrite(&scene, &["a", "b"]);
    for bit in ["--assume-unchanged", "--skip-worktree"] {
        let scene = Scene::with_task_branch(&[("a", "1\n")], &[("a", "2\n")]);
        scene.git(&["update-index", bit, "a"]);
        scene.write("a", "mine\n");
        would_overwrite(&scene, &["a"]);
    }
}

#[test]
fn switch_over_untracked_files_is_refused() {
    let scene = Scene::with_task_branch(&[("a", "1\n")], &[("new", "2\n"), ("d/new", "2\n")]);
    scene.write("new", "mine\n");
    would_overwrite(&scene, &["new"]);
    std::fs::remove_file(scene.root.join("new")).unwrap();
    scene.write("d", "mine\n");
    would_overwrite(&scene, &["d"]);
}

/// Without options git overwrites these silently.
#[test]
fn switch_over_ignored_files_is_refused() {
    let scene = Scene::with_task_branch(&[(".gitignore", "*.log\n.env\n")], &[("x.log", "2\n"), (".env", "2\n")]);
    scene.write(".env", "SECRET=mine\n");
    would_overwrite(&scene, &[".env"]);
    std::fs::remove_file(scene.root.join(".env")).unwrap();
    scene.write("x.log/inner.log", "mine\n");
    would_overwrite(&scene, &["x.log"]);
}

#[test]
fn switch_from_unborn_head_keeps_files() {
    let scene = Scene::with_task_branch(&[("a", "1\n")], &[("a", "2\n")]);
    scene.git(&["switch", "--quiet", "--orphan", "fresh"]);
    scene.write("a", "mine\n");
    would_overwrite(&scene, &["a"]);
    scene.git(&["add", "a"]);
    would_overwrite(&scene, &["a"]);
}

#[test]
fn locked_repository_is_reported() {
    let scene = Scene::with_task_branch(&[("a", "1\n")], &[("a", "2\n")]);
    scene.write(".git/index.lock", "");
    let before = scene.everything();
    let error = scene.take_up("task").unwrap_err();
    assert!(matches!(&error, GitError::Locked { said } if said.contains("index.lock")), "{error}");
    assert_eq!(scene.everything(), before);
}

/// Creates a program `git` before the real one in the search path.
fn stand_in(scene: &Scene, script: &str, limit: Duration) -> Git {
    let programs = scene.room.path().join("programs");
    std::fs::create_dir_all(&programs).unwrap();
    std::fs::write(programs.join("git"), format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(programs.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut path = programs.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    scene.program_on(&path, limit)
}

fn real_git() -> String {
    let output = sayso_testkit::programs::run(Path::new("/"), "sh", &["-c", "command -v git"], b"");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn untrusted_repository_returns_git_advice() {
    let scene = Scene::new(&[("a", "1\n")]);
    let script = format!("export GIT_TEST_ASSUME_DIFFERENT_OWNER=1\nexec {} \"$@\"", real_git());
    let error = stand_in(&scene, &script, Duration::from_mins(1)).state(&scene.workspace()).unwrap_err();
    assert!(matches!(error, GitError::NotTrusted { .. }), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("git config --global --add safe.directory") && hint.contains("repository"), "{hint}");
}

#[test]
fn hanging_git_is_killed_with_children() {
    let scene = Scene::new(&[("a", "1\n")]);
    let file = scene.room.path().join("sleeper");
    // Ignores SIGTERM, like its child.
    let script = format!("trap '' TERM; sleep 1000 & echo $! > {}; sleep 1000", file.display());
    let mut limit = Duration::from_millis(200);
    let sleeper = loop {
        let error = stand_in(&scene, &script, limit).state(&scene.workspace()).unwrap_err();
        assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
        match std::fs::read_to_string(&file) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            // On a loaded machine it may not have started yet.
            _ => limit *= 2,
        }
    };
    let running = || {
        let state = std::fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    };
    // Killing takes a moment; otherwise it would run for a quarter of an hour.
    for _ in 0..1000 {
        if !running() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{sleeper} is still there");
}

#[test]
fn git_with_too_much_output_is_killed() {
    let scene = Scene::new(&[("a", "1\n")]);
    let program = stand_in(&scene, "exec yes", Duration::from_mins(10)).with_max_output(1 << 20);
    let error = program.state(&scene.workspace()).unwrap_err();
    assert!(matches!(&error, GitError::TooMuchOutput { command } if command == "git rev-parse"), "{error}");
    // Excess error output is dropped, and the result counts.
    let script = format!("head -c 1000000 /dev/zero >&2\nexec {} \"$@\"", real_git());
    assert!(stand_in(&scene, &script, Duration::from_mins(1)).state(&scene.workspace()).is_ok());
}

#[test]
fn background_process_of_hook_does_not_block() {
    let scene = Scene::new(&[("a", "1\n")]);
    let hook = scene.root.join(".git/hooks/post-checkout");
    let sleeper = scene.room.path().join("sleeper");
    std::fs::write(&hook, format!("#!/bin/sh\nsleep 1000 &\necho $! > {}\n", sleeper.display())).unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    let done = scene.take_up("task");
    // The process belongs to the hook and continues; the test ends it.
    let sleeper = std::fs::read_to_string(sleeper).unwrap();
    let ended = sayso_testkit::programs::run(&scene.root, "kill", &[sleeper.trim()], b"");
    assert!(done.is_ok() && ended.status.success(), "{done:?} {ended:?}");
}

#[test]
fn git_gets_only_given_environment() {
    let scene = Scene::new(&[("a", "1\n")]);
    let list = scene.room.path().join("environment");
    let script = format!("env > {}\nexec {} \"$@\"", list.display(), real_git());
    stand_in(&scene, &script, Duration::from_mins(1)).state(&scene.workspace()).unwrap();
    let names: std::collections::BTreeSet<String> = std::fs::read_to_string(list)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.to_owned())
        // Variables that the shell itself sets.
        .filter(|name| !["PWD", "_", "SHLVL", "OLDPWD"].contains(&name.as_str()))
        .collect();
    let expected = ["GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT", "HOME", "LC_ALL", "PATH"];
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
