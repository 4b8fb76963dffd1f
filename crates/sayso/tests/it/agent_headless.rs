//! The built-in agent without a terminal: `sayso -p` against a scripted model, in all four model APIs, with a person who decides elsewhere.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use sayso_testkit::model::{Answer, ModelServer, Turn};
use serde_json::{Value, json};

use crate::Scene;
use crate::served::Served;

const NOTES: &[u8] = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n";

/// Dialects with the upstream whose variable points at the model.
const DIALECTS: [(&str, &str, &str); 4] = [
    ("anthropic-messages", "anthropic", "SAYSO_ANTHROPIC_UPSTREAM"),
    ("openai-chat", "openai", "SAYSO_OPENAI_UPSTREAM"),
    ("openai-responses", "openai", "SAYSO_OPENAI_UPSTREAM"),
    ("gemini", "gemini", "SAYSO_GEMINI_UPSTREAM"),
];

/// A running `sayso -p --json`.
pub(crate) struct Task {
    child: Child,
    events: std::io::Lines<BufReader<ChildStdout>>,
    pub(crate) session: String,
}

impl Task {
    pub(crate) fn start(scene: &Scene, model: &ModelServer, variable: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sayso"))
            .args(["-p", "--json"])
            .args(arguments)
            .current_dir(scene.directory.path())
            .env_clear()
            .envs(scene.environment())
            .env(variable, model.url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut events = BufReader::new(child.stdout.take().unwrap()).lines();
        let first: Value = match events.next() {
            Some(line) => serde_json::from_str(&line.unwrap()).unwrap(),
            None => panic!("{:?}", child.wait_with_output()),
        };
        let session = first["session"].as_str().unwrap_or_else(|| panic!("{first}")).to_owned();
        Self { child, events, session }
    }

    fn next(&mut self) -> Option<Value> {
        Some(serde_json::from_str(&self.events.next()?.unwrap()).unwrap())
    }

    /// Reads up to the next change that waits.
    pub(crate) fn waiting_change(&mut self) -> String {
        let mut seen = Vec::new();
        while let Some(event) = self.next() {
            if event["status"]["state"] == "STATE_WAITING"
                && let Some(change) = event["status"]["change"].as_str()
            {
                return change.to_owned();
            }
            seen.push(event);
        }
        panic!("no change waits: {seen:#?}")
    }

    /// Reads the rest, and returns it with the exit code.
    pub(crate) fn finish(mut self) -> (Vec<Value>, i32) {
        let mut events = Vec::new();
        while let Some(event) = self.next() {
            events.push(event);
        }
        (events, self.child.wait().unwrap().code().unwrap())
    }
}

fn changed(line: &str) -> String {
    String::from_utf8(NOTES.to_vec()).unwrap().replace(&format!("{line}\n"), &format!("{line}!\n"))
}

#[test]
fn same_task_runs_over_all_dialects() {
    for (dialect, upstream, variable) in DIALECTS {
        let scene = Scene::new(&[("notes.txt", NOTES)]);
        let both = changed("one").replace("twelve\n", "twelve!\n");
        let model = ModelServer::start([
            Turn::calls("Read", json!({"path": "notes.txt"})).and_says("I look first."),
            Turn::calls("Write", json!({"path": "notes.txt", "content": both})),
            Turn::calls("TodoWrite", json!({"todos": [{"text": "check the file"}]})),
            Turn::calls("Exec", json!({"command": "wc -l notes.txt"})),
            Turn::says("All done."),
        ]);
        let _engine = Served::start_with(&scene, &[(variable, &model.url())]);
        let arguments = ["--model", "test-model", "--dialect", dialect, "--upstream", upstream, "Shout at both ends"];
        let mut task = Task::start(&scene, &model, variable, &arguments);
        let change = task.waiting_change();
        let (_, code) =
            scene.json(&["review", &change, "--approve", "1", "--comment", "notes.txt:12:keep the end", "--json"]);
        assert_eq!(code, 1, "{dialect}: a part was refused");
        let command = task.waiting_change();
        assert_eq!(scene.read("notes.txt"), changed("one"), "{dialect}: only the approved hunk");
        assert_eq!(scene.run(&["review", &command, "--approve", "all"], b"").status.code(), Some(0), "{dialect}");
        let session = task.session.clone();
        let (events, code) = task.finish();
        assert_eq!(code, 0, "{dialect}: {events:#?}");
        let end = events.last().unwrap();
        assert_eq!(end["finished"]["reason"], "REASON_COMPLETED", "{dialect}: {end}");
        assert_eq!(end["finished"]["text"], "All done.", "{dialect}");
        let requests = model.requests();
        assert_eq!(requests.len(), 5, "{dialect}");
        assert!(requests[2].to_string().contains("keep the end"), "{dialect}: the reason is in the next request");
        assert!(requests[4].to_string().contains("12 notes.txt"), "{dialect}: the output of the command");
        assert!(events.iter().any(|event| event["toolOutputDelta"]["text"].is_string()), "{dialect}: live output");
        scene.json(&["undo", "--session", &session, "--json"]);
        assert_eq!(scene.read("notes.txt").as_bytes(), NOTES, "{dialect}: undo restores every byte");
    }
}

#[test]
fn denial_reason_reaches_next_request() {
    let scene = Scene::new(&[("notes.txt", NOTES)]);
    let model = ModelServer::start([
        Turn::calls("Write", json!({"path": "new.txt", "content": "x\n"})),
        Turn::says("Understood."),
    ]);
    let _engine = Served::start_with(&scene, &[("SAYSO_ANTHROPIC_UPSTREAM", &model.url())]);
    let mut task = Task::start(&scene, &model, "SAYSO_ANTHROPIC_UPSTREAM", &["Write a file"]);
    let change = task.waiting_change();
    scene.json(&["review", &change, "--deny", "no new files", "--json"]);
    let (events, code) = task.finish();
    assert_eq!(code, 0, "{events:#?}");
    assert!(model.requests()[1].to_string().contains("user denied this tool call: no new files"));
    assert!(!scene.path("new.txt").exists());
}

#[test]
fn failing_model_ends_task_with_its_message() {
    let scene = Scene::new(&[]);
    let model = ModelServer::start([]);
    model.when(sayso_testkit::model::Received::asks_for_a_turn, Answer::error(401, "no such key"));
    let task = Task::start(&scene, &model, "SAYSO_ANTHROPIC_UPSTREAM", &["Hello"]);
    let (events, code) = task.finish();
    assert_eq!(code, 70, "{events:#?}");
    assert!(events.last().unwrap()["failed"]["message"].as_str().unwrap().contains("no such key"), "{events:#?}");
}

#[test]
fn missing_key_names_its_place() {
    let scene = Scene::new(&[]);
    let output = scene.run(&["-p", "Hello"], b"");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("ANTHROPIC_API_KEY") && text.contains("sayso demo"), "{text}");
}

#[test]
fn sessions_are_listed_and_resumed() {
    let scene = Scene::new(&[]);
    let model = ModelServer::start([Turn::calls("TodoRead", json!({})), Turn::says("first"), Turn::says("second")]);
    let task = Task::start(&scene, &model, "SAYSO_ANTHROPIC_UPSTREAM", &["Remember the word"]);
    let session = task.session.clone();
    assert_eq!(task.finish().1, 0);
    let (listed, _) = scene.json(&["sessions", "--json"]);
    assert_eq!(listed["sessions"][0]["session"], session.as_str());
    assert_eq!(listed["sessions"][0]["title"], "Remember the word");
    let again = ["--resume", &session[..6], "And now?"];
    let (events, code) = Task::start(&scene, &model, "SAYSO_ANTHROPIC_UPSTREAM", &again).finish();
    assert_eq!(code, 0, "{events:#?}");
    let last = model.requests().pop().unwrap().to_string();
    assert!(last.contains("Remember the word") && last.contains("And now?"), "the conversation goes on: {last}");
}

#[test]
fn killed_agent_resumes_to_same_end() {
    let scene = Scene::new(&[("notes.txt", NOTES)]);
    let model = ModelServer::start([
        Turn::calls("Read", json!({"path": "notes.txt"})),
        Turn::calls("Write", json!({"path": "notes.txt", "content": changed("one")})),
        Turn::says("Done after the restart."),
    ]);
    let mut task = Task::start(&scene, &model, "SAYSO_ANTHROPIC_UPSTREAM", &["Shout"]);
    task.waiting_change();
    task.child.kill().unwrap();
    task.child.wait().unwrap();
    let (listed, _) = scene.json(&["sessions", "--json"]);
    assert_eq!(listed["sessions"][0]["state"], "STATE_INTERRUPTED", "{listed}");
    let session = task.session.clone();
    let (events, code) = Task::start(&scene, &model, "SAYSO_ANTHROPIC_UPSTREAM", &["--resume", &session]).finish();
    assert_eq!(code, 0, "{events:#?}");
    assert_eq!(events.last().unwrap()["finished"]["text"], "Done after the restart.");
    assert!(model.requests().pop().unwrap().to_string().contains("cancelled"), "the dangling call is answered");
    let (status, _) = scene.json(&["status", "--json"]);
    assert_eq!(status["pending"], 0, "the change of the lost call is withdrawn: {status}");
}

#[test]
fn search_shows_no_denied_file() {
    let scene = Scene::new(&[("notes.txt", NOTES), ("secret.txt", b"seven seas\n")]);
    scene.configure("[[rule]]\nthen = \"deny\"\nread = [\"secret.txt\"]\n");
    let model = ModelServer::start([Turn::calls("Grep", json!({"pattern": "seven"})), Turn::says("Found.")]);
    let (events, code) = Task::start(&scene, &model, "SAYSO_ANTHROPIC_UPSTREAM", &["Search"]).finish();
    assert_eq!(code, 0, "{events:#?}");
    let result = model.requests().pop().unwrap().to_string();
    assert!(result.contains("notes.txt") && !result.contains("seven seas"), "{result}");
}

/// Points in the task at which an engine is killed: the number of events that a client has seen.
const KILLS: u64 = 20;
/// Events of the longest run, about.
const MAX_EVENTS: u64 = 24;

/// Returns a number below a limit, the same for the same seed and step.
fn seeded(seed: u64, step: u64, limit: u64) -> u64 {
    let mixed = (seed ^ step.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 31)) % limit
}

#[test]
fn killed_engine_resumes_to_same_end() {
    let seed = std::env::var("SAYSO_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(29);
    println!("SAYSO_SEED={seed}");
    let mut interrupted = 0;
    for kill in 0..KILLS {
        let (dialect, upstream, variable) = DIALECTS[usize::try_from(kill % 4).unwrap()];
        let events = seeded(seed, kill, MAX_EVENTS);
        let scene = Scene::new(&[("notes.txt", NOTES)]);
        scene.configure("[policy]\nwrite = \"allow\"\nrun = \"allow\"\n");
        let write = || Turn::calls("Write", json!({"path": "notes.txt", "content": changed("one")}));
        let model = ModelServer::start([
            Turn::calls("Read", json!({"path": "notes.txt"})),
            Turn::calls("TodoWrite", json!({"todos": [{"text": "check the file"}]})),
            write(),
            Turn::calls("Exec", json!({"command": "wc -l notes.txt"})),
            Turn::says("Done without a kill."),
        ]);
        let arguments = ["--model", "test-model", "--dialect", dialect, "--upstream", upstream];
        let first = [&arguments[..], &["Shout"]].concat();
        let mut task = Task::start(&scene, &model, variable, &first);
        for _ in 0..events {
            if task.next().is_none() {
                break;
            }
        }
        task.child.kill().unwrap();
        task.child.wait().unwrap();
        let session = task.session.clone();
        // Repeats the call, as a model would that reads of a cancelled one.
        let model = ModelServer::start([write(), Turn::says("All done.")]);
        let again = [&["--resume", session.as_str()], &["Go on"][..]].concat();
        let (events, code) = Task::start(&scene, &model, variable, &again).finish();
        let label = format!("{dialect}, kill {kill}");
        assert_eq!(code, 0, "{label}: {events:#?}");
        assert_eq!(events.last().unwrap()["finished"]["text"], "All done.", "{label}");
        assert_eq!(scene.read("notes.txt"), changed("one"), "{label}");
        let (status, _) = scene.json(&["status", "--json"]);
        assert_eq!(status["pending"], 0, "{label}: {status}");
        let last = model.requests().pop().unwrap().to_string();
        interrupted += u64::from(last.contains("cancelled"));
        scene.json(&["undo", "--session", &session, "--json"]);
        assert_eq!(scene.read("notes.txt").as_bytes(), NOTES, "{label}: undo restores every byte");
    }
    println!("{KILLS} kills, {interrupted} of them with an open call");
}

#[test]
fn demo_plays_by_itself_and_cleans_up() {
    let scene = Scene::new(&[]);
    let output = scene.run(&["demo", "--auto"], b"");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("All steps did what they said."), "{text}");
}

#[test]
fn demo_in_browser_serves_until_interrupted() {
    let scene = Scene::new(&[]);
    let mut demo = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["demo", "--web"])
        .current_dir(scene.directory.path())
        .env_clear()
        .envs(scene.environment())
        .env("TMPDIR", scene.directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let link = lines.find(|line| line.starts_with("http://")).unwrap();
    assert!(link.contains("/session/"), "{link}");
    // The change waits for a person: the call is announced before it.
    assert!(lines.any(|line| line.contains("greet.sh")), "the agent shows its call");
    let pid = rustix::process::Pid::from_raw(i32::try_from(demo.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(lines.last().as_deref(), Some("The workspace is removed."));
    assert!(demo.wait().unwrap().success());
    let left = std::fs::read_dir(scene.directory.path()).unwrap().flatten();
    assert!(left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().starts_with("sayso-demo-")));
}
