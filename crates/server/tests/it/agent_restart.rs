//! Sessions of the built-in agent across engines: events, proposals and reads.

use std::io::Read as _;
use std::process::{Command, Stdio};

use sayso_api::client::{AgentRole, Client, RetryBudget, SessionSource};
use sayso_api::proto;
use sayso_api::proto::oneof::invoke_event::Event;
use sayso_review::ChangeStatus;
use sayso_testkit::model::{ModelServer, Turn};
use serde_json::{Value, json};

use crate::agent_actions::{approve, status, waiting};
use crate::agent_service::{end, invoke, patch, rest, start, until};
use crate::scene::{Running, Scene, within};

#[tokio::test(flavor = "multi_thread")]
async fn client_attached_across_restart_sees_each_event_once() {
    let model = ModelServer::start([Turn::says("Before."), Turn::says("After.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let before = rest(invoke(&client, &session, "One").await).await;
    let mut attached = scene.lasting_client().attach_agent(&session, 0, AgentRole::Follows, RetryBudget::Unlimited);
    for event in &before {
        assert_eq!(within("an event", attached.next()).await.unwrap().as_ref(), Some(event));
    }
    engine.end();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let after = rest(invoke(&client, &session, "Two").await).await;
    assert_eq!(end(&after).text, "After.");
    let last = before.last().unwrap().number;
    assert!(after[0].number > last, "numbers of the old engine are not used again");
    // The client of the old engine reconnects by itself.
    for event in &after {
        let next = within("an event", attached.next()).await.unwrap();
        assert_eq!(next.as_ref(), Some(event));
    }
    let listed = client.list_agent_sessions(0).await.unwrap();
    assert_eq!(listed[0].last_event, after.last().unwrap().number);
}

/// Reads the messages of `Attach` over Connect with JSON, up to the first that is no heartbeat.
fn attach_raw(engine: &Running, session: &str, after: u64) -> Value {
    let body = json!({"session": session, "after": after.to_string(), "followsOnly": true}).to_string();
    let mut message = vec![0];
    message.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
    message.extend_from_slice(body.as_bytes());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), message).unwrap();
    let mut curl = Command::new("curl")
        .args(["-sS", "-N", "-m", "60", "-H", "content-type: application/connect+json"])
        .args(["-H", &format!("authorization: Bearer {}", engine.login)])
        .args(["--data-binary", &format!("@{}", file.path().display())])
        .arg(format!("http://{}/sayso.v1.AgentService/Attach", engine.address))
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = curl.stdout.take().unwrap();
    let found = loop {
        let mut head = [0; 5];
        output.read_exact(&mut head).expect("a message");
        let mut message = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize];
        output.read_exact(&mut message).unwrap();
        let message: Value = serde_json::from_slice(&message).unwrap();
        if message.get("heartbeat").is_none() {
            break message;
        }
    };
    curl.kill().unwrap();
    curl.wait().unwrap();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_after_unknown_number_starts_with_reset() {
    let model = ModelServer::start([Turn::says("Hello."), Turn::says("Again.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let events = rest(invoke(&client, &session, "Hi").await).await;
    let last = events.last().unwrap().number;
    let blocks = client.conversation(&session, 0, 0, None).await.unwrap().last;
    let reset = |message: Value| message["reset"]["lastBlock"].as_str().map(|block| block.parse::<u64>().unwrap());
    assert_eq!(reset(attach_raw(&engine, &session, last + 1_000)), Some(blocks), "a number of the future");
    let next = attach_raw(&engine, &session, last - 1);
    assert_eq!(next["event"]["number"], last.to_string(), "a known number continues");
    engine.end();
    let engine = scene.serve_with_model(model.url());
    assert_eq!(reset(attach_raw(&engine, &session, last)), Some(blocks), "a number of an earlier engine");
}

async fn start_proposing(client: &Client) -> String {
    let settings = proto::SessionSettingsPatch { scenario: Some("EDITOR_CODE".to_owned()), ..patch() };
    client.start_agent_session(SessionSource::New, settings, None).await.unwrap().session
}

/// A session with a proposal of `a.txt` that is pending.
async fn propose(client: &Client) -> (String, u64) {
    let session = start_proposing(client).await;
    let events = rest(invoke(client, &session, "Propose").await).await;
    assert_eq!(end(&events).text, "Proposed.");
    let proposed = events.iter().find_map(|event| match &event.event {
        Some(Event::ProposedChanges(proposed)) => proposed.change,
        _ => None,
    });
    (session, proposed.expect("a change"))
}

fn proposing_model() -> ModelServer {
    let proposal = json!({"changes": [{"path": "a.txt", "operation": "create", "new_content": "a\n"}]});
    ModelServer::start([Turn::calls("ProposeChanges", proposal), Turn::says("Proposed."), Turn::says("Good.")])
}

#[tokio::test(flavor = "multi_thread")]
async fn verdict_before_resume_reaches_model() {
    let model = proposing_model();
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let (session, change) = propose(&engine.verdict_client()).await;
    engine.end();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    assert_eq!(status(&client, change).await, ChangeStatus::Pending, "a stopping engine leaves proposals");
    approve(&client, change).await;
    assert_eq!(std::fs::read_to_string(scene.root().join("a.txt")).unwrap(), "a\n");
    assert_verdict_arrives(&client, &model, &session, change).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verdict_after_resume_reaches_model() {
    let model = proposing_model();
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let (session, change) = propose(&engine.verdict_client()).await;
    engine.end();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    client.start_agent_session(SessionSource::Resume(session.clone()), <_>::default(), None).await.unwrap();
    approve(&client, change).await;
    assert_verdict_arrives(&client, &model, &session, change).await;
}

/// Waits for the message about a change, and sends the next prompt.
async fn assert_verdict_arrives(client: &Client, model: &ModelServer, session: &str, change: u64) {
    // A session is resumed with its first use.
    client.agent_todos(session).await.unwrap();
    let queued = async {
        loop {
            let record = record(client, change).await;
            if record.delivery == sayso_review::Delivery::Waiting {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    within("the message", queued).await;
    rest(invoke(client, session, "And?").await).await;
    let sent = model.requests().pop().unwrap()["messages"].to_string();
    assert_eq!(sent.matches("About the proposed changes: ").count(), 1, "{sent}");
}

async fn record(client: &Client, change: u64) -> sayso_review::ChangeRecord {
    use sayso_api::client::{PreviewDetail, PreviewOf};
    client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap().record
}

#[tokio::test(flavor = "multi_thread")]
async fn file_changed_during_restart_must_be_read_again() {
    let edit = |name: &str| json!({"path": name, "old_string": "two", "new_string": "2"});
    let model = ModelServer::start([
        Turn::calls("Read", json!({"path": "changed.txt"})).and_calls("Read", json!({"path": "same.txt"})),
        Turn::says("Read."),
        Turn::calls("Edit", edit("changed.txt")),
        Turn::calls("Edit", edit("same.txt")),
        Turn::says("Edited."),
    ]);
    let scene = Scene::new();
    for name in ["changed.txt", "same.txt"] {
        std::fs::write(scene.root().join(name), "one\ntwo\n").unwrap();
    }
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    rest(invoke(&client, &session, "Read them").await).await;
    engine.end();
    std::fs::write(scene.root().join("changed.txt"), "zero\none\ntwo\n").unwrap();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let mut invocation = invoke(&client, &session, "Edit them").await;
    let refused = until(&mut invocation, |event| matches!(event, Event::ToolResult(_))).await;
    let Event::ToolResult(refused) = refused else { panic!("no result") };
    assert!(refused.is_error && refused.text.contains("changed since it was read"), "{refused:?}");
    let change = waiting(&mut invocation).await.change.unwrap();
    approve(&client, change).await;
    assert_eq!(end(&rest(invocation).await).text, "Edited.");
    assert_eq!(std::fs::read_to_string(scene.root().join("same.txt")).unwrap(), "one\n2\n");
}
