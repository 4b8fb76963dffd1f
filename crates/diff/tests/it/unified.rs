//! The unified text, by example; `applied_by_others` shows that other tools apply it.

use sayso_diff::{Diff, NO_FILE, Note, Rendering, Side, Unified, UnifiedOptions, path_label};
use sayso_testkit::laws::exact;

fn text(old: &str, new: &str, context: usize) -> String {
    let unified = Diff::new(old.as_bytes(), new.as_bytes()).unified(&exact(context));
    String::from_utf8(unified.into_text()).unwrap()
}

#[test]
fn no_changes_is_a_value() {
    let same = Diff::new(&b"a\n"[..], &b"a\n"[..]);
    assert_eq!(same.unified(&exact(3)), Unified::NoChanges);
    assert_eq!(Diff::new(Side::Absent, Side::Absent).unified(&exact(3)), Unified::NoChanges);
    let created = Diff::new(Side::Absent, &b""[..]).unified(&UnifiedOptions { old_label: NO_FILE, ..exact(3) });
    assert_eq!(created, Unified::Changes { text: b"--- /dev/null\n+++ b/f\n".to_vec(), truncated: false });
}

#[test]
fn hunk_headers_match_other_tools() {
    insta::assert_snapshot!(text("", "a\nb\n", 3), @"
    --- a/f
    +++ b/f
    @@ -0,0 +1,2 @@
    +a
    +b
    ");
    insta::assert_snapshot!(text("a\nb\nc\n", "a\nc\n", 0), @"
    --- a/f
    +++ b/f
    @@ -2 +1,0 @@
    -b
    ");
    insta::assert_snapshot!(text("a\n", "b", 3), @r"
    --- a/f
    +++ b/f
    @@ -1 +1 @@
    -a
    +b
    \ No newline at end of file
    ");
}

#[test]
fn missing_newline_in_context_is_marked_once() {
    insta::assert_snapshot!(text("a\nb", "x\nb", 3), @r"
    --- a/f
    +++ b/f
    @@ -1,2 +1,2 @@
    -a
    +x
     b
    \ No newline at end of file
    ");
}

#[test]
fn hunks_slide_to_readable_positions() {
    let old = "fn one() {\n    1\n}\n\nfn three() {\n    3\n}\n";
    let new = "fn one() {\n    1\n}\n\nfn two() {\n    2\n}\n\nfn three() {\n    3\n}\n";
    let expected = ["@@ -4,2 +4,6 @@", " ", "+fn two() {", "+    2", "+}", "+", " fn three() {"];
    assert_eq!(text(old, new, 1).lines().skip(2).collect::<Vec<_>>(), expected);
    // In UTF-16 the zero bytes must not count as text.
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let (old, new) = (utf16(old), utf16(new));
    let diff = Diff::new(&old[..], &new[..]);
    assert_eq!(diff.changes()[0].new.start.line, 4);
}

#[test]
fn wrapped_line_stays_in_place() {
    let lines = |text: String| text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(text("x\n", "if y {\nx\n}\n", 3)), ["@@ -1 +1,3 @@", "+if y {", " x", "+}"]);
    assert_eq!(lines(text("if y {\nx\n}\n", "x\n", 3)), ["@@ -1,3 +1 @@", "-if y {", " x", "-}"]);
}

#[test]
fn best_position_may_be_higher() {
    // At its lowest position the block would start inside its own comment.
    let item = |name: &str| format!("/**\n * {name}\n */\nfn {name}\n\n");
    let (old, new) = (item("a") + &item("c"), item("a") + &item("b") + &item("c"));
    let diff = Diff::new(old.as_bytes(), new.as_bytes());
    assert_eq!(String::from_utf8_lossy(diff.changes()[0].new.of(new.as_bytes())), item("b"));
    let removed = Diff::new(new.as_bytes(), old.as_bytes());
    assert_eq!(String::from_utf8_lossy(removed.changes()[0].old.of(new.as_bytes())), item("b"));
}

#[test]
fn long_block_slides() {
    let body = |name: &str| format!("fn {name}() {{\n{}}}\n\n", format!("    {name}();\n").repeat(300));
    let (old, new) = (body("a") + &body("c"), body("a") + &body("b") + &body("c"));
    let diff = Diff::new(old.as_bytes(), new.as_bytes());
    assert_eq!(diff.changes().len(), 1);
    let inserted = diff.changes()[0].new.of(new.as_bytes());
    assert_eq!(String::from_utf8_lossy(inserted), body("b"));
}

#[test]
fn limit_truncates_between_lines() {
    let new: String = (0..100).map(|n| format!("line {n}\n")).collect();
    let diff = Diff::new(&b""[..], new.as_bytes());
    let Unified::Changes { text, truncated } = diff.unified(&UnifiedOptions { limit: Some(100), ..exact(3) }) else {
        panic!("there are changes")
    };
    assert!(truncated && text.len() <= 100);
    insta::assert_snapshot!(String::from_utf8(text).unwrap(), @"
    --- a/f
    +++ b/f
    @@ -0,0 +1,100 @@
    +line 0
    +line 1
    +line 2
    +line 3
    +line 4
    +line 5
    +line 6
    +line 7
    ");
    let whole = diff.unified(&UnifiedOptions { limit: Some(1_000_000), ..exact(3) });
    assert!(matches!(whole, Unified::Changes { truncated: false, .. }));
}

#[test]
fn label_cannot_forge_a_line() {
    let options = UnifiedOptions { old_label: "x\n+++ evil", ..exact(3) };
    let unified = Diff::new(&b"a\n"[..], &b"b\n"[..]).unified(&options);
    assert!(unified.into_text().starts_with(b"--- x +++ evil\n+++ b/f\n"));
}

#[test]
fn file_names_are_quoted_like_git() {
    assert_eq!(path_label("a/", b"plain.txt"), "a/plain.txt");
    assert_eq!(path_label("a/", b"two words.txt"), "a/two words.txt\t");
    assert_eq!(path_label("b/", "quo\"te\n\u{1}é".as_bytes()), "\"b/quo\\\"te\\n\\001é\"");
    assert_eq!(path_label("b/", b"not \xFF\xFEutf8"), "\"b/not \\377\\376utf8\"");
}

#[test]
fn readable_text_is_decoded() {
    let readable = UnifiedOptions { rendering: Rendering::Readable, ..exact(3) };
    let latin = Diff::new(&b"caf\xE9\n"[..], &b"caf\xE8\n"[..]);
    assert_eq!(
        String::from_utf8(latin.unified(&readable).into_text()).unwrap(),
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-café\n+cafè\n"
    );
    assert!(latin.unified(&exact(3)).into_text().ends_with(b"-caf\xE9\n+caf\xE8\n"));
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let (old, new) = (utf16("\u{FEFF}a\nb\n"), utf16("\u{FEFF}a\nc"));
    let wide = Diff::new(&old[..], &new[..]).unified(&exact(0)).into_text();
    assert_eq!(
        String::from_utf8(wide).unwrap(),
        "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+c\n\\ No newline at end of file\n"
    );
}

#[test]
fn format_differences_are_notes() {
    use sayso_diff::{Encoding, Kind, LineEnding};
    let check = |old: &[u8], new: &[u8], expected: &[Note]| assert_eq!(Diff::new(old, new).notes(), expected);
    check(b"a\n", b"b\n", &[]);
    check(b"a\r\n", b"a\n", &[Note::LineEnding { old: LineEnding::Crlf, new: LineEnding::Lf }]);
    check(b"a\r\nb\r\n", b"a\r\nb\n", &[Note::LineEnding { old: LineEnding::Crlf, new: LineEnding::Mixed }]);
    check(b"a\n", b"a", &[Note::FinalNewlineRemoved]);
    check(b"a", b"a\n", &[Note::FinalNewlineAdded]);
    check(b"a\n", b"\xEF\xBB\xBFa\n", &[Note::BomAdded]);
    check(b"caf\xE9\n", "café\n".as_bytes(), &[Note::Encoding { old: Encoding::Latin1, new: Encoding::Utf8 }]);
    check(
        b"a\n",
        b"\xFF\xFEa\0\n\0",
        &[Note::Encoding { old: Encoding::Utf8, new: Encoding::Utf16Le }, Note::BomAdded],
    );
    check(b"a\n", b"a\0\n", &[Note::Kind { old: Kind::Text, new: Kind::Binary }]);
}
