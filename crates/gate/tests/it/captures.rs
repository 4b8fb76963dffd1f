//! Snapshots that win the race: each row of the seed's deduplication table, and each of its implementation details.

use sayso_gate::{Capture, Engine, Gate, Kept, NewSession, Silence, ToolCall};
use sayso_review::{ContentHash, FileState, Fingerprint, Freed, IfChanged, Tier};
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
    engine.capture_call(tier, &call(id), &edit(file), 1).unwrap()
}

/// What was kept for a call, of its only file.
fn kept(engine: &Engine, id: &str) -> Option<FileState> {
    let history = engine.history();
    let records = history.snapshots_of(id).unwrap();
    assert!(records.len() <= 1, "{records:?}");
    records.first().and_then(|record| history.snapshot_state(record).unwrap())
}

fn text(state: Option<FileState>) -> String {
    String::from_utf8(state.unwrap().bytes().unwrap().to_vec()).unwrap()
}

fn only(capture: &Capture) -> Kept {
    assert_eq!(capture.uncaptured, []);
    capture.files[0].1
}

#[test]
fn the_race_is_won_by_the_models_answer_and_lost_without_it() {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"one\n")]);
    let mut engine = scene.engine();
    // Both agents write at once and say so afterwards. Only the first one's traffic passed through us.
    capture(&mut engine, Tier::Answer, Some("first"), "a.txt");
    scene.write("a.txt", b"two\n");
    scene.write("b.txt", b"two\n");
    assert!(matches!(only(&capture(&mut engine, Tier::Start, Some("first"), "a.txt")), Kept::Earlier(_)));
    let late = capture(&mut engine, Tier::Start, Some("second"), "b.txt");
    assert!(matches!(only(&late), Kept::Late(_)), "the fallback warns: {late:?}");
    assert_eq!(text(kept(&engine, "first")), "one\n");
    assert_eq!(text(kept(&engine, "second")), "two\n", "what the fallback can know is too late");
}

#[test]
fn tier_1_cleans_up_the_pending_snapshot_of_the_same_path() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    let Kept::Now(old) = only(&capture(&mut engine, Tier::Answer, None, "a.txt")) else { panic!("not kept") };
    scene.write("a.txt", b"one, edited by its user\n");
    let Kept::Now(new) = only(&capture(&mut engine, Tier::Answer, None, "a.txt")) else { panic!("not kept") };
    assert_ne!(old, new);
    assert_eq!(engine.history().snapshot(old).unwrap().freed, Some(Freed::Replaced));
    let pending = engine.pending_snapshot(Some(SESSION), &path("a.txt")).unwrap().unwrap();
    assert_eq!(pending.snapshot, new);
}

#[test]
fn tier_2_skips_if_a_snapshot_of_the_path_is_pending() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    let Kept::Now(first) = only(&capture(&mut engine, Tier::Answer, None, "a.txt")) else { panic!("not kept") };
    assert_eq!(only(&capture(&mut engine, Tier::Hook, None, "a.txt")), Kept::Earlier(first));
    assert_eq!(engine.history().snapshots().unwrap().len(), 1);
}

#[test]
fn tier_2_captures_where_tier_1_did_not() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    assert!(matches!(only(&capture(&mut engine, Tier::Hook, Some("c"), "a.txt")), Kept::Now(_)));
    scene.write("a.txt", b"two\n");
    assert!(matches!(only(&capture(&mut engine, Tier::Start, Some("c"), "a.txt")), Kept::Earlier(_)));
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn tier_3_skips_if_the_call_has_a_snapshot_after_correlation() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, None, "a.txt");
    let snapshot = engine.correlate(Some(SESSION), &path("a.txt"), "c", 2).unwrap().unwrap();
    scene.write("a.txt", b"two\n");
    assert_eq!(only(&capture(&mut engine, Tier::Start, Some("c"), "a.txt")), Kept::Earlier(snapshot));
    assert_eq!(engine.history().snapshots().unwrap().len(), 1);
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn the_see_saw_does_not_matter_a_hook_after_the_start_changes_nothing() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, Some("c"), "a.txt");
    scene.write("a.txt", b"two\n");
    capture(&mut engine, Tier::Start, Some("c"), "a.txt");
    capture(&mut engine, Tier::Hook, Some("c"), "a.txt");
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn correlation_moves_a_snapshot_from_its_path_to_its_call() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, None, "a.txt");
    assert!(kept(&engine, "c").is_none());
    engine.correlate(Some(SESSION), &path("a.txt"), "c", 2).unwrap();
    assert!(engine.pending_snapshot(Some(SESSION), &path("a.txt")).unwrap().is_none());
    assert_eq!(text(kept(&engine, "c")), "one\n");
}

#[test]
fn correlating_a_path_without_a_snapshot_does_nothing() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    assert_eq!(engine.correlate(Some(SESSION), &path("a.txt"), "c", 2).unwrap(), None);
    assert!(kept(&engine, "c").is_none());
}

#[test]
fn tools_that_edit_nothing_are_not_captured() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    for (tool, arguments) in [("Read", json!({ "file_path": "a.txt" })), ("Bash", json!({ "command": "ls" }))] {
        let call = ToolCall { tool: tool.to_owned(), ..call(Some("c")) };
        assert_eq!(engine.capture_call(Tier::Answer, &call, &arguments, 1).unwrap(), Capture::default(), "{tool}");
    }
}

#[test]
fn ids_are_unique_within_one_millisecond_and_across_starts() {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"one\n")]);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut engine = scene.engine();
        for file in ["a.txt", "b.txt", "a.txt"] {
            let Kept::Now(id) = only(&capture(&mut engine, Tier::Answer, None, file)) else { panic!("not kept") };
            ids.push(id);
        }
    }
    assert_eq!(ids, (1..=9).collect::<Vec<u64>>());
}

#[test]
fn ids_are_not_given_again_after_a_repair_lost_the_counters() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    capture(&mut scene.engine(), Tier::Answer, Some("c"), "a.txt");
    scene.forget_counters();
    let Kept::Now(id) = only(&capture(&mut scene.engine(), Tier::Answer, Some("c"), "a.txt")) else {
        panic!("not kept")
    };
    assert_eq!(id, 2);
}

#[test]
fn a_new_file_has_an_empty_marker_and_restoring_it_removes_the_file() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    let write = json!({ "file_path": "new/file.txt", "content": "x\n" });
    let call = ToolCall { tool: "Write".to_owned(), ..call(Some("c")) };
    engine.capture_call(Tier::Hook, &call, &write, 1).unwrap();
    let record = &engine.history().snapshots_of("c").unwrap()[0];
    assert_eq!(record.snapshot.state, Fingerprint::Absent);
    scene.write("new/file.txt", b"x\n");
    let plan = engine.plan_restore(record.snapshot.snapshot).unwrap();
    engine.perform(plan, sayso_review::Origin::default(), 2).unwrap();
    assert_eq!(scene.read("new/file.txt"), None);
}

#[test]
fn orphans_are_freed_when_their_session_ends_and_others_stay() {
    let scene = Scene::new(&[("a.txt", b"one\n"), ("b.txt", b"one\n")]);
    let mut engine = scene.engine();
    engine.start_session(NewSession { session: SESSION.to_owned(), ..NewSession::default() }, 1).unwrap();
    let Kept::Now(orphan) = only(&capture(&mut engine, Tier::Answer, Some("never"), "a.txt")) else { panic!() };
    capture(&mut engine, Tier::Answer, Some("c"), "b.txt");
    capture(&mut engine, Tier::Start, Some("c"), "b.txt");
    let other = ToolCall { session: Some("other".to_owned()), ..call(Some("d")) };
    engine.capture_call(Tier::Answer, &other, &edit("a.txt"), 1).unwrap();
    engine.end_session(SESSION, 2).unwrap();
    assert_eq!(engine.history().snapshot(orphan).unwrap().freed, Some(Freed::SessionEnded));
    assert_eq!(text(kept(&engine, "c")), "one\n");
    assert!(engine.pending_snapshot(Some("other"), &path("a.txt")).unwrap().is_some());
    let unfreed = engine.plan_restore(orphan).unwrap();
    assert!(unfreed.preview.problems().next().is_some(), "what was freed is not put back");
}

#[test]
fn orphans_of_a_crash_are_freed_at_the_next_start_and_their_contents_go() {
    let scene = Scene::new(&[("a.txt", b"one of a kind\n")]);
    capture(&mut scene.engine(), Tier::Answer, Some("never"), "a.txt");
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(Silence), 2).unwrap();
    let mut engine = gate.close().unwrap();
    assert_eq!(engine.history().snapshots().unwrap()[0].freed, Some(Freed::Restarted));
    let content = ContentHash::of(b"one of a kind\n");
    assert!(engine.history().content(content).unwrap().is_some());
    engine.collect(Some(0), None).unwrap();
    assert!(engine.history().content(content).unwrap().is_none());
}

#[test]
fn what_is_pending_or_correlated_survives_a_collection() {
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
fn two_edits_of_one_path_in_one_message_are_two_snapshots() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    assert!(matches!(only(&capture(&mut engine, Tier::Answer, Some("first"), "a.txt")), Kept::Now(_)));
    assert_eq!(only(&capture(&mut engine, Tier::Answer, Some("second"), "a.txt")), Kept::AfterTheOther);
    // The agent runs them one after the other, and is quicker than its own messages.
    scene.write("a.txt", b"two\n");
    capture(&mut engine, Tier::Start, Some("first"), "a.txt");
    engine.call_over(Some(SESSION), "first", 2).unwrap();
    scene.write("a.txt", b"three\n");
    capture(&mut engine, Tier::Start, Some("second"), "a.txt");
    assert_eq!(text(kept(&engine, "first")), "one\n");
    assert_eq!(text(kept(&engine, "second")), "two\n", "taken after the first ran");
}

#[test]
fn a_call_that_never_runs_makes_room_for_the_one_after_it() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    let Kept::Now(denied) = only(&capture(&mut engine, Tier::Answer, Some("first"), "a.txt")) else { panic!() };
    capture(&mut engine, Tier::Answer, Some("second"), "a.txt");
    scene.write("a.txt", b"one, edited by its user\n");
    engine.call_over(Some(SESSION), "first", 2).unwrap();
    assert_eq!(engine.history().snapshot(denied).unwrap().freed, Some(Freed::CallEnded));
    scene.write("a.txt", b"two\n");
    capture(&mut engine, Tier::Start, Some("second"), "a.txt");
    assert_eq!(text(kept(&engine, "second")), "one, edited by its user\n");
}

#[test]
fn one_agents_capture_does_not_free_anothers() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Answer, None, "a.txt");
    let other = ToolCall { session: Some("other".to_owned()), ..call(None) };
    engine.capture_call(Tier::Answer, &other, &edit("a.txt"), 1).unwrap();
    assert!(engine.pending_snapshot(Some(SESSION), &path("a.txt")).unwrap().is_some());
}

#[test]
fn what_cannot_be_captured_is_said() {
    let scene = Scene::new(&[("d/x", b"")]);
    let mut engine = scene.engine();
    for file in ["d", "/etc/passwd", "../x"] {
        let capture = capture(&mut engine, Tier::Answer, None, file);
        assert_eq!((capture.files.len(), capture.uncaptured.len()), (0, 1), "{file}: {capture:?}");
    }
}

#[test]
fn binary_and_large_files_are_captured_to_the_byte() {
    let content: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    let scene = Scene::new(&[("a.bin", &content)]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Hook, Some("c"), "a.bin");
    assert!(kept(&engine, "c").unwrap().bytes() == Some(&content[..]));
}

#[test]
fn restoring_shows_what_it_does_and_can_be_undone() {
    let scene = Scene::new(&[("a.txt", b"one\n")]);
    let mut engine = scene.engine();
    capture(&mut engine, Tier::Hook, Some("c"), "a.txt");
    scene.write("a.txt", b"two\n");
    let snapshot = engine.history().snapshots_of("c").unwrap()[0].snapshot.snapshot;
    let plan = engine.plan_restore(snapshot).unwrap();
    assert!(plan.preview.files()[0].unified().contains("-two\n+one\n"));
    engine.perform(plan, sayso_review::Origin::default(), 2).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), b"one\n");
    let undo = engine.plan_undo(&sayso_review::Target::Last, IfChanged::Refuse).unwrap();
    engine.perform(undo, sayso_review::Origin::default(), 3).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), b"two\n");
}
