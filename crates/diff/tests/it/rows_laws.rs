//! Properties of rows over random contents: no byte is lost, and projections, pages and hunks agree.

use std::ops::Range;

use proptest::prelude::*;
use sayso_diff::{
    ConflictRow, ConflictRowKind, ConflictRows, Diff, DiffRow, DiffRows, Encoding, LineKind, LineTerminator, PageLimit,
    RowContent, RowKind, RowLayout, RowOptions, Selection, SideBySideRow, TextFormat, merge,
};
use sayso_testkit::hostile_inputs;

const ALL_OPTIONS: [RowOptions; 5] = [
    RowOptions { context: 3, whole_file: false },
    RowOptions { context: 0, whole_file: false },
    RowOptions { context: 1000, whole_file: false },
    RowOptions { context: 1, whole_file: true },
    RowOptions { context: 0, whole_file: true },
];

type BorrowedRows<'a> = DiffRows<&'a [u8]>;

fn all(rows: &BorrowedRows<'_>) -> Vec<DiffRow> {
    rows.unified(0..usize::MAX).collect()
}

fn row_laws(old: &[u8], new: &[u8]) {
    let diff = Diff::new(old, new);
    for options in ALL_OPTIONS {
        let rows = DiffRows::of_diff(&diff, options);
        let unified = all(&rows);
        facts_agree(&diff, &rows, options);
        rows_reproduce_both_sides(&rows, &unified, old, new);
        rows_agree_with_hunks(&diff, &rows, &unified, options);
        layouts_agree(&rows, &unified);
        for row in &unified {
            content_is_printable(&row.content);
        }
        let owned = DiffRows::new(Some(old.to_vec()), Some(new.to_vec()), options);
        assert!(owned.unified(0..usize::MAX).eq(unified), "owned contents give the same rows");
    }
}

fn encodings(old: &[u8], new: &[u8]) -> (Encoding, Encoding) {
    (TextFormat::of(old).encoding, TextFormat::of(new).encoding)
}

/// Rows with the lines of every fold in its place.
fn opened(rows: &BorrowedRows<'_>, unified: &[DiffRow]) -> Vec<DiffRow> {
    let open = |row: &DiffRow| match row.kind {
        RowKind::Fold { hidden } => {
            let lines = rows.unfolded(row.old_line.unwrap(), hidden);
            assert_eq!(lines.len(), hidden);
            assert_eq!((lines[0].old_line, lines[0].new_line), (row.old_line, row.new_line));
            lines
        }
        _ => vec![row.clone()],
    };
    unified.iter().flat_map(open).collect()
}

fn rows_reproduce_both_sides(rows: &BorrowedRows<'_>, unified: &[DiffRow], old: &[u8], new: &[u8]) {
    let encodings = encodings(old, new);
    let opened = opened(rows, unified);
    let (mut old_bytes, mut new_bytes) = (Vec::new(), Vec::new());
    let (mut old_lines, mut new_lines) = (0, 0);
    for row in &opened {
        let next = |number: Option<usize>, lines: &mut usize| {
            *lines += 1;
            assert_eq!(number, Some(*lines), "numbers have no gap");
        };
        match row.kind {
            RowKind::Context => {
                next(row.old_line, &mut old_lines);
                next(row.new_line, &mut new_lines);
                old_bytes.extend(row.content.source(encodings.0));
                new_bytes.extend(row.content.source(encodings.0));
            }
            RowKind::Removed => {
                next(row.old_line, &mut old_lines);
                old_bytes.extend(row.content.source(encodings.0));
            }
            RowKind::Added => {
                next(row.new_line, &mut new_lines);
                new_bytes.extend(row.content.source(encodings.1));
            }
            RowKind::Fold { .. } | RowKind::Note(_) => {}
        }
    }
    assert!(old_bytes == old, "context and removed rows are the old bytes");
    assert!(new_bytes == new, "context and added rows are the new bytes");
    let facts = rows.facts();
    assert_eq!(facts.old.map(|side| (side.lines, side.bytes)), Some((old_lines, old.len())));
    assert_eq!(facts.new.map(|side| (side.lines, side.bytes)), Some((new_lines, new.len())));
    notes_follow_open_lines(unified, encodings);
}

fn notes_follow_open_lines(unified: &[DiffRow], encodings: (Encoding, Encoding)) {
    let is_wide = |encoding| matches!(encoding, Encoding::Utf16Le | Encoding::Utf16Be);
    if is_wide(encodings.0) != is_wide(encodings.1) {
        // A torn byte 0A at the end of UTF-16 equals a whole line of the other side.
        return;
    }
    let is_line = |row: &DiffRow| matches!(row.kind, RowKind::Context | RowKind::Added | RowKind::Removed);
    for (at, row) in unified.iter().enumerate() {
        let is_open = is_line(row) && row.content.terminator == LineTerminator::None;
        let note = unified.get(at + 1).filter(|next| matches!(next.kind, RowKind::Note(_)));
        assert_eq!(is_open, note.is_some(), "a note follows exactly the lines without a break");
        if let Some(note) = note {
            assert_eq!((note.old_line, note.new_line), (row.old_line, row.new_line));
            assert_eq!((note.hunk, note.part), (row.hunk, row.part));
        }
    }
}

fn facts_agree(diff: &Diff<'_>, rows: &BorrowedRows<'_>, options: RowOptions) {
    let facts = rows.facts();
    assert_eq!(facts.counts, diff.counts());
    assert_eq!(facts.hunks, diff.hunks(options.context).count());
    assert_eq!(facts.notes, diff.notes());
    assert_eq!(facts.is_binary, diff.is_binary());
    assert_eq!((facts.old.map(|side| side.format), facts.new.map(|side| side.format)), diff.formats());
}

fn rows_agree_with_hunks(diff: &Diff<'_>, rows: &BorrowedRows<'_>, unified: &[DiffRow], options: RowOptions) {
    let (old, new) = (diff.old_side(), diff.new_side());
    let bytes = |side| if let sayso_diff::Side::Present(bytes) = side { bytes } else { &[][..] };
    let encodings = encodings(bytes(old), bytes(new));
    let hunks: Vec<_> = diff.hunks(options.context).collect();
    for hunk in &hunks {
        let here = rows.hunk(hunk.number, RowLayout::Unified).expect("the hunk has rows");
        assert_eq!(here.parts, hunk.changes().len());
        assert_eq!(here.old_lines, hunk.old.start.line..hunk.old.end.line);
        assert_eq!(here.new_lines, hunk.new.start.line..hunk.new.end.line);
        for (at, row) in unified.iter().enumerate() {
            assert_eq!(here.rows.contains(&at), row.hunk == Some(hunk.number), "row {at} of {here:?}: {row:?}");
        }
        let lines: Vec<_> =
            unified[here.rows.clone()].iter().filter(|row| !matches!(row.kind, RowKind::Note(_))).collect();
        let count = |kind| lines.iter().filter(|row| row.kind == kind).count();
        assert_eq!((here.counts.added, here.counts.removed), (count(RowKind::Added), count(RowKind::Removed)));
        let marked = hunk.marked_lines();
        assert_eq!(lines.len(), marked.len());
        for (row, marked) in lines.iter().zip(&marked) {
            let (kind, encoding) = match marked.line.kind {
                LineKind::Add => (RowKind::Added, encodings.1),
                LineKind::Remove => (RowKind::Removed, encodings.0),
                LineKind::Context => (RowKind::Context, encodings.0),
            };
            assert_eq!((row.kind, row.old_line, row.new_line), (kind, marked.line.old_number, marked.line.new_number));
            assert!(row.content.source(encoding) == marked.line.bytes);
            words_agree(&row.content, &marked.spans, encoding);
        }
        let side = rows.hunk(hunk.number, RowLayout::SideBySide).expect("the hunk has rows");
        let shown: Vec<_> = rows.side_by_side(side.rows).collect();
        assert!(shown.iter().flat_map(SideBySideRow::rows).all(|row| row.hunk == Some(hunk.number)));
        assert_eq!(shown.iter().flat_map(SideBySideRow::rows).count(), here.rows.len());
    }
    assert_eq!(rows.hunk(hunks.len() + 1, RowLayout::Unified), None);
    assert_eq!(rows.hunk(0, RowLayout::Unified), None);
}

fn words_agree(content: &RowContent, spans: &[Range<usize>], encoding: Encoding) {
    if content.text.len() > 4096 {
        assert!(content.words.is_empty(), "long lines have no word spans");
    } else if encoding == Encoding::Utf8 && content.escapes.is_empty() {
        let clip = |span: &Range<usize>| span.start..span.end.min(content.text.len());
        let expected: Vec<_> = spans.iter().map(clip).filter(|span| span.start < span.end).collect();
        assert_eq!(content.words, expected);
    }
}

fn layouts_agree(rows: &BorrowedRows<'_>, unified: &[DiffRow]) {
    let side_by_side: Vec<_> = rows.side_by_side(0..usize::MAX).collect();
    assert_eq!(unified.len(), rows.row_count(RowLayout::Unified));
    assert_eq!(side_by_side.len(), rows.row_count(RowLayout::SideBySide));
    let mut flat = Vec::new();
    let mut added = Vec::new();
    for row in side_by_side {
        match row {
            SideBySideRow::Both(row) => {
                flat.append(&mut added);
                flat.push(row);
            }
            SideBySideRow::Pair { old, new } => {
                assert!(old.row().is_some() || new.row().is_some(), "a pair is not blank");
                flat.extend(old.row().cloned());
                added.extend(new.row().cloned());
            }
        }
    }
    flat.append(&mut added);
    assert!(flat == unified, "both layouts hold the same rows");
}

fn content_is_printable(content: &RowContent) {
    let text = &content.text;
    for character in text.chars() {
        assert!(!character.is_control() || character == '\t', "{text:?}");
        assert!(!matches!(character, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{FEFF}'), "{text:?}");
    }
    let ordered = |spans: &mut dyn Iterator<Item = &Range<usize>>| {
        let mut end = 0;
        for span in spans {
            assert!(span.start >= end && span.start < span.end, "{span:?} after {end}");
            assert!(text.get(span.clone()).is_some(), "{span:?} lies between characters");
            end = span.end;
        }
    };
    ordered(&mut content.words.iter());
    ordered(&mut content.escapes.iter().map(|escape| &escape.span));
}

fn page_laws(old: &[u8], new: &[u8], limit: PageLimit, start: prop::sample::Index) {
    for options in ALL_OPTIONS {
        let rows = DiffRows::new(Some(old), Some(new), options);
        let unified = all(&rows);
        let (mut pages, mut from) = (Vec::new(), Some(0));
        while let Some(next) = from {
            let page = rows.unified_page(next, limit);
            assert!(page.rows.len() <= limit.rows);
            from = page.next_row;
            assert!(from.is_none_or(|from| from == next + page.rows.len() && from > next), "pages move on");
            pages.extend(page.rows);
        }
        assert!(pages == unified, "unified pages are the whole");
        let whole: Vec<_> = rows.side_by_side(0..usize::MAX).collect();
        let (mut pages, mut from) = (Vec::new(), Some(0));
        while let Some(next) = from {
            let page = rows.side_by_side_page(next, limit);
            from = page.next_row;
            pages.extend(page.rows);
        }
        assert!(pages == whole, "side-by-side pages are the whole");
        let start = start.index(unified.len() + 1);
        assert!(rows.unified(start..usize::MAX).eq(unified[start..].iter().cloned()), "a window is a slice");
    }
}

/// Takes the parts that `choice` selects: rows and the diff give the same bytes.
fn choice_laws(old: &[u8], new: &[u8], choice: u64) {
    let diff = Diff::new(old, new);
    let encodings = encodings(old, new);
    let is_chosen = |number: usize| choice & (1 << (number % 64)) != 0;
    let rows = DiffRows::of_diff(&diff, RowOptions { whole_file: true, ..RowOptions::default() });
    let (mut by_hunk, mut by_part) = (Vec::new(), Vec::new());
    let (mut changes, mut last) = (0, None);
    for row in all(&rows) {
        let part = row.hunk.zip(row.part);
        if part.is_some() && part != last {
            last = part;
            changes += 1;
        }
        let encoding = if row.kind == RowKind::Added { encodings.1 } else { encodings.0 };
        let source = row.content.source(encoding);
        let is_taken = |chosen: bool| match row.kind {
            RowKind::Context => true,
            RowKind::Added => chosen,
            RowKind::Removed => !chosen,
            RowKind::Fold { .. } | RowKind::Note(_) => false,
        };
        if is_taken(is_chosen(row.hunk.unwrap_or(0))) {
            by_hunk.extend_from_slice(&source);
        }
        if is_taken(is_chosen(changes)) {
            by_part.extend_from_slice(&source);
        }
    }
    let selected = |context| {
        let count = diff.hunks(context).count();
        diff.accept(context, &Selection::Hunks((1..=count).filter(|number| is_chosen(*number)).collect()))
    };
    assert!(selected(3) == Ok(Some(by_hunk)), "rows of chosen hunks are the accepted bytes");
    assert!(selected(0) == Ok(Some(by_part)), "rows of chosen parts are the accepted bytes");
}

fn conflict_laws(base: &[u8], theirs: &[u8], yours: &[u8]) {
    let merged = merge(base, yours, theirs);
    for options in ALL_OPTIONS {
        let rows = ConflictRows::new(Some(base), Some(theirs), Some(yours), options);
        let all: Vec<ConflictRow> = rows.rows(0..usize::MAX).collect();
        assert_eq!(all.len(), rows.row_count());
        assert_eq!(rows.conflicts(), merged.conflicts().count());
        for (number, conflict) in (1..).zip(merged.conflicts()) {
            let first = rows.conflict_row(number).expect("a conflict has rows");
            let of_conflict = |row: &&ConflictRow| row.conflict == Some(number);
            assert!(all[..first].iter().all(|row| !of_conflict(&row)));
            let lines: Vec<_> = all.iter().filter(of_conflict).cloned().collect();
            assert_eq!(all[first], lines[0]);
            assert!(column(&lines, base, |row| &row.base) == conflict.base);
            assert!(column(&lines, theirs, |row| &row.theirs) == conflict.theirs);
            assert!(column(&lines, yours, |row| &row.yours) == conflict.ours);
        }
        for size in [1, 7] {
            let (mut pages, mut from) = (Vec::new(), Some(0));
            while let Some(next) = from {
                let page = rows.page(next, PageLimit { rows: size, text_bytes: usize::MAX });
                from = page.next_row;
                pages.extend(page.rows);
            }
            assert!(pages == all, "pages are the whole");
        }
        if options.whole_file {
            assert!(column(&all, base, |row| &row.base) == base);
            assert!(column(&all, theirs, |row| &row.theirs) == theirs);
            assert!(column(&all, yours, |row| &row.yours) == yours);
            let taken = |row: &ConflictRow| match row.kind {
                ConflictRowKind::Theirs => {
                    row.theirs.clone().map(|content| content.source(TextFormat::of(theirs).encoding))
                }
                _ => row.yours.clone().map(|content| content.source(TextFormat::of(yours).encoding)),
            };
            let result: Vec<u8> = all.iter().filter_map(taken).flatten().collect();
            assert!(result == merged.resolved_with(|conflict| conflict.ours));
        }
    }
}

fn column(rows: &[ConflictRow], file: &[u8], content: fn(&ConflictRow) -> &Option<RowContent>) -> Vec<u8> {
    let encoding = TextFormat::of(file).encoding;
    rows.iter().filter_map(|row| content(row).as_ref()).flat_map(|content| content.source(encoding)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_of_random_pairs_reproduce_bytes((old, new) in hostile_inputs::pair()) {
        row_laws(&old, &new);
    }

    #[test]
    fn rows_of_utf16_pairs_reproduce_bytes((old, new) in hostile_inputs::utf16_pair()) {
        row_laws(&old, &new);
    }

    #[test]
    fn rows_of_mixed_encodings_reproduce_bytes(old in hostile_inputs::formatted_file(), new in hostile_inputs::formatted_file()) {
        row_laws(&old, &new);
        row_laws(&old[..old.len().min(21)], &new);
    }

    #[test]
    fn rows_of_chosen_hunks_equal_accepted_bytes((old, new) in hostile_inputs::pair(), choice in any::<u64>()) {
        choice_laws(&old, &new, choice);
    }

    #[test]
    fn rows_of_chosen_utf16_hunks_equal_accepted_bytes((old, new) in hostile_inputs::utf16_pair(), choice in any::<u64>()) {
        choice_laws(&old, &new, choice);
    }

    #[test]
    fn pages_of_any_size_equal_whole(
        (old, new) in hostile_inputs::pair(),
        rows in 1..9usize,
        text_bytes in 0..200usize,
        start in any::<prop::sample::Index>(),
    ) {
        page_laws(&old, &new, PageLimit { rows, text_bytes }, start);
    }

    #[test]
    fn conflict_columns_reproduce_all_versions((base, theirs, yours) in hostile_inputs::merge_triple()) {
        conflict_laws(&base, &theirs, &yours);
    }

    #[test]
    fn conflict_columns_of_any_encoding_reproduce_bytes(
        base in hostile_inputs::formatted_file(),
        theirs in hostile_inputs::formatted_file(),
        yours in hostile_inputs::formatted_file(),
    ) {
        conflict_laws(&base, &theirs, &yours);
    }

    #[test]
    fn inline_card_equals_rows_of_context_one((old, new) in hostile_inputs::pair()) {
        let diff = Diff::new(&old[..], &new[..]);
        let rows = DiffRows::of_diff(&diff, RowOptions { context: 1, whole_file: false });
        let is_line = |row: &DiffRow| !matches!(row.kind, RowKind::Fold { .. } | RowKind::Note(_));
        let card = diff.inline(10);
        let lines: Vec<_> = rows.unified(0..usize::MAX).filter(is_line).collect();
        prop_assert_eq!(lines.len(), card.total_lines);
        prop_assert_eq!(lines.len().min(10), card.lines.len());
        for (row, line) in lines.iter().zip(&card.lines) {
            let kind = match line.kind {
                LineKind::Add => RowKind::Added,
                LineKind::Remove => RowKind::Removed,
                LineKind::Context => RowKind::Context,
            };
            prop_assert_eq!((row.kind, row.old_line, row.new_line), (kind, line.old_number, line.new_number));
            prop_assert_eq!(row.content.terminator == LineTerminator::None, line.no_newline);
        }
    }
}
