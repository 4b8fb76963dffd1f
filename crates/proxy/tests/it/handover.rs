//! Handover of held requests and their edits to the next engine.

use http_body_util::BodyExt as _;
use sayso_proxy::Settings;
use sayso_proxy::interceptor::{ExpectedRevision, OneShot};
use sayso_review::{PauseReason, RequestEnd, RequestMode, RequestStatus};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::stream::Api;
use serde_json::Value;

use crate::scene::{EngineEnd, Scene, body, now, settings, text_path, turn};

const API: Api = Api::AnthropicMessages;

async fn scene(mode: RequestMode) -> Scene {
    let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
    scene.interceptor.set_mode(None, Some(mode));
    scene
}

fn got(scene: &Scene) -> Value {
    scene.model.received().pop().unwrap().body
}

fn is_dirty(scene: &Scene, id: u64) -> bool {
    scene.interceptor.view(id, |looked| looked.request.is_dirty()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn next_engine_restores_edits_of_held_request() {
    for (api, ends) in Api::ALL.into_iter().flat_map(|api| [(api, EngineEnd::Stopped), (api, EngineEnd::Killed)]) {
        let scene = scene(RequestMode::InterceptAlways).await;
        let (first, _sent) = scene.paused(scene.request(api, &turn(api, "before"))).await;
        scene.set(first, text_path(api), "one");
        scene.set(first, text_path(api), "after");
        let next = scene.again_after(ends, settings()).await;
        assert_eq!(next.end(first), Some(RequestEnd::EngineStopped), "{api:?} {ends:?}");
        assert!(is_dirty(&next, first), "what it had been edited to is not lost");
        let (second, sent) = next.paused(next.request(api, &turn(api, "before"))).await;
        assert_eq!(next.interceptor.record(second).unwrap().inherits, Some(first));
        assert!(is_dirty(&next, second), "{api:?} {ends:?}");
        // As a single edit, which can be undone.
        next.interceptor
            .edit(
                second,
                &sayso_proxy::interceptor::Edit::Undo,
                sayso_proxy::interceptor::ApplyScope::ThisRequest,
                now(),
            )
            .unwrap();
        assert!(!is_dirty(&next, second));
        next.interceptor
            .edit(
                second,
                &sayso_proxy::interceptor::Edit::Redo,
                sayso_proxy::interceptor::ApplyScope::ThisRequest,
                now(),
            )
            .unwrap();
        next.resume(second);
        let _ = body(sent.answer().await).await;
        assert_eq!(got(&next), turn(api, "after"), "{api:?} {ends:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undone_edit_is_not_handed_over() {
    let scene = scene(RequestMode::InterceptAlways).await;
    let (first, _sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(first, text_path(API), "after");
    scene
        .interceptor
        .edit(first, &sayso_proxy::interceptor::Edit::Reset, sayso_proxy::interceptor::ApplyScope::ThisRequest, now())
        .unwrap();
    let next = scene.again_after(EngineEnd::Killed, settings()).await;
    let (second, sent) = next.paused(next.request(API, &turn(API, "before"))).await;
    assert!(!is_dirty(&next, second));
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn handed_over_request_keeps_save_on_resume() {
    for (once, saved) in [(OneShot::Pause, 0), (OneShot::Capture, 1)] {
        let scene = scene(RequestMode::Off).await;
        scene.interceptor.arm(None, once);
        let (first, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
        scene.set(first, text_path(API), "after");
        // The client retries before the engine ends, so the reason of the hold is the retry.
        sent.disconnect();
        scene.until("it ended", || scene.interceptor.held().is_empty()).await;
        let (second, _sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
        assert_eq!(scene.interceptor.record(second).unwrap().paused, Some(PauseReason::Retry));
        let next = scene.again_after(EngineEnd::Killed, settings()).await;
        let (third, sent) = next.paused(next.request(API, &turn(API, "before"))).await;
        assert!(is_dirty(&next, third));
        assert_eq!(next.interceptor.resume(third, ExpectedRevision::Any, now()).unwrap().captured.saved, saved);
        let _ = body(sent.answer().await).await;
        assert_eq!(got(&next), turn(API, "after"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handover_applies_once_and_not_when_off() {
    let scene = scene(RequestMode::Off).await;
    scene.interceptor.arm(None, OneShot::Pause);
    let (first, _sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(first, text_path(API), "after");
    let next = scene.again_after(EngineEnd::Killed, settings()).await;
    let (second, sent) = next.paused(next.request(API, &turn(API, "before"))).await;
    next.resume(second);
    let _ = body(sent.answer().await).await;
    // It has a response; an equal request is a new one of the same turn, also for the engine after the next.
    for _ in 0..2 {
        let _ = body(next.send(next.request(API, &turn(API, "before"))).await).await;
        assert_eq!(got(&next), turn(API, "after"));
        assert_eq!(next.interceptor.records(None, None, 1).unwrap()[0].resumed, None);
    }
    let third = next.again_after(EngineEnd::Stopped, settings()).await;
    let _ = body(third.send(third.request(API, &turn(API, "before"))).await).await;
    assert_eq!(got(&third), turn(API, "after"));
    assert_eq!(third.interceptor.records(None, None, 1).unwrap()[0].resumed, None);
    third.interceptor.arm(None, OneShot::Pause);
    let (_, _sent) = third.paused(third.request(API, &turn(API, "again"))).await;
    let last = third.again_after(EngineEnd::Killed, settings()).await;
    last.interceptor.set_mode(None, Some(RequestMode::Off));
    let _ = body(last.send(last.request(API, &turn(API, "again"))).await).await;
    assert_eq!(got(&last), turn(API, "again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_stop_ends_started_stream_retryably() {
    for api in Api::ALL {
        let settings = || Settings { grace: std::time::Duration::ZERO, ..settings() };
        let scene = Scene::new(settings(), ModelServer::start([])).await;
        scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let answer = sent.answer().await;
        assert_eq!(answer.status(), 200);
        scene.interceptor.stop();
        let said = answer.into_body().collect().await.unwrap().to_bytes();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("sayso stopped before it was sent"), "{api:?}: {said}");
        // Clients give up after a complete block, or after an error outside of an event.
        assert!(!said.contains("content_block_stop") && !said.contains("\n\n{\"error\""), "{api:?}: {said}");
        assert_eq!(scene.end(id), Some(RequestEnd::EngineStopped));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_during_shutdown_is_rejected_retryably() {
    let scene = scene(RequestMode::Off).await;
    scene.interceptor.arm(None, OneShot::Pause);
    scene.interceptor.stop();
    let answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(answer.status(), 503);
    assert!(answer.headers().get("x-should-retry").is_none());
    assert_eq!(scene.end(1), Some(RequestEnd::EngineStopped));
    assert!(scene.interceptor.held().is_empty() && scene.model.received().is_empty());
    let next = scene.again_after(EngineEnd::Stopped, settings()).await;
    let (id, sent) = next.paused(next.request(API, &turn(API, "hi"))).await;
    assert_eq!(next.interceptor.record(id).unwrap().paused, Some(PauseReason::NextTurn));
    assert_eq!(next.status(id), RequestStatus::Paused);
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_request_is_forwarded_by_next_engine() {
    for ends in [EngineEnd::Stopped, EngineEnd::Killed] {
        let scene = scene(RequestMode::Off).await;
        let held = sayso_testkit::model::Latch::closed();
        scene.model.once(|_| true, sayso_testkit::model::Answer::from(Turn::says("hello")).held_by(&held));
        scene.interceptor.arm(None, OneShot::Pause);
        let (first, sent) = scene.paused(scene.request(API, &turn(API, "secret"))).await;
        scene.set(first, text_path(API), "redacted");
        scene.resume(first);
        scene.until("the model has it", || scene.model.received().len() == 1).await;
        let next = scene.again_after(ends, settings()).await;
        held.open();
        drop(sent);
        // Without a response the client retries, and no person is asked again.
        let _ = body(next.send(next.request(API, &turn(API, "secret"))).await).await;
        assert_eq!(got(&next), turn(API, "redacted"), "{ends:?}");
        let record = next.interceptor.records(None, None, 1).unwrap().remove(0);
        assert_eq!(record.resumed, Some(sayso_review::Resumer::Retry));
        assert!(record.sent.is_some());
        assert_eq!(next.end(first), Some(RequestEnd::Superseded { by: record.request }));
        // The retry has a response, so an equal request is a new one of the same turn.
        let last = next.again_after(EngineEnd::Killed, settings()).await;
        let _ = body(last.send(last.request(API, &turn(API, "secret"))).await).await;
        assert_eq!(got(&last), turn(API, "redacted"), "{ends:?}");
        assert_eq!(last.interceptor.records(None, None, 1).unwrap()[0].resumed, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_request_is_not_handed_over() {
    let scene = scene(RequestMode::InterceptAlways).await;
    scene.model.once(|_| true, sayso_testkit::model::Answer::error(400, "prompt is too long"));
    let (first, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.resume(first);
    assert_eq!(sent.answer().await.status(), 400);
    let answer = scene.interceptor.record(first).unwrap().answer.unwrap();
    assert_eq!((answer.error.as_deref(), answer.problem), (Some("prompt is too long"), None));
    let next = scene.again_after(EngineEnd::Killed, settings()).await;
    let (_second, _sent) = next.paused(next.request(API, &turn(API, "hi"))).await;
    assert_eq!(next.model.received().len(), 1, "no person was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn next_engine_rejects_retry_of_canceled_request() {
    let scene = scene(RequestMode::Off).await;
    for said in ["cancelled", "left"] {
        scene.interceptor.arm(None, OneShot::Pause);
        let (id, sent) = scene.paused(scene.request(API, &turn(API, said))).await;
        scene.set(id, text_path(API), "edited");
        if said == "cancelled" {
            scene.interceptor.cancel(id, now()).unwrap();
            assert_eq!(sent.answer().await.status(), 400);
        } else {
            sent.disconnect();
            scene.until("it ended", || scene.interceptor.held().is_empty()).await;
        }
    }
    let next = scene.again_after(EngineEnd::Killed, settings()).await;
    assert_eq!(next.send(next.request(API, &turn(API, "cancelled"))).await.status(), 400);
    let (id, sent) = next.paused(next.request(API, &turn(API, "left"))).await;
    assert_eq!(next.interceptor.record(id).unwrap().paused, Some(PauseReason::Retry));
    assert!(is_dirty(&next, id));
    assert!(next.model.received().is_empty());
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn handed_over_edits_keep_newer_overrides() {
    let settings = || Settings { scope: sayso_wire::Scope::Workspace, ..settings() };
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::AutoOverride));
    let both = |said: &str| {
        let mut request = turn(API, said);
        request["system"] = "The same for both.".into();
        request
    };
    let (one, _one) = scene.paused(scene.request_of("s1", API, &both("one"))).await;
    scene.set(one, "system", "Saved by the first.");
    let (two, _two) = scene.paused(scene.request_of("s2", API, &both("two"))).await;
    scene.set(two, text_path(API), "edited by the second");
    let next = scene.again_after(EngineEnd::Killed, settings()).await;
    for (session, said, saved) in [("s1", "one", 1), ("s2", "two", 1)] {
        let (id, sent) = next.paused(next.request_of(session, API, &both(said))).await;
        assert_eq!(next.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap().captured.saved, saved);
        let _ = body(sent.answer().await).await;
    }
    let saved = next.interceptor.overrides(None).unwrap();
    let saved: Vec<_> = saved.iter().map(|one| one.edit.content.as_deref()).collect();
    assert_eq!(saved, [Some("Saved by the first."), Some("edited by the second")]);
}
