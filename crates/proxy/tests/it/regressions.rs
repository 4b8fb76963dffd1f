//! Regressions: one test for each fixed defect.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};
use sayso_proxy::interceptor::{ExpectedRevision, ModeSwitch, OneShot, ResumeReport};
use sayso_proxy::{ReplayForm, Settings, Upstream};
use sayso_review::{PauseReason, RequestEnd, RequestMode};
use sayso_testkit::model::{Answer, Latch, ModelServer};
use sayso_wire::stream::Api;
use sayso_wire::{CaptureCounts, Scope};
use serde_json::{Value, json};

use crate::scene::{Scene, body, next_turn, now, settings, text_path, turn};

const API: Api = Api::AnthropicMessages;

async fn scene(mode: RequestMode) -> Scene {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(mode));
    scene
}

fn got(scene: &Scene) -> Value {
    scene.model.received().pop().unwrap().body
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_is_forwarded_after_mode_off() {
    for session in [None, Some("s1")] {
        let scene = scene(RequestMode::InterceptAlways).await;
        let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
        sent.disconnect();
        scene.until("its client is gone", || scene.end(id) == Some(RequestEnd::ClientGone)).await;
        scene.interceptor.set_mode(session, Some(RequestMode::Off));
        let answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
        assert_eq!(answer.status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn token_count_and_probe_supersede_no_turn() {
    let scene = scene(RequestMode::InterceptAlways).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    let mut count = scene.request(API, &turn(API, "hi"));
    *count.uri_mut() = scene.url("anthropic/v1/messages/count_tokens").parse().unwrap();
    let _ = body(scene.send(count).await).await;
    let mut probe = turn(API, "hi");
    probe.as_object_mut().unwrap().remove("tools");
    let _ = body(scene.send(scene.request(API, &probe)).await).await;
    assert_eq!(scene.interceptor.held(), [id]);
    // The next turn supersedes it.
    let next = next_turn(API, &turn(API, "hi"), "more");
    let (next, waits) = scene.paused(scene.request(API, &next)).await;
    assert_eq!(sent.answer().await.status(), 400);
    assert_eq!(scene.end(id), Some(RequestEnd::Superseded { by: next }));
    waits.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_pause_next_holds_at_next_engine() {
    for (once, why) in [(OneShot::Pause, PauseReason::NextTurn), (OneShot::Capture, PauseReason::Capture)] {
        let scene = scene(RequestMode::Off).await;
        scene.interceptor.arm(None, once);
        let (_, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
        let next = scene.again(settings()).await;
        assert_eq!(sent.answer().await.status(), 503);
        let (id, sent) = next.paused(next.request(API, &turn(API, "hi"))).await;
        assert_eq!(next.interceptor.record(id).unwrap().paused, Some(why));
        sent.disconnect();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn save_on_resume_applies_to_every_reason() {
    let rule = sayso_proxy::PauseRule { name: "all".to_owned(), ..Default::default() };
    for (mode, rules, why, switched) in [
        (RequestMode::InterceptAlways, Vec::new(), PauseReason::Capture, None),
        (
            RequestMode::Off,
            Vec::new(),
            PauseReason::Capture,
            Some(ModeSwitch { mode: RequestMode::AutoOverride, scope: Scope::Session }),
        ),
        (RequestMode::AutoOverride, vec![rule], PauseReason::Rule { rule: "all".to_owned() }, None),
    ] {
        let scene = Scene::new(Settings { rules, ..settings() }, ModelServer::start([])).await;
        scene.interceptor.set_mode(None, Some(mode));
        scene.interceptor.arm(Some("s1"), OneShot::Capture);
        let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
        assert_eq!(scene.interceptor.record(id).unwrap().paused, Some(why));
        scene.set(id, text_path(API), "after");
        let resumed = scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap();
        assert_eq!(resumed, ResumeReport { captured: CaptureCounts { saved: 1, removed: 0 }, switched, turn_edits: 0 });
        let _ = body(sent.answer().await).await;
        assert_eq!(scene.interceptor.overrides(Some("s1")).unwrap().len(), 1);
        assert!(!scene.interceptor.effective(Some("s1")).capture_next);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_keeps_save_on_resume() {
    let scene = scene(RequestMode::AutoOverride).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(id, text_path(API), "after");
    sent.disconnect();
    scene.until("its client is gone", || scene.end(id) == Some(RequestEnd::ClientGone)).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    assert_eq!(scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap().captured.saved, 1);
    let _ = body(sent.answer().await).await;
    assert_eq!(got(&scene), turn(API, "after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_that_invalidate_request_are_skipped() {
    let scene = scene(RequestMode::AutoOverride).await;
    let calling = |input: &str| {
        let mut request = turn(API, "hi");
        request["messages"].as_array_mut().unwrap().extend([
            json!({"role": "assistant", "content": [{"type": "text", "text": "ok"},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": input}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "long"},
                {"type": "text", "text": "go on"}]}),
        ]);
        request
    };
    let (id, sent) = scene.paused(scene.request(API, &calling("a"))).await;
    for at in ["messages[1].content[1]", "messages[2].content[0]"] {
        let at = sayso_proxy::interceptor::EditTarget::Path(at.to_owned());
        scene
            .interceptor
            .edit(
                id,
                &sayso_proxy::interceptor::Edit::Delete { at },
                sayso_proxy::interceptor::ApplyScope::ThisRequest,
                now(),
            )
            .unwrap();
    }
    assert_eq!(scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap().captured.saved, 2);
    let _ = body(sent.answer().await).await;
    // With another call id, the override would delete the result alone, which the API rejects.
    let _ = body(scene.send(scene.request(API, &calling("b"))).await).await;
    assert_eq!(got(&scene), calling("b"));
    let record = scene.interceptor.records(None, None, 1).unwrap().remove(0);
    assert_eq!((record.overrides.applied.len(), record.overrides.skipped.len()), (0, 2));
    assert!(
        record.overrides.skipped.iter().any(|edit| edit
            .reason
            .as_deref()
            .unwrap_or_default()
            .contains("would be rejected")),
        "{:?}",
        record.overrides
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_body_is_rejected_while_pausing() {
    let scene = scene(RequestMode::InterceptAlways).await;
    let request = || {
        let request = http::Request::post(scene.url("anthropic/v1/messages")).header("x-claude-code-session-id", "s1");
        request.body(http_body_util::Full::from("no JSON")).unwrap()
    };
    let answer = scene.send(request()).await;
    assert_eq!(answer.status(), 400);
    let text = body(answer).await;
    assert!(text.contains("sayso request mode normal") && text.contains("invalid_request_error"), "{text}");
    assert!(matches!(scene.end(1), Some(RequestEnd::Denied { .. })));
    assert_eq!(scene.model.received().len(), 0);
    scene.interceptor.set_mode(None, Some(RequestMode::Off));
    let _ = scene.send(request()).await;
    assert_eq!(scene.model.received().len(), 1, "the upstream says what is wrong with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_has_no_deadline() {
    let scene = scene(RequestMode::InterceptAlways).await;
    for (stream, has) in [(true, false), (false, true)] {
        let mut body = turn(API, "hi");
        body["stream"] = stream.into();
        let mut request = scene.request(API, &body);
        request.headers_mut().insert("x-stainless-timeout", "600".parse().unwrap());
        let (id, sent) = scene.paused(request).await;
        let deadline = scene.interceptor.view(id, |view| view.hold.unwrap().deadline).unwrap();
        assert_eq!(deadline.is_some(), has);
        sent.disconnect();
    }
}

/// An upstream that answers one request with raw bytes.
fn upstream(answer: &'static [u8]) -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 8 << 10]).unwrap();
        stream.write_all(answer).unwrap();
    });
    Upstream::new(format!("http://{address}").parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn response_with_trailers_is_complete() {
    const ANSWER: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\ntrailer: x-t\r\n\r\n\
        d\r\n{\"content\":[]\r\n1\r\n}\r\n0\r\nx-t: 1\r\n\r\n";
    for hold_tools in [Vec::new(), vec!["*".to_owned()]] {
        let mut settings = Settings { hold_tools, ..settings() };
        settings.upstreams.insert("own".to_owned(), upstream(ANSWER));
        let scene = Scene::new(settings, ModelServer::start([])).await;
        let mut request = scene.request(API, &turn(API, "hi"));
        *request.uri_mut() = scene.url("own/v1/messages").parse().unwrap();
        assert_eq!(body(scene.send(request).await).await, r#"{"content":[]}"#);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_array_stream_is_held_until_calls_decided() {
    let part = r#"{"functionCall": {"name": "Write", "args": {"file_path": "a.txt"}}}"#;
    let first = format!(r#"[{{"candidates": [{{"content": {{"parts": [{part}]}}}}]}}"#);
    let last = r#", {"candidates": [{"content": {"parts": [{"text": "hm"}]}, "finishReason": "STOP"}]}]"#;
    let model = ModelServer::start([]);
    let gate = Latch::closed();
    let chunks = [first, last.to_owned()].map(String::into_bytes).concat();
    let answer = Answer::status(200, chunks).header("content-type", "application/json").in_chunks_of(40);
    model.then(answer.paced_by(&gate));
    let scene = Scene::new(Settings { hold_tools: vec!["*".to_owned()], ..settings() }, model).await;
    gate.open();
    let mut request = scene.request(Api::Gemini, &turn(Api::Gemini, "hi"));
    *request.uri_mut() = scene.url("gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent").parse().unwrap();
    let mut answer = scene.send(request).await;
    scene.until("a call waits", || !scene.gate.pending_changes().unwrap().is_empty()).await;
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), answer.frame()).await;
    assert!(early.is_err(), "{early:?}");
    scene.gate.withdraw(1, now()).unwrap();
    let rest = answer.into_body().collect().await;
    assert!(rest.is_err() || !String::from_utf8_lossy(&rest.unwrap().to_bytes()).contains("functionCall"));
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_chunked_upload_gets_error() {
    for mode in [RequestMode::Off, RequestMode::InterceptAlways] {
        let scene = Scene::new(Settings { max_body_size: 10_000, ..settings() }, ModelServer::start([])).await;
        scene.interceptor.set_mode(None, Some(mode));
        let chunks = (0..100).map(|_| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(vec![b' '; 1_000]))));
        let request = http::Request::post(scene.url("anthropic/v1/messages")).header("x-claude-code-session-id", "s1");
        let request = request.body(StreamBody::new(futures::stream::iter(chunks))).unwrap();
        let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
        let answer = client.request(request).await.unwrap();
        assert_eq!(answer.status(), 413, "{mode:?}");
        assert!(body(answer).await.contains("max_body_size"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn query_key_is_replayed_but_not_recorded() {
    let scene = scene(RequestMode::Off).await;
    let mut request = scene.request(Api::Gemini, &turn(Api::Gemini, "hi"));
    let url = "gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse&key=sk-in-the-query";
    *request.uri_mut() = scene.url(url).parse().unwrap();
    request.headers_mut().remove("x-api-key");
    let _ = body(scene.send(request).await).await;
    scene.proxy.replay(1, ReplayForm::AsSent).await.unwrap();
    let paths: Vec<String> = scene.model.received().into_iter().map(|received| received.target).collect();
    assert_eq!(paths.len(), 2);
    assert!(paths.iter().all(|path| path.ends_with("?alt=sse&key=sk-in-the-query")), "{paths:?}");
    scene.interceptor.stop();
    for file in std::fs::read_dir(scene.state()).unwrap().flatten().filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        for secret in [&b"sk-in-the-query"[..], b"sk-secret-1"] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", file.path().display());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_of_held_request_has_current_edits() {
    let scene = scene(RequestMode::InterceptAlways).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(id, text_path(API), "after");
    scene.proxy.replay(id, ReplayForm::AsSent).await.unwrap();
    assert_eq!(got(&scene), turn(API, "after"));
    scene.proxy.replay(id, ReplayForm::AsReceived).await.unwrap();
    assert_eq!(got(&scene), turn(API, "before"));
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_response_is_forwarded_and_recorded_decoded() {
    let plain = r#"{"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 3, "output_tokens": 4}}"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let model = ModelServer::start([]);
    let answer = Answer::status(200, gzip.clone()).header("content-type", "application/json");
    model.then(answer.header("content-encoding", "gzip"));
    let scene = Scene::new(settings(), model).await;
    let answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), gzip);
    let answer = scene.interceptor.record(1).unwrap().answer.unwrap();
    assert_eq!(scene.gate.read(|history| history.body(&answer.body)).unwrap(), plain.as_bytes());
    assert_eq!(answer.usage.output, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_override_write_keeps_request_held() {
    // A file in place of the folder makes the write fail.
    let scene = scene(RequestMode::AutoOverride).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(id, text_path(API), "after");
    std::fs::write(scene.state().join("overrides"), "in the way").unwrap();
    assert!(scene.interceptor.resume(id, ExpectedRevision::Any, now()).is_err());
    assert!(scene.interceptor.save_overrides(id, Scope::Workspace, now()).is_err());
    assert_eq!(scene.interceptor.held(), [id]);
    std::fs::remove_file(scene.state().join("overrides")).unwrap();
    assert_eq!(scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap().captured.saved, 1);
    let _ = body(sent.answer().await).await;
}
