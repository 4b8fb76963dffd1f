//! What goes wrong on the way: clean ends, nothing leaked, and a record that is true.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use sayso_proxy::Settings;
use sayso_review::{RequestEnd, RequestMode, RequestStatus};
use sayso_testkit::model::{Answer, Fate, Gate, ModelServer, Turn};
use sayso_wire::stream::Api;

use crate::scene::{NEVER, Scene, Sent, body, settings, turn};

const API: Api = Api::AnthropicMessages;

#[tokio::test(flavor = "multi_thread")]
async fn pausing_one_of_64_streams_delays_none_of_the_others() {
    let model = ModelServer::start([]);
    let gate = Gate::shut();
    model.when(|_| true, Answer::from(Turn::says("hello")).paced_by(&gate));
    let scene = Scene::new(settings(), model).await;
    scene.desk.set_mode(Some("paused"), Some(RequestMode::InterceptAlways));
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
    assert_eq!(scene.desk.waiting().len(), 1);
    waits.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_passed_on_as_they_come() {
    let model = ModelServer::start([]);
    let gate = Gate::shut();
    model.then(Answer::stream(["data: one\n\n", "data: two\n\n"]).paced_by(&gate));
    let scene = Scene::new(settings(), model).await;
    gate.let_through(1);
    let mut answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    let first = answer.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "data: one\n\n");
    gate.open();
    assert_eq!(body(answer).await, "data: two\n\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_is_cut_for_the_client_too_and_recorded_as_such() {
    for mode in [RequestMode::Off, RequestMode::InterceptAlways] {
        for grace in [NEVER, Duration::ZERO] {
            let model = ModelServer::start([]);
            model.then(Answer::from(Turn::says("a long answer")).in_chunks_of(40).cut_after(4));
            let scene = Scene::new(Settings { grace, ..settings() }, model).await;
            scene.desk.set_mode(None, Some(mode));
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
                    record = Some(scene.desk.record(1).unwrap());
                    record.as_ref().is_some_and(|record| record.status == RequestStatus::Answered)
                })
                .await;
            let recorded = record.unwrap().answer.unwrap();
            assert!(recorded.body.cut && recorded.problem.unwrap().contains("cut off"));
            let kept = scene.gate.read(|history| history.body(&recorded.body)).unwrap();
            assert!(!kept.is_empty() && kept.starts_with(b"event:"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_events_are_passed_on_as_they_are() {
    let model = ModelServer::start([]);
    model.then(Answer::stream(["data: {\"type\":\n\n", "\u{feff}:::\n\n", "data: [1,2\n\n"]));
    let scene = Scene::new(settings(), model).await;
    let answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(body(answer).await, "data: {\"type\":\n\n\u{feff}:::\n\ndata: [1,2\n\n");
    let answer = scene.desk.record(1).unwrap().answer.unwrap();
    assert!(answer.problem.unwrap().contains("JSON"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_cancels_the_upstream() {
    for grace in [NEVER, Duration::ZERO] {
        let model = ModelServer::start([]);
        let gate = Gate::shut();
        model.then(Answer::from(Turn::says("hello")).paced_by(&gate));
        let scene = Scene::new(Settings { grace, ..settings() }, model).await;
        if grace.is_zero() {
            scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
            let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
            let mut answer = sent.answer().await;
            scene.resume(id);
            scene.model.until(|received| received.len() == 1).await;
            let _ = answer.frame().await;
            drop(answer);
        } else {
            gate.let_through(1);
            let mut answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
            let _ = answer.frame().await;
            drop(answer);
        }
        scene.model.until(|received| received[0].fate() == Fate::ClientGone).await;
        scene.until("it is recorded", || scene.status(1) != RequestStatus::Sent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_before_the_answer_begins_is_recorded() {
    for (mode, grace) in [
        (RequestMode::Off, NEVER),
        (RequestMode::InterceptAlways, NEVER),
        (RequestMode::InterceptAlways, Duration::ZERO),
    ] {
        let (model, gate) = (ModelServer::start([]), Gate::shut());
        model.then(Answer::from(Turn::says("hello")).waits_at(&gate));
        let scene = Scene::new(Settings { grace, ..settings() }, model).await;
        scene.desk.set_mode(None, Some(mode));
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
            sent.gone();
        }
        scene.model.until(|received| received[0].fate() == Fate::ClientGone).await;
        scene.until("it is recorded", || scene.end(1) == Some(RequestEnd::ClientGone)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_off_because_the_engine_stops_is_not_said_to_be_the_agents_doing() {
    let (model, gate) = (ModelServer::start([]), Gate::shut());
    model.then(Answer::from(Turn::says("hello")).paced_by(&gate));
    model.then(Answer::from(Turn::says("hello")).waits_at(&gate));
    let scene = Scene::new(settings(), model).await;
    gate.let_through(1);
    let mut answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    let _ = answer.frame().await;
    let (client, request) = (scene.client.clone(), scene.request(API, &turn(API, "again")));
    let unanswered = Sent(tokio::spawn(async move { client.request(request).await.unwrap() }));
    scene.model.until(|received| received.len() == 2).await;
    scene.desk.stop();
    drop(answer);
    unanswered.gone();
    scene.until("both are recorded", || [1, 2].map(|id| scene.status(id) != RequestStatus::Sent) == [true; 2]).await;
    let problem = scene.desk.record(1).unwrap().answer.unwrap().problem.unwrap();
    assert_eq!(problem, "sayso stopped before the end of the answer");
    let Some(RequestEnd::Failed { message }) = scene.end(2) else { panic!("{:?}", scene.end(2)) };
    assert_eq!(message, "sayso stopped before there was an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_not_sent_where_something_may_have_to_wait() {
    let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
    let request = || {
        let request = Request::post(scene.url("anthropic/v1/messages")).header("content-encoding", "gzip, gzip");
        request.body(Full::from("no gzip")).unwrap()
    };
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let answer = scene.send(request()).await;
    assert_eq!(answer.status(), 400);
    let text = body(answer).await;
    assert!(text.contains("gzip, gzip") && text.contains("sayso request mode normal"), "{text}");
    assert_eq!(scene.model.received().len(), 0);
    // Otherwise the upstream says what is wrong with it.
    scene.desk.set_mode(None, Some(RequestMode::Off));
    let _ = scene.send(request()).await;
    assert_eq!(scene.model.received()[0].raw, "no gzip");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_where_the_upstreams_address_has_the_version() {
    let model = ModelServer::start([Turn::says("hello")]);
    let mut settings = settings();
    let base = format!("{}/v1", model.url()).parse().unwrap();
    settings.upstreams.insert("versioned".to_owned(), sayso_proxy::Upstream::new(base));
    let scene = Scene::new(settings, model).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    for path in ["versioned/messages", "anthropic/v1/messages", "anthropic/v1/messages//"] {
        let request = Request::post(scene.url(path)).body(Full::from(turn(API, path).to_string())).unwrap();
        let (id, sent) = scene.paused(request).await;
        scene.desk.cancel(id, crate::scene::now()).unwrap();
        assert_eq!(sent.answer().await.status(), 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_not_there_is_named() {
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
async fn unknown_addresses_and_upstreams_are_refused_with_what_to_do() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let url =
        scene.url("anthropic/v1/messages").replace(&scene.entrance.capability, "0123456789abcdef0123456789abcdef");
    for (url, status, says) in [
        (url, 401, "sayso run"),
        (scene.url("mistral/v1/messages"), 404, "[upstream.mistral]"),
        (scene.url("").replace(&format!("{}/", scene.entrance.capability), "x"), 404, "/p/<capability>/<upstream>"),
    ] {
        let answer = scene.send(Request::post(url).body(Full::default()).unwrap()).await;
        assert_eq!(answer.status(), status);
        let text = body(answer).await;
        assert!(text.contains(says), "{text}");
    }
    assert_eq!(scene.model.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_is_sent_back_to_http() {
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
async fn what_is_too_large_is_refused_with_the_setting_that_allows_it() {
    let scene = Scene::new(Settings { largest_body: 1_000, ..settings() }, ModelServer::start([])).await;
    for mode in [RequestMode::Off, RequestMode::InterceptAlways] {
        scene.desk.set_mode(None, Some(mode));
        let answer = scene.send(scene.request(API, &turn(API, &"x".repeat(2_000)))).await;
        assert_eq!(answer.status(), 413);
        assert!(body(answer).await.contains("largest_body"));
    }
    // A small one that grows when it is unpacked is not held in memory either.
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
    scene.desk.set_mode(None, Some(RequestMode::Off));
    let _ = body(scene.send(request()).await).await;
    assert_eq!(scene.model.received().pop().unwrap().raw, packed);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_at_once_are_told_to_come_again() {
    let model = ModelServer::start([]);
    let gate = Gate::shut();
    model.when(|_| true, Answer::from(Turn::says("hello")).waits_at(&gate));
    let scene = Scene::new(Settings { most_at_once: 1, ..settings() }, model).await;
    let (client, request) = (scene.client.clone(), scene.request(API, &turn(API, "hi")));
    let first = tokio::spawn(async move { client.request(request).await.unwrap() });
    scene.model.until(|received| received.len() == 1).await;
    let second = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!((second.status().as_u16(), second.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
    gate.open();
    assert!(body(first.await.unwrap()).await.contains("hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_slow_gets_everything() {
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
    let recorded = scene.desk.record(1).unwrap().answer.unwrap();
    assert_eq!(recorded.body.size, size as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_requests_refuse_edits() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let mut request = scene.request(API, &turn(API, "hi"));
    request.headers_mut().insert("authorization", "AWS4-HMAC-SHA256 Credential=x".parse().unwrap());
    let (id, sent) = scene.paused(request).await;
    let edit = sayso_proxy::desk::Edit::Append { text: "more".to_owned() };
    let error = scene.desk.edit(id, &edit, sayso_proxy::desk::FromNowOn::No, 1).unwrap_err();
    assert!(error.to_string().contains("is signed"), "{error}");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(scene.model.received()[0].raw, turn(API, "hi").to_string().as_bytes());
}
