//! Patches by other authors: parsed, applied, rejected.

use sayso_diff::{LineKind, Patch, Placement, ProblemKind, Reason, Selection, Side};

const BASE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n";

fn apply(base: &str, patch: &str, placement: Placement) -> Result<String, String> {
    let patch = Patch::parse(patch.as_bytes());
    assert_eq!(patch.files.len(), 1, "{patch:?}");
    match patch.files[0].apply(base.as_bytes().into(), &Selection::All, placement) {
        Ok(patched) => Ok(String::from_utf8(patched.content.unwrap_or_default()).unwrap()),
        Err(rejections) => Err(rejections.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

const SECOND: &str = "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-two\n+2\n";

#[test]
fn strict_placement_uses_header_line() {
    assert_eq!(apply(BASE, SECOND, Placement::Strict).unwrap(), BASE.replace("two", "2"));
    let moved = format!("zero\n{BASE}");
    assert_eq!(
        apply(&moved, SECOND, Placement::Strict).unwrap_err(),
        "hunk 1: line 2 of the file is not what the hunk expects"
    );
    assert_eq!(apply(&moved, SECOND, Placement::Within(1)).unwrap(), moved.replace("two", "2"));
}

#[test]
fn relocation_is_limited_by_distance() {
    let moved = format!("{}{BASE}", "0\n".repeat(5));
    assert_eq!(
        apply(&moved, SECOND, Placement::Within(4)).unwrap_err(),
        "hunk 1: its lines are not in the file within 4 lines of where it says"
    );
    assert_eq!(apply(&moved, SECOND, Placement::Within(5)).unwrap(), moved.replace("two", "2"));
}

#[test]
fn equally_distant_matches_are_ambiguous() {
    assert_eq!(
        apply("two\nx\ntwo\n", SECOND, Placement::Within(9)).unwrap_err(),
        "hunk 1: its lines fit equally well at line 1 and at line 3"
    );
}

#[test]
fn rejections_name_their_hunk() {
    let patch = "--- f\n+++ f\n@@ -1 +1 @@\n-one\n+1\n@@ -3 +3 @@\n-nope\n+3\n@@ -99 +99 @@\n-x\n+y\n";
    let parsed = Patch::parse(patch.as_bytes());
    let file = &parsed.files[0];
    let rejections = file.apply(BASE.as_bytes().into(), &Selection::All, Placement::Strict).unwrap_err();
    let reasons: Vec<_> = rejections.iter().map(|rejection| (rejection.hunk, rejection.reason)).collect();
    assert_eq!(reasons, [(2, Reason::DoesNotMatch { line: 3 }), (3, Reason::BaseTooShort { lines: 8 })]);
    let first = file.apply(BASE.as_bytes().into(), &Selection::Hunks([1].into()), Placement::Strict).unwrap();
    assert_eq!(first.content.unwrap(), BASE.replace("one", "1").as_bytes(), "the others do not matter when not chosen");
    let none = file.apply(BASE.as_bytes().into(), &Selection::Hunks([4].into()), Placement::Strict).unwrap_err();
    assert_eq!(none[0].reason, Reason::NoSuchHunk);
}

#[test]
fn hunks_out_of_order_overlap() {
    let patch = "--- f\n+++ f\n@@ -3 +3 @@\n-three\n+3\n@@ -1 +1 @@\n-one\n+1\n";
    assert_eq!(apply(BASE, patch, Placement::Strict).unwrap_err(), "hunk 2: it overlaps the hunk before it");
}

#[test]
fn line_without_break_is_not_joined() {
    let patch = "--- f\n+++ f\n@@ -1,0 +2 @@\n+more\n";
    assert!(apply("last", patch, Placement::Strict).unwrap_err().contains("join two lines"));
    assert_eq!(apply("last\n", patch, Placement::Strict).unwrap(), "last\nmore\n");
    // The patch states that a line in the middle has no line break.
    let marked = "--- f\n+++ f\n@@ -1 +1,2 @@\n a\n+b\n\\ No newline at end of file\n";
    assert!(apply("a\nc\n", marked, Placement::Strict).unwrap_err().contains("join two lines"));
    assert_eq!(apply("a\n", marked, Placement::Strict).unwrap(), "a\nb");
    // Two hunks at the end, the first of which leaves no line break.
    let twice = "--- f\n+++ f\n@@ -1,0 +2 @@\n+b\n\\ No newline at end of file\n@@ -1,0 +3 @@\n+c\n";
    assert_eq!(apply("a\n", twice, Placement::Strict).unwrap_err().split(':').next(), Some("hunk 2"));
}

#[test]
fn patch_without_last_newline_applies() {
    let inserts = "--- f\n+++ f\n@@ -1 +1,2 @@\n a\n+b";
    assert_eq!(apply("a\nc\n", inserts, Placement::Strict).unwrap(), "a\nb\nc\n");
    let context_last = "--- f\n+++ f\n@@ -1,2 +1,3 @@\n a\n+b\n c";
    assert_eq!(apply("a\nc\n", context_last, Placement::Strict).unwrap(), "a\nb\nc\n");
}

#[test]
fn overcounted_hunk_ends_at_next_file() {
    let text = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+Z\n";
    let patch = Patch::parse(text.as_bytes());
    let paths: Vec<_> = patch.files.iter().map(|file| (&*file.new_path, file.hunks.len())).collect();
    assert_eq!(paths, [(&b"b/f"[..], 1), (&b"b/g"[..], 1)]);
    assert_eq!(patch.problems.len(), 1, "and the wrong counts are told");
}

#[test]
fn format_patch_signature_is_ignored() {
    let text = "From 1234 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\n---\n f | 2 +-\n\n\
        diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -2 +2 @@\n-two\n+2\n-- \n2.43.0\n\n";
    assert_eq!(Patch::parse(text.as_bytes()).problems, []);
    assert_eq!(apply(BASE, text, Placement::Strict).unwrap(), BASE.replace("two", "2"));
}

#[test]
fn earlier_offsets_apply_to_later_hunks() {
    // The second hunk alone is out of reach, but follows the offset of the first.
    let patch = "--- f\n+++ f\n@@ -1 +1 @@\n-one\n+1\n@@ -8 +8 @@\n-eight\n+8\n";
    let moved = format!("0\n0\n{BASE}").replace("seven\n", "seven\nmore\n");
    let expected = moved.replace("one", "1").replace("eight", "8");
    assert_eq!(apply(&moved, patch, Placement::Within(2)).unwrap(), expected);
    let second_only = "--- f\n+++ f\n@@ -8 +8 @@\n-eight\n+8\n";
    assert!(apply(&moved, second_only, Placement::Within(2)).is_err());
}

#[test]
fn hunks_without_old_lines_are_not_moved() {
    let patch = "--- f\n+++ f\n@@ -99,0 +100 @@\n+x\n";
    assert_eq!(apply(BASE, patch, Placement::Within(1000)).unwrap_err(), "hunk 1: the file has only 8 lines");
}

#[test]
fn invalid_creations_and_deletions_are_rejected() {
    let outcome = |text: &str, base: Side<'_>| -> Result<Option<Vec<u8>>, String> {
        let patch = Patch::parse(text.as_bytes());
        let patched = patch.files[0].apply(base, &Selection::All, Placement::Strict);
        patched.map(|patched| patched.content).map_err(|rejections| rejections[0].to_string())
    };
    let create = "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(outcome(create, Side::Absent), Ok(Some(b"x\n".to_vec())));
    assert_eq!(outcome(create, Side::Present(b"y\n")), Err("the patch creates a file that exists already".to_owned()));
    let delete = "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    assert_eq!(outcome(delete, Side::Present(b"x\n")), Ok(None));
    assert!(outcome(delete, Side::Present(b"x\ny\n")).unwrap_err().contains("more lines than the patch removes"));
    assert!(outcome(delete, Side::Absent).unwrap_err().contains("does not exist"));
}

#[test]
fn incomplete_patch_is_not_applied() {
    for text in [
        "--- f\n+++ f\n@@ nonsense @@\n-one\n+1\n",
        "diff --git a/f b/f\nindex 1..2 100644\nBinary files a/f and b/f differ\n",
        "diff --git a/f b/f\nGIT binary patch\nliteral 0\n",
    ] {
        let error = apply(BASE, text, Placement::Strict).unwrap_err();
        assert_eq!(error, "part of the patch for this file could not be read", "{text}");
    }
}

#[test]
fn mode_change_stays_with_its_file() {
    let text = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n\n--- y\n+++ y\n@@ -1 +1 @@\n-a\n+b\n";
    let patch = Patch::parse(text.as_bytes());
    let seen: Vec<_> = patch.files.iter().map(|file| (&*file.new_path, file.extended.len())).collect();
    assert_eq!(seen, [(&b"b/x"[..], 2), (&b"y"[..], 0)]);
}

#[test]
fn repetitive_file_is_searched_linearly() {
    // A naive search would take billions of steps.
    let base = "x\n".repeat(200_000);
    let lines = "-x\n".repeat(100_000);
    let patch = format!("--- f\n+++ f\n@@ -400000000,100001 +1 @@\n{lines}-y\n+z\n");
    assert!(apply(&base, &patch, Placement::Within(usize::MAX)).unwrap_err().contains("not in the file"));
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
fn typical_model_errors_are_tolerated() {
    // Wrong counts, a context line without its marker, surrounding prose.
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
fn removed_dashes_are_not_a_header() {
    let patch = "--- f\n+++ f\n@@ -1,2 +1 @@\n--- a\n+++ b\n-x\n";
    let parsed = Patch::parse(patch.as_bytes());
    assert_eq!(parsed.files.len(), 1);
    let kinds: Vec<_> = parsed.files[0].hunks[0].lines.iter().map(|line| line.kind).collect();
    assert_eq!(kinds, [LineKind::Remove, LineKind::Add, LineKind::Remove]);
}

#[test]
fn missing_and_bad_headers_are_problems() {
    let kinds = |text: &str| Patch::parse(text.as_bytes()).problems.iter().map(|p| p.kind).collect::<Vec<_>>();
    assert_eq!(kinds("@@ -1 +1 @@\n-a\n+b\n"), [ProblemKind::NoFileHeader]);
    assert_eq!(kinds("--- f\n+++ f\n@@ nonsense @@\n"), [ProblemKind::BadHunkHeader]);
    assert_eq!(kinds("--- f\n+++ f\n@@ -99999999999999999999 +1 @@\n"), [ProblemKind::BadHunkHeader]);
    assert_eq!(kinds("diff --git a/x b/x\nGIT binary patch\nliteral 0\n"), [ProblemKind::Binary]);
    assert_eq!(kinds(""), []);
}

#[test]
fn empty_line_without_break_is_ignored() {
    let patch = Patch::parse(b"--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+\n\\ No newline at end of file\n");
    assert_eq!(patch.files[0].hunks[0].new_lines(), 0);
    sayso_testkit::laws::patch_laws(b"--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+\n\\ No newline at end of file\n", b"");
}
