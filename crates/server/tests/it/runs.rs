//! An agent speaks for itself only: under its own name, and in sessions that no other run has.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use sayso_gate::Process;
use sayso_server::agents::MARK;
use serde_json::{Value, json};

use crate::scene::{Running, Scene, TOKEN, ask, write};

/// A run of an agent: a shell with a note of its own, in which programs call the engine.
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
        let process = Process::find(shell.id()).unwrap();
        let folder = scene.home().join("agents");
        std::fs::create_dir_all(&folder).unwrap();
        let note = folder.join(format!("{}-{}-0-{agent}", process.id, process.started));
        std::fs::write(note, format!("0\n{}", scene.journal().display())).unwrap();
        Self { shell }
    }

    /// What `sayso exec` runs: it speaks for an agent, and is no run of one.
    fn exec(scene: &Scene) -> Self {
        let run = Self::new(scene, "claude");
        let process = Process::find(run.shell.id()).unwrap();
        let note = |suffix: &str| scene.home().join(format!("agents/{}-{}-{suffix}", process.id, process.started));
        std::fs::rename(note("0-claude"), note("0")).unwrap();
        run
    }

    /// What the engine answers to a call of a program that the agent started.
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
        "ask": true,
    })
}

#[test]
fn an_agent_speaks_under_its_own_name() {
    let scene = Scene::new();
    let server = scene.serve();
    let mut claude = Run::new(&scene, "claude");
    for address in ["SOCKET".to_owned(), format!("http://{}", server.address)] {
        let answer = claude.call(&server, "IntentService/Submit", &submission("s", "codex"), &address);
        assert_eq!(answer["progress"]["change"]["origin"]["agent"], "claude", "{answer}");
    }
}

#[test]
fn an_agent_does_not_speak_in_the_session_of_another_run() {
    let scene = Scene::new();
    let server = scene.serve();
    let (mut first, mut second) = (Run::new(&scene, "claude"), Run::new(&scene, "claude"));
    let started = first.call(&server, "IntentService/StartSession", &json!({ "session": "first" }), "SOCKET");
    assert_eq!(started, json!({}));
    let waits = first.call(&server, "IntentService/Submit", &submission("first", "claude"), "SOCKET");
    let change = waits["progress"]["change"]["change"].clone();
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
    assert!(withdrawn["progress"].is_object(), "{withdrawn}");
    // Once the first is over, its conversation can be taken up again.
    drop(first);
    let resumed = second.call(&server, "IntentService/StartSession", &json!({ "session": "first" }), "SOCKET");
    assert_eq!(resumed, json!({}));
}

/// The note of a run has its sessions, so that another engine knows them, too.
#[test]
fn whose_a_session_is_outlives_the_engine() {
    let scene = Scene::new();
    let server = scene.serve();
    let (mut first, mut second) = (Run::new(&scene, "claude"), Run::new(&scene, "claude"));
    // A name that could pass for something else in a note.
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
fn an_agent_ends_nothing_that_a_person_asked_for() {
    let scene = Scene::new();
    let server = scene.serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = server.near();
    let change = runtime.block_on(ask(&client, write("theirs", "x\n"))).record.change;
    let mut others = Run::new(&scene, "codex");
    assert_eq!(others.call(&server, "IntentService/StartSession", &json!({ "session": "s" }), "SOCKET"), json!({}));
    for (mut agent, who) in [(Run::new(&scene, "claude"), "run"), (Run::exec(&scene), "exec")] {
        for address in ["SOCKET".to_owned(), format!("http://{}", server.address)] {
            for call in ["IntentService/Withdraw", "IntentService/Finish"] {
                let answer = agent.call(&server, call, &json!({ "change": change.to_string() }), &address);
                assert_eq!(answer["code"], "permission_denied", "{who} {call}: {answer}");
                assert!(answer["message"].as_str().unwrap().contains("is no agent's"), "{who} {call}: {answer}");
            }
            let answer = agent.call(&server, "IntentService/EndSession", &json!({ "session": "s" }), &address);
            assert_eq!(answer["code"], "permission_denied", "{who}: {answer}");
        }
    }
    // The person does.
    runtime.block_on(client.withdraw(change)).unwrap();
}
