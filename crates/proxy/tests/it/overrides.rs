//! Overrides: capturing and applying them; and the monitor of subagents.

use sayso_proxy::interceptor::{ApplyScope, Edit, EditTarget, ExpectedRevision, OneShot};
use sayso_proxy::{PauseRule, Settings};
use sayso_review::{PauseReason, RequestMode, RequestStatus, SkippedEdit};
use sayso_testkit::model::ModelServer;
use sayso_wire::stream::Api;
use sayso_wire::{CaptureCounts, Scope, ShrinkLimits};
use serde_json::{Value, json};

use crate::scene::{Scene, body, next_turn, now, settings, text_path, turn};

const API: Api = Api::AnthropicMessages;

async fn scene(settings: Settings) -> Scene {
    let scene = Scene::new(settings, ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::AutoOverride));
    scene
}

/// The last body that the upstream received.
fn got(scene: &Scene) -> Value {
    scene.model.received().pop().unwrap().body
}

async fn goes_through(scene: &Scene, session: &str, request: &Value) -> Value {
    let response = scene.send(scene.request_of(session, API, request)).await;
    let _ = body(response).await;
    got(scene)
}

/// `true` if the next turn of session `s1` is held so that its edits are saved.
fn is_capturing(scene: &Scene) -> bool {
    let effective = scene.interceptor.effective(Some("s1"));
    let is_empty = scene.interceptor.overrides(Some("s1")).unwrap().is_empty();
    effective.capture_next || (effective.mode == RequestMode::AutoOverride && is_empty)
}

/// Saves one edit by a capture in a session.
async fn capture(scene: &Scene, session: &str, request: &Value, said: &str) {
    let (id, sent) = scene.paused(scene.request_of(session, API, request)).await;
    assert_eq!(scene.interceptor.record(id).unwrap().paused, Some(PauseReason::Capture));
    scene.set(id, text_path(API), said);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_holds_turn_and_apply_does_not() {
    for api in Api::ALL {
        let scene = scene(settings()).await;
        assert!(is_capturing(&scene));
        let first = turn(api, "before");
        let (id, sent) = scene.paused(scene.request(api, &first)).await;
        scene.set(id, text_path(api), "after");
        scene.resume(id);
        let _ = body(sent.answer().await).await;
        assert!(!is_capturing(&scene));
        // From then on it applies to the history in every request.
        let response = scene.send(scene.request(api, &next_turn(api, &first, "more"))).await;
        let _ = body(response).await;
        let wanted = next_turn(api, &turn(api, "after"), "more");
        assert_eq!(got(&scene), wanted, "{api:?}");
        let record = scene.interceptor.records(None, None, 1).unwrap().remove(0);
        assert_eq!((record.status, record.overrides.applied.len()), (RequestStatus::Answered, 1));
        assert!(record.sent.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_without_edits_saves_nothing() {
    let scene = scene(settings()).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert!(is_capturing(&scene));
    assert!(scene.interceptor.overrides(Some("s1")).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn override_scope_selects_sessions() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let (id, sent) = scene.paused(scene.request_of("s2", API, &turn(API, "before"))).await;
    scene.set(id, text_path(API), "of the workspace");
    assert_eq!(scene.interceptor.save_overrides(id, Scope::Workspace, now()).unwrap().saved, 1);
    sent.disconnect();
    // The narrower scope is applied last.
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "after"));
    assert_eq!(goes_through(&scene, "s3", &turn(API, "before")).await, turn(API, "of the workspace"));
    assert_eq!(scene.interceptor.remove_overrides(Scope::Session, "s1").unwrap(), 1);
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "of the workspace"));
}

#[tokio::test(flavor = "multi_thread")]
async fn captured_edits_use_configured_scope() {
    for (scope, name) in [(Scope::Workspace, "workspace"), (Scope::Global, "global")] {
        let scene = scene(Settings { scope, ..settings() }).await;
        capture(&scene, "s1", &turn(API, "before"), "after").await;
        assert_eq!(goes_through(&scene, "s2", &turn(API, "before")).await, turn(API, "after"), "{name}");
        let saved = scene.interceptor.overrides(None).unwrap();
        assert_eq!((saved.len(), saved[0].edit.scope), (1, scope));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_overrides_start_new_capture() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.interceptor.remove_overrides(Scope::Session, "s1").unwrap();
    let (_, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_shot_flags_hold_while_applying_overrides() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    for (once, why) in [(OneShot::Capture, PauseReason::Capture), (OneShot::Pause, PauseReason::NextTurn)] {
        scene.interceptor.arm(Some("s1"), once);
        let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
        assert_eq!(scene.interceptor.record(id).unwrap().paused, Some(why));
        // The overrides are applied, and the request counts as edited.
        assert!(scene.interceptor.view(id, |looked| looked.request.is_dirty()).unwrap());
        scene.resume(id);
        let _ = body(sent.answer().await).await;
        assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "after"));
    }
    assert_eq!(scene.interceptor.overrides(Some("s1")).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn preview_limit_bounds_captured_sections() {
    let scene = scene(Settings { preview_limit: Some(1), ..settings() }).await;
    let request = next_turn(API, &turn(API, "one"), "two");
    let (id, sent) = scene.paused(scene.request(API, &request)).await;
    scene.set(id, "messages[2].content[0].text", "beyond the limit");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert!(scene.interceptor.overrides(Some("s1")).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn drifted_override_is_reported_and_skipped() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    assert_eq!(goes_through(&scene, "s1", &turn(API, "something else")).await, turn(API, "something else"));
    let record = scene.interceptor.records(None, None, 1).unwrap().remove(0);
    assert_eq!(record.overrides.applied.len(), 0);
    assert_eq!(record.overrides.skipped, [SkippedEdit::drifted("messages[0].content[0]".to_owned())]);
    assert!(record.sent.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_skip_mode_off_and_subagents() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let mut of_subagent = scene.request(API, &turn(API, "before"));
    of_subagent.headers_mut().insert("x-claude-code-agent-id", "a1".parse().unwrap());
    let _ = body(scene.send(of_subagent).await).await;
    assert_eq!(got(&scene), turn(API, "before"));
    scene.interceptor.set_mode(None, Some(RequestMode::Off));
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "before"));
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_survive_restart_in_private_file() {
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
async fn shrunk_result_stays_shrunk_as_override() {
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
        at: EditTarget::Path("messages[2].content[0].content".to_owned()),
        keep: ShrinkLimits { head: 200, tail: 100 },
    };
    let edited = scene.interceptor.edit(id, &shrink, ApplyScope::FromNowOn(Scope::Session), now()).unwrap();
    let impact = edited.impact.unwrap();
    assert!(impact.before.count > impact.after.count + 5_000);
    let switched = edited.switched.map(|to| to.mode);
    assert_eq!((edited.captured.saved, switched), (1, Some(RequestMode::AutoOverride)));
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let first = got(&scene);
    assert!(first.to_string().len() < 2_000);
    // It stays shrunk in the history of the next turn, which is not held.
    let after = goes_through(&scene, "s1", &next_turn(API, &request, "go on")).await;
    assert_eq!(after["messages"][2], first["messages"][2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn monitor_lists_last_subagent_runs() {
    let scene = Scene::new(Settings { monitor: 2, ..settings() }, ModelServer::start([])).await;
    for (agent, said) in [("a1", "one"), ("a2", "two"), ("a2", "three"), ("a3", "four")] {
        let mut request = scene.request(API, &turn(API, said));
        request.headers_mut().insert("x-claude-code-agent-id", agent.parse().unwrap());
        let _ = body(scene.send(request).await).await;
    }
    let runs = scene.interceptor.subagents();
    let told: Vec<_> =
        runs.iter().map(|run| (run.attribution.subagent.clone().unwrap().id.unwrap(), run.requests)).collect();
    assert_eq!(told, [("a3".to_owned(), 1), ("a2".to_owned(), 2)]);
    assert!(runs[1].request().sections().any(|section| runs[1].request().content(section) == "three"));
    assert!(scene.interceptor.held().is_empty());
    scene.interceptor.end_session("s1");
    assert!(scene.interceptor.subagents().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn view_and_trim_events_are_recorded_once() {
    let scene = Scene::new(Settings { monitor: 1, ..settings() }, ModelServer::start([])).await;
    for agent in ["a1", "a2"] {
        let mut request = scene.request(API, &turn(API, "one"));
        request.headers_mut().insert("x-claude-code-agent-id", agent.parse().unwrap());
        let _ = body(scene.send(request).await).await;
    }
    let runs = scene.interceptor.subagents();
    for _ in 0..2 {
        scene.interceptor.record_runs_viewed(&runs.iter().collect::<Vec<_>>());
        scene.interceptor.record_diff_viewed(1, 0);
    }
    scene.interceptor.record_runs_viewed(&[]);
    scene.interceptor.record_diff_viewed(1, 1);
    let looks: Vec<_> = scene.story().into_iter().filter(|told| told.contains('{')).collect();
    let expected = [
        "Trimmed { runs: 1 }",
        "Monitor { through: 2 }",
        "Diff { request: 1, edits: 0 }",
        "Diff { request: 1, edits: 1 }",
    ];
    assert_eq!(looks, expected);
}

/// Edits one leaf, and saves the edit as an override.
fn from_now_on(scene: &Scene, id: u64, at: &str, value: &str, scope: Scope) -> usize {
    let edit = Edit::Set { at: EditTarget::Path(at.to_owned()), value: value.to_owned() };
    scene.interceptor.edit(id, &edit, ApplyScope::FromNowOn(scope), now()).unwrap().captured.saved
}

#[tokio::test(flavor = "multi_thread")]
async fn from_now_on_saves_named_edit_only() {
    let scene = Scene::new(Settings { preview_limit: Some(1), ..settings() }, ModelServer::start([])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let request = next_turn(API, &turn(API, "one"), "two");
    let (id, sent) = scene.paused(scene.request(API, &request)).await;
    scene.set(id, text_path(API), "for this request only");
    // The preview limit does not apply to an edit by name.
    assert_eq!(from_now_on(&scene, id, "messages[2].content[0].text", "from now on", Scope::Session), 1);
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(got(&scene)["messages"][0]["content"][0]["text"], "for this request only");
    let saved = scene.interceptor.overrides(Some("s1")).unwrap();
    let saved: Vec<_> = saved.iter().map(|one| one.edit.content.as_deref()).collect();
    assert_eq!(saved, [Some("from now on")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn capture_keeps_overrides_of_other_scopes() {
    let scene = scene(settings()).await;
    let request = next_turn(API, &turn(API, "one"), "two");
    let (id, sent) = scene.paused(scene.request_of("s9", API, &request)).await;
    assert_eq!(from_now_on(&scene, id, text_path(API), "of the workspace", Scope::Workspace), 1);
    sent.disconnect();
    scene.until("it ended", || scene.interceptor.held().is_empty()).await;
    scene.interceptor.arm(Some("s1"), OneShot::Capture);
    let (id, sent) = scene.paused(scene.request(API, &request)).await;
    scene.set(id, "messages[2].content[0].text", "of the session");
    assert_eq!(scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap().captured.saved, 1);
    let _ = body(sent.answer().await).await;
    let told = |scene: &Scene| -> Vec<_> {
        scene
            .interceptor
            .overrides(Some("s1"))
            .unwrap()
            .into_iter()
            .map(|one| (one.edit.scope, one.edit.content))
            .collect()
    };
    let (of_all, of_session) = (Some("of the workspace".to_owned()), Some("of the session".to_owned()));
    assert_eq!(told(&scene), [(Scope::Workspace, of_all), (Scope::Session, of_session.clone())]);
    let both = goes_through(&scene, "s1", &request).await;
    assert_eq!(both["messages"][0]["content"][0]["text"], "of the workspace");
    assert_eq!(both["messages"][2]["content"][0]["text"], "of the session");
    // The global override is not in the session's scope: without it, the text is the received one.
    scene.interceptor.remove_overrides(Scope::Workspace, "").unwrap();
    assert_eq!(told(&scene), [(Scope::Session, of_session)]);
    assert_eq!(goes_through(&scene, "s1", &request).await["messages"][0]["content"][0]["text"], "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn global_override_is_not_captured_for_session() {
    for applied in [false, true] {
        let scene = scene(settings()).await;
        let request = next_turn(API, &turn(API, "one"), "two");
        if applied {
            capture(&scene, "s1", &request, "before").await;
            scene.interceptor.arm(Some("s1"), OneShot::Capture);
        }
        let (id, sent) = scene.paused(scene.request(API, &request)).await;
        let place = "messages[2].content[0].text";
        assert_eq!(from_now_on(&scene, id, place, "of the workspace", Scope::Workspace), 1);
        assert_eq!(
            scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap().captured,
            CaptureCounts::default()
        );
        let _ = body(sent.answer().await).await;
        let saved = scene.interceptor.overrides(Some("s1")).unwrap();
        let saved = saved.iter().filter(|one| one.edit.content.as_deref() == Some("of the workspace"));
        let saved: Vec<_> = saved.map(|one| one.edit.scope).collect();
        assert_eq!(saved, [Scope::Workspace], "{applied}");
        // An edit by name is saved in the given scope, also if another scope has it.
        scene.interceptor.arm(Some("s1"), OneShot::Pause);
        let (id, _sent) = scene.paused(scene.request(API, &request)).await;
        scene.set(id, place, "something else");
        assert_eq!(from_now_on(&scene, id, place, "of the workspace", Scope::Session), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undone_override_is_removed_by_capture() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.interceptor.arm(Some("s1"), OneShot::Capture);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.interceptor.edit(id, &Edit::Reset, ApplyScope::ThisRequest, now()).unwrap();
    let captured = scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap().captured;
    assert_eq!(captured, CaptureCounts { saved: 0, removed: 1 });
    let _ = body(sent.answer().await).await;
    assert_eq!(got(&scene), turn(API, "before"));
    assert!(scene.interceptor.overrides(Some("s1")).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_keeps_reset_of_overrides() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.interceptor.arm(Some("s1"), OneShot::Pause);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.interceptor.edit(id, &Edit::Reset, ApplyScope::ThisRequest, now()).unwrap();
    sent.disconnect();
    scene.until("it ended", || scene.interceptor.held().is_empty()).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    assert!(!scene.interceptor.view(id, |looked| looked.request.is_dirty()).unwrap());
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_records_applied_overrides() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.interceptor.arm(Some("s1"), OneShot::Pause);
    let (_, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    sent.disconnect();
    scene.until("it ended", || scene.interceptor.held().is_empty()).await;
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let record = scene.interceptor.record(id).unwrap();
    assert_eq!((record.overrides.applied.len(), record.sent.is_some()), (1, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn sent_request_shows_sections_of_overrides() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let _ = goes_through(&scene, "s1", &turn(API, "before")).await;
    let id = scene.interceptor.records(None, None, 1).unwrap()[0].request;
    let differences = scene.interceptor.view(id, |looked| looked.request.diff()).unwrap();
    let told: Vec<_> = differences.iter().map(|one| (&*one.path, &*one.old, &*one.new)).collect();
    assert_eq!(told, [("messages[0].content[0]", "before", "after")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_overrides_leave_no_bytes_on_disk() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.interceptor.remove_overrides(Scope::Session, "s1").unwrap();
    for file in std::fs::read_dir(scene.state().join("overrides")).unwrap().flatten() {
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "[]");
    }
    let scene = scene.again(settings()).await;
    let (_, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    sent.disconnect();
}

#[tokio::test(flavor = "multi_thread")]
async fn override_changes_are_in_event_stream() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    scene.interceptor.remove_overrides(Scope::Session, "s1").unwrap();
    let wanted =
        ["mode", "1 received", "1 paused", "1 edited", "overrides", "1 resumed", "1 sent", "1 answered", "overrides"];
    assert_eq!(scene.story(), wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_overrides_are_reported_without_hold() {
    let scene = scene(settings()).await;
    capture(&scene, "s1", &turn(API, "before"), "after").await;
    let scene = scene.again(settings()).await;
    for file in std::fs::read_dir(scene.state().join("overrides")).unwrap().flatten() {
        std::fs::write(file.path(), "{ not a list").unwrap();
    }
    assert_eq!(goes_through(&scene, "s1", &turn(API, "before")).await, turn(API, "before"));
    let record = scene.interceptor.records(None, None, 1).unwrap().remove(0);
    let [skipped] = &record.overrides.skipped[..] else { panic!("{:?}", record.overrides) };
    assert!(skipped.reason.as_deref().unwrap().contains("cannot read"), "{skipped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_other_scope_does_not_block_capture() {
    let scene = scene(settings()).await;
    let folder = scene.state().join("overrides");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("workspace.json"), "{ not a list").unwrap();
    scene.interceptor.arm(Some("s1"), OneShot::Capture);
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "before"))).await;
    scene.set(id, text_path(API), "after");
    let captured = scene.interceptor.resume(id, ExpectedRevision::Any, now()).unwrap().captured;
    assert_eq!(captured, CaptureCounts { saved: 1, removed: 0 });
    let _ = body(sent.answer().await).await;
    assert_eq!(got(&scene), turn(API, "after"));
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_subagent_request_is_monitored() {
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
        scene.until("it is seen", || !scene.interceptor.subagents().is_empty()).await;
        let run = scene.interceptor.subagents().remove(0);
        let request = run.request();
        assert!(request.sections().any(|section| request.content(section) == "compressed"), "{keep:?}");
        let edit = Edit::Append { text: "more".to_owned() };
        let error = scene.interceptor.edit(run.request, &edit, ApplyScope::ThisRequest, now()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("request {} is not paused; only a paused request can be edited", run.request)
        );
    }
}
