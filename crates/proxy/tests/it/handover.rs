//! What waits when an engine ends waits at the next one, with what a person made of it.

use http_body_util::BodyExt as _;
use sayso_proxy::Settings;
use sayso_proxy::desk::{Expected, Once};
use sayso_review::{PauseReason, RequestEnd, RequestMode, RequestStatus};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::stream::Api;
use serde_json::Value;

use crate::scene::{Ends, Scene, body, now, said_at, settings, turn};

const API: Api = Api::AnthropicMessages;

async fn scene(mode: RequestMode) -> Scene {
    let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
    scene.desk.set_mode(None, Some(mode));
    scene
}

fn got(scene: &Scene) -> Value {
    scene.model.received().pop().unwrap().body
}

fn is_dirty(scene: &Scene, id: u64) -> bool {
    scene.desk.look(id, |looked| looked.request.is_dirty()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_what_waited_are_there_at_the_next_engine() {
    for (api, ends) in Api::ALL.into_iter().flat_map(|api| [(api, Ends::Stopped), (api, Ends::Killed)]) {
        let scene = scene(RequestMode::InterceptAlways).await;
        let (first, _sent) = scene.paused(scene.request(api, &turn(api, "before"))).await;
        scene.set(first, said_at(api), "one");
        scene.set(first, said_at(api), "after");
        let next = scene.again_after(ends, settings()).await;
        assert_eq!(next.end(first), Some(RequestEnd::EngineStopped), "{api:?} {ends:?}");
        assert!(is_dirty(&next, first), "what it had been edited to is not lost");
        let (second, sent) = next.paused(next.request(api, &turn(api, "before"))).await;
        assert_eq!(next.desk.record(second).unwrap().inherits, Some(first));
        assert!(is_dirty(&next, second), "{api:?} {ends:?}");
        // As one edit, which can be taken back like any other.
        next.desk.edit(second, &sayso_proxy::desk::Edit::Undo, sayso_proxy::desk::FromNowOn::No, now()).unwrap();
        assert!(!is_dirty(&next, second));
        next.desk.edit(second, &sayso_proxy::desk::Edit::Redo, sayso_proxy::desk::FromNowOn::No, now()).unwrap();
        next.resume(second);
        let _ = body(sent.answer().await).await;
        assert_eq!(got(&next), turn(api, "after"), "{api:?} {ends:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_back_before_the_engine_ended_stays_so() {
    let scene = scene(RequestMode::InterceptAlways).await;
    let (first, _sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(first, said_at(API), "after");
    scene.desk.edit(first, &sayso_proxy::desk::Edit::Reset, sayso_proxy::desk::FromNowOn::No, now()).unwrap();
    let next = scene.again_after(Ends::Killed, settings()).await;
    let (second, sent) = next.paused(next.request(API, &turn(API, "before"))).await;
    assert!(!is_dirty(&next, second));
    sent.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_waits_there_whatever_it_waited_for_and_its_edits_are_captured() {
    for (once, saved) in [(Once::Pause, 0), (Once::Capture, 1)] {
        let scene = scene(RequestMode::Off).await;
        scene.desk.arm(None, once);
        let (first, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
        scene.set(first, said_at(API), "after");
        // Its client comes again before the engine ends, so that it waits for that reason.
        sent.gone();
        scene.until("it ended", || scene.desk.waiting().is_empty()).await;
        let (second, _sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
        assert_eq!(scene.desk.record(second).unwrap().paused, Some(PauseReason::Retry));
        let next = scene.again_after(Ends::Killed, settings()).await;
        let (third, sent) = next.paused(next.request(API, &turn(API, "before"))).await;
        assert!(is_dirty(&next, third));
        assert_eq!(next.desk.resume(third, Expected::Any, now()).unwrap().captured.saved, saved);
        let _ = body(sent.answer().await).await;
        assert_eq!(got(&next), turn(API, "after"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_taken_over_once_and_not_where_requests_are_sent_normally() {
    let scene = scene(RequestMode::Off).await;
    scene.desk.arm(None, Once::Pause);
    let (first, _sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(first, said_at(API), "after");
    let next = scene.again_after(Ends::Killed, settings()).await;
    let (second, sent) = next.paused(next.request(API, &turn(API, "before"))).await;
    next.resume(second);
    let _ = body(sent.answer().await).await;
    // It was answered; what is the same is another one of the same turn, also for the engine after that.
    for _ in 0..2 {
        let _ = body(next.send(next.request(API, &turn(API, "before"))).await).await;
        assert_eq!(got(&next), turn(API, "after"));
        assert_eq!(next.desk.records(None, None, 1).unwrap()[0].resumed, None);
    }
    let third = next.again_after(Ends::Stopped, settings()).await;
    let _ = body(third.send(third.request(API, &turn(API, "before"))).await).await;
    assert_eq!(got(&third), turn(API, "after"));
    assert_eq!(third.desk.records(None, None, 1).unwrap()[0].resumed, None);
    third.desk.arm(None, Once::Pause);
    let (_, _sent) = third.paused(third.request(API, &turn(API, "again"))).await;
    let last = third.again_after(Ends::Killed, settings()).await;
    last.desk.set_mode(None, Some(RequestMode::Off));
    let _ = body(last.send(last.request(API, &turn(API, "again"))).await).await;
    assert_eq!(got(&last), turn(API, "again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_has_begun_ends_so_that_its_client_may_try_again() {
    for api in Api::ALL {
        let settings = || Settings { grace: std::time::Duration::ZERO, ..settings() };
        let scene = Scene::new(settings(), ModelServer::start([])).await;
        scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
        let (id, sent) = scene.paused(scene.request(api, &turn(api, "hi"))).await;
        let answer = sent.answer().await;
        assert_eq!(answer.status(), 200);
        scene.desk.stop();
        let said = answer.into_body().collect().await.unwrap().to_bytes();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("sayso stopped before it was sent"), "{api:?}: {said}");
        // Neither a block that was complete nor an error outside of an event, after which clients give up.
        assert!(!said.contains("content_block_stop") && !said.contains("\n\n{\"error\""), "{api:?}: {said}");
        assert_eq!(scene.end(id), Some(RequestEnd::EngineStopped));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_the_engine_stops_is_left_to_the_next_one() {
    let scene = scene(RequestMode::Off).await;
    scene.desk.arm(None, Once::Pause);
    scene.desk.stop();
    let answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(answer.status(), 503);
    assert!(answer.headers().get("x-should-retry").is_none());
    assert_eq!(scene.end(1), Some(RequestEnd::EngineStopped));
    assert!(scene.desk.waiting().is_empty() && scene.model.received().is_empty());
    let next = scene.again_after(Ends::Stopped, settings()).await;
    let (id, sent) = next.paused(next.request(API, &turn(API, "hi"))).await;
    assert_eq!(next.desk.record(id).unwrap().paused, Some(PauseReason::NextTurn));
    assert_eq!(next.status(id), RequestStatus::Paused);
    sent.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_let_go_on_goes_on_so_at_the_next_engine() {
    for ends in [Ends::Stopped, Ends::Killed] {
        let scene = scene(RequestMode::Off).await;
        let held = sayso_testkit::model::Gate::shut();
        scene.model.once(|_| true, sayso_testkit::model::Answer::from(Turn::says("hello")).waits_at(&held));
        scene.desk.arm(None, Once::Pause);
        let (first, sent) = scene.paused(scene.request(API, &turn(API, "secret"))).await;
        scene.set(first, said_at(API), "redacted");
        scene.resume(first);
        scene.until("the model has it", || scene.model.received().len() == 1).await;
        let next = scene.again_after(ends, settings()).await;
        held.open();
        drop(sent);
        // Without an answer its client sends it again, and nobody is asked again.
        let _ = body(next.send(next.request(API, &turn(API, "secret"))).await).await;
        assert_eq!(got(&next), turn(API, "redacted"), "{ends:?}");
        let record = next.desk.records(None, None, 1).unwrap().remove(0);
        assert_eq!(record.resumed, Some(sayso_review::Resumer::Retry));
        assert!(record.sent.is_some());
        assert_eq!(next.end(first), Some(RequestEnd::Superseded { by: record.request }));
        // That one was answered, so that what is the same by then is another one of the same turn.
        let last = next.again_after(Ends::Killed, settings()).await;
        let _ = body(last.send(last.request(API, &turn(API, "secret"))).await).await;
        assert_eq!(got(&last), turn(API, "redacted"), "{ends:?}");
        assert_eq!(last.desk.records(None, None, 1).unwrap()[0].resumed, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_refused_is_another_one_at_the_next_engine() {
    let scene = scene(RequestMode::InterceptAlways).await;
    scene.model.once(|_| true, sayso_testkit::model::Answer::error(400, "prompt is too long"));
    let (first, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.resume(first);
    assert_eq!(sent.answer().await.status(), 400);
    let answer = scene.desk.record(first).unwrap().answer.unwrap();
    assert_eq!((answer.error.as_deref(), answer.problem), (Some("prompt is too long"), None));
    let next = scene.again_after(Ends::Killed, settings()).await;
    let (_second, _sent) = next.paused(next.request(API, &turn(API, "hi"))).await;
    assert_eq!(next.model.received().len(), 1, "nobody was asked about it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_cancelled_is_refused_by_the_next_engine_and_what_was_left_waits_there() {
    let scene = scene(RequestMode::Off).await;
    for said in ["cancelled", "left"] {
        scene.desk.arm(None, Once::Pause);
        let (id, sent) = scene.paused(scene.request(API, &turn(API, said))).await;
        scene.set(id, said_at(API), "edited");
        if said == "cancelled" {
            scene.desk.cancel(id, now()).unwrap();
            assert_eq!(sent.answer().await.status(), 400);
        } else {
            sent.gone();
            scene.until("it ended", || scene.desk.waiting().is_empty()).await;
        }
    }
    let next = scene.again_after(Ends::Killed, settings()).await;
    assert_eq!(next.send(next.request(API, &turn(API, "cancelled"))).await.status(), 400);
    let (id, sent) = next.paused(next.request(API, &turn(API, "left"))).await;
    assert_eq!(next.desk.record(id).unwrap().paused, Some(PauseReason::Retry));
    assert!(is_dirty(&next, id));
    assert!(next.model.received().is_empty());
    sent.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_saved_meanwhile_is_not_removed_by_one_that_was_handed_over() {
    let settings = || Settings { scope: sayso_wire::Scope::Workspace, ..settings() };
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.desk.set_mode(None, Some(RequestMode::AutoOverride));
    let both = |said: &str| {
        let mut request = turn(API, said);
        request["system"] = "The same for both.".into();
        request
    };
    let (one, _one) = scene.paused(scene.request_of("s1", API, &both("one"))).await;
    scene.set(one, "system", "Saved by the first.");
    let (two, _two) = scene.paused(scene.request_of("s2", API, &both("two"))).await;
    scene.set(two, said_at(API), "edited by the second");
    let next = scene.again_after(Ends::Killed, settings()).await;
    for (session, said, saved) in [("s1", "one", 1), ("s2", "two", 1)] {
        let (id, sent) = next.paused(next.request_of(session, API, &both(said))).await;
        assert_eq!(next.desk.resume(id, Expected::Any, now()).unwrap().captured.saved, saved);
        let _ = body(sent.answer().await).await;
    }
    let saved = next.desk.saved(None).unwrap();
    let saved: Vec<_> = saved.iter().map(|one| one.edit.content.as_deref()).collect();
    assert_eq!(saved, [Some("Saved by the first."), Some("edited by the second")]);
}
