//! Clients of held requests, within and beyond the grace period.

use std::time::Duration;

use http_body_util::BodyExt as _;
use sayso_proxy::interceptor::{ApplyScope, Edit, EditTarget, ExpectedRevision};
use sayso_proxy::{Retry, Settings, Upstream};
use sayso_review::{ErrorKind, RequestEnd, RequestMode, RequestStatus, Resumer};
use sayso_testkit::model::{Answer, ModelServer, Turn};
use sayso_wire::stream::{Api, collect};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use crate::scene::{NEVER, Scene, body, next_turn, now, settings, text_path, turn};

/// A scene in which every turn is held, with a grace period.
async fn pausing(grace: Duration, model: ModelServer) -> Scene {
    let settings = Settings { grace, keep_alive: Duration::from_millis(5), ..settings() };
    let scene = Scene::new(settings, model).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_within_grace_forwards_upstream_response() {
    for api in Api::ALL {
        let model = ModelServer::start([]);
        model.then(Answer::from(Turn::says("hello")).header("x-request-number", "7"));
        let scene = pausing(NEVER, model).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        assert_eq!(scene.model.received().len(), 0);
        assert_eq!(scene.status(id), RequestStatus::Paused);
        scene.resume(id);
        let answer = sent.answer().await;
        assert_eq!(answer.headers().get("x-request-number").unwrap(), "7");
        assert!(body(answer).await.contains("hello"));
        assert_eq!(scene.story(), ["mode", "1 received", "1 paused", "1 resumed", "1 sent", "1 answered"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_beyond_grace_sends_keep_alives_then_response() {
    for api in Api::ALL {
        let scene = pausing(Duration::ZERO, ModelServer::start([Turn::says("hello")])).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let mut answer = sent.answer().await;
        assert_eq!(answer.status(), 200);
        let mut came = Vec::new();
        for _ in 0..3 {
            came.extend_from_slice(answer.frame().await.unwrap().unwrap().data_ref().unwrap());
        }
        assert!(came.starts_with(api.keep_alive()), "{api:?}");
        assert_eq!(scene.model.received().len(), 0);
        scene.set(id, text_path(api), "edited");
        scene.resume(id);
        came.extend_from_slice(body(answer).await.as_bytes());
        let read = collect::from_stream(api, &came);
        assert!(read.problems.is_empty() && read.error.is_none(), "{api:?} {read:?}");
        assert!(format!("{:?}", read.blocks).contains("hello"), "{api:?}");
        assert!(String::from_utf8_lossy(&scene.model.received()[0].raw).contains("edited"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_before_status_rejects_retries() {
    for api in Api::ALL {
        let scene = pausing(NEVER, ModelServer::start([Turn::says("never")])).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        scene.interceptor.cancel(id, now()).unwrap();
        let answer = sent.answer().await;
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.headers().get("x-should-retry").unwrap(), "false");
        assert!(body(answer).await.contains("Request canceled before sending"), "{api:?}");
        // The client's retry is rejected without asking again.
        let again = scene.send(scene.request(api, &turn(api, "hi"))).await;
        assert_eq!(again.status(), 400);
        assert_eq!(scene.end(2), Some(RequestEnd::CanceledBefore));
        assert_eq!(scene.model.received().len(), 0);
        assert_eq!(scene.end(id), Some(RequestEnd::Canceled));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_after_status_ends_stream_with_error() {
    for api in Api::ALL {
        let scene = pausing(Duration::ZERO, ModelServer::start([Turn::says("never")])).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let answer = sent.answer().await;
        assert_eq!(answer.status(), 200);
        scene.interceptor.cancel(id, now()).unwrap();
        let text = body(answer).await;
        assert!(text.contains("Request canceled before sending"), "{api:?} {text}");
        assert_eq!(scene.model.received().len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_before_status_is_forwarded_to_client() {
    for (api, status) in [(Api::AnthropicMessages, 529), (Api::OpenAiResponses, 429)] {
        let model = ModelServer::start([]);
        model.then(Answer::error(status, "busy").header("retry-after", "9"));
        model.then(Turn::says("hello"));
        let scene = pausing(NEVER, model).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        scene.set(id, text_path(api), "edited");
        scene.resume(id);
        let answer = sent.answer().await;
        assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].as_bytes()), (status, &b"9"[..]));
        assert!(body(answer).await.contains("busy"));
        let again = scene.send(scene.request(api, &turn(api, "hi"))).await;
        assert!(body(again).await.contains("hello"));
        let received = scene.model.received();
        assert_eq!(received.len(), 2);
        assert_eq!(received[0].raw, received[1].raw, "the retry has the edit");
        // After the response, an equal request is a new one.
        let (third, _sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        assert_eq!(scene.status(third), RequestStatus::Paused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_after_status_is_retried() {
    for api in Api::ALL {
        let model = ModelServer::start([]);
        model.then(Answer::error(529, "busy"));
        model.then(Answer::error(429, "busy").header("retry-after", "0"));
        model.then(Turn::says("hello"));
        let scene = pausing(Duration::ZERO, model).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let answer = sent.answer().await;
        scene.resume(id);
        assert!(body(answer).await.contains("hello"), "{api:?}");
        assert_eq!(scene.model.received().len(), 3);
        let record = scene.interceptor.record(id).unwrap();
        assert_eq!((record.answer.unwrap().retries, record.upstream_retry.map(|retry| retry.attempts)), (2, Some(2)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retrying_request_is_recorded_and_cancellable() {
    for api in Api::ALL {
        let model = ModelServer::start([]);
        model.then(Answer::error(529, "busy").header("retry-after-ms", "1"));
        model.then(Answer::error(503, "busy").header("retry-after", "200"));
        let scene = pausing(Duration::ZERO, model).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let answer = sent.answer().await;
        scene.resume(id);
        let retry = || scene.interceptor.record(id).unwrap().upstream_retry;
        scene.until("two attempts failed", || retry().is_some_and(|retry| retry.attempts == 2)).await;
        let retry = retry().unwrap();
        assert_eq!((retry.status, retry.message.as_str()), (Some(503), "the upstream answered 503"));
        assert!(retry.next_attempt_ms > now() + 100_000, "{retry:?}");
        assert_eq!(scene.status(id), RequestStatus::Sent);
        scene.interceptor.cancel(id, now()).unwrap();
        let said = body(answer).await;
        assert!(said.contains("Request canceled before sending"), "{api:?} {said}");
        let record = scene.interceptor.record(id).unwrap();
        assert_eq!((record.ended, record.upstream_retry), (Some(RequestEnd::Canceled), Some(retry)));
        assert!(scene.interceptor.cancel(id, now()).is_err(), "the request has ended");
        // The client's retry is rejected without asking again.
        let again = scene.send(scene.request(api, &turn(api, "hi"))).await;
        assert_eq!(again.status(), 400);
        assert_eq!(scene.model.received().len(), 2);
        let told = ["received", "paused", "resumed", "sent", "upstream retry", "upstream retry", "ended"];
        let of_it: Vec<String> = told.iter().map(|step| format!("{id} {step}")).collect();
        assert_eq!(
            scene.story().into_iter().filter(|line| line.starts_with(&format!("{id} "))).collect::<Vec<_>>(),
            of_it
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unanswered_request_after_status_is_cancellable() {
    let api = Api::OpenAiResponses;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = Settings { grace: Duration::ZERO, keep_alive: NEVER, ..settings() };
    let base = format!("http://{}", silent.local_addr().unwrap());
    settings.upstreams.insert("silent".to_owned(), Upstream::new(base.parse().unwrap()));
    let scene = Scene::new(settings, ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let mut request = scene.request(api, &turn(api, "hi"));
    *request.uri_mut() = scene.url("silent/v1/responses").parse().unwrap();
    let (id, sent) = scene.paused(request).await;
    let answer = sent.answer().await;
    scene.resume(id);
    let (mut connection, _) = silent.accept().await.unwrap();
    let mut read = [0; 64];
    assert_ne!(connection.read(&mut read).await.unwrap(), 0, "the request was sent");
    scene.interceptor.cancel(id, now()).unwrap();
    assert!(body(answer).await.contains("Request canceled before sending"));
    assert_eq!(scene.end(id), Some(RequestEnd::Canceled));
    // The upstream connection is closed.
    while connection.read(&mut read).await.is_ok_and(|count| count > 0) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn unreachable_upstream_is_retried_after_status() {
    let api = Api::OpenAiChat;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = free.local_addr().unwrap();
    drop(free);
    let retry = Retry { times: 9, first: NEVER, longest: NEVER };
    let mut settings = Settings { grace: Duration::ZERO, keep_alive: NEVER, retry, ..settings() };
    settings.upstreams.insert("gone".to_owned(), Upstream::new(format!("http://{unused}").parse().unwrap()));
    let scene = Scene::new(settings, ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let mut request = scene.request(api, &turn(api, "hi"));
    *request.uri_mut() = scene.url("gone/v1/chat/completions").parse().unwrap();
    let (id, sent) = scene.paused(request).await;
    let answer = sent.answer().await;
    scene.resume(id);
    let retry = || scene.interceptor.record(id).unwrap().upstream_retry;
    scene.until("an attempt failed", || retry().is_some()).await;
    let retry = retry().unwrap();
    assert_eq!((retry.attempts, retry.status), (1, None));
    assert!(retry.message.contains("refused"), "{retry:?}");
    // A disconnect of the client ends the retries.
    drop(answer);
    scene.until("the request ends", || scene.end(id) == Some(RequestEnd::ClientGone)).await;
    assert!(scene.interceptor.cancel(id, now()).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_do_not_interrupt_keep_alives() {
    let model = ModelServer::start([]);
    for _ in 0..3 {
        // Each delay is shorter than the keep-alive interval.
        model.then(Answer::error(529, "busy").header("retry-after-ms", "40"));
    }
    model.then(Turn::says("hello"));
    let settings = Settings { grace: Duration::ZERO, keep_alive: Duration::from_millis(60), ..settings() };
    let scene = Scene::new(settings, model).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let api = Api::AnthropicMessages;
    let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
    let mut answer = sent.answer().await;
    // The first event starts the stream; the events after `resume` are counted.
    assert!(answer.frame().await.unwrap().unwrap().data_ref().unwrap().starts_with(api.keep_alive()));
    scene.resume(id);
    let said = body(answer).await;
    assert!(said.contains("hello"), "{said}");
    let before = said.split("message_start").next().unwrap();
    assert!(before.contains("ping"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_of_stale_revision_fails() {
    let api = Api::AnthropicMessages;
    let scene = pausing(NEVER, ModelServer::start([])).await;
    let (id, _sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
    let edit = |text: &str| Edit::Set { at: EditTarget::Path(text_path(api).to_owned()), value: text.to_owned() };
    let seen = |text: &str, seen| {
        scene.interceptor.edit_expecting(
            id,
            &edit(text),
            ExpectedRevision::Exactly(seen),
            ApplyScope::ThisRequest,
            now(),
        )
    };
    assert_eq!(seen("one", 0).unwrap().revision, 1);
    let error = seen("other", 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
    assert_eq!(seen("two", 1).unwrap().revision, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_error_after_status_ends_stream() {
    for api in Api::ALL {
        let model = ModelServer::start([]);
        model.then(Answer::error(403, "not for you"));
        let scene = pausing(Duration::ZERO, model).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let answer = sent.answer().await;
        scene.resume(id);
        let text = body(answer).await;
        assert!(text.contains("not for you"), "{api:?} {text}");
        assert!(text.contains("403"), "{api:?} {text}");
        assert_eq!(scene.interceptor.record(id).unwrap().answer.unwrap().status, 403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn non_streaming_hold_has_deadline_without_status() {
    let scene = pausing(Duration::ZERO, ModelServer::start([Turn::says("hello")])).await;
    let mut plain = turn(Api::AnthropicMessages, "hi");
    plain["stream"] = Value::Bool(false);
    let mut request = scene.request(Api::AnthropicMessages, &plain);
    request.headers_mut().insert("x-stainless-timeout", "600".parse().unwrap());
    let before = now();
    let (id, sent) = scene.paused(request).await;
    let deadline = scene.interceptor.record(id).unwrap().deadline.unwrap();
    assert!((before + 600_000..before + 660_000).contains(&deadline));
    scene.resume(id);
    let answer = sent.answer().await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert!(body(answer).await.contains("hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_stop_ends_held_requests() {
    for grace in [Duration::ZERO, NEVER] {
        let scene = pausing(grace, ModelServer::start([])).await;
        let api = Api::AnthropicMessages;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        scene.interceptor.stop();
        assert!(body(sent.answer().await).await.contains("sayso stopped"));
        assert_eq!(scene.end(id), Some(RequestEnd::EngineStopped));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hold_end_is_reported_before_and_after_status() {
    type End = fn(&Scene, Api);
    let ends: [(End, &str); 2] = [
        (
            |scene, _| assert_eq!(scene.interceptor.set_mode(None, Some(RequestMode::Off)), 1),
            "pausing was switched off",
        ),
        (|scene, _| scene.interceptor.end_session("s1"), "Context changed – request discarded"),
    ];
    for (api, grace) in Api::ALL.into_iter().flat_map(|api| [(api, Duration::ZERO), (api, NEVER)]) {
        for (end, message) in ends {
            let scene = pausing(grace, ModelServer::start([Turn::says("hello")])).await;
            let (_, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
            let answer = if grace.is_zero() {
                let answer = sent.answer().await;
                end(&scene, api);
                answer
            } else {
                end(&scene, api);
                sent.answer().await
            };
            assert_eq!(answer.status(), if grace.is_zero() { 200 } else { 400 });
            let said = body(answer).await;
            assert!(said.contains(message), "{api:?} {grace:?}: {said}");
            assert_eq!(scene.model.received().len(), 0);
        }
        // A superseded request.
        let scene = pausing(grace, ModelServer::start([Turn::says("hello")])).await;
        let first = turn(api, "hi");
        let (_, sent) = scene.paused(scene.request(api, &first)).await;
        let early = if grace.is_zero() { Ok(sent.answer().await) } else { Err(sent) };
        let (second, next) = scene.paused(scene.request(api, &next_turn(api, &first, "more"))).await;
        let answer = match early {
            Ok(answer) => answer,
            Err(sent) => sent.answer().await,
        };
        let said = body(answer).await;
        let message = format!("Request canceled before sending: superseded by request {second}");
        assert!(said.contains(&message), "{api:?} {grace:?}: {said}");
        next.disconnect();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_is_in_event_stream() {
    let model = ModelServer::start([]);
    model.then(Answer::error(529, "Overloaded"));
    model.then(Turn::says("hello"));
    let scene = pausing(NEVER, model).await;
    let api = Api::AnthropicMessages;
    let request = || scene.request(api, &turn(api, "hi"));
    let (first, sent) = scene.paused(request()).await;
    scene.set(first, text_path(api), "edited");
    scene.interceptor.edit(first, &Edit::Undo, ApplyScope::ThisRequest, now()).unwrap();
    sent.disconnect();
    scene.until("it ended", || scene.interceptor.held().is_empty()).await;
    let (second, sent) = scene.paused(request()).await;
    scene.resume(second);
    assert_eq!(sent.answer().await.status(), 529);
    // The retry of a resumed request is forwarded with the same edits.
    let _ = body(scene.send(request()).await).await;
    let (fourth, sent) = scene.paused(scene.request(api, &turn(api, "another"))).await;
    scene.interceptor.cancel(fourth, now()).unwrap();
    assert_eq!(sent.answer().await.status(), 400);
    let story = scene.story();
    let of = |number: u64| -> Vec<&str> {
        story.iter().filter_map(|told| told.strip_prefix(&format!("{number} "))).collect()
    };
    assert_eq!(of(1), ["received", "paused", "edited", "edited", "ended"]);
    assert_eq!(of(2), ["received", "paused", "resumed", "sent", "answered"]);
    assert_eq!(of(3), ["received", "resumed", "sent", "answered"]);
    assert_eq!(of(4), ["received", "paused", "ended"]);
    let record = |id| scene.interceptor.record(id).unwrap();
    assert_eq!((record(2).inherits, record(2).resumed), (Some(1), Some(Resumer::Person)));
    assert_eq!(record(3).resumed, Some(Resumer::Retry));
    assert_eq!(record(4).ended, Some(RequestEnd::Canceled));
}
