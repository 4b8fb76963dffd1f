//! Requests whose headers name no session: streamed, and attributed by their bodies.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use sayso_review::RequestMode;
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::stream::Api;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::{Scene, body, path, settings, turn};

/// A request without a session header.
fn unmarked(scene: &Scene, api: Api, request: &str) -> Request<Full<Bytes>> {
    let sent = Request::post(scene.url(path(api))).header("user-agent", "own-client/1").header("x-api-key", "sk-1");
    sent.body(Full::from(request.to_owned())).unwrap()
}

/// The session that a request is recorded with.
fn session(scene: &Scene, number: u64) -> String {
    scene.interceptor.record(number).unwrap().received.origin.session.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn unnamed_session_body_is_streamed() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let upstream = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", upstream.local_addr().unwrap());
    let upstreams = BTreeMap::from([("anthropic".to_owned(), url)]);
    let endpoint = scene.proxy.endpoints.open(None, upstreams).unwrap();
    let whole = turn(Api::AnthropicMessages, &"said first ".repeat(30_000)).to_string();
    let (beginning, rest) = whole.split_at(whole.len() / 2);
    let mut client = TcpStream::connect(scene.address()).await.unwrap();
    let head = format!(
        "POST /p/{}/anthropic/v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n",
        endpoint.capability,
        whole.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(beginning.as_bytes()).await.unwrap();
    // The other half is written only after the upstream has read the first one.
    let (mut stream, _) = upstream.accept().await.unwrap();
    let mut received = Vec::new();
    while !received.ends_with(beginning.as_bytes()) {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
    }
    client.write_all(rest.as_bytes()).await.unwrap();
    while !received.ends_with(rest.as_bytes()) {
        assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"{}") {
        assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0);
    }
    let record = scene.interceptor.record(1).unwrap();
    let kept = scene.gate.read(|history| history.body(&record.received.body)).unwrap();
    assert!(kept == whole.as_bytes() && !record.received.body.truncated);
    assert!(record.received.model.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn unnamed_session_has_same_id_when_held() {
    for api in Api::ALL {
        for padding in [1, 2_000] {
            let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
            let first = turn(api, &"said first ".repeat(padding)).to_string();
            for number in 1..=2 {
                assert_eq!(scene.send(unmarked(&scene, api, &first)).await.status(), 200);
                let _ = scene.interceptor.record(number).unwrap();
            }
            let other = turn(api, &"said by another ".repeat(padding)).to_string();
            let _ = body(scene.send(unmarked(&scene, api, &other)).await).await;
            assert_eq!(session(&scene, 1), session(&scene, 2), "{api:?}");
            assert_ne!(session(&scene, 1), session(&scene, 3), "{api:?}");
            scene.interceptor.set_mode(Some(&session(&scene, 1)), Some(RequestMode::InterceptAlways));
            let (id, sent) = scene.paused(unmarked(&scene, api, &first)).await;
            assert_eq!(session(&scene, id), session(&scene, 1), "{api:?}");
            scene.resume(id);
            let _ = body(sent.answer().await).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_in_metadata_is_read_from_tail() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let request = |session: &str| {
        let said = "said first ".repeat(30_000);
        format!(
            r#"{{"messages":[{{"role":"user","content":"{said}"}}],"model":"m","max_tokens":9,"metadata":{{"user_id":"user_1_session_{session}"}}}}"#
        )
    };
    for session in ["one", "two"] {
        let _ = body(scene.send(unmarked(&scene, Api::AnthropicMessages, &request(session))).await).await;
    }
    assert_eq!([session(&scene, 1), session(&scene, 2)], ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn growing_unnamed_history_is_recorded_exactly() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let mut messages = vec![json!({"role": "system", "content": "guide ".repeat(4_000)})];
    messages.push(json!({"role": "user", "content": "said first ".repeat(4_000)}));
    let mut sent = Vec::new();
    for turn in 0..12 {
        messages.push(json!({"role": "assistant", "content": format!("step {turn} ").repeat(300)}));
        messages.push(json!({"role": "user", "content": format!("go on {turn}")}));
        // In the member order of OpenAI's Python SDK.
        let model = if turn % 5 == 4 { "small" } else { "large" };
        let request = format!(r#"{{"messages":{},"model":"{model}","stream":false}}"#, Value::from(messages.clone()));
        let _ = body(scene.send(unmarked(&scene, Api::OpenAiChat, &request)).await).await;
        sent.push((request, model));
    }
    for ((request, model), number) in sent.iter().zip(1..) {
        let record = scene.interceptor.record(number).unwrap();
        let kept = scene.gate.read(|history| history.body(&record.received.body)).unwrap();
        assert!(kept == request.as_bytes(), "request {number}");
        assert_eq!(record.received.model.as_deref(), Some(*model), "request {number}");
        assert_eq!(session(&scene, number), session(&scene, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_call_of_unnamed_session_is_captured() {
    let call = Turn::calls("Write", json!({"file_path": "a.txt", "content": "new"}));
    let scene = Scene::new(settings(), ModelServer::start([call])).await;
    std::fs::write(scene.root.path().join("a.txt"), "old").unwrap();
    let request = turn(Api::OpenAiChat, "change it").to_string();
    let _ = body(scene.send(unmarked(&scene, Api::OpenAiChat, &request)).await).await;
    let events = scene.gate.read(|history| history.events(None, 0, 1_000)).unwrap();
    let captured = events.into_iter().find_map(|recorded| match recorded.body {
        sayso_review::EventBody::Known(sayso_review::Event::SnapshotCaptured(snapshot)) => snapshot.session,
        _ => None,
    });
    assert_eq!(captured, Some(session(&scene, 1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn path_with_dot_segments_is_rejected() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    for path in ["anthropic/v1/../messages", "anthropic/%2e%2e/v1/messages", "anthropic/..%2fv1/messages"] {
        let request = Request::post(scene.url(path)).body(Full::default()).unwrap();
        assert_eq!(scene.send(request).await.status(), 400, "{path}");
    }
    assert_eq!(scene.model.received().len(), 0);
}
