//! Sessions of the built-in agent that start from something: a recorded request, a task branch, a delegation, another model.

use std::process::Command;

use sayso_api::client::{Client, SessionSource};
use sayso_api::proto;
use sayso_api::proto::invocation_finished::Reason;
use sayso_api::proto::oneof::invoke_event::Event;
use sayso_api::request::RequestQuery;
use sayso_review::{RequestEnd, RequestRecord};
use sayso_testkit::model::{ModelServer, Turn};
use serde_json::json;

use crate::agent_actions::{approve, waiting};
use crate::agent_service::{end, invoke, patch, rest, start, until};
use crate::scene::Scene;

async fn requests(client: &Client, session: &str) -> Vec<RequestRecord> {
    let query = RequestQuery { session: Some(session.to_owned()), limit: 100, ..RequestQuery::default() };
    let mut requests = client.list_requests(&query).await.unwrap();
    requests.reverse();
    requests.into_iter().map(|summary| summary.record).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn delegation_runs_subagent_and_returns_its_text() {
    let task = json!({"description": "count files", "prompt": "Count all the files."});
    let model =
        ModelServer::start([Turn::calls("Delegate", task), Turn::says("There are 17."), Turn::says("Seventeen.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let mut invocation = invoke(&client, &session, "How many files?").await;
    let change = waiting(&mut invocation).await.change.unwrap();
    approve(&client, change).await;
    let events = rest(invocation).await;
    assert_eq!(end(&events).text, "Seventeen.");
    let sent = model.requests();
    assert_eq!(sent.len(), 3);
    let subagent = sent[1]["messages"].to_string();
    assert!(subagent.contains("Count all the files.") && !subagent.contains("How many files?"), "{subagent}");
    assert!(sent[2].to_string().contains("There are 17."), "{}", sent[2]);
    let sessions = client.list_agent_sessions(0).await.unwrap();
    let nested = sessions.iter().find(|listed| listed.parent.as_deref() == Some(&session)).expect("a subagent");
    assert_eq!(nested.session, format!("{session}.1"));
    let page = client.conversation(&nested.session, 0, 0, None).await.unwrap();
    assert!(page.blocks.iter().any(|block| block.text == "There are 17."), "{:?}", page.blocks);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_from_request_continues_its_conversation() {
    let model = ModelServer::start([Turn::says("It is blue."), Turn::says("Because of the air.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let first = start(&client).await;
    rest(invoke(&client, &first, "Which colour?").await).await;
    let request = requests(&client, &first).await[0].request;
    let fork = client.start_agent_session(SessionSource::Request(request), patch(), None).await.unwrap();
    assert_eq!(fork.fork_of, Some(request));
    assert_ne!(fork.session, first);
    rest(invoke(&client, &fork.session, "Why?").await).await;
    let sent = model.requests().pop().unwrap()["messages"].to_string();
    let positions = ["Which colour?", "Why?"].map(|text| sent.find(text).expect(text));
    assert!(positions[0] < positions[1], "{sent}");
    let listed = client.list_agent_sessions(0).await.unwrap();
    assert_eq!(listed.iter().filter(|session| session.fork_of == Some(request)).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_request_starts_no_session() {
    let model = ModelServer::start([]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let error = client.start_agent_session(SessionSource::Request(4_711), patch(), None).await.unwrap_err();
    assert!(error.to_string().contains("4711"), "{error}");
    assert_eq!(client.list_agent_sessions(0).await.unwrap().len(), 0);
}

fn git(scene: &Scene, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(scene.root())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn branch_mode_writes_at_once_and_reviews_turn() {
    let write = json!({"path": "notes.txt", "content": "written\n"});
    let model = ModelServer::start([Turn::calls("Write", write), Turn::says("Written.")]);
    let scene = Scene::new();
    std::fs::write(scene.root().join("a"), "a\n").unwrap();
    git(&scene, &["init", "-q"]);
    git(&scene, &["add", "."]);
    git(&scene, &["commit", "-q", "-m", "start"]);
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let task = Some("take notes".to_owned());
    let session = client.start_agent_session(SessionSource::New, patch(), task).await.unwrap();
    assert_eq!(session.branch.as_deref(), Some("sayso/take-notes"));
    assert_eq!(git(&scene, &["branch", "--show-current"]).trim(), "sayso/take-notes");
    let events = rest(invoke(&client, &session.session, "Take notes").await).await;
    let finished = end(&events);
    assert_eq!(finished.reason, Reason::Completed);
    assert_eq!(std::fs::read_to_string(scene.root().join("notes.txt")).unwrap(), "written\n");
    assert!(finished.review.is_some(), "the turn has a review");
    let has_waited = events.iter().any(|event| match &event.event {
        Some(Event::Status(status)) => status.state == proto::invocation_status::State::Waiting,
        _ => false,
    });
    assert!(!has_waited, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clear_disposes_paused_request() {
    let model = ModelServer::start([Turn::says("never")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    client.pause_next(Some(&session)).await.unwrap();
    let mut invocation = invoke(&client, &session, "Hi").await;
    let request = waiting(&mut invocation).await.request.unwrap();
    client.clear_agent_session(&session).await.unwrap();
    let query = RequestQuery { limit: 10, ..RequestQuery::default() };
    let listed = client.list_requests(&query).await.unwrap();
    let record = &listed.iter().find(|listed| listed.record.request == request).unwrap().record;
    assert_eq!(record.ended, Some(RequestEnd::SessionDisposed));
    assert_eq!(model.requests().len(), 0, "nothing was sent");
    assert_eq!(client.list_agent_sessions(0).await.unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_model_disposes_paused_request_and_gets_next() {
    let model = ModelServer::start([Turn::says("Here I am.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    client.pause_next(Some(&session)).await.unwrap();
    let mut invocation = invoke(&client, &session, "Hi").await;
    let paused = waiting(&mut invocation).await.request.unwrap();
    let other = proto::SessionSettingsPatch { model: Some("other".to_owned()), ..patch() };
    client.set_agent_settings(Some(&session), other).await.unwrap();
    let finished = until(&mut invocation, |event| matches!(event, Event::Finished(_))).await;
    let Event::Finished(finished) = finished else { panic!("not finished") };
    assert_eq!(finished.text, "Here I am.");
    let requests = requests(&client, &session).await;
    assert_eq!(requests[0].request, paused);
    assert_eq!(requests[0].ended, Some(RequestEnd::SessionDisposed));
    let models: Vec<_> = model.requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(models, ["other"]);
}
