//! Modes, rules and policy: held and forwarded requests.

use http::Request;
use http_body_util::Full;
use sayso_proxy::interceptor::{HeldAction, OneShot};
use sayso_proxy::{Pause, PauseRule, Settings};
use sayso_review::{PauseReason, RequestEnd, RequestMode, RequestStatus, Rule, Ruling};
use sayso_testkit::model::ModelServer;
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use crate::scene::{Scene, body, next_turn, now, settings, text_path, turn};

const API: Api = Api::AnthropicMessages;

async fn scene() -> Scene {
    Scene::new(settings(), ModelServer::start([])).await
}

async fn passes(scene: &Scene, request: Request<Full<bytes::Bytes>>) {
    let before = scene.model.received().len();
    let response = scene.send(request).await;
    assert_eq!(response.status(), 200);
    let _ = body(response).await;
    assert_eq!(scene.model.received().len(), before + 1);
    assert!(scene.interceptor.held().is_empty());
}

#[test]
fn mode_labels_match_the_seed() {
    let labels = RequestMode::ALL.map(RequestMode::label);
    assert_eq!(labels, ["Send normally", "Pause & review every turn", "Auto-apply saved edits"]);
    let names = RequestMode::ALL.map(|mode| serde_json::to_value(mode).unwrap());
    assert_eq!(names, ["off", "interceptAlways", "autoOverride"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn default_mode_forwards_everything() {
    let scene = scene().await;
    assert_eq!(scene.interceptor.effective(None).mode, RequestMode::Off);
    passes(&scene, scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.story(), ["1 received", "1 sent", "1 answered"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sent_request_is_viewable_but_not_editable() {
    let scene = scene().await;
    passes(&scene, scene.request(API, &turn(API, "hi"))).await;
    let sections = scene.interceptor.view(1, |looked| looked.request.sections().count()).unwrap();
    assert!(sections > 1);
    let edit = sayso_proxy::interceptor::Edit::Append { text: "more".to_owned() };
    let error = scene.interceptor.edit(1, &edit, sayso_proxy::interceptor::ApplyScope::ThisRequest, now()).unwrap_err();
    assert_eq!(error.to_string(), "request 1 is not paused; only a paused request can be edited");
}

#[tokio::test(flavor = "multi_thread")]
async fn intercept_always_holds_every_turn() {
    let scene = scene().await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let first = turn(API, "one");
    for (number, request) in [(1, first.clone()), (2, next_turn(API, &first, "two"))] {
        let (id, sent) = scene.paused(scene.request(API, &request)).await;
        assert_eq!(scene.interceptor.record(id).unwrap().paused, Some(PauseReason::EveryTurn));
        assert_eq!(scene.model.received().len(), number - 1);
        scene.resume(id);
        let _ = body(sent.answer().await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_next_holds_one_turn() {
    let scene = scene().await;
    scene.interceptor.arm(None, OneShot::Pause);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "one"))).await;
    assert_eq!(scene.interceptor.record(id).unwrap().paused, Some(PauseReason::NextTurn));
    assert!(!scene.interceptor.effective(None).pause_next);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    passes(&scene, scene.request(API, &turn(API, "two"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_mode_precedes_global_mode() {
    let scene = scene().await;
    scene.interceptor.set_mode(Some("s2"), Some(RequestMode::InterceptAlways));
    passes(&scene, scene.request_of("s1", API, &turn(API, "hi"))).await;
    let (id, sent) = scene.paused(scene.request_of("s2", API, &turn(API, "hi"))).await;
    assert_eq!(scene.interceptor.record(id).unwrap().received.origin.session.as_deref(), Some("s2"));
    scene.resume(id);
    let _ = body(sent.answer().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modes_survive_restart() {
    let scene = scene().await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    scene.interceptor.set_mode(Some("s2"), Some(RequestMode::Off));
    scene.interceptor.arm(Some("s2"), OneShot::Capture);
    passes(&scene, scene.request_of("s3", API, &json!({"model": "m", "messages": []}))).await;
    let last = scene.interceptor.records(None, None, 1).unwrap()[0].request;
    let scene = scene.again(settings()).await;
    assert_eq!(scene.interceptor.effective(None).mode, RequestMode::InterceptAlways);
    assert_eq!(scene.interceptor.effective(Some("s2")).mode, RequestMode::Off);
    assert!(scene.interceptor.effective(Some("s2")).capture_next);
    assert_eq!(scene.interceptor.next_id(), last + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn non_turn_requests_are_not_held() {
    let scene = scene().await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let mut of_subagent = scene.request(API, &turn(API, "hi"));
    of_subagent.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
    passes(&scene, of_subagent).await;
    let mut title = turn(API, "a title, please");
    title.as_object_mut().unwrap().remove("tools");
    passes(&scene, scene.request(API, &title)).await;
    let count = Request::post(scene.url("anthropic/v1/messages/count_tokens"));
    passes(&scene, count.body(Full::from(turn(API, "hi").to_string())).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_rules_apply_in_every_mode() {
    let result = |text: &str| {
        let mut body = turn(API, "hi");
        body["messages"].as_array_mut().unwrap().extend([
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": text}]}),
        ]);
        body
    };
    let rule = |name: &str| PauseRule { name: name.to_owned(), ..PauseRule::default() };
    let long = "word ".repeat(500);
    let mut of_subagent = turn(API, "hi");
    of_subagent["marked"] = Value::Bool(true);
    let cases: Vec<(PauseRule, Value, Value)> = vec![
        (PauseRule { larger_than: Some(2_000), ..rule("large") }, turn(API, &long), turn(API, "short")),
        (PauseRule { tool_result_tokens: Some(100), ..rule("long results") }, result(&long), result("short")),
        (PauseRule { text: Some("DEPLOY".to_owned()), ..rule("deploys") }, turn(API, "deploy it"), turn(API, "wait")),
        (PauseRule { agent: Some("claude".to_owned()), ..rule("claude") }, turn(API, "hi"), Value::Null),
        (PauseRule { subagent: Some(true), ..rule("subagents") }, of_subagent, turn(API, "hi")),
    ];
    for (rule, pauses, does_not) in cases {
        let name = rule.name.clone();
        let scene = Scene::new(Settings { rules: vec![rule], ..settings() }, ModelServer::start([])).await;
        let request = |body: &Value| {
            let mut request = scene.request(API, body);
            request.headers_mut().insert("user-agent", "claude-cli/2.1".parse().unwrap());
            if body.get("marked").is_some() {
                request.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
            }
            request
        };
        if !does_not.is_null() {
            passes(&scene, request(&does_not)).await;
        }
        let (id, sent) = scene.paused(request(&pauses)).await;
        assert_eq!(scene.interceptor.record(id).unwrap().paused, Some(PauseReason::Rule { rule: name }));
        scene.resume(id);
        let _ = body(sent.answer().await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_long_result_does_not_match_rule() {
    let rule = PauseRule { name: "long".to_owned(), tool_result_tokens: Some(100), ..PauseRule::default() };
    let scene = Scene::new(Settings { rules: vec![rule], ..settings() }, ModelServer::start([])).await;
    let mut old = turn(API, "hi");
    old["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "word ".repeat(500)}]}),
    ]);
    passes(&scene, scene.request(API, &next_turn(API, &old, "go on"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_with_pause_no_exempts_request() {
    let rule = PauseRule {
        name: "not it".to_owned(),
        pause: Pause::No,
        text: Some("quick".to_owned()),
        ..PauseRule::default()
    };
    let scene = Scene::new(Settings { rules: vec![rule], ..settings() }, ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    passes(&scene, scene.request(API, &turn(API, "a quick one"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mode_off_cancels_held_requests_in_scope() {
    let scene = scene().await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    scene.interceptor.set_mode(Some("own"), Some(RequestMode::InterceptAlways));
    let (one, sent_one) = scene.paused(scene.request_of("s1", API, &turn(API, "hi"))).await;
    let (own, sent_own) = scene.paused(scene.request_of("own", API, &turn(API, "hi"))).await;
    assert_eq!(scene.interceptor.set_mode(None, Some(RequestMode::Off)), 1);
    assert_eq!(scene.end(one), Some(RequestEnd::ModeDisabled));
    assert_eq!(sent_one.answer().await.status(), 400);
    assert_eq!(scene.status(own), RequestStatus::Paused);
    assert_eq!(scene.interceptor.set_mode(Some("own"), Some(RequestMode::Off)), 1);
    assert_eq!(scene.end(own), Some(RequestEnd::ModeDisabled));
    assert_eq!(sent_own.answer().await.status(), 400);
    assert_eq!(scene.model.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_mode_changes_keep_requests_held() {
    let scene = scene().await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.interceptor.set_mode(None, Some(RequestMode::AutoOverride)), 0);
    scene.interceptor.arm(None, OneShot::Pause);
    assert_eq!(scene.status(id), RequestStatus::Paused);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unnamed_sessions_differ_by_first_message() {
    let scene = scene().await;
    let unnamed = |said: &str, key: &str| {
        let request = Request::post(scene.url("anthropic/v1/messages")).header("x-api-key", key);
        request.body(Full::from(turn(API, said).to_string())).unwrap()
    };
    let session = || scene.interceptor.records(None, None, 1).unwrap()[0].received.origin.session.clone().unwrap();
    passes(&scene, unnamed("one", "k1")).await;
    let first = session();
    passes(&scene, unnamed("two", "k1")).await;
    assert_ne!(session(), first);
    passes(&scene, unnamed("one", "k2")).await;
    assert_ne!(session(), first);
    let next = next_turn(API, &turn(API, "one"), "more");
    let request = Request::post(scene.url("anthropic/v1/messages")).header("x-api-key", "k1");
    passes(&scene, request.body(Full::from(next.to_string())).unwrap()).await;
    assert_eq!(session(), first);
    // A held request gets the same session id as a forwarded one.
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let (_, sent) = scene.paused(unnamed("one", "k1")).await;
    assert_eq!(session(), first);
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_denies_or_holds_by_upstream() {
    let rule = |then, upstream: &str| Rule {
        name: Some(format!("about {upstream}")),
        send: vec![upstream.to_owned()],
        reason: Some("not from here".to_owned()),
        ..Rule::new(then)
    };
    let rules = vec![rule(Ruling::Deny, "anthropic"), rule(Ruling::Ask, "openai")];
    let scene = Scene::ruled(settings(), ModelServer::start([]), rules).await;
    assert!(!scene.interceptor.is_passthrough());
    let denied = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(denied.status(), 400);
    assert!(body(denied).await.contains("not from here"));
    assert!(matches!(scene.end(1), Some(RequestEnd::Denied { .. })));
    let (id, sent) = scene.paused(scene.request(Api::OpenAiChat, &turn(Api::OpenAiChat, "hi"))).await;
    assert!(
        matches!(scene.interceptor.record(id).unwrap().paused, Some(PauseReason::Rule { rule }) if rule.contains("about openai"))
    );
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    passes(&scene, scene.request(Api::Gemini, &turn(Api::Gemini, "hi"))).await;
    assert_eq!(scene.model.hits(|request| request.path().ends_with("/messages")), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn captured_turn_clears_both_flags() {
    let scene = scene().await;
    scene.interceptor.arm(Some("s1"), OneShot::Pause);
    scene.interceptor.arm(Some("s1"), OneShot::Capture);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "one"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let effective = scene.interceptor.effective(Some("s1"));
    assert!(!effective.pause_next && !effective.capture_next);
    passes(&scene, scene.request(API, &turn(API, "two"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn used_pause_next_stays_cleared_after_restart() {
    let scene = scene().await;
    scene.interceptor.arm(None, OneShot::Pause);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "one"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let scene = scene.again(settings()).await;
    passes(&scene, scene.request(API, &turn(API, "two"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_next_waits_for_turn_of_session() {
    let scene = scene().await;
    scene.interceptor.arm(Some("s1"), OneShot::Pause);
    passes(&scene, scene.request_of("s2", API, &turn(API, "another session"))).await;
    let mut of_subagent = scene.request(API, &turn(API, "a subagent"));
    of_subagent.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
    passes(&scene, of_subagent).await;
    let mut title = turn(API, "a title, please");
    title.as_object_mut().unwrap().remove("tools");
    passes(&scene, scene.request(API, &title)).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "a turn"))).await;
    assert_eq!(scene.interceptor.record(id).unwrap().paused, Some(PauseReason::NextTurn));
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_session_mode_cancels_held_requests() {
    let scene = scene().await;
    scene.interceptor.set_mode(Some("s1"), Some(RequestMode::InterceptAlways));
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.interceptor.set_mode(Some("s1"), None), 1);
    assert_eq!(scene.end(id), Some(RequestEnd::ModeDisabled));
    let said = body(sent.answer().await).await;
    assert!(said.contains("pausing was switched off"), "{said}");
    assert!(!scene.interceptor.sessions().iter().any(|session| session.has_own_mode));
}

#[tokio::test(flavor = "multi_thread")]
async fn mode_off_clears_one_shot_flags() {
    let scene = scene().await;
    for (mode, kept) in
        [(RequestMode::InterceptAlways, true), (RequestMode::AutoOverride, true), (RequestMode::Off, false)]
    {
        scene.interceptor.arm(Some("s1"), OneShot::Pause);
        scene.interceptor.arm(Some("s1"), OneShot::Capture);
        scene.interceptor.set_mode(Some("s1"), Some(mode));
        let effective = scene.interceptor.effective(Some("s1"));
        assert_eq!((effective.pause_next, effective.capture_next), (kept, kept), "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn held_request_notifies_without_attached_surface() {
    let scene = scene().await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let (_, one) = scene.paused(scene.request_of("s1", API, &turn(API, "one"))).await;
    scene.until("the notification is sent", || scene.notifications.sent().len() == 1).await;
    let (_, two) = scene.paused(scene.request_of("s2", API, &turn(API, "two"))).await;
    scene.until("the notification is sent", || scene.notifications.sent().len() == 2).await;
    assert_eq!(scene.notifications.sent(), ["sayso: 1 request waits for you", "sayso: 2 requests wait for you"]);
    let surface = scene.gate.attach();
    let (_, three) = scene.paused(scene.request_of("s3", API, &turn(API, "three"))).await;
    drop(surface);
    let (_, four) = scene.paused(scene.request_of("s4", API, &turn(API, "four"))).await;
    scene.until("the notification is sent", || scene.notifications.sent().len() == 3).await;
    assert_eq!(scene.notifications.sent()[2], "sayso: 4 requests wait for you");
    for sent in [one, two, three, four] {
        sent.disconnect();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_terminal_blocks_no_request() {
    let scene = scene().await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let terminal = std::sync::Arc::clone(&scene.notifications.terminal);
    let (stop, stopped) = (std::sync::mpsc::channel::<()>(), std::sync::mpsc::channel::<()>());
    let holding = std::thread::spawn(move || {
        let _terminal = terminal.lock().unwrap();
        stopped.0.send(()).unwrap();
        let _ = stop.1.recv();
    });
    stopped.1.recv().unwrap();
    // More than the limit of concurrent admissions.
    for number in 0..20 {
        let (id, sent) = scene.paused(scene.request_of(&format!("s{number}"), API, &turn(API, "hi"))).await;
        scene.resume(id);
        let _ = body(sent.answer().await).await;
    }
    assert!(scene.notifications.sent().is_empty());
    drop(stop.0);
    holding.join().unwrap();
    scene.until("the notification is sent", || !scene.notifications.sent().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mode_off_with_resume_forwards_edits() {
    let scene = scene().await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(id, text_path(API), "after");
    let change = scene.interceptor.change_mode(None, Some(RequestMode::Off), HeldAction::Resume, now());
    assert_eq!((change.resumed, change.ended, change.still_held.len()), (1, 0, 0));
    assert_eq!(sent.answer().await.status(), 200);
    let got = scene.model.received().pop().unwrap().raw;
    assert_eq!(got, turn(API, "after").to_string().as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_model_discards_held_request() {
    let scene = scene().await;
    scene.interceptor.arm(None, OneShot::Pause);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    let mut other = turn(API, "hi");
    other["model"] = "claude-haiku-4-5".into();
    assert_eq!(scene.send(scene.request_of("s2", API, &other)).await.status(), 200);
    assert_eq!(scene.status(id), RequestStatus::Paused, "another session");
    assert_eq!(scene.send(scene.request(API, &other)).await.status(), 200);
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert!(body(sent.answer().await).await.contains("Context changed – request discarded"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cleared_history_discards_held_request() {
    let scene = scene().await;
    scene.interceptor.arm(None, OneShot::Pause);
    let later = next_turn(API, &turn(API, "hi"), "more");
    let (id, sent) = scene.paused(scene.request(API, &later)).await;
    assert_eq!(scene.send(scene.request(API, &turn(API, "something else"))).await.status(), 200);
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert!(body(sent.answer().await).await.contains("Context changed – request discarded"));
}
