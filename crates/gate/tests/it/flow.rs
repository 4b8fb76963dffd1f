//! From a proposal to the tree and back.

use sayso_gate::DecisionResult;
use sayso_review::{Answer, FileAnswer, HunkId, IfChanged, Origin, Proposal, Target};

use crate::{Scene, decide, propose, propose_as};

fn numbers(changed: &[usize]) -> String {
    (1..=30)
        .map(|line| if changed.contains(&line) { format!("{line} changed\n") } else { format!("{line}\n") })
        .collect()
}

fn update(path: &str, text: &str) -> String {
    serde_json::json!({ "changes": [{ "path": path, "operation": "update", "new_content": text }] }).to_string()
}

#[test]
fn approved_change_is_applied_undone_and_redone() {
    let scene = Scene::new(&[("a.txt", numbers(&[]).as_bytes())]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, &update("a.txt", &numbers(&[2, 15, 28])));
    assert_eq!(scene.read("a.txt").unwrap(), numbers(&[]).as_bytes(), "a proposal writes nothing");
    let hunks = [HunkId::whole(1), HunkId::whole(3)].into();
    let files = [("a.txt".parse_path(), FileAnswer::Hunks { hunks })].into();
    let decided = decide(&mut engine, &proposed, Answer::Files { files, reason: Some("not this one".to_owned()) });
    let DecisionResult::Applied { agent_message: told, .. } = decided else { panic!("{decided:?}") };
    assert_eq!(scene.read("a.txt").unwrap(), numbers(&[2, 28]).as_bytes());
    assert!(told.contains("Accepted: hunks 1 and 3 of 3") && told.contains("not this one"), "{told}");

    let plan = engine.plan_undo(&Target::Last, IfChanged::Refuse).unwrap();
    assert_eq!(plan.changes(), [1]);
    engine.perform(plan, Origin::default(), 4).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), numbers(&[]).as_bytes());
    assert!(engine.plan_undo(&Target::Last, IfChanged::Refuse).is_err(), "nothing is left to undo");

    let plan = engine.plan_redo(&Target::Last, IfChanged::Refuse).unwrap();
    engine.perform(plan, Origin::default(), 5).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), numbers(&[2, 28]).as_bytes());
}

#[test]
fn changed_file_is_merged_and_asked_again() {
    let scene = Scene::new(&[("a.txt", numbers(&[]).as_bytes())]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, &update("a.txt", &numbers(&[2])));
    scene.write("a.txt", numbers(&[20]).as_bytes());
    let decided = decide(&mut engine, &proposed, Answer::Approve);
    let DecisionResult::Stale { next, .. } = decided else { panic!("{decided:?}") };
    assert_eq!(scene.read("a.txt").unwrap(), numbers(&[20]).as_bytes(), "nothing was written");
    let decided = decide(&mut engine, &next, Answer::Approve);
    assert!(matches!(decided, DecisionResult::Applied { .. }), "{decided:?}");
    assert_eq!(scene.read("a.txt").unwrap(), numbers(&[2, 20]).as_bytes());
}

#[test]
fn regression_undo_without_net_effect_is_recorded() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    let origin = Origin { session: Some("s".to_owned()), ..Origin::default() };
    for change in [r#"{"operation":"create","path":"a","new_content":"x"}"#, r#"{"operation":"delete","path":"a"}"#] {
        let proposed = propose_as(&mut engine, Proposal::parse(change.as_bytes()).unwrap(), origin.clone(), 2);
        decide(&mut engine, &proposed, Answer::Approve);
    }
    let session = Target::Session { session: "s".to_owned() };
    let plan = engine.plan_undo(&session, IfChanged::Refuse).unwrap();
    assert_eq!(plan.changes(), [2, 1]);
    let decided = engine.perform(plan, Origin::default(), 3).unwrap();
    assert!(matches!(decided, DecisionResult::Applied { .. }), "{decided:?}");
    assert!(engine.plan_undo(&session, IfChanged::Refuse).is_err(), "both are taken back");
    let plan = engine.plan_redo(&Target::Last, IfChanged::Refuse).unwrap();
    engine.perform(plan, Origin::default(), 4).unwrap();
    assert_eq!(engine.plan_undo(&session, IfChanged::Refuse).unwrap().changes(), [2, 1]);
}

#[test]
fn regression_file_in_place_of_directory_is_stale() {
    let scene = Scene::new(&[]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, r#"{"operation":"create","path":"f/a","new_content":"x"}"#);
    scene.write("f", b"somebody's");
    let decided = decide(&mut engine, &proposed, Answer::Approve);
    let DecisionResult::Stale { agent_message: told, next, .. } = decided else { panic!("{decided:?}") };
    assert!(told.contains("not a directory"), "{told}");
    assert!(next.preview.problems().next().is_some());
    assert_eq!(engine.history().status().unwrap().interrupted, None);
    assert_eq!(engine.history().change(1).unwrap().agent_message, Some(told), "what was said is what is recorded");
}

#[test]
fn first_verdict_counts() {
    let scene = Scene::new(&[("a.txt", b"a\n")]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, &update("a.txt", "b\n"));
    decide(&mut engine, &proposed, Answer::Deny { reason: None });
    let error = engine.decide(&proposed, &proposed.approval(), 4).unwrap_err();
    assert_eq!(error.to_string(), "change 1 cannot be decided: it is denied");
    assert!(engine.cancel(1, 5).is_err());
    assert_eq!(engine.history().status().unwrap().pending, 0);
    assert_eq!(scene.read("a.txt").unwrap(), b"a\n");
}

trait ParsePath {
    fn parse_path(&self) -> sayso_review::WsPath;
}

impl ParsePath for str {
    fn parse_path(&self) -> sayso_review::WsPath {
        sayso_review::WsPath::parse(self).unwrap()
    }
}

#[test]
fn lost_counters_are_recounted() {
    let scene = Scene::new(&[("a.txt", numbers(&[]).as_bytes())]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, &update("a.txt", &numbers(&[2])));
    decide(&mut engine, &proposed, Answer::Approve);
    propose(&mut engine, &update("a.txt", &numbers(&[3])));
    drop(engine);
    scene.forget_counters();
    let mut engine = scene.engine();
    let status = engine.history().status().unwrap();
    assert_eq!((status.changes, status.pending, status.interrupted), (2, 1, None));
    assert_eq!(propose(&mut engine, &update("a.txt", &numbers(&[4]))).change, 3, "no number is given twice");
}

#[test]
fn unrecorded_end_is_settled_before_next_verdict() {
    let scene = Scene::new(&[("a.txt", numbers(&[]).as_bytes()), ("b.txt", b"b\n")]);
    let mut engine = scene.engine();
    let first = propose(&mut engine, &update("a.txt", &numbers(&[2])));
    decide(&mut engine, &first, Answer::Approve);
    scene.forget_end();
    let second = propose(&mut engine, &update("b.txt", "new\n"));
    assert!(matches!(decide(&mut engine, &second, Answer::Approve), DecisionResult::Applied { .. }));
    let status = engine.history().change(1).unwrap().status;
    assert_eq!(status, sayso_gate::ChangeStatus::Applied, "not forgotten");
    assert_eq!(engine.history().status().unwrap().interrupted, None);
}

#[test]
fn verdict_needs_recorded_preview() {
    let scene = Scene::new(&[("a.txt", b"a\n")]);
    let mut engine = scene.engine();
    let mut proposed = propose(&mut engine, &update("a.txt", "new\n"));
    proposed.preview = propose(&mut engine, &update("a.txt", "never shown\n")).preview;
    assert!(engine.decide(&proposed, &proposed.approval(), 3).is_err());
    assert_eq!(scene.read("a.txt").unwrap(), b"a\n");
}

#[test]
fn conflicting_encodings_are_not_merged() {
    let scene = Scene::new(&[("a.txt", numbers(&[]).as_bytes())]);
    let mut engine = scene.engine();
    let proposed = propose(&mut engine, &update("a.txt", &format!("{}na\u{ef}ve\n", numbers(&[]))));
    scene.write("a.txt", &[b"caf\xe9\n", numbers(&[]).as_bytes()].concat());
    let decided = decide(&mut engine, &proposed, Answer::Approve);
    let DecisionResult::Stale { next, .. } = decided else { panic!("{decided:?}") };
    assert!(next.preview.problems().next().is_some());
}
