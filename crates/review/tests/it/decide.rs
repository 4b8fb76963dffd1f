//! Plans contain exactly the approved changes.

use std::collections::BTreeMap;

use sayso_review::{
    Acceptance, Answer, ErrorKind, FileAnswer, FileMode, FileState, Observation, ObservedFile, Plan, Preview,
    VerdictError, WsPath,
};

use crate::{about_files, file, hunks, lines, observed, path, preview, verdict, write};

fn planned(plan: &Plan, at: &str) -> Option<String> {
    let step = plan.steps().iter().find(|step| step.path == path(at))?;
    step.after.bytes().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn hunk_subset_applies_exactly_its_changes() {
    let places = [2, 15, 28];
    let shown = preview(&[("a", &lines(&[]))], &write(&[("a", &lines(&places))]));
    for bits in 0..8 {
        let chosen: Vec<usize> = (0..3).filter(|hunk| bits >> hunk & 1 == 1).collect();
        let names: Vec<String> = chosen.iter().map(|hunk| (hunk + 1).to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let decision = shown.decide(&verdict(&shown, about_files(&[("a", hunks(&names))]))).unwrap();
        let changed: Vec<usize> = chosen.iter().map(|&hunk| places[hunk]).collect();
        let expected = (!chosen.is_empty()).then(|| lines(&changed));
        assert_eq!(planned(&decision.plan, "a"), expected, "{names:?}");
        match chosen.len() {
            0 => assert_eq!(decision.files[0].acceptance, Acceptance::Denied { reason: None }),
            3 => assert_eq!(decision.files[0].acceptance, Acceptance::All),
            _ => assert!(matches!(&decision.files[0].acceptance, Acceptance::Hunks { count: 3, .. })),
        }
    }
}

#[test]
fn hunk_part_applies_alone() {
    let shown = preview(&[("a", &lines(&[]))], &write(&[("a", &lines(&[2, 5, 20]))]));
    let check = |ids: &[&str], changed: &[usize]| {
        let decision = shown.decide(&verdict(&shown, about_files(&[("a", hunks(ids))]))).unwrap();
        assert_eq!(planned(&decision.plan, "a").unwrap(), lines(changed), "{ids:?}");
    };
    check(&["1.1"], &[2]);
    check(&["1.2"], &[5]);
    check(&["1.1", "1.2"], &[2, 5]);
    check(&["1", "1.2"], &[2, 5]);
    check(&["1.2", "2"], &[5, 20]);
    check(&["1.1", "1.2", "2.1"], &[2, 5, 20]);
}

#[test]
fn unknown_files_and_hunks_are_rejected() {
    let shown = preview(&[("a", &lines(&[]))], &write(&[("a", &lines(&[2]))]));
    let error = |answer| shown.decide(&verdict(&shown, answer)).unwrap_err();
    for (hunk, text) in [("2", "`a` has no hunk 2; it has 1"), ("1.2", "`a` has no hunk 1.2; it has 1")] {
        assert_eq!(error(about_files(&[("a", hunks(&[hunk]))])).to_string(), text);
    }
    assert_eq!(error(about_files(&[("b", FileAnswer::Approve)])), VerdictError::UnknownFile(path("b")));
}

#[test]
fn verdict_on_other_preview_is_rejected() {
    let files = [("a", "a\n")];
    let shown = preview(&files, &write(&[("a", "b\n")]));
    let others = [
        preview(&[("a", "another base\n")], &write(&[("a", "b\n")])),
        preview(&files, &write(&[("a", "another result\n")])),
        preview(&files, &write(&[("b", "b\n")])),
        preview(&files, &write(&[("a", "b\n"), ("b", "b\n")])),
        preview(&files, r#"{"operation":"write","path":"a","content":"b\n","executable":true}"#),
        preview(&files, r#"{"operation":"delete","path":"a"}"#),
    ];
    for other in &others {
        let error = other.decide(&verdict(&shown, Answer::Approve)).unwrap_err();
        assert_eq!((&error, error.kind()), (&VerdictError::OtherPreview, ErrorKind::Stale));
    }
    assert!(preview(&files, &write(&[("a", "b\n")])).decide(&verdict(&shown, Answer::Approve)).is_ok());
}

#[test]
fn problem_file_can_only_be_denied() {
    let shown = preview(
        &[("a", "a\n")],
        r#"[{"operation":"create","path":"a","content":"x"},{"operation":"create","path":"b","content":"x"}]"#,
    );
    let error = shown.decide(&verdict(&shown, Answer::Approve)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.to_string(), "`a` cannot be changed as proposed: it exists already");
    let rest = shown.decide(&verdict(&shown, about_files(&[("b", FileAnswer::Approve)]))).unwrap();
    assert_eq!(rest.plan.steps().len(), 1);
    assert!(shown.decide(&verdict(&shown, Answer::Deny { reason: None })).unwrap().plan.is_empty());
}

#[test]
fn edited_text_keeps_file_format() {
    let shown = preview(&[("a", "one\r\ntwo\r\n")], &write(&[("a", "one\ntwo\nthree\n")]));
    let decide = |text: &str| {
        let answer = about_files(&[("a", FileAnswer::EditedText { text: text.to_owned() })]);
        shown.decide(&verdict(&shown, answer)).unwrap()
    };
    assert_eq!(planned(&decide("uno\ntwo\n").plan, "a").unwrap(), "uno\r\ntwo\r\n");
    assert_eq!(decide("one\ntwo\nthree\n").files[0].acceptance, Acceptance::All, "edited to what was proposed");
    assert_eq!(
        decide("one\ntwo\n").files[0].acceptance,
        Acceptance::Denied { reason: None },
        "edited until nothing was left"
    );
}

#[test]
fn link_change_is_indivisible() {
    let (name, mut link) = observed("a", FileState::Absent);
    link.found = Err(sayso_review::Obstacle::Directory);
    link.link = Some("x\ny\nz\n".to_owned());
    let observation = Observation { files: [(name, link)].into(), umask: 0o022 };
    let proposal = sayso_review::Proposal::parse(br#"{"operation":"delete","path":"a"}"#).unwrap();
    let shown = proposal.draft(WsPath::parse).unwrap().preview(&observation);
    let all = shown.decide(&verdict(&shown, about_files(&[("a", hunks(&["1"]))]))).unwrap();
    assert_eq!(all.plan.steps()[0].after, FileState::Absent);
    let none = shown.decide(&verdict(&shown, about_files(&[("a", hunks(&[]))]))).unwrap();
    assert!(none.plan.is_empty());
}

/// Rebases an approved change of two files, one of which changed in the meantime.
fn rebased(now: &str) -> Preview {
    let shown = preview(&[("a", &lines(&[])), ("b", "b\n")], &write(&[("a", &lines(&[2])), ("b", "B\n")]));
    let plan = shown.decide(&verdict(&shown, Answer::Approve)).unwrap().plan;
    let observed: BTreeMap<WsPath, ObservedFile> = [observed("a", file(now)), observed("b", file("b\n"))].into();
    plan.rebase(&observed).preview
}

#[test]
fn settled_file_needs_no_answer() {
    let shown = rebased(&lines(&[20]));
    assert_eq!(shown.asked().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(shown.is_settled(&path("b")));
    let both = shown.decide(&verdict(&shown, about_files(&[("a", FileAnswer::Approve)]))).unwrap();
    assert_eq!(planned(&both.plan, "a").unwrap(), lines(&[2, 20]));
    assert_eq!(planned(&both.plan, "b").unwrap(), "B\n");
    let none = shown.decide(&verdict(&shown, Answer::Deny { reason: None })).unwrap();
    assert!(none.plan.is_empty(), "who denies denies all of it");
}

#[test]
fn rebase_does_not_follow_new_link() {
    let shown = preview(&[("a", "a\n")], &write(&[("a", "A\n")]));
    let plan = shown.decide(&verdict(&shown, Answer::Approve)).unwrap().plan;
    let (name, mut now) = observed("a", file("a\n"));
    (now.location, now.link) = (path("elsewhere"), Some("elsewhere".to_owned()));
    let again = plan.rebase(&[(name, now)].into()).preview;
    assert!(again.problems().next().is_some());
    assert_eq!(again.files()[0].before, FileState::Link { target: "elsewhere".to_owned() });
}

#[test]
fn partial_acceptance_keeps_mode() {
    let proposal = format!(
        r#"{{"operation":"write","path":"a","content":{},"executable":true}}"#,
        serde_json::to_string(&lines(&[2, 20])).unwrap()
    );
    let shown = preview(&[("a", &lines(&[]))], &proposal);
    let mode = |answer| shown.decide(&verdict(&shown, answer)).unwrap().plan.steps()[0].after.mode();
    assert_eq!(mode(Answer::Approve), Some(FileMode::EXECUTABLE));
    assert_eq!(mode(about_files(&[("a", hunks(&["1"]))])), Some(FileMode::PLAIN));
}
