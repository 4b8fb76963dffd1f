//! What is missing or not known is refused, and the field is named.

use std::fmt::Debug;

use buffa::{EnumValue, MessageField};
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_api::proto::oneof as choice;
use sayso_review::{
    Answer, ApplyRecord, Cause, ChangeRecord, Comment, CommentSide, ContentHash, Decider, DryRunOutput, ErrorKind,
    FileAnswer, FileIntent, FileRecord, FileState, Fingerprint, FromNowOn, IfChanged, Intent, Note, Performer,
    PlanStep, Preview, Problem, RecordedStep, RulingRecord, Snapshot, SnapshotRecord, Subject, Target, Verdict,
};

fn refusal<M, T: TryFrom<M, Error = BadMessage> + Debug>(message: M) -> String {
    T::try_from(message).unwrap_err().field
}

fn refusal_of_nothing<M: Default, T: TryFrom<M, Error = BadMessage> + Debug>() -> String {
    refusal::<M, T>(M::default())
}

#[test]
fn an_empty_message_is_refused_by_its_first_missing_field() {
    let table = [
        (refusal_of_nothing::<proto::Fingerprint, Fingerprint>(), "state"),
        (refusal_of_nothing::<proto::FileState, FileState>(), "state"),
        (refusal_of_nothing::<proto::Note, Note>(), "details_json"),
        (refusal_of_nothing::<proto::Problem, Problem>(), "details_json"),
        (refusal_of_nothing::<proto::FileRecord, FileRecord>(), "path"),
        (refusal_of_nothing::<proto::RecordedStep, RecordedStep>(), "path"),
        (refusal_of_nothing::<proto::PlanStep, PlanStep>(), "path"),
        (refusal_of_nothing::<proto::Preview, Preview>(), "placement"),
        (refusal_of_nothing::<proto::Cause, Cause>(), "cause"),
        (refusal_of_nothing::<proto::Subject, Subject>(), "subject"),
        (refusal_of_nothing::<proto::RulingRecord, RulingRecord>(), "ruling"),
        (refusal_of_nothing::<proto::Verdict, Verdict>(), "preview_hash"),
        (refusal_of_nothing::<proto::Answer, Answer>(), "answer"),
        (refusal_of_nothing::<proto::FileAnswer, FileAnswer>(), "answer"),
        (refusal_of_nothing::<proto::Comment, Comment>(), "path"),
        (refusal_of_nothing::<proto::FromNowOn, FromNowOn>(), "scope"),
        (refusal_of_nothing::<proto::Intent, Intent>(), "intent"),
        (refusal_of_nothing::<proto::FileIntent, FileIntent>(), "operation"),
        (refusal_of_nothing::<proto::Target, Target>(), "target"),
        (refusal_of_nothing::<proto::RehearseResponse, DryRunOutput>(), "end"),
        (refusal_of_nothing::<proto::Captured, Snapshot>(), "path"),
        (refusal_of_nothing::<proto::SnapshotRecord, SnapshotRecord>(), "snapshot"),
        (refusal_of_nothing::<proto::Change, ChangeRecord>(), "status"),
    ];
    for (found, expected) in table {
        assert_eq!(found, expected);
    }
    assert!(ApplyRecord::try_from(proto::ApplyRecord::default()).is_ok(), "nothing happened is something");
}

fn fingerprint(mode: u32) -> MessageField<proto::Fingerprint, buffa::Inline<proto::Fingerprint>> {
    let hash = ContentHash::of(b"").to_string();
    let file = proto::fingerprint::File { hash, size: 0, mode, ..Default::default() };
    MessageField::some(proto::Fingerprint { state: file.into(), ..Default::default() })
}

fn step(path: &str, mode: u32) -> proto::RecordedStep {
    proto::RecordedStep {
        path: path.to_owned(),
        before: fingerprint(0o644),
        after: fingerprint(mode),
        ..Default::default()
    }
}

#[test]
fn the_name_of_a_field_leads_to_it() {
    let record = |step| proto::ApplyRecord { steps: vec![step], ..Default::default() };
    assert_eq!(refusal::<_, ApplyRecord>(record(step("../out", 0o644))), "steps[0].path");
    assert_eq!(refusal::<_, ApplyRecord>(record(step("/etc/passwd", 0o644))), "steps[0].path");
    assert_eq!(refusal::<_, ApplyRecord>(record(step("a", 0o10_0644))), "steps[0].after.file.mode");

    let files = |path: &str, hunk: &str| {
        let hunks = proto::file_answer::Hunks { hunks: vec![hunk.to_owned()], ..Default::default() };
        let answer = proto::FileAnswer { answer: hunks.into(), ..Default::default() };
        let files =
            proto::answer::Files { files: [(path.to_owned(), answer)].into_iter().collect(), ..Default::default() };
        let answer = proto::Answer { answer: files.into(), ..Default::default() };
        proto::Verdict {
            preview_hash: ContentHash::of(b"").to_string(),
            answer: MessageField::some(answer),
            ..Default::default()
        }
    };
    assert_eq!(refusal::<_, Verdict>(files("a", "0")), "answer.files.files[a].hunks.hunks[0]");
    assert_eq!(refusal::<_, Verdict>(files("a/../b", "1")), "answer.files.files[a/../b]");
    assert_eq!(Verdict::try_from(files("a", "1")).unwrap().by, Decider::Person);
}

#[test]
fn two_answers_about_one_file_are_refused() {
    let answer = || proto::FileAnswer { answer: proto::file_answer::Approve::default().into(), ..Default::default() };
    let files = ["a", "./a"].map(|path| (path.to_owned(), answer()));
    let files = proto::answer::Files { files: files.into_iter().collect(), ..Default::default() };
    let error = Answer::try_from(proto::Answer { answer: files.into(), ..Default::default() }).unwrap_err();
    assert!(error.field.starts_with("files.files["), "{error}");
    assert!(error.reason.contains("same file"), "{error}");
}

#[test]
fn values_that_this_version_does_not_know_are_refused_by_number() {
    let ruled = proto::RulingRecord { ruling: EnumValue::from(77), ..Default::default() };
    let error = RulingRecord::try_from(ruled).unwrap_err();
    assert_eq!(error.field, "ruling");
    assert!(error.to_string().contains("77"), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(!error.hint().is_empty());

    let end = proto::RehearseResponse { end: EnumValue::from(-1), ..Default::default() };
    assert_eq!(refusal::<_, DryRunOutput>(end), "end");
    let change = proto::Change { status: EnumValue::from(99), ..Default::default() };
    assert_eq!(refusal::<_, ChangeRecord>(change), "status");
}

#[test]
fn a_status_needs_what_belongs_to_it() {
    let change = |status: proto::change::Status| proto::Change { status: status.into(), ..Default::default() };
    assert_eq!(refusal::<_, ChangeRecord>(change(proto::change::Status::Undone)), "undone_by");
    assert_eq!(refusal::<_, ChangeRecord>(change(proto::change::Status::Failed)), "failed_reason");
    let renamed = proto::FileRecord {
        path: "a".to_owned(),
        location: "a".to_owned(),
        operation: proto::Operation::Rename.into(),
        ..Default::default()
    };
    assert_eq!(refusal::<_, FileRecord>(renamed), "renamed_from");
}

#[test]
fn json_that_is_none_is_refused() {
    let call = proto::CallTool { name: "t".to_owned(), arguments_json: "{".to_owned(), ..Default::default() };
    let intent = proto::Intent { intent: call.into(), ..Default::default() };
    assert_eq!(refusal::<_, Intent>(intent), "call_tool.arguments_json");
    let note = proto::Note { details_json: r#"{"note":"haunted"}"#.to_owned(), ..Default::default() };
    let error = Note::try_from(note).unwrap_err();
    assert_eq!(error.field, "details_json");
    assert!(error.reason.contains("haunted"), "{error}");
    let answer = choice::answer::Answer::ArgumentsJson(String::new());
    assert_eq!(refusal::<_, Answer>(proto::Answer { answer: Some(answer), ..Default::default() }), "arguments_json");
}

#[test]
fn what_the_protocol_lets_one_leave_out_has_the_meaning_it_documents() {
    assert_eq!(Performer::from(proto::Performer::Unspecified), Performer::Gate);
    assert_eq!(IfChanged::from(proto::IfChanged::Unspecified), IfChanged::Refuse);
    assert_eq!(CommentSide::from(proto::comment::Side::Unspecified), CommentSide::Proposed);
}
