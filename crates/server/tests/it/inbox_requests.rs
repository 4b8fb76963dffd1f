//! The inbox shows held requests and the words of agents, to persons only.

use std::time::Duration;

use sayso_api::client::{AskMode, Client, InboxWatch, PreviewDetail, ProposeMode, Proposed, RetryBudget, Submission};
use sayso_api::inbox::InboxUpdate;
use sayso_api::proto::InboxItem;
use sayso_api::proto::oneof::inbox_item::Subject;
use sayso_review::{Answer, Intent, Origin, Performer, Rule, Ruling};
use sayso_server::agent_registry::AgentRegistry;
use sayso_testkit::model::{self, Latch, Turn};
use serde_json::json;

use crate::agents::{self, WAYS, assert_refused, call};
use crate::model_agent::{ModelAgent, SESSION};
use crate::scene::{Scene, ask, verdict, within, write};

fn origin(call: Option<&str>) -> Origin {
    Origin { session: Some(SESSION.to_owned()), call: call.map(str::to_owned), ..Origin::default() }
}

/// Proposes a change of the session that is left pending.
async fn propose(client: &Client, path: &str, call: Option<&str>) -> u64 {
    let proposed = client.propose(write(path, "text\n"), origin(call), ProposeMode::Ask, PreviewDetail::Omitted).await;
    proposed.unwrap().record.change
}

async fn items(client: &Client) -> Vec<InboxItem> {
    client.list_inbox(None).await.unwrap().items().to_vec()
}

async fn reasons(client: &Client) -> Vec<Option<String>> {
    items(client).await.into_iter().map(|item| item.agent_reason).collect()
}

/// Follows the inbox until an item with a key is new, or is gone.
async fn until(watch: &mut InboxWatch, expected: InboxUpdate) {
    within(&format!("{expected:?}"), async { while watch.next().await.unwrap() != expected {} }).await;
}

/// Follows the inbox until its items have these reasons. A response is recorded after the agent has received it.
async fn until_reasons(client: &Client, expected: &[Option<String>]) {
    let mut watch = client.watch_inbox(None, RetryBudget::Unlimited);
    let has_reasons = |watch: &InboxWatch| watch.list().items().iter().map(|item| &item.agent_reason).eq(expected);
    within(&format!("{expected:?}"), async {
        while !has_reasons(&watch) {
            drop(watch.next().await.unwrap());
        }
    })
    .await;
}

async fn pause_next(client: &Client) {
    client.pause_next(None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn held_request_is_listed_until_resumed() {
    let scene = Scene::new();
    let mut agent = ModelAgent::start(&scene, [Turn::says("I count the rows first."), Turn::says("12.")]).await;
    agent.prompt("Count the rows.");
    agent.send();
    let mut watch = agent.client.watch_inbox(None, RetryBudget::Unlimited);
    until(&mut watch, InboxUpdate::Listed).await;
    pause_next(&agent.client).await;
    agent.prompt("And?");
    let sent = agent.post("x-stainless-timeout: 600\r\n");
    until(&mut watch, InboxUpdate::Set { key: "request:2".to_owned() }).await;
    let item = watch.list().get("request:2").expect("an item").clone();
    assert!(matches!(&item.subject, Some(Subject::Request(subject)) if subject.request == 2), "{item:?}");
    assert_eq!(item.session.as_deref(), Some(SESSION));
    assert_eq!(item.agent.as_deref(), Some("claude"));
    assert_eq!(item.agent_reason.as_deref(), Some("I count the rows first."));
    assert!(item.deadline_ms.is_some_and(|deadline| deadline > item.since_ms + 500_000), "{item:?}");
    assert!(item.summary.contains("claude-sonnet-4-5"), "{}", item.summary);
    assert_eq!(items(&agent.client).await, std::slice::from_ref(&item));

    agent.client.resume_request(2, None).await.unwrap();
    until(&mut watch, InboxUpdate::Removed { key: "request:2".to_owned() }).await;
    assert_eq!(sent.answer().status, 200);
    assert!(items(&agent.client).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn request_of_disconnected_client_leaves_the_inbox() {
    let scene = Scene::new();
    let mut agent = ModelAgent::start(&scene, []).await;
    let mut watch = agent.client.watch_inbox(Some(SESSION), RetryBudget::Unlimited);
    until(&mut watch, InboxUpdate::Listed).await;
    pause_next(&agent.client).await;
    agent.prompt("Count the rows.");
    let sent = agent.post("");
    until(&mut watch, InboxUpdate::Set { key: "request:1".to_owned() }).await;
    drop(sent);
    until(&mut watch, InboxUpdate::Removed { key: "request:1".to_owned() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_cannot_read_the_inbox() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    ask(&client, write("a.txt", "text\n")).await;
    assert_eq!(items(&client).await.len(), 1);
    let registration = AgentRegistry::new(&scene.home()).register(None, &scene.journal()).unwrap();
    for way in WAYS {
        assert_refused(&call(&server, way, "ReviewService/ListInbox", "{}", &[]), &format!("{way:?}"));
    }
    for way in WAYS {
        let watch = agents::watch(&server, way, "ReviewService/WatchInbox");
        let said = String::from_utf8_lossy(&watch.stdout);
        assert!(said.contains("agent cannot decide") && !said.contains("a.txt"), "{way:?}: {watch:?}");
    }
    registration.unregister();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reason_is_the_text_of_the_response_with_the_call() {
    let scene = Scene::new();
    let script = [
        Turn::says("I add the file.").and_calls("Write", json!({"path": "a"})),
        Turn::calls("Write", json!({"path": "b"})),
        Turn::says("Both are written."),
    ];
    let mut agent = ModelAgent::start(&scene, script).await;
    agent.prompt("Write both.");
    agent.send();
    propose(&agent.client, "a", Some("toolu_1_0")).await;
    agent.prompt("Go on.");
    agent.send();
    propose(&agent.client, "b", Some("toolu_2_0")).await;
    agent.prompt("And?");
    agent.send();
    propose(&agent.client, "c", Some("toolu_1_0")).await;
    propose(&agent.client, "d", None).await;
    ask(&agent.client, write("e", "text\n")).await;
    let written = |text: &str| Some(text.to_owned());
    let (first, last) = (written("I add the file."), written("Both are written."));
    // The response with the second call has no text, so the one before it counts. A change without a session has no reason.
    let expected = [first.clone(), first.clone(), first, last, None];
    until_reasons(&agent.client, &expected).await;
    assert_eq!(reasons(&agent.client).await, expected);
    agent.running.end();
    let running = scene.serve();
    assert_eq!(reasons(&running.verdict_client()).await, expected, "after a restart");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn reason_follows_a_response_that_ends_later() {
    let scene = Scene::new();
    let mut agent = ModelAgent::start(&scene, []).await;
    let latch = Latch::closed();
    agent.model.then(model::Answer::from(Turn::says("I write it now.")).held_by(&latch));
    let mut watch = agent.client.watch_inbox(None, RetryBudget::Unlimited);
    until(&mut watch, InboxUpdate::Listed).await;
    agent.prompt("Write it.");
    let sent = agent.post("");
    agent.model.until(|requests| requests.len() == 1).await;
    propose(&agent.client, "a", Some("unknown")).await;
    let key = || "change:1".to_owned();
    until(&mut watch, InboxUpdate::Set { key: key() }).await;
    assert_eq!(watch.list().get("change:1").unwrap().agent_reason, None);
    latch.open();
    assert_eq!(sent.answer().status, 200);
    until(&mut watch, InboxUpdate::Set { key: key() }).await;
    assert_eq!(watch.list().get("change:1").unwrap().agent_reason.as_deref(), Some("I write it now."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turn_has_its_last_text() {
    let scene = Scene::new();
    let rules = vec![Rule { write: vec!["**".to_owned()], ..Rule::new(Ruling::Later) }];
    let mut agent = ModelAgent::start_in(scene.serve_under(rules), [Turn::says("The file is there.")]).await;
    agent.prompt("Write it.");
    agent.send();
    let origin = Origin { turn: Some("t".to_owned()), ..origin(None) };
    let mode = ProposeMode::Record;
    agent.client.propose(write("a", "text\n"), origin, mode, PreviewDetail::Omitted).await.unwrap();
    until_reasons(&agent.client, &[Some("The file is there.".to_owned())]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_without_a_text_has_its_description() {
    let scene = Scene::new();
    let server = scene.serve();
    let client = server.verdict_client();
    let submission = Submission {
        intent: Intent::RunCommand {
            command: "rm -rf build".to_owned(),
            directory: None,
            description: Some("Removes old output".to_owned()),
        },
        origin: origin(None),
        performer: Performer::Agent,
        deadline: None,
        schema: None,
        ask_mode: AskMode::Always,
    };
    client.submit(submission, PreviewDetail::Omitted).await.unwrap();
    assert_eq!(reasons(&client).await, [Some("Removes old output".to_owned())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_has_risk_notes_and_deadline() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("a.txt"), "one\r\ntwo\r\n").unwrap();
    let server = scene.serve_with_deadline(Duration::from_mins(10));
    let client = server.verdict_client();
    let deletion = json!({ "operation": "delete", "path": "a.txt" });
    let record = ask(&client, Proposed::Text(deletion.to_string().into_bytes())).await.record;
    let [item] = &items(&client).await[..] else { panic!() };
    assert_eq!((item.files, item.removed), (1, 2));
    assert_eq!(item.deadline_ms, record.deadline);
    let wait = item.deadline_ms.expect("a deadline") - item.since_ms;
    assert!((590_000..=610_000).contains(&wait), "{wait}");
    let secret = format!("key = \"{}\"\n", "AKIAIOSFODNN7EXAMPLE");
    ask(&client, write(".github/workflows/ci.yml", &secret)).await;
    let list = items(&client).await;
    let risky = list.iter().find(|item| item.key == "change:2").expect("an item");
    assert!(!risky.notes.is_empty(), "{risky:?}");
    let worst = risky
        .notes
        .iter()
        .map(|note| note.severity.as_known())
        .max_by_key(|severity| severity.map(|severity| severity as i32));
    assert_eq!(Some(risky.severity.as_known()), worst);
    client.decide(1, verdict(&record, Answer::Approve), None, PreviewDetail::Omitted).await.unwrap();
}
