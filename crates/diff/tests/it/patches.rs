//! Patches that somebody else wrote: read, applied, refused.

use sayso_diff::{LineKind, Patch, Placement, ProblemKind, Reason, Selection};

const BASE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

fn apply(base: &str, patch: &str, placement: Placement) -> Result<String, String> {
    let patch = Patch::parse(patch.as_bytes());
    assert_eq!(patch.files.len(), 1, "{patch:?}");
    match patch.files[0].apply(base.as_bytes(), &Selection::All, placement) {
        Ok(applied) => Ok(String::from_utf8(applied.bytes).unwrap()),
        Err(rejections) => Err(rejections.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

const SECOND: &str = "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-two\n+2\n";

#[test]
fn strict_means_at_the_line_it_says() {
    assert_eq!(apply(BASE, SECOND, Placement::Strict).unwrap(), BASE.replace("two", "2"));
    let moved = format!("zero\n{BASE}");
    assert_eq!(
        apply(&moved, SECOND, Placement::Strict).unwrap_err(),
        "hunk 1: line 2 of the file is not what the hunk expects"
    );
    assert_eq!(apply(&moved, SECOND, Placement::Within(1)).unwrap(), moved.replace("two", "2"));
}

#[test]
fn relocation_stays_within_its_distance() {
    let moved = format!("{}{BASE}", "0\n".repeat(5));
    assert_eq!(
        apply(&moved, SECOND, Placement::Within(4)).unwrap_err(),
        "hunk 1: its lines are not in the file within 4 lines of where it says"
    );
    assert_eq!(apply(&moved, SECOND, Placement::Within(5)).unwrap(), moved.replace("two", "2"));
}

#[test]
fn two_places_equally_far_are_not_guessed_between() {
    assert_eq!(
        apply("two\nx\ntwo\n", SECOND, Placement::Within(9)).unwrap_err(),
        "hunk 1: its lines fit equally well at line 1 and at line 3"
    );
}

#[test]
fn every_rejection_names_its_hunk() {
    let patch = "--- f\n+++ f\n@@ -1 +1 @@\n-one\n+1\n@@ -3 +3 @@\n-nope\n+3\n@@ -99 +99 @@\n-x\n+y\n";
    let parsed = Patch::parse(patch.as_bytes());
    let file = &parsed.files[0];
    let rejections = file.apply(BASE.as_bytes(), &Selection::All, Placement::Strict).unwrap_err();
    let reasons: Vec<_> = rejections.iter().map(|rejection| (rejection.hunk, rejection.reason)).collect();
    assert_eq!(reasons, [(2, Reason::DoesNotMatch { line: 3 }), (3, Reason::BaseTooShort { lines: 8 })]);
    let first = file.apply(BASE.as_bytes(), &Selection::Hunks(vec![1]), Placement::Strict).unwrap();
    assert_eq!(first.bytes, BASE.replace("one", "1").as_bytes(), "the others do not matter when not chosen");
    let none = file.apply(BASE.as_bytes(), &Selection::Hunks(vec![4]), Placement::Strict).unwrap_err();
    assert_eq!(none[0].reason, Reason::NoSuchHunk);
}

#[test]
fn hunks_out_of_order_overlap() {
    let patch = "--- f\n+++ f\n@@ -3 +3 @@\n-three\n+3\n@@ -1 +1 @@\n-one\n+1\n";
    assert_eq!(apply(BASE, patch, Placement::Strict).unwrap_err(), "hunk 2: it overlaps the hunk before it");
}

#[test]
fn lines_are_not_joined_to_an_unfinished_one() {
    let patch = "--- f\n+++ f\n@@ -1,0 +2 @@\n+more\n";
    assert!(apply("last", patch, Placement::Strict).unwrap_err().contains("no line break"));
    assert_eq!(apply("last\n", patch, Placement::Strict).unwrap(), "last\nmore\n");
}

#[test]
fn git_headers_are_read() {
    let patch = "diff --git a/old name.rs b/new name.rs\nsimilarity index 90%\nrename from old name.rs\n\
        rename to new name.rs\nindex 1234..5678 100644\n--- a/old name.rs\t\n+++ b/new name.rs\t\n@@ -1 +1 @@ fn x()\n-a\n+b\n\
        diff --git a/bin b/bin\nnew file mode 100755\nindex 0000000..e69de29\n\
        diff --git \"a/q\\\"\\303\\251\" \"b/q\\\"\\303\\251\"\ndeleted file mode 100644\n";
    let patch = Patch::parse(patch.as_bytes());
    assert_eq!(patch.problems, []);
    let names: Vec<_> = patch
        .files
        .iter()
        .map(|file| (String::from_utf8_lossy(&file.old_path), String::from_utf8_lossy(&file.new_path)))
        .collect();
    assert_eq!(
        names,
        [
            ("a/old name.rs".into(), "b/new name.rs".into()),
            ("/dev/null".into(), "b/bin".into()),
            ("a/q\"é".into(), "/dev/null".into())
        ]
    );
    assert_eq!(patch.files[0].hunks[0].section, b"fn x()");
    assert_eq!(patch.files[1].extended[0], b"new file mode 100755");
}

#[test]
fn what_models_get_wrong_is_understood_and_reported() {
    // Wrong counts, a blank context line without its blank, prose around.
    let patch = "Here is the patch:\n```diff\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n one\n\n-two\n+2\n```\nDone.\n";
    let parsed = Patch::parse(patch.as_bytes());
    assert_eq!(parsed.problems.len(), 1);
    assert_eq!(parsed.problems[0].kind, ProblemKind::WrongCounts { promised: (9, 9), found: (3, 3) });
    assert_eq!(
        parsed.problems[0].to_string(),
        "line 5 of the patch: the hunk promises 9 old and 9 new lines but has 3 and 3"
    );
    assert_eq!(apply("one\n\ntwo\n", patch, Placement::Strict).unwrap(), "one\n\n2\n");
}

#[test]
fn a_hunk_that_removes_dashes_is_not_a_file_header() {
    let patch = "--- f\n+++ f\n@@ -1,2 +1 @@\n--- a\n+++ b\n-x\n";
    let parsed = Patch::parse(patch.as_bytes());
    assert_eq!(parsed.files.len(), 1);
    let kinds: Vec<_> = parsed.files[0].hunks[0].lines.iter().map(|line| line.kind).collect();
    assert_eq!(kinds, [LineKind::Remove, LineKind::Add, LineKind::Remove]);
}

#[test]
fn hunks_without_a_file_and_bad_headers_are_problems() {
    let kinds = |text: &str| Patch::parse(text.as_bytes()).problems.iter().map(|p| p.kind).collect::<Vec<_>>();
    assert_eq!(kinds("@@ -1 +1 @@\n-a\n+b\n"), [ProblemKind::NoFileHeader]);
    assert_eq!(kinds("--- f\n+++ f\n@@ nonsense @@\n"), [ProblemKind::BadHunkHeader]);
    assert_eq!(kinds("--- f\n+++ f\n@@ -99999999999999999999 +1 @@\n"), [ProblemKind::BadHunkHeader]);
    assert_eq!(kinds("diff --git a/x b/x\nGIT binary patch\nliteral 0\n"), [ProblemKind::Binary]);
    assert_eq!(kinds(""), []);
}
