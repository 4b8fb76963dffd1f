//! `sayso hook` with slow, refusing and lost engines, and with late verdicts.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sayso_api::client::{CallOver, PreviewDetail, RetryBudget};
use sayso_review::{Answer, ChangeStatus, Decider, FileAnswer, HunkId, Verdict};
use serde_json::{Value, json};

use crate::Scene;
use crate::served::{LONG, Served};

/// A call of a tool in a directory.
pub(crate) fn call(directory: &Path, tool: &str, input: &Value) -> Value {
    json!({
        "session_id": "s", "cwd": directory, "hook_event_name": "PreToolUse", "tool_name": tool,
        "tool_input": input, "tool_use_id": "t",
    })
}

/// A hook that runs, at the engine with a journal.
pub(crate) fn begin(scene: &Scene, journal: &Path, arguments: &[&str], call: &Value) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["hook", "claude"])
        .args(arguments)
        .current_dir(scene.directory.path())
        .env_clear()
        .envs(scene.environment())
        .env("SAYSO_WORKSPACE", scene.directory.path().canonicalize().unwrap())
        .env("SAYSO_JOURNAL", journal)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
    child
}

/// Returns the output of a hook, within the time limit of a busy machine.
pub(crate) fn answer(child: Child) -> Value {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let output: Output =
        told.recv_timeout(LONG).unwrap_or_else(|error| panic!("the hook does not end: {error}")).unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

pub(crate) fn decision(answer: &Value) -> (&str, &str) {
    let text = |name: &str| answer["hookSpecificOutput"][name].as_str().unwrap_or_default();
    (text("permissionDecision"), text("permissionDecisionReason"))
}

/// The folder of a served engine's journal.
pub(crate) fn journal(served: &Served) -> PathBuf {
    Path::new(served.text("socket")).ancestors().nth(2).unwrap().to_owned()
}

/// A proxy that delays every response of a real engine.
fn slow(engine: PathBuf, pause: Duration) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("engine")).unwrap();
    let listener = UnixListener::bind(folder.path().join("engine/socket")).unwrap();
    std::thread::spawn(move || {
        for theirs in listener.incoming().map_while(Result::ok) {
            let Ok(ours) = UnixStream::connect(&engine) else { break };
            let (mut theirs_in, mut ours_out) = (theirs.try_clone().unwrap(), ours.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut theirs_in, &mut ours_out));
            std::thread::spawn(move || forward_slowly(ours, theirs, pause));
        }
    });
    folder
}

/// Forwards all that is there by the end of each pause.
fn forward_slowly(mut from: UnixStream, mut to: UnixStream, pause: Duration) {
    let mut part = vec![0; 65536];
    while let Ok(count @ 1..) = from.read(&mut part) {
        let mut ready = part[..count].to_vec();
        std::thread::sleep(pause);
        from.set_nonblocking(true).unwrap();
        while let Ok(count @ 1..) = from.read(&mut part) {
            ready.extend_from_slice(&part[..count]);
        }
        from.set_nonblocking(false).unwrap();
        if to.write_all(&ready).is_err() {
            break;
        }
    }
}

#[test]
fn hook_with_slow_engine_denies_in_time() {
    let scene = Scene::new(&[]);
    scene.configure("[[rule]]\nwrite = '**'\nthen = 'allow'\n");
    let served = Served::start(&scene, &[]);
    let write =
        |name: &str| call(scene.directory.path(), "Write", &json!({"file_path": scene.path(name), "content": "x\n"}));
    let quick = answer(begin(&scene, &journal(&served), &["--timeout", "1"], &write("quick")));
    assert_eq!(decision(&quick).0, "allow", "{quick}");
    // Each answer comes sooner than the hook gives up, and all of them together do not.
    let folder = slow(PathBuf::from(served.text("socket")), Duration::from_secs(3));
    let slow = answer(begin(&scene, folder.path(), &["--timeout", "1"], &write("slow")));
    assert_eq!(decision(&slow).0, "deny", "{slow}");
    assert!(decision(&slow).1.contains("the engine does not answer"), "{slow}");
    // An engine that accepts the call and never answers.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("engine")).unwrap();
    let _listener = UnixListener::bind(folder.path().join("engine/socket")).unwrap();
    let silent = answer(begin(&scene, folder.path(), &["--timeout", "1"], &write("silent")));
    assert_eq!(decision(&silent).0, "deny", "{silent}");
}

#[test]
fn on_failure_does_not_apply_to_refusal() {
    let scene = Scene::new(&[]);
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), scene.path("out")).unwrap();
    // The engine refuses to have a command start where a link leads out.
    let command = call(&scene.path("out"), "Bash", &json!({"command": "ls"}));
    let none = tempfile::tempdir().unwrap();
    for (wanted, said) in [("allow", ""), ("ask", "ask"), ("deny", "deny")] {
        scene.configure(&format!("[hook]\non_failure = '{wanted}'\n"));
        let unreachable = answer(begin(&scene, none.path(), &[], &command));
        assert_eq!(decision(&unreachable).0, said, "{unreachable}");
        let served = Served::start(&scene, &[]);
        let refused = answer(begin(&scene, &journal(&served), &[], &command));
        assert_eq!(decision(&refused).0, "deny", "{wanted}: {refused}");
        assert!(!decision(&refused).1.contains("no engine runs"), "{refused}");
        served.ask_to_end();
        served.ended();
    }
}

/// The workspace's setting counts in every subdirectory.
#[test]
fn on_failure_of_workspace_file_applies() {
    let scene = Scene::new(&[("sayso.toml", b"[hook]\non_failure = 'deny'\n"), ("sub/a.txt", b"x\n")]);
    scene.configure("[hook]\non_failure = 'allow'\n");
    let none = tempfile::tempdir().unwrap();
    for directory in [scene.directory.path().to_owned(), scene.path("sub")] {
        let command = call(&directory, "Bash", &json!({"command": "ls"}));
        let said = answer(begin(&scene, none.path(), &[], &command));
        assert_eq!(decision(&said).0, "deny", "{}: {said}", directory.display());
    }
}

#[test]
fn hook_with_endless_input_denies_in_time() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["hook", "claude", "--timeout", "1"])
        .env_clear()
        .envs(Scene::new(&[]).environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Held open until it is over.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{").unwrap();
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let output = told.recv_timeout(LONG).unwrap_or_else(|error| panic!("the hook does not end: {error}")).unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("in time"), "{output:?}");
    drop(stdin);
}

fn lines(changed: &[usize]) -> String {
    (1..=20).map(|line| format!("line {line}{}\n", if changed.contains(&line) { " changed" } else { "" })).collect()
}

/// A call reported as over before the hook has its verdict gets the approved part only.
#[test]
fn hook_with_late_verdict_allows_approved_part_only() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scene = Scene::new(&[("a.txt", lines(&[]).as_bytes())]);
    let served = Served::start(&scene, &[]);
    let input = json!({"file_path": scene.path("a.txt"), "content": lines(&[2, 19])});
    let hook = begin(&scene, &journal(&served), &[], &call(scene.directory.path(), "Write", &input));
    let note = format!("{}-", hook.id());
    let notes = scene.state_path().join("sayso/agents");
    let start = Instant::now();
    let noted = || -> bool {
        let mut files = std::fs::read_dir(&notes).into_iter().flatten().flatten();
        files.any(|file| file.file_name().to_string_lossy().starts_with(&note))
    };
    while !noted() {
        assert!(start.elapsed() < LONG, "the hook does not wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Held still, and with an engine that is another one, so that it looks again only when all is over.
    let process = Pid::from_child(&hook);
    kill_process(process, Signal::STOP).unwrap();
    served.kill();
    let served = Served::start(&scene, &[]);
    let client = served.client(RetryBudget::Limited(LONG));
    runtime.block_on(async {
        let pending = client.list_pending(None, PreviewDetail::Omitted).await.unwrap();
        let record = &pending[0].record;
        let hunks = FileAnswer::Hunks { hunks: [HunkId::whole(1)].into() };
        let answer = Answer::Files { files: [(record.files[0].path.clone(), hunks)].into(), reason: None };
        let verdict =
            Verdict { preview: record.preview, answer, comments: Vec::new(), message: None, by: Decider::PERSON };
        let decided = client.decide(record.change, verdict, None, PreviewDetail::Omitted).await.unwrap();
        assert_eq!(decided.record.status, ChangeStatus::Permitted);
        client.finish_call(CallOver::new("s", "t")).await.unwrap();
    });
    kill_process(process, Signal::CONT).unwrap();
    let said = answer(hook);
    // The change is over, and was not made.
    assert_eq!(decision(&said).0, "deny", "{said}");
}
