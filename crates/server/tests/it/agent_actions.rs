//! Actions of the built-in agent under decisions, interrupts and surfaces that vanish.

use std::time::Duration;

use sayso_api::client::{AgentRole, Client, Invocation, PreviewDetail, PreviewOf, RetryBudget};
use sayso_api::proto;
use sayso_api::proto::invocation_finished::Reason;
use sayso_api::proto::invocation_status::State;
use sayso_api::proto::oneof::invoke_event::Event;
use sayso_review::{Answer, ChangeId, ChangeStatus};
use sayso_server::SurfaceTiming;
use sayso_testkit::model::{Answer as ModelAnswer, Latch, ModelServer, Turn};
use serde_json::json;

use crate::agent_service::{end, invoke, rest, start, until};
use crate::scene::{Scene, no, verdict, within};

/// Reads up to the next wait for a person.
pub(crate) async fn waiting(invocation: &mut Invocation) -> proto::InvocationStatus {
    let is_waiting = |event: &Event| matches!(event, Event::Status(status) if status.state == State::Waiting);
    match within("a wait for a person", until(invocation, is_waiting)).await {
        Event::Status(status) => *status,
        other => panic!("{other:?}"),
    }
}

async fn decide(client: &Client, change: ChangeId, answer: Answer) -> Result<(), String> {
    let record = client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap().record;
    let decided = client.decide(change, verdict(&record, answer), None, PreviewDetail::Omitted).await;
    decided.map(drop).map_err(|error| error.to_string())
}

pub(crate) async fn approve(client: &Client, change: ChangeId) {
    decide(client, change, Answer::Approve).await.unwrap();
}

pub(crate) async fn status(client: &Client, change: ChangeId) -> ChangeStatus {
    client.get_change(change, PreviewDetail::Omitted, PreviewOf::Proposed).await.unwrap().record.status
}

/// A response in two chunks: the first one ends within a text.
fn unfinished_text() -> [String; 2] {
    let event = |value: serde_json::Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "test", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    let first = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "The first words"}}),
    ];
    let rest = [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    [first.map(event).concat(), rest.map(event).concat()]
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupt_during_text_keeps_what_arrived() {
    let model = ModelServer::start([]);
    let latch = Latch::closed();
    model
        .once(sayso_testkit::model::Received::asks_for_a_turn, ModelAnswer::stream(unfinished_text()).paced_by(&latch));
    model.then(Turn::says("Again."));
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let mut invocation = invoke(&client, &session, "Speak").await;
    latch.release(1);
    within("a delta", until(&mut invocation, |event| matches!(event, Event::TextDelta(_)))).await;
    assert!(client.interrupt_agent(&session).await.unwrap());
    assert_eq!(end(&rest(invocation).await).reason, Reason::Interrupted);
    latch.open();
    let events = rest(invoke(&client, &session, "Go on").await).await;
    assert_eq!(end(&events).text, "Again.");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupt_withdraws_pending_change_and_answers_call() {
    let write = json!({"path": "a.txt", "content": "a\n"});
    let model = ModelServer::start([Turn::calls("Write", write), Turn::says("I stop.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let mut invocation = invoke(&client, &session, "Write").await;
    let change = waiting(&mut invocation).await.change.unwrap();
    assert!(client.interrupt_agent(&session).await.unwrap());
    assert_eq!(end(&rest(invocation).await).reason, Reason::Interrupted);
    let withdrawn = async {
        while status(&client, change).await != ChangeStatus::Cancelled {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("the withdrawal", withdrawn).await;
    assert!(!scene.root().join("a.txt").exists());
    assert!(decide(&client, change, Answer::Approve).await.is_err(), "a withdrawn change takes no verdict");
    rest(invoke(&client, &session, "And now?").await).await;
    let sent = model.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("tool_result") && sent.contains("cancelled"), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_verdict_of_two_clients_counts() {
    let write = json!({"path": "a.txt", "content": "a\n"});
    let model = ModelServer::start([Turn::calls("Write", write), Turn::says("I see.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let (one, other) = (engine.verdict_client(), engine.tcp_client());
    let session = start(&one).await;
    let mut invocation = invoke(&one, &session, "Write").await;
    let mut attached = other.attach_agent(&session, 0, AgentRole::Answers, RetryBudget::Unlimited);
    let change = waiting(&mut invocation).await.change.unwrap();
    assert_eq!(waiting(&mut attached).await.change, Some(change));
    decide(&one, change, no("not there")).await.unwrap();
    let late = decide(&other, change, Answer::Approve).await.unwrap_err();
    assert!(late.contains("denied"), "{late}");
    let events = rest(invocation).await;
    assert_eq!(end(&events).text, "I see.");
    assert!(!scene.root().join("a.txt").exists());
    let sent = model.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("not there"), "{sent}");
    // Both clients see the same end.
    let finished = until(&mut attached, |event| matches!(event, Event::Finished(_))).await;
    assert!(matches!(finished, Event::Finished(finished) if finished.text == "I see."));
}

fn impatient() -> SurfaceTiming {
    SurfaceTiming { reconnect: Duration::from_millis(20), ..SurfaceTiming::DEFAULT }
}

#[tokio::test(flavor = "multi_thread")]
async fn model_learns_that_surface_vanished() {
    let question = json!({"question": "Which name?"});
    let model = ModelServer::start([Turn::calls("Ask", question), Turn::says("I choose.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model_as(model.url(), |http| http.timing.agent = impatient());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let mut invocation = invoke(&client, &session, "Ask me").await;
    until(&mut invocation, |event| matches!(event, Event::Question(_))).await;
    drop(invocation);
    within("the end", model.until(|requests| requests.len() == 2)).await;
    let result = model.received().pop().unwrap().tool_results().pop().unwrap();
    assert!(format!("{result:?}").contains("attached") || format!("{result:?}").contains("surface"), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn command_for_terminal_ends_at_deadline() {
    let exec = json!({"command": "make run", "description": "run it", "in_user_terminal": true});
    let model = ModelServer::start([Turn::calls("Exec", exec), Turn::says("Too bad.")]);
    let scene = Scene::new();
    let timing = SurfaceTiming { command: Duration::from_millis(50), ..SurfaceTiming::DEFAULT };
    let engine = scene.serve_with_model_as(model.url(), |http| http.timing.agent = timing);
    let client = engine.verdict_client();
    let session = start(&client).await;
    let mut invocation = invoke(&client, &session, "Run it").await;
    let change = waiting(&mut invocation).await.change.unwrap();
    approve(&client, change).await;
    // The surface is attached and does not answer.
    let asked = until(&mut invocation, |event| matches!(event, Event::ExecuteCommandRequest(_))).await;
    let Event::ExecuteCommandRequest(asked) = asked else { panic!("no request") };
    assert_eq!((asked.command.as_str(), asked.change), ("make run", Some(change)));
    assert!(asked.deadline_ms > 0);
    let events = rest(invocation).await;
    assert_eq!(end(&events).text, "Too bad.");
    assert_ne!(status(&client, change).await, ChangeStatus::Permitted, "the command has its end");
}
