//! Edge cases of messages to the agent; the scenarios of `gate` cover whole texts.

use sayso_review::{
    Answer, Comment, CommentSide, DENIED, Decider, FileAnswer, Subject, Verdict, action_message, failure_message,
};

use crate::{about_files, hunks, lines, path, preview, verdict, write};

fn told(files: &[(&str, &str)], proposal: &str, answer: Answer) -> String {
    let shown = preview(files, proposal);
    shown.decide(&verdict(&shown, answer)).unwrap().agent_message
}

fn denied(reason: Option<&str>) -> Answer {
    Answer::Deny { reason: reason.map(str::to_owned) }
}

#[test]
fn plain_denial_uses_seed_sentence() {
    let (files, proposal) = ([("a", "a\n")], write(&[("a", "b\n")]));
    assert_eq!(told(&files, &proposal, denied(None)), "user denied this tool call");
    assert_eq!(told(&files, &proposal, denied(Some("not now"))), format!("{DENIED}: not now"));
    assert_eq!(told(&files, &proposal, about_files(&[])), DENIED);
    assert_eq!(told(&files, &proposal, about_files(&[("a", hunks(&[]))])), DENIED);
    let reason = FileAnswer::Deny { reason: Some("it is generated".to_owned()) };
    assert_eq!(told(&files, &proposal, about_files(&[("a", reason)])), format!("{DENIED}\na: it is generated"));
}

#[test]
fn denial_by_rule_names_rule() {
    let shown = preview(&[("a", "a\n")], &write(&[("a", "b\n")]));
    let by = Decider::Policy { rule: "no a".to_owned() };
    let denial = Verdict { by, ..verdict(&shown, denied(Some("a is finished"))) };
    assert_eq!(shown.decide(&denial).unwrap().agent_message, "denied by the rule `no a`: a is finished");
}

#[test]
fn reason_is_not_repeated() {
    let files = [("a", "a\n"), ("b", "b\n"), ("c", "c\n")];
    let Answer::Files { files: answers, .. } = about_files(&[("a", FileAnswer::Approve)]) else { unreachable!() };
    let answer = Answer::Files { files: answers, reason: Some("one at a time".to_owned()) };
    assert_eq!(
        told(&files, &write(&[("a", "A\n"), ("b", "B\n"), ("c", "C\n")]), answer),
        "a: changed as proposed\nb: denied, not changed\nc: denied, not changed\nThe user says: one at a time"
    );
}

#[test]
fn accepted_hunks_and_parts_are_listed() {
    let (files, proposal) = ([("a", &*lines(&[]))], write(&[("a", &lines(&[2, 5, 15, 28]))]));
    let check = |ids: &[&str], expected: &str| {
        let told = told(&files, &proposal, about_files(&[("a", hunks(ids))]));
        assert!(told.contains(&format!("Accepted: {expected}. Rejected")), "{told}");
    };
    check(&["2"], "hunk 2 of 3");
    check(&["1", "3"], "hunks 1 and 3 of 3");
    check(&["1.1", "1.2"], "hunk 1 of 3");
    check(&["1.2"], "part 2 of hunk 1");
    check(&["1.2", "2", "3"], "hunks 2 and 3 of 3 and part 2 of hunk 1");
}

#[test]
fn large_diff_is_truncated() {
    let text = "a line of some length that takes room\n".repeat(2_000);
    let answer = about_files(&[("a", FileAnswer::EditedText { text: "short\n".to_owned() })]);
    let told = told(&[("a", "x\n")], &write(&[("a", &text)]), answer);
    assert!(told.ends_with("[truncated at 16384 bytes]") && told.len() < 20_000, "{}", told.len());
}

#[test]
fn comment_quotes_existing_line_only() {
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
    let told = shown.decide(&Verdict { comments, ..verdict(&shown, denied(None)) }).unwrap().agent_message;
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
fn problems_are_listed_by_file() {
    let shown = preview(&[("a", "a\n"), ("b", "b\n")], &write(&[("b", "B\n")]));
    assert_eq!(shown.problems_message(), None);
    let proposal = r#"[{"operation":"create","path":"a","content":"x"},{"operation":"update","path":"c","content":"x"},{"operation":"delete","path":"b"}]"#;
    let shown = preview(&[("a", "a\n"), ("b", "b\n")], proposal);
    assert_eq!(
        shown.problems_message().unwrap(),
        "nothing was written: the change cannot be made as proposed\na: it exists already\nc: it does not exist\n\
         The change of the other file fits, and was not made either."
    );
    assert_eq!(failure_message(&"the disk is full"), "approved, but it could not be done: the disk is full");
}

#[test]
fn message_with_approval_reaches_the_agent() {
    let shown = preview(&[("a", "one\n")], &write(&[("a", "two\n")]));
    let approval = Verdict { message: Some("And add a test.\n".to_owned()), ..verdict(&shown, Answer::Approve) };
    let decision = shown.decide(&approval).unwrap();
    assert_eq!(decision.agent_message, "a: changed as proposed\nThe user says: And add a test.");
    assert!(decision.says_more(&shown, &approval));
    assert_eq!(action_message(&Subject::Files, &approval), "the change was approved\nThe user says: And add a test.");
}
