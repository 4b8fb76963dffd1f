//! Three-way merges, by example; `laws` has the general rules.

use proptest::prelude::*;
use sayso_diff::{MarkerLabels, PresenceConflict, Side, SideMerge, merge, merge_sides};

const LABELS: MarkerLabels<'_> = MarkerLabels { ours: "yours", base: "before", theirs: "the agent's" };

fn merged(base: &str, ours: &str, theirs: &str) -> String {
    String::from_utf8(merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()).with_markers(LABELS)).unwrap()
}

#[test]
fn separate_changes_are_both_kept() {
    assert_eq!(merged("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n"), "A\nb\nc\nD\n");
    assert_eq!(merged("a\nb\nc\n", "a\nb\nc\nd\n", "z\na\nb\nc\n"), "z\na\nb\nc\nd\n");
}

#[test]
fn equal_changes_are_merged_once() {
    assert_eq!(merged("a\nb\n", "a\nx\nb\n", "a\nx\nb\n"), "a\nx\nb\n");
}

#[test]
fn overlapping_changes_conflict() {
    insta::assert_snapshot!(merged("a\nb\nc\n", "a\nours\nc\n", "a\ntheirs\nc\n"), @"
    a
    <<<<<<< yours
    ours
    ||||||| before
    b
    =======
    theirs
    >>>>>>> the agent's
    c
    ");
}

#[test]
fn touching_changes_conflict() {
    let (base, ours, theirs) = ("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nB\nc\nd\n");
    let merge = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
    let conflicts: Vec<_> = merge.conflicts().collect();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(
        (conflicts[0].base, conflicts[0].ours, conflicts[0].theirs),
        (&b"a\nb\n"[..], &b"A\nb\n"[..], &b"a\nB\n"[..])
    );
    assert_eq!(conflicts[0].base_line, 1);
}

#[test]
fn large_change_over_small_changes_conflicts_once() {
    let base = "1\n2\n3\n4\n5\n6\n7\n";
    let merge = merge(base.as_bytes(), b"1\nx\n3\n4\n5\ny\n7\n", b"1\nrewritten\n7\n");
    let conflicts: Vec<_> = merge.conflicts().collect();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].base, b"2\n3\n4\n5\n6\n");
    assert_eq!(conflicts[0].ours, b"x\n3\n4\n5\ny\n");
    assert_eq!(conflicts[0].theirs, b"rewritten\n");
}

#[test]
fn final_newline_change_is_merged() {
    assert_eq!(merged("a\nb\nc", "a\nb\nc\n", "A\nb\nc"), "A\nb\nc\n");
    insta::assert_snapshot!(merged("a\nb", "a\nb\n", "a\nx"), @"
    a
    <<<<<<< yours
    b
    ||||||| before
    b
    =======
    x
    >>>>>>> the agent's
    ");
}

#[test]
fn marker_labels_use_file_encoding() {
    let labels = MarkerLabels { ours: "café", base: "漢", theirs: "" };
    let text = merge(b"\xE9\nb\n", b"\xE9\nx\n", b"\xE9\ny\n").with_markers(labels);
    assert!(text.starts_with(b"\xE9\n<<<<<<< caf\xE9\nx\n||||||| \xE6\xBC\xA2\n"), "{text:?}");
}

#[test]
fn markers_use_file_format() {
    assert!(merged("a\r\nb\r\n", "a\r\nx\r\n", "a\r\ny\r\n").ends_with("\r\n=======\r\ny\r\n>>>>>>> the agent's\r\n"));
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let [base, ours, theirs] = ["b", "x", "y"].map(|line| utf16(&format!("\u{FEFF}a\n{line}\n")));
    let text = merge(&base, &ours, &theirs).with_markers(LABELS);
    let expected = "\u{FEFF}a\n<<<<<<< yours\nx\n||||||| before\nb\n=======\ny\n>>>>>>> the agent's\n";
    assert_eq!(text, utf16(expected));
}

#[test]
fn created_and_deleted_sides_merge() {
    use PresenceConflict::{BothCreated, DeletedByThem, DeletedByUs};
    let (absent, a, b, c) = (Side::Absent, Side::Present(b"a\n"), Side::Present(b"b\n"), Side::Present(b"c\n"));
    let empty = Side::Present(b"");
    let taken = |side| SideMerge::Taken(side);
    let conflict = |kind| SideMerge::Conflict(kind);
    for (base, ours, theirs, expected) in [
        (absent, absent, absent, taken(absent)),
        // Created.
        (absent, a, absent, taken(a)),
        (absent, absent, a, taken(a)),
        (absent, a, a, taken(a)),
        (absent, a, b, conflict(BothCreated)),
        (absent, empty, absent, taken(empty)),
        (absent, absent, empty, taken(empty)),
        (absent, empty, a, conflict(BothCreated)),
        // Deleted.
        (a, absent, absent, taken(absent)),
        (a, absent, a, taken(absent)),
        (a, a, absent, taken(absent)),
        (a, absent, b, conflict(DeletedByUs)),
        (a, b, absent, conflict(DeletedByThem)),
        // An emptied file is changed, not deleted.
        (a, absent, empty, conflict(DeletedByUs)),
        (a, empty, absent, conflict(DeletedByThem)),
        (empty, absent, empty, taken(absent)),
        // Changed.
        (a, a, a, taken(a)),
        (a, b, a, taken(b)),
        (a, a, b, taken(b)),
        (a, b, b, taken(b)),
        (a, b, c, SideMerge::Merged(merge(b"a\n", b"b\n", b"c\n"))),
        (a, b, empty, SideMerge::Merged(merge(b"a\n", b"b\n", b""))),
    ] {
        assert_eq!(merge_sides(base, ours, theirs), expected, "{base:?} became {ours:?} and {theirs:?}");
    }
}

/// Returns the result of `git merge-file` if there is no conflict.
fn merged_by_git(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    let arguments = ["merge-file", "-p", "-q", "ours", "base", "theirs"];
    let output = sayso_testkit::programs::run(directory.path(), "git", &arguments, b"");
    output.status.success().then_some(output.stdout)
}

/// The change of a base line by one side.
#[derive(Clone, Copy, Debug)]
enum LineChange {
    Kept,
    Removed,
    Replaced,
    Followed,
}

/// Returns a version of a base whose lines all differ, so that the diff is unique.
fn version(changes: &[LineChange], side: &str) -> String {
    let line = |(number, fate): (usize, &LineChange)| match fate {
        LineChange::Kept => format!("line {number}\n"),
        LineChange::Removed => String::new(),
        LineChange::Replaced => format!("{side} {number}\n"),
        LineChange::Followed => format!("line {number}\n{side} after {number}\n"),
    };
    changes.iter().enumerate().map(line).collect()
}

fn changes() -> impl Strategy<Value = Vec<LineChange>> {
    let fate = prop_oneof![8 => Just(LineChange::Kept), 1 => Just(LineChange::Removed), 1 => Just(LineChange::Replaced), 1 => Just(LineChange::Followed)];
    prop::collection::vec(fate, 30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn clean_merges_match_git(ours in changes(), theirs in changes()) {
        let base = version(&[LineChange::Kept; 30], "");
        let (ours, theirs) = (version(&ours, "ours"), version(&theirs, "theirs"));
        let clean = merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()).clean();
        let git = merged_by_git(base.as_bytes(), ours.as_bytes(), theirs.as_bytes());
        prop_assert_eq!(clean, git);
    }
}
