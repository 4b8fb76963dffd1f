//! Large requests, which are recorded after their response has started.

use sayso_review::{RequestEnd, RequestStatus};
use sayso_testkit::model::{Answer, Latch, ModelServer, Turn};
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use crate::scene::{Scene, body, next_turn, settings, turn};

const API: Api = Api::AnthropicMessages;

fn large() -> Value {
    turn(API, &"said before ".repeat(60_000))
}

/// Asserts that the recorded body equals the sent one.
fn assert_whole(scene: &Scene, number: u64, sent: &Value) {
    let record = scene.interceptor.record(number).unwrap();
    assert!(!record.received.body.truncated, "request {number}");
    let kept = scene.gate.read(|history| history.body(&record.received.body)).unwrap();
    assert!(kept == sent.to_string().as_bytes(), "request {number}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_request_is_recorded_before_its_response() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let (mut request, mut expected) = (large(), Vec::new());
    for number in 1..=12 {
        request = next_turn(API, &request, &format!("and {number}"));
        request["stream"] = json!(number % 2 == 0);
        let answer = scene.send(scene.request(API, &request)).await;
        assert_eq!(answer.status(), 200);
        body(answer).await;
        expected.extend(["received", "sent", "answered"].map(|step| format!("{number} {step}")));
        assert_eq!(scene.story(), expected);
        assert_whole(&scene, number, &request);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_request_is_recorded_while_response_pends() {
    let gate = Latch::closed();
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.model.then(Answer::from(Turn::says("at last")).held_by(&gate));
    let sent = tokio::spawn(scene.client.request(scene.request(API, &large())));
    // Reading the record would flush the recorder.
    let recorded = || scene.gate.read(|history| history.requests(None, None, 9)).unwrap();
    scene.until("it is on record", || recorded().first().is_some_and(|it| it.status == RequestStatus::Sent)).await;
    assert_whole(&scene, 1, &large());
    gate.open();
    body(sent.await.unwrap().unwrap()).await;
    assert_eq!(scene.story(), ["1 received", "1 sent", "1 answered"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_large_request_follows_its_entry() {
    let gate = Latch::closed();
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.model.then(Answer::hang_up());
    let answer = scene.send(scene.request(API, &large())).await;
    assert_eq!(answer.status(), 502);
    scene.until("it is on record", || scene.story() == ["1 received", "1 sent", "1 ended"]).await;
    assert!(matches!(scene.end(1), Some(RequestEnd::Failed { .. })));

    scene.model.then(Answer::from(Turn::says("too late")).held_by(&gate));
    let sent = tokio::spawn(scene.client.request(scene.request(API, &large())));
    scene.model.until(|received| received.len() == 2).await;
    sent.abort();
    scene.until("it is on record", || scene.story()[3..] == ["2 received", "2 sent", "2 ended"]).await;
    assert_eq!(scene.end(2), Some(RequestEnd::ClientGone));
    assert_whole(&scene, 2, &large());
}
