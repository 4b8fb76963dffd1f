//! `sayso exec`, and decisions about commands from another process.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Scene;
use crate::served::LONG;

const RULES: &str = r#"
[[rule]]
name = "no deleting by shell"
run = "rm"
then = "deny"
reason = "propose a change that deletes"

[[rule]]
name = "these are fine"
run = ["cat", "true", "touch", "printf"]
then = "allow"
"#;

fn scene() -> Scene {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"one\n")]);
    scene.configure(RULES);
    scene
}

/// Starts `sayso` and leaves it running.
fn start(scene: &Scene, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(arguments)
        .current_dir(scene.path("."))
        .env_clear()
        .envs(scene.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a condition.
#[track_caller]
fn until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "it never was so");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a change waits for a verdict.
fn until_something_waits(scene: &Scene) {
    until(|| scene.transcript(&["status", "--short"]).contains("pending"));
}

fn ended(mut child: Child) -> (i32, String) {
    let code = child.wait().unwrap().code().unwrap_or(-1);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (code, text)
}

#[test]
fn denied_command_is_not_run() {
    let scene = scene();
    insta::assert_snapshot!(scene.transcript(&["exec", "cat a.txt; rm -f a.txt"]));
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn command_changes_are_recorded_and_undone_partially() {
    let scene = scene();
    let run =
        scene.transcript(&["exec", "--approve", "printf 'two\\n' > a.txt; cp a.txt c.txt; printf x >> b.txt; exit 7"]);
    assert!(run.contains("exit 7"), "{run}");
    insta::assert_snapshot!(run);
    assert!(scene.run(&["undo", "1", "--file", "a.txt", "--file", "c.txt"], b"").status.success());
    assert_eq!((scene.read("a.txt").as_str(), scene.read("b.txt").as_str()), ("one\n", "one\nx"));
    assert!(!scene.path("c.txt").exists());
    assert!(scene.run(&["undo", "1"], b"").status.success());
    assert_eq!(scene.read("b.txt"), "one\n");
}

#[test]
fn exec_passes_output_and_exit_code_through() {
    let scene = scene();
    let output = scene.run(&["exec", "cat", "a.txt", "missing file"], b"");
    assert_eq!(output.stdout, b"one\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing file"), "{output:?}");
}

#[test]
fn command_runs_after_approval_elsewhere() {
    let scene = scene();
    let waiting = start(&scene, &["exec", "echo two > a.txt"]);
    until_something_waits(&scene);
    assert_eq!(scene.read("a.txt"), "one\n");
    insta::assert_snapshot!(scene.transcript(&["review", "--approve", "all"]));
    let (code, text) = ended(waiting);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("Changed while it ran"), "{text}");
    assert_eq!(scene.read("a.txt"), "two\n");
}

#[test]
fn denial_elsewhere_ends_waiting_command() {
    let scene = scene();
    let waiting = start(&scene, &["exec", "echo two > a.txt"]);
    until_something_waits(&scene);
    scene.run(&["review", "--deny", "not today"], b"");
    let (code, text) = ended(waiting);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("user denied this tool call: not today"), "{text}");
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn pending_command_accepts_approve_all_only() {
    let scene = scene();
    let waiting = start(&scene, &["exec", "make two > a.txt"]);
    until_something_waits(&scene);
    for wrong in ["a.txt:1", "1,3", "1", "nonsense", "a.txt", "", "ALL", "y"] {
        let output = scene.run(&["review", "--approve", wrong], b"");
        assert_eq!(output.status.code(), Some(2), "{wrong}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("takes `all` or `none`; nothing was decided"), "{wrong}: {said}");
    }
    let output = scene.run(&["review", "--approve", "all", "--comment", "a.txt:1:no"], b"");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(scene.transcript(&["status", "--short"]).contains("1 pending"));
    scene.run(&["review", "--approve", "none"], b"");
    assert_eq!(ended(waiting).0, 1);
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn answer_without_number_needs_one_pending_change() {
    let scene = scene();
    let first = start(&scene, &["exec", "make one"]);
    until_something_waits(&scene);
    let second = start(&scene, &["exec", "make two"]);
    until(|| scene.transcript(&["status", "--short"]).contains("2 pending"));
    for answer in [["--approve", "all"], ["--approve", "none"], ["--deny", "no"]] {
        let output = scene.run(&["review", answer[0], answer[1]], b"");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("2 changes wait, and none is named; nothing was decided"), "{said}");
        assert!(said.contains("1  `make one`") && said.contains("2  `make two`"), "{said}");
        assert!(said.contains("sayso review 1 2"), "{said}");
    }
    let output = scene.run(&["review", "1", "2", "--approve", "1"], b"");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(scene.transcript(&["status", "--short"]).contains("2 pending"));
    scene.run(&["review", "1", "2", "--deny", "neither"], b"");
    assert_eq!((ended(first).0, ended(second).0), (1, 1));
}

#[test]
fn interrupted_exec_withdraws_the_command() {
    let scene = scene();
    let waiting = start(&scene, &["exec", "echo two > a.txt"]);
    until_something_waits(&scene);
    let id = rustix::process::Pid::from_child(&waiting);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let (code, text) = ended(waiting);
    assert_eq!(code, 1, "{text}");
    let (log, _) = scene.json(&["log", "--json"]);
    assert_eq!(log[0]["status"], "cancelled", "{log:#}");
}

#[test]
fn deadline_denies_pending_command() {
    let scene = scene();
    scene.configure(&format!("{RULES}\n[decide]\ndeadline = \"1 s\"\n"));
    let (code, text) = ended(start(&scene, &["exec", "echo two > a.txt"]));
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("nobody decided in time"), "{text}");
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn child_of_agent_cannot_approve() {
    let scene = scene();
    scene.write("change.json", br#"{"operation":"write","path":"mine.txt","content":"x\n"}"#);
    let program = env!("CARGO_BIN_EXE_sayso");
    for attempt in [
        "propose change.json --approve all",
        "review --approve all",
        "undo",
        "trust",
        "gc --older-than 0",
        "snapshot restore 1",
        "exec --approve 'touch mine.txt'",
    ] {
        // In a session of its own, as a process would escape.
        let script = format!("setsid -w {program} {attempt}");
        let run = scene.transcript(&["exec", "--approve", &script]);
        assert!(run.contains("an agent cannot decide about what it does"), "{attempt}:\n{run}");
    }
    assert!(!scene.path("mine.txt").exists());
}

#[test]
fn command_of_killed_exec_is_settled_later() {
    let scene = scene();
    let mut running = start(&scene, &["exec", "--approve", "echo two > a.txt; echo ready > ready.txt; sleep 654.321"]);
    until(|| scene.path("ready.txt").exists());
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(scene.transcript(&["review"]).contains("change 1 still runs"), "the command itself goes on");
    // The shell, which waits for the other, goes with it.
    let _ = Command::new("pkill").args(["-f", "sleep 654.321"]).status();
    until(|| !scene.transcript(&["review"]).contains("still runs"));
    let (log, _) = scene.json(&["log", "--json"]);
    assert_eq!(log[0]["status"], "applied", "{log:#}");
    assert!(scene.run(&["undo", "1"], b"").status.success());
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn session_rule_applies_and_is_explained() {
    let scene = scene();
    let waiting = start(&scene, &["exec", "--session", "s", "make check"]);
    until_something_waits(&scene);
    let said = scene.dialogue(&["review"], "s\n");
    assert!(said.contains("allowed for the rest of the session"), "{said}");
    ended(waiting);
    let explain = |session: &str| scene.transcript(&["policy", "explain", "run", "make check", "--session", session]);
    assert!(explain("s").contains("rule 1 of session s"), "{}", explain("s"));
    assert!(explain("other").contains("the default for `run`"), "{}", explain("other"));
    // The session rule applies without a question.
    let (_, text) = ended(start(&scene, &["exec", "--session", "s", "make check"]));
    assert!(!text.contains("waits for a decision"), "{text}");
}

#[test]
fn command_start_failure_is_recorded() {
    let scene = scene();
    let said = scene.transcript(&["exec", "--approve", "--directory", "nowhere", "ls"]);
    assert!(said.contains("cannot start the command") && said.ends_with("--- exit 70\n"), "{said}");
    let (log, _) = scene.json(&["log", "--json"]);
    assert_eq!(log[0]["status"], "failed", "{log:#}");
    let shown = scene.transcript(&["log"]);
    assert!(shown.contains("failed") && !shown.contains("ran"), "{shown}");
}

#[test]
fn unknown_key_prints_offered_keys() {
    let scene = scene();
    let change = serde_json::json!([{"operation": "delete", "path": "a.txt"}]);
    scene.write("change.json", change.to_string().as_bytes());
    let said = scene.dialogue(&["propose", "change.json"], "zz\nn\n\n");
    assert!(said.contains("`zz` is not a key here. These are:\ny  yes, take this\n"), "{said}");
    let change = serde_json::json!([{"operation": "rename", "path": "a.txt", "to": "c.txt"}]);
    scene.write("change.json", change.to_string().as_bytes());
    let said = scene.dialogue(&["propose", "change.json"], "?\nn\n\n");
    assert!(said.contains("[y,n,j,k,q,?]? ?\ny  yes, take this\nn  no, leave this out\nj  not now"), "{said}");
    assert!(!said.contains("not a key"), "{said}");
}
