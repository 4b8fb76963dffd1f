//! Broken connections, limits and invalid data: clean ends, and a correct record.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use sayso_proxy::Settings;
use sayso_review::{RequestEnd, RequestMode, RequestStatus};
use sayso_testkit::model::{Answer, Delivery, Latch, ModelServer, Turn};
use sayso_wire::stream::Api;

use crate::scene::{NEVER, Scene, Sent, body, settings, turn};

const API: Api = Api::AnthropicMessages;

#[tokio::test(flavor = "multi_thread")]
async fn held_stream_delays_no_other_of_64() {
    let model = ModelServer::start([]);
    let gate = Latch::closed();
    model.when(|_| true, Answer::from(Turn::says("hello")).paced_by(&gate));
    let scene = Scene::new(settings(), model).await;
    scene.interceptor.set_mode(Some("paused"), Some(RequestMode::InterceptAlways));
    let (_, waits) = scene.paused(scene.request_of("paused", API, &turn(API, "hi"))).await;
    let others: Vec<_> = (0..63)
        .map(|number| {
            let request = scene.request_of(&format!("s{number}"), API, &turn(API, "hi"));
            let client = scene.client.clone();
            tokio::spawn(async move { body(client.request(request).await.unwrap()).await })
        })
        .collect();
    scene.model.until(|received| received.len() == 63).await;
    gate.open();
    for other in others {
        assert!(other.await.unwrap().contains("hello"));
    }
    assert_eq!(scene.interceptor.held().len(), 1);
    waits.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn response_chunks_are_forwarded_immediately() {
    let model = ModelServer::start([]);
    let gate = Latch::closed();
    model.then(Answer::stream(["data: one\n\n", "data: two\n\n"]).paced_by(&gate));
    let scene = Scene::new(settings(), model).await;
    gate.release(1);
    let mut answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    let first = answer.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "data: one\n\n");
    gate.open();
    assert_eq!(body(answer).await, "data: two\n\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_upstream_stream_breaks_for_client() {
    for mode in [RequestMode::Off, RequestMode::InterceptAlways] {
        for grace in [NEVER, Duration::ZERO] {
            let model = ModelServer::start([]);
            model.then(Answer::from(Turn::says("a long answer")).in_chunks_of(40).cut_after(4));
            let scene = Scene::new(Settings { grace, ..settings() }, model).await;
            scene.interceptor.set_mode(None, Some(mode));
            let request = scene.request(API, &turn(API, "hi"));
            let answer = if mode == RequestMode::Off {
                scene.send(request).await
            } else {
                let (id, sent) = scene.paused(request).await;
                if grace.is_zero() {
                    let answer = sent.answer().await;
                    scene.resume(id);
                    answer
                } else {
                    scene.resume(id);
                    sent.answer().await
                }
            };
            assert!(answer.into_body().collect().await.is_err());
            let mut record = None;
            scene
                .until("it is recorded", || {
                    record = Some(scene.interceptor.record(1).unwrap());
                    record.as_ref().is_some_and(|record| record.status == RequestStatus::Answered)
                })
                .await;
            let recorded = record.unwrap().answer.unwrap();
            assert!(recorded.body.truncated && recorded.problem.unwrap().contains("cut off"));
            let kept = scene.gate.read(|history| history.body(&recorded.body)).unwrap();
            assert!(!kept.is_empty() && kept.starts_with(b"event:"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_events_are_forwarded_verbatim() {
    let model = ModelServer::start([]);
    model.then(Answer::stream(["data: {\"type\":\n\n", "\u{feff}:::\n\n", "data: [1,2\n\n"]));
    let scene = Scene::new(settings(), model).await;
    let answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(body(answer).await, "data: {\"type\":\n\n\u{feff}:::\n\ndata: [1,2\n\n");
    let answer = scene.interceptor.record(1).unwrap().answer.unwrap();
    assert!(answer.problem.unwrap().contains("JSON"));
}

#[tokio::test(flavor = "multi_thread")]
async fn client_disconnect_cancels_upstream_request() {
    for grace in [NEVER, Duration::ZERO] {
        let model = ModelServer::start([]);
        let gate = Latch::closed();
        model.then(Answer::from(Turn::says("hello")).paced_by(&gate));
        let scene = Scene::new(Settings { grace, ..settings() }, model).await;
        if grace.is_zero() {
            scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
            let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
            let mut answer = sent.answer().await;
            scene.resume(id);
            scene.model.until(|received| received.len() == 1).await;
            let _ = answer.frame().await;
            drop(answer);
        } else {
            gate.release(1);
            let mut answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
            let _ = answer.frame().await;
            drop(answer);
        }
        scene.model.until(|received| received[0].delivery() == Delivery::ClientGone).await;
        scene.until("it is recorded", || scene.status(1) != RequestStatus::Sent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn early_client_disconnect_is_recorded() {
    for (mode, grace) in [
        (RequestMode::Off, NEVER),
        (RequestMode::InterceptAlways, NEVER),
        (RequestMode::InterceptAlways, Duration::ZERO),
    ] {
        let (model, gate) = (ModelServer::start([]), Latch::closed());
        model.then(Answer::from(Turn::says("hello")).held_by(&gate));
        let scene = Scene::new(Settings { grace, ..settings() }, model).await;
        scene.interceptor.set_mode(None, Some(mode));
        let request = scene.request(API, &turn(API, "hi"));
        let sent = if mode == RequestMode::Off {
            let client = scene.client.clone();
            Sent(tokio::spawn(async move { client.request(request).await.unwrap() }))
        } else {
            let (id, sent) = scene.paused(request).await;
            if grace.is_zero() {
                // After the grace there is an answer, without anything of the upstream's in it.
                let answer = sent.answer().await;
                scene.resume(id);
                Sent(tokio::spawn(async move { answer }))
            } else {
                scene.resume(id);
                sent
            }
        };
        scene.model.until(|received| received.len() == 1).await;
        if grace.is_zero() {
            drop(sent.answer().await);
        } else {
            sent.disconnect();
        }
        scene.model.until(|received| received[0].delivery() == Delivery::ClientGone).await;
        scene.until("it is recorded", || scene.end(1) == Some(RequestEnd::ClientGone)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_stop_is_recorded_as_cause() {
    let (model, gate) = (ModelServer::start([]), Latch::closed());
    model.then(Answer::from(Turn::says("hello")).paced_by(&gate));
    model.then(Answer::from(Turn::says("hello")).held_by(&gate));
    let scene = Scene::new(settings(), model).await;
    gate.release(1);
    let mut answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    let _ = answer.frame().await;
    let (client, request) = (scene.client.clone(), scene.request(API, &turn(API, "again")));
    let unanswered = Sent(tokio::spawn(async move { client.request(request).await.unwrap() }));
    scene.model.until(|received| received.len() == 2).await;
    scene.interceptor.stop();
    drop(answer);
    unanswered.disconnect();
    scene.until("both are recorded", || [1, 2].map(|id| scene.status(id) != RequestStatus::Sent) == [true; 2]).await;
    let problem = scene.interceptor.record(1).unwrap().answer.unwrap().problem.unwrap();
    assert_eq!(problem, "sayso stopped before the end of the answer");
    let Some(RequestEnd::Failed { message }) = scene.end(2) else { panic!("{:?}", scene.end(2)) };
    assert_eq!(message, "sayso stopped before there was an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_request_is_rejected_while_pausing() {
    let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
    let request = || {
        let request = Request::post(scene.url("anthropic/v1/messages")).header("content-encoding", "gzip, gzip");
        request.body(Full::from("no gzip")).unwrap()
    };
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let answer = scene.send(request()).await;
    assert_eq!(answer.status(), 400);
    let text = body(answer).await;
    assert!(text.contains("gzip, gzip") && text.contains("sayso request mode normal"), "{text}");
    assert_eq!(scene.model.received().len(), 0);
    // In passthrough mode the upstream reports the problem.
    scene.interceptor.set_mode(None, Some(RequestMode::Off));
    let _ = scene.send(request()).await;
    assert_eq!(scene.model.received()[0].raw, "no gzip");
}

#[tokio::test(flavor = "multi_thread")]
async fn base_url_with_version_is_held() {
    let model = ModelServer::start([Turn::says("hello")]);
    let mut settings = settings();
    let base = format!("{}/v1", model.url()).parse().unwrap();
    settings.upstreams.insert("versioned".to_owned(), sayso_proxy::Upstream::new(base));
    let scene = Scene::new(settings, model).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    for path in ["versioned/messages", "anthropic/v1/messages", "anthropic/v1/messages//"] {
        let request = Request::post(scene.url(path)).body(Full::from(turn(API, path).to_string())).unwrap();
        let (id, sent) = scene.paused(request).await;
        scene.interceptor.cancel(id, crate::scene::now()).unwrap();
        assert_eq!(sent.answer().await.status(), 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_upstream_is_named_in_error() {
    let model = ModelServer::start([]);
    let mut settings = settings();
    settings.upstreams.insert("nowhere".to_owned(), sayso_proxy::Upstream::new("http://127.0.0.1:1".parse().unwrap()));
    let scene = Scene::new(settings, model).await;
    let request = Request::post(scene.url("nowhere/v1/messages")).header("x-claude-code-session-id", "s");
    let answer = scene.send(request.body(Full::from(turn(API, "hi").to_string())).unwrap()).await;
    assert_eq!(answer.status(), 502);
    let text = body(answer).await;
    assert!(text.contains("could not reach 127.0.0.1:1") && text.contains("nowhere"), "{text}");
    assert!(matches!(scene.end(1), Some(RequestEnd::Failed { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_capability_and_upstream_are_rejected() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let url =
        scene.url("anthropic/v1/messages").replace(&scene.endpoint.capability, "0123456789abcdef0123456789abcdef");
    for (url, status, says) in [
        (url, 401, "sayso run"),
        (scene.url("mistral/v1/messages"), 404, "[upstream.mistral]"),
        (scene.url("").replace(&format!("{}/", scene.endpoint.capability), "x"), 404, "/p/<capability>/<upstream>"),
    ] {
        let answer = scene.send(Request::post(url).body(Full::default()).unwrap()).await;
        assert_eq!(answer.status(), status);
        let text = body(answer).await;
        assert!(text.contains(says), "{text}");
    }
    assert_eq!(scene.model.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn websocket_upgrade_falls_back_to_http() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let request = Request::get(scene.url("openai/v1/responses"))
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA==");
    let answer = scene.send(request.body(Full::default()).unwrap()).await;
    assert_eq!(answer.status(), 426);
    assert_eq!(scene.model.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_request_error_names_setting() {
    let scene = Scene::new(Settings { max_body_size: 1_000, ..settings() }, ModelServer::start([])).await;
    for mode in [RequestMode::Off, RequestMode::InterceptAlways] {
        scene.interceptor.set_mode(None, Some(mode));
        let answer = scene.send(scene.request(API, &turn(API, &"x".repeat(2_000)))).await;
        assert_eq!(answer.status(), 413);
        assert!(body(answer).await.contains("max_body_size"));
    }
    // The limit applies to the decompressed size, too.
    let packed = zstd::encode_all(&vec![b' '; 1 << 20][..], 1).unwrap();
    let request = || {
        let mut request = scene.request(API, &turn(API, "hi"));
        *request.body_mut() = Full::from(Bytes::from(packed.clone()));
        request.headers_mut().insert("content-encoding", "zstd".parse().unwrap());
        request
    };
    let answer = scene.send(request()).await;
    assert_eq!(answer.status(), 400);
    let text = body(answer).await;
    assert!(text.contains("more than 1000 bytes"), "{text}");
    assert_eq!(scene.model.received().len(), 0);
    scene.interceptor.set_mode(None, Some(RequestMode::Off));
    let _ = body(scene.send(request()).await).await;
    assert_eq!(scene.model.received().pop().unwrap().raw, packed);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_concurrency_limit_get_503() {
    let model = ModelServer::start([]);
    let gate = Latch::closed();
    model.when(|_| true, Answer::from(Turn::says("hello")).held_by(&gate));
    let scene = Scene::new(Settings { max_concurrent: 1, ..settings() }, model).await;
    let (client, request) = (scene.client.clone(), scene.request(API, &turn(API, "hi")));
    let first = tokio::spawn(async move { client.request(request).await.unwrap() });
    scene.model.until(|received| received.len() == 1).await;
    let second = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!((second.status().as_u16(), second.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
    gate.open();
    assert!(body(first.await.unwrap()).await.contains("hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_reader_receives_complete_response() {
    let model = ModelServer::start([]);
    let long = "word ".repeat(200_000);
    model.then(Turn::says(&long));
    let scene = Scene::new(settings(), model).await;
    let mut answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    let mut size = 0;
    while let Some(frame) = answer.frame().await {
        size += frame.unwrap().data_ref().map_or(0, Bytes::len);
        tokio::task::yield_now().await;
    }
    assert!(size > long.len());
    let recorded = scene.interceptor.record(1).unwrap().answer.unwrap();
    assert_eq!(recorded.body.size, size as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_request_rejects_edits() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let mut request = scene.request(API, &turn(API, "hi"));
    request.headers_mut().insert("authorization", "AWS4-HMAC-SHA256 Credential=x".parse().unwrap());
    let (id, sent) = scene.paused(request).await;
    let edit = sayso_proxy::interceptor::Edit::Append { text: "more".to_owned() };
    let error = scene.interceptor.edit(id, &edit, sayso_proxy::interceptor::ApplyScope::ThisRequest, 1).unwrap_err();
    assert!(error.to_string().contains("is signed"), "{error}");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(scene.model.received()[0].raw, turn(API, "hi").to_string().as_bytes());
}
