//! Rows by example: numbers, folds, pairs, escapes, word spans, notes, conflicts.

use std::fmt::Write as _;

use sayso_diff::{
    ConflictRowKind, ConflictRows, DiffRow, DiffRows, Encoding, EscapedOriginal, LineTerminator, PageLimit, RowContent,
    RowKind, RowLayout, RowOptions, SideBySideRow, TextFormat,
};

fn rows<'a>(old: &'a str, new: &'a str, options: RowOptions) -> DiffRows<&'a [u8]> {
    DiffRows::new(Some(old.as_bytes()), Some(new.as_bytes()), options)
}

fn folded(old: &str, new: &str) -> String {
    unified(&rows(old, new, RowOptions::default()))
}

/// Text with its words in brackets.
fn marked(content: &RowContent) -> String {
    let mut text = content.text.clone();
    for word in content.words.iter().rev() {
        text.insert(word.end, ']');
        text.insert(word.start, '[');
    }
    text
}

fn line(row: &DiffRow) -> String {
    let number = |number: Option<usize>| number.map_or_else(String::new, |number| number.to_string());
    let marker = match row.kind {
        RowKind::Context => ' ',
        RowKind::Added => '+',
        RowKind::Removed => '-',
        RowKind::Fold { .. } => '⋯',
        RowKind::Note(_) => '\\',
    };
    let hidden = if let RowKind::Fold { hidden } = row.kind { format!("{hidden} lines") } else { String::new() };
    let end = if row.content.terminator == LineTerminator::CrLf { "␍␊" } else { "" };
    let (text, old, new) = (marked(&row.content), number(row.old_line), number(row.new_line));
    let place = format!("{}.{}", number(row.hunk), number(row.part));
    format!("{place:>4} {old:>3} {new:>3} {marker} {text}{hidden}{end}")
}

fn unified<B: AsRef<[u8]>>(rows: &DiffRows<B>) -> String {
    rows.unified(0..usize::MAX).map(|row| line(&row) + "\n").collect()
}

fn side_by_side(rows: &DiffRows<&[u8]>) -> String {
    let mut text = String::new();
    for row in rows.side_by_side(0..usize::MAX) {
        match row {
            SideBySideRow::Both(row) => writeln!(text, "{}", line(&row)).unwrap(),
            SideBySideRow::Pair { old, new } => {
                let cell = |row: Option<&DiffRow>| row.map_or_else(|| "·".to_owned(), line);
                writeln!(text, "{:<24} | {}", cell(old.row()), cell(new.row())).unwrap();
            }
        }
    }
    text
}

fn numbered(lines: std::ops::Range<usize>) -> String {
    lines.map(|n| format!("line {n}\n")).collect()
}

#[test]
fn unchanged_runs_fold_with_their_length() {
    let old = numbered(1..41);
    let new = old.replace("line 10\n", "line ten\n").replace("line 17\n", "").replace("line 30\n", "line 30\nmore\n");
    insta::assert_snapshot!(folded(&old, &new), @"
      .   1   1 ⋯ 6 lines
     1.   7   7   line 7
     1.   8   8   line 8
     1.   9   9   line 9
    1.1  10     - line [10]
    1.1      10 + line [ten]
     1.  11  11   line 11
     1.  12  12   line 12
     1.  13  13   line 13
     1.  14  14   line 14
     1.  15  15   line 15
     1.  16  16   line 16
    1.2  17     - line 17
     1.  18  17   line 18
     1.  19  18   line 19
     1.  20  19   line 20
      .  21  20 ⋯ 7 lines
     2.  28  27   line 28
     2.  29  28   line 29
     2.  30  29   line 30
    2.1      30 + more
     2.  31  31   line 31
     2.  32  32   line 32
     2.  33  33   line 33
      .  34  34 ⋯ 7 lines
    ");
}

#[test]
fn whole_file_shows_every_line_with_hunk_numbers() {
    let old = numbered(1..14);
    let new = old.replace("line 2\n", "two\n").replace("line 12\n", "");
    let whole = RowOptions { context: 1, whole_file: true };
    insta::assert_snapshot!(unified(&rows(&old, &new, whole)), @"
     1.   1   1   line 1
    1.1   2     - line 2
    1.1       2 + two
     1.   3   3   line 3
      .   4   4   line 4
      .   5   5   line 5
      .   6   6   line 6
      .   7   7   line 7
      .   8   8   line 8
      .   9   9   line 9
      .  10  10   line 10
     2.  11  11   line 11
    2.1  12     - line 12
     2.  13  12   line 13
    ");
}

#[test]
fn side_by_side_pairs_lines_of_a_change() {
    let old = "a\nlet x = 1;\nlet y = 2;\nb\nc";
    let new = "a\nlet z = 1;\nb\nd\ne\n";
    insta::assert_snapshot!(side_by_side(&rows(old, new, RowOptions::default())), @r"
      1.   1   1   a
     1.1   2     - let [x] = 1; |  1.1       2 + let [z] = 1;
     1.1   3     - let y = 2; | ·
      1.   4   3   b
     1.2   5     - c         |  1.2       4 + d
    ·                        |  1.2       5 + e
     1.2   5     \ No newline at end of file | ·
    ");
}

#[test]
fn missing_final_newline_adds_note() {
    insta::assert_snapshot!(folded("a\nb", "a\nc"), @r"
     1.   1   1   a
    1.1   2     - b
    1.1   2     \ No newline at end of file
    1.1       2 + c
    1.1       2 \ No newline at end of file
    ");
    insta::assert_snapshot!(folded("a\nb", "x\nb"), @r"
    1.1   1     - a
    1.1       1 + x
     1.   2   2   b
     1.   2   2 \ No newline at end of file
    ");
    insta::assert_snapshot!(folded("a\nb", "a\nb\n"), @r"
     1.   1   1   a
    1.1   2     - b
    1.1   2     \ No newline at end of file
    1.1       2 + b
    ");
}

#[test]
fn note_of_folded_last_line_is_hidden() {
    let old = format!("{}last", numbered(0..20));
    let text = folded(&old, &old.replace("line 1\n", ""));
    assert!(!text.contains("No newline"), "{text}");
}

#[test]
fn line_endings_show_as_terminators() {
    insta::assert_snapshot!(folded("a\r\nb\n", "a\nb\r\n"), @"
    1.1   1     - a␍␊
    1.1   2     - b
    1.1       1 + a
    1.1       2 + b␍␊
    ");
}

#[test]
fn absent_and_empty_files_differ_in_facts() {
    let created = DiffRows::new(None, Some(b"".to_vec()), RowOptions::default());
    assert_eq!((created.facts().old, created.facts().new.map(|side| side.lines)), (None, Some(0)));
    assert_eq!(unified(&created), "");
    let deleted = DiffRows::new(Some(b"a\n".to_vec()), None, RowOptions::default());
    assert_eq!(deleted.facts().new, None);
    assert_eq!(unified(&deleted), " 1.1   1     - a\n");
}

#[test]
fn binary_rows_are_marked_in_facts_and_escaped() {
    let (old, new) = (&b"\x89PNG\0\0\x01\n"[..], &b"\x89PNG\0\0\x02\n"[..]);
    let rows = DiffRows::new(Some(old), Some(new), RowOptions::default());
    assert!(rows.facts().is_binary);
    let row = rows.unified(0..1).next().unwrap();
    assert_eq!(row.content.text, "‰PNG␀␀␁");
    assert_eq!(row.content.escapes.len(), 1, "neighbours share an escape");
    assert_eq!(row.content.source(rows.facts().old.unwrap().format.encoding), old);
}

fn check_content(encoding: Encoding, line: &[u8], text: &str, originals: &[EscapedOriginal]) {
    // Other lines settle the encoding of the file.
    let before: &[u8] = match encoding {
        Encoding::Utf8 => "é\n".as_bytes(),
        Encoding::Latin1 => b"\xE9\n",
        Encoding::Utf16Le => b"\xFF\xFEa\0\n\0",
        Encoding::Utf16Be => b"\xFE\xFF\0a\0\n",
    };
    let new = [before, line].concat();
    assert_eq!(TextFormat::of(&new).encoding, encoding);
    let rows = DiffRows::new(Some(before), Some(&new[..]), RowOptions::default());
    let row = rows.unified(0..9).find(|row| row.kind == RowKind::Added).expect("a line is added");
    assert_eq!(row.content.text, text);
    assert_eq!(row.content.source(encoding), line);
    let escaped: Vec<_> = row.content.escapes.iter().map(|escape| escape.original.clone()).collect();
    assert_eq!(escaped, originals);
}

#[test]
fn unprintable_characters_are_escaped_with_their_original() {
    let text = |text: &str| EscapedOriginal::Text(text.to_owned());
    check_content(Encoding::Utf8, "plain\tgrüße 🦀\n".as_bytes(), "plain\tgrüße 🦀", &[]);
    check_content(
        Encoding::Utf8,
        "if\u{202E}\u{2066} x\u{200B}\x1b[2J\u{9b}\r\r\n".as_bytes(),
        "if⟨U+202E⟩⟨U+2066⟩ x⟨U+200B⟩␛[2J⟨U+009B⟩␍",
        &[text("\u{202E}\u{2066}"), text("\u{200B}\x1b"), text("\u{9b}\r")],
    );
    check_content(Encoding::Latin1, b"caf\xE9 \x81\n", "café ⟨U+0081⟩", &[text("\u{81}")]);
}

#[test]
fn bytes_without_character_are_escaped_in_hex() {
    let bytes = |bytes: &[u8]| EscapedOriginal::Bytes(bytes.to_vec());
    check_content(Encoding::Utf16Le, b"a\0\x00\xD8b\0\n\0", "a⟨0x00D8⟩b", &[bytes(b"\x00\xD8")]);
    check_content(Encoding::Utf16Be, b"\0a\xDC", "a⟨0xDC⟩", &[bytes(b"\xDC")]);
}

#[test]
fn word_spans_fit_decoded_and_escaped_text() {
    insta::assert_snapshot!(folded("let größe = 1\n", "let grüße = 1\n"), @"
    1.1   1     - let [größe] = 1
    1.1       1 + let [grüße] = 1
    ");
    insta::assert_snapshot!(folded("see\u{200B} one two\n", "see\u{200B} one 2\n"), @"
    1.1   1     - see⟨U+200B⟩ one [two]
    1.1       1 + see⟨U+200B⟩ one [2]
    ");
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let (old, new) = (utf16("\u{FEFF}a 🦀 x = 1\n"), utf16("\u{FEFF}a 🦀 y = 1\n"));
    insta::assert_snapshot!(unified(&DiffRows::new(Some(old), Some(new), RowOptions::default())), @"
    1.1   1     - ⟨U+FEFF⟩a 🦀 [x] = 1
    1.1       1 + ⟨U+FEFF⟩a 🦀 [y] = 1
    ");
}

#[test]
fn long_lines_have_no_word_spans() {
    let (old, new) = (format!("{}x\n", "word ".repeat(1000)), format!("{}y\n", "word ".repeat(1000)));
    let rows = rows(&old, &new, RowOptions::default());
    assert!(rows.unified(0..2).all(|row| row.content.words.is_empty()));
}

#[test]
fn hunk_names_its_lines_rows_and_counts() {
    let old = numbered(1..41);
    let new = old.replace("line 10\n", "line ten\n").replace("line 13\n", "").replace("line 30\n", "line 30\nmore\n");
    let rows = rows(&old, &new, RowOptions::default());
    let hunk = rows.hunk(1, RowLayout::SideBySide).unwrap();
    assert_eq!((hunk.parts, hunk.counts.added, hunk.counts.removed), (2, 1, 2));
    assert_eq!((hunk.old_lines, hunk.new_lines, hunk.rows), (6..16, 6..15, 1..11));
    assert_eq!(rows.hunk(2, RowLayout::SideBySide).unwrap().rows, 12..19);
    assert_eq!(rows.hunk(3, RowLayout::Unified), None);
}

#[test]
fn unfolded_lines_end_at_next_change() {
    let old = numbered(1..21);
    let new = old.replace("line 20\n", "");
    let rows = rows(&old, &new, RowOptions::default());
    let shown = |from, lines| rows.unfolded(from, lines).iter().map(|row| row.content.text.clone()).collect::<Vec<_>>();
    assert_eq!(shown(15, 3), ["line 15", "line 16", "line 17"]);
    assert_eq!(shown(18, usize::MAX), ["line 18", "line 19"]);
    assert!(shown(20, 3).is_empty() && shown(0, 3).is_empty() && shown(21, 3).is_empty());
}

#[test]
fn page_beyond_text_limit_holds_one_row() {
    let rows = rows("", "aaaa\nbbbb\ncccc\n", RowOptions::default());
    let page = |text_bytes| rows.unified_page(0, PageLimit { rows: 9, text_bytes });
    assert_eq!((page(0).rows.len(), page(0).next_row), (1, Some(1)));
    assert_eq!((page(4).rows.len(), page(100).next_row), (2, None));
    assert_eq!(rows.unified_page(7, PageLimit { rows: 9, text_bytes: 9 }).next_row, None);
}

#[test]
fn pages_start_anywhere_in_long_runs() {
    let (old, new) = (numbered(0..3000), numbered(0..3000).replace("line", "LINE"));
    let same = format!("{old}{}", numbered(5000..8000));
    for (old, new) in [(&old, &new), (&same, &new), (&same, &old)] {
        let rows = rows(old, new, RowOptions { context: 3, whole_file: true });
        let all: Vec<_> = rows.unified(0..usize::MAX).collect();
        for from in (0..all.len()).step_by(97) {
            assert!(rows.unified(from..from + 3).eq(all[from..].iter().take(3).cloned()), "from {from}");
        }
    }
}

#[test]
fn pages_of_long_utf16_runs_start_anywhere() {
    let utf16 = |text: &str| format!("\u{FEFF}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let (old, new) = (utf16(&numbered(0..2000)), utf16(&numbered(1000..3000)));
    let rows = DiffRows::new(Some(old), Some(new), RowOptions { context: 3, whole_file: true });
    let all: Vec<_> = rows.unified(0..usize::MAX).collect();
    assert_eq!(all.len(), 2000 + 1001, "the line after the byte order mark differs");
    for from in (0..all.len()).step_by(97) {
        assert!(rows.unified(from..from + 3).eq(all[from..].iter().take(3).cloned()), "from {from}");
    }
}

#[test]
fn conflict_pages_start_anywhere_in_long_runs() {
    let base = numbered(0..2000);
    let theirs = base.replace("line 1", "LINE 1");
    let yours = format!("{}{}", numbered(3000..4000), base.replace("line 19", "row 19"));
    for whole_file in [false, true] {
        let options = RowOptions { context: 3, whole_file };
        let rows = ConflictRows::new(Some(&base), Some(&theirs), Some(&yours), options);
        let all: Vec<_> = rows.rows(0..usize::MAX).collect();
        for from in (0..all.len()).step_by(97) {
            assert!(rows.rows(from..from + 3).eq(all[from..].iter().take(3).cloned()), "from {from}");
        }
    }
}

fn conflicts(base: &str, theirs: &str, yours: &str, options: RowOptions) -> String {
    let rows = ConflictRows::new(Some(base), Some(theirs), Some(yours), options);
    let mut text = String::new();
    for row in rows.rows(0..usize::MAX) {
        let cell = |line: Option<usize>, content: &Option<RowContent>| match (line, content) {
            (Some(line), Some(content)) => format!("{line:>2} {}", content.text),
            (Some(line), None) => format!("{line:>2} ⋯"),
            _ => "   ·".to_owned(),
        };
        let kind = match row.kind {
            ConflictRowKind::Fold { hidden } => format!("fold {hidden}"),
            kind => format!("{kind:?}"),
        };
        let cells =
            [cell(row.base_line, &row.base), cell(row.theirs_line, &row.theirs), cell(row.yours_line, &row.yours)];
        let line = format!("{kind:<9}{:>2} {:<12}{:<12}{}", row.conflict.unwrap_or(0), cells[0], cells[1], cells[2]);
        writeln!(text, "{}", line.trim_end()).unwrap();
    }
    text
}

#[test]
fn conflict_aligns_three_versions() {
    let base = numbered(1..25);
    let theirs = base.replace("line 2\n", "theirs\n").replace("line 12\n", "t12\nt13\n").replace("line 22\n", "");
    let yours = base.replace("line 6\n", "yours\nmore\n").replace("line 12\n", "y12\n").replace("line 22\n", "");
    let options = RowOptions { context: 1, whole_file: false };
    insta::assert_snapshot!(conflicts(&base, &theirs, &yours, options), @"
    Context   0  1 line 1    1 line 1    1 line 1
    Theirs    0  2 line 2    2 theirs    2 line 2
    Context   0  3 line 3    3 line 3    3 line 3
    fold 1    0  4 ⋯         4 ⋯         4 ⋯
    Context   0  5 line 5    5 line 5    5 line 5
    Yours     0  6 line 6    6 line 6    6 yours
    Yours     0    ·           ·         7 more
    Context   0  7 line 7    7 line 7    8 line 7
    fold 3    0  8 ⋯         8 ⋯         9 ⋯
    Context   0 11 line 11  11 line 11  12 line 11
    Conflict  1 12 line 12  12 t12      13 y12
    Conflict  1    ·        13 t13         ·
    Context   0 13 line 13  14 line 13  14 line 13
    fold 7    0 14 ⋯        15 ⋯        15 ⋯
    Context   0 21 line 21  22 line 21  22 line 21
    Same      0 22 line 22     ·           ·
    Context   0 23 line 23  23 line 23  23 line 23
    fold 1    0 24 ⋯        24 ⋯        24 ⋯
    ");
}

#[test]
fn conflict_of_deleted_file_has_blank_column() {
    let rows = ConflictRows::new(Some("a\nb\n"), None, Some("a\nc\n"), RowOptions::default());
    assert_eq!((rows.conflicts(), rows.row_count()), (1, 2));
    assert!(rows.rows(0..9).all(|row| row.theirs.is_none() && row.kind == ConflictRowKind::Conflict));
}
