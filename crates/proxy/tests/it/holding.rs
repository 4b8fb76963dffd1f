//! A client that waits, shorter and longer than the grace, and what it gets.

use std::time::Duration;

use http_body_util::BodyExt as _;
use sayso_proxy::desk::{Edit, Expected, FromNowOn, Place};
use sayso_proxy::{Retry, Settings, Upstream};
use sayso_review::{ErrorKind, RequestEnd, RequestMode, RequestStatus, Resumer};
use sayso_testkit::model::{Answer, ModelServer, Turn};
use sayso_wire::stream::{Api, collect};
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use crate::scene::{NEVER, Scene, body, next_turn, now, said_at, settings, turn};

/// A scene in which every turn waits, with so long a grace.
async fn pausing(grace: Duration, model: ModelServer) -> Scene {
    let settings = Settings { grace, keep_alive: Duration::from_millis(5), ..settings() };
    let scene = Scene::new(settings, model).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_resumed_in_time_gets_the_upstreams_own_answer() {
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
        assert_eq!(scene.story(), ["mode", "1 seen", "1 paused", "1 resumed", "1 sent", "1 answered"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_longer_gets_its_status_and_signs_of_life_and_then_the_answer() {
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
        scene.set(id, said_at(api), "edited");
        scene.resume(id);
        came.extend_from_slice(body(answer).await.as_bytes());
        let read = collect::from_stream(api, &came);
        assert!(read.problems.is_empty() && read.error.is_none(), "{api:?} {read:?}");
        assert!(format!("{:?}", read.blocks).contains("hello"), "{api:?}");
        assert!(String::from_utf8_lossy(&scene.model.received()[0].raw).contains("edited"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_cancelled_before_its_status_is_refused_for_good() {
    for api in Api::ALL {
        let scene = pausing(NEVER, ModelServer::start([Turn::says("never")])).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        scene.desk.cancel(id, now()).unwrap();
        let answer = sent.answer().await;
        assert_eq!(answer.status(), 400);
        assert_eq!(answer.headers().get("x-should-retry").unwrap(), "false");
        assert!(body(answer).await.contains("Request canceled before sending"), "{api:?}");
        // What the client sends again by itself asks nobody again.
        let again = scene.send(scene.request(api, &turn(api, "hi"))).await;
        assert_eq!(again.status(), 400);
        assert_eq!(scene.end(2), Some(RequestEnd::CanceledBefore));
        assert_eq!(scene.model.received().len(), 0);
        assert_eq!(scene.end(id), Some(RequestEnd::Canceled));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_cancelled_after_its_status_ends_in_the_stream() {
    for api in Api::ALL {
        let scene = pausing(Duration::ZERO, ModelServer::start([Turn::says("never")])).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let answer = sent.answer().await;
        assert_eq!(answer.status(), 200);
        scene.desk.cancel(id, now()).unwrap();
        let text = body(answer).await;
        assert!(text.contains("Request canceled before sending"), "{api:?} {text}");
        assert_eq!(scene.model.received().len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_status_an_overload_is_passed_on_as_it_is_and_what_comes_again_is_not_asked_about_again() {
    for (api, status) in [(Api::AnthropicMessages, 529), (Api::OpenAiResponses, 429)] {
        let model = ModelServer::start([]);
        model.then(Answer::error(status, "busy").header("retry-after", "9"));
        model.then(Turn::says("hello"));
        let scene = pausing(NEVER, model).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        scene.set(id, said_at(api), "edited");
        scene.resume(id);
        let answer = sent.answer().await;
        assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].as_bytes()), (status, &b"9"[..]));
        assert!(body(answer).await.contains("busy"));
        let again = scene.send(scene.request(api, &turn(api, "hi"))).await;
        assert!(body(again).await.contains("hello"));
        let received = scene.model.received();
        assert_eq!(received.len(), 2);
        assert_eq!(received[0].raw, received[1].raw, "the edit holds for what is sent again");
        // And once there is an answer, the same again is another one.
        let (third, _sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        assert_eq!(scene.status(third), RequestStatus::Paused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_status_an_overload_is_tried_again_by_us() {
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
        let record = scene.desk.record(id).unwrap();
        assert_eq!((record.answer.unwrap().retries, record.turned_away.map(|away| away.tried)), (2, Some(2)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_upstream_turned_away_is_shown_so_and_can_be_cancelled() {
    for api in Api::ALL {
        let model = ModelServer::start([]);
        model.then(Answer::error(529, "busy").header("retry-after-ms", "1"));
        model.then(Answer::error(503, "busy").header("retry-after", "200"));
        let scene = pausing(Duration::ZERO, model).await;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let answer = sent.answer().await;
        scene.resume(id);
        let away = || scene.desk.record(id).unwrap().turned_away;
        scene.until("it is turned away twice", || away().is_some_and(|away| away.tried == 2)).await;
        let away = away().unwrap();
        assert_eq!((away.status, away.message.as_str()), (Some(503), "the upstream answered 503"));
        assert!(away.again > now() + 100_000, "{away:?}");
        assert_eq!(scene.status(id), RequestStatus::Sent);
        scene.desk.cancel(id, now()).unwrap();
        let said = body(answer).await;
        assert!(said.contains("Request canceled before sending"), "{api:?} {said}");
        let record = scene.desk.record(id).unwrap();
        assert_eq!((record.ended, record.turned_away), (Some(RequestEnd::Canceled), Some(away)));
        assert!(scene.desk.cancel(id, now()).is_err(), "it is over");
        // Its client tries again, as some do; nobody is asked again, and nothing is sent.
        let again = scene.send(scene.request(api, &turn(api, "hi"))).await;
        assert_eq!(again.status(), 400);
        assert_eq!(scene.model.received().len(), 2);
        let told = ["seen", "paused", "resumed", "sent", "turned away", "turned away", "ended"];
        let of_it: Vec<String> = told.iter().map(|step| format!("{id} {step}")).collect();
        assert_eq!(
            scene.story().into_iter().filter(|line| line.starts_with(&format!("{id} "))).collect::<Vec<_>>(),
            of_it
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_status_one_that_the_upstream_does_not_answer_can_be_cancelled() {
    let api = Api::OpenAiResponses;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = Settings { grace: Duration::ZERO, keep_alive: NEVER, ..settings() };
    let base = format!("http://{}", silent.local_addr().unwrap());
    settings.upstreams.insert("silent".to_owned(), Upstream::new(base.parse().unwrap()));
    let scene = Scene::new(settings, ModelServer::start([])).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let mut request = scene.request(api, &turn(api, "hi"));
    *request.uri_mut() = scene.url("silent/v1/responses").parse().unwrap();
    let (id, sent) = scene.paused(request).await;
    let answer = sent.answer().await;
    scene.resume(id);
    let (mut connection, _) = silent.accept().await.unwrap();
    let mut read = [0; 64];
    assert_ne!(connection.read(&mut read).await.unwrap(), 0, "it was sent");
    scene.desk.cancel(id, now()).unwrap();
    assert!(body(answer).await.contains("Request canceled before sending"));
    assert_eq!(scene.end(id), Some(RequestEnd::Canceled));
    // And the upstream need not answer any more.
    while connection.read(&mut read).await.is_ok_and(|count| count > 0) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_turns_requests_away_too() {
    let api = Api::OpenAiChat;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let retry = Retry { times: 9, first: NEVER, longest: NEVER };
    let mut settings = Settings { grace: Duration::ZERO, keep_alive: NEVER, retry, ..settings() };
    settings.upstreams.insert("gone".to_owned(), Upstream::new(format!("http://{nobody}").parse().unwrap()));
    let scene = Scene::new(settings, ModelServer::start([])).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let mut request = scene.request(api, &turn(api, "hi"));
    *request.uri_mut() = scene.url("gone/v1/chat/completions").parse().unwrap();
    let (id, sent) = scene.paused(request).await;
    let answer = sent.answer().await;
    scene.resume(id);
    let away = || scene.desk.record(id).unwrap().turned_away;
    scene.until("it is turned away", || away().is_some()).await;
    let away = away().unwrap();
    assert_eq!((away.tried, away.status), (1, None));
    assert!(away.message.contains("refused"), "{away:?}");
    // Nor does one whose client goes away stay.
    drop(answer);
    scene.until("it has ended", || scene.end(id) == Some(RequestEnd::ClientGone)).await;
    assert!(scene.desk.cancel(id, now()).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_an_upstream_is_tried_again_and_again_the_client_hears_signs_of_life() {
    let model = ModelServer::start([]);
    for _ in 0..3 {
        // Each wait is shorter than what the client may be left without a sign of life.
        model.then(Answer::error(529, "busy").header("retry-after-ms", "40"));
    }
    model.then(Turn::says("hello"));
    let settings = Settings { grace: Duration::ZERO, keep_alive: Duration::from_millis(60), ..settings() };
    let scene = Scene::new(settings, model).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let api = Api::AnthropicMessages;
    let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
    let mut answer = sent.answer().await;
    // The first one says that there is a stream; those after it are counted from when it is sent on.
    assert!(answer.frame().await.unwrap().unwrap().data_ref().unwrap().starts_with(api.keep_alive()));
    scene.resume(id);
    let said = body(answer).await;
    assert!(said.contains("hello"), "{said}");
    let before = said.split("message_start").next().unwrap();
    assert!(before.contains("ping"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_what_somebody_has_seen_is_none_of_what_it_is_by_now() {
    let api = Api::AnthropicMessages;
    let scene = pausing(NEVER, ModelServer::start([])).await;
    let (id, _sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
    let edit = |text: &str| Edit::Set { at: Place::Path(said_at(api).to_owned()), value: text.to_owned() };
    let seen = |text: &str, seen| scene.desk.edit_seen(id, &edit(text), Expected::Version(seen), FromNowOn::No, now());
    assert_eq!(seen("one", 0).unwrap().revision, 1);
    let error = seen("other", 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stale, "{error}");
    assert_eq!(seen("two", 1).unwrap().revision, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_status_another_error_comes_in_the_stream_with_what_the_upstream_said() {
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
        assert_eq!(scene.desk.record(id).unwrap().answer.unwrap().status, 403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_wants_no_stream_waits_without_a_status_and_says_until_when() {
    let scene = pausing(Duration::ZERO, ModelServer::start([Turn::says("hello")])).await;
    let mut plain = turn(Api::AnthropicMessages, "hi");
    plain["stream"] = Value::Bool(false);
    let mut request = scene.request(Api::AnthropicMessages, &plain);
    request.headers_mut().insert("x-stainless-timeout", "600".parse().unwrap());
    let before = now();
    let (id, sent) = scene.paused(request).await;
    let deadline = scene.desk.record(id).unwrap().deadline.unwrap();
    assert!((before + 600_000..before + 660_000).contains(&deadline));
    scene.resume(id);
    let answer = sent.answer().await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert!(body(answer).await.contains("hello"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_stops_tells_those_who_wait() {
    for grace in [Duration::ZERO, NEVER] {
        let scene = pausing(grace, ModelServer::start([])).await;
        let api = Api::AnthropicMessages;
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        scene.desk.stop();
        assert!(body(sent.answer().await).await.contains("sayso stopped"));
        assert_eq!(scene.end(id), Some(RequestEnd::EngineStopped));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_ends_the_waiting_is_said_before_the_status_and_after_it() {
    type End = fn(&Scene, Api);
    let ends: [(End, &str); 2] = [
        (|scene, _| assert_eq!(scene.desk.set_mode(None, Some(RequestMode::Off)), 1), "pausing was switched off"),
        (|scene, _| scene.desk.session_over("s1"), "Context changed – request discarded"),
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
        // And one that another of its conversation came in place of.
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
        let message = format!("Request canceled before sending: request {second} came in its place");
        assert!(said.contains(&message), "{api:?} {grace:?}: {said}");
        next.gone();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_done_to_a_request_is_in_the_stream() {
    let model = ModelServer::start([]);
    model.then(Answer::error(529, "Overloaded"));
    model.then(Turn::says("hello"));
    let scene = pausing(NEVER, model).await;
    let api = Api::AnthropicMessages;
    let request = || scene.request(api, &turn(api, "hi"));
    let (first, sent) = scene.paused(request()).await;
    scene.set(first, said_at(api), "edited");
    scene.desk.edit(first, &Edit::Undo, FromNowOn::No, now()).unwrap();
    sent.gone();
    scene.until("it ended", || scene.desk.waiting().is_empty()).await;
    let (second, sent) = scene.paused(request()).await;
    scene.resume(second);
    assert_eq!(sent.answer().await.status(), 529);
    // What a person let go on goes on in the same way when it comes again.
    let _ = body(scene.send(request()).await).await;
    let (fourth, sent) = scene.paused(scene.request(api, &turn(api, "another"))).await;
    scene.desk.cancel(fourth, now()).unwrap();
    assert_eq!(sent.answer().await.status(), 400);
    let story = scene.story();
    let of = |number: u64| -> Vec<&str> {
        story.iter().filter_map(|told| told.strip_prefix(&format!("{number} "))).collect()
    };
    assert_eq!(of(1), ["seen", "paused", "edited", "edited", "ended"]);
    assert_eq!(of(2), ["seen", "paused", "resumed", "sent", "answered"]);
    assert_eq!(of(3), ["seen", "resumed", "sent", "answered"]);
    assert_eq!(of(4), ["seen", "paused", "ended"]);
    let record = |id| scene.desk.record(id).unwrap();
    assert_eq!((record(2).inherits, record(2).resumed), (Some(1), Some(Resumer::Person)));
    assert_eq!(record(3).resumed, Some(Resumer::Retry));
    assert_eq!(record(4).ended, Some(RequestEnd::Canceled));
}
