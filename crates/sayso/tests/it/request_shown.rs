//! Display of modes, saved edits and held requests by every command.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use insta::assert_snapshot;
use sayso_api::client::RetryBudget;
use serde_json::Value;

use crate::request_agent::{SESSION, Stage, request};
use crate::served::LONG;

/// Captures an edit in a session with auto-apply.
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
fn auto_apply_shows_and_uses_its_scope() {
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
fn saved_edit_is_shown_with_scope_and_time() {
    let stage = Stage::new("");
    capture(&stage);
    // A held request, and a request that was sent without a pause.
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
            let saved: Vec<&Value> = sections.iter().filter(|section| !section["appliedOverride"].is_null()).collect();
            let [section] = &saved[..] else { panic!("{when}: {said:#}") };
            assert_eq!(section["appliedOverride"]["scope"], "OVERRIDE_SCOPE_SESSION", "{when}");
            assert!(section["appliedOverride"]["savedMs"].as_str().unwrap().parse::<i64>().unwrap() > 0);
        }
        let shown = stage.said(&["request", "show", number]);
        assert!(shown.contains("Edited · Show diff (saved for the session at [TIME])"), "{when}: {shown}");
        let diff = stage.said(&["request", "diff", number]);
        assert!(diff.contains("+ Be brief.") && diff.ends_with("--- exit 1\n"), "{when}: {diff}");
    }
    assert_eq!(agent.join().unwrap().status, 200);
    stage.end();
}

#[test]
fn capture_next_and_save_keep_edits() {
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
fn held_request_is_in_short_status_and_metadata() {
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
    assert_eq!(
        (value("interception"), value("dirty")),
        ("paused: the mode pauses every turn".to_owned(), "false".to_owned())
    );
    assert_eq!(value("sessionId"), SESSION);
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    assert_eq!(value("interception"), "was paused: the mode pauses every turn");
    stage.end();
}

/// Returns the output of `sayso watch` until a request ends.
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
fn watch_shows_request_events() {
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
fn diff_and_monitor_views_are_counted() {
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
    for once in ["the diff of request 1 was shown", "the subagent monitor was shown, up to request 2"] {
        assert_eq!(told.matches(once).count(), 1, "{once}\n\n{told}");
    }
    stage.end();
}

#[test]
fn held_request_runs_notify_command() {
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
fn show_explains_unpaused_subagent_request() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let headers = format!("x-claude-code-session-id: {SESSION}\r\nx-claude-code-agent-id: explorer\r\n");
    assert_eq!(stage.send_with(&request("Look around.", "text"), &headers).join().unwrap().status, 200);
    let shown = stage.said(&["request", "show", "1"]);
    assert!(
        shown.contains("\nnot paused: it is a subagent's; a rule with `subagent = true` pauses those\n"),
        "{shown}"
    );
    let seen = json(&stage, &["request", "show", "1", "--json"]);
    assert_eq!(seen["summary"]["received"]["subagent"]["id"], "explorer", "{seen}");
    stage.end();
}

#[test]
fn closed_endpoint_discards_its_requests() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let (_, path) = stage.entrance();
    let capability = path.strip_prefix("p/").unwrap().split('/').next().unwrap().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = stage.client(RetryBudget::Unlimited);
    assert!(runtime.block_on(client.close_endpoint(&capability)).unwrap());
    let got = agent.join().unwrap();
    assert_eq!(got.status, 400);
    assert!(got.text.contains("Context changed – request discarded"), "{}", got.text);
    let listed = stage.said(&["request", "list"]);
    assert!(listed.contains("Context changed – request discarded"), "{listed}");
    // A closed endpoint accepts no requests.
    assert_ne!(stage.send(&request("Fix it.", "text")).join().unwrap().status, 200);
    assert_eq!(stage.model.received().len(), 0);
    stage.end();
}

#[test]
fn several_saved_edits_are_all_reported() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-next"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let edits = ["request", "edit", "1", "system[0].text=Be brief.", "max_tokens=77", "--from-now-on", "session"];
    let said = stage.said(&edits);
    assert!(said.contains("saved: 2 edits") && said.contains("Auto-apply saved edits"), "{said}");
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    // The edits of a sent request are recorded.
    let patch = stage.scene.run(&["request", "export", "1", "--format", "patch"], b"").stdout;
    let patch: Value = serde_json::from_slice(&patch).unwrap();
    assert_eq!(patch.as_array().unwrap().len(), 2, "{patch}");
    stage.end();
}

#[test]
fn unreadable_saved_edits_are_named() {
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
    assert!(shown.contains("\nsaved edit not applied: cannot read `"), "{shown}");
    for command in [&["request", "mode"][..], &["request", "mode", "pause-next"], &["request", "mode", "normal"]] {
        let said = stage.said(command);
        assert!(said.ends_with("--- exit 0\n"), "{said}");
    }
    let overrides = stage.said(&["request", "overrides", "--session", SESSION]);
    assert!(overrides.contains("cannot read") && !overrides.ends_with("--- exit 0\n"), "{overrides}");
    stage.end();
}

#[test]
fn request_edits_survive_killed_engine() {
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
    assert!(diff.contains("+ Be brief."), "{diff}");
    stage.said(&["request", "resume", "2"]);
    assert_eq!(agent.join().unwrap().status, 200);
    assert_eq!(stage.model.requests()[0]["system"][0]["text"], "Be brief.");
    stage.end();
}
