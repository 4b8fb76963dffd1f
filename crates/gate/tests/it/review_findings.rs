//! What a review of the engine found: each test failed before it was fixed.

use std::os::unix::fs::symlink;

use sayso_gate::{ChangeStatus, Client, Decided, Engine, Gate, Kept, Reply, Silence, Submitted, ToolCall};
use sayso_review::{
    Answer, Cause, Command, ContentHash, FileAnswer, FromNowOn, HunkId, IfChanged, Intent, Origin, Performer, Rule,
    RuleScope, Ruling, Target, Tier, Verdict,
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
    assert!(matches!(outcome, Decided::Permitted { .. }), "{outcome:?}");
    proposed.change
}

fn scans(scene: &Scene) -> std::path::PathBuf {
    scene.state.path().join("journal/scans")
}

/// A crash (or a full disk) between the hard link and the journal's write leaves the link: the change still waits and can never be approved.
#[test]
fn a_command_can_be_approved_after_a_crash_while_it_was_approved() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let proposed =
        waiting(engine.submit(submission(run("make"), Origin::default()), &mut rules(Vec::new()), 2).unwrap());
    std::fs::create_dir_all(scans(&scene)).unwrap();
    std::fs::write(scans(&scene).join(proposed.change.to_string()), b"left by a crash").unwrap();
    let outcome = engine.decide(&proposed, &proposed.approval(), 3);
    assert!(matches!(outcome, Ok(Decided::Permitted { .. })), "{outcome:?}");
}

/// What was known before a command is not a cache: damaged, it must not mean "there was nothing".
#[test]
fn a_damaged_scan_does_not_make_an_undo_remove_the_tree() {
    let scene = Scene::new(&[("a", b"1\n"), ("src/b", b"1\n")]);
    let mut engine = scene.engine();
    let change = permitted(&mut engine, "make");
    // What a power cut leaves of a file that was never synced.
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

/// Invariant 2: an approval covers bytes. A call that shows a diff is let go ahead whatever became of the file.
#[test]
fn a_tool_call_whose_file_changed_since_is_stale() {
    let scene = Scene::new(&[("a.txt", b"1\n")]);
    let mut engine = scene.engine();
    let call =
        Intent::CallTool { name: "Write".to_owned(), arguments: json!({ "file_path": "a.txt", "content": "2\n" }) };
    let proposed = waiting(engine.submit(submission(call, Origin::default()), &mut rules(Vec::new()), 2).unwrap());
    assert!(proposed.preview.files()[0].unified().contains("-1\n+2\n"));
    scene.write("a.txt", b"hours of my work\n");
    assert!(engine.decide(&proposed, &proposed.approval(), 3).is_err(), "nobody was shown these bytes");
    let fresh = engine.proposed(proposed.change).unwrap();
    assert!(fresh.preview.files()[0].unified().contains("-hours of my work\n+2\n"));
    let outcome = decide(&mut engine, &fresh, Answer::Approve);
    assert!(matches!(outcome, Decided::Permitted { .. }), "{outcome:?}");
    scene.write("a.txt", b"2\n");
    engine.finish(proposed.change, None, 4).unwrap();
    let undo = engine.plan_undo(&Target::Change { change: proposed.change }, IfChanged::Refuse).unwrap();
    engine.perform(undo, Origin::default(), 5).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), b"hours of my work\n");
}

/// A deadline that passed denies, whether or not somebody has ticked since.
#[test]
fn a_verdict_after_the_deadline_does_not_approve() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let mut intent = change(&edit("a", "1", "2"), "s", "1");
    intent.deadline = Some(100);
    let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
    let _ = engine.decide(&proposed, &proposed.approval(), 1_000_000);
    assert_eq!(scene.read("a").unwrap(), b"1\n");
}

/// The merged change that takes the place of a stale one has no deadline: it waits for ever.
#[test]
fn what_takes_the_place_of_a_stale_change_keeps_its_deadline() {
    let scene = Scene::new(&[("a", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")]);
    let mut engine = scene.engine();
    let mut intent = change(&edit("a", "1\n", "one\n"), "s", "1");
    intent.deadline = Some(100);
    let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
    scene.write("a", b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    let Decided::Stale { .. } = decide(&mut engine, &proposed, Answer::Approve) else { panic!("not stale") };
    assert_eq!(engine.next_deadline().unwrap(), Some(100));
}

/// What policy allows, and waits for another of the same file, has no deadline either.
#[test]
fn what_waits_for_another_keeps_its_deadline() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    waiting(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    let mut intent = change(&edit("a", "2", "3"), "s", "1");
    intent.deadline = Some(100);
    let mut allowing = rules(vec![writing("a", Ruling::Allow)]);
    waiting(engine.submit(intent, &mut allowing, 2).unwrap());
    assert_eq!(engine.next_deadline().unwrap(), Some(100));
}

/// "Restart in the middle changes nothing": after one, what depends on a denied change does not say so.
#[test]
fn what_depends_on_a_denied_change_says_so_after_a_restart_too() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let first = waiting(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    let second = waiting(engine.submit(change(&edit("a", "2", "3"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    drop(engine);
    let mut engine = scene.engine();
    decide(&mut engine, &first, Answer::Deny { reason: None });
    assert_eq!(engine.history().change(second.change).unwrap().without, [first.change]);
}

/// A rule must be about what was approved, not about what was proposed and edited away.
#[test]
fn an_edited_command_makes_no_rule_for_the_command_that_was_not_approved() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(Silence), 1).unwrap();
    let origin = Origin { session: Some("s".to_owned()), ..Origin::default() };
    let submit = |text: &str| Command::Submit {
        intent: run(text),
        origin: origin.clone(),
        performer: Performer::Gate,
        deadline: None,
        schema: None,
    };
    let Reply::Submitted(Submitted::Waiting(proposed)) = gate.command(Client::Person, submit("rm -r src"), 2).unwrap()
    else {
        panic!("does not wait")
    };
    let verdict: Verdict = proposed.verdict(Answer::Command { command: "ls src".to_owned() });
    let from_now_on = Some(FromNowOn { scope: RuleScope::Session, ruling: Ruling::Allow });
    gate.command(Client::Person, Command::Decide { change: proposed.change, verdict, from_now_on }, 3).unwrap();
    let record = gate.close().unwrap().history().session("s").unwrap().unwrap();
    assert!(!format!("{:?}", record.rules).contains("rm"), "{:?}", record.rules);
}

/// Nor may a denial make a rule that allows.
#[test]
fn a_denial_makes_no_rule_that_allows() {
    let scene = Scene::new(&[]);
    let gate = Gate::new(scene.engine(), rules(Vec::new()), Box::new(Silence), 1).unwrap();
    let origin = Origin { session: Some("s".to_owned()), ..Origin::default() };
    let intent = run("rm -r src");
    let submit = Command::Submit { intent, origin, performer: Performer::Gate, deadline: None, schema: None };
    let Reply::Submitted(Submitted::Waiting(proposed)) = gate.command(Client::Person, submit, 2).unwrap() else {
        panic!("does not wait")
    };
    let verdict = proposed.verdict(Answer::Deny { reason: None });
    let from_now_on = Some(FromNowOn { scope: RuleScope::Session, ruling: Ruling::Allow });
    let _ = gate.command(Client::Person, Command::Decide { change: proposed.change, verdict, from_now_on }, 3);
    let record = gate.close().unwrap().history().session("s").unwrap();
    assert!(record.is_none_or(|record| record.rules.is_empty()));
}

/// Path rules hold for tools whatever else is among the arguments.
#[test]
fn a_tool_call_cannot_hide_its_path_from_the_rules() {
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
        if let Ok(Submitted::Decided { decided: Decided::Permitted { .. }, .. }) = submitted {
            passed.push(format!("{name} {arguments}"));
        }
    }
    assert!(passed.is_empty(), "let go ahead without a question:\n{}", passed.join("\n"));
}

/// Ids of calls are the agents' own: many count from one in every session.
#[test]
fn a_call_of_another_session_with_the_same_id_is_another_call() {
    let scene = Scene::new(&[("a", b"old\n")]);
    let mut engine = scene.engine();
    let call = |session: &str| ToolCall {
        session: Some(session.to_owned()),
        call: Some("call_1".to_owned()),
        tool: "Edit".to_owned(),
    };
    let arguments = json!({ "file_path": "a", "old_string": "x", "new_string": "y" });
    engine.capture_call(Tier::Start, &call("first"), &arguments, 1).unwrap();
    scene.write("a", b"new\n");
    let capture = engine.capture_call(Tier::Start, &call("second"), &arguments, 2).unwrap();
    assert!(matches!(capture.files[0].1, Kept::Late(_)), "{capture:?}: nothing was kept of what is there now");
}

/// A snapshot of a link is found again by the name that calls use.
#[test]
fn a_pending_snapshot_of_a_file_behind_a_link_is_found() {
    let scene = Scene::new(&[("real", b"one\n")]);
    symlink("real", scene.path("link")).unwrap();
    let mut engine = scene.engine();
    let call = ToolCall { session: Some("s".to_owned()), call: None, tool: "Edit".to_owned() };
    let arguments = json!({ "file_path": "link", "old_string": "one", "new_string": "two" });
    engine.capture_call(Tier::Answer, &call, &arguments, 1).unwrap();
    let hook = engine.capture_call(Tier::Hook, &call, &arguments, 2).unwrap();
    assert!(matches!(hook.files[0].1, Kept::Earlier(_)), "tier 2 must skip: {hook:?}");
}

/// And a second capture of it must not turn the link into a file when it is put back.
#[test]
fn restoring_the_second_snapshot_of_a_link_writes_what_it_leads_to() {
    let scene = Scene::new(&[("real", b"one\n")]);
    symlink("real", scene.path("link")).unwrap();
    let mut engine = scene.engine();
    let arguments = json!({ "file_path": "link", "old_string": "one", "new_string": "two" });
    let mut last = 0;
    for id in ["1", "2"] {
        let call = ToolCall { session: Some("s".to_owned()), call: Some(id.to_owned()), tool: "Edit".to_owned() };
        let capture = engine.capture_call(Tier::Hook, &call, &arguments, 1).unwrap();
        let Kept::Now(snapshot) = capture.files[0].1 else { panic!("{capture:?}") };
        last = snapshot;
    }
    scene.write("real", b"two\n");
    let plan = engine.plan_restore(last).unwrap();
    let outcome = engine.perform(plan, Origin::default(), 3);
    assert!(scene.path("link").is_symlink(), "the link became a file: {outcome:?}");
    assert_eq!(scene.read("real").unwrap(), b"one\n", "{outcome:?}");
}

/// Ending a turn twice (hooks do) must not put the same changes up twice.
#[test]
fn a_turn_is_put_up_for_review_once() {
    let scene = Scene::new(&[("a.txt", b"1\n")]);
    let mut engine = scene.engine();
    let mut rules = rules(vec![writing("*.txt", Ruling::Later)]);
    decided(engine.submit(change(&edit("a.txt", "1", "2"), "s", "1"), &mut rules, 2).unwrap());
    let first = engine.end_turn("s", "1", 3).unwrap().unwrap();
    let second = engine.end_turn("s", "1", 4).unwrap();
    let waits = engine.waiting().unwrap();
    assert_eq!(waits.len(), 1, "{} and {:?} wait", first.change, second.map(|review| review.change));
}

/// "Undo last" is about what happened last, however long ago it was proposed.
#[test]
fn the_last_change_is_the_one_that_happened_last() {
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

/// A file that was changed under a command by another change, and put back by the command, was changed by the command.
#[test]
fn what_a_command_takes_back_of_another_change_is_found() {
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

/// And what it changed before another change of the same file.
#[test]
fn what_a_command_changes_before_another_change_is_found() {
    let scene = Scene::new(&[("a", b"1\nx\n")]);
    let mut engine = scene.engine();
    let slow = permitted(&mut engine, "sed -i s/x/y/ a");
    scene.write("a", b"1\ny\n");
    let mut rules = rules(vec![writing("a", Ruling::Allow)]);
    decided(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules, 3).unwrap());
    let finished = engine.finish(slow, Some(0), 4).unwrap();
    assert_eq!(finished.record.steps.len(), 1, "x became y, and that is on no record");
}

/// `end_observing` says that a scan which stays behind is removed with the next collection; nothing does, and its contents are kept for ever.
#[test]
fn scans_of_commands_that_nobody_finishes_do_not_stay() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let first = permitted(&mut engine, "make");
    engine.finish(first, None, 3).unwrap();
    std::fs::hard_link(scans(&scene).join("last"), scans(&scene).join(first.to_string())).unwrap();
    engine.collect(Some(i64::MAX), Some(0)).unwrap();
    assert!(!scans(&scene).join(first.to_string()).exists(), "\"removed with the next collection\"");
}

/// An agent that writes by itself, and more than the one hunk of two that was approved: its `Finish` made that the change.
#[test]
fn finishing_more_than_was_approved_does_not_widen_the_approval() {
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
        let Decided::Permitted { plan, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(plan.steps()[0].after.fingerprint().hash(), hash(&lines(&[2])));
        scene.write("a", written.as_bytes());
        let finished = engine.finish(proposed.change, None, 4).unwrap();
        assert_eq!(finished.differs, if differs { vec![path("a")] } else { Vec::new() });
        let record = engine.history().change(proposed.change).unwrap();
        // What happened is what is there; what was approved stays what was approved.
        assert_eq!(record.applied.as_ref().unwrap().steps[0].after.hash(), hash(&written));
        assert_eq!(record.verdict.as_ref().unwrap().answer, answer);
        let approved: Vec<_> = record.expected.iter().map(|step| (step.path.clone(), step.after.hash())).collect();
        assert_eq!(approved, [(path("a"), hash(&lines(&[2])))]);
        // Said a second time, it changes nothing.
        engine.finish(proposed.change, None, 5).unwrap_err();
        assert_eq!(engine.history().change(proposed.change).unwrap(), record);
    }
}

/// A crash between a stale change's end and the beginning of what takes its place left nothing to decide about.
#[test]
fn a_stale_change_ends_only_together_with_what_takes_its_place() {
    for performer in [Performer::Gate, Performer::Agent] {
        let mut room = 0;
        loop {
            let scene = Scene::new(&[("a", b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")]);
            let mut engine = scene.engine();
            let mut intent = change(&edit("a", "1\n", "one\n"), "s", "1");
            intent.performer = performer;
            let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
            scene.write("a", b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
            // Room for so many events, and no more: whatever is written after them is not, as in a crash.
            scene.refuse_events_after(room);
            let outcome = engine.decide(&proposed, &proposed.approval(), 3);
            drop(engine);
            scene.refuse_no_events();
            let engine = scene.engine();
            let statuses: Vec<_> =
                engine.history().changes(None).map(Result::unwrap).map(|one| (one.cause, one.status)).collect();
            if outcome.is_ok() {
                let next = (Cause::Rebase { of: proposed.change }, ChangeStatus::Pending);
                assert_eq!(statuses, [next, (Cause::Proposal, ChangeStatus::Stale)], "{performer:?}");
                break;
            }
            let [(_, status)] = &statuses[..] else { panic!("{performer:?} {room}: {statuses:?}") };
            assert_ne!(*status, ChangeStatus::Stale, "{performer:?} with room for {room}");
            room += 1;
        }
        // The verdict, the end, and the beginning, at least.
        assert!(room >= 3, "{performer:?}: {room}");
    }
}
