//! Upstream responses, and their effect on the request.

use std::io::Write as _;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use sayso_proxy::Settings;
use sayso_proxy::interceptor::OneShot;
use sayso_review::{RequestMode, RequestStatus};
use sayso_testkit::model::{Answer, ModelServer, Turn};
use sayso_wire::stream::Api;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::scene::{NEVER, Scene, body, next_turn, settings, text_path, turn};

const API: Api = Api::AnthropicMessages;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

/// A scene without a grace period: a held stream gets its status at once.
async fn held(model: ModelServer) -> Scene {
    let settings = Settings { grace: Duration::ZERO, keep_alive: NEVER, ..settings() };
    let scene = Scene::new(settings, model).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_with_another_key_keeps_edit() {
    for (status, once) in [(401, false), (401, true), (403, false), (407, true)] {
        let model = ModelServer::start([]);
        model.then(Answer::error(status, "your login is over"));
        model.then(Turn::says("hello"));
        let scene = Scene::new(settings(), model).await;
        if once {
            scene.interceptor.arm(Some("s1"), OneShot::Pause);
        } else {
            scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
        }
        let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
        scene.set(id, text_path(API), "edited");
        scene.resume(id);
        assert_eq!(sent.answer().await.status(), status);
        let again = scene.send(scene.request(API, &turn(API, "hi"))).await;
        assert!(body(again).await.contains("hello"));
        let received = scene.model.received();
        assert!(String::from_utf8_lossy(&received[1].raw).contains("edited"), "after {status}");
        assert_eq!(received[0].raw, received[1].raw);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_error_is_forwarded_verbatim() {
    let said = b"{ \"error\":  {\"type\" : \"odd\", \"message\":\"no \\u00e9\"}}\r\n\n".to_vec();
    for (api, paused) in Api::ALL.into_iter().flat_map(|api| [(api, false), (api, true)]) {
        for (status, packed) in [(400, false), (401, false), (404, true), (429, false), (500, true), (529, false)] {
            let model = ModelServer::start([]);
            let wire = if packed { gzip(&said) } else { said.clone() };
            let answer = Answer::status(status, wire.clone()).header("x-should-retry", "true");
            let answer = answer.header("retry-after", "17").header("request-id", "req_1");
            model.then(if packed { answer.header("content-encoding", "gzip") } else { answer });
            let scene = Scene::new(settings(), model).await;
            let request = scene.request(api, &turn(api, "hi"));
            let answer = if paused {
                scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
                let (id, sent) = scene.paused(request).await;
                scene.resume(id);
                sent.answer().await
            } else {
                scene.send(request).await
            };
            assert_eq!(answer.status(), status);
            for (name, value) in [("x-should-retry", "true"), ("retry-after", "17"), ("request-id", "req_1")] {
                assert_eq!(answer.headers()[name], value, "{api:?} {status}");
            }
            assert_eq!(answer.headers().get("content-encoding").is_some(), packed);
            let came = answer.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(came, wire, "{api:?} {status}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn started_stream_decompresses_unrequested_encoding() {
    let events = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let model = ModelServer::start([]);
    let stream = Answer::status(200, gzip(events.as_bytes())).header("content-type", "text/event-stream");
    model.then(stream.header("content-encoding", "gzip"));
    model.then(Answer::status(400, gzip(b"{\"error\":\"too odd\"}")).header("content-encoding", "gzip"));
    model.then(Answer::status(200, "????").header("content-encoding", "something"));
    let scene = held(model).await;
    let mut said = Vec::new();
    for turn_of in ["one", "two", "three"] {
        let (id, sent) = scene.paused(scene.request(API, &turn(API, turn_of))).await;
        let answer = sent.answer().await;
        scene.resume(id);
        said.push(body(answer).await);
    }
    let ping = std::str::from_utf8(API.keep_alive()).unwrap();
    assert_eq!(said[0], format!("{ping}{events}"));
    assert!(said[1].contains("too odd"), "{}", said[1]);
    assert!(said[2].contains("cannot decompress") && !said[2].contains("????"), "{}", said[2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn started_stream_does_not_retry_final_errors() {
    for (name, value) in [("x-should-retry", "false"), ("retry-after", "86400")] {
        let model = ModelServer::start([]);
        model.then(Answer::error(429, "your quota is used up").header(name, value));
        let scene = held(model).await;
        let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
        let answer = sent.answer().await;
        scene.resume(id);
        let said = body(answer).await;
        assert!(said.contains("your quota is used up") && said.contains("429"), "{said}");
        assert_eq!(scene.model.received().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn opaque_request_has_no_size_limit() {
    let model = ModelServer::start([]);
    model.when(|_| true, Answer::status(200, "kept"));
    let scene = Scene::new(Settings { max_body_size: 1_000, ..settings() }, model).await;
    let upload = Request::post(scene.url("openai/v1/files")).body(Full::from(vec![7; 5_000])).unwrap();
    let answer = scene.send(upload).await;
    assert_eq!((answer.status(), body(answer).await.as_str()), (StatusCode::OK, "kept"));
    assert_eq!(scene.model.received()[0].raw.len(), 5_000);
    let large = scene.send(scene.request(API, &turn(API, &"x".repeat(5_000)))).await;
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_section_stays_deleted_after_compaction() {
    let api = Api::OpenAiResponses;
    let model = ModelServer::start([]);
    model.when(|received| received.path().ends_with("/compact"), Answer::status(200, r#"{"output":[]}"#));
    let scene = Scene::new(settings(), model).await;
    scene.interceptor.set_mode(None, Some(RequestMode::AutoOverride));
    let first = turn(api, "the secret plan");
    let (id, sent) = scene.paused(scene.request(api, &first)).await;
    scene.set(id, text_path(api), "the plan");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let mut compact = scene.request(api, &next_turn(api, &first, "more"));
    *compact.uri_mut() = scene.url("openai/v1/responses/compact").parse().unwrap();
    let _ = body(scene.send(compact).await).await;
    let received = scene.model.received();
    assert_eq!(received[1].path(), "/v1/responses/compact");
    let said = String::from_utf8_lossy(&received[1].raw);
    assert!(said.contains("the plan") && !said.contains("secret"), "{said}");
    assert_eq!(scene.status(2), RequestStatus::Answered);
    // A token count is forwarded although every turn is held.
    let mut count = scene.request(api, &turn(api, "another"));
    *count.uri_mut() = scene.url("openai/v1/responses/input_tokens").parse().unwrap();
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let _ = body(scene.send(count).await).await;
    assert_eq!(scene.model.received().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn gemini_json_stream_gets_no_early_status() {
    let model = ModelServer::start([]);
    model.when(|_| true, Answer::status(200, "[{}]").header("content-type", "application/json"));
    let scene = held(model).await;
    let mut request = scene.request(Api::Gemini, &turn(Api::Gemini, "hi"));
    *request.uri_mut() = scene.url("gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent").parse().unwrap();
    let (id, sent) = scene.paused(request).await;
    // An event stream that was sent later has its status already.
    let (_other, with_events) = scene.paused(scene.request_of("s2", Api::Gemini, &turn(Api::Gemini, "ho"))).await;
    assert_eq!(with_events.answer().await.status(), 200);
    assert!(!sent.0.is_finished());
    scene.resume(id);
    let answer = sent.answer().await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(body(answer).await, "[{}]");
}

#[tokio::test(flavor = "multi_thread")]
async fn expect_is_answered_and_connection_headers_stop() {
    let model = ModelServer::start([]);
    model.then(
        Answer::status(200, "{}").header("connection", "x-private").header("x-private", "1").header("x-kept", "1"),
    );
    let scene = Scene::new(settings(), model).await;
    let url: http::Uri = scene.url("anthropic/v1/messages").parse().unwrap();
    let mut stream = tokio::net::TcpStream::connect(url.authority().unwrap().as_str()).await.unwrap();
    let body = turn(API, "hi").to_string();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\nconnection: x-hop\r\nx-hop: 1\r\nte: trailers\r\nx-end: 1\r\nexpect: 100-continue\r\n\
         x-claude-code-session-id: s1\r\ncontent-length: {}\r\n\r\n",
        url.path(),
        url.authority().unwrap(),
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = vec![0; 1 << 16];
    let size = stream.read(&mut read).await.unwrap();
    assert!(read[..size].starts_with(b"HTTP/1.1 100 Continue\r\n\r\n"), "{}", String::from_utf8_lossy(&read[..size]));
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    while !answer.ends_with("{}") {
        let size = stream.read(&mut read).await.unwrap();
        assert_ne!(size, 0, "{answer}");
        answer.push_str(std::str::from_utf8(&read[..size]).unwrap());
    }
    assert!(answer.contains("x-kept: 1") && !answer.contains("x-private"), "{answer}");
    let received = &scene.model.received()[0];
    assert_eq!(received.header("x-end"), Some("1"));
    for name in ["x-hop", "te", "expect"] {
        assert_eq!(received.header(name), None, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_request_gets_no_overrides() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::AutoOverride));
    let first = turn(API, "before");
    let (id, sent) = scene.paused(scene.request(API, &first)).await;
    scene.set(id, text_path(API), "after");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    for in_query in [false, true] {
        let mut request = scene.request(API, &first);
        if in_query {
            *request.uri_mut() = scene.url("anthropic/v1/messages?X-Amz-Signature=1").parse().unwrap();
        } else {
            request.headers_mut().insert("authorization", "AWS4-HMAC-SHA256 Credential=x".parse().unwrap());
        }
        let _ = body(scene.send(request).await).await;
        let received = scene.model.received().pop().unwrap();
        assert_eq!(received.body, first, "it would be refused with another body");
    }
    let _ = body(scene.send(scene.request(API, &first)).await).await;
    assert_ne!(scene.model.received().pop().unwrap().body, first);
    assert_eq!(scene.model.received().len(), 4);
}
