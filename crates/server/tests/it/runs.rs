//! Agents act under their own name, and only in sessions of their own run.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use sayso_gate::Process;
use sayso_server::agent_registry::MARK;
use serde_json::{Value, json};

use crate::scene::{Running, Scene, TOKEN, ask, write};

/// A run of an agent: a registered shell that calls the engine.
struct Run {
    shell: Child,
}

impl Run {
    fn new(scene: &Scene, agent: &str) -> Self {
        let shell = Command::new("sh")
            .arg("-s")
            .env(MARK, "run")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let process = Process::find_running(shell.id()).unwrap();
        let folder = scene.home().join("agents");
        std::fs::create_dir_all(&folder).unwrap();
        let note = folder.join(format!("{}-{}-0-{agent}", process.id, process.started));
        std::fs::write(note, format!("0\n{}", scene.journal().display())).unwrap();
        Self { shell }
    }

    /// A command of `sayso exec`: it acts for an agent and belongs to no run.
    fn exec(scene: &Scene) -> Self {
        let run = Self::new(scene, "claude");
        let process = Process::find_running(run.shell.id()).unwrap();
        let note = |suffix: &str| scene.home().join(format!("agents/{}-{}-{suffix}", process.id, process.started));
        std::fs::rename(note("0-claude"), note("0")).unwrap();
        run
    }

    /// Makes a call in a child process of the agent and returns the response.
    fn call(&mut self, server: &Running, call: &str, body: &Value, address: &str) -> Value {
        let script = format!(
            "curl -sS -m 60 -H 'content-type: application/json' -H 'authorization: Bearer {TOKEN}' -d '{body}' \
             {address}/sayso.v1.{call}; echo\n"
        );
        let script = script.replace("SOCKET", &format!("--unix-socket {} http://localhost", server.socket.display()));
        self.shell.stdin.as_mut().unwrap().write_all(script.as_bytes()).unwrap();
        let mut line = String::new();
        let mut byte = [0];
        while byte != *b"\n" {
            std::io::Read::read_exact(self.shell.stdout.as_mut().unwrap(), &mut byte).unwrap();
            line.push(char::from(byte[0]));
        }
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.shell.kill().unwrap();
        self.shell.wait().unwrap();
    }
}

fn submission(session: &str, agent: &str) -> Value {
    json!({
        "intent": { "callTool": { "name": "Read", "argumentsJson": "{}" } },
        "origin": { "session": session, "agent": agent },
        "askMode": "ASK_MODE_ALWAYS",
    })
}

#[test]
fn agent_acts_under_its_own_name() {
    let scene = Scene::new();
    let server = scene.serve();
    let mut claude = Run::new(&scene, "claude");
    for address in ["SOCKET".to_owned(), format!("http://{}", server.address)] {
        let answer = claude.call(&server, "IntentService/Submit", &submission("s", "codex"), &address);
        assert_eq!(answer["details"]["change"]["origin"]["agent"], "claude", "{answer}");
    }
}

#[test]
fn agent_cannot_use_session_of_another_run() {
    let scene = Scene::new();
    let server = scene.serve();
    let (mut first, mut second) = (Run::new(&scene, "claude"), Run::new(&scene, "claude"));
    let started = first.call(&server, "IntentService/StartSession", &json!({ "session": "first" }), "SOCKET");
    assert_eq!(started, json!({}));
    let waits = first.call(&server, "IntentService/Submit", &submission("first", "claude"), "SOCKET");
    let change = waits["details"]["change"]["change"].clone();
    assert!(change.is_string(), "{waits}");
    let calls = [
        ("IntentService/Submit", submission("first", "claude")),
        ("IntentService/StartSession", json!({ "session": "first" })),
        ("IntentService/StartTurn", json!({ "session": "first", "turn": "t" })),
        ("IntentService/EndTurn", json!({ "session": "first" })),
        ("IntentService/TakeMessages", json!({ "session": "first" })),
        ("IntentService/ListMessages", json!({ "session": "first" })),
        ("IntentService/AcknowledgeMessages", json!({ "session": "first", "numbers": ["1"] })),
        ("IntentService/EndSession", json!({ "session": "first" })),
        ("IntentService/Withdraw", json!({ "change": change })),
        ("IntentService/Finish", json!({ "change": change })),
        ("IntentService/Finish", json!({ "session": "first", "call": "c" })),
    ];
    for (call, body) in &calls {
        let answer = second.call(&server, call, body, "SOCKET");
        assert_eq!(answer["code"], "permission_denied", "{call}: {answer}");
        assert!(answer["message"].as_str().unwrap().contains("another run"), "{call}: {answer}");
    }
    let withdrawn = first.call(&server, "IntentService/Withdraw", &json!({ "change": change }), "SOCKET");
    assert!(withdrawn["details"].is_object(), "{withdrawn}");
    // After the end of the first run, another run can resume its session.
    drop(first);
    let resumed = second.call(&server, "IntentService/StartSession", &json!({ "session": "first" }), "SOCKET");
    assert_eq!(resumed, json!({}));
}

/// The entry of a run stores its sessions, so that another engine knows them, too.
#[test]
fn session_owner_survives_engine_restart() {
    let scene = Scene::new();
    let server = scene.serve();
    let (mut first, mut second) = (Run::new(&scene, "claude"), Run::new(&scene, "claude"));
    // A session id that looks like another kind of line in an entry.
    let session = json!({ "session": "1-2 \"3\"" });
    let start = "IntentService/StartSession";
    assert_eq!(first.call(&server, start, &session, "SOCKET"), json!({}));
    server.end();
    let server = scene.serve();
    for call in [start, "IntentService/EndSession"] {
        let answer = second.call(&server, call, &session, "SOCKET");
        assert!(answer["message"].as_str().is_some_and(|text| text.contains("another run")), "{call}: {answer}");
    }
    assert_eq!(first.call(&server, "IntentService/EndSession", &session, "SOCKET"), json!({}));
}

#[test]
fn agent_cannot_end_change_of_person() {
    let scene = Scene::new();
    let server = scene.serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = server.verdict_client();
    let change = runtime.block_on(ask(&client, write("theirs", "x\n"))).record.change;
    let mut others = Run::new(&scene, "codex");
    assert_eq!(others.call(&server, "IntentService/StartSession", &json!({ "session": "s" }), "SOCKET"), json!({}));
    for (mut agent, who) in [(Run::new(&scene, "claude"), "run"), (Run::exec(&scene), "exec")] {
        for address in ["SOCKET".to_owned(), format!("http://{}", server.address)] {
            for call in ["IntentService/Withdraw", "IntentService/Finish"] {
                let answer = agent.call(&server, call, &json!({ "change": change.to_string() }), &address);
                assert_eq!(answer["code"], "permission_denied", "{who} {call}: {answer}");
                assert!(answer["message"].as_str().unwrap().contains("belongs to a person"), "{who} {call}: {answer}");
            }
            let answer = agent.call(&server, "IntentService/EndSession", &json!({ "session": "s" }), &address);
            assert_eq!(answer["code"], "permission_denied", "{who}: {answer}");
        }
    }
    // The person may.
    runtime.block_on(client.withdraw(change)).unwrap();
}
