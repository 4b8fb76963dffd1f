//! Undo and redo.

use std::collections::BTreeMap;

use sayso_review::{FileState, IfChanged, Note, ObservedFile, Preview, Problem, Transition, WsPath, reverse};

use crate::{file, lines, observed, path};

fn transition(change: u64, at: &str, from: Option<FileState>, to: Option<FileState>) -> Transition {
    Transition { change, path: path(at), from, to }
}

fn undo(transitions: &[Transition], now: &str, if_changed: IfChanged) -> Preview {
    let observed: BTreeMap<WsPath, ObservedFile> =
        [observed("a", file(now)), observed("other", file("other\n"))].into();
    reverse(transitions, &observed, if_changed)
}

#[test]
fn reverse_undoes_several_changes_of_file() {
    let states = [lines(&[]), lines(&[2]), lines(&[2, 20])];
    let back =
        |change: u64, from: usize| transition(change, "a", Some(file(&states[from])), Some(file(&states[from - 1])));
    let shown = undo(&[back(2, 2), back(1, 1)], &states[2], IfChanged::Refuse);
    assert_eq!(shown.files().len(), 1);
    assert_eq!(shown.files()[0].after, file(&states[0]));
    assert_eq!(shown.problems().count(), 0);
}

#[test]
fn reverse_refuses_intermediate_foreign_edit() {
    // Change 1 edited line 2, another party line 10, change 2 line 20.
    let transitions = [
        transition(2, "a", Some(file(&lines(&[2, 10, 20]))), Some(file(&lines(&[2, 10])))),
        transition(1, "a", Some(file(&lines(&[2]))), Some(file(&lines(&[])))),
    ];
    let refused = undo(&transitions, &lines(&[2, 10, 20]), IfChanged::Refuse);
    assert_eq!(refused.files()[0].problem, Some(Problem::ChangedSince { change: 1 }));
    assert_eq!(refused.files()[0].problem.as_ref().unwrap().to_string(), "it is no longer as change 1 left it");
    let merged = undo(&transitions, &lines(&[2, 10, 20]), IfChanged::Merge);
    assert_eq!(merged.files()[0].after, file(&lines(&[10])), "theirs stays");
    assert!(merged.files()[0].notes.contains(&Note::Merged));
}

#[test]
fn reverse_reports_conflicts() {
    let back = [transition(1, "a", Some(file("ours\n")), Some(file("before\n")))];
    let shown = undo(&back, "theirs\n", IfChanged::Merge);
    assert!(matches!(shown.files()[0].problem, Some(Problem::Conflicts { .. })));
    assert_eq!(shown.files()[0].notes, [], "no note claims a merge that did not happen");
}

#[test]
fn missing_content_is_a_problem() {
    for if_changed in [IfChanged::Refuse, IfChanged::Merge] {
        let shown = undo(&[transition(1, "a", Some(file("now\n")), None)], "now\n", if_changed);
        assert_eq!(shown.files()[0].problem, Some(Problem::ContentGone));
    }
    let shown = undo(&[transition(1, "a", None, Some(file("x\n")))], "now\n", IfChanged::Merge);
    assert_eq!(shown.files()[0].problem, Some(Problem::ContentGone));
}

#[test]
fn reverse_touches_recorded_paths_only() {
    let shown = undo(&[transition(1, "a", Some(file("now\n")), Some(FileState::Absent))], "now\n", IfChanged::Refuse);
    assert_eq!(shown.files().iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a"]);
    let unseen = undo(&[transition(1, "b", Some(file("b\n")), Some(FileState::Absent))], "now\n", IfChanged::Refuse);
    assert!(matches!(unseen.files()[0].problem, Some(Problem::Blocked(_))), "what was not looked at is not judged");
}
