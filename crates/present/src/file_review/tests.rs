//! Reviews as a surface drives them: keys in, an answer out.

use std::collections::BTreeSet;

use sayso_diff::Diff;
use sayso_review::{
    Answer, Bytes, CONTEXT, ErrorKind, FileAnswer, FileMode, FilePreview, FileRecord, FileState, Operation, Placement,
    WsPath,
};

use super::*;
use crate::diff::{Highlighting, LocalDiff};

fn path(text: &str) -> WsPath {
    WsPath::parse(text).unwrap()
}

/// New contents of an existing file.
fn contents((at, old, new): (&str, &str, &str)) -> FilePreview {
    let state = |text: &str| FileState::file(text, FileMode::PLAIN);
    FilePreview {
        path: path(at),
        location: path(at),
        operation: Operation::Update,
        before: state(old),
        after: state(new),
        notes: Vec::new(),
        problem: None,
    }
}

fn record(file: &FilePreview) -> FileRecord {
    let counts = file.counts();
    FileRecord {
        path: file.path.clone(),
        location: file.location.clone(),
        operation: file.operation.clone(),
        before: file.before.fingerprint(),
        after: file.after.fingerprint(),
        added: counts.added,
        removed: counts.removed,
        notes: Vec::new(),
        problem: None,
        settled: false,
        card: None,
    }
}

fn records(files: &[(&str, &str, &str)]) -> Vec<FileRecord> {
    files.iter().map(|file| record(&contents(*file))).collect()
}

/// The diff of a file as an engine computes it.
fn diff(file: &FilePreview) -> FileDiff {
    let diff: Diff<'_> = file.diff();
    let mut local = LocalDiff::new(&diff, file.path.as_str(), CONTEXT, Highlighting::Off);
    let (old_side, new_side) = local.sides();
    let hunks: Vec<_> = local.hunks().collect();
    let file = sayso_api::diff::DiffFile {
        path: file.path.to_string(),
        label: None,
        operation: file.operation.clone(),
        before: file.before.fingerprint(),
        after: file.after.fingerprint(),
        old_side,
        new_side,
        counts: diff.counts(),
        hunks: hunks.len(),
        conflicts: 0,
        rows: None,
        problem: None,
        no_diff: None,
    };
    FileDiff { file, hunks, changes_encoding: false }
}

/// Twenty numbered lines with other texts at some numbers.
fn lines(changed: &[usize]) -> String {
    (1..=20)
        .map(|number| if changed.contains(&number) { format!("new {number}\n") } else { format!("{number}\n") })
        .collect()
}

/// Presses keys in a review of the only file, and returns its outcome.
fn press(file: &FilePreview, keys: &[&str]) -> FileOutcome {
    let record = record(file);
    let files = std::slice::from_ref(&record);
    let mut review = HunkReview::new(files, &record, Placement::Proposed, diff(file)).unwrap();
    for key in keys {
        let key = review.prompt().parse(key).unwrap();
        if let Step::Finished(outcome) = review.decide(key) {
            return outcome;
        }
    }
    panic!("the review is not finished");
}

fn hunks(ids: &[&str]) -> FileOutcome {
    let hunks: BTreeSet<_> = ids.iter().map(|id| id.parse().unwrap()).collect();
    FileOutcome::Answered(FileAnswer::Hunks { hunks })
}

#[test]
fn hunks_are_decided_one_by_one() {
    let preview = contents(("a.txt", &lines(&[]), &lines(&[2, 18])));
    assert_eq!(press(&preview, &["y", "y"]), FileOutcome::Answered(FileAnswer::Approve));
    assert_eq!(press(&preview, &["n", "n"]), FileOutcome::Answered(FileAnswer::Deny { reason: None }));
    assert_eq!(press(&preview, &["n", "y"]), hunks(&["2"]));
    assert_eq!(press(&preview, &["a"]), FileOutcome::Answered(FileAnswer::Approve));
    assert_eq!(press(&preview, &["q"]), FileOutcome::Left(Leave::Quit));
}

#[test]
fn split_hunk_is_decided_in_parts() {
    let preview = contents(("a.txt", &lines(&[]), &lines(&[2, 4])));
    assert_eq!(press(&preview, &["s", "y", "n"]), hunks(&["1.1"]));
    assert_eq!(press(&preview, &["s", "n", "k", "y", "n"]), hunks(&["1.1"]));
}

#[test]
fn put_off_hunk_is_asked_about_last() {
    let preview = contents(("a.txt", &lines(&[]), &lines(&[2, 18])));
    assert_eq!(press(&preview, &["j", "y", "n"]), hunks(&["2"]));
    assert_eq!(press(&preview, &["y", "j"]), FileOutcome::Left(Leave::Later));
}

#[test]
fn edited_lines_replace_the_hunk() {
    let file = contents(("a.txt", &lines(&[]), &lines(&[2, 18])));
    let record = record(&file);
    let files = std::slice::from_ref(&record);
    let mut review = HunkReview::new(files, &record, Placement::Proposed, diff(&file)).unwrap();
    assert_eq!(review.decide(Key::Edit), Step::EditLines);
    let edited = {
        let editable = EditableLines::new(&file, &review.current().unwrap().changed).unwrap();
        assert_eq!(editable.text, b"new 2\n");
        editable.restore(b"other".to_vec())
    };
    assert_eq!(review.replace(edited, file.clone()), Step::Ask);
    let expected = lines(&[]).replacen("2\n", "other\n", 1).into_bytes();
    let answer = FileAnswer::EditedBytes { bytes: Bytes::new(expected) };
    assert_eq!(review.decide(Key::No), Step::Finished(FileOutcome::Answered(answer)));
}

#[test]
fn back_returns_to_the_previous_file() {
    let files = records(&[("a.txt", "1\n", "2\n"), ("b.txt", "1\n", "2\n")]);
    let mut review = ChangeReview::new(&files);
    let shown = |review: &mut ChangeReview<'_>| review.next_file().map(|turn| turn.file.path.to_string());
    assert_eq!(shown(&mut review).as_deref(), Some("a.txt"));
    assert_eq!(review.finish_file(FileOutcome::Answered(FileAnswer::Deny { reason: None })), None);
    assert_eq!(shown(&mut review).as_deref(), Some("b.txt"));
    assert_eq!(review.finish_file(FileOutcome::Left(Leave::Back)), None);
    assert_eq!(shown(&mut review).as_deref(), Some("a.txt"));
    assert_eq!(review.finish_file(FileOutcome::Left(Leave::Back)), Some(Leave::Back));
}

#[test]
fn answers_of_all_files_make_one_answer() {
    let files = records(&[("a.txt", "1\n", "2\n"), ("b.txt", "1\n", "2\n")]);
    let decide = |outcomes: [FileOutcome; 2]| {
        let mut review = ChangeReview::new(&files);
        for outcome in outcomes {
            if review.next_file().unwrap().needs_answer {
                review.finish_file(outcome);
            }
        }
        review.finish(Some("no".to_owned())).answer
    };
    let approve = || FileOutcome::Answered(FileAnswer::Approve);
    assert_eq!(decide([approve(), approve()]), Answer::Approve);
    assert_eq!(decide([FileOutcome::DenyRest, approve()]), Answer::Deny { reason: Some("no".to_owned()) });
    let Answer::Files { files, .. } = decide([approve(), FileOutcome::DenyRest]) else { panic!("files are answered") };
    assert_eq!(files.into_iter().collect::<Vec<_>>(), [(path("a.txt"), FileAnswer::Approve)]);
}

#[test]
fn prompt_explains_offered_keys_only() {
    let file = contents(("a.txt", &lines(&[]), &lines(&[2])));
    let record = record(&file);
    let files = std::slice::from_ref(&record);
    let prompt = HunkReview::new(files, &record, Placement::Proposed, diff(&file)).unwrap().prompt();
    assert_eq!(prompt.text, "(1/1) Apply this hunk to a.txt [y,n,a,d,e,c,j,k,q,?]? ");
    let help = prompt.parse("x").unwrap_err();
    assert!(help.starts_with("`x` is not a key here.") && !help.contains("\nD  ") && !help.contains("\ns  "), "{help}");
    assert_eq!(prompt.parse("s").unwrap_err(), "This cannot be split any further.\n");
}

#[test]
fn approval_names_files_and_hunks() {
    let files = records(&[("a.txt", &lines(&[]), &lines(&[2, 18])), ("1", "1\n", "2\n")]);
    let parse = |text: &str| parse_approval(text, &files);
    assert_eq!(parse("all"), Ok(Answer::Approve));
    let Ok(Answer::Files { files: answers, .. }) = parse("a.txt:2, 1") else { panic!("files are answered") };
    let hunk = FileAnswer::Hunks { hunks: ["2".parse().unwrap()].into() };
    assert_eq!(answers.into_iter().collect::<Vec<_>>(), [(path("1"), FileAnswer::Approve), (path("a.txt"), hunk)]);
    for (text, message) in [
        ("2", "hunk 2 of which file? There are 2"),
        ("b.txt:1", "`b.txt` is not part of this proposal"),
        (",", "`--approve ,` names nothing"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidArgs, message));
    }
    assert_eq!(
        parse_comment("a.txt:3: why: so", &files).map(|comment| (comment.line, comment.text)),
        Ok((3, "why: so".to_owned()))
    );
}

#[test]
fn parts_have_the_lines_around_them() {
    let file = contents(("a.txt", &lines(&[]), &lines(&[2, 4])));
    let hunk = Unit::whole(diff(&file).hunks.remove(0));
    let parts = hunk.split();
    let lines =
        |unit: &Unit| (unit.id.to_string(), unit.old_lines.clone(), unit.new_lines.clone(), unit.changed.clone());
    assert_eq!(lines(&hunk), ("1".to_owned(), 0..7, 0..7, ChangedLines { old: 1..4, new: 1..4 }));
    assert_eq!(lines(&parts[0]), ("1.1".to_owned(), 0..3, 0..3, ChangedLines { old: 1..2, new: 1..2 }));
    assert_eq!(lines(&parts[1]), ("1.2".to_owned(), 2..7, 2..7, ChangedLines { old: 3..4, new: 3..4 }));
    let numbers = |unit: &Unit| unit.rows.iter().map(|row| row.row.old_line).collect::<Vec<_>>();
    assert_eq!(numbers(&parts[0]), [Some(1), Some(2), None, Some(3)]);
}
