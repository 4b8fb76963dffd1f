//! Patches in the `*** Begin Patch` form: parsed, applied, rejected.

use sayso_diff::{
    Ambiguity, Loosened, Looseness, ProblemKind, Section, SectionAction, SectionApplied, SectionPatch, is_begin_patch,
};

/// Parses a patch with these lines.
fn patch(body: &str) -> SectionPatch {
    SectionPatch::parse(&format!("*** Begin Patch\n{body}*** End Patch\n"))
}

/// Returns the only section of a patch without problems.
fn section(body: &str) -> Section {
    let patch = patch(body);
    assert_eq!(patch.problems, []);
    assert_eq!(patch.sections.len(), 1, "{patch:?}");
    patch.sections[0].clone()
}

fn apply(base: &str, chunks: &str) -> Result<SectionApplied, String> {
    let applied = section(&format!("*** Update File: f\n{chunks}")).apply(Some(base));
    applied.map_err(|rejections| rejections.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

/// Checks that all chunks match exactly and unambiguously.
fn check(base: &str, chunks: &str, expected: &str) {
    let applied = apply(base, chunks).unwrap_or_else(|error| panic!("{chunks}: {error}"));
    assert_eq!(applied, SectionApplied { text: Some(expected.to_owned()), ..SectionApplied::default() }, "{chunks}");
}

fn problems(patch: &SectionPatch) -> Vec<(usize, ProblemKind)> {
    patch.problems.iter().map(|problem| (problem.line, problem.kind)).collect()
}

#[test]
fn files_are_added_deleted_and_moved() {
    let added = section("*** Add File: a/b c.txt\n+one\n+\n+ two\n");
    assert_eq!(added.path, "a/b c.txt");
    assert_eq!(added.apply(None).unwrap().text.as_deref(), Some("one\n\n two\n"));
    assert_eq!(section("*** Add File: empty\n").apply(None).unwrap().text.as_deref(), Some(""));
    let deleted = section("*** Delete File: f\n");
    assert_eq!(deleted.apply(Some("x\n")).unwrap().text, None);
    assert_eq!(deleted.apply(None).unwrap_err()[0].to_string(), "the patch changes a file that does not exist");
    let moved = section("*** Update File: f\n*** Move to: g\n@@\n-x\n+y\n");
    assert!(matches!(&moved.action, SectionAction::Update { move_to: Some(path), .. } if path == "g"));
    assert_eq!(moved.apply(Some("x\n")).unwrap().text.as_deref(), Some("y\n"));
    assert_eq!(section("*** Update File: f\n*** Move to: g\n").apply(Some("x")).unwrap().text.as_deref(), Some("x"));
}

#[test]
fn sections_keep_file_order() {
    let patch = patch("*** Add File: a\n+x\n\n*** Delete File: b\n\n*** Update File: c\n-x\n+y\n*** Add File: d\n");
    assert_eq!(patch.problems, []);
    let paths: Vec<&str> = patch.sections.iter().map(|section| &*section.path).collect();
    assert_eq!(paths, ["a", "b", "c", "d"]);
}

#[test]
fn chunks_match_by_content() {
    let base = "one\ntwo\nthree\nfour\nfive\n";
    check(base, "@@\n two\n-three\n+3\n four\n", "one\ntwo\n3\nfour\nfive\n");
    check(base, " one\n+one and a half\n", "one\none and a half\ntwo\nthree\nfour\nfive\n");
    check(base, "@@\n-one\n@@\n-three\n+3\n@@\n five\n+six\n", "two\n3\nfour\nfive\nsix\n");
    check(base, "@@\n-one\n-two\n-three\n-four\n-five\n", "");
    // Chunks separated only by `@@`.
    check(base, "@@\n-one\n@@\n-two\n", "three\nfour\nfive\n");
    // Empty context lines without their marker.
    check("a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n");
}

#[test]
fn anchors_narrow_in_sequence() {
    let base = "class A\n  def f\n    pass\nclass B\n  def f\n    pass\n  def g\n    done\n";
    let second = base.replace("class B\n  def f\n    pass", "class B\n  def f\n    return");
    check(base, "@@ class B\n@@   def f\n-    pass\n+    return\n", &second);
    assert_eq!(
        apply(base, "@@ class B\n@@   def h\n-    pass\n").unwrap_err(),
        "chunk 1: there is no line `  def h` after the chunk before it"
    );
    // An anchor alone is an insertion point.
    check("a\nb\nc\n", "@@ b\n+new\n", "a\nb\nnew\nc\n");
    check("a\nb\nc\n", "@@ a\n+x\n@@\n-b\n+y\n", "a\nx\ny\nc\n");
}

#[test]
fn chunk_without_old_lines_is_appended() {
    check("a\nb\n", "@@\n+c\n", "a\nb\nc\n");
    check("", "@@\n+a\n+b\n", "a\nb\n");
    // Other chunks are not affected by it.
    check("a\nb\n", "@@\n+c\n@@\n-a\n+A\n", "A\nb\nc\n");
    check("a\nb\n", "@@ a\n+c\n*** End of File\n", "a\nb\nc\n");
}

#[test]
fn end_marker_requires_end_of_file() {
    let base = "x\ny\nx\n";
    check(base, "@@\n-x\n+z\n*** End of File\n", "x\ny\nz\n");
    check(base, "@@\n-y\n@@\n x\n+z\n*** End of File\n", "x\nx\nz\n");
    assert_eq!(
        apply(base, "@@\n-y\n+z\n*** End of File\n").unwrap_err(),
        "chunk 1: its old lines are not at the end of the file; they start with `y`"
    );
}

#[test]
fn missing_final_newline_is_kept() {
    check("a\nb", "@@\n-a\n+A\n", "A\nb");
    check("a\nb", "@@\n-b\n+B\n", "a\nB");
    check("a\nb", "@@\n b\n+c\n", "a\nb\nc");
    check("a\nb", "@@\n+c\n", "a\nb\nc");
    check("a", "@@\n-a\n", "");
}

#[test]
fn loose_match_is_reported_and_keeps_context() {
    use Looseness::{FinalEmptyLine, Punctuation, SurroundingWhitespace, TrailingWhitespace};
    let loose = |base: &str, chunks: &str, expected: &str, looseness: &[(usize, Looseness)]| {
        let applied = apply(base, chunks).unwrap();
        assert_eq!(applied.text.as_deref(), Some(expected));
        let reported: Vec<_> =
            looseness.iter().map(|&(line, looseness)| Loosened { chunk: 1, line, looseness }).collect();
        assert_eq!(applied.loosened, reported);
    };
    loose("a  \nb\n", "@@\n a\n-b\n+c\n", "a  \nc\n", &[(1, TrailingWhitespace)]);
    loose("a\nb\n", "@@\n a \n-b\t\n+c\n", "a\nc\n", &[(1, TrailingWhitespace)]);
    loose("x\n\ta\nb\n", "@@\n     a\n-b\n+c\n", "x\n\ta\nc\n", &[(2, SurroundingWhitespace)]);
    loose("say “no” – now\nb\n", "@@\n say \"no\" - now\n-b\n", "say “no” – now\n", &[(1, Punctuation)]);
    loose("  def f\nb\n", "@@ def f\n-b\n+c\n", "  def f\nc\n", &[(1, SurroundingWhitespace)]);
    // An empty line before the next section.
    loose("a\nb\n", "@@\n-a\n+c\n\n", "c\nb\n", &[(1, FinalEmptyLine)]);
    // An exact match is preferred to an earlier loose match.
    loose(" a\na\n", "@@\n-a\n", " a\n", &[]);
}

#[test]
fn ambiguous_chunk_uses_first_match() {
    let applied = apply("x\na\nx\nx\n", "@@\n-x\n+y\n@@\n a\n@@\n-x\n+z\n").unwrap();
    assert_eq!(applied.text.as_deref(), Some("y\na\nz\nx\n"));
    let ambiguous = [Ambiguity { chunk: 1, lines: vec![1, 3, 4] }, Ambiguity { chunk: 3, lines: vec![3, 4] }];
    assert_eq!(applied.ambiguous, ambiguous);
    let many = apply(&"x\n".repeat(1000), "@@\n-x\n").unwrap();
    assert_eq!(many.ambiguous[0].lines, (1..=10).collect::<Vec<_>>());
}

#[test]
fn unmatched_chunks_are_reported() {
    assert_eq!(
        apply("a\nb\nc\n", "@@\n-b\n+B\n@@\n-nope\n+x\n@@\n-a\n+A\n").unwrap_err(),
        "chunk 2: its old lines are not in the file; they start with `nope`; \
         chunk 3: its old lines, which start with `a`, are at line 1, before the place of the chunk before it"
    );
}

#[test]
fn surrounding_text_is_ignored() {
    let body = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch";
    let indented = body.replace('\n', "\n  ");
    for text in [
        body.to_owned(),
        format!("apply_patch <<'EOF'\n{body}\nEOF\n"),
        format!("Here it is:\n```\n{body}\n```\nDone.\n"),
        format!("{body}\n").replace('\n', "\r\n"),
        format!("cat <<-EOF | apply_patch\n  {indented}\n  EOF\n"),
        body.replace("*** Update", "   *** Update").replace("*** End", " *** End").replace("*** Begin", " *** Begin"),
        body.replace("f\n", "f  \n").replace("Patch\n", "Patch \n"),
    ] {
        let patch = SectionPatch::parse(&text);
        assert!(is_begin_patch(&text));
        assert_eq!(patch.problems, [], "{text}");
        assert_eq!(patch.sections[0].path, "f");
        assert_eq!(patch.sections[0].apply(Some("a\n")).unwrap().text.as_deref(), Some("b\n"), "{text}");
    }
}

#[test]
fn nested_patch_text_is_not_parsed() {
    let unified = "--- a/doc\n+++ b/doc\n@@ -1 +1,2 @@\n *** Begin Patch\n+*** End Patch\n";
    assert!(!is_begin_patch(unified));
    assert!(!is_begin_patch("no patch at all"));
    let base = "*** Begin Patch\n*** End Patch\n";
    check(
        base,
        "@@\n *** Begin Patch\n+*** Add File: x\n *** End Patch\n",
        &base.replace("\n*** E", "\n*** Add File: x\n*** E"),
    );
}

#[test]
fn patch_and_text_carriage_returns_are_distinguished() {
    let windows = "*** Begin Patch\r\n*** Update File: f\r\n@@ x\r\n\r\n-a\r\n+b\r\n*** End Patch\r\n";
    let patch = SectionPatch::parse(windows);
    assert_eq!(patch.sections[0].apply(Some("x\n\na\n")).unwrap().text.as_deref(), Some("x\n\nb\n"));
    // Text copied from a file with `\r\n`.
    let applied = apply("x\n\na\n", "@@\n x\r\n\r\n-a\r\n+b\r\n").unwrap();
    assert_eq!(applied.text.as_deref(), Some("x\n\nb\r\n"));
    assert_eq!(applied.loosened[0].looseness, Looseness::TrailingWhitespace);
}

#[test]
fn incomplete_sections_are_not_applied() {
    use ProblemKind::{Empty, NoBegin, NoEnd, NoPath, UnknownMarker, UnmarkedLine};
    let check = |body: &str, expected: &[(usize, ProblemKind)]| {
        let patch = patch(body);
        assert_eq!(problems(&patch), expected, "{body}");
        for section in &patch.sections {
            let refused = section.apply(Some("a\n")).unwrap_err();
            assert_eq!(refused[0].to_string(), "part of the patch for this file could not be read");
        }
    };
    check("*** Update File: f\n", &[(2, Empty)]);
    check("*** Update File: f\n@@\n", &[(3, Empty)]);
    check("*** Update File: f\n@@ a\n*** End of File\n", &[(3, Empty)]);
    check("*** Update File:\n-a\n", &[(2, NoPath)]);
    check("*** Update File: f\n*** Move to:\n-a\n", &[(3, NoPath)]);
    check("*** Update File: f\n@@\n-a\n*** Move to: g\n", &[(5, UnknownMarker)]);
    check("*** Update File: f\n@@\n-a\nb\n", &[(5, UnmarkedLine)]);
    check("*** Update File: f\n@@\n-a\n*** End of File\n b\n", &[(6, UnmarkedLine)]);
    check("*** Update File: f\n@@a\n-a\n", &[(3, UnmarkedLine)]);
    check("*** Add File: f\n+a\nb\n", &[(4, UnmarkedLine)]);
    check("*** Add File: f\n+a\n\n+b\n", &[(4, UnmarkedLine)]);
    check("*** Delete File: f\n-a\n", &[(3, UnmarkedLine)]);
    check("*** Delete File: f\n*** Rename File: f\n", &[(3, UnknownMarker)]);
    check("what is this\n", &[(2, UnmarkedLine)]);

    let cut = SectionPatch::parse("*** Begin Patch\n*** Delete File: g\n*** Update File: f\n@@\n-a\n+b");
    assert_eq!(problems(&cut), [(6, NoEnd)]);
    assert_eq!(cut.sections.iter().map(|section| section.incomplete).collect::<Vec<_>>(), [false, true]);
    assert_eq!(problems(&SectionPatch::parse("")), [(1, NoBegin)]);
    let outside = SectionPatch::parse("*** Begin Patch\n*** End Patch\n*** Delete File: f\n");
    assert_eq!((problems(&outside), outside.sections.len()), (vec![(3, UnknownMarker)], 0));
    let twice = SectionPatch::parse(&"*** Begin Patch\n*** Delete File: f\n*** End Patch\n".repeat(2));
    assert_eq!((problems(&twice), twice.sections.len()), (vec![], 2));
}

#[test]
fn repetitive_file_sections_are_searched_linearly() {
    let base = "x\n".repeat(200_000);
    let chunk = format!("@@\n{}-y\n", " x\n".repeat(50_000));
    assert!(apply(&base, &chunk).unwrap_err().contains("they start with `x`"));
}
