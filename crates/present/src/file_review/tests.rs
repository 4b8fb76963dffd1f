//! Reviews as a surface drives them: keys in, an answer out.

use std::collections::BTreeSet;

use sayso_review::{
    Answer, Bytes, ErrorKind, FileAnswer, FileMode, FileState, Observation, ObservedFile, Preview, Proposal, WsPath,
};

use super::*;

fn path(text: &str) -> WsPath {
    WsPath::parse(text).unwrap()
}

/// Previews new contents of existing files.
fn preview(files: &[(&str, &str, &str)]) -> Preview {
    let change =
        |(path, _, new): &(&str, &str, &str)| serde_json::json!({"operation": "write", "path": path, "content": new});
    let proposal = serde_json::Value::Array(files.iter().map(change).collect()).to_string();
    let proposal = Proposal::parse(proposal.as_bytes()).unwrap();
    let draft = proposal.draft(WsPath::parse).unwrap();
    let mut observation = Observation { umask: 0o022, ..Observation::default() };
    for (at, old, _) in files {
        let found = Ok(FileState::file(*old, FileMode::PLAIN));
        observation.files.insert(path(at), ObservedFile { location: path(at), found, link: None, facts: Vec::new() });
    }
    draft.preview(&observation)
}

/// Twenty numbered lines with other texts at some numbers.
fn lines(changed: &[usize]) -> String {
    (1..=20)
        .map(|number| if changed.contains(&number) { format!("new {number}\n") } else { format!("{number}\n") })
        .collect()
}

/// Presses keys in a review of the only file, and returns its outcome.
fn press(preview: &Preview, keys: &[&str]) -> FileOutcome {
    let file = &preview.files()[0];
    let diff = file.diff();
    let mut review = HunkReview::new(preview, file, &diff).unwrap();
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
    let preview = preview(&[("a.txt", &lines(&[]), &lines(&[2, 18]))]);
    assert_eq!(press(&preview, &["y", "y"]), FileOutcome::Answered(FileAnswer::Approve));
    assert_eq!(press(&preview, &["n", "n"]), FileOutcome::Answered(FileAnswer::Deny { reason: None }));
    assert_eq!(press(&preview, &["n", "y"]), hunks(&["2"]));
    assert_eq!(press(&preview, &["a"]), FileOutcome::Answered(FileAnswer::Approve));
    assert_eq!(press(&preview, &["q"]), FileOutcome::Left(Leave::Quit));
}

#[test]
fn split_hunk_is_decided_in_parts() {
    let preview = preview(&[("a.txt", &lines(&[]), &lines(&[2, 4]))]);
    assert_eq!(press(&preview, &["s", "y", "n"]), hunks(&["1.1"]));
    assert_eq!(press(&preview, &["s", "n", "k", "y", "n"]), hunks(&["1.1"]));
}

#[test]
fn put_off_hunk_is_asked_about_last() {
    let preview = preview(&[("a.txt", &lines(&[]), &lines(&[2, 18]))]);
    assert_eq!(press(&preview, &["j", "y", "n"]), hunks(&["2"]));
    assert_eq!(press(&preview, &["y", "j"]), FileOutcome::Left(Leave::Later));
}

#[test]
fn edited_lines_replace_the_hunk() {
    let preview = preview(&[("a.txt", &lines(&[]), &lines(&[2, 18]))]);
    let file = &preview.files()[0];
    let diff = file.diff();
    let mut review = HunkReview::new(&preview, file, &diff).unwrap();
    assert_eq!(review.decide(Key::Edit), Step::EditLines);
    let edited = {
        let editable = EditableLines::new(file, &review.current().unwrap().hunk).unwrap();
        assert_eq!(editable.text, b"new 2\n");
        editable.restore(b"other".to_vec())
    };
    assert_eq!(review.replace(edited), Step::Ask);
    let expected = lines(&[]).replacen("2\n", "other\n", 1).into_bytes();
    let answer = FileAnswer::EditedBytes { bytes: Bytes::new(expected) };
    assert_eq!(review.decide(Key::No), Step::Finished(FileOutcome::Answered(answer)));
}

#[test]
fn back_returns_to_the_previous_file() {
    let preview = preview(&[("a.txt", "1\n", "2\n"), ("b.txt", "1\n", "2\n")]);
    let mut review = ChangeReview::new(&preview);
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
    let preview = preview(&[("a.txt", "1\n", "2\n"), ("b.txt", "1\n", "2\n")]);
    let decide = |outcomes: [FileOutcome; 2]| {
        let mut review = ChangeReview::new(&preview);
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
    let preview = preview(&[("a.txt", &lines(&[]), &lines(&[2]))]);
    let file = &preview.files()[0];
    let diff = file.diff();
    let prompt = HunkReview::new(&preview, file, &diff).unwrap().prompt();
    assert_eq!(prompt.text, "(1/1) Apply this hunk to a.txt [y,n,a,d,e,c,j,k,q,?]? ");
    let help = prompt.parse("x").unwrap_err();
    assert!(help.starts_with("`x` is not a key here.") && !help.contains("\nD  ") && !help.contains("\ns  "), "{help}");
    assert_eq!(prompt.parse("s").unwrap_err(), "This cannot be split any further.\n");
}

#[test]
fn approval_names_files_and_hunks() {
    let preview = preview(&[("a.txt", &lines(&[]), &lines(&[2, 18])), ("1", "1\n", "2\n")]);
    let parse = |text: &str| parse_approval(text, &preview);
    assert_eq!(parse("all"), Ok(Answer::Approve));
    let Ok(Answer::Files { files, .. }) = parse("a.txt:2, 1") else { panic!("files are answered") };
    let hunk = FileAnswer::Hunks { hunks: ["2".parse().unwrap()].into() };
    assert_eq!(files.into_iter().collect::<Vec<_>>(), [(path("1"), FileAnswer::Approve), (path("a.txt"), hunk)]);
    for (text, message) in [
        ("2", "hunk 2 of which file? There are 2"),
        ("b.txt:1", "`b.txt` is not part of this proposal"),
        (",", "`--approve ,` names nothing"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidArgs, message));
    }
    assert_eq!(
        parse_comment("a.txt:3: why: so", &preview).map(|comment| (comment.line, comment.text)),
        Ok((3, "why: so".to_owned()))
    );
}
