//! Tests of `sayso branch` in real repositories.

use std::os::unix::fs::PermissionsExt;

use sayso_testkit::programs;
use serde_json::json;

use crate::Scene;

fn git(scene: &Scene, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let output = programs::run(scene.directory.path(), "git", &[&who, arguments].concat(), b"");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A repository with one commit.
fn scene() -> Scene {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("src/b.txt", b"one\n"), (".gitignore", b"*.log\n")]);
    git(&scene, &["init", "--quiet", "--initial-branch=main"]);
    commit(&scene);
    scene
}

fn commit(scene: &Scene) {
    git(scene, &["add", "--all"]);
    git(scene, &["commit", "--quiet", "--message", "a commit"]);
}

fn transcripts(scene: &Scene, runs: &[&[&str]]) -> String {
    runs.iter().map(|arguments| scene.transcript(arguments)).collect::<Vec<_>>().join("\n")
}

#[test]
fn branch_shows_creates_and_switches_back() {
    let scene = scene();
    let looked = scene.transcript(&["branch"]);
    scene.write("a.txt", b"mine\n");
    scene.write("new.txt", b"mine\n");
    git(&scene, &["add", "a.txt"]);
    let task: &[&str] = &["branch", "Fix", "the login page"];
    let made = transcripts(&scene, &[&["branch", "Fix the login page", "--dry-run"], task, task, &["branch"]]);
    git(&scene, &["switch", "--quiet", "main"]);
    let again = transcripts(&scene, &[&["branch", "fix-the-login-page", "--dry-run"], task]);
    insta::assert_snapshot!([looked, made, again].join("\n"));
    assert_eq!(git(&scene, &["status", "--porcelain"]), "M  a.txt\n?? new.txt\n");
    assert_eq!(git(&scene, &["symbolic-ref", "HEAD"]), "refs/heads/sayso/fix-the-login-page\n");
}

#[test]
fn missing_repository_names_both_remedies() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let runs: [&[&str]; 6] = [
        &["branch"],
        &["branch", "a task"],
        &["branch", "a task", "--json"],
        &["branch", "a task", "--init", "--dry-run"],
        &["branch", "a task", "--init"],
        &["branch"],
    ];
    insta::assert_snapshot!(transcripts(&scene, &runs));
}

#[test]
fn branch_obstacle_is_named_with_remedy() {
    let scene = scene();
    git(&scene, &["switch", "--quiet", "-c", "sayso/task"]);
    scene.write("a.txt", b"the branch's\n");
    commit(&scene);
    git(&scene, &["switch", "--quiet", "main"]);
    scene.write("a.txt", b"mine\n");
    let overwritten = scene.transcript(&["branch", "task"]);
    git(&scene, &["commit", "--quiet", "--all", "--message", "mine"]);
    programs::run(
        scene.directory.path(),
        "git",
        &["-c", "user.name=a", "-c", "user.email=a@b", "rebase", "sayso/task"],
        b"",
    );
    let rebasing = transcripts(&scene, &[&["branch"], &["branch", "another"]]);
    let commit = git(&scene, &["rev-parse", "HEAD"]);
    git(&scene, &["rebase", "--abort"]);
    git(&scene, &["branch", "team"]);
    let runs: [&[&str]; 4] = [
        &["branch", "x", "--prefix", "team/"],
        &["branch", "x", "--prefix", "a b"],
        &["branch", " "],
        &["branch", "--init"],
    ];
    let text = [overwritten, rebasing, transcripts(&scene, &runs)].join("\n");
    insta::assert_snapshot!(text.replace(&commit[..10], "[COMMIT]"));
}

#[test]
fn branch_json_has_state_and_action() {
    let scene = scene();
    scene.write("x.txt", b"mine\n");
    let (state, code) = scene.json(&["branch", "--json"]);
    assert_eq!((code, &state["state"], &state["head"]["branch"]), (0, &json!("repository"), &json!("main")));
    assert_eq!((&state["in_progress"], &state["task_branch"]), (&json!(null), &json!(false)));
    assert_eq!(state["uncommitted"], json!({"staged": 0, "unstaged": 0, "untracked": 1, "conflicted": 0}));
    let (planned, _) = scene.json(&["branch", "Do it", "--prefix", "ai-", "--dry-run", "--json"]);
    assert_eq!((&planned["plan"], &planned["outcome"]), (&json!("create"), &json!("planned")));
    let (done, code) = scene.json(&["branch", "Do it", "--prefix", "ai-", "--json"]);
    assert_eq!((code, &done["branch"], &done["outcome"]), (0, &json!("ai-do-it"), &json!("created")));
    assert_eq!((&done["from"]["branch"], &done["uncommitted"]["untracked"]), (&json!("main"), &json!(1)));
    assert_eq!((&done["settled"], &done["appeared"]), (&json!([]), &json!([])));
    let (state, _) = scene.json(&["branch", "--prefix", "ai-", "--json"]);
    assert_eq!(state["task_branch"], true);
    git(&scene, &["branch", "team"]);
    let (refused, code) = scene.json(&["branch", "x", "--prefix", "team/", "--json"]);
    assert_eq!((code, &refused["error"]["kind"]), (4, &json!("conflict")));
}

#[test]
fn git_variables_have_no_effect() {
    let (scene, other) = (scene(), scene());
    let (directory, tree) = (other.path(".git"), other.path(""));
    let state = scene.state_path();
    let environment = [
        ("XDG_STATE_HOME", state.to_str().unwrap()),
        ("GIT_DIR", directory.to_str().unwrap()),
        ("GIT_WORK_TREE", tree.to_str().unwrap()),
        ("GIT_INDEX_FILE", "/nowhere/index"),
        ("GIT_NAMESPACE", "elsewhere"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.bare"),
        ("GIT_CONFIG_VALUE_0", "true"),
        ("LANG", "de_DE.UTF-8"),
    ];
    let program = env!("CARGO_BIN_EXE_sayso");
    let output = programs::run_with(scene.directory.path(), program, &["branch", "task"], &environment, b"");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(git(&scene, &["branch", "--show-current"]), "sayso/task\n");
    assert_eq!(git(&other, &["branch", "--show-current"]), "main\n");
}

#[test]
fn branch_in_subdirectory_names_the_repository() {
    let scene = scene();
    let shown = scene.transcript(&["branch", "--workspace", "src"]);
    assert!(shown.contains("directory src of the repository; a branch covers all of it"), "{shown}");
    git(&scene, &["branch", "sayso/task"]);
    let switched = scene.transcript(&["branch", "task", "--workspace", "src"]);
    assert!(switched.contains("so files outside the workspace change too: [DIR]\n"), "{switched}");
}

#[test]
fn switch_names_uncommitted_work_that_differs() {
    let scene = scene();
    git(&scene, &["switch", "--quiet", "-c", "sayso/task"]);
    scene.write("a.txt", b"two\n");
    scene.write(".gitignore", b"");
    commit(&scene);
    git(&scene, &["switch", "--quiet", "main"]);
    scene.write("a.txt", b"two\n");
    git(&scene, &["add", "a.txt"]);
    scene.write("x.log", b"mine\n");
    insta::assert_snapshot!(scene.transcript(&["branch", "task"]));
    assert_eq!((scene.read("a.txt"), scene.read("x.log")), ("two\n".into(), "mine\n".into()));
}

#[test]
fn branch_keeps_history_and_accepts_changes() {
    let scene = scene();
    let change = json!([{"operation": "update", "path": "a.txt", "new_content": "two\n"}]);
    git(&scene, &["branch", "sayso/task"]);
    scene.write("change.log", change.to_string().as_bytes());
    assert!(scene.run(&["propose", "change.log", "--approve", "all"], b"").status.success());
    let (done, _) = scene.json(&["branch", "task", "--json"]);
    assert_eq!((&done["outcome"], &done["uncommitted"]["unstaged"]), (&json!("switched"), &json!(1)));
    assert!(scene.run(&["undo"], b"").status.success());
    assert_eq!(scene.read("a.txt"), "one\n");
}

/// Hooks of a repository are not the user's own commands: their processes cannot decide.
#[test]
fn repository_hooks_run_marked() {
    let scene = scene();
    let hook = "#!/bin/sh\nenv > \"$(git rev-parse --git-dir)/seen\"\n";
    scene.write(".git/hooks/post-checkout", hook.as_bytes());
    std::fs::set_permissions(scene.path(".git/hooks/post-checkout"), PermissionsExt::from_mode(0o755)).unwrap();
    let made = scene.transcript(&["branch", "a task"]);
    assert!(made.ends_with("--- exit 0\n"), "{made}");
    let seen = scene.read(".git/seen");
    assert!(seen.lines().any(|line| line.starts_with("SAYSO_UNDER_GATE=")), "{seen}");
}
