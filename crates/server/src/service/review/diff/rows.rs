//! Rows of a comparison as messages, with syntax.

use sayso_api::proto;
use sayso_diff::{ConflictRows, DiffRow, DiffRows, PageLimit, RowContent, RowKind, RowLayout, SideBySideRow};
use sayso_present::syntax::{SyntaxCache, SyntaxReader, row_classes};
use sayso_review::Content;

/// Text of a page in bytes.
const MAX_PAGE_TEXT_BYTES: usize = 1 << 20;

/// A part of the row list.
#[derive(Clone, Copy)]
pub(super) struct PageRange {
    pub(super) from: usize,
    pub(super) rows: usize,
}

impl PageRange {
    fn limit(self) -> PageLimit {
        PageLimit { rows: self.rows, text_bytes: MAX_PAGE_TEXT_BYTES }
    }
}

/// The syntax of the sides of a file.
pub(super) struct DiffSides<'t> {
    old: Option<SyntaxReader<'t>>,
    new: Option<SyntaxReader<'t>>,
}

impl<'t> DiffSides<'t> {
    pub(super) fn new(cache: &'t SyntaxCache, rows: &'t DiffRows<Content>, old_path: &str, path: &str) -> Self {
        let (old, new) = rows.contents();
        Self { old: reader(cache, old, old_path), new: reader(cache, new, path) }
    }

    fn row(&mut self, row: &DiffRow) -> proto::DiffRow {
        let mut message = proto::DiffRow::from(row);
        // A context row has the text of the old side.
        let (side, line) = match row.kind {
            RowKind::Context | RowKind::Removed => (&mut self.old, row.old_line),
            RowKind::Added => (&mut self.new, row.new_line),
            RowKind::Fold { .. } | RowKind::Note(_) => return message,
        };
        if let Some(content) = message.content.as_option_mut() {
            content.syntax = spans(side.as_mut(), line, &row.content);
        }
        message
    }

    fn pair(&mut self, row: &SideBySideRow) -> proto::SideBySideRow {
        match row {
            SideBySideRow::Both(row) => proto::SideBySideRow { both: self.row(row).into(), ..Default::default() },
            SideBySideRow::Pair { old, new } => {
                let (old, new) = (old.row().map(|row| self.row(row)), new.row().map(|row| self.row(row)));
                proto::SideBySideRow { old: old.into(), new: new.into(), ..Default::default() }
            }
        }
    }
}

fn reader<'t>(cache: &'t SyntaxCache, content: Option<&'t Content>, path: &str) -> Option<SyntaxReader<'t>> {
    content.and_then(|content| cache.reader(content.hash(), content.bytes(), path))
}

/// The tokens of a line by its 1-based number.
fn spans(reader: Option<&mut SyntaxReader<'_>>, line: Option<usize>, content: &RowContent) -> Vec<proto::SyntaxSpan> {
    let (Some(reader), Some(line)) = (reader, line) else { return Vec::new() };
    let offset = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    let span = |(range, class): (std::ops::Range<usize>, _)| proto::SyntaxSpan {
        start: offset(range.start),
        end: offset(range.end),
        class: proto::SyntaxClass::from(class).into(),
        ..Default::default()
    };
    row_classes(&reader.line(line - 1), content).into_iter().map(span).collect()
}

/// Adds a page of the unified or side-by-side rows, and the hunks that it shows.
pub(super) fn add_page(
    response: &mut proto::GetDiffResponse,
    rows: &DiffRows<Content>,
    layout: RowLayout,
    range: PageRange,
    mut sides: DiffSides<'_>,
) {
    let mut shown: Vec<usize> = Vec::new();
    let mut note = |row: &DiffRow| {
        if let Some(hunk) = row.hunk
            && shown.last() != Some(&hunk)
        {
            shown.push(hunk);
        }
    };
    let next = match layout {
        RowLayout::Unified => {
            let page = rows.unified_page(range.from, range.limit());
            page.rows.iter().for_each(&mut note);
            response.rows = page.rows.iter().map(|row| sides.row(row)).collect();
            page.next_row
        }
        RowLayout::SideBySide => {
            let page = rows.side_by_side_page(range.from, range.limit());
            page.rows.iter().flat_map(SideBySideRow::rows).for_each(&mut note);
            response.side_by_side_rows = page.rows.iter().map(|row| sides.pair(row)).collect();
            page.next_row
        }
    };
    response.has_more = next.is_some();
    shown.sort_unstable();
    shown.dedup();
    response.hunks = shown.into_iter().filter_map(|hunk| rows.hunk(hunk, layout)).map(|hunk| (&hunk).into()).collect();
}

/// Adds a page of the rows of a conflict.
pub(super) fn add_conflict_page(
    response: &mut proto::GetDiffResponse,
    rows: &ConflictRows<Content>,
    range: PageRange,
    cache: &SyntaxCache,
    path: &str,
) {
    let page = rows.page(range.from, range.limit());
    let mut readers = rows.contents().map(|content| reader(cache, content, path));
    response.has_more = page.next_row.is_some();
    for row in &page.rows {
        let mut message = proto::ConflictRow::from(row);
        let columns = [
            (&mut message.base, &row.base, row.base_line),
            (&mut message.theirs, &row.theirs, row.theirs_line),
            (&mut message.yours, &row.yours, row.yours_line),
        ];
        for (reader, (column, content, line)) in readers.iter_mut().zip(columns) {
            if let (Some(column), Some(content)) = (column.as_option_mut(), content) {
                column.syntax = spans(reader.as_mut(), line, content);
            }
        }
        response.conflict_rows.push(message);
    }
}
