//! Messages with missing or unknown values are rejected, and the error names the field.

use std::fmt::Debug;

use buffa::{EnumValue, MessageField};
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_api::proto::oneof as choice;
use sayso_review::{
    Answer, ApplyRecord, Cause, ChangeRecord, Comment, CommentSide, ContentHash, Decider, DryRunOutput, ErrorKind,
    FileAnswer, FileIntent, FileRecord, FileState, Fingerprint, IfChanged, Intent, Note, Performer, PlanStep, Preview,
    Problem, RecordedStep, RememberAs, RulingRecord, Snapshot, SnapshotRecord, Subject, Target, Verdict,
};

fn rejected_field<M, T: TryFrom<M, Error = BadMessage> + Debug>(message: M) -> String {
    T::try_from(message).unwrap_err().field
}

fn rejected_field_of_empty<M: Default, T: TryFrom<M, Error = BadMessage> + Debug>() -> String {
    rejected_field::<M, T>(M::default())
}

#[test]
fn empty_message_names_first_missing_field() {
    let table = [
        (rejected_field_of_empty::<proto::Fingerprint, Fingerprint>(), "state"),
        (rejected_field_of_empty::<proto::FileState, FileState>(), "state"),
        (rejected_field_of_empty::<proto::Note, Note>(), "details_json"),
        (rejected_field_of_empty::<proto::Problem, Problem>(), "details_json"),
        (rejected_field_of_empty::<proto::FileRecord, FileRecord>(), "path"),
        (rejected_field_of_empty::<proto::RecordedStep, RecordedStep>(), "path"),
        (rejected_field_of_empty::<proto::PlanStep, PlanStep>(), "path"),
        (rejected_field_of_empty::<proto::Preview, Preview>(), "placement"),
        (rejected_field_of_empty::<proto::Cause, Cause>(), "cause"),
        (rejected_field_of_empty::<proto::Subject, Subject>(), "subject"),
        (rejected_field_of_empty::<proto::RulingRecord, RulingRecord>(), "ruling"),
        (rejected_field_of_empty::<proto::Verdict, Verdict>(), "preview_hash"),
        (rejected_field_of_empty::<proto::Answer, Answer>(), "answer"),
        (rejected_field_of_empty::<proto::FileAnswer, FileAnswer>(), "answer"),
        (rejected_field_of_empty::<proto::Comment, Comment>(), "path"),
        (rejected_field_of_empty::<proto::RememberAs, RememberAs>(), "scope"),
        (rejected_field_of_empty::<proto::Intent, Intent>(), "intent"),
        (rejected_field_of_empty::<proto::FileIntent, FileIntent>(), "operation"),
        (rejected_field_of_empty::<proto::Target, Target>(), "target"),
        (rejected_field_of_empty::<proto::DryRunResponse, DryRunOutput>(), "end"),
        (rejected_field_of_empty::<proto::Snapshot, Snapshot>(), "path"),
        (rejected_field_of_empty::<proto::SnapshotRecord, SnapshotRecord>(), "snapshot"),
        (rejected_field_of_empty::<proto::Change, ChangeRecord>(), "status"),
    ];
    for (found, expected) in table {
        assert_eq!(found, expected);
    }
    assert!(ApplyRecord::try_from(proto::ApplyRecord::default()).is_ok(), "an empty record is valid");
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
fn rejected_field_has_full_path() {
    let record = |step| proto::ApplyRecord { steps: vec![step], ..Default::default() };
    assert_eq!(rejected_field::<_, ApplyRecord>(record(step("../out", 0o644))), "steps[0].path");
    assert_eq!(rejected_field::<_, ApplyRecord>(record(step("/etc/passwd", 0o644))), "steps[0].path");
    assert_eq!(rejected_field::<_, ApplyRecord>(record(step("a", 0o10_0644))), "steps[0].after.file.mode");

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
    assert_eq!(rejected_field::<_, Verdict>(files("a", "0")), "answer.files.files[a].hunks.hunks[0]");
    assert_eq!(rejected_field::<_, Verdict>(files("a/../b", "1")), "answer.files.files[a/../b]");
    assert_eq!(Verdict::try_from(files("a", "1")).unwrap().by, Decider::PERSON);
}

#[test]
fn duplicate_file_answer_is_rejected() {
    let answer = || proto::FileAnswer { answer: proto::file_answer::Approve::default().into(), ..Default::default() };
    let files = ["a", "./a"].map(|path| (path.to_owned(), answer()));
    let files = proto::answer::Files { files: files.into_iter().collect(), ..Default::default() };
    let error = Answer::try_from(proto::Answer { answer: files.into(), ..Default::default() }).unwrap_err();
    assert!(error.field.starts_with("files.files["), "{error}");
    assert!(error.reason.contains("same file"), "{error}");
}

#[test]
fn unknown_enum_value_is_rejected_by_number() {
    let ruling = proto::RulingRecord { ruling: EnumValue::from(77), ..Default::default() };
    let error = RulingRecord::try_from(ruling).unwrap_err();
    assert_eq!(error.field, "ruling");
    assert!(error.to_string().contains("77"), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgs);
    assert!(!error.hint().is_empty());

    let end = proto::DryRunResponse { end: EnumValue::from(-1), ..Default::default() };
    assert_eq!(rejected_field::<_, DryRunOutput>(end), "end");
    let change = proto::Change { status: EnumValue::from(99), ..Default::default() };
    assert_eq!(rejected_field::<_, ChangeRecord>(change), "status");
}

#[test]
fn status_without_its_field_is_rejected() {
    let change = |status: proto::change::Status| proto::Change { status: status.into(), ..Default::default() };
    assert_eq!(rejected_field::<_, ChangeRecord>(change(proto::change::Status::Undone)), "undone_by");
    assert_eq!(rejected_field::<_, ChangeRecord>(change(proto::change::Status::Failed)), "failed_reason");
    let renamed = proto::FileRecord {
        path: "a".to_owned(),
        location: "a".to_owned(),
        operation: proto::Operation::Rename.into(),
        ..Default::default()
    };
    assert_eq!(rejected_field::<_, FileRecord>(renamed), "renamed_from");
}

#[test]
fn malformed_json_is_rejected() {
    let call = proto::CallTool { name: "t".to_owned(), arguments_json: "{".to_owned(), ..Default::default() };
    let intent = proto::Intent { intent: call.into(), ..Default::default() };
    assert_eq!(rejected_field::<_, Intent>(intent), "call_tool.arguments_json");
    let note = proto::Note { details_json: r#"{"note":"haunted"}"#.to_owned(), ..Default::default() };
    let error = Note::try_from(note).unwrap_err();
    assert_eq!(error.field, "details_json");
    assert!(error.reason.contains("haunted"), "{error}");
    let answer = choice::answer::Answer::ArgumentsJson(String::new());
    assert_eq!(
        rejected_field::<_, Answer>(proto::Answer { answer: Some(answer), ..Default::default() }),
        "arguments_json"
    );
}

#[test]
fn unspecified_values_have_documented_defaults() {
    assert_eq!(Performer::from(proto::Performer::Unspecified), Performer::Gate);
    assert_eq!(IfChanged::from(proto::IfChanged::Unspecified), IfChanged::Refuse);
    assert_eq!(CommentSide::from(proto::comment::Side::Unspecified), CommentSide::Proposed);
}
