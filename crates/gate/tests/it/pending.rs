//! Pending changes: a single verdict, deadlines, stale files and dependencies.

use sayso_gate::{ChangeStatus, DecisionResult, GateError, NewSession, SessionStatus, SubmitResult};
use sayso_review::{Answer, Decider, Ruling, VerdictError};

use crate::{Scene, change, decide, rules, waiting, writing};

fn update(path: &str, text: &str) -> String {
    serde_json::json!({ "operation": "update", "path": path, "new_content": text }).to_string()
}

fn edit(path: &str, old: &str, new: &str) -> String {
    serde_json::json!({ "operation": "edit", "path": path, "old_string": old, "new_string": new }).to_string()
}

#[test]
fn deadline_denies_pending_change() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let mut submission = change(&update("a", "2\n"), "s", "1");
    submission.deadline = Some(100);
    let proposed = waiting(engine.submit(submission, &mut rules(Vec::new()), 10).unwrap());
    assert_eq!(engine.next_deadline().unwrap(), Some(100));
    assert!(engine.tick(99).unwrap().expired.is_empty());
    assert_eq!(engine.tick(100).unwrap().expired, [proposed.change]);
    assert_eq!(scene.read("a").unwrap(), b"1\n");
    let record = engine.history().change(proposed.change).unwrap();
    assert_eq!(record.status, ChangeStatus::Denied);
    assert_eq!(record.verdict.unwrap().by, Decider::Policy { rule: "deadline".to_owned() });
    assert_eq!(record.agent_message.unwrap(), "denied by the rule `deadline`: nobody decided in time");
    let late = engine.decide(&proposed, &proposed.approval(), 101).unwrap_err();
    assert_eq!(late.to_string(), "change 1 cannot be decided: it is denied");
    assert_eq!(scene.read("a").unwrap(), b"1\n");
}

#[test]
fn deadline_survives_restart() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut submission = change(&update("a", "2\n"), "s", "1");
    submission.deadline = Some(100);
    scene.engine().submit(submission, &mut rules(Vec::new()), 10).unwrap();
    assert_eq!(scene.engine().tick(200).unwrap().expired, [1]);
}

#[test]
fn withdrawn_intent_is_cancelled() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let proposed = waiting(engine.submit(change(&update("a", "2\n"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    engine.cancel(proposed.change, 3).unwrap();
    let late = engine.decide(&proposed, &proposed.approval(), 4).unwrap_err();
    assert_eq!(late.to_string(), "change 1 cannot be decided: it is cancelled");
    assert!(engine.pending_changes().unwrap().is_empty());
}

#[test]
fn changed_file_refreshes_preview() {
    let scene = Scene::new(&[("a", b"1\n2\n3\n")]);
    let mut engine = scene.engine();
    let proposed = waiting(engine.submit(change(&edit("a", "2", "two"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    assert!(engine.tick(3).unwrap().refreshed.is_empty(), "nothing changed");
    scene.write("a", b"1\n2\n3\nmine\n");
    assert_eq!(engine.tick(4).unwrap().refreshed, [proposed.change]);
    let old = engine.decide(&proposed, &proposed.approval(), 5).unwrap_err();
    assert!(matches!(old, GateError::Verdict(VerdictError::OtherPreview)), "{old}");
    let fresh = engine.pending_change(proposed.change).unwrap();
    assert!(fresh.preview.files()[0].unified().contains(" mine"));
    decide(&mut engine, &fresh, Answer::Approve);
    assert_eq!(scene.read("a").unwrap(), b"1\ntwo\n3\nmine\n");
}

#[test]
fn touched_file_refreshes_no_preview() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let proposed = waiting(engine.submit(change(&update("a", "2\n"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    scene.write("a", b"1\n");
    assert!(engine.tick(4).unwrap().refreshed.is_empty());
    decide(&mut engine, &proposed, Answer::Approve);
    assert_eq!(scene.read("a").unwrap(), b"2\n");
}

#[test]
fn later_edit_depends_on_earlier_edit() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let mut rules = rules(Vec::new());
    let first = waiting(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules, 2).unwrap());
    // It edits the result of the first change, so it is impossible until then.
    let second = waiting(engine.submit(change(&edit("a", "2", "3"), "s", "1"), &mut rules, 2).unwrap());
    assert!(second.preview.problems().next().is_some());
    assert_eq!(engine.history().change(second.change).unwrap().predecessors, [first.change]);
    decide(&mut engine, &first, Answer::Approve);
    let second = engine.pending_change(second.change).unwrap();
    assert!(second.preview.problems().next().is_none(), "it can be done now");
    decide(&mut engine, &second, Answer::Approve);
    assert_eq!(scene.read("a").unwrap(), b"3\n");
}

#[test]
fn dependent_of_denied_change_is_marked() {
    let scene = Scene::new(&[("a", b"1\n"), ("b", b"1\n")]);
    let mut engine = scene.engine();
    let mut rules = rules(Vec::new());
    let first = waiting(engine.submit(change(&edit("a", "1", "2"), "s", "1"), &mut rules, 2).unwrap());
    let second = waiting(engine.submit(change(&edit("a", "2", "3"), "s", "1"), &mut rules, 2).unwrap());
    let other = waiting(engine.submit(change(&edit("b", "1", "2"), "s", "1"), &mut rules, 2).unwrap());
    decide(&mut engine, &first, Answer::Deny { reason: None });
    assert_eq!(engine.history().change(second.change).unwrap().dropped_predecessors, [first.change]);
    assert!(engine.history().change(other.change).unwrap().dropped_predecessors.is_empty());
    assert!(engine.pending_change(second.change).unwrap().preview.problems().next().is_some());
}

#[test]
fn impossible_change_fails_without_verdict() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let submitted = engine.submit(change(&edit("a", "nothing like it", "x"), "s", "1"), &mut rules(Vec::new()), 2);
    let SubmitResult::Impossible { agent_message: told, proposed } = submitted.unwrap() else { panic!("it waits") };
    assert!(told.contains("cannot be made as proposed"), "{told}");
    assert!(matches!(engine.history().change(proposed.change).unwrap().status, ChangeStatus::Failed { .. }));
    assert!(engine.pending_changes().unwrap().is_empty());
}

#[test]
fn policy_decision_names_rule() {
    let scene = Scene::new(&[("a", b"1\n"), (".git/config", b"x\n"), ("ci/x", b"1\n")]);
    let mut engine = scene.engine();
    let mut rules = rules(vec![writing("**", Ruling::Allow), writing("ci/**", Ruling::Deny)]);
    let (_, allowed) = crate::decided(engine.submit(change(&update("a", "2\n"), "s", "1"), &mut rules, 2).unwrap());
    assert!(matches!(allowed, DecisionResult::Applied { .. }));
    assert_eq!(scene.read("a").unwrap(), b"2\n");
    for file in [".git/config", "ci/x"] {
        let (proposed, denied) =
            crate::decided(engine.submit(change(&update(file, "2\n"), "s", "1"), &mut rules, 2).unwrap());
        let DecisionResult::Denied { agent_message: told } = denied else { panic!("{file}: {denied:?}") };
        assert!(told.starts_with("denied by the rule `"), "{told}");
        let record = engine.history().change(proposed.change).unwrap();
        assert_eq!(record.ruling.unwrap().ruling, Ruling::Deny);
    }
    assert_eq!(scene.read(".git/config").unwrap(), b"x\n");
}

#[test]
fn rule_applies_to_symlink_target() {
    let scene = Scene::new(&[("secret/a", b"1\n")]);
    std::os::unix::fs::symlink("secret/a", scene.path("b")).unwrap();
    let mut engine = scene.engine();
    let mut rules = rules(vec![writing("b", Ruling::Allow), writing("secret/**", Ruling::Deny)]);
    let (_, denied) = crate::decided(engine.submit(change(&update("b", "2\n"), "s", "1"), &mut rules, 2).unwrap());
    assert!(matches!(denied, DecisionResult::Denied { .. }), "{denied:?}");
}

#[test]
fn session_end_cancels_pending_intents() {
    let scene = Scene::new(&[("a", b"1\n")]);
    let mut engine = scene.engine();
    let new = |session: &str, parent: Option<&str>| NewSession {
        session: session.to_owned(),
        agent: Some("claude".to_owned()),
        location: Some("/work".to_owned()),
        parent: parent.map(str::to_owned),
    };
    engine.start_session(new("s", None), 1).unwrap();
    engine.start_session(new("sub", Some("s")), 1).unwrap();
    engine.start_turn("s", "1", 2).unwrap();
    waiting(engine.submit(change(&update("a", "2\n"), "s", "1"), &mut rules(Vec::new()), 2).unwrap());
    let record = engine.history().session("s").unwrap().unwrap();
    assert_eq!((record.turn.as_deref(), record.status), (Some("1"), SessionStatus::Active));
    engine.end_session("s", 3).unwrap();
    assert_eq!(engine.history().change(1).unwrap().status, ChangeStatus::Cancelled);
    assert_eq!(engine.history().session("s").unwrap().unwrap().status, SessionStatus::Ended);
    let resumed = engine.start_session(new("s", None), 4).unwrap();
    assert_eq!((resumed.status, resumed.time), (SessionStatus::Active, 1));
    let listed = engine.history().sessions(10).unwrap();
    let listed: Vec<_> = listed.iter().map(|record| (record.session.as_str(), record.parent.as_deref())).collect();
    assert_eq!(listed, [("sub", Some("s")), ("s", None)]);
    for bad in ["", " ", "a\nb"] {
        assert!(engine.start_session(new(bad, None), 5).is_err(), "{bad:?}");
    }
    assert!(engine.end_session("nobody", 6).is_err());
}
