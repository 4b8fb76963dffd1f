//! The seed's Auto-apply: capturing and applying saved edits, and the monitor of subagents.

use sayso_proxy::desk::{Edit, FromNowOn, Once, Place};
use sayso_proxy::{PauseRule, Settings};
use sayso_review::{PauseReason, RequestMode, RequestStatus};
use sayso_testkit::model::ModelServer;
use sayso_wire::stream::Api;
use sayso_wire::{Keep, Scope};
use serde_json::{Value, json};

use crate::scene::{Scene, body, next_turn, now, said_at, settings, turn};

const API: Api = Api::AnthropicMessages;

async fn scene(settings: Settings) -> Scene {
    let scene = Scene::new(settings, ModelServer::start([])).await;
    scene.desk.set_mode(None, Some(RequestMode::AutoOverride));
    scene
}

/// What the model got last.
fn got(scene: &Scene) -> Value {
    scene.model.received().pop().unwrap().body
}

async fn goes_through(scene: &Scene, session: &str, request: &Value) -> Value {
    let response = scene.send(scene.request_of(session, API, request)).await;
    let _ = body(response).await;
    got(scene)
}

/// Captures one edit in a session.
async fn capture(scene: &Scene, session: &str, request: &Value, said: &str) {
    let (id, sent) = scene.paused(scene.request_of(session, API, request)).await;
    assert_eq!(scene.desk.record(id).unwrap().paused, Some(PauseReason::Capture));
    scene.set(id, said_at(API), said);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capturing_pauses_the_next_turn_and_applying_does_not() {
    for api in Api::ALL {
        let scene = scene(settings()).await;
        assert!(scene.desk.is_capturing("s1").unwrap());
        let first = turn(api, "before");
        let (id, sent) = scene.paused(scene.request(api, &first)).await;
        scene.set(id, said_at(api), "after");
        scene.resume(id);
        let _ = body(sent.answer().await).await;
        assert!(!scene.desk.is_capturing("s1").unwrap());
        // From then on it sticks in the whole history that the agent sends.
        let response = scene.send(scene.request(api, &next_turn(api, &first, "more"))).await;
        let _ = body(response).await;
        let wanted = next_turn(api, &turn(api, "after"), "more");
        assert_eq!(got(&scene), wanted, "{api:?}");
        let record = scene.desk.records(None, None, 1).unwrap().remove(0);
        assert_eq!((record.status, record.saved.applied.len()), (RequestStatus::Answered, 1));
        assert!(record.sent.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_saved_where_nothing_was_edited() {
    let scene = scene(settings()).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert!(scene.desk.is_capturing("s1").unwrap());
    assert!(scene.desk.saved(Some("s1")).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_s_edits_are_its_own_and_a_workspace_s_are_for_all() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let (id, sent) = scene.paused(scene.request_of("s2", API, &turn(API, "before"))).await;
    scene.set(id, said_at(API), "of the workspace");
    assert_eq!(scene.desk.save(id, Scope::Workspace, now()).unwrap(), 1);
    sent.gone();
    // The narrower wins.
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "after"));
    assert_eq!(goes_through(&scene, "s3", &turn(API, "before")).await, turn(API, "of the workspace"));
    assert_eq!(scene.desk.remove_saved(Scope::Session, "s1").unwrap(), 1);
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "of the workspace"));
}

#[tokio::test(flavor = "multi_thread")]
async fn captured_edits_go_where_the_user_wants_them() {
    for (scope, name) in [(Scope::Workspace, "workspace"), (Scope::Global, "global")] {
        let scene = scene(Settings { scope, ..settings() }).await;
        capture(&scene, "s1", &turn(API, "before"), "after").await;
        assert_eq!(goes_through(&scene, "s2", &turn(API, "before")).await, turn(API, "after"), "{name}");
        let saved = scene.desk.saved(None).unwrap();
        assert_eq!((saved.len(), saved[0].edit.scope), (1, scope));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_saved_edits_arms_the_capture_again() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.desk.remove_saved(Scope::Session, "s1").unwrap();
    let (_, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    sent.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_new_edits_and_pause_next_turn_pause_while_applying() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    for (once, why) in [(Once::Capture, PauseReason::Capture), (Once::Pause, PauseReason::NextTurn)] {
        scene.desk.arm(Some("s1"), once);
        let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
        assert_eq!(scene.desk.record(id).unwrap().paused, Some(why));
        // With what was saved before laid over it, and shown as edited.
        assert!(scene.desk.look(id, |looked| looked.request.is_dirty()).unwrap());
        scene.resume(id);
        let _ = body(sent.answer().await).await;
        assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "after"));
    }
    assert_eq!(scene.desk.saved(Some("s1")).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_sections_are_captured_where_there_is_a_limit() {
    let scene = scene(Settings { preview_limit: Some(1), ..settings() }).await;
    let request = next_turn(API, &turn(API, "one"), "two");
    let (id, sent) = scene.paused(scene.request(API, &request)).await;
    scene.set(id, "messages[2].content[0].text", "beyond the limit");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert!(scene.desk.saved(Some("s1")).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_drifted_is_shown_and_left_alone() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    assert_eq!(goes_through(&scene, "s1", &turn(API, "something else")).await, turn(API, "something else"));
    let record = scene.desk.records(None, None, 1).unwrap().remove(0);
    assert_eq!(record.saved.applied.len(), 0);
    assert_eq!(record.saved.drifted, ["messages[0].content[0]"]);
    assert!(record.sent.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_edits_are_not_applied_where_requests_are_sent_normally_or_to_subagents() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let mut of_subagent = scene.request(API, &turn(API, "before"));
    of_subagent.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
    let _ = body(scene.send(of_subagent).await).await;
    assert_eq!(got(&scene), turn(API, "before"));
    scene.desk.set_mode(None, Some(RequestMode::Off));
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "before"));
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_edits_outlive_a_restart_and_only_the_user_can_read_them() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let scene = scene.again(settings()).await;
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "after"));
    let folder = scene.state().join("overrides");
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_result_is_shrunk_from_now_on_with_what_that_saves() {
    let rule = PauseRule { name: "long".to_owned(), tool_result_tokens: Some(100), ..PauseRule::default() };
    let scene = Scene::new(Settings { rules: vec![rule], ..settings() }, ModelServer::start([])).await;
    let mut request = turn(API, "hi");
    let lines: String = (0..2_000).map(|number| format!("line {number}\n")).collect();
    request["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": lines}]}),
    ]);
    let (id, sent) = scene.paused(scene.request(API, &request)).await;
    let shrink = Edit::Shrink {
        at: Place::Path("messages[2].content[0].content".to_owned()),
        keep: Keep { head: 200, tail: 100 },
    };
    let edited = scene.desk.edit(id, &shrink, FromNowOn::Yes(Scope::Session), now()).unwrap();
    let consequences = edited.consequences.unwrap();
    assert!(consequences.before.count > consequences.after.count + 5_000);
    assert_eq!((edited.saved, edited.switched), (1, Some(RequestMode::AutoOverride)));
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let first = got(&scene);
    assert!(first.to_string().len() < 2_000);
    // It stays shrunk in the history of the next turn, and nothing pauses.
    let after = goes_through(&scene, "s1", &next_turn(API, &request, "go on")).await;
    assert_eq!(after["messages"][2], first["messages"][2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_monitor_shows_the_last_runs_of_subagents_and_nobody_edits_them() {
    let scene = Scene::new(Settings { monitor: 2, ..settings() }, ModelServer::start([])).await;
    for (agent, said) in [("a1", "one"), ("a2", "two"), ("a2", "three"), ("a3", "four")] {
        let mut request = scene.request(API, &turn(API, said));
        request.headers_mut().insert("x-claude-code-agent-id", agent.parse().unwrap());
        let _ = body(scene.send(request).await).await;
    }
    let runs = scene.desk.subagents();
    let told: Vec<_> = runs.iter().map(|run| (run.whose.subagent.clone().unwrap().id.unwrap(), run.requests)).collect();
    assert_eq!(told, [("a3".to_owned(), 1), ("a2".to_owned(), 2)]);
    assert!(runs[1].request().sections().any(|section| runs[1].request().content(section) == "three"));
    assert!(scene.desk.waiting().is_empty());
    scene.desk.session_over("s1");
    assert!(scene.desk.subagents().is_empty());
}
