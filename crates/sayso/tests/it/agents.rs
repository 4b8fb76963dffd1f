//! The real Claude Code and the real Codex under `sayso run`, headless, against a scripted model; a person decides elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sayso_api::client::{Client, Patience, Role, Shown, Socket, View, Watched};
use sayso_api::proto::oneof::event::Kind;
use sayso_review::{Answer, Decider, FileAnswer, HunkId, Ruling, Subject, Verdict};
use sayso_testkit::agents::{self, Home, Missing};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_testkit::programs::run_with;
use sayso_testkit::skip::skip;
use serde_json::json;

const REASON: &str = "put it into the settings instead, please";

/// Twenty lines, and the same with the second and the last but one changed: two hunks.
fn lines(change: &[usize]) -> String {
    (1..=20).map(|line| format!("line {line}{}\n", if change.contains(&line) { " changed" } else { "" })).collect()
}

/// The socket of the only engine that has its records in a home.
fn socket(home: &Path) -> Option<PathBuf> {
    let workspaces = home.join(".local/state/sayso/workspaces");
    let mut found = std::fs::read_dir(workspaces).ok()?;
    let socket = found.next()?.ok()?.path().join("engine/socket");
    socket.exists().then_some(socket)
}

/// A person at another terminal: what becomes of each change is decided by what it is about.
struct Person {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl Person {
    fn sits_down(home: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (home, gone) = (home.to_owned(), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let socket = loop {
                if let Some(socket) = socket(&home) {
                    break socket;
                }
                if gone.load(Ordering::Relaxed) {
                    return Vec::new();
                }
                std::thread::sleep(Duration::from_millis(5));
            };
            runtime.block_on(decide_all(&Client::new(Arc::new(Socket(socket)), None)))
        });
        Self { over, thread }
    }

    /// What was decided about, in order.
    fn goes(self) -> Vec<String> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

async fn decide_all(client: &Client) -> Vec<String> {
    let mut decided = Vec::new();
    let mut watch = client.watch(0, Role::Surface, Patience::For(Duration::ZERO));
    // Until the engine stops with the agent.
    while let Ok(watched) = watch.next().await {
        let Watched::Event(event) = watched else { continue };
        let Some(Kind::Proposed(proposed)) = event.kind else { continue };
        let progress = client.get_change(proposed.change, View::Content, Shown::Proposed).await.unwrap();
        // What policy answers by itself is nobody's to decide.
        if progress.record.ruled.as_ref().is_none_or(|ruled| ruled.ruling != Ruling::Ask) {
            continue;
        }
        let deny = || Answer::Deny { reason: Some(REASON.to_owned()) };
        let (what, answer) = match &progress.record.subject {
            Subject::Command { command, .. } => (command.clone(), deny()),
            Subject::Tool { name, .. } => (name.clone(), deny()),
            Subject::Files => {
                let path = progress.record.files[0].path.clone();
                let answer = match path.as_str() {
                    "hello.txt" => Answer::Approve,
                    "twenty.txt" => {
                        let hunks = FileAnswer::Hunks { hunks: [HunkId::whole(1)].into() };
                        Answer::Files { files: [(path.clone(), hunks)].into(), reason: None }
                    }
                    _ => deny(),
                };
                (path.to_string(), answer)
            }
        };
        let preview = progress.record.preview;
        let verdict = Verdict { preview, answer, comments: Vec::new(), by: Decider::Person };
        client.decide(proposed.change, verdict, None, View::Nothing).await.unwrap();
        decided.push(what);
    }
    decided
}

struct Ran {
    workspace: tempfile::TempDir,
    home: Home,
    model: ModelServer,
    decided: Vec<String>,
    told: String,
}

/// Runs an agent under the gate; nothing where there is none.
fn run(
    agent: Result<PathBuf, Missing>,
    home: impl FnOnce(&ModelServer, &Path) -> Home,
    script: impl FnOnce(&Path) -> Vec<Turn>,
    arguments: &[&str],
) -> Option<Ran> {
    let agent = match agent {
        Ok(agent) => agent,
        Err(missing) => {
            #[allow(clippy::print_stderr, reason = "whoever runs the tests is told what was not tried")]
            {
                skip(missing);
            }
            return None;
        }
    };
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("twenty.txt"), lines(&[])).unwrap();
    let model = ModelServer::start(script(workspace.path()));
    let home = home(&model, workspace.path());
    let person = Person::sits_down(home.path());
    let arguments = [&["run", "--", agent.to_str().unwrap()], arguments].concat();
    let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &home.environment(), b"");
    let decided = person.goes();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(model.turns_left(), 0, "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    Some(Ran { workspace, home, model, decided, told })
}

impl Ran {
    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace.path().join(path)).ok()
    }

    /// What was approved is there exactly, what was denied is not, and the model knows why.
    fn check(&self, decided: &[&str]) {
        assert_eq!(self.decided, decided, "{}", self.told);
        assert_eq!(self.read("hello.txt").as_deref(), Some("hello\n"));
        assert_eq!(self.read("twenty.txt"), Some(lines(&[2])), "one hunk of two");
        assert_eq!(self.read("denied.txt"), None);
        assert_eq!(self.read("danger.txt"), None);
        let requests = self.model.requests();
        let about = |text: &str| requests.iter().filter(|request| request.to_string().contains(text)).count();
        assert!(about(REASON) >= 2, "the reason reaches the model in its next request");
        // Nothing of it stays behind: no engine is left.
        assert_eq!(socket(self.home.path()), None);
        assert!(self.told.contains("runs under the gate"), "{}", self.told);
    }

    /// All that the agent did can be taken back.
    fn undo(&self) {
        let (root, environment) = (self.workspace.path(), self.home.environment());
        let log = run_with(root, env!("CARGO_BIN_EXE_sayso"), &["log", "--json"], &environment, b"");
        let log: serde_json::Value = serde_json::from_slice(&log.stdout).unwrap();
        let session = log[0]["origin"]["session"].as_str().unwrap();
        let undo = run_with(root, env!("CARGO_BIN_EXE_sayso"), &["undo", "--session", session], &environment, b"");
        assert!(undo.status.success(), "{undo:?}");
        assert_eq!(self.read("twenty.txt"), Some(lines(&[])));
        assert_eq!(self.read("hello.txt"), None);
    }
}

#[test]
fn claude_code_does_what_was_approved_and_hears_why_the_rest_was_not() {
    let script = |root: &Path| {
        let path = |name: &str| root.join(name);
        vec![
            Turn::calls("Write", json!({"file_path": path("hello.txt"), "content": "hello\n"})),
            Turn::calls("Read", json!({"file_path": path("twenty.txt")})),
            Turn::calls(
                "Edit",
                json!({"file_path": path("twenty.txt"), "old_string": lines(&[]), "new_string": lines(&[2, 19])}),
            ),
            Turn::calls("Write", json!({"file_path": path("denied.txt"), "content": "no\n"})),
            Turn::calls("Bash", json!({"command": "touch danger.txt", "description": "makes a file"})),
            Turn::says("done"),
        ]
    };
    let arguments = ["-p", "do it", "--output-format", "json", "--permission-mode", "acceptEdits"];
    let home = |model: &ModelServer, _: &Path| Home::for_claude(model);
    let Some(ran) = run(agents::claude(), home, script, &arguments) else { return };
    ran.check(&["hello.txt", "twenty.txt", "denied.txt", "touch danger.txt"]);
    ran.undo();
}

#[test]
fn codex_does_what_was_approved_and_hears_why_the_rest_was_not() {
    let script = |_: &Path| {
        let add = |name: &str, line: &str| {
            let patch = format!("*** Begin Patch\n*** Add File: {name}\n+{line}\n*** End Patch\n");
            Turn::calls("apply_patch", patch)
        };
        let update = "*** Begin Patch\n*** Update File: twenty.txt\n@@\n line 1\n-line 2\n+line 2 changed\n line 3\n@@\n \
                      line 18\n-line 19\n+line 19 changed\n line 20\n*** End Patch\n";
        vec![
            add("hello.txt", "hello"),
            Turn::calls("apply_patch", update),
            add("denied.txt", "no"),
            Turn::calls("exec_command", json!({"cmd": "touch danger.txt"})),
            Turn::says("done"),
        ]
    };
    let arguments = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "do it"];
    let Some(ran) = run(agents::codex(), Home::for_codex, script, &arguments) else { return };
    ran.check(&["hello.txt", "twenty.txt", "denied.txt", "touch danger.txt"]);
    ran.undo();
}

#[test]
fn codex_is_not_run_where_it_would_leave_the_hooks_out() {
    let workspace = tempfile::tempdir().unwrap();
    let program = workspace.path().join("codex");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let arguments = ["run", "--", program.to_str().unwrap(), "exec", "do it"];
    let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &[], b"");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("has not been told to trust") && told.contains("Hint:"), "{told}");
    // What only looks like it is no trust: each of our hooks has to be among those that Codex was told to trust.
    let home = tempfile::tempdir().unwrap();
    let trusting = |events: &[&str], more: &str| {
        let state = |event: &&str| {
            format!("[hooks.state.\"/<session-flags>/config.toml:{event}:0:0\"]\ntrusted_hash = \"sha256:0\"\n{more}\n")
        };
        std::fs::write(home.path().join("config.toml"), events.iter().map(state).collect::<String>()).unwrap();
        let environment =
            [("CODEX_HOME", home.path().to_str().unwrap()), ("HOME", home.path().to_str().unwrap()), ("PATH", "/bin")];
        let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &environment, b"");
        assert_eq!(output.status.code(), Some(3), "it calls no hook: {output:?}");
        !String::from_utf8_lossy(&output.stderr).contains("has not been told to trust")
    };
    let all = [
        "session_start",
        "user_prompt_submit",
        "pre_tool_use",
        "post_tool_use",
        "stop",
        "subagent_stop",
        "session_end",
    ];
    assert!(trusting(&all, ""));
    assert!(!trusting(&all, "enabled = false"));
    assert!(!trusting(&["pre_tool_use"], ""));
    assert!(!trusting(&["permission_request"], "# pre_tool_use"));
}

#[test]
fn a_hook_without_an_engine_or_with_broken_input_denies() {
    let workspace = tempfile::tempdir().unwrap();
    let hook = |agent: &str, input: &[u8]| {
        run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &["hook", agent], &[], input)
    };
    let call = json!({
        "session_id": "s", "cwd": workspace.path(), "hook_event_name": "PreToolUse", "tool_name": "Write",
        "tool_input": {"file_path": workspace.path().join("a"), "content": "x"}, "tool_use_id": "t",
    });
    for agent in ["claude", "codex"] {
        let output = hook(agent, call.to_string().as_bytes());
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{output:?}");
        let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
        assert!(reason.contains("no engine runs") && reason.contains("sayso run"), "{reason}");
        let output = hook(agent, b"{ not JSON");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("denied"), "{output:?}");
    }
    assert_eq!(hook("cursor", b"{}").status.code(), Some(2));
}

#[test]
fn an_agent_that_is_not_there_is_not_said_to_run() {
    let workspace = tempfile::tempdir().unwrap();
    let environment = [("PATH", "/nowhere"), ("HOME", workspace.path().to_str().unwrap())];
    for program in ["claude", "./claude"] {
        let arguments = ["run", "--", program, "-p", "do it"];
        let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &environment, b"");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(&format!("there is no program `{program}`")) && told.contains("Hint:"), "{told}");
        assert!(!told.contains("runs under the gate"), "{told}");
    }
}

#[test]
fn an_agent_that_is_asked_what_it_is_answers_without_a_warning() {
    let workspace = tempfile::tempdir().unwrap();
    let program = workspace.path().join("claude");
    std::fs::write(&program, "#!/bin/sh\necho claude \"$@\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for word in ["--version", "-v", "--help", "-h"] {
        let arguments = ["run", "--", program.to_str().unwrap(), word];
        let output = run_with(workspace.path(), env!("CARGO_BIN_EXE_sayso"), &arguments, &[], b"");
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!((output.stdout, output.stderr), (format!("claude {word}\n").into_bytes(), Vec::new()));
    }
}
