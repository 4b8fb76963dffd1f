//! Hunks and parts of hunks as units of a decision.

use std::ops::Range;

use sayso_api::diff::{DiffHunk, HighlightedRow};
use sayso_diff::RowKind;
use sayso_review::{CONTEXT, HunkId};

/// Lines of both sides from the first changed line to the last, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedLines {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// A hunk, or a part of one after a split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub id: HunkId,
    /// Parts that it splits into. 1 for a part.
    pub parts: usize,
    pub rows: Vec<HighlightedRow>,
    /// Old lines, context included.
    pub old_lines: Range<usize>,
    /// New lines, context included.
    pub new_lines: Range<usize>,
    pub changed: ChangedLines,
}

impl Unit {
    /// The unit of a whole hunk.
    pub fn whole(hunk: DiffHunk) -> Self {
        let changed = changed_lines(&hunk.rows, hunk.place.old_lines.start, hunk.place.new_lines.start);
        Self {
            id: HunkId::whole(hunk.place.number),
            parts: hunk.place.parts,
            rows: hunk.rows,
            old_lines: hunk.place.old_lines,
            new_lines: hunk.place.new_lines,
            changed,
        }
    }

    /// Splits a hunk into its parts, each with the unchanged lines around it.
    pub fn split(&self) -> Vec<Self> {
        (1..=self.parts).filter_map(|part| self.part(part)).collect()
    }

    fn part(&self, part: usize) -> Option<Self> {
        let is_part = |row: &HighlightedRow| row.row.part == Some(part);
        let is_context = |row: &&HighlightedRow| row.row.kind == RowKind::Context;
        let first = self.rows.iter().position(is_part)?;
        let after = self.rows.iter().rposition(is_part)? + 1;
        let above = self.rows[..first].iter().rev().take_while(is_context).take(CONTEXT).count();
        let below = self.rows[after..].iter().take_while(is_context).take(CONTEXT).count();
        let mut end = after + below;
        // The note that the last line has no line break belongs to that line.
        if self.rows.get(end).is_some_and(|row| matches!(row.row.kind, RowKind::Note(_)) && row.row.part.is_none()) {
            end += 1;
        }
        let start = first - above;
        let (old, new) = advance(&self.rows[..start], self.old_lines.start, self.new_lines.start);
        let rows = self.rows[start..end].to_vec();
        let (old_end, new_end) = advance(&rows, old, new);
        Some(Self {
            id: HunkId { hunk: self.id.hunk, part: Some(part) },
            parts: 1,
            changed: changed_lines(&rows, old, new),
            rows,
            old_lines: old..old_end,
            new_lines: new..new_end,
        })
    }
}

/// Returns the line numbers of both sides behind rows that start at some lines.
fn advance(rows: &[HighlightedRow], old: usize, new: usize) -> (usize, usize) {
    rows.iter().fold((old, new), |(old, new), row| match row.row.kind {
        RowKind::Context => (old + 1, new + 1),
        RowKind::Removed => (old + 1, new),
        RowKind::Added => (old, new + 1),
        RowKind::Fold { .. } | RowKind::Note(_) => (old, new),
    })
}

fn changed_lines(rows: &[HighlightedRow], old: usize, new: usize) -> ChangedLines {
    let is_changed = |row: &HighlightedRow| matches!(row.row.kind, RowKind::Added | RowKind::Removed);
    let first = rows.iter().position(is_changed).unwrap_or(0);
    let after = rows.iter().rposition(is_changed).map_or(first, |last| last + 1);
    let start = advance(&rows[..first], old, new);
    let end = advance(&rows[first..after], start.0, start.1);
    ChangedLines { old: start.0..end.0, new: start.1..end.1 }
}

/// Returns the bytes of some lines of a text.
pub(super) fn bytes_of(text: &[u8], lines: &Range<usize>) -> Range<usize> {
    let breaks = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let mut starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1));
    let start = starts.nth(lines.start).unwrap_or(text.len());
    let end = match lines.len() {
        0 => start,
        length => starts.nth(length - 1).unwrap_or(text.len()),
    };
    start..end
}
