//! Changes with the ruling `later`, and their review at the end of the turn.

use sayso_gate::{ChangeStatus, DecisionResult, Engine, Rules};
use sayso_review::{Answer, Cause, FileAnswer, HunkId, IfChanged, Origin, Ruling, Target};

use crate::{Scene, change, decide, decided, path, rules, waiting, writing};

/// Returns thirty lines, some of them changed.
fn lines(changed: &[(usize, &str)]) -> String {
    let line = |number: usize| match changed.iter().find(|(at, _)| *at == number) {
        Some((_, text)) => format!("{text}\n"),
        None => format!("{number}\n"),
    };
    (1..=30).map(line).collect()
}

fn edit(file: &str, old: &str, new: &str) -> String {
    serde_json::json!({ "operation": "edit", "path": file, "old_string": old, "new_string": new }).to_string()
}

/// Rules with the ruling `later` for docs and sources.
fn at_once() -> Rules {
    rules(vec![writing("*.txt", Ruling::Later), writing("src/**", Ruling::Later)])
}

/// Submits edits of lines that policy applies at once.
fn happen(engine: &mut Engine, rules: &mut Rules, edits: &[(&str, &str, &str)]) {
    for (file, old, new) in edits {
        let submission = change(&edit(file, &format!("\n{old}\n"), &format!("\n{new}\n")), "s", "1");
        let (proposed, decided) = decided(engine.submit(submission, rules, 2).unwrap());
        assert!(matches!(decided, DecisionResult::Applied { .. }), "{}: {decided:?}", proposed.change);
    }
}

#[test]
fn review_keeps_accepted_hunks_of_many_edits() {
    let base = lines(&[]);
    let scene = Scene::new(&[("a.txt", base.as_bytes()), ("b.txt", base.as_bytes()), ("src/c.rs", base.as_bytes())]);
    let mut engine = scene.engine();
    let mut rules = at_once();
    let edits = [
        ("a.txt", "2", "two"),
        ("b.txt", "3", "three"),
        ("a.txt", "two", "TWO"),
        ("a.txt", "15", "fifteen"),
        ("src/c.rs", "28", "twenty-eight"),
        ("b.txt", "20", "twenty"),
        ("a.txt", "28", "twenty-eight"),
        ("src/c.rs", "twenty-eight", "28"),
        ("b.txt", "three", "THREE"),
        ("src/c.rs", "10", "ten"),
    ];
    happen(&mut engine, &mut rules, &edits);
    let whole = lines(&[(2, "TWO"), (15, "fifteen"), (28, "twenty-eight")]);
    assert_eq!(scene.read("a.txt").unwrap(), whole.as_bytes(), "it happened at once");

    let review = engine.end_turn("s", "1", 3).unwrap().expect("there is something to review");
    let shown: Vec<(String, usize)> =
        review.preview.files().iter().map(|file| (file.path.to_string(), file.diff().hunks(3).count())).collect();
    let expected = [("a.txt", 3), ("b.txt", 2), ("src/c.rs", 1)].map(|(file, hunks)| (file.to_owned(), hunks));
    assert_eq!(shown, expected, "many edits of one file are one diff, and what came and went is in none");

    let files = [
        (path("a.txt"), FileAnswer::Hunks { hunks: [HunkId::whole(1), HunkId::whole(3)].into() }),
        (path("b.txt"), FileAnswer::Deny { reason: Some("three stays three".to_owned()) }),
        (path("src/c.rs"), FileAnswer::Approve),
    ];
    let answer = Answer::Files { files: files.into(), reason: Some("numbers in the middle stay".to_owned()) };
    let outcome = decide(&mut engine, &review, answer);
    assert!(matches!(outcome, DecisionResult::Applied { .. }), "{outcome:?}");
    assert_eq!(scene.read("a.txt").unwrap(), lines(&[(2, "TWO"), (28, "twenty-eight")]).as_bytes());
    assert_eq!(scene.read("b.txt").unwrap(), base.as_bytes());
    assert_eq!(scene.read("src/c.rs").unwrap(), lines(&[(10, "ten")]).as_bytes());

    let told = engine.take_messages("s", 4).unwrap();
    assert_eq!(told.len(), 1);
    for part in [
        "a.txt: kept in part: hunks 1 and 3 of 3",
        "-fifteen",
        "three stays three",
        "numbers in the middle stay",
        "src/c.rs: kept",
    ] {
        assert!(told[0].contains(part), "{part} is missing:\n{}", told[0]);
    }
    assert!(engine.take_messages("s", 5).unwrap().is_empty(), "it is told once");
    assert!(engine.end_turn("s", "1", 6).unwrap().is_none(), "it is reviewed once");
}

#[test]
fn review_of_undone_changes_is_cancelled() {
    let base = lines(&[]);
    let scene = Scene::new(&[("a.txt", base.as_bytes())]);
    let mut engine = scene.engine();
    let mut at_once = at_once();
    happen(&mut engine, &mut at_once, &[("a.txt", "2", "two"), ("a.txt", "28", "twenty-eight")]);
    let review = engine.end_turn("s", "1", 3).unwrap().unwrap();
    let cause = engine.history().change(review.change).unwrap().cause;
    let Cause::Review { changes: of, .. } = cause else { panic!("{cause:?}") };
    let mut undo = |change: u64| {
        let plan = engine.plan_undo(&Target::Change { change }, IfChanged::Merge).unwrap();
        engine.perform(plan, Origin::default(), 4).unwrap();
        engine.pending_changes().unwrap().len()
    };
    assert_eq!(undo(of[1]), 1, "one of two is left to review");
    assert_eq!(undo(of[0]), 0, "nothing is");
    assert!(engine.unreviewed().unwrap().is_empty());
}

#[test]
fn decided_change_is_not_asked_again() {
    let base = lines(&[]);
    let scene = Scene::new(&[("a.txt", base.as_bytes())]);
    let mut engine = scene.engine();
    let mut at_once = at_once();
    let mut asking = rules(Vec::new());
    happen(&mut engine, &mut at_once, &[("a.txt", "2", "two")]);
    let asked =
        waiting(engine.submit(change(&edit("a.txt", "\n15\n", "\nfifteen\n"), "s", "1"), &mut asking, 2).unwrap());
    decide(&mut engine, &asked, Answer::Approve);
    happen(&mut engine, &mut at_once, &[("a.txt", "28", "twenty-eight")]);
    // The user edits the file as well.
    let mine = lines(&[(2, "two"), (8, "mine"), (15, "fifteen"), (28, "twenty-eight")]);
    scene.write("a.txt", mine.as_bytes());

    let review = engine.end_turn("s", "1", 3).unwrap().unwrap();
    let diff = review.preview.files()[0].unified();
    assert!(diff.contains("+two") && diff.contains("+twenty-eight"), "{diff}");
    assert!(!diff.contains("+fifteen") && !diff.contains("+mine"), "{diff}");
    decide(&mut engine, &review, Answer::Deny { reason: None });
    assert_eq!(scene.read("a.txt").unwrap(), lines(&[(8, "mine"), (15, "fifteen")]).as_bytes());
}

#[test]
fn asked_change_on_later_change_is_reviewed() {
    let scene = Scene::new(&[("a.txt", b"1\n2\n3\n")]);
    let mut engine = scene.engine();
    happen(&mut engine, &mut at_once(), &[("a.txt", "2", "two")]);
    let asked = change(&edit("a.txt", "two", "TWO"), "s", "1");
    let asked = waiting(engine.submit(asked, &mut rules(Vec::new()), 2).unwrap());
    decide(&mut engine, &asked, Answer::Approve);
    let review = engine.end_turn("s", "1", 3).unwrap().unwrap();
    let diff = review.preview.files()[0].unified();
    assert!(diff.contains("-2\n+TWO"), "{diff}");
}

#[test]
fn undo_of_creation_and_deletion_restores_tree() {
    let scene = Scene::new(&[("old.txt", b"old\n")]);
    let mut engine = scene.engine();
    let mut rules = at_once();
    for text in [
        r#"{"operation":"create","path":"src/new.rs","new_content":"new\n"}"#,
        r#"{"operation":"delete","path":"old.txt"}"#,
    ] {
        decided(engine.submit(change(text, "s", "1"), &mut rules, 2).unwrap());
    }
    assert_eq!((scene.read("old.txt"), scene.read("src/new.rs").unwrap()), (None, b"new\n".to_vec()));
    let review = engine.end_turn("s", "1", 3).unwrap().unwrap();
    decide(&mut engine, &review, Answer::Deny { reason: Some("leave it".to_owned()) });
    assert_eq!((scene.read("old.txt").unwrap(), scene.read("src/new.rs")), (b"old\n".to_vec(), None));
    let told = engine.take_messages("s", 4).unwrap().concat();
    assert!(told.contains("the file is deleted again") && told.contains("the file is restored"), "{told}");
}

#[test]
fn file_changed_during_review_is_not_overwritten() {
    let base = lines(&[]);
    let scene = Scene::new(&[("a.txt", base.as_bytes())]);
    let mut engine = scene.engine();
    happen(&mut engine, &mut at_once(), &[("a.txt", "2", "two")]);
    let review = engine.end_turn("s", "1", 3).unwrap().unwrap();
    scene.write("a.txt", lines(&[(2, "two"), (20, "mine")]).as_bytes());
    let outcome = decide(&mut engine, &review, Answer::Deny { reason: None });
    let DecisionResult::Stale { next, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(scene.read("a.txt").unwrap(), lines(&[(2, "two"), (20, "mine")]).as_bytes());
    decide(&mut engine, &next, Answer::Deny { reason: None });
    assert_eq!(scene.read("a.txt").unwrap(), lines(&[(20, "mine")]).as_bytes());
    let first = engine.history().change(1).unwrap();
    assert_eq!((first.reviewed, first.status), (Some(next.change), ChangeStatus::Applied));
}

#[test]
fn approving_whole_review_sends_no_message() {
    let scene = Scene::new(&[("a.txt", lines(&[]).as_bytes())]);
    let mut engine = scene.engine();
    happen(&mut engine, &mut at_once(), &[("a.txt", "2", "two")]);
    let review = engine.end_turn("s", "1", 3).unwrap().unwrap();
    decide(&mut engine, &review, Answer::Approve);
    assert_eq!(scene.read("a.txt").unwrap(), lines(&[(2, "two")]).as_bytes());
    assert!(engine.take_messages("s", 4).unwrap().is_empty());
    assert!(engine.unreviewed().unwrap().is_empty());
}

#[test]
fn review_excludes_undone_changes() {
    let scene = Scene::new(&[("a.txt", lines(&[]).as_bytes()), ("b.txt", b"1\n2\n")]);
    let mut engine = scene.engine();
    happen(&mut engine, &mut at_once(), &[("a.txt", "2", "two"), ("a.txt", "20", "twenty")]);
    let undo = engine.plan_undo(&Target::Change { change: 2 }, IfChanged::Refuse).unwrap();
    engine.perform(undo, Origin::default(), 3).unwrap();
    assert_eq!(engine.unreviewed().unwrap(), [("s".to_owned(), "1".to_owned())]);
    let review = engine.end_turn("s", "1", 4).unwrap().unwrap();
    assert!(!review.preview.files()[0].unified().contains("twenty"));
    decide(&mut engine, &review, Answer::Deny { reason: None });
    assert_eq!(scene.read("a.txt").unwrap(), lines(&[]).as_bytes());
    let undo = engine.plan_undo(&Target::Last, IfChanged::Refuse).unwrap();
    assert_eq!(undo.changes(), [review.change]);
    engine.perform(undo, Origin::default(), 5).unwrap();
    assert_eq!(scene.read("a.txt").unwrap(), lines(&[(2, "two")]).as_bytes());
}

#[test]
fn review_survives_restart() {
    let scene = Scene::new(&[("a.txt", lines(&[]).as_bytes())]);
    happen(&mut scene.engine(), &mut at_once(), &[("a.txt", "2", "two")]);
    let review = scene.engine().end_turn("s", "1", 3).unwrap().unwrap();
    let mut engine = scene.engine();
    let again = engine.pending_change(review.change).unwrap();
    decide(&mut engine, &again, Answer::Deny { reason: None });
    assert_eq!(scene.read("a.txt").unwrap(), lines(&[]).as_bytes());
    drop(engine);
    assert_eq!(scene.engine().take_messages("s", 4).unwrap().len(), 1);
}
