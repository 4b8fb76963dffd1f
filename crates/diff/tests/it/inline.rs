//! The inline form of a diff: at most ten lines, one line of context.

use std::fmt::Write as _;

use sayso_diff::{Diff, INLINE_LINES, LineKind};

/// Renders a card as text: marker, line, and the last line of a truncated card.
fn card(old: &str, new: &str, most: usize) -> String {
    let inline = Diff::new(old.as_bytes(), new.as_bytes()).inline(most);
    let mut text = String::new();
    for line in &inline.lines {
        let marker = match line.kind {
            LineKind::Add => '+',
            LineKind::Remove => '-',
            LineKind::Context => ' ',
        };
        let number = |number: Option<usize>| number.map_or_else(String::new, |number| number.to_string());
        let end = if line.no_newline { " without newline" } else { "" };
        writeln!(text, "{:>2} {:>2} {marker} {:?}{end}", number(line.old_number), number(line.new_number), line.text)
            .unwrap();
    }
    if inline.truncated {
        writeln!(text, "... {} more lines", inline.more_lines()).unwrap();
    }
    text
}

fn numbered(range: std::ops::Range<usize>) -> String {
    range.map(|n| format!("line {n}\n")).collect()
}

#[test]
fn unchanged_content_has_no_lines() {
    assert_eq!(card("a\n", "a\n", INLINE_LINES), "");
    assert_eq!(card("", "", INLINE_LINES), "");
}

#[test]
fn inline_context_is_one_line() {
    let old = numbered(0..9);
    insta::assert_snapshot!(card(&old, &old.replace("line 4", "LINE 4"), INLINE_LINES), @r#"
     4  4   "line 3"
     5    - "line 4"
        5 + "LINE 4"
     6  6   "line 5"
    "#);
}

#[test]
fn gaps_appear_in_line_numbers_only() {
    let old = numbered(0..20);
    let new = old.replace("line 2\n", "").replace("line 15\n", "line 15\nnew\n");
    insta::assert_snapshot!(card(&old, &new, INLINE_LINES), @r#"
     2  2   "line 1"
     3    - "line 2"
     4  3   "line 3"
    16 15   "line 15"
       16 + "new"
    17 17   "line 16"
    "#);
}

#[test]
fn line_limit_includes_context() {
    let (old, new) = (numbered(0..30), numbered(0..30).replace("line", "LINE"));
    let text = card(&old, &new, INLINE_LINES);
    assert_eq!(text.lines().count(), 11);
    assert!(text.ends_with("... 50 more lines\n"), "{text}");
    insta::assert_snapshot!(card(&old, &new, 2), @r#"
     1    - "line 0"
     2    - "line 1"
    ... 58 more lines
    "#);
    assert_eq!(card(&old, &new, 0), "... 60 more lines\n");
}

#[test]
fn created_and_emptied_files_show_all_lines() {
    insta::assert_snapshot!(card("", "a\nb\n", INLINE_LINES), @r#"
        1 + "a"
        2 + "b"
    "#);
    insta::assert_snapshot!(card("a\nb\n", "", INLINE_LINES), @r#"
     1    - "a"
     2    - "b"
    "#);
}

#[test]
fn carriage_return_and_missing_newline_are_visible() {
    insta::assert_snapshot!(card("a\r\nb\n", "a\nb\n", INLINE_LINES), @r#"
     1    - "a\r"
        1 + "a"
     2  2   "b"
    "#);
    insta::assert_snapshot!(card("a\nb", "a\nb\n", INLINE_LINES), @r#"
     1  1   "a"
     2    - "b" without newline
        2 + "b"
    "#);
}

#[test]
fn large_change_builds_ten_lines() {
    let (old, new) = (numbered(0..10_000), numbered(0..10_000).replace("line", "LINE"));
    let inline = Diff::new(old.as_bytes(), new.as_bytes()).inline(10);
    assert_eq!((inline.lines.len(), inline.total_lines, inline.truncated), (10, 20_000, true));
    assert!(inline.lines.capacity() < 20);
}

#[test]
fn other_encodings_are_decoded() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let (old, new) = (utf16("\u{FEFF}ä\nx\n"), utf16("\u{FEFF}ä\ny\n"));
    let texts = |diff: Diff<'_>| diff.inline(10).lines.into_iter().map(|line| line.text).collect::<Vec<_>>();
    assert_eq!(texts(Diff::new(&old[..], &new[..])), ["\u{FEFF}ä", "x", "y"]);
    assert_eq!(texts(Diff::new(&b"caf\xE9\n"[..], &b"caf\xE8\n"[..])), ["café", "cafè"]);
}
