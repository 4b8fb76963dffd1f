//! Reads rows: finds the stretch that a row lies in, then walks on from there.

use std::ops::Range;

use crate::engine::Text;
use crate::hunk::within;
use crate::words::{WordSpans, spans_between};

use super::index::{IndexedChange, RowIndex, Stretch};
use super::lines::LineReader;
use super::{DiffRow, RowContent, RowKind, RowLayout, RowNote};

const NO_FINAL_NEWLINE: &str = "No newline at end of file";

/// Builds rows of both layouts from a diff's index and contents.
#[derive(Clone, Debug)]
pub(super) struct RowReader<'a> {
    index: &'a RowIndex,
    layout: RowLayout,
    old: LineReader<'a>,
    new: LineReader<'a>,
    /// Word spans of the change by this number, which its neighbours in the page need again.
    words: Option<(usize, WordSpans)>,
}

/// A row's place: the stretch it lies in, and its number there.
#[derive(Clone, Debug)]
pub(super) struct RowWalk {
    stretch: Stretch,
    offset: usize,
    /// Rows of the stretch.
    rows: usize,
    /// Rows left to visit.
    left: usize,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(index: &'a RowIndex, layout: RowLayout, old: Text<'a>, new: Text<'a>) -> Self {
        let (old_side, new_side) = index.sides();
        let (old, new) = (LineReader::new(old_side, old), LineReader::new(new_side, new));
        Self { index, layout, old, new, words: None }
    }

    /// Starts a walk over a range of rows.
    pub(super) fn walk(&self, rows: &Range<usize>) -> RowWalk {
        let end = rows.end.min(self.index.row_count(self.layout));
        let (stretch, offset) = self.index.locate(rows.start, self.layout);
        let rows_of = self.index.rows_of(stretch, self.layout);
        RowWalk { stretch, offset, rows: rows_of, left: end.saturating_sub(rows.start) }
    }

    /// Takes a step; returns the place of the next row.
    pub(super) fn step(&self, walk: &mut RowWalk) -> Option<(Stretch, usize)> {
        walk.left = walk.left.checked_sub(1)?;
        while walk.offset >= walk.rows {
            walk.stretch = self.index.following(walk.stretch)?;
            walk.offset = 0;
            walk.rows = self.index.rows_of(walk.stretch, self.layout);
        }
        walk.offset += 1;
        Some((walk.stretch, walk.offset - 1))
    }

    /// A row of a gap: context, its fold, or the note at its end.
    pub(super) fn gap_row(&mut self, at: usize, offset: usize) -> DiffRow {
        let gap = self.index.gap(at);
        if gap.has_note && offset + 1 == gap.rows() {
            let (old_line, new_line) = (self.old.side.end.line, self.new.side.end.line);
            let hunk = self.index.hunk_in_gap(at, gap.lines() - 1);
            return note(Some(old_line), Some(new_line), hunk, None);
        }
        if !gap.is_folded || gap.middle == 0 || offset < gap.top {
            return self.context_row(at, offset);
        }
        if offset > gap.top {
            return self.context_row(at, offset - 1 + gap.middle);
        }
        let (lines, new_start) = self.index.gap_lines(at);
        DiffRow {
            kind: RowKind::Fold { hidden: gap.middle },
            old_line: Some(lines.start.line + gap.top + 1),
            new_line: Some(new_start + gap.top + 1),
            content: RowContent::plain(""),
            hunk: None,
            part: None,
        }
    }

    /// A line of a gap by its number there.
    fn context_row(&mut self, at: usize, line: usize) -> DiffRow {
        let (lines, new_start) = self.index.gap_lines(at);
        let old_line = lines.start.line + line;
        DiffRow {
            kind: RowKind::Context,
            old_line: Some(old_line + 1),
            new_line: Some(new_start + line + 1),
            content: self.old.content(old_line, lines, |_| Vec::new()),
            hunk: self.index.hunk_in_gap(at, line),
            part: None,
        }
    }

    pub(super) fn unfolded(&mut self, old_line: usize, lines: usize) -> Vec<DiffRow> {
        let place = old_line.checked_sub(1).and_then(|line| Some((line, self.index.gap_with(line)?)));
        let Some((first, at)) = place else { return Vec::new() };
        let (run, _) = self.index.gap_lines(at);
        let end = first.saturating_add(lines).min(run.end.line);
        (first..end).map(|line| self.context_row(at, line - run.start.line)).collect()
    }

    /// A row of a change in the unified layout.
    fn unified_row(&mut self, at: usize, offset: usize) -> Option<DiffRow> {
        let change = self.index.change(at);
        let removed = change.change.old.lines();
        match offset.checked_sub(removed + usize::from(change.old_note)) {
            None if offset < removed => self.removed_row(at, change, offset),
            None => self.old_note(change),
            Some(offset) if offset < change.change.new.lines() => self.added_row(at, change, offset),
            Some(_) => self.new_note(change),
        }
    }

    /// A removed line by its number in the change.
    pub(super) fn removed_row(&mut self, at: usize, indexed: IndexedChange, line: usize) -> Option<DiffRow> {
        let run = indexed.change.old;
        (line < run.lines()).then(|| {
            self.find_words(at, indexed);
            let words = self.words.as_ref().map_or(&[][..], |(_, words)| &words.old);
            let old_line = run.start.line + line;
            let content = self.old.content(old_line, run, |range| within(words, range));
            changed(RowKind::Removed, (Some(old_line + 1), None), content, indexed)
        })
    }

    /// An added line by its number in the change.
    pub(super) fn added_row(&mut self, at: usize, indexed: IndexedChange, line: usize) -> Option<DiffRow> {
        let run = indexed.change.new;
        (line < run.lines()).then(|| {
            self.find_words(at, indexed);
            let words = self.words.as_ref().map_or(&[][..], |(_, words)| &words.new);
            let new_line = run.start.line + line;
            let content = self.new.content(new_line, run, |range| within(words, range));
            changed(RowKind::Added, (None, Some(new_line + 1)), content, indexed)
        })
    }

    /// The note that the last removed line has no break.
    pub(super) fn old_note(&self, change: IndexedChange) -> Option<DiffRow> {
        change.old_note.then(|| note(Some(self.old.side.end.line), None, Some(change.hunk), Some(change.part)))
    }

    /// The note that the last added line has no break.
    pub(super) fn new_note(&self, change: IndexedChange) -> Option<DiffRow> {
        change.new_note.then(|| note(None, Some(self.new.side.end.line), Some(change.hunk), Some(change.part)))
    }

    pub(super) fn change(&self, at: usize) -> IndexedChange {
        self.index.change(at)
    }

    /// Compares the words of a change, unless the last row was of the same one.
    fn find_words(&mut self, at: usize, indexed: IndexedChange) {
        if self.words.as_ref().is_none_or(|(change, _)| *change != at) {
            self.words = Some((at, spans_between(self.old.text, self.new.text, &[indexed.change])));
        }
    }
}

fn changed(kind: RowKind, lines: (Option<usize>, Option<usize>), content: RowContent, at: IndexedChange) -> DiffRow {
    DiffRow { kind, old_line: lines.0, new_line: lines.1, content, hunk: Some(at.hunk), part: Some(at.part) }
}

fn note(old_line: Option<usize>, new_line: Option<usize>, hunk: Option<usize>, part: Option<usize>) -> DiffRow {
    let content = RowContent::plain(NO_FINAL_NEWLINE);
    DiffRow { kind: RowKind::Note(RowNote::NoFinalNewline), old_line, new_line, content, hunk, part }
}

/// A range of the unified rows, each built when it is asked for.
#[derive(Clone, Debug)]
pub struct UnifiedRows<'a> {
    reader: RowReader<'a>,
    walk: RowWalk,
}

impl<'a> UnifiedRows<'a> {
    pub(super) fn new(reader: RowReader<'a>, rows: Range<usize>) -> Self {
        let walk = reader.walk(&rows);
        Self { reader, walk }
    }
}

impl Iterator for UnifiedRows<'_> {
    type Item = DiffRow;

    fn next(&mut self) -> Option<DiffRow> {
        match self.reader.step(&mut self.walk)? {
            (Stretch::Gap(at), offset) => Some(self.reader.gap_row(at, offset)),
            (Stretch::Change(at), offset) => self.reader.unified_row(at, offset),
        }
    }
}
