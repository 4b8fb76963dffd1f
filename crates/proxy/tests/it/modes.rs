//! The seed's modes: what waits, and what does not.

use http::Request;
use http_body_util::Full;
use sayso_proxy::desk::{OnWaiting, Once};
use sayso_proxy::{Pause, PauseRule, Settings};
use sayso_review::{PauseReason, RequestEnd, RequestMode, RequestStatus, Rule, Ruling};
use sayso_testkit::model::ModelServer;
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use crate::scene::{Scene, body, next_turn, now, said_at, settings, turn};

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
    assert!(scene.desk.waiting().is_empty());
}

#[test]
fn modes_have_the_seeds_labels() {
    let labels = RequestMode::ALL.map(RequestMode::label);
    assert_eq!(labels, ["Send normally", "Pause & review every turn", "Auto-apply saved edits"]);
    let names = RequestMode::ALL.map(|mode| serde_json::to_value(mode).unwrap());
    assert_eq!(names, ["off", "interceptAlways", "autoOverride"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn send_normally_is_the_default_and_nothing_waits() {
    let scene = scene().await;
    assert_eq!(scene.desk.effective(None).mode, RequestMode::Off);
    passes(&scene, scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.story(), ["1 seen", "1 sent", "1 answered"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_send_normally_sections_are_shown_and_not_edited() {
    let scene = scene().await;
    passes(&scene, scene.request(API, &turn(API, "hi"))).await;
    let sections = scene.desk.look(1, |looked| looked.request.sections().count()).unwrap();
    assert!(sections > 1);
    let edit = sayso_proxy::desk::Edit::Append { text: "more".to_owned() };
    let error = scene.desk.edit(1, &edit, sayso_proxy::desk::FromNowOn::No, now()).unwrap_err();
    assert_eq!(error.to_string(), "request 1 does not wait, and only one that does can be edited");
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_every_turn_pauses_every_turn() {
    let scene = scene().await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let first = turn(API, "one");
    for (number, request) in [(1, first.clone()), (2, next_turn(API, &first, "two"))] {
        let (id, sent) = scene.paused(scene.request(API, &request)).await;
        assert_eq!(scene.desk.record(id).unwrap().paused, Some(PauseReason::EveryTurn));
        assert_eq!(scene.model.received().len(), number - 1);
        scene.resume(id);
        let _ = body(sent.answer().await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pause_next_turn_pauses_once() {
    let scene = scene().await;
    scene.desk.arm(None, Once::Pause);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "one"))).await;
    assert_eq!(scene.desk.record(id).unwrap().paused, Some(PauseReason::NextTurn));
    assert!(!scene.desk.effective(None).pause_next);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    passes(&scene, scene.request(API, &turn(API, "two"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_its_own_mode() {
    let scene = scene().await;
    scene.desk.set_mode(Some("s2"), Some(RequestMode::InterceptAlways));
    passes(&scene, scene.request_of("s1", API, &turn(API, "hi"))).await;
    let (id, sent) = scene.paused(scene.request_of("s2", API, &turn(API, "hi"))).await;
    assert_eq!(scene.desk.record(id).unwrap().seen.origin.session.as_deref(), Some("s2"));
    scene.resume(id);
    let _ = body(sent.answer().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modes_outlive_a_restart() {
    let scene = scene().await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    scene.desk.set_mode(Some("s2"), Some(RequestMode::Off));
    scene.desk.arm(Some("s2"), Once::Capture);
    passes(&scene, scene.request_of("s3", API, &json!({"model": "m", "messages": []}))).await;
    let last = scene.desk.records(None, None, 1).unwrap()[0].request;
    let scene = scene.again(settings()).await;
    assert_eq!(scene.desk.effective(None).mode, RequestMode::InterceptAlways);
    assert_eq!(scene.desk.effective(Some("s2")).mode, RequestMode::Off);
    assert!(scene.desk.effective(Some("s2")).capture_next);
    assert_eq!(scene.desk.number(), last + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn subagents_requests_without_tools_and_token_counts_do_not_pause() {
    let scene = scene().await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
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
async fn rules_say_what_pauses_whatever_the_mode() {
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
        assert_eq!(scene.desk.record(id).unwrap().paused, Some(PauseReason::Rule { rule: name }));
        scene.resume(id);
        let _ = body(sent.answer().await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_that_was_there_before_does_not_pause_again() {
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
async fn a_rule_can_exempt_what_would_pause() {
    let rule = PauseRule {
        name: "not it".to_owned(),
        pause: Pause::No,
        text: Some("quick".to_owned()),
        ..PauseRule::default()
    };
    let scene = Scene::new(Settings { rules: vec![rule], ..settings() }, ModelServer::start([])).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    passes(&scene, scene.request(API, &turn(API, "a quick one"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn switching_to_send_normally_ends_what_waits_in_that_scope_only() {
    let scene = scene().await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    scene.desk.set_mode(Some("own"), Some(RequestMode::InterceptAlways));
    let (one, sent_one) = scene.paused(scene.request_of("s1", API, &turn(API, "hi"))).await;
    let (own, sent_own) = scene.paused(scene.request_of("own", API, &turn(API, "hi"))).await;
    assert_eq!(scene.desk.set_mode(None, Some(RequestMode::Off)), 1);
    assert_eq!(scene.end(one), Some(RequestEnd::ModeDisabled));
    assert_eq!(sent_one.answer().await.status(), 400);
    assert_eq!(scene.status(own), RequestStatus::Paused);
    assert_eq!(scene.desk.set_mode(Some("own"), Some(RequestMode::Off)), 1);
    assert_eq!(scene.end(own), Some(RequestEnd::ModeDisabled));
    assert_eq!(sent_own.answer().await.status(), 400);
    assert_eq!(scene.model.received().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_other_switch_leaves_what_waits() {
    let scene = scene().await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.desk.set_mode(None, Some(RequestMode::AutoOverride)), 0);
    scene.desk.arm(None, Once::Pause);
    assert_eq!(scene.status(id), RequestStatus::Paused);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_without_a_mark_are_told_apart_by_what_was_said_first() {
    let scene = scene().await;
    let unnamed = |said: &str, key: &str| {
        let request = Request::post(scene.url("anthropic/v1/messages")).header("x-api-key", key);
        request.body(Full::from(turn(API, said).to_string())).unwrap()
    };
    let session = || scene.desk.records(None, None, 1).unwrap()[0].seen.origin.session.clone().unwrap();
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
    // Looked at before or not, it is the same session.
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let (_, sent) = scene.paused(unnamed("one", "k1")).await;
    assert_eq!(session(), first);
    sent.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_denies_requests_or_has_them_wait_by_upstream() {
    let rule = |then, upstream: &str| Rule {
        name: Some(format!("about {upstream}")),
        send: vec![upstream.to_owned()],
        reason: Some("not from here".to_owned()),
        ..Rule::new(then)
    };
    let rules = vec![rule(Ruling::Deny, "anthropic"), rule(Ruling::Ask, "openai")];
    let scene = Scene::ruled(settings(), ModelServer::start([]), rules).await;
    assert!(!scene.desk.is_quiet());
    let denied = scene.send(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(denied.status(), 400);
    assert!(body(denied).await.contains("not from here"));
    assert!(matches!(scene.end(1), Some(RequestEnd::Denied { .. })));
    let (id, sent) = scene.paused(scene.request(Api::OpenAiChat, &turn(Api::OpenAiChat, "hi"))).await;
    assert!(
        matches!(scene.desk.record(id).unwrap().paused, Some(PauseReason::Rule { rule }) if rule.contains("about openai"))
    );
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    passes(&scene, scene.request(Api::Gemini, &turn(Api::Gemini, "hi"))).await;
    assert_eq!(scene.model.hits(|request| request.path().ends_with("/messages")), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_captured_uses_up_both_flags() {
    let scene = scene().await;
    scene.desk.arm(Some("s1"), Once::Pause);
    scene.desk.arm(Some("s1"), Once::Capture);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "one"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let effective = scene.desk.effective(Some("s1"));
    assert!(!effective.pause_next && !effective.capture_next);
    passes(&scene, scene.request(API, &turn(API, "two"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_paused_once_does_not_pause_again_after_a_restart() {
    let scene = scene().await;
    scene.desk.arm(None, Once::Pause);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "one"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let scene = scene.again(settings()).await;
    passes(&scene, scene.request(API, &turn(API, "two"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_turn_of_its_session_uses_up_the_next_pause() {
    let scene = scene().await;
    scene.desk.arm(Some("s1"), Once::Pause);
    passes(&scene, scene.request_of("s2", API, &turn(API, "another session"))).await;
    let mut of_subagent = scene.request(API, &turn(API, "a subagent"));
    of_subagent.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
    passes(&scene, of_subagent).await;
    let mut title = turn(API, "a title, please");
    title.as_object_mut().unwrap().remove("tools");
    passes(&scene, scene.request(API, &title)).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "a turn"))).await;
    assert_eq!(scene.desk.record(id).unwrap().paused, Some(PauseReason::NextTurn));
    sent.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_goes_with_all_others_again_ends_what_waits_there() {
    let scene = scene().await;
    scene.desk.set_mode(Some("s1"), Some(RequestMode::InterceptAlways));
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    assert_eq!(scene.desk.set_mode(Some("s1"), None), 1);
    assert_eq!(scene.end(id), Some(RequestEnd::ModeDisabled));
    let said = body(sent.answer().await).await;
    assert!(said.contains("pausing was switched off"), "{said}");
    assert!(!scene.desk.sessions().iter().any(|session| session.own));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_mode_keeps_what_is_to_happen_in_the_next_turn_and_send_normally_does_not() {
    let scene = scene().await;
    for (mode, kept) in
        [(RequestMode::InterceptAlways, true), (RequestMode::AutoOverride, true), (RequestMode::Off, false)]
    {
        scene.desk.arm(Some("s1"), Once::Pause);
        scene.desk.arm(Some("s1"), Once::Capture);
        scene.desk.set_mode(Some("s1"), Some(mode));
        let effective = scene.desk.effective(Some("s1"));
        assert_eq!((effective.pause_next, effective.capture_next), (kept, kept), "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_is_announced_where_nobody_looks() {
    let scene = scene().await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let (_, one) = scene.paused(scene.request_of("s1", API, &turn(API, "one"))).await;
    scene.until("it is announced", || scene.heard.said().len() == 1).await;
    let (_, two) = scene.paused(scene.request_of("s2", API, &turn(API, "two"))).await;
    scene.until("it is announced", || scene.heard.said().len() == 2).await;
    assert_eq!(scene.heard.said(), ["sayso: 1 request waits for you", "sayso: 2 requests wait for you"]);
    let surface = scene.gate.attach();
    let (_, three) = scene.paused(scene.request_of("s3", API, &turn(API, "three"))).await;
    drop(surface);
    let (_, four) = scene.paused(scene.request_of("s4", API, &turn(API, "four"))).await;
    scene.until("it is announced", || scene.heard.said().len() == 3).await;
    assert_eq!(scene.heard.said()[2], "sayso: 4 requests wait for you");
    for sent in [one, two, three, four] {
        sent.gone();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_that_is_stopped_holds_up_nobody() {
    let scene = scene().await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let terminal = std::sync::Arc::clone(&scene.heard.terminal);
    let (stop, stopped) = (std::sync::mpsc::channel::<()>(), std::sync::mpsc::channel::<()>());
    let holding = std::thread::spawn(move || {
        let _terminal = terminal.lock().unwrap();
        stopped.0.send(()).unwrap();
        let _ = stop.1.recv();
    });
    stopped.1.recv().unwrap();
    // More than are looked at at once.
    for number in 0..20 {
        let (id, sent) = scene.paused(scene.request_of(&format!("s{number}"), API, &turn(API, "hi"))).await;
        scene.resume(id);
        let _ = body(sent.answer().await).await;
    }
    assert!(scene.heard.said().is_empty());
    drop(stop.0);
    holding.join().unwrap();
    scene.until("it is announced", || !scene.heard.said().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn send_normally_resumes_waiting_requests_with_their_edits() {
    let scene = scene().await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(id, said_at(API), "after");
    let change = scene.desk.change_mode(None, Some(RequestMode::Off), OnWaiting::Resume, now());
    assert_eq!((change.resumed, change.ended, change.waiting.len()), (1, 0, 0));
    assert_eq!(sent.answer().await.status(), 200);
    let got = scene.model.received().pop().unwrap().raw;
    assert_eq!(got, turn(API, "after").to_string().as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_discards_the_paused_request_of_the_session() {
    let scene = scene().await;
    scene.desk.arm(None, Once::Pause);
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
async fn cleared_history_discards_the_paused_request_of_the_session() {
    let scene = scene().await;
    scene.desk.arm(None, Once::Pause);
    let later = next_turn(API, &turn(API, "hi"), "more");
    let (id, sent) = scene.paused(scene.request(API, &later)).await;
    assert_eq!(scene.send(scene.request(API, &turn(API, "something else"))).await.status(), 200);
    assert_eq!(scene.end(id), Some(RequestEnd::SessionDisposed));
    assert!(body(sent.answer().await).await.contains("Context changed – request discarded"));
}
