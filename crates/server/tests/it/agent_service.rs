//! `AgentService` over the real sockets: streams, answers of surfaces, todo lists, settings and vanished clients.

use std::time::Duration;

use sayso_api::client::{AgentRole, Client, Invocation, RetryBudget, SessionSource};
use sayso_api::proto;
use sayso_api::proto::invocation_finished::Reason;
use sayso_api::proto::oneof::invoke_event::Event;
use sayso_api::proto::submit_client_event_response::Status;
use sayso_testkit::model::{Latch, ModelServer, Turn};
use serde_json::json;

use crate::scene::Scene;

pub(crate) fn patch() -> proto::SessionSettingsPatch {
    proto::SessionSettingsPatch {
        model: Some("test".to_owned()),
        dialect: Some("anthropic-messages".to_owned()),
        upstream: Some("anthropic".to_owned()),
        ..Default::default()
    }
}

pub(crate) async fn start(client: &Client) -> String {
    client.start_agent_session(SessionSource::New, patch(), None).await.unwrap().session
}

pub(crate) async fn invoke(client: &Client, session: &str, prompt: &str) -> Invocation {
    let request = proto::InvokeRequest { session: session.to_owned(), prompt: prompt.to_owned(), ..Default::default() };
    client.invoke(request, AgentRole::Answers).await.unwrap()
}

/// Reads an invocation to its end.
pub(crate) async fn rest(mut invocation: Invocation) -> Vec<proto::InvokeEvent> {
    let mut events = Vec::new();
    while let Some(event) = invocation.next().await.unwrap() {
        events.push(event);
    }
    events
}

/// Reads up to the first event that matches.
pub(crate) async fn until(invocation: &mut Invocation, matches: impl Fn(&Event) -> bool) -> Event {
    loop {
        let event = invocation.next().await.unwrap().expect("the invocation goes on");
        if let Some(event) = event.event.filter(|event| matches(event)) {
            return event;
        }
    }
}

pub(crate) fn end(events: &[proto::InvokeEvent]) -> &proto::InvocationFinished {
    match events.last().and_then(|event| event.event.as_ref()) {
        Some(Event::Finished(finished)) => finished,
        other => panic!("{other:?}"),
    }
}

fn answer(event: impl Into<Option<proto::oneof::client_event::Event>>) -> proto::ClientEvent {
    proto::ClientEvent { event: event.into(), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn attached_client_sees_each_event_once() {
    let model = ModelServer::start([Turn::says("Hello there.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let events = rest(invoke(&client, &session, "Hi").await).await;
    assert_eq!(end(&events).reason, Reason::Completed);
    let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    let mut attached = client.attach_agent(&session, 0, AgentRole::Follows, RetryBudget::Unlimited);
    for event in &events {
        assert_eq!(attached.next().await.unwrap().as_ref(), Some(event));
    }
    let half = numbers[numbers.len() / 2];
    let mut later = client.attach_agent(&session, half, AgentRole::Follows, RetryBudget::Unlimited);
    assert_eq!(later.next().await.unwrap().unwrap().number, half + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn first_answer_to_question_counts() {
    let question = json!({"question": "Which name?", "options": ["a", "b"]});
    let model = ModelServer::start([Turn::calls("Ask", question), Turn::says("Thanks.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let mut invocation = invoke(&client, &session, "Ask me").await;
    let asked = until(&mut invocation, |event| matches!(event, Event::Question(_))).await;
    let Event::Question(asked) = asked else { panic!("no question") };
    let reply = |text: &str| {
        let request_id = asked.request_id.clone();
        answer(proto::QuestionResponse { request_id, answer: text.to_owned(), ..Default::default() })
    };
    assert_eq!(client.submit_client_event(&session, reply("number-one")).await.unwrap(), Status::Accepted);
    assert_eq!(client.submit_client_event(&session, reply("number-two")).await.unwrap(), Status::TooLate);
    let events = rest(invocation).await;
    assert_eq!(end(&events).reason, Reason::Completed);
    let last = model.requests().pop().unwrap().to_string();
    assert!(last.contains("number-one") && !last.contains("number-two"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn question_without_surface_is_answered_for_model() {
    let question = json!({"question": "Which name?"});
    let model = ModelServer::start([Turn::calls("Ask", question), Turn::says("I choose.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let request = proto::InvokeRequest { session, prompt: "Ask me".to_owned(), ..Default::default() };
    let events = rest(client.invoke(request, AgentRole::Follows).await.unwrap()).await;
    assert_eq!(end(&events).text, "I choose.");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupt_ends_running_invocation() {
    let model = ModelServer::start([]);
    let latch = Latch::closed();
    model.when(
        sayso_testkit::model::Received::asks_for_a_turn,
        sayso_testkit::model::Answer::from(Turn::says("slow")).paced_by(&latch),
    );
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let mut invocation = invoke(&client, &session, "Take your time").await;
    until(&mut invocation, |event| matches!(event, Event::Status(_))).await;
    model.until(|requests| requests.iter().any(sayso_testkit::model::Received::asks_for_a_turn)).await;
    assert!(client.interrupt_agent(&session).await.unwrap());
    assert_eq!(end(&rest(invocation).await).reason, Reason::Interrupted);
    latch.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn vanished_client_does_not_end_invocation() {
    let model = ModelServer::start([Turn::calls("TodoRead", json!({})), Turn::says("Done alone.")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let mut invocation = invoke(&client, &session, "Go on").await;
    invocation.next().await.unwrap();
    drop(invocation);
    let mut attached = client.attach_agent(&session, 0, AgentRole::Follows, RetryBudget::Unlimited);
    let finished =
        tokio::time::timeout(Duration::from_mins(2), until(&mut attached, |event| matches!(event, Event::Finished(_))));
    let Event::Finished(finished) = finished.await.unwrap() else { panic!("not finished") };
    assert_eq!(finished.text, "Done alone.");
}

#[tokio::test(flavor = "multi_thread")]
async fn conversation_comes_from_log_with_each_block_once() {
    let model = ModelServer::start([
        Turn::calls("TodoWrite", json!({"todos": [{"text": "think"}]})).and_says("I plan."),
        Turn::says("Finished."),
    ]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let events = rest(invoke(&client, &session, "Plan it").await).await;
    let page = client.conversation(&session, 0, 0, None).await.unwrap();
    let texts: Vec<&str> = page.blocks.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(texts[0], "Plan it");
    assert_eq!(texts.iter().filter(|text| **text == "I plan.").count(), 1, "{texts:?}");
    assert_eq!(texts.last(), Some(&"Finished."));
    let last_block = events.iter().rev().find_map(|event| match &event.event {
        Some(Event::Block(block)) => Some(block.block),
        _ => None,
    });
    assert_eq!(last_block, Some(page.last));
    let todos = client.agent_todos(&session).await.unwrap();
    assert_eq!(todos.iter().map(|todo| (todo.text.as_str(), todo.by_agent)).collect::<Vec<_>>(), [("think", true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn user_and_agent_write_one_todo_list() {
    let model = ModelServer::start([]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let item = |id: &str, text: &str| proto::Todo { id: id.to_owned(), text: text.to_owned(), ..Default::default() };
    let write =
        |write, remove| proto::WriteTodosRequest { session: session.clone(), write, remove, ..Default::default() };
    let todos = client.write_agent_todos(write(vec![item("", "one"), item("x", "two")], Vec::new())).await.unwrap();
    assert_eq!(todos.len(), 2);
    let todos = client.write_agent_todos(write(vec![item("x", "2")], vec![todos[0].id.clone()])).await.unwrap();
    assert_eq!(todos.iter().map(|todo| todo.text.as_str()).collect::<Vec<_>>(), ["2"]);
    let error = client.write_agent_todos(write(Vec::new(), vec!["gone".to_owned()])).await.unwrap_err();
    assert!(error.to_string().contains("`gone`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_setting_is_named_with_choices() {
    let model = ModelServer::start([]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    let wrong = proto::SessionSettingsPatch { scenario: Some("NONE".to_owned()), ..Default::default() };
    let error = client.set_agent_settings(Some(&session), wrong).await.unwrap_err();
    assert!(error.to_string().contains("scenario"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("EDITOR_CODE")), "{:?}", error.hint());
    let settings = client.agent_settings(Some(&session)).await.unwrap();
    assert_eq!(settings.settings.scenario, "CODE", "nothing changed");
    let (scenarios, problems) = client.list_scenarios().await.unwrap();
    assert!(scenarios.iter().any(|scenario| scenario.name == "ASK" && scenario.read_only), "{scenarios:?}");
    assert!(problems.is_empty(), "{problems:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cleared_session_has_no_history() {
    let model = ModelServer::start([Turn::says("secret")]);
    let scene = Scene::new();
    let engine = scene.serve_with_model(model.url());
    let client = engine.verdict_client();
    let session = start(&client).await;
    rest(invoke(&client, &session, "Hi").await).await;
    client.clear_agent_session(&session).await.unwrap();
    assert_eq!(client.conversation(&session, 0, 0, None).await.unwrap().blocks, []);
    assert!(client.list_agent_sessions(0).await.unwrap().is_empty());
}
