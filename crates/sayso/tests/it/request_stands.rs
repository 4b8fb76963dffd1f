//! How requests stand, and how those of other sessions and engines are found.

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
fn what_is_turned_away_says_so_until_it_is_cancelled() {
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
        match &listed["requests"][0]["turnedAway"] {
            Value::Null => assert!(start.elapsed() < LONG, "{listed}"),
            away => break away.clone(),
        }
        std::thread::yield_now();
    };
    assert_eq!((&away["tried"], &away["status"]), (&1.into(), &529.into()), "{away}");
    let line = "the upstream answered 529; tried once, again in 3 min";
    let listed = stage.said(&["request", "list"]);
    assert!(listed.contains("turned away") && listed.contains(line), "{listed}");
    let shown = stage.said(&["request", "show", "1"]);
    assert!(shown.contains(&format!("turned away: {line}; `sayso request cancel 1` ends it\n")), "{shown}");
    stage.said(&["request", "cancel", "1"]);
    let got = agent.join().unwrap();
    assert!(got.status == 200 && got.text.contains("Request canceled before sending"), "{}", got.text);
    let listed = stage.said(&["request", "list"]);
    assert!(listed.contains("1  ended") && listed.contains("turned away once, Request canceled"), "{listed}");
    let shown = stage.said(&["request", "show", "1"]);
    assert!(shown.contains("turned away before: once, the last time as the upstream answered 529\n"), "{shown}");
    let again = stage.said(&["request", "cancel", "1"]);
    assert!(again.contains("request 1 does not wait: it ended: Request canceled before sending"), "{again}");
    let told = watched(&stage);
    assert!(told.contains("turned away: the upstream answered 529; tried once"), "{told}");
    assert_eq!(stage.model.received().len(), 1);
    stage.end();
}

#[test]
fn what_a_server_that_is_not_there_does_to_a_request_names_it() {
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
fn saved_edits_of_every_session_are_listed() {
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
fn a_session_is_found_by_a_part_of_its_name_after_the_engine_was_started_again() {
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
    assert!(several.contains("several sessions fit `0f5b`"), "{several}");
    let one = stage.said(&["request", "mode", "--session", "0f5b2c1e-bbbb"]);
    assert!(one.contains("0f5b2c1e-bbbb") && !one.contains(SESSION), "{one}");
    let empty = stage.said(&["request", "list", "--session", ""]);
    assert!(empty.contains("--session is empty"), "{empty}");
    let unknown = stage.said(&["request", "list", "--session", "beef"]);
    assert!(unknown.contains("no session's id begins or ends with `beef`"), "{unknown}");
    stage.end();
}

#[test]
fn one_of_several_that_were_left_out_at_a_place_is_named_by_its_id() {
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
fn what_an_error_says_is_beside_its_status() {
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
fn edits_that_a_request_goes_on_with_are_said_to_be_those_of_an_earlier_one() {
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
