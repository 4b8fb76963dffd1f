//! Snapshots before tool calls: each row of the seed's deduplication table, and each of its implementation details.

use sayso_gate::{Capture, CaptureTiming, Engine, Gate, NewSession, NoNotify, ToolCall};
use sayso_review::{ContentHash, FileState, Fingerprint, FreeReason, IfChanged, Tier};
use serde_json::{Value, json};

use crate::{Scene, path, rules};

const SESSION: &str = "s";

fn call(id: Option<&str>) -> ToolCall {
    ToolCall { session: Some(SESSION.to_owned()), call: id.map(str::to_owned), tool: "Edit".to_owned() }
}

fn edit(file: &str) -> Value {
    json!({ "file_path": file, "old_string": "one", "new_string": "two" })
}

fn capture(engine: &mut Engine, tier: Tier, id: Option<&str>, file: &str) -> Capture {
    engine.capture(tier, &call(id), &edit(file), 1).unwrap()
}

/// Returns the capture of a call's only file.
fn kept(engine: &Engine, id: &str) -> Option<FileState> {
    let history = engine.history();
    let records = history.snapshots_of_call(id).unwrap();
    assert!(records.len() <= 1, "{records:?}");
    records.first().and_then(|record| history.snapshot_state(record).unwrap())
}

fn text(state: Option<FileState>) -> String {
    String::from_utf8(state.unwrap().bytes().unwrap().to_vec()).unwrap()
}

fn only(capture: &Capture) -> CaptureTiming {
    assert_eq!(capture.uncaptured, []);
    capture.files[0].1
}

#[test]
fn answer_capture_precedes_tool_write() {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"one\n")]);
    let mut engine = scene.engine();
    // Both agents write first and report afterwards. Only the first one's traffic passes through the proxy.
    capture(&mut engine, Tier::Answer, Some("first"), "a.txt");
    scene.write("a.txt", b"two\n");
    scene.write("b.txt", b"two\n");
    assert!(matches!(only(&capture(&mut engine, Tier::Start, Some("first"), "a.txt")), CaptureTiming::Earlier(_)));
    let late = capture(&mut engine, Tier::Start, Some("second"), "b.txt");
    assert!(matches!(only(&late), CaptureTiming::Late(_)), "the fallback warns: {late:?}");
    assert_eq!(text(kept(&engine, "first")), "one\n");
    assert_eq!(text(kept(&engine, "second")), "two\n", "what the fallback can know is too late");
}

#[test]
fn answer_replaces_pending_snapshot_of_path() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    let CaptureTiming::Now(old) = only(&capture(&mut engine, Tier::Answer, None, "a.txt")) else { panic!("not kept") };
    scene.write("a.txt", b"one, edited by its user\n");
    let CaptureTiming::Now(new) = only(&capture(&mut engine, Tier::Answer, None, "a.txt")) else { panic!("not kept") };
    assert_ne!(old, new);
    assert_eq!(engine.history().snapshot(old).unwrap().freed, Some(FreeReason::Replaced));
    let pending = engine.pending_snapshot(Some(SESSION), &path("a.txt")).unwrap().unwrap();
    assert_eq!(pending.snapshot, new);
}

#[test]
fn hook_reuses_pending_snapshot() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    let CaptureTiming::Now(first) = only(&capture(&mut engine, Tier::Answer, None, "a.txt")) else {
        panic!("not kept")
    };
    assert_eq!(only(&capture(&mut engine, Tier::Hook, None, "a.txt")), CaptureTiming::Earlier(first));
    assert_eq!(engine.history().snapshots().unwrap().len(), 1);
}

#[test]
fn hook_captures_without_answer() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    assert!(matches!(only(&capture(&mut engine, Tier::Hook, Some("c"), "a.txt")), CaptureTiming::Now(_)));
    scene.write("a.txt", b"two\n");
    assert!(matches!(only(&capture(&mut engine, Tier::Start, Some("c"), "a.txt")), CaptureTiming::Earlier(_)));
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn start_after_correlation_reuses_snapshot() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, None, "a.txt");
    let CaptureTiming::Earlier(snapshot) = only(&capture(&mut engine, Tier::Hook, Some("c"), "a.txt")) else {
        panic!()
    };
    scene.write("a.txt", b"two\n");
    assert_eq!(only(&capture(&mut engine, Tier::Start, Some("c"), "a.txt")), CaptureTiming::Earlier(snapshot));
    assert_eq!(engine.history().snapshots().unwrap().len(), 1);
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn late_hook_changes_no_snapshot() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, Some("c"), "a.txt");
    scene.write("a.txt", b"two\n");
    capture(&mut engine, Tier::Start, Some("c"), "a.txt");
    capture(&mut engine, Tier::Hook, Some("c"), "a.txt");
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn hook_with_call_id_claims_pending_snapshot() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, None, "a.txt");
    assert!(kept(&engine, "c").is_none());
    capture(&mut engine, Tier::Hook, Some("c"), "a.txt");
    assert!(engine.pending_snapshot(Some(SESSION), &path("a.txt")).unwrap().is_none());
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn tools_without_edits_are_not_captured() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    for (tool, arguments) in [("Read", json!({ "file_path": "a.txt" })), ("Bash", json!({ "command": "ls" }))] {
        let call = ToolCall { tool: tool.to_owned(), ..call(Some("c")) };
        assert_eq!(engine.capture(Tier::Answer, &call, &arguments, 1).unwrap(), Capture::default(), "{tool}");
    }
}

#[test]
fn ids_are_unique_within_one_millisecond_and_across_starts() {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"one\n")]);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut engine = scene.engine();
        for file in ["a.txt", "b.txt", "a.txt"] {
            let CaptureTiming::Now(id) = only(&capture(&mut engine, Tier::Answer, None, file)) else {
                panic!("not kept")
            };
            ids.push(id);
        }
    }
    assert_eq!(ids, (1..=9).collect::<Vec<u64>>());
}

#[test]
fn ids_stay_unique_after_lost_counters() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    capture(&mut scene.engine(), Tier::Answer, Some("c"), "a.txt");
    scene.forget_counters();
    let CaptureTiming::Now(id) = only(&capture(&mut scene.engine(), Tier::Answer, Some("c"), "a.txt")) else {
        panic!("not kept")
    };
    assert_eq!(id, 2);
}

#[test]
fn restore_of_absent_file_removes_it() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    let write = json!({ "file_path": "new/file.txt", "content": "x\n" });
    let call = ToolCall { tool: "Write".to_owned(), ..call(Some("c")) };
    engine.capture(Tier::Hook, &call, &write, 1).unwrap();
    let record = &engine.history().snapshots_of_call("c").unwrap()[0];
    assert_eq!(record.snapshot.state, Fingerprint::Absent);
    scene.write("new/file.txt", b"x\n");
    let plan = engine.plan_restore(record.snapshot.snapshot).unwrap();
    engine.perform(plan, sayso_review::Origin::default(), 2).unwrap();
    assert_eq!(scene.read("new/file.txt"), None);
}

#[test]
fn session_end_frees_its_orphans() {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"one\n")]);
    let mut engine = scene.engine();
    engine.start_session(NewSession { session: SESSION.to_owned(), ..NewSession::default() }, 1).unwrap();
    let CaptureTiming::Now(orphan) = only(&capture(&mut engine, Tier::Answer, Some("never"), "a.txt")) else {
        panic!()
    };
    capture(&mut engine, Tier::Answer, Some("c"), "b.txt");
    capture(&mut engine, Tier::Start, Some("c"), "b.txt");
    let other = ToolCall { session: Some("other".to_owned()), ..call(Some("d")) };
    engine.capture(Tier::Answer, &other, &edit("a.txt"), 1).unwrap();
    engine.end_session(SESSION, 2).unwrap();
    assert_eq!(engine.history().snapshot(orphan).unwrap().freed, Some(FreeReason::SessionEnded));
    assert_eq!(text(kept(&engine, "c")), "one\n");
    assert!(engine.pending_snapshot(Some("other"), &path("a.txt")).unwrap().is_some());
    let unfreed = engine.plan_restore(orphan).unwrap();
    assert!(unfreed.preview.problems().next().is_some(), "what was freed is not put back");
}

#[test]
fn restart_frees_orphaned_answer_snapshots() {
    let scene = Scene::new(&[("a.txt", b"one of a kind\n")]);
    capture(&mut scene.engine(), Tier::Answer, Some("never"), "a.txt");
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 2).unwrap();
    let mut engine = gate.close().unwrap();
    assert_eq!(engine.history().snapshots().unwrap()[0].freed, Some(FreeReason::Restarted));
    let content = ContentHash::of(b"one of a kind\n");
    assert!(engine.history().content(content).unwrap().is_some());
    engine.collect(Some(0), None).unwrap();
    assert!(engine.history().content(content).unwrap().is_none());
}

#[test]
fn restart_keeps_pending_hook_snapshots() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    capture(&mut scene.engine(), Tier::Hook, None, "a.txt");
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 2).unwrap();
    let mut engine = gate.close().unwrap();
    scene.write("a.txt", b"two\n");
    assert!(matches!(only(&capture(&mut engine, Tier::Start, Some("c"), "a.txt")), CaptureTiming::Earlier(_)));
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn restart_without_new_answer_snapshots_writes_nothing() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    capture(&mut scene.engine(), Tier::Answer, None, "a.txt");
    let start = || Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 2).unwrap();
    let last = start().last_event();
    assert_eq!(start().last_event(), last);
    assert_eq!(last, 2, "the capture and one release");
}

#[test]
fn collection_keeps_pending_and_correlated_snapshots() {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"two\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, Some("a"), "a.txt");
    capture(&mut engine, Tier::Hook, Some("b"), "b.txt");
    engine.collect(Some(0), None).unwrap();
    assert_eq!(text(kept(&engine, "b")), "two\n");
    capture(&mut engine, Tier::Start, Some("a"), "a.txt");
    assert_eq!(text(kept(&engine, "a")), "one\n");
}

#[test]
fn edits_of_same_path_get_own_snapshots() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    assert!(matches!(only(&capture(&mut engine, Tier::Answer, Some("first"), "a.txt")), CaptureTiming::Now(_)));
    assert_eq!(only(&capture(&mut engine, Tier::Answer, Some("second"), "a.txt")), CaptureTiming::Deferred);
    // The agent runs both calls before it reports the first.
    scene.write("a.txt", b"two\n");
    capture(&mut engine, Tier::Start, Some("first"), "a.txt");
    engine.finish_call(Some(SESSION), "first", 2).unwrap();
    scene.write("a.txt", b"three\n");
    capture(&mut engine, Tier::Start, Some("second"), "a.txt");
    assert_eq!(text(kept(&engine, "first")), "one\n");
    assert_eq!(text(kept(&engine, "second")), "two\n", "taken after the first ran");
}

#[test]
fn unstarted_call_frees_next_deferred_call() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    let CaptureTiming::Now(denied) = only(&capture(&mut engine, Tier::Answer, Some("first"), "a.txt")) else {
        panic!()
    };
    capture(&mut engine, Tier::Answer, Some("second"), "a.txt");
    scene.write("a.txt", b"one, edited by its user\n");
    engine.finish_call(Some(SESSION), "first", 2).unwrap();
    assert_eq!(engine.history().snapshot(denied).unwrap().freed, Some(FreeReason::CallEnded));
    scene.write("a.txt", b"two\n");
    capture(&mut engine, Tier::Start, Some("second"), "a.txt");
    assert_eq!(text(kept(&engine, "second")), "one, edited by its user\n");
}

#[test]
fn captures_of_sessions_are_independent() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, None, "a.txt");
    let other = ToolCall { session: Some("other".to_owned()), ..call(None) };
    engine.capture(Tier::Answer, &other, &edit("a.txt"), 1).unwrap();
    assert!(engine.pending_snapshot(Some(SESSION), &path("a.txt")).unwrap().is_some());
}

#[test]
fn capture_failure_is_reported() {
    let scene = Scene::new(&[("d/x", b"")]);
    let mut engine = scene.engine();
    for file in ["d", "/etc/passwd", "../x"] {
        let capture = capture(&mut engine, Tier::Answer, None, file);
        assert_eq!((capture.files.len(), capture.uncaptured.len()), (0, 1), "{file}: {capture:?}");
    }
}

#[test]
fn binary_and_large_files_are_captured_exactly() {
    let content: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    let scene = Scene::new(&[("a.bin", &content)]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Hook, Some("c"), "a.bin");
    assert!(kept(&engine, "c").unwrap().bytes() == Some(&content[..]));
}

#[test]
fn restore_is_previewed_and_undoable() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Hook, Some("c"), "a.txt");
    scene.write("a.txt", b"two\n");
    let snapshot = engine.history().snapshots_of_call("c").unwrap()[0].snapshot.snapshot;
    let plan = engine.plan_restore(snapshot).unwrap();
    assert!(plan.preview.files()[0].unified().contains("-two\n+one\n"));
    engine.perform(plan, sayso_review::Origin::default(), 2).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), b"one\n");
    let undo = engine.plan_undo(&sayso_review::Target::Last, IfChanged::Refuse).unwrap();
    engine.perform(undo, sayso_review::Origin::default(), 3).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), b"two\n");
}
