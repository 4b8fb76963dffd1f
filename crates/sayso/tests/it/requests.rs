//! `sayso request`, from the mode to the answer, with a real engine and a scripted model.

use std::process::Output;

use insta::assert_snapshot;
use serde_json::Value;

use crate::request_agent::{SESSION, Stage, request};

const PAUSE: [&str; 3] = ["request", "mode", "pause-every"];

/// A stage on which every turn waits.
fn paused(configuration: &str) -> Stage {
    let stage = Stage::new(configuration);
    assert!(stage.said(&PAUSE).contains("All sessions: Pause & review every turn"));
    stage
}

#[test]
fn held_request_is_shown_edited_and_sent() {
    let stage = paused("");
    let body = request("Fix \u{1b}[31mthe build.", "fn main() {}\n");
    let agent = stage.send(&body);
    assert_eq!(stage.waiting(1), ["1"]);
    assert_snapshot!("list_waiting", stage.said(&["request", "list"]));
    assert_snapshot!("show_waiting", stage.said(&["request", "show", "1"]));
    assert_snapshot!("show_section", stage.said(&["request", "show", "1", "--section", "system[0]"]));
    assert_snapshot!(
        "edit",
        stage.said(&[
            "request",
            "edit",
            "1",
            "max_tokens=77",
            "messages[0].content[0].text=Say no.",
            "stop_sequences:=[\"x\"]"
        ])
    );
    assert_snapshot!("diff", stage.said(&["request", "diff", "1"]));
    assert_snapshot!("show_edited", stage.said(&["request", "show", "1", "--section", "messages[0]"]));
    let edited = stage.scene.run(&["request", "export", "1", "--format", "body"], b"").stdout;
    assert!(stage.said(&["status"]).contains("Requests   1 waits: `sayso request list --waiting`\n"));
    assert_snapshot!("resume", stage.said(&["request", "resume", "1"]));
    assert_eq!(agent.join().unwrap().status, 200);
    let received = stage.model.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].raw, edited, "what was shown is what was sent");
    let sent: Value = serde_json::from_slice(&edited).unwrap();
    assert_eq!(
        [&sent["max_tokens"], &sent["messages"][0]["content"][0]["text"]],
        [&Value::from(77), &Value::from("Say no.")]
    );
    // What was not edited is as it came.
    assert_eq!((&sent["system"], &sent["messages"][2]), (&body["system"], &body["messages"][2]));
    let shown = stage.said(&["request", "show", "1"]);
    assert!(shown.contains("answered 200") && shown.contains("\nanswer: status 200"), "{shown}");
    let differs = stage.said(&["request", "diff", "1"]);
    assert!(differs.contains("+ Say no.") && differs.ends_with("--- exit 1\n"), "{differs}");
    let curl = stage.said(&["request", "export", "1", "--format", "curl"]);
    assert!(curl.contains("-H \"x-api-key: $ANTHROPIC_API_KEY\"") && !curl.contains("secret-key"), "{curl}");
    let Output { stdout, .. } = stage.scene.run(&["request", "export", "1", "--format", "response"], b"");
    assert!(String::from_utf8_lossy(&stdout).contains("Done."));
    stage.end();
}

#[test]
fn cached_section_shows_its_text() {
    let stage = paused("");
    let mut body = request("Fix it.", "text");
    body["system"][0]["cache_control"] = serde_json::json!({"type": "ephemeral"});
    let _agent = stage.send(&body);
    stage.waiting(1);
    for arguments in [&["request", "show", "1"][..], &["request", "show", "1", "--section", "system[0]"]] {
        let shown = stage.said(arguments);
        assert!(shown.contains("You answer in one line.") && shown.contains("ephemeral"), "{shown}");
    }
    let wrong = stage.said(&["request", "edit", "1", "=x"]);
    assert!(wrong.contains("there is no path before the `=`") && wrong.ends_with("--- exit 2\n"), "{wrong}");
    stage.end();
}

#[test]
fn request_errors_have_causes_and_hints() {
    let stage = paused("");
    assert_snapshot!("no_such_request", stage.said(&["request", "show", "9"]));
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    assert_snapshot!("no_such_path", stage.said(&["request", "edit", "1", "messages[0].contents=x"]));
    assert_snapshot!("no_such_section", stage.said(&["request", "show", "1", "--section", "nothing"]));
    assert!(stage.said(&["request", "undo", "1"]).contains("Error: there is no edit to undo\n"));
    let deleted = stage.said(&["request", "delete", "1", "messages[2].content[0]"]);
    assert!(deleted.contains("repair 1:"), "{deleted}");
    assert_snapshot!("resume_invalid", stage.said(&["request", "resume", "1"]));
    let restored = stage.said(&["request", "repair", "1"]);
    assert!(restored.ends_with("--- exit 0\n"), "{restored}");
    for (command, exit) in [("undo", 0), ("redo", 0), ("reset", 0), ("diff", 0)] {
        let said = stage.said(&["request", command, "1"]);
        assert!(said.ends_with(&format!("--- exit {exit}\n")), "{said}");
    }
    let stale = stage.said(&["request", "resume", "1", "--revision", "1"]);
    assert!(stale.contains("was edited since") && stale.ends_with("--- exit 4\n"), "{stale}");
    assert_snapshot!("cancel", stage.said(&["request", "cancel", "1"]));
    let got = agent.join().unwrap();
    assert_eq!(got.status, 400);
    assert!(got.text.contains("Request canceled before sending"), "{}", got.text);
    assert_snapshot!("not_waiting", stage.said(&["request", "resume", "1"]));
    assert!(stage.said(&["request", "edit", "1", "max_tokens=1"]).contains("is not paused"));
    assert_eq!(stage.model.received().len(), 0);
    stage.end();
}

#[test]
fn editor_value_is_taken_if_changed() {
    let stage = paused("");
    let _agent = stage.send(&request("Please EDIT this.", "text"));
    stage.waiting(1);
    let said = stage.said(&["request", "edit", "1", "messages[0].content[0]"]);
    assert!(said.contains("Edited messages[0].content[0].text in request 1.\nrevision: 1\n"), "{said}");
    let unchanged = stage.said(&["request", "edit", "1", "messages[0].content[0].text"]);
    assert!(unchanged.contains("Nothing was edited.\n") && !unchanged.contains("revision"), "{unchanged}");
    let (diff, code) = stage.scene.json(&["request", "diff", "1", "--json"]);
    assert_eq!((diff["sections"][0]["new"].as_str(), code), (Some("Please edited this."), 1));
    let patch = stage.scene.run(&["request", "export", "1", "--format", "patch"], b"").stdout;
    let patch: Value = serde_json::from_slice(&patch).unwrap();
    assert_eq!(patch[0]["value"], "Please edited this.");
    stage.end();
}

#[test]
fn deleted_section_is_restored_by_path() {
    let stage = paused("");
    let _agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    stage.said(&["request", "append", "1", "And be quick."]);
    stage.said(&["request", "delete", "1", "system[0]"]);
    let wrong = stage.said(&["request", "restore", "1", "messages[0]"]);
    assert!(wrong.contains("nothing was left out at `messages[0]`") && wrong.ends_with("--- exit 2\n"), "{wrong}");
    let restored = stage.said(&["request", "restore", "1", "system[0]"]);
    assert!(restored.ends_with("--- exit 0\n"), "{restored}");
    let (shown, _) = stage.scene.json(&["request", "show", "1", "--json"]);
    let sections = shown["sections"].as_array().unwrap();
    assert!(sections.iter().all(|section| section["deleted"].is_null()));
    assert!(sections.iter().any(|section| section["content"] == "And be quick."));
    let pinned = stage.said(&["request", "pin", "1", "system[0]"]);
    assert!(pinned.ends_with("--- exit 0\n"), "{pinned}");
    assert!(stage.said(&["request", "show", "1"]).contains("Pinned · "));
    stage.end();
}

#[test]
fn mode_lists_sessions_and_releases_held_requests() {
    let stage = Stage::new("preview_limit = 5");
    assert_snapshot!("mode_none", stage.said(&["request", "mode"]));
    assert_snapshot!("mode_pause_next", stage.said(&["request", "mode", "pause-next"]));
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    // Once: the next one does not wait.
    let other = stage.send(&request("Another.", "text"));
    assert_eq!(other.join().unwrap().status, 200);
    let set = stage.said(&["request", "mode", "auto-apply", "--session", &SESSION[..8]]);
    assert!(
        set.contains(&format!(
            "Session {SESSION}: Auto-apply saved edits · Capturing next turn · showing first 5 sections"
        )),
        "{set}"
    );
    assert_snapshot!("mode_session", stage.said(&["request", "mode"]));
    let normal = stage.said(&["request", "mode", "normal", "--session", SESSION, "--waiting", "cancel"]);
    assert!(normal.contains("1 request that waited was canceled."), "{normal}");
    assert_ne!(agent.join().unwrap().status, 200);
    let inherit = stage.said(&["request", "mode", "inherit"]);
    assert!(inherit.contains("`inherit` is for one session") && inherit.ends_with("--- exit 2\n"), "{inherit}");
    stage.end();
}

#[test]
fn shrink_applies_to_later_requests() {
    let stage = paused("");
    let long = "0123456789 ".repeat(2_000);
    let agent = stage.send(&request("Read it.", &long));
    stage.waiting(1);
    let shrunk = stage.said(&[
        "request",
        "shrink",
        "1",
        "messages[2].content[0]",
        "--keep-head",
        "20",
        "--keep-tail",
        "10",
        "--from-now-on",
        "session",
    ]);
    assert!(shrunk.contains("Shrank messages[2].content[0].content in request 1; 9970 tokens fewer.\n"), "{shrunk}");
    assert!(shrunk.contains("tokens fewer than what came") && shrunk.contains("saved: 1 edit, applied"), "{shrunk}");
    stage.said(&["request", "mode", "auto-apply"]);
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    let listed = stage.said(&["request", "overrides", "--session", SESSION]);
    assert!(listed.contains("session    messages[2].content[0]"), "{listed}");
    assert!(stage.said(&["request", "mode"]).contains("Applying (saved [TIME])"));
    // The next turn has the whole history again, and does not wait.
    let mut next = request("Read it.", &long);
    let turns = next["messages"].as_array_mut().unwrap();
    turns.push(serde_json::json!({"role": "assistant", "content": "Done."}));
    turns.push(serde_json::json!({"role": "user", "content": "Go on."}));
    assert_eq!(stage.send(&next).join().unwrap().status, 200);
    let received = stage.model.requests();
    let result = received[1]["messages"][2]["content"][0]["content"].as_str().unwrap();
    assert!(result.len() < 200, "{result}");
    let shown = stage.said(&["request", "show", "2"]);
    assert!(shown.contains("saved edit applied: messages[2].content[0]"), "{shown}");
    let removed = stage.said(&["request", "overrides", "remove", "--scope", "session", "--session", SESSION]);
    assert!(removed.contains("Removed 1 saved edit."), "{removed}");
    stage.end();
}

#[test]
fn subagent_requests_are_monitored_and_not_paused() {
    let stage = paused("");
    assert!(stage.said(&["request", "monitor"]).contains("No subagent of a session that goes on has sent anything"));
    let headers = format!("x-claude-code-session-id: {SESSION}\r\nx-claude-code-agent-id: explorer\r\n");
    assert_eq!(stage.send_with(&request("Look around.", "text"), &headers).join().unwrap().status, 200);
    let runs = stage.said(&["request", "monitor"]);
    assert!(runs.contains("1  claude · explorer · …567890ab · [TIME]"), "{runs}");
    let one = stage.said(&["request", "monitor", "1"]);
    assert!(one.contains("Look around."), "{one}");
    assert!(stage.said(&["request", "monitor", "7"]).contains("Error: request 7 is not the last one"));
    stage.end();
}

#[test]
fn narrow_window_wraps_request_output() {
    let stage = paused("");
    let _agent = stage.send(&request("Fix it, please, and tell me what was wrong with it.", "text"));
    stage.waiting(1);
    let mut environment = stage.scene.environment().to_vec();
    environment.push(("COLUMNS", "40".to_owned()));
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let output = sayso_testkit::programs::run_with(
        stage.scene.directory.path(),
        env!("CARGO_BIN_EXE_sayso"),
        &["request", "show", "1"],
        &environment,
        b"",
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, sections) = text.split_once("\n\n").unwrap();
    assert!(
        sections.lines().take_while(|line| !line.starts_with("Some is")).all(|line| line.chars().count() <= 40),
        "{text}"
    );
    assert!(sections.contains("█"), "{text}");
    stage.end();
}

#[test]
fn request_commands_report_their_result() {
    let stage = paused("");
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let edit = |edit: &str| stage.said(&["request", "edit", "1", edit]);
    assert!(edit("max_tokens=77").contains("Edited max_tokens in request 1; 1 token fewer.\n"));
    assert!(edit("max_tokens=many").contains("Error: `many` is not a JSON value for `max_tokens`"));
    assert!(edit("max_tokens=[1]").contains("Error: `max_tokens` is a number, but `[1]` is not\n"));
    for (command, did) in [
        ("undo", "Took back the edit of max_tokens in request 1; 1 token more.\n"),
        ("redo", "Made again the edit of max_tokens in request 1; 1 token fewer.\n"),
    ] {
        let said = stage.said(&["request", command, "1"]);
        assert!(said.contains(did), "{said}");
    }
    assert!(edit("stream:=true").contains("Added stream in request 1"));
    let refused = stage.said(&["request", "resume", "1"]);
    assert!(refused.contains("its client waits for an answer in one piece"), "{refused}");
    assert!(stage.said(&["request", "reset", "1"]).contains("Took back all edits in request 1"));
    assert!(stage.said(&["request", "delete", "1", "system[0]"]).contains("Left out system[0] in request 1"));
    assert!(stage.said(&["request", "restore", "1", "system[0]"]).contains("Put back system[0] in request 1"));
    assert!(edit("system[0].text=Be brief.").contains("Edited system[0].text in request 1"));
    stage.said(&["request", "cancel", "1"]);
    assert_eq!(agent.join().unwrap().status, 400);
    assert_snapshot!("diff_cancelled", stage.said(&["request", "diff", "1"]));
    assert!(stage.said(&["request", "show", "1"]).contains("(edited)\n"));
    stage.end();
}

#[test]
fn replay_is_marked_in_original_session() {
    let stage = Stage::new("");
    assert_eq!(stage.send(&request("Fix it.", "text")).join().unwrap().status, 200);
    assert_snapshot!("replay", stage.said(&["request", "replay", "1"]));
    assert_snapshot!("list_replay", stage.said(&["request", "list"]));
    let shown = stage.said(&["request", "show", "2"]);
    assert!(shown.contains("replay of: request 1\n") && shown.contains(&format!("session: {SESSION}\n")), "{shown}");
    assert_eq!(stage.model.received().len(), 2);
    stage.end();
}

#[test]
fn show_explains_unpaused_request() {
    let stage = paused("");
    let mut body = request("Name this chat.", "text");
    body.as_object_mut().unwrap().remove("tools");
    assert_eq!(stage.send(&body).join().unwrap().status, 200);
    let shown = stage.said(&["request", "show", "1"]);
    assert!(shown.contains("\nnot paused: it offers no tools"), "{shown}");
    stage.end();
}

#[test]
fn mode_works_with_unreadable_configuration() {
    let stage = Stage::new("");
    stage.scene.configure("[request");
    let said = stage.said(&["request", "mode", "pause-every"]);
    assert!(said.contains("All sessions: Pause & review every turn") || said.contains("config.toml"), "{said}");
    let _agent = stage.send(&request("Fix it.", "text"));
    assert_eq!(stage.waiting(1), ["1"]);
    stage.end();
}

#[test]
fn edit_with_global_scope_is_saved() {
    let stage = paused("");
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    assert_snapshot!("show_tool", stage.said(&["request", "show", "1", "--section", "tools[0]"]));
    let said = stage.said(&["request", "edit", "1", "max_tokens=77", "--from-now-on", "global"]);
    assert!(said.contains("saved: 1 edit, applied to every turn from now on that is not sent normally\n"), "{said}");
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    let listed = stage.said(&["request", "overrides"]);
    assert!(listed.contains("global     max_tokens  saved [TIME]: 77"), "{listed}");
    stage.said(&["request", "mode", "auto-apply"]);
    let mut other = request("Something else.", "text");
    other["metadata"]["user_id"] = "user_0_account__session_11111111-aaaa-4bbb-8ccc-1234567890ab".into();
    assert_eq!(stage.send(&other).join().unwrap().status, 200);
    assert_eq!(stage.model.requests()[1]["max_tokens"], 77);
    stage.end();
}

#[test]
fn configured_gateway_stays_upstream() {
    // Requests to the real API fail.
    let stage = Stage::behind("", |_| "http://127.0.0.1:1".to_owned(), &[]);
    let (usual, gateway) = (stage.told(None), stage.told(Some(&stage.model.url())));
    assert_ne!(usual, gateway);
    assert_eq!(Stage::send_to(&gateway, &request("Fix it.", "text")).join().unwrap().status, 200);
    assert_eq!(Stage::send_to(&usual, &request("Fix it.", "text")).join().unwrap().status, 502);
    // Asked again where the settings are in force, they stay as they are.
    assert_eq!(stage.told(Some(&gateway)), gateway);
    assert_eq!(stage.told(None), usual);
    stage.end();
}

#[test]
fn capture_shows_and_reports_saved_edits() {
    let stage = Stage::new("preview_limit = 2");
    stage.said(&["request", "mode", "auto-apply"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    assert_snapshot!("show_captured", stage.said(&["request", "show", "1"]));
    assert!(!stage.said(&["request", "show", "1", "--full"]).contains("whose edits are saved"));
    stage.said(&["request", "edit", "1", "system[0].text=Be brief."]);
    assert_snapshot!("resume_captured", stage.said(&["request", "resume", "1"]));
    assert_eq!(agent.join().unwrap().status, 200);
    stage.end();
}

#[test]
fn saved_edit_applies_to_later_sessions() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-next"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let said = stage.said(&["request", "edit", "1", "max_tokens=77", "--from-now-on", "workspace"]);
    assert!(said.contains("mode: Auto-apply saved edits in all sessions of this workspace from now on\n"), "{said}");
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    let mut other = request("Something else.", "text");
    other["metadata"]["user_id"] = "user_0_account__session_11111111-aaaa-4bbb-8ccc-1234567890ab".into();
    assert_eq!(stage.send(&other).join().unwrap().status, 200);
    assert_eq!(stage.model.requests()[1]["max_tokens"], 77);
    let normal = stage.said(&["request", "mode", "normal"]);
    assert!(normal.contains("1 saved edit is not applied while requests are sent normally"), "{normal}");
    stage.end();
}

#[test]
fn mode_normal_resumes_or_cancels_waiting_requests() {
    let stage = paused("");
    for (choice, told, status) in [
        (&[][..], "1 request that waited goes on.", 200),
        (&["--waiting", "cancel"], "1 request that waited was canceled.", 400),
    ] {
        stage.said(&["request", "mode", "pause-every"]);
        let agent = stage.send(&request("Fix it.", "text"));
        stage.waiting(1);
        let said = stage.said(&[&["request", "mode", "normal"], choice].concat());
        assert!(said.contains(told), "{said}");
        assert_eq!(agent.join().unwrap().status, status);
    }
    stage.end();
}

#[test]
fn request_with_two_host_headers_is_refused() {
    let stage = Stage::new("");
    let agent = stage.send_with(&request("Fix it.", "text"), "host: localhost\r\n");
    assert_eq!(agent.join().unwrap().status, 400);
    assert_eq!(stage.model.requests().len(), 0);
    stage.end();
}

#[test]
fn list_and_curl_show_what_was_sent_and_where() {
    let stage = paused("");
    // The agent was told of another server by the name of the configured one.
    let gateway = stage.told(Some(&format!("{}/gateway", stage.model.url())));
    let agent = Stage::send_to(&gateway, &request("Fix it.", &"x".repeat(50_000)));
    stage.waiting(1);
    stage.said(&["request", "edit", "1", "messages[2].content[0]=short"]);
    stage.said(&["request", "resume", "1"]);
    agent.join().unwrap();
    let listed = stage.said(&["request", "list"]);
    assert!(listed.contains("  1 kB, edited"), "{listed}");
    let curl = stage.said(&["request", "export", "1", "--format", "curl"]);
    assert!(curl.contains("/gateway/v1/messages"), "{curl}");
    stage.end();
}

#[test]
fn edit_of_unknown_key_has_note() {
    let stage = paused("");
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    let said = stage.said(&["request", "edit", "1", "max_tokns=9", "temperature=1"]);
    assert!(said.contains("the API does not know `max_tokns`"), "{said}");
    assert_eq!(said.matches("does not know").count(), 1, "{said}");
    stage.said(&["request", "cancel", "1"]);
    agent.join().unwrap();
    stage.end();
}
