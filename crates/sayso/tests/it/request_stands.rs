//! Status of requests, and lookup of other sessions and engines.

use std::time::Instant;

use sayso_testkit::model::Answer;
use serde_json::Value;

use crate::request_agent::{SESSION, Stage, request};
use crate::request_shown::watched;
use crate::served::LONG;

/// A request that streams, of which every turn waits and is kept alive from the beginning.
fn kept_alive(stage: &Stage) {
    let upstream = format!("[upstream.anthropic]\nurl = \"{}\"\n", stage.model.url());
    stage.scene.configure(&format!("[request]\ngrace = \"1 ms\"\n{upstream}"));
    stage.said(&["request", "mode", "pause-every"]);
}

#[test]
fn retrying_request_is_shown_until_cancelled() {
    let stage = Stage::new("");
    kept_alive(&stage);
    stage.model.when(|_| true, Answer::error(529, "Overloaded").header("retry-after", "200"));
    let mut body = request("Fix it.", "text");
    body["stream"] = true.into();
    let agent = stage.send(&body);
    stage.waiting(1);
    stage.said(&["request", "resume", "1"]);
    let start = Instant::now();
    let away = loop {
        let (listed, _) = stage.scene.json(&["request", "list", "--json"]);
        match &listed["requests"][0]["upstreamRetry"] {
            Value::Null => assert!(start.elapsed() < LONG, "{listed}"),
            away => break away.clone(),
        }
        std::thread::yield_now();
    };
    assert_eq!((&away["attempts"], &away["status"]), (&1.into(), &529.into()), "{away}");
    let line = "the upstream answered 529; tried once, again in 3 min";
    let listed = stage.said(&["request", "list"]);
    assert!(listed.contains("retrying") && listed.contains(line), "{listed}");
    let shown = stage.said(&["request", "show", "1"]);
    assert!(shown.contains(&format!("retrying: {line}; `sayso request cancel 1` ends it\n")), "{shown}");
    stage.said(&["request", "cancel", "1"]);
    let got = agent.join().unwrap();
    assert!(got.status == 200 && got.text.contains("Request canceled before sending"), "{}", got.text);
    let listed = stage.said(&["request", "list"]);
    assert!(listed.contains("1  ended") && listed.contains("rejected once, Request canceled"), "{listed}");
    let shown = stage.said(&["request", "show", "1"]);
    assert!(shown.contains("rejected before: once, the last time with the upstream answered 529\n"), "{shown}");
    let again = stage.said(&["request", "cancel", "1"]);
    assert!(again.contains("request 1 is not paused: it ended: Request canceled before sending"), "{again}");
    let told = watched(&stage);
    assert!(told.contains("rejected; retrying: the upstream answered 529; tried once"), "{told}");
    assert_eq!(stage.model.received().len(), 1);
    stage.end();
}

#[test]
fn unreachable_upstream_is_named() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let stage = Stage::behind("", |_| format!("http://{gone}"), &[]);
    let got = stage.send(&request("Fix it.", "text")).join().unwrap();
    assert_eq!(got.status, 502);
    assert!(got.text.contains("overloaded_error") || got.text.contains("api_error"), "{}", got.text);
    let listed = stage.said(&["request", "list"]);
    let named = format!("sayso could not reach {gone} (upstream `anthropic`)");
    assert!(listed.contains(&named) && got.text.contains(&named), "{listed}\n{}", got.text);
    stage.end();
}

#[test]
fn overrides_list_covers_every_session() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let agent = stage.send(&request("Fix it.", "text"));
    stage.waiting(1);
    stage.said(&["request", "edit", "1", "system[0].text=Be brief.", "--from-now-on"]);
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    let listed = |stage: &Stage| stage.said(&["request", "overrides"]);
    let found = listed(&stage);
    assert!(found.contains("Be brief.") && found.contains(&format!("in session {SESSION}\n")), "{found}");
    // And by an engine that has not seen the session itself.
    let stage = stage.again();
    assert!(listed(&stage).contains("Be brief."), "{}", listed(&stage));
    let (own, _) = stage.scene.json(&["request", "overrides", "--session", SESSION, "--json"]);
    assert_eq!(own["overrides"][0]["session"], SESSION);
    stage.end();
}

#[test]
fn session_part_resolves_after_restart() {
    let stage = Stage::new("");
    assert_eq!(stage.send(&request("Fix it.", "text")).join().unwrap().status, 200);
    // Once it is listed, it is recorded.
    stage.said(&["request", "list"]);
    let stage = stage.again();
    for part in ["0f5b", "90ab"] {
        let (listed, _) = stage.scene.json(&["request", "list", "--session", part, "--json"]);
        assert_eq!(listed["requests"].as_array().map(Vec::len), Some(1), "{part}: {listed}");
    }
    // Of two that fit none is taken, whether this engine has seen one of them or not.
    let mut other = request("Fix it.", "text");
    other["metadata"]["user_id"] = "user_0_account__session_0f5b2c1e-bbbb-4bbb-8ccc-1234567890ab".into();
    assert_eq!(stage.send(&other).join().unwrap().status, 200);
    let several = stage.said(&["request", "mode", "normal", "--session", "0f5b"]);
    assert!(several.contains("several session ids start or end with `0f5b`"), "{several}");
    let one = stage.said(&["request", "mode", "--session", "0f5b2c1e-bbbb"]);
    assert!(one.contains("0f5b2c1e-bbbb") && !one.contains(SESSION), "{one}");
    let empty = stage.said(&["request", "list", "--session", ""]);
    assert!(empty.contains("--session is empty"), "{empty}");
    let unknown = stage.said(&["request", "list", "--session", "beef"]);
    assert!(unknown.contains("no session's id begins or ends with `beef`"), "{unknown}");
    stage.end();
}

#[test]
fn deleted_sections_at_one_path_need_ids() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let mut body = request("Fix it.", "text");
    for said in ["One.", "Two."] {
        body["messages"].as_array_mut().unwrap().push(serde_json::json!({"role": "user", "content": said}));
    }
    drop(stage.send(&body));
    stage.waiting(1);
    stage.said(&["request", "delete", "1", "messages[4]"]);
    stage.said(&["request", "delete", "1", "messages[3]"]);
    let refused = stage.said(&["request", "restore", "1", "messages[3]"]);
    assert!(refused.contains("several sections were left out at `messages[3]`"), "{refused}");
    let id = refused.split('(').nth(1).and_then(|rest| rest.split(')').next()).unwrap().to_owned();
    let restored = stage.said(&["request", "restore", "1", &id]);
    assert!(restored.contains("Put back messages[3] in request 1"), "{restored}");
    stage.end();
}

#[test]
fn error_response_text_is_listed() {
    let stage = Stage::new("");
    stage.model.when(|_| true, Answer::error(400, "prompt is too long"));
    assert_eq!(stage.send(&request("Fix it.", "text")).join().unwrap().status, 400);
    for command in [["request", "list"].as_slice(), &["request", "show", "1"]] {
        let said = stage.said(command);
        assert!(said.contains("prompt is too long"), "{said}");
    }
    stage.end();
}

#[test]
fn inherited_edits_name_the_earlier_request() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    drop(stage.send(&request("Fix it.", "text")));
    stage.waiting(1);
    stage.said(&["request", "edit", "1", "max_tokens=7"]);
    let stage = stage.again();
    drop(stage.send(&request("Fix it.", "text")));
    assert_eq!(stage.waiting(1), ["2"]);
    let shown = stage.said(&["request", "show", "2"]);
    assert!(shown.contains("goes on with: your edits of request 1\n"), "{shown}");
    let listed = stage.said(&["request", "list", "--waiting"]);
    assert!(listed.contains("edited, as request 1"), "{listed}");
    stage.end();
}
