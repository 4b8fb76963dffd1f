//! What an agent hears. The scenarios of `gate` show whole texts; here are the corners.

use sayso_review::{Answer, Comment, CommentSide, DENIED, Decider, FileAnswer, Verdict, told_failure};

use crate::{about_files, hunks, lines, path, preview, verdict, write};

fn told(files: &[(&str, &str)], proposal: &str, answer: Answer) -> String {
    let shown = preview(files, proposal);
    shown.decide(&verdict(&shown, answer)).unwrap().told
}

fn denied(reason: Option<&str>) -> Answer {
    Answer::Deny { reason: reason.map(str::to_owned) }
}

#[test]
fn a_plain_denial_is_the_seeds_sentence() {
    let (files, proposal) = ([("a", "a\n")], write(&[("a", "b\n")]));
    assert_eq!(told(&files, &proposal, denied(None)), "user denied this tool call");
    assert_eq!(told(&files, &proposal, denied(Some("not now"))), format!("{DENIED}: not now"));
    assert_eq!(told(&files, &proposal, about_files(&[])), DENIED);
    assert_eq!(told(&files, &proposal, about_files(&[("a", hunks(&[]))])), DENIED);
    let reason = FileAnswer::Deny { reason: Some("it is generated".to_owned()) };
    assert_eq!(told(&files, &proposal, about_files(&[("a", reason)])), format!("{DENIED}\na: it is generated"));
}

#[test]
fn a_rule_is_named_and_never_passed_off_as_the_user() {
    let shown = preview(&[("a", "a\n")], &write(&[("a", "b\n")]));
    let by = Decider::Policy { rule: "no a".to_owned() };
    let denial = Verdict { by, ..verdict(&shown, denied(Some("a is finished"))) };
    assert_eq!(shown.decide(&denial).unwrap().told, "denied by the rule `no a`: a is finished");
}

#[test]
fn a_reason_is_said_once() {
    let files = [("a", "a\n"), ("b", "b\n"), ("c", "c\n")];
    let Answer::Files { files: answers, .. } = about_files(&[("a", FileAnswer::Approve)]) else { unreachable!() };
    let answer = Answer::Files { files: answers, reason: Some("one at a time".to_owned()) };
    assert_eq!(
        told(&files, &write(&[("a", "A\n"), ("b", "B\n"), ("c", "C\n")]), answer),
        "a: changed as proposed\nb: refused, not changed\nc: refused, not changed\nThe user says: one at a time"
    );
}

#[test]
fn hunks_and_parts_are_named() {
    let (files, proposal) = ([("a", &*lines(&[]))], write(&[("a", &lines(&[2, 5, 15, 28]))]));
    let check = |ids: &[&str], expected: &str| {
        let told = told(&files, &proposal, about_files(&[("a", hunks(ids))]));
        assert!(told.contains(&format!("Accepted: {expected}. What was refused")), "{told}");
    };
    check(&["2"], "hunk 2 of 3");
    check(&["1", "3"], "hunks 1 and 3 of 3");
    check(&["1.1", "1.2"], "hunk 1 of 3");
    check(&["1.2"], "part 2 of hunk 1");
    check(&["1.2", "2", "3"], "hunks 2 and 3 of 3 and part 2 of hunk 1");
}

#[test]
fn a_large_difference_is_cut() {
    let text = "a line of some length that takes room\n".repeat(2_000);
    let answer = about_files(&[("a", FileAnswer::EditedText { text: "short\n".to_owned() })]);
    let told = told(&[("a", "x\n")], &write(&[("a", &text)]), answer);
    assert!(told.ends_with("[cut at 16384 bytes]") && told.len() < 20_000, "{}", told.len());
}

#[test]
fn a_comment_carries_its_line_and_none_is_made_up() {
    let shown = preview(&[("a", "one\n")], &write(&[("a", &format!("two\n\n{}\n", "x".repeat(200)))]));
    let comment = |line, side| Comment { path: path("a"), line, side, text: "why?\n".to_owned() };
    let comments = vec![
        comment(1, CommentSide::Proposed),
        comment(1, CommentSide::Current),
        comment(2, CommentSide::Proposed),
        comment(3, CommentSide::Proposed),
        comment(0, CommentSide::Proposed),
        comment(99, CommentSide::Proposed),
    ];
    let told = shown.decide(&Verdict { comments, ..verdict(&shown, denied(None)) }).unwrap().told;
    let expected = [
        DENIED,
        "Comments on lines:",
        "a:1 `two`: why?",
        "a:1 (before the change) `one`: why?",
        "a:2: why?",
        &format!("a:3 `{}…`: why?", "x".repeat(80)),
        "a:0: why?",
        "a:99: why?",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn what_does_not_fit_is_said_file_by_file() {
    let shown = preview(&[("a", "a\n"), ("b", "b\n")], &write(&[("b", "B\n")]));
    assert_eq!(shown.told_problems(), None);
    let proposal = r#"[{"operation":"create","path":"a","content":"x"},{"operation":"update","path":"c","content":"x"},{"operation":"delete","path":"b"}]"#;
    let shown = preview(&[("a", "a\n"), ("b", "b\n")], proposal);
    assert_eq!(
        shown.told_problems().unwrap(),
        "nothing was written: the change cannot be made as proposed\na: it exists already\nc: it does not exist\n\
         The change of the other file fits, and was not made either."
    );
    assert_eq!(told_failure(&"the disk is full"), "approved, but it could not be done: the disk is full");
}
