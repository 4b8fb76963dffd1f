//! The seed's cleanup: how waiting ends when nobody resumes or cancels, and what clients send again.

use sayso_proxy::desk::{EndError, Expected};
use sayso_review::{PauseReason, RequestEnd, RequestMode, RequestStatus};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::stream::Api;

use crate::scene::{Scene, body, next_turn, now, said_at, settings, turn};

const API: Api = Api::AnthropicMessages;

async fn scene() -> Scene {
    let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_session_a_request_is_discarded() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.gate.command(sayso_gate::Client::Person, start("s1"), now()).unwrap();
    let ended = sayso_review::Command::EndSession { session: "s1".to_owned() };
    scene.gate.command(sayso_gate::Client::Person, ended, now()).unwrap();
    let answer = sent.answer().await;
    assert_eq!(answer.status(), 400);
    assert!(body(answer).await.contains("Context changed – request discarded"));
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert_eq!(serde_json::to_value(RequestEnd::SessionDisposed).unwrap()["reason"], "sessionDisposed");
    assert_eq!(scene.model.received().len(), 0);
    assert!(scene.desk.sessions().is_empty());
}

fn start(session: &str) -> sayso_review::Command {
    sayso_review::Command::StartSession { session: session.to_owned(), agent: None, location: None, parent: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_run_a_request_is_discarded() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.desk.run_over(&scene.entrance.run().name);
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert_eq!(sent.answer().await.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_goes_on_supersedes_one_that_waits() {
    for api in Api::ALL {
        let scene = scene().await;
        let first = turn(api, "hi");
        let (old, sent_old) = scene.paused(scene.request(api, &first)).await;
        let (new, _sent) = scene.paused(scene.request(api, &next_turn(api, &first, "more"))).await;
        assert_eq!(scene.end(old), Some(RequestEnd::Superseded { by: new }), "{api:?}");
        assert_eq!(sent_old.answer().await.status(), 400);
        assert_eq!(scene.desk.waiting(), [new]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_conversation_or_session_supersedes_nothing() {
    let scene = scene().await;
    let first = turn(API, "hi");
    let (old, _sent) = scene.paused(scene.request(API, &first)).await;
    let (_, _other) = scene.paused(scene.request(API, &turn(API, "something else"))).await;
    let (_, _session) = scene.paused(scene.request_of("s2", API, &next_turn(API, &first, "more"))).await;
    assert_eq!(scene.desk.waiting().len(), 3);
    assert_eq!(scene.status(old), RequestStatus::Paused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_ends_its_request() {
    for grace in [std::time::Duration::ZERO, crate::scene::NEVER] {
        let settings = sayso_proxy::Settings { grace, ..settings() };
        let scene = Scene::new(settings, ModelServer::start([])).await;
        scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
        let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
        if grace.is_zero() {
            drop(sent.answer().await);
        } else {
            sent.gone();
        }
        scene.until("it ended", || scene.desk.waiting().is_empty()).await;
        assert_eq!(scene.end(id), Some(RequestEnd::ClientGone));
        assert_eq!(scene.model.received().len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_with_the_same_body_inherits_the_edits() {
    let scene = scene().await;
    let (first, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(first, said_at(API), "edited");
    sent.gone();
    scene.until("it ended", || scene.desk.waiting().is_empty()).await;
    let (second, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert!(scene.desk.look(second, |looked| looked.request.is_dirty()).unwrap());
    // And so does one that comes while the first still waits.
    let (third, sent_third) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.end(second), Some(RequestEnd::Superseded { by: third }));
    assert_eq!(sent.answer().await.status(), 400);
    scene.resume(third);
    assert!(body(sent_third.answer().await).await.contains("hello"));
    assert!(String::from_utf8_lossy(&scene.model.received()[0].raw).contains("edited"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_waits_again_even_where_nothing_else_would_pause_it() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.desk.arm(None, sayso_proxy::desk::Once::Pause);
    let (_, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    sent.gone();
    scene.until("it ended", || scene.desk.waiting().is_empty()).await;
    let (second, _sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.desk.record(second).unwrap().paused, Some(PauseReason::Retry));
}

#[tokio::test(flavor = "multi_thread")]
async fn resuming_sends_the_latest_edits_and_only_what_was_seen() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(id, said_at(API), "one");
    scene.set(id, said_at(API), "two");
    let error = scene.desk.resume(id, Expected::Version(1), now()).unwrap_err();
    assert!(matches!(error, EndError::EditedSince { version: 2, .. }), "{error}");
    scene.desk.resume(id, Expected::Version(2), now()).unwrap();
    let _ = body(sent.answer().await).await;
    assert!(String::from_utf8_lossy(&scene.model.received()[0].raw).contains("\"two\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_section_shows_is_edited_by_its_path() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(id, "messages[0].content[0]", "edited");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(scene.model.received()[0].body, turn(API, "edited"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_refused_is_not_sent() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    let delete = sayso_proxy::desk::Edit::Delete { at: sayso_proxy::desk::Place::Path("messages[0]".to_owned()) };
    scene.desk.edit(id, &delete, sayso_proxy::desk::FromNowOn::No, now()).unwrap();
    let error = scene.desk.resume(id, Expected::Any, now()).unwrap_err();
    assert!(matches!(error, EndError::Invalid { .. }), "{error}");
    assert!(error.hint().contains("sayso request reset"));
    scene.desk.edit(id, &sayso_proxy::desk::Edit::Reset, sayso_proxy::desk::FromNowOn::No, now()).unwrap();
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(scene.model.received()[0].raw, turn(API, "hi").to_string().as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_wait_is_neither_resumed_nor_cancelled() {
    let scene = scene().await;
    assert!(matches!(scene.desk.resume(9, Expected::Any, now()), Err(EndError::NotWaiting(9))));
    assert!(matches!(scene.desk.cancel(9, now()), Err(EndError::NotWaiting(9))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_made_of_a_request_is_kept_when_the_engine_stops() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(id, said_at(API), "edited with care");
    scene.desk.stop();
    let answer = sent.answer().await;
    // Its client may try again: another engine may be there by then.
    assert_eq!(answer.status(), 503);
    assert!(!answer.headers().contains_key("x-should-retry"));
    let record = scene.desk.record(id).unwrap();
    assert_eq!(record.ended, Some(RequestEnd::EngineStopped));
    let kept = scene.gate.read(|history| history.body(record.latest())).unwrap();
    assert!(String::from_utf8(kept).unwrap().contains("edited with care"));
    assert!(scene.desk.look(id, |looked| looked.request.to_bytes().len()).is_ok());
    assert_eq!(scene.model.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_session_that_is_over_is_left() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.desk.set_mode(Some("s1"), Some(RequestMode::InterceptAlways));
    let (first, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(first, said_at(API), "edited");
    sent.gone();
    scene.until("it ended", || scene.desk.waiting().is_empty()).await;
    scene.desk.session_over("s1");
    assert!(scene.desk.sessions().is_empty() && scene.desk.is_quiet());
    // Not asked about, and not edited, here or at the next engine.
    let scene = scene.again(settings()).await;
    assert!(scene.desk.is_quiet(), "a mode of a session that is over is back");
    let _ = body(scene.send(scene.request(API, &turn(API, "hi"))).await).await;
    assert_eq!(scene.model.received().pop().unwrap().body, turn(API, "hi"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_a_request_was_is_known_as_soon_as_somebody_asks_and_forgotten_with_its_session_or_run() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let names = || -> Vec<String> { scene.desk.sessions().into_iter().map(|session| session.session).collect() };
    let over: [fn(&Scene); 2] =
        [|scene| scene.desk.session_over("s1"), |scene| scene.desk.run_over(&scene.entrance.run().name)];
    for over in over {
        // Nobody looks at a request that passes before its answer has begun.
        let _ = body(scene.send(scene.request(API, &turn(API, "hi"))).await).await;
        assert_eq!(names(), ["s1"]);
        let _ = body(scene.send(scene.request(API, &turn(API, "hi"))).await).await;
        over(&scene);
        assert!(names().is_empty(), "it came back with what was looked at later");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_its_agents_session_a_subagents_request_is_discarded() {
    let rule = sayso_proxy::PauseRule { name: "all".to_owned(), subagent: Some(true), ..Default::default() };
    let settings = sayso_proxy::Settings { rules: vec![rule], ..settings() };
    let scene = Scene::new(settings, ModelServer::start([])).await;
    let mut request = scene.request_of("child", API, &turn(API, "hi"));
    request.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
    request.headers_mut().insert("x-claude-code-parent-agent-id", "parent".parse().unwrap());
    let (id, sent) = scene.paused(request).await;
    scene.desk.session_over("parent");
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert_eq!(sent.answer().await.status(), 400);
}
