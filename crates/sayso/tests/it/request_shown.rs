//! What people see of modes, saved edits and waiting requests, wherever they look.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use insta::assert_snapshot;
use sayso_api::client::Patience;
use sayso_api::proto;
use serde_json::Value;

use crate::request_agent::{SESSION, Stage, request};
use crate::served::LONG;

/// Captures one edit in a session that applies saved ones.
fn capture(stage: &Stage) {
    stage.said(&["request", "mode", "auto-apply"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    stage.said(&["request", "edit", "1", "system[0].text=Be brief."]);
    let resumed = stage.said(&["request", "resume", "1"]);
    assert!(resumed.contains("saved: 1 edit"), "{resumed}");
    assert_eq!(agent.join().unwrap().status, 200);
}

fn json(stage: &Stage, arguments: &[&str]) -> Value {
    stage.scene.json(arguments).0
}

#[test]
fn auto_apply_is_shown_with_its_scope_and_captured_edits_go_there() {
    let stage = Stage::new("scope = \"workspace\"");
    let said = stage.said(&["request", "mode", "auto-apply"]);
    assert!(said.contains("Auto-apply saved edits · Capturing next turn"), "{said}");
    let shown = stage.said(&["request", "mode"]);
    assert!(shown.contains("Auto-apply edits · workspace  0 saved\n"), "{shown}");
    capture(&stage);
    let shown = stage.said(&["request", "mode"]);
    assert!(shown.contains("Applying (saved [TIME])\nAuto-apply edits · workspace  1 saved\n"), "{shown}");
    let listed = json(&stage, &["request", "overrides", "--json"]);
    assert_eq!(listed["overrides"][0]["scope"], "OVERRIDE_SCOPE_WORKSPACE", "{listed}");
    stage.end();
}

#[test]
fn a_saved_edit_is_shown_with_its_scope_and_time_before_it_is_sent_and_after() {
    let stage = Stage::new("");
    capture(&stage);
    // One that waits, and one that was sent by itself.
    stage.said(&["request", "mode", "pause-next"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    for (number, when) in [("2", "it waits"), ("2", "it was sent"), ("3", "nobody looked at it")] {
        match when {
            "it was sent" => drop(stage.said(&["request", "resume", "2"])),
            "nobody looked at it" => {
                assert_eq!(stage.send(&request("Fix it.", "other text")).join().unwrap().status, 200);
            }
            _ => {}
        }
        for command in ["show", "diff"] {
            let said = json(&stage, &["request", command, number, "--json"]);
            let sections = said["sections"].as_array().unwrap();
            let saved: Vec<&Value> = sections.iter().filter(|section| !section["saved"].is_null()).collect();
            let [section] = &saved[..] else { panic!("{when}: {said:#}") };
            assert_eq!(section["saved"]["scope"], "OVERRIDE_SCOPE_SESSION", "{when}");
            assert!(section["saved"]["savedMs"].as_str().unwrap().parse::<i64>().unwrap() > 0);
        }
        let shown = stage.said(&["request", "show", number]);
        assert!(shown.contains("Edited · Show diff (saved for the session at [TIME])"), "{when}: {shown}");
        let diff = stage.said(&["request", "diff", number]);
        assert!(diff.contains("+Be brief.") && diff.ends_with("--- exit 1\n"), "{when}: {diff}");
    }
    assert_eq!(agent.join().unwrap().status, 200);
    stage.end();
}

#[test]
fn new_edits_are_captured_by_the_command_and_what_waits_is_saved_by_another() {
    let stage = Stage::new("");
    capture(&stage);
    let armed = stage.said(&["request", "overrides", "capture-next", "--session", SESSION]);
    assert!(armed.ends_with("--- exit 0\n"), "{armed}");
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    stage.said(&["request", "edit", "2", "messages[0].content[0].text=Mend it."]);
    let saved = stage.said(&["request", "save", "2", "--scope", "workspace"]);
    assert!(saved.contains("2 saved edits for the workspace, applied to every turn"), "{saved}");
    // Where it counts was said: it is not the session's, too.
    let resumed = stage.said(&["request", "resume", "2"]);
    assert!(!resumed.contains("saved:"), "{resumed}");
    assert_eq!(agent.join().unwrap().status, 200);
    let listed = stage.said(&["request", "overrides", "--session", SESSION]);
    assert_snapshot!("overrides_of_both", listed);
    // What is taken back while capturing is no longer saved there, and that is said.
    stage.said(&["request", "overrides", "capture-next", "--session", SESSION]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    stage.said(&["request", "reset", "3"]);
    let resumed = stage.said(&["request", "resume", "3"]);
    assert!(resumed.contains("removed: 1 saved edit, which was taken back here\n"), "{resumed}");
    assert_eq!(agent.join().unwrap().status, 200);
    stage.end();
}

#[test]
fn what_waits_is_in_the_shell_prompt_and_in_the_metadata() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    assert_eq!(stage.said(&["status", "--short"]), "$ sayso status --short\n--- exit 0\n");
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let short = stage.said(&["status", "--short"]);
    assert!(short.contains("\n1 request\n"), "{short}");
    let metadata = |stage: &Stage| -> Vec<(String, String)> {
        let shown = json(stage, &["request", "show", "1", "--json"]);
        let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
        shown["metadata"].as_array().unwrap().iter().map(|row| (text(row, "name"), text(row, "value"))).collect()
    };
    let value = |name: &str| metadata(&stage).into_iter().find(|row| row.0 == name).unwrap().1;
    assert_eq!((value("interception"), value("dirty")), ("paused: every turn is".to_owned(), "false".to_owned()));
    assert_eq!(value("sessionId"), SESSION);
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    assert_eq!(value("interception"), "was paused: every turn is");
    stage.end();
}

/// What `sayso watch` tells of requests, until one ends.
pub(crate) fn watched(stage: &Stage) -> String {
    let mut watching = Command::new(env!("CARGO_BIN_EXE_sayso"))
        .args(["watch", "--after", "0"])
        .current_dir(stage.scene.path(""))
        .env_clear()
        .envs(stage.scene.environment())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    for line in lines.map_while(Result::ok).filter(|line| line.contains("equest") || line.contains("saved edits")) {
        let last = line.contains("ended: ");
        told.push(line);
        if last {
            break;
        }
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
    told.join("\n")
}

#[test]
fn what_happens_to_requests_is_watched() {
    let stage = Stage::new("");
    capture(&stage);
    let mut drifted = request("Fix it.", "text");
    drifted["system"][0]["text"] = "Something else by now.".into();
    assert_eq!(stage.send(&drifted).join().unwrap().status, 200);
    stage.said(&["request", "overrides", "remove", "--scope", "session", "--session", SESSION]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    stage.said(&["request", "cancel", "3"]);
    assert_eq!(agent.join().unwrap().status, 400);
    let told = watched(&stage);
    for wanted in [
        "requests of all sessions: Auto-apply saved edits",
        "waits: `sayso request show 1`",
        "edited: system[0].text",
        &format!("saved edits of the session {SESSION}: 1"),
        "goes on",
        "sent with edits",
        "sent as it came, 1 saved ones did not fit",
        &format!("saved edits of the session {SESSION}: 0"),
        "ended: Request canceled before sending",
    ] {
        assert!(told.contains(wanted), "{wanted}\n\n{told}");
    }
    stage.end();
}

#[test]
fn who_looks_at_a_diff_or_at_the_monitor_is_counted() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let headers = format!("x-claude-code-session-id: {SESSION}\r\nx-claude-code-agent-id: explorer\r\n");
    assert_eq!(stage.send_with(&request("Look around.", "text"), &headers).join().unwrap().status, 200);
    // A list is not what subagents said.
    stage.said(&["request", "monitor"]);
    for _ in 0..2 {
        stage.said(&["request", "diff", "1"]);
        stage.said(&["request", "monitor", "2"]);
    }
    stage.said(&["request", "cancel", "1"]);
    assert_eq!(agent.join().unwrap().status, 400);
    let told = watched(&stage);
    for once in ["the diff of request 1 was looked at", "what subagents sent was looked at, up to request 2"] {
        assert_eq!(told.matches(once).count(), 1, "{once}\n\n{told}");
    }
    stage.end();
}

#[test]
fn a_request_that_waits_runs_the_users_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("told");
    let notify = format!("[notify]\ncommand = [\"sh\", \"-c\", \"printf %s \\\"$0\\\" > {}\"]", file.display());
    let stage = Stage::new(&notify);
    stage.said(&["request", "mode", "pause-every"]);
    let _agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let start = Instant::now();
    loop {
        let told = std::fs::read_to_string(&file).unwrap_or_default();
        if !told.is_empty() {
            assert_eq!(told, "sayso: 1 request waits for you");
            break;
        }
        assert!(start.elapsed() < LONG, "nobody was told");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    stage.end();
}

#[test]
fn why_a_subagents_request_passed_is_said() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let headers = format!("x-claude-code-session-id: {SESSION}\r\nx-claude-code-agent-id: explorer\r\n");
    assert_eq!(stage.send_with(&request("Look around.", "text"), &headers).join().unwrap().status, 200);
    let shown = stage.said(&["request", "show", "1"]);
    assert!(
        shown.contains("\nnot paused: it is a subagent's; a rule with `subagent = true` has those wait\n"),
        "{shown}"
    );
    let seen = json(&stage, &["request", "show", "1", "--json"]);
    assert_eq!(seen["summary"]["seen"]["subagent"]["id"], "explorer", "{seen}");
    stage.end();
}

#[test]
fn with_its_entrance_a_request_is_discarded() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let (_, path) = stage.entrance();
    let capability = path.strip_prefix("p/").unwrap().split('/').next().unwrap().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let closing = proto::CloseEntranceRequest { capability, ..Default::default() };
    let client = stage.client(Patience::Always);
    assert!(runtime.block_on(client.close_entrance(closing)).unwrap().closed);
    let got = agent.join().unwrap();
    assert_eq!(got.status, 400);
    assert!(got.text.contains("Context changed – request discarded"), "{}", got.text);
    let listed = stage.said(&["request", "list"]);
    assert!(listed.contains("Context changed – request discarded"), "{listed}");
    // Nothing else gets in by it.
    assert_ne!(stage.send(&request("Fix it.", "text")).join().unwrap().status, 200);
    assert_eq!(stage.model.received().len(), 0);
    stage.end();
}

#[test]
fn several_edits_from_now_on_are_all_told_of() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-next"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let edits = ["request", "edit", "1", "system[0].text=Be brief.", "max_tokens=77", "--from-now-on", "session"];
    let said = stage.said(&edits);
    assert!(said.contains("saved: 2 edits") && said.contains("Auto-apply saved edits"), "{said}");
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    // Of one that was sent, the edits are known by themselves.
    let patch = stage.scene.run(&["request", "export", "1", "--format", "patch"], b"").stdout;
    let patch: Value = serde_json::from_slice(&patch).unwrap();
    assert_eq!(patch.as_array().unwrap().len(), 2, "{patch}");
    stage.end();
}

#[test]
fn saved_edits_that_cannot_be_read_are_named_and_nothing_else_fails() {
    let stage = Stage::new("");
    capture(&stage);
    let (listed, _) = stage.scene.json(&["status", "--json"]);
    let journal = std::path::PathBuf::from(listed["journal"].as_str().unwrap());
    for file in std::fs::read_dir(journal.join("overrides")).unwrap().flatten() {
        std::fs::write(file.path(), "{ not a list").unwrap();
    }
    // What an engine has read it does not read again.
    let stage = stage.again();
    assert_eq!(stage.send(&request("Another.", "text")).join().unwrap().status, 200);
    let shown = stage.said(&["request", "show", "2"]);
    assert!(
        shown.contains("\nsaved edit not applied: what is kept in `") && shown.contains("cannot be read"),
        "{shown}"
    );
    for command in [&["request", "mode"][..], &["request", "mode", "pause-next"], &["request", "mode", "normal"]] {
        let said = stage.said(command);
        assert!(said.ends_with("--- exit 0\n"), "{said}");
    }
    let overrides = stage.said(&["request", "overrides", "--session", SESSION]);
    assert!(overrides.contains("cannot be read") && !overrides.ends_with("--- exit 0\n"), "{overrides}");
    stage.end();
}

#[test]
fn what_a_person_made_of_a_request_outlives_a_kill_of_the_engine() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    stage.said(&["request", "edit", "1", "system[0].text=Be brief."]);
    let stage = stage.again();
    assert_eq!(agent.join().unwrap().status, 0, "it was cut off");
    let shown = stage.said(&["request", "show", "1"]);
    assert!(shown.contains("sayso stopped before it was sent") && shown.contains("revision: 1 (edited)\n"), "{shown}");
    // Its agent sends it again.
    let agent = stage.send(&request("Fix it.", "text"));
    assert_eq!(stage.waiting(1), ["2"]);
    let diff = stage.said(&["request", "diff", "2"]);
    assert!(diff.contains("+Be brief."), "{diff}");
    stage.said(&["request", "resume", "2"]);
    assert_eq!(agent.join().unwrap().status, 200);
    assert_eq!(stage.model.requests()[0]["system"][0]["text"], "Be brief.");
    stage.end();
}
