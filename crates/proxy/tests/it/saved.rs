//! The seed's Auto-apply: capturing and applying saved edits, and the monitor of subagents.

use sayso_proxy::desk::{Edit, Expected, FromNowOn, Once, Place};
use sayso_proxy::{PauseRule, Settings};
use sayso_review::{PauseReason, RequestMode, RequestStatus};
use sayso_testkit::model::ModelServer;
use sayso_wire::stream::Api;
use sayso_wire::{Captured, Keep, Scope};
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
    assert_eq!(scene.desk.save(id, Scope::Workspace, now()).unwrap().saved, 1);
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
    let switched = edited.switched.map(|to| to.mode);
    assert_eq!((edited.captured.saved, switched), (1, Some(RequestMode::AutoOverride)));
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

#[tokio::test(flavor = "multi_thread")]
async fn what_is_looked_at_and_what_leaves_the_monitor_is_an_event_once() {
    let scene = Scene::new(Settings { monitor: 1, ..settings() }, ModelServer::start([])).await;
    for agent in ["a1", "a2"] {
        let mut request = scene.request(API, &turn(API, "one"));
        request.headers_mut().insert("x-claude-code-agent-id", agent.parse().unwrap());
        let _ = body(scene.send(request).await).await;
    }
    let runs = scene.desk.subagents();
    for _ in 0..2 {
        scene.desk.viewed(&runs.iter().collect::<Vec<_>>());
        scene.desk.compared(1, 0);
    }
    scene.desk.viewed(&[]);
    scene.desk.compared(1, 1);
    let looks: Vec<_> = scene.story().into_iter().filter(|told| told.contains('{')).collect();
    let expected = [
        "Trimmed { runs: 1 }",
        "Monitor { through: 2 }",
        "Diff { request: 1, edits: 0 }",
        "Diff { request: 1, edits: 1 }",
    ];
    assert_eq!(looks, expected);
}

/// Edits one leaf, and has that made from now on.
fn from_now_on(scene: &Scene, id: u64, at: &str, value: &str, scope: Scope) -> usize {
    let edit = Edit::Set { at: Place::Path(at.to_owned()), value: value.to_owned() };
    scene.desk.edit(id, &edit, FromNowOn::Yes(scope), now()).unwrap().captured.saved
}

#[tokio::test(flavor = "multi_thread")]
async fn from_now_on_saves_the_edit_that_is_named_and_no_other() {
    let scene = Scene::new(Settings { preview_limit: Some(1), ..settings() }, ModelServer::start([])).await;
    scene.desk.set_mode(None, Some(RequestMode::InterceptAlways));
    let request = next_turn(API, &turn(API, "one"), "two");
    let (id, sent) = scene.paused(scene.request(API, &request)).await;
    scene.set(id, said_at(API), "for this request only");
    // Wherever it is: it was named, and not captured with others.
    assert_eq!(from_now_on(&scene, id, "messages[2].content[0].text", "from now on", Scope::Session), 1);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(got(&scene)["messages"][0]["content"][0]["text"], "for this request only");
    let saved = scene.desk.saved(Some("s1")).unwrap();
    let saved: Vec<_> = saved.iter().map(|one| one.edit.content.as_deref()).collect();
    assert_eq!(saved, [Some("from now on")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_edit_is_captured_while_others_are_applied_and_those_stay_where_they_are() {
    let scene = scene(settings()).await;
    let request = next_turn(API, &turn(API, "one"), "two");
    let (id, sent) = scene.paused(scene.request_of("s9", API, &request)).await;
    assert_eq!(from_now_on(&scene, id, said_at(API), "of the workspace", Scope::Workspace), 1);
    sent.gone();
    scene.until("it ended", || scene.desk.waiting().is_empty()).await;
    scene.desk.arm(Some("s1"), Once::Capture);
    let (id, sent) = scene.paused(scene.request(API, &request)).await;
    scene.set(id, "messages[2].content[0].text", "of the session");
    assert_eq!(scene.desk.resume(id, Expected::Any, now()).unwrap().captured.saved, 1);
    let _ = body(sent.answer().await).await;
    let told = |scene: &Scene| -> Vec<_> {
        scene.desk.saved(Some("s1")).unwrap().into_iter().map(|one| (one.edit.scope, one.edit.content)).collect()
    };
    let (of_all, of_session) = (Some("of the workspace".to_owned()), Some("of the session".to_owned()));
    assert_eq!(told(&scene), [(Scope::Workspace, of_all), (Scope::Session, of_session.clone())]);
    let both = goes_through(&scene, "s1", &request).await;
    assert_eq!(both["messages"][0]["content"][0]["text"], "of the workspace");
    assert_eq!(both["messages"][2]["content"][0]["text"], "of the session");
    // The one for all is no session's: without it, that place is as it came.
    scene.desk.remove_saved(Scope::Workspace, "").unwrap();
    assert_eq!(told(&scene), [(Scope::Session, of_session)]);
    assert_eq!(goes_through(&scene, "s1", &request).await["messages"][0]["content"][0]["text"], "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_for_all_while_capturing_is_not_the_session_s_too() {
    for applied in [false, true] {
        let scene = scene(settings()).await;
        let request = next_turn(API, &turn(API, "one"), "two");
        if applied {
            capture(&scene, "s1", &request, "before").await;
            scene.desk.arm(Some("s1"), Once::Capture);
        }
        let (id, sent) = scene.paused(scene.request(API, &request)).await;
        let place = "messages[2].content[0].text";
        assert_eq!(from_now_on(&scene, id, place, "of the workspace", Scope::Workspace), 1);
        assert_eq!(scene.desk.resume(id, Expected::Any, now()).unwrap().captured, Captured::default());
        let _ = body(sent.answer().await).await;
        let saved = scene.desk.saved(Some("s1")).unwrap();
        let saved = saved.iter().filter(|one| one.edit.content.as_deref() == Some("of the workspace"));
        let saved: Vec<_> = saved.map(|one| one.edit.scope).collect();
        assert_eq!(saved, [Scope::Workspace], "{applied}");
        // What a person names is saved where they say, also if it is saved elsewhere.
        scene.desk.arm(Some("s1"), Once::Pause);
        let (id, _sent) = scene.paused(scene.request(API, &request)).await;
        scene.set(id, place, "something else");
        assert_eq!(from_now_on(&scene, id, place, "of the workspace", Scope::Session), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_edit_that_is_taken_back_while_capturing_is_no_longer_saved() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.desk.arm(Some("s1"), Once::Capture);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.desk.edit(id, &Edit::Reset, FromNowOn::No, now()).unwrap();
    let captured = scene.desk.resume(id, Expected::Any, now()).unwrap().captured;
    assert_eq!(captured, Captured { saved: 0, removed: 1 });
    let _ = body(sent.answer().await).await;
    assert_eq!(got(&scene), turn(API, "before"));
    assert!(scene.desk.saved(Some("s1")).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_of_saved_edits_stays_when_its_client_comes_again() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.desk.arm(Some("s1"), Once::Pause);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.desk.edit(id, &Edit::Reset, FromNowOn::No, now()).unwrap();
    sent.gone();
    scene.until("it ended", || scene.desk.waiting().is_empty()).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    assert!(!scene.desk.look(id, |looked| looked.request.is_dirty()).unwrap());
    sent.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn which_saved_edits_are_in_what_was_sent_is_recorded_also_when_it_comes_again() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.desk.arm(Some("s1"), Once::Pause);
    let (_, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    sent.gone();
    scene.until("it ended", || scene.desk.waiting().is_empty()).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let record = scene.desk.record(id).unwrap();
    assert_eq!((record.saved.applied.len(), record.sent.is_some()), (1, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_by_saved_edits_shows_which_sections_they_are_in() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let _ = goes_through(&scene, "s1", &turn(API, "before")).await;
    let id = scene.desk.records(None, None, 1).unwrap()[0].request;
    let differences = scene.desk.look(id, |looked| looked.request.diff()).unwrap();
    let told: Vec<_> = differences.iter().map(|one| (&*one.path, &*one.old, &*one.new)).collect();
    assert_eq!(told, [("messages[0].content[0]", "before", "after")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_removed_is_gone_from_the_disk() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.desk.remove_saved(Scope::Session, "s1").unwrap();
    for file in std::fs::read_dir(scene.state().join("overrides")).unwrap().flatten() {
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "[]");
    }
    let scene = scene.again(settings()).await;
    let (_, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    sent.gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_and_removed_is_in_the_stream() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.desk.remove_saved(Scope::Session, "s1").unwrap();
    let wanted =
        ["mode", "1 seen", "1 paused", "1 edited", "overrides", "1 resumed", "1 sent", "1 answered", "overrides"];
    assert_eq!(scene.story(), wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_edits_that_cannot_be_read_are_told_of_and_ask_nobody() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let scene = scene.again(settings()).await;
    for file in std::fs::read_dir(scene.state().join("overrides")).unwrap().flatten() {
        std::fs::write(file.path(), "{ not a list").unwrap();
    }
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "before"));
    let record = scene.desk.records(None, None, 1).unwrap().remove(0);
    let [told] = &record.saved.drifted[..] else { panic!("{:?}", record.saved) };
    assert!(told.contains("cannot be read"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_of_another_scope_holds_up_no_capture() {
    let scene = scene(settings()).await;
    let folder = scene.state().join("overrides");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("workspace.json"), "{ not a list").unwrap();
    scene.desk.arm(Some("s1"), Once::Capture);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(id, said_at(API), "after");
    let captured = scene.desk.resume(id, Expected::Any, now()).unwrap().captured;
    assert_eq!(captured, Captured { saved: 1, removed: 0 });
    let _ = body(sent.answer().await).await;
    assert_eq!(got(&scene), turn(API, "after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_subagent_sends_compressed_or_unrecorded_is_monitored_and_not_edited() {
    use std::io::Write as _;
    for keep in [sayso_proxy::Keep::All, sayso_proxy::Keep::WhatPauses] {
        let scene = Scene::new(Settings { keep, ..settings() }, ModelServer::start([])).await;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(turn(API, "compressed").to_string().as_bytes()).unwrap();
        let mut request = scene.request(API, &turn(API, ""));
        *request.body_mut() = packed.finish().unwrap().into();
        request.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        request.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
        let _ = body(scene.send(request).await).await;
        scene.until("it is seen", || !scene.desk.subagents().is_empty()).await;
        let run = scene.desk.subagents().remove(0);
        let request = run.request();
        assert!(request.sections().any(|section| request.content(section) == "compressed"), "{keep:?}");
        let edit = Edit::Append { text: "more".to_owned() };
        let error = scene.desk.edit(run.request, &edit, FromNowOn::No, now()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("request {} does not wait, and only one that does can be edited", run.request)
        );
    }
}
