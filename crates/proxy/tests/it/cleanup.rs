//! EngineEnd of holds without a decision, and retries of clients.

use sayso_gate::NewSession;
use sayso_proxy::interceptor::{ExpectedRevision, ResumeError};
use sayso_review::{PauseReason, RequestEnd, RequestMode, RequestStatus};
use sayso_testkit::model::{ModelServer, Turn};
use sayso_wire::stream::Api;

use crate::scene::{Scene, body, next_turn, now, settings, text_path, turn};

const API: Api = Api::AnthropicMessages;

async fn scene() -> Scene {
    let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_session_discards_held_request() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.gate.start_session(new_session("s1"), now()).unwrap();
    scene.gate.end_session("s1", now()).unwrap();
    let answer = sent.answer().await;
    assert_eq!(answer.status(), 400);
    assert!(body(answer).await.contains("Context changed – request discarded"));
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert_eq!(serde_json::to_value(RequestEnd::SessionDisposed).unwrap()["reason"], "sessionDisposed");
    assert_eq!(scene.model.received().len(), 0);
    assert!(scene.interceptor.sessions().is_empty());
}

fn new_session(session: &str) -> NewSession {
    NewSession { session: session.to_owned(), agent: None, location: None, parent: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_run_discards_held_request() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.interceptor.end_run(&scene.endpoint.run().name);
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert_eq!(sent.answer().await.status(), 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn extended_history_supersedes_held_request() {
    for api in Api::ALL {
        let scene = scene().await;
        let first = turn(api, "hi");
        let (old, sent_old) = scene.paused(scene.request(api, &first)).await;
        let (new, _sent) = scene.paused(scene.request(api, &next_turn(api, &first, "more"))).await;
        assert_eq!(scene.end(old), Some(RequestEnd::Superseded { by: new }), "{api:?}");
        assert_eq!(sent_old.answer().await.status(), 400);
        assert_eq!(scene.interceptor.held(), [new]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_conversation_supersedes_nothing() {
    let scene = scene().await;
    let first = turn(API, "hi");
    let (old, _sent) = scene.paused(scene.request(API, &first)).await;
    let (_, _other) = scene.paused(scene.request(API, &turn(API, "something else"))).await;
    let (_, _session) = scene.paused(scene.request_of("s2", API, &next_turn(API, &first, "more"))).await;
    assert_eq!(scene.interceptor.held().len(), 3);
    assert_eq!(scene.status(old), RequestStatus::Paused);
}

#[tokio::test(flavor = "multi_thread")]
async fn client_disconnect_ends_held_request() {
    for grace in [std::time::Duration::ZERO, crate::scene::NEVER] {
        let settings = sayso_proxy::Settings { grace, ..settings() };
        let scene = Scene::new(settings, ModelServer::start([])).await;
        scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
        let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
        if grace.is_zero() {
            drop(sent.answer().await);
        } else {
            sent.disconnect();
        }
        scene.until("it ended", || scene.interceptor.held().is_empty()).await;
        assert_eq!(scene.end(id), Some(RequestEnd::ClientGone));
        assert_eq!(scene.model.received().len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_retry_inherits_edits() {
    let scene = scene().await;
    let (first, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(first, text_path(API), "edited");
    sent.disconnect();
    scene.until("it ended", || scene.interceptor.held().is_empty()).await;
    let (second, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert!(scene.interceptor.view(second, |looked| looked.request.is_dirty()).unwrap());
    // A retry during the hold inherits the edits, too.
    let (third, sent_third) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.end(second), Some(RequestEnd::Superseded { by: third }));
    assert_eq!(sent.answer().await.status(), 400);
    scene.resume(third);
    assert!(body(sent_third.answer().await).await.contains("hello"));
    assert!(String::from_utf8_lossy(&scene.model.received()[0].raw).contains("edited"));
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_is_held_after_mode_is_used_up() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.interceptor.arm(None, sayso_proxy::interceptor::OneShot::Pause);
    let (_, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    sent.disconnect();
    scene.until("it ended", || scene.interceptor.held().is_empty()).await;
    let (second, _sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.interceptor.record(second).unwrap().paused, Some(PauseReason::Retry));
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_sends_expected_revision_only() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(id, text_path(API), "one");
    scene.set(id, text_path(API), "two");
    let error = scene.interceptor.resume(id, ExpectedRevision::Exactly(1), now()).unwrap_err();
    assert!(matches!(error, ResumeError::EditedSince { revision: 2, .. }), "{error}");
    scene.interceptor.resume(id, ExpectedRevision::Exactly(2), now()).unwrap();
    let _ = body(sent.answer().await).await;
    assert!(String::from_utf8_lossy(&scene.model.received()[0].raw).contains("\"two\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_by_path_replaces_displayed_text() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(id, "messages[0].content[0]", "edited");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(scene.model.received()[0].body, turn(API, "edited"));
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_of_invalid_request_fails() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    let delete = sayso_proxy::interceptor::Edit::Delete {
        at: sayso_proxy::interceptor::EditTarget::Path("messages[0]".to_owned()),
    };
    scene.interceptor.edit(id, &delete, sayso_proxy::interceptor::ApplyScope::ThisRequest, now()).unwrap();
    let error = scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap_err();
    assert!(matches!(error, ResumeError::Invalid { .. }), "{error}");
    assert!(error.hint().contains("sayso request reset"));
    scene
        .interceptor
        .edit(id, &sayso_proxy::interceptor::Edit::Reset, sayso_proxy::interceptor::ApplyScope::ThisRequest, now())
        .unwrap();
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(scene.model.received()[0].raw, turn(API, "hi").to_string().as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_and_cancel_require_held_request() {
    let scene = scene().await;
    assert!(matches!(scene.interceptor.resume(9, ExpectedRevision::Any, now()), Err(ResumeError::NotPaused(9))));
    assert!(matches!(scene.interceptor.cancel(9, now()), Err(ResumeError::NotPaused(9))));
}

#[tokio::test(flavor = "multi_thread")]
async fn engine_stop_records_edited_body() {
    let scene = scene().await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(id, text_path(API), "edited with care");
    scene.interceptor.stop();
    let answer = sent.answer().await;
    // Retryable: the next engine may run by then.
    assert_eq!(answer.status(), 503);
    assert!(!answer.headers().contains_key("x-should-retry"));
    let record = scene.interceptor.record(id).unwrap();
    assert_eq!(record.ended, Some(RequestEnd::EngineStopped));
    let kept = scene.gate.read(|history| history.body(record.latest())).unwrap();
    assert!(String::from_utf8(kept).unwrap().contains("edited with care"));
    assert!(scene.interceptor.view(id, |looked| looked.request.to_bytes().len()).is_ok());
    assert_eq!(scene.model.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_session_leaves_no_state() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.interceptor.set_mode(Some("s1"), Some(RequestMode::InterceptAlways));
    let (first, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(first, text_path(API), "edited");
    sent.disconnect();
    scene.until("it ended", || scene.interceptor.held().is_empty()).await;
    scene.interceptor.end_session("s1");
    assert!(scene.interceptor.sessions().is_empty() && scene.interceptor.is_passthrough());
    // Forwarded unedited, by this engine and by the next one.
    let scene = scene.again(settings()).await;
    assert!(scene.interceptor.is_passthrough(), "a mode of a session that is over is back");
    let _ = body(scene.send(scene.request(API, &turn(API, "hi"))).await).await;
    assert_eq!(scene.model.received().pop().unwrap().body, turn(API, "hi"));
}

#[tokio::test(flavor = "multi_thread")]
async fn session_list_includes_deferred_requests() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let names = || -> Vec<String> { scene.interceptor.sessions().into_iter().map(|session| session.session).collect() };
    let over: [fn(&Scene); 2] =
        [|scene| scene.interceptor.end_session("s1"), |scene| scene.interceptor.end_run(&scene.endpoint.run().name)];
    for over in over {
        // A streamed request is recorded after its response has started.
        let _ = body(scene.send(scene.request(API, &turn(API, "hi"))).await).await;
        assert_eq!(names(), ["s1"]);
        let _ = body(scene.send(scene.request(API, &turn(API, "hi"))).await).await;
        over(&scene);
        assert!(names().is_empty(), "a deferred request brought the session back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_session_discards_held_subagent_request() {
    let rule = sayso_proxy::PauseRule { name: "all".to_owned(), subagent: Some(true), ..Default::default() };
    let settings = sayso_proxy::Settings { rules: vec![rule], ..settings() };
    let scene = Scene::new(settings, ModelServer::start([])).await;
    let mut request = scene.request_of("child", API, &turn(API, "hi"));
    request.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
    request.headers_mut().insert("x-claude-code-parent-agent-id", "parent".parse().unwrap());
    let (id, sent) = scene.paused(request).await;
    scene.interceptor.end_session("parent");
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert_eq!(sent.answer().await.status(), 400);
}
