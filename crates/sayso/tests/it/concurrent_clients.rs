//! Several terminals share one engine, in whichever process it runs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Scene;
use crate::served::Served;

/// Time limit for an expected event.
const LONG: Duration = Duration::from_mins(1);

/// A `sayso` that runs on, with what it says.
pub(crate) struct Terminal {
    child: Child,
    said: Receiver<String>,
    so_far: String,
}

impl Terminal {
    pub(crate) fn start(scene: &Scene, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(arguments)
            .current_dir(scene.path("."))
            .env_clear()
            .envs(scene.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, said) = channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for mut stream in streams {
            let tell = tell.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    let _ = tell.send(String::from_utf8_lossy(&buffer[..count]).into_owned());
                }
            });
        }
        Self { child, said, so_far: String::new() }
    }

    /// Waits for a text, and returns the output since the last call.
    pub(crate) fn until(&mut self, text: &str) -> String {
        while !self.so_far.contains(text) {
            match self.said.recv_timeout(LONG) {
                Ok(more) => self.so_far.push_str(&more),
                Err(error) => panic!("`{text}` was never said ({error}):\n{}", self.so_far),
            }
        }
        std::mem::take(&mut self.so_far)
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn ended(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }
}

fn scene() -> Scene {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"one\n")]);
    for file in ["a", "b"] {
        let change = json!([{"operation": "update", "path": format!("{file}.txt"), "new_content": "two\n"}]);
        scene.write(&format!("{file}.json"), change.to_string().as_bytes());
    }
    scene
}

#[test]
fn question_blocks_no_other_client() {
    let scene = scene();
    let mut asks = Terminal::start(&scene, &["propose", "a.json"]);
    asks.until("hunk 1");
    assert_eq!(scene.json(&["status", "--json"]).0["pending"], 1);
    let (applied, code) = scene.json(&["propose", "b.json", "--approve", "all", "--json"]);
    assert_eq!((code, &applied["change"]), (0, &json!(2)));
    assert_eq!((scene.read("a.txt").as_str(), scene.read("b.txt").as_str()), ("one\n", "two\n"));
    asks.types("y\n");
    asks.until("Applied as change 1");
    assert_eq!(asks.ended(), Some(0));
    assert_eq!(scene.read("a.txt"), "two\n");
}

#[test]
fn question_reports_decision_of_another_client() {
    let scene = scene();
    let mut asks = Terminal::start(&scene, &["propose", "a.json"]);
    asks.until("hunk 1");
    let reviewed = scene.transcript(&["review", "--deny", "not today"]);
    assert!(reviewed.contains("Denied"), "{reviewed}");
    asks.types("y\n");
    asks.until("Somebody else decided first.");
    assert_eq!(asks.ended(), Some(1));
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn signal_withdraws_the_asked_change() {
    let scene = scene();
    let mut asks = Terminal::start(&scene, &["propose", "a.json"]);
    asks.until("hunk 1");
    asks.signal(rustix::process::Signal::INT);
    assert_eq!(asks.ended(), None, "it ends by the signal");
    assert_eq!(scene.json(&["log", "--json"]).0[0]["status"], "cancelled");
}

#[test]
fn killed_asker_withdraws_its_change() {
    let scene = scene();
    let mut asks = Terminal::start(&scene, &["propose", "a.json"]);
    asks.until("hunk 1");
    asks.signal(rustix::process::Signal::KILL);
    assert_eq!(asks.ended(), None);
    let log = scene.json(&["log", "--json"]).0;
    assert_eq!(log[0]["status"], "cancelled", "{log:#}");
}

#[test]
fn waiting_client_survives_end_of_engine() {
    let scene = scene();
    // The first has the engine; the second waits with it.
    let mut first = Terminal::start(&scene, &["propose", "a.json"]);
    first.until("hunk 1");
    let mut waits = Terminal::start(&scene, &["exec", "echo three > b.txt"]);
    waits.until("waits for a decision");
    first.types("y\n");
    first.until("Applied as change 1");
    assert_eq!(first.ended(), Some(0));
    let reviewed = scene.transcript(&["review", "--approve", "all"]);
    assert!(reviewed.contains("Change 2 may go ahead"), "{reviewed}");
    waits.until("Changed while it ran");
    assert_eq!(waits.ended(), Some(0));
    assert_eq!(scene.read("b.txt"), "three\n");
}

#[test]
fn follow_shows_new_changes_and_other_decisions() {
    let scene = scene();
    let mut follows = Terminal::start(&scene, &["review", "--follow"]);
    follows.until("Ctrl-C ends it");
    let mut first = Terminal::start(&scene, &["exec", "echo three > a.txt"]);
    follows.until("Run it");
    follows.types("y\n");
    follows.until("Change 1 may go ahead.");
    first.until("Changed while it ran");
    assert_eq!(first.ended(), Some(0));
    let mut second = Terminal::start(&scene, &["exec", "echo four > b.txt"]);
    follows.until("Run it");
    scene.run(&["review", "2", "--deny", "no"], b"");
    follows.until("Somebody else decided first.");
    second.until("denied this tool call: no");
    assert_eq!(second.ended(), Some(1));
    follows.signal(rustix::process::Signal::INT);
    assert_eq!(follows.ended(), Some(0));
    assert_eq!((scene.read("a.txt").as_str(), scene.read("b.txt").as_str()), ("three\n", "one\n"));
}

#[test]
fn killed_hook_withdraws_its_change() {
    let scene = scene();
    let mut follows = Terminal::start(&scene, &["review", "--follow"]);
    follows.until("Ctrl-C ends it");
    for (tool, input) in
        [("Bash", json!({"command": "rm a.txt"})), ("Write", json!({"file_path": "a.txt", "content": "two\n"}))]
    {
        let mut hook = Terminal::start(&scene, &["hook", "claude"]);
        let call = json!({
            "session_id": "s", "cwd": scene.path("."), "hook_event_name": "PreToolUse", "tool_name": tool,
            "tool_input": input, "tool_use_id": "t",
        });
        hook.types(&call.to_string());
        drop(hook.child.stdin.take());
        follows.until("]? ");
        // It says whose the change is as soon as it knows its number.
        let (folder, own) = (scene.state_path().join("sayso/agents"), format!("{}-", hook.child.id()));
        let is_said = |note: std::fs::DirEntry| {
            // Neither the note of the previous server, nor a partial one.
            note.file_name().to_string_lossy().starts_with(&own)
                && std::fs::read_to_string(note.path()).is_ok_and(|said| said.contains('\n'))
        };
        while !std::fs::read_dir(&folder).is_ok_and(|notes| notes.flatten().any(is_said)) {
            std::thread::yield_now();
        }
        // Not reaped, so that the process id stays in use.
        hook.signal(rustix::process::Signal::KILL);
        follows.until("It was withdrawn; nobody waits for it any more.");
        assert_eq!(scene.json(&["log", "--json"]).0[0]["status"], "cancelled");
        hook.ended();
    }
    follows.signal(rustix::process::Signal::INT);
    assert_eq!(follows.ended(), Some(0));
    assert_eq!(scene.read("a.txt"), "one\n");
}

#[test]
fn second_reviewer_gets_final_status() {
    let scene = scene();
    let mut follows = Terminal::start(&scene, &["review", "--follow"]);
    follows.until("Ctrl-C ends it");
    // Many files, so that it takes a while.
    let files: Vec<Value> = (0..60)
        .map(|number| json!({"operation": "write", "path": format!("new/{number}"), "content": "x\n"}))
        .collect();
    scene.write("many.json", json!(files).to_string().as_bytes());
    let mut asks = Terminal::start(&scene, &["propose", "many.json"]);
    follows.until("]? ");
    asks.until("]? ");
    scene.run(&["review", "1", "--approve", "all"], b"");
    let said = follows.until("The agent is told");
    // What is said and what was asked go to different streams, between which an empty line may come.
    assert!(said.contains("Somebody else decided first.") && said.contains("Change 1 is applied."), "{said}");
    assert!(!said.contains("interrupted"), "{said}");
    asks.types("y\n");
    asks.until("]? ");
    drop(asks.child.stdin.take());
    asks.until("Nothing was decided");
    asks.ended();
}

#[test]
fn server_takes_engine_over_from_command() {
    let scene = scene();
    // The first of them has the engine.
    let mut follows = Terminal::start(&scene, &["review", "--follow"]);
    follows.until("Ctrl-C ends it");
    let mut waits = Terminal::start(&scene, &["exec", "echo three > b.txt"]);
    follows.until("Run it");
    waits.until("waits for a decision");
    let served = Served::start(&scene, &[]);
    assert!(served.said["already"].is_null(), "{}", served.said);
    assert_eq!(served.said["process"], served.id());
    // What waited waits still, and what comes by the server is shown.
    follows.types("y\n");
    waits.until("Changed while it ran");
    assert_eq!(waits.ended(), Some(0));
    let body = json!({
        "intent": { "runCommand": { "command": "touch c.txt" } }, "origin": {}, "performer": "PERFORMER_AGENT", "ask": true,
    });
    let output = Command::new("curl")
        .args(["-sS", "-m", "60", "-H", "content-type: application/json", "-d", &body.to_string()])
        .args(["-H", &format!("authorization: Bearer {}", served.text("token"))])
        .arg(format!("{}/sayso.v1.IntentService/Submit", served.text("url")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = follows.until("Run it");
    assert!(shown.contains("touch c.txt"), "{shown}: {output:?}");
    follows.types("n\n\n");
    follows.until("Denied");
    follows.signal(rustix::process::Signal::INT);
    assert_eq!(follows.ended(), Some(0));
    served.ask_to_end();
    served.ended();
}

#[test]
fn watch_starts_after_any_event() {
    let scene = scene();
    assert!(scene.run(&["propose", "a.json", "--approve", "all", "--agent", "claude"], b"").status.success());
    let mut watches = Terminal::start(&scene, &["watch", "--after", "0"]);
    let said = watches.until("applied");
    assert!(said.contains("   1  proposed by claude: a.txt (+1 -1)"), "{said}");
    // It goes on while others come and go.
    assert!(scene.run(&["propose", "b.json", "--deny", "no"], b"").status.success() || scene.read("b.txt") == "one\n");
    let said = watches.until("denied");
    assert!(said.contains("   2  proposed: b.txt (+1 -1)"), "{said}");
    watches.signal(rustix::process::Signal::INT);
    assert_eq!(watches.ended(), Some(0));
}

#[test]
fn watch_json_has_every_event_once() {
    let scene = scene();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["watch", "--json", "--after", "0"])
        .current_dir(scene.path("."))
        .env_clear()
        .envs(scene.environment())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = 1;
    for name in ["a.json", "b.json"] {
        scene.run(&["propose", name, "--approve", "all"], b"");
        loop {
            let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            assert_eq!(event["number"], next.to_string(), "{event:#}");
            next += 1;
            if event["ended"]["outcome"]["kind"] == "KIND_APPLIED" {
                break;
            }
        }
    }
    drop(lines);
    scene.run(&["undo"], b"");
    assert!(child.wait().unwrap().success(), "whoever stops reading ends it");
}

#[test]
fn read_only_command_leaves_no_journal() {
    let scene = scene();
    for arguments in [
        &["log"][..],
        &["status"],
        &["status", "--short"],
        &["show", "1"],
        &["undo"],
        &["review"],
        &["snapshot"],
        &["branch"],
        &["policy", "explain", "write", "a.txt"],
        &["propose", "a.json", "--json"],
    ] {
        scene.run(arguments, b"");
        assert!(!scene.state_path().join("sayso/workspaces").exists(), "{arguments:?}");
    }
}
