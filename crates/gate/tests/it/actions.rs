//! Commands, calls of tools, and changes that an agent makes by itself.

use sayso_gate::{ChangeStatus, DecisionResult, Engine, GateError, SnapshotLimits};
use sayso_review::{
    Answer, AppliedPart, FileAnswer, Fingerprint, HunkId, IfChanged, Intent, Origin, Performer, Rule, Ruling, Subject,
    Target, VerdictError,
};
use serde_json::json;

use crate::{Scene, change, decide, decided, path, rules, submission, waiting};

fn command(text: &str) -> Intent {
    Intent::RunCommand { command: text.to_owned(), directory: None, description: None }
}

fn running(pattern: &str, then: Ruling) -> Rule {
    let mut rule = Rule::new(then);
    rule.run = vec![pattern.to_owned()];
    rule
}

/// Submits a command and approves it.
fn permitted(engine: &mut Engine, text: &str) -> u64 {
    let proposed =
        waiting(engine.submit(submission(command(text), Origin::default()), &mut rules(Vec::new()), 2).unwrap());
    let outcome = decide(engine, &proposed, Answer::Approve);
    assert!(matches!(outcome, DecisionResult::Permitted { .. }), "{outcome:?}");
    proposed.change
}

fn steps(engine: &Engine, change: u64) -> Vec<(String, bool, bool)> {
    let record = engine.history().change(change).unwrap();
    let there = |print: &Fingerprint| *print != Fingerprint::Absent;
    let steps = record.applied.map(|applied| applied.steps).unwrap_or_default();
    steps.iter().map(|step| (step.path.to_string(), there(&step.before), there(&step.after))).collect()
}

#[test]
fn command_effects_are_undone_per_file() {
    let scene = Scene::new(&[
        ("a.txt", b"1\n"),
        ("b.txt", b"1\n"),
        ("gone.txt", b"1\n"),
        (".gitignore", b"target\n.env\n"),
        ("target/x", b"1\n"),
        (".env", b"KEY=1\n"),
    ]);
    let mut engine = scene.engine();
    let change = permitted(&mut engine, "make everything");
    scene.write("a.txt", b"2\n");
    scene.write("b.txt", b"2\n");
    scene.write("new/file.txt", b"2\n");
    scene.write("target/x", b"2\n");
    scene.write(".env", b"KEY=2\n");
    std::fs::remove_file(scene.path("gone.txt")).unwrap();
    engine.finish(change, Some(3), 4).unwrap();
    let record = engine.history().change(change).unwrap();
    assert_eq!((&record.status, record.exit_code), (&ChangeStatus::Applied, Some(3)));
    let expected = [
        (".env", true, true),
        ("a.txt", true, true),
        ("b.txt", true, true),
        ("gone.txt", true, false),
        ("new/file.txt", false, true),
    ];
    assert_eq!(steps(&engine, change), expected.map(|(path, before, after)| (path.to_owned(), before, after)));
    assert!(
        engine
            .history()
            .applied_preview(&record)
            .unwrap()
            .files()
            .iter()
            .any(|file| file.unified().contains("-1\n+2\n"))
    );

    let paths = vec![path("b.txt"), path("gone.txt")];
    let target = Target::Files { change, paths: paths.clone() };
    let plan = engine.plan_undo(&target, IfChanged::Refuse).unwrap();
    engine.perform(plan, Origin::default(), 5).unwrap();
    assert_eq!(scene.read("b.txt").unwrap(), b"1\n");
    assert_eq!(scene.read("gone.txt").unwrap(), b"1\n");
    assert_eq!(scene.read("a.txt").unwrap(), b"2\n", "only those that were named");
    assert!(engine.plan_undo(&target, IfChanged::Refuse).is_err(), "they are undone already");

    let redo = engine.plan_redo(&Target::Last, IfChanged::Refuse).unwrap();
    engine.perform(redo, Origin::default(), 6).unwrap();
    assert_eq!(scene.read("b.txt").unwrap(), b"2\n");
    let plan = engine.plan_undo(&Target::Files { change, paths }, IfChanged::Refuse).unwrap();
    engine.perform(plan, Origin::default(), 7).unwrap();

    let rest = engine.plan_undo(&Target::Change { change }, IfChanged::Refuse).unwrap();
    engine.perform(rest, Origin::default(), 8).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), b"1\n");
    assert_eq!(scene.read(".env").unwrap(), b"KEY=1\n");
    assert!(!scene.path("new").exists(), "the directory that came with it goes with it");
    assert_eq!(scene.read("target/x").unwrap(), b"2\n", "what git ignores is left alone");
}

#[test]
fn concurrent_change_is_not_attributed_to_command() {
    let scene = Scene::new(&[("a.txt", b"1\n"), ("b.txt", b"1\n")]);
    let mut engine = scene.engine();
    let running = permitted(&mut engine, "sleep 1");
    let text = r#"{"operation":"update","path":"a.txt","new_content":"approved\n"}"#;
    let proposed = crate::propose(&mut engine, text);
    decide(&mut engine, &proposed, Answer::Approve);
    scene.write("b.txt", b"2\n");
    engine.finish(running, Some(0), 5).unwrap();
    assert_eq!(steps(&engine, running), [("b.txt".to_owned(), true, true)]);
}

#[test]
fn running_command_survives_restart() {
    let scene = Scene::new(&[("a.txt", b"1\n")]);
    let change = permitted(&mut scene.engine(), "make");
    scene.write("a.txt", b"2\n");
    let mut engine = scene.engine();
    engine.finish(change, None, 4).unwrap();
    let plan = engine.plan_undo(&Target::Change { change }, IfChanged::Refuse).unwrap();
    engine.perform(plan, Origin::default(), 5).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), b"1\n");
}

#[test]
fn uncaptured_effects_are_reported_in_undo() {
    let scene = Scene::new(&[("large.bin", &[7; 5_000]), ("small.txt", b"1\n")]);
    let mut engine = scene.engine().with_limits(SnapshotLimits { max_file_bytes: 1_000, quota_bytes: 1 << 20 });
    let change = permitted(&mut engine, "make");
    scene.write("large.bin", &[8; 5_001]);
    scene.write("small.txt", b"2\n");
    let finished = engine.finish(change, Some(0), 4).unwrap();
    assert_eq!(steps(&engine, change), [("small.txt".to_owned(), true, true)]);
    assert_eq!(finished.uncaptured.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), ["large.bin"]);
    assert_eq!(engine.history().change(change).unwrap().uncaptured, finished.uncaptured);
}

#[test]
fn quota_releases_oldest_but_not_pending_contents() {
    let scene = Scene::new(&[("a.txt", b"0")]);
    let mut engine = scene.engine().with_limits(SnapshotLimits { max_file_bytes: 1 << 20, quota_bytes: 80_000 });
    let noise = |seed: u8| -> Vec<u8> {
        let mut hash = sayso_review::ContentHash::of(&[seed]);
        (0..1_000)
            .flat_map(|_| {
                hash = sayso_review::ContentHash::of(hash.as_bytes());
                *hash.as_bytes()
            })
            .collect()
    };
    let kept = json!({ "operation": "write", "path": "waits.txt", "content": "waits\n".repeat(100) }).to_string();
    let waits = waiting(engine.submit(change(&kept, "s", "1"), &mut rules(Vec::new()), 1).unwrap());
    let mut changes = Vec::new();
    for seed in 0..4 {
        let change = permitted(&mut engine, "make");
        scene.write("a.txt", &noise(seed));
        engine.finish(change, Some(0), 4).unwrap();
        changes.push(change);
    }
    permitted(&mut engine, "make");
    let oldest = engine.plan_undo(&Target::Change { change: changes[1] }, IfChanged::Refuse).unwrap();
    assert!(oldest.preview.problems().next().is_some(), "the oldest is gone");
    let newest = engine.plan_undo(&Target::Change { change: changes[3] }, IfChanged::Refuse).unwrap();
    assert!(newest.preview.problems().next().is_none(), "{:?}", newest.preview.problems().next());
    decide(&mut engine, &waits, Answer::Approve);
    assert!(scene.read("waits.txt").is_some());
}

#[test]
fn rule_denies_command_before_run() {
    let scene = Scene::new(&[("a.txt", b"1\n")]);
    let mut engine = scene.engine();
    let mut rules = rules(vec![running("rm", Ruling::Deny), running("git status", Ruling::Allow)]);
    for text in ["rm -rf .", "git status; rm a.txt", "bash -c 'rm a.txt'", "git status $(rm a.txt)"] {
        let (proposed, outcome) =
            decided(engine.submit(submission(command(text), Origin::default()), &mut rules, 2).unwrap());
        let DecisionResult::Denied { agent_message: told } = outcome else { panic!("{text}: {outcome:?}") };
        assert!(told.contains("denied by the rule"), "{told}");
        assert_eq!(engine.history().change(proposed.change).unwrap().status, ChangeStatus::Denied);
    }
    let (_, outcome) =
        decided(engine.submit(submission(command("git status"), Origin::default()), &mut rules, 2).unwrap());
    assert!(matches!(outcome, DecisionResult::Permitted { .. }), "{outcome:?}");
    let echo = engine.submit(submission(command("echo \"rm -rf\""), Origin::default()), &mut rules, 2).unwrap();
    waiting(echo);
}

#[test]
fn command_is_previewed_and_editable() {
    let scene = Scene::new(&[("a.txt", b"1\n")]);
    let mut engine = scene.engine();
    let submitted =
        engine.submit(submission(command("rm -rf a.txt /etc/outside"), Origin::default()), &mut rules(Vec::new()), 2);
    // A path outside the workspace asks.
    let proposed = waiting(submitted.unwrap());
    let Subject::Command { preview, .. } = &proposed.subject else { panic!("no command") };
    assert!(preview.effects.len() >= 2, "{preview:?}");

    let proposed =
        waiting(engine.submit(submission(command("rm a.txt"), Origin::default()), &mut rules(Vec::new()), 2).unwrap());
    let wrong = engine.decide(&proposed, &proposed.verdict(Answer::Arguments { arguments: json!({}) }), 3).unwrap_err();
    assert!(matches!(wrong, GateError::Verdict(VerdictError::NotAnAnswer(_))));
    let outcome = decide(&mut engine, &proposed, Answer::Command { command: "rm -i a.txt".to_owned() });
    let DecisionResult::Permitted { subject: Subject::Command { command, .. }, agent_message: told, .. } = outcome
    else {
        panic!()
    };
    assert_eq!(command, "rm -i a.txt");
    assert!(told.contains("rm -i a.txt"), "{told}");
}

#[test]
fn agent_write_is_compared_with_approval() {
    for (written, differs) in [("approved\n", false), ("something else\n", true)] {
        let scene = Scene::new(&[("a.txt", b"1\n")]);
        let mut engine = scene.engine();
        let mut intent = change(r#"{"operation":"update","path":"a.txt","new_content":"approved\n"}"#, "s", "1");
        intent.performer = Performer::Agent;
        let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
        let outcome = decide(&mut engine, &proposed, Answer::Approve);
        assert!(matches!(outcome, DecisionResult::Permitted { .. }), "{outcome:?}");
        assert_eq!(scene.read("a.txt").unwrap(), b"1\n", "the agent writes, not we");
        scene.write("a.txt", written.as_bytes());
        let finished = engine.finish(proposed.change, None, 4).unwrap();
        assert_eq!(!finished.differs.is_empty(), differs, "{written}");
        let undo = engine.plan_undo(&Target::Change { change: proposed.change }, IfChanged::Refuse).unwrap();
        engine.perform(undo, Origin::default(), 5).unwrap();
        assert_eq!(scene.read("a.txt").unwrap(), b"1\n", "an undo is at hand either way");
    }
}

#[test]
fn partial_agent_write_is_recorded() {
    let lines = |changed: &[usize]| -> String {
        (1..=20).map(|line| format!("{line}{}\n", if changed.contains(&line) { " new" } else { "" })).collect()
    };
    let scene = Scene::new(&[("a.txt", lines(&[]).as_bytes())]);
    let mut engine = scene.engine();
    let text = json!({ "operation": "update", "path": "a.txt", "new_content": lines(&[2, 19]) });
    let mut intent = change(&text.to_string(), "s", "1");
    intent.performer = Performer::Agent;
    let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
    let hunks = FileAnswer::Hunks { hunks: [HunkId::whole(1)].into() };
    let files = [(proposed.preview.files()[0].path.clone(), hunks)].into();
    decide(&mut engine, &proposed, Answer::Files { files, reason: None });
    scene.write("a.txt", lines(&[2]).as_bytes());
    engine.finish(proposed.change, None, 4).unwrap();
    let record = engine.history().change(proposed.change).unwrap();
    assert!(record.partial, "{record:?}");
    assert_eq!(record.applied_part(&record.files[0]), AppliedPart::Partial);
}

#[test]
fn agent_write_on_changed_file_is_stale() {
    let scene = Scene::new(&[("a.txt", b"1\n2\n3\n4\n5\n6\n7\n")]);
    let mut engine = scene.engine();
    let mut intent = change(r#"{"operation":"edit","path":"a.txt","old_string":"1","new_string":"one"}"#, "s", "1");
    intent.performer = Performer::Agent;
    let proposed = waiting(engine.submit(intent, &mut rules(Vec::new()), 2).unwrap());
    scene.write("a.txt", b"1\n2\n3\n4\n5\n6\nmine\n");
    let outcome = decide(&mut engine, &proposed, Answer::Approve);
    assert!(matches!(outcome, DecisionResult::Stale { .. }), "{outcome:?}");
}

#[test]
fn write_like_tool_is_judged_as_write() {
    let scene = Scene::new(&[("a.txt", b"1\n")]);
    let mut engine = scene.engine();
    let call = |file: &str| Intent::CallTool {
        name: "mcp__files__write_file".to_owned(),
        arguments: json!({ "path": file, "content": "2\n" }),
    };
    let mut allowing = Rule::new(Ruling::Allow);
    allowing.tool = vec!["mcp__files__*".to_owned()];
    let mut rules = rules(vec![allowing]);
    let proposed = waiting(engine.submit(submission(call("a.txt"), Origin::default()), &mut rules, 2).unwrap());
    assert!(proposed.preview.files()[0].unified().contains("-1\n+2\n"));
    let outcome = decide(&mut engine, &proposed, Answer::Approve);
    assert!(matches!(outcome, DecisionResult::Permitted { .. }), "{outcome:?}");
    scene.write("a.txt", b"2\n");
    let finished = engine.finish(proposed.change, None, 3).unwrap();
    assert_eq!((finished.differs.len(), finished.record.steps.len()), (0, 1));
    waiting(engine.submit(submission(call("../x"), Origin::default()), &mut rules, 4).unwrap());
}

#[test]
fn ignored_file_change_is_not_deletion() {
    let scene = Scene::new(&[(".gitignore", b"out\n"), ("out/a.txt", b"1\n"), ("b.txt", b"1\n")]);
    let mut engine = scene.engine();
    let running = permitted(&mut engine, "sleep 1");
    let proposed = crate::propose(&mut engine, r#"{"operation":"update","path":"out/a.txt","new_content":"2\n"}"#);
    decide(&mut engine, &proposed, Answer::Approve);
    scene.write("b.txt", b"2\n");
    engine.finish(running, Some(0), 5).unwrap();
    assert_eq!(steps(&engine, running), [("b.txt".to_owned(), true, true)]);
}
