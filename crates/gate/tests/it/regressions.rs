//! Regressions that a review of the engine found.

use std::os::unix::fs::symlink;

use sayso_gate::{
    CaptureTiming, ChangeStatus, DecisionResult, Engine, Gate, NoNotify, Submission, SubmitResult, ToolCall,
};
use sayso_review::{
    Answer, Cause, ContentHash, FileAnswer, HunkId, IfChanged, Intent, Origin, Performer, RememberAs, Rule, RuleScope,
    Ruling, Target, Tier, Verdict,
};
use serde_json::{Value, json};

use crate::{Scene, change, decide, decided, path, rules, submission, waiting, writing};

fn run(text: &str) -> Intent {
    Intent::RunCommand { command: text.to_owned(), directory: None, description: None }
}

fn edit(file: &str, old: &str, new: &str) -> String {
    json!({ "operation": "edit", "path": file, "old_string": old, "new_string": new }).to_string()
}

fn permitted(engine: &mut Engine, text: &str) -> u64 {
    let proposed = waiting(engine.submit(submission(run(text), Origin::default()), &mut rules(Vec::new()), 2).unwrap());
    let outcome = decide(engine, &proposed, Answer::Approve);
    assert!(matches!(outcome, DecisionResult::Permitted { .. }), "{outcome:?}");
    proposed.change
}

fn scans(scene: &Scene) -> std::path::PathBuf {
    scene.state.path().join("journal/scans")
}

/// After a crash between the scan's hard link and the journal's write, the link remained and blocked the approval.
#[test]
fn command_is_approvable_after_crash() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let proposed =
        waiting(engine.submit(submission(run("make"), Origin::default()), &mut rules(Vec::new()), 2).unwrap());
    std::fs::create_dir_all(scans(&scene)).unwrap();
    std::fs::write(scans(&scene).join(proposed.change.to_string()), b"left by a crash").unwrap();
    let outcome = engine.decide(&proposed, &proposed.approval(), 3);
    assert!(matches!(outcome, Ok(DecisionResult::Permitted { .. })), "{outcome:?}");
}

/// A damaged scan must not count as an empty tree.
#[test]
fn damaged_scan_yields_no_deletions() {
    let scene = Scene::new(&[("a", b"1\n"), ("src/b", b"1\n")]);
    let mut engine = scene.engine();
    let change = permitted(&mut engine, "make");
    // As after a power failure before a sync.
    let file = scans(&scene).join(change.to_string());
    let length = std::fs::metadata(&file).unwrap().len();
    std::fs::write(&file, vec![0; usize::try_from(length).unwrap()]).unwrap();
    scene.write("a", b"2\n");
    engine.finish(change, Some(0), 4).unwrap();
    if let Ok(undo) = engine.plan_undo(&Target::Change { change }, IfChanged::Refuse) {
        let _ = engine.perform(undo, Origin::default(), 5);
    }
    assert!(scene.read("src/b").is_some(), "the command never touched it, and undoing the command removed it");
}

/// Invariant 2: an approval covers bytes, also for a tool call with a diff.
#[test]
fn tool_call_with_changed_file_is_stale() {
    let scene = Scene::new(&[("a.txt", b"1\n")]);
    let mut engine = scene.engine();
    let call =
        Intent::CallTool { name: "Write".to_owned(), arguments: json!({ "file_path": "a.txt", "content": "2\n" }) };
    let proposed = waiting(engine.submit(submission(call, Origin::default()), &mut rules(Vec::new()), 2).unwrap());
    assert!(proposed.preview.files()[0].unified().contains("-1\n+2\n"));
    scene.write("a.txt", b"hours of my work\n");
    assert!(engine.decide(&proposed, &proposed.approval(), 3).is_err(), "nobody was shown these bytes");
    let fresh = engine.pending_change(proposed.change).unwrap();
    assert!(fresh.preview.files()[0].unified().contains("-hours of my work\n+2\n"));
    let outcome = decide(&mut engine, &fresh, Answer::Approve);
    assert!(matches!(outcome, DecisionResult::Permitted { .. }), "{outcome:?}");
    scene.write("a.txt", b"2\n");
    engine.finish(proposed.change, None, 4).unwrap();
    let undo = engine.plan_undo(&Target::Change { change: proposed.change }, IfChanged::Refuse).unwrap();
    engine.perform(undo, Origin::default(), 5).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), b"hours of my work\n");
}

/// A deadline counts without a tick.
#[test]
fn verdict_after_deadline_does_not_approve() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let mut intent = change(&edit("a", "1", "2"), "s", "1");
    intent.deadline = Some(100);
    let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
    let _ = engine.decide(&proposed, &proposed.approval(), 1_000_000);
    assert_eq!(scene.read("a").unwrap(), b"1\n");
}

/// The merged change lost the deadline of the stale one.
#[test]
fn replacement_of_stale_change_keeps_deadline() {
    let scene = Scene::new(&[("a", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")]);
    let mut engine = scene.engine();
    let mut intent = change(&edit("a", "1\n", "one\n"), "s", "1");
    intent.deadline = Some(100);
    let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
    scene.write("a", b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    let DecisionResult::Stale { .. } = decide(&mut engine, &proposed, Answer::Approve) else { panic!("not stale") };
    assert_eq!(engine.next_deadline().unwrap(), Some(100));
}

/// An allowed change that depends on a pending one had no deadline.
#[test]
fn dependent_change_keeps_deadline() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    waiting(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    let mut intent = change(&edit("a", "2", "3"), "s", "1");
    intent.deadline = Some(100);
    let mut allowing = rules(vec![writing("a", Ruling::Allow)]);
    waiting(engine.submit(intent, &mut allowing, 2).unwrap());
    assert_eq!(engine.next_deadline().unwrap(), Some(100));
}

/// After a restart, dependents of a denied change were not marked.
#[test]
fn dependent_is_marked_after_restart() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let first = waiting(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    let second = waiting(engine.submit(change(&edit("a", "2", "3"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    drop(engine);
    let mut engine = scene.engine();
    decide(&mut engine, &first, Answer::Deny { reason: None });
    assert_eq!(engine.history().change(second.change).unwrap().dropped_predecessors, [first.change]);
}

/// The rule must cover the approved command, not the proposed one.
#[test]
fn rule_covers_edited_command_only() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 1).unwrap();
    let origin = Origin { session: Some("s".to_owned()), ..Origin::default() };
    let proposed = waiting(gate.submit(Submission::new(run("rm -r src"), origin), 2).unwrap());
    let verdict: Verdict = proposed.verdict(Answer::Command { command: "ls src".to_owned() });
    let remember = Some(RememberAs { scope: RuleScope::Session, ruling: Ruling::Allow });
    gate.decide(proposed.change, &verdict, remember, 3).unwrap();
    let record = gate.close().unwrap().history().session("s").unwrap().unwrap();
    assert!(!format!("{:?}", record.rules).contains("rm"), "{:?}", record.rules);
}

/// A denial must not make a rule that allows.
#[test]
fn denial_makes_no_allow_rule() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(NoNotify), 1).unwrap();
    let origin = Origin { session: Some("s".to_owned()), ..Origin::default() };
    let proposed = waiting(gate.submit(Submission::new(run("rm -r src"), origin), 2).unwrap());
    let verdict = proposed.verdict(Answer::Deny { reason: None });
    let remember = Some(RememberAs { scope: RuleScope::Session, ruling: Ruling::Allow });
    let _ = gate.decide(proposed.change, &verdict, remember, 3);
    let record = gate.close().unwrap().history().session("s").unwrap();
    assert!(record.is_none_or(|record| record.rules.is_empty()));
}

/// Path rules apply to tools regardless of other arguments.
#[test]
fn path_rule_applies_to_tool_arguments() {
    let scene = Scene::new(&[("secret/x", b"1\n"), (".git/config", b"")]);
    let mut engine = scene.engine();
    let mut allowing = Rule::new(Ruling::Allow);
    allowing.tool = vec!["*".to_owned()];
    allowing.write = vec!["**".to_owned()];
    let mut denied_read = Rule::new(Ruling::Deny);
    denied_read.read = vec!["secret/**".to_owned()];
    let mut rules = rules(vec![allowing, writing("secret/**", Ruling::Deny), denied_read]);
    let calls: [(&str, Value); 9] = [
        ("Write", json!({ "file_path": "secret/x", "content": "2\n" })),
        ("Write", json!({ "file_path": ".git/hooks/pre-commit", "content": "2\n", "mode": "overwrite" })),
        ("Write", json!({ "file_path": "secret/x", "content": "2\n", "mode": "overwrite" })),
        (
            "str_replace_based_edit_tool",
            json!({ "command": "insert", "path": "secret/x", "insert_line": 0, "new_str": "2\n" }),
        ),
        ("append_file", json!({ "path": "secret/x", "content": "2\n" })),
        ("NotebookEdit", json!({ "notebook_path": "secret/x", "new_source": "2\n" })),
        ("create_task", json!({ "path": "secret/x", "content": "2\n", "prompt": "" })),
        (
            "apply_patch",
            json!({ "input": "*** Begin Patch\n*** Update File: secret/x\n@@\n-1\n+2\n???\n*** End Patch\n" }),
        ),
        ("Read", json!({ "file_path": "secret/x" })),
    ];
    let mut passed = Vec::new();
    for (name, arguments) in calls {
        let intent = Intent::CallTool { name: name.to_owned(), arguments: arguments.clone() };
        let submitted = engine.submit(submission(intent, Origin::default()), &mut rules, 2);
        if let Ok(SubmitResult::Decided { decided: DecisionResult::Permitted { .. }, .. }) = submitted {
            passed.push(format!("{name} {arguments}"));
        }
    }
    assert!(passed.is_empty(), "let go ahead without a question:\n{}", passed.join("\n"));
}

/// Call ids are unique only within a session.
#[test]
fn same_call_id_in_other_session_differs() {
    let scene = Scene::new(&[("a", b"old\n")]);
    let mut engine = scene.engine();
    let call = |session: &str| ToolCall {
        session: Some(session.to_owned()),
        call: Some("call_1".to_owned()),
        tool: "Edit".to_owned(),
    };
    let arguments = json!({ "file_path": "a", "old_string": "x", "new_string": "y" });
    engine.capture(Tier::Start, &call("first"), &arguments, 1).unwrap();
    scene.write("a", b"new\n");
    let capture = engine.capture(Tier::Start, &call("second"), &arguments, 2).unwrap();
    assert!(matches!(capture.files[0].1, CaptureTiming::Late(_)), "{capture:?}: nothing was kept of what is there now");
}

/// A snapshot of a link is found by the link's path.
#[test]
fn pending_snapshot_behind_link_is_found() {
    let scene = Scene::new(&[("real", b"one\n")]);
    symlink("real", scene.path("link")).unwrap();
    let mut engine = scene.engine();
    let call = ToolCall { session: Some("s".to_owned()), call: None, tool: "Edit".to_owned() };
    let arguments = json!({ "file_path": "link", "old_string": "one", "new_string": "two" });
    engine.capture(Tier::Answer, &call, &arguments, 1).unwrap();
    let hook = engine.capture(Tier::Hook, &call, &arguments, 2).unwrap();
    assert!(matches!(hook.files[0].1, CaptureTiming::Earlier(_)), "tier 2 must skip: {hook:?}");
}

/// Restoring the second snapshot of a link must not replace the link with a file.
#[test]
fn restore_of_link_snapshot_writes_target() {
    let scene = Scene::new(&[("real", b"one\n")]);
    symlink("real", scene.path("link")).unwrap();
    let mut engine = scene.engine();
    let arguments = json!({ "file_path": "link", "old_string": "one", "new_string": "two" });
    let mut last = 0;
    for id in ["1", "2"] {
        let call = ToolCall { session: Some("s".to_owned()), call: Some(id.to_owned()), tool: "Edit".to_owned() };
        let capture = engine.capture(Tier::Hook, &call, &arguments, 1).unwrap();
        let CaptureTiming::Now(snapshot) = capture.files[0].1 else { panic!("{capture:?}") };
        last = snapshot;
    }
    scene.write("real", b"two\n");
    let plan = engine.plan_restore(last).unwrap();
    let outcome = engine.perform(plan, Origin::default(), 3);
    assert!(scene.path("link").is_symlink(), "the link became a file: {outcome:?}");
    assert_eq!(scene.read("real").unwrap(), b"one\n", "{outcome:?}");
}

/// Ending a turn twice, as hooks do, must not start a second review.
#[test]
fn turn_review_starts_once() {
    let scene = Scene::new(&[("a.txt", b"1\n")]);
    let mut engine = scene.engine();
    let mut rules = rules(vec![writing("*.txt", Ruling::Later)]);
    decided(engine.submit(change(&edit("a.txt", "1", "2"), "s", "1"), &mut rules, 2).unwrap());
    let first = engine.end_turn("s", "1", 3).unwrap().unwrap();
    let second = engine.end_turn("s", "1", 4).unwrap();
    let waits = engine.pending_changes().unwrap();
    assert_eq!(waits.len(), 1, "{} and {:?} wait", first.change, second.map(|review| review.change));
}

/// `Target::Last` means the latest application, however long ago the change was proposed.
#[test]
fn last_target_is_latest_application() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let slow = permitted(&mut engine, "make everything");
    let mut rules = rules(vec![writing("b*", Ruling::Allow)]);
    for number in 0..66 {
        let text = json!({ "operation": "create", "path": format!("b{number}"), "new_content": "x\n" }).to_string();
        decided(engine.submit(change(&text, "s", "1"), &mut rules, 3).unwrap());
    }
    scene.write("a", b"2\n");
    engine.finish(slow, Some(0), 4).unwrap();
    let undo = engine.plan_undo(&Target::Last, IfChanged::Refuse).unwrap();
    assert_eq!(undo.changes(), [slow]);
}

/// A file that another change modified and the command reverted counts as changed by the command.
#[test]
fn command_revert_of_other_change_is_found() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let slow = permitted(&mut engine, "git checkout a");
    let mut rules = rules(vec![writing("a", Ruling::Allow)]);
    decided(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules, 3).unwrap());
    scene.write("a", b"1\n");
    let finished = engine.finish(slow, Some(0), 4).unwrap();
    assert_eq!(finished.record.steps.len(), 1, "the approved change is gone from the tree, and nobody says so");
    assert_eq!(engine.history().change(slow).unwrap().status, ChangeStatus::Applied);
}

/// So does a change before another change of the same file.
#[test]
fn command_effect_before_other_change_is_found() {
    let scene = Scene::new(&[("a", b"1\nx\n")]);
    let mut engine = scene.engine();
    let slow = permitted(&mut engine, "sed -i s/x/y/ a");
    scene.write("a", b"1\ny\n");
    let mut rules = rules(vec![writing("a", Ruling::Allow)]);
    decided(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules, 3).unwrap());
    let finished = engine.finish(slow, Some(0), 4).unwrap();
    assert_eq!(finished.record.steps.len(), 1, "x became y, and that is on no record");
}

/// Scans of abandoned commands are removed with the next collection.
#[test]
fn scans_of_abandoned_commands_are_removed() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let first = permitted(&mut engine, "make");
    engine.finish(first, None, 3).unwrap();
    std::fs::hard_link(scans(&scene).join("last"), scans(&scene).join(first.to_string())).unwrap();
    engine.collect(Some(i64::MAX), Some(0)).unwrap();
    assert!(!scans(&scene).join(first.to_string()).exists(), "\"removed with the next collection\"");
}

/// The agent wrote more than the approved hunk, and `finish` recorded all of it as approved.
#[test]
fn unapproved_effects_stay_unapproved() {
    let lines = |changed: &[usize]| -> String {
        (1..=20).map(|line| format!("{line}{}\n", if changed.contains(&line) { " changed" } else { "" })).collect()
    };
    let hash = |text: &str| Some(ContentHash::of(text.as_bytes()));
    for (written, differs) in [(lines(&[2, 19]), true), (lines(&[2]), false)] {
        let scene = Scene::new(&[("a", lines(&[]).as_bytes())]);
        let mut engine = scene.engine();
        let whole = json!({ "operation": "update", "path": "a", "new_content": lines(&[2, 19]) }).to_string();
        let mut intent = change(&whole, "s", "1");
        intent.performer = Performer::Agent;
        let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
        let first = FileAnswer::Hunks { hunks: [HunkId::whole(1)].into() };
        let answer = Answer::Files { files: [(path("a"), first)].into(), reason: None };
        let outcome = decide(&mut engine, &proposed, answer.clone());
        let DecisionResult::Permitted { plan, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(plan.steps()[0].after.fingerprint().hash(), hash(&lines(&[2])));
        scene.write("a", written.as_bytes());
        let finished = engine.finish(proposed.change, None, 4).unwrap();
        assert_eq!(finished.differs, if differs { vec![path("a")] } else { Vec::new() });
        let record = engine.history().change(proposed.change).unwrap();
        // The record has the actual effect, and the approval is unchanged.
        assert_eq!(record.applied.as_ref().unwrap().steps[0].after.hash(), hash(&written));
        assert_eq!(record.verdict.as_ref().unwrap().answer, answer);
        let approved: Vec<_> = record.expected.iter().map(|step| (step.path.clone(), step.after.hash())).collect();
        assert_eq!(approved, [(path("a"), hash(&lines(&[2])))]);
        // A second report has no effect.
        engine.finish(proposed.change, None, 5).unwrap_err();
        assert_eq!(engine.history().change(proposed.change).unwrap(), record);
    }
}

/// A crash between the end of a stale change and its replacement left no change to decide.
#[test]
fn stale_change_ends_with_its_replacement() {
    for performer in [Performer::Gate, Performer::Agent] {
        let mut room = 0;
        loop {
            let scene = Scene::new(&[("a", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")]);
            let mut engine = scene.engine();
            let mut intent = change(&edit("a", "1\n", "one\n"), "s", "1");
            intent.performer = performer;
            let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
            scene.write("a", b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
            // The journal rejects the events after these, as in a crash.
            scene.refuse_events_after(room);
            let outcome = engine.decide(&proposed, &proposed.approval(), 3);
            drop(engine);
            scene.refuse_no_events();
            let engine = scene.engine();
            let statuses: Vec<_> =
                engine.history().changes(None).map(Result::unwrap).map(|one| (one.cause, one.status)).collect();
            if outcome.is_ok() {
                let next = (Cause::Rebase { original: proposed.change }, ChangeStatus::Pending);
                assert_eq!(statuses, [next, (Cause::Proposal, ChangeStatus::Stale)], "{performer:?}");
                break;
            }
            let [(_, status)] = &statuses[..] else { panic!("{performer:?} {room}: {statuses:?}") };
            assert_ne!(*status, ChangeStatus::Stale, "{performer:?} with room for {room}");
            room += 1;
        }
        // At least the verdict, the end and the replacement.
        assert!(room >= 3, "{performer:?}: {room}");
    }
}
