//! The place of every row, in a few numbers a change.

use std::ops::Range;

use crate::change::{Block, Change, Cursor};
use crate::diff::{Counts, Diff, Side};
use crate::note::Note;
use crate::text_format::{Encoding, Kind, TextFormat};

use super::lines::SideLines;
use super::{RowLayout, RowOptions};

/// Facts about one side of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideFacts {
    pub format: TextFormat,
    pub bytes: usize,
    pub lines: usize,
}

/// Facts about a diff as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffFacts {
    /// Absent if there is no old file.
    pub old: Option<SideFacts>,
    /// Absent if there is no new file.
    pub new: Option<SideFacts>,
    /// Differences in form, such as line endings.
    pub notes: Vec<Note>,
    /// `true` if a side is binary. Rows exist all the same.
    pub is_binary: bool,
    pub counts: Counts,
    pub hunks: usize,
}

/// Place and size of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkRows {
    pub number: usize,
    /// Changes in it, which can be approved one by one.
    pub parts: usize,
    pub counts: Counts,
    /// Its old lines from 0, context included. The first number of `@@ -4,7 +4,8 @@` is `start + 1`, or `start` of an empty range.
    pub old_lines: Range<usize>,
    /// Its new lines from 0, context included.
    pub new_lines: Range<usize>,
    /// Its rows, context included.
    pub rows: Range<usize>,
}

/// A change and the place of its first row.
#[derive(Clone, Debug)]
struct ChangeEntry {
    change: Change,
    unified_row: usize,
    side_by_side_row: usize,
    hunk: u32,
    part: u32,
}

/// A run of unchanged lines between two changes, or at an end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// Lines that belong to the hunk above.
    pub(super) top: usize,
    /// Lines that belong to no hunk.
    pub(super) middle: usize,
    /// Lines that belong to the hunk below.
    pub(super) bottom: usize,
    /// `true` if one row stands for the middle.
    pub(super) is_folded: bool,
    /// `true` if a note follows that the last line has no break.
    pub(super) has_note: bool,
}

/// A change with the numbers of its hunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexedChange {
    pub(super) change: Change,
    pub(super) hunk: usize,
    pub(super) part: usize,
    /// `true` if the note follows that the last removed line has no break.
    pub(super) old_note: bool,
    /// `true` if the note follows that the last added line has no break.
    pub(super) new_note: bool,
}

/// A stretch of rows of one kind of place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stretch {
    /// The unchanged lines before the change of this number; after the last one for the number of changes.
    Gap(usize),
    Change(usize),
}

/// The place of every row of a diff.
#[derive(Clone, Debug)]
pub(super) struct RowIndex {
    entries: Vec<ChangeEntry>,
    options: RowOptions,
    old: SideLines,
    new: SideLines,
    facts: DiffFacts,
    unified_rows: usize,
    side_by_side_rows: usize,
}

impl Gap {
    /// Divides `lines` unchanged lines. `above` and `below` say if there is a change on that end.
    pub(super) fn new(lines: usize, options: RowOptions, above: bool, below: bool) -> Self {
        let RowOptions { context, whole_file } = options;
        let (top, bottom) = match (above, below) {
            (true, true) if lines <= context.saturating_mul(2) => (lines, 0),
            _ => (if above { lines.min(context) } else { 0 }, if below { lines.min(context) } else { 0 }),
        };
        Self { top, middle: lines - top - bottom, bottom, is_folded: !whole_file, has_note: false }
    }

    pub(super) fn lines(self) -> usize {
        self.top + self.middle + self.bottom
    }

    pub(super) fn rows(self) -> usize {
        let middle = if self.is_folded { self.middle.min(1) } else { self.middle };
        self.top + middle + self.bottom + usize::from(self.has_note)
    }

    /// `true` if no line is hidden between the changes around it, so that they share a hunk.
    fn joins(self) -> bool {
        self.middle == 0
    }

    /// `true` if a row shows its last line.
    fn shows_end(self) -> bool {
        self.lines() > 0 && (self.bottom > 0 || self.middle == 0 || !self.is_folded)
    }
}

impl IndexedChange {
    pub(super) fn rows(self, layout: RowLayout) -> usize {
        let (removed, added) = (self.change.old.lines(), self.change.new.lines());
        match layout {
            RowLayout::Unified => removed + added + usize::from(self.old_note) + usize::from(self.new_note),
            RowLayout::SideBySide => removed.max(added) + usize::from(self.old_note || self.new_note),
        }
    }
}

impl ChangeEntry {
    fn row(&self, layout: RowLayout) -> usize {
        match layout {
            RowLayout::Unified => self.unified_row,
            RowLayout::SideBySide => self.side_by_side_row,
        }
    }
}

impl RowIndex {
    pub(super) fn new(diff: &Diff<'_>, options: RowOptions) -> Self {
        let formats = diff.formats();
        let (old_end, new_end) = ends(diff);
        let encoding = |format: Option<TextFormat>| format.map_or(Encoding::Utf8, |format| format.encoding);
        let side = |side, format: Option<TextFormat>, end: Cursor| match side {
            Side::Absent => None,
            Side::Present(_) => format.map(|format| SideFacts { format, bytes: end.offset, lines: end.line }),
        };
        let is_binary = [formats.0, formats.1].into_iter().flatten().any(|format| format.kind == Kind::Binary);
        let facts = DiffFacts {
            old: side(diff.old_side(), formats.0, old_end),
            new: side(diff.new_side(), formats.1, new_end),
            notes: diff.notes_of(formats),
            is_binary,
            counts: diff.counts(),
            hunks: 0,
        };
        let mut index = Self {
            entries: Vec::with_capacity(diff.changes().len()),
            options,
            old: SideLines::new(diff.old, encoding(formats.0), old_end),
            new: SideLines::new(diff.new, encoding(formats.1), new_end),
            facts,
            unified_rows: 0,
            side_by_side_rows: 0,
        };
        index.fill(diff);
        index
    }

    /// Adds the changes, and checkpoints in all long runs that rows are read from.
    fn fill(&mut self, diff: &Diff<'_>) {
        let (mut hunk, mut part) = (0, 0);
        for (at, change) in diff.changes().iter().enumerate() {
            let gap = self.gap_before(at, change);
            if at > 0 && gap.joins() {
                part += 1;
            } else {
                (hunk, part) = (hunk + 1, 1);
            }
            if self.options.whole_file {
                let start = self.gap_start(at).0;
                self.old.add_run(diff.old, Block { start, end: change.old.start });
            }
            self.old.add_run(diff.old, change.old);
            self.new.add_run(diff.new, change.new);
            let (unified_row, side_by_side_row) = (self.unified_rows + gap.rows(), self.side_by_side_rows + gap.rows());
            self.entries.push(ChangeEntry { change: *change, unified_row, side_by_side_row, hunk, part });
            let change = self.change(at);
            self.unified_rows = unified_row + change.rows(RowLayout::Unified);
            self.side_by_side_rows = side_by_side_row + change.rows(RowLayout::SideBySide);
        }
        let last = self.gap(self.entries.len());
        if self.options.whole_file {
            let start = self.gap_start(self.entries.len()).0;
            self.old.add_run(diff.old, Block { start, end: self.old.end });
        }
        self.unified_rows += last.rows();
        self.side_by_side_rows += last.rows();
        self.facts.hunks = hunk as usize;
    }

    pub(super) fn facts(&self) -> &DiffFacts {
        &self.facts
    }

    pub(super) fn sides(&self) -> (&SideLines, &SideLines) {
        (&self.old, &self.new)
    }

    pub(super) fn row_count(&self, layout: RowLayout) -> usize {
        match layout {
            RowLayout::Unified => self.unified_rows,
            RowLayout::SideBySide => self.side_by_side_rows,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<ChangeEntry>();
        size_of::<Self>() + entries + self.old.memory_bytes() + self.new.memory_bytes()
    }

    /// The stretch that a row lies in, and the row's place within it.
    pub(super) fn locate(&self, row: usize, layout: RowLayout) -> (Stretch, usize) {
        let after = self.entries.partition_point(|entry| entry.row(layout) <= row);
        let Some(at) = after.checked_sub(1) else { return (Stretch::Gap(0), row) };
        let offset = row - self.entries[at].row(layout);
        let rows = self.change(at).rows(layout);
        if offset < rows { (Stretch::Change(at), offset) } else { (Stretch::Gap(after), offset - rows) }
    }

    /// The stretch after another one.
    pub(super) fn following(&self, stretch: Stretch) -> Option<Stretch> {
        match stretch {
            Stretch::Gap(at) => (at < self.entries.len()).then_some(Stretch::Change(at)),
            Stretch::Change(at) => Some(Stretch::Gap(at + 1)),
        }
    }

    pub(super) fn rows_of(&self, stretch: Stretch, layout: RowLayout) -> usize {
        match stretch {
            Stretch::Gap(at) => self.gap(at).rows(),
            Stretch::Change(at) => self.change(at).rows(layout),
        }
    }

    pub(super) fn change(&self, at: usize) -> IndexedChange {
        let ChangeEntry { change, hunk, part, .. } = self.entries[at];
        // Only the last line of a content lacks its break.
        let is_open =
            |side: &SideLines, block: &Block| side.is_open && !block.is_empty() && block.end.offset == side.end.offset;
        IndexedChange {
            change,
            hunk: hunk as usize,
            part: part as usize,
            old_note: is_open(&self.old, &change.old),
            new_note: is_open(&self.new, &change.new),
        }
    }

    /// The unchanged lines before a change, or after the last one.
    pub(super) fn gap(&self, at: usize) -> Gap {
        if let Some(entry) = self.entries.get(at) {
            return self.gap_before(at, &entry.change);
        }
        let lines = self.old.end.line - self.gap_start(at).0.line;
        let mut gap = Gap::new(lines, self.options, at > 0, false);
        gap.has_note = self.old.is_open && self.new.is_open && gap.shows_end();
        gap
    }

    fn gap_before(&self, at: usize, change: &Change) -> Gap {
        Gap::new(change.old.start.line - self.gap_start(at).0.line, self.options, at > 0, true)
    }

    /// The old and new cursors where a gap starts.
    fn gap_start(&self, at: usize) -> (Cursor, Cursor) {
        let above = at.checked_sub(1).map(|above| &self.entries[above].change);
        above.map_or((Cursor::default(), Cursor::default()), |change| (change.old.end, change.new.end))
    }

    /// The old lines of a gap, and the number of its first line on the new side.
    pub(super) fn gap_lines(&self, at: usize) -> (Block, usize) {
        let (start, new_start) = self.gap_start(at);
        let end = self.entries.get(at).map_or(self.old.end, |entry| entry.change.old.start);
        (Block { start, end }, new_start.line)
    }

    /// The number of the gap that holds a 0-based old line, if the line is unchanged.
    pub(super) fn gap_with(&self, old_line: usize) -> Option<usize> {
        let at = self.entries.partition_point(|entry| entry.change.old.end.line <= old_line);
        let (lines, _) = self.gap_lines(at);
        (lines.start.line..lines.end.line).contains(&old_line).then_some(at)
    }

    /// The hunk of a line of a gap.
    pub(super) fn hunk_in_gap(&self, at: usize, line: usize) -> Option<usize> {
        let gap = self.gap(at);
        let entry = if line < gap.top {
            at.checked_sub(1).and_then(|above| self.entries.get(above))
        } else if line >= gap.top + gap.middle {
            self.entries.get(at)
        } else {
            None
        };
        entry.map(|entry| entry.hunk as usize)
    }

    pub(super) fn hunk(&self, number: usize, layout: RowLayout) -> Option<HunkRows> {
        let first = self.entries.partition_point(|entry| (entry.hunk as usize) < number);
        let after = self.entries.partition_point(|entry| entry.hunk as usize <= number);
        let (top, bottom) = (self.entries.get(first)?, self.entries.get(after.checked_sub(1)?)?);
        if first >= after {
            return None;
        }
        let (above, below) = (self.gap(first), self.gap(after));
        let last = self.change(after - 1);
        let end_row = bottom.row(layout) + last.rows(layout);
        let note = below.has_note && below.middle == 0;
        let rows = top.row(layout) - above.bottom..end_row + below.top + usize::from(note);
        // Every row between is a line of the old side, of the new side, or of both.
        let notes = usize::from(last.old_note) + usize::from(last.new_note);
        let between = bottom.unified_row + last.rows(RowLayout::Unified) - notes - top.unified_row;
        let lines = |from: Cursor, to: Cursor| to.line - from.line;
        let counts = Counts {
            added: between - lines(top.change.old.start, bottom.change.old.end),
            removed: between - lines(top.change.new.start, bottom.change.new.end),
        };
        let (start, end) = (&top.change, &bottom.change);
        Some(HunkRows {
            number,
            parts: after - first,
            counts,
            old_lines: start.old.start.line - above.bottom..end.old.end.line + below.top,
            new_lines: start.new.start.line - above.bottom..end.new.end.line + below.top,
            rows,
        })
    }
}

/// The ends of both sides. Lines after the last change are the same on both, so that they are counted once.
fn ends(diff: &Diff<'_>) -> (Cursor, Cursor) {
    let last = diff.changes().last().copied().unwrap_or_default();
    let (old, new) = (diff.old.bytes.len(), diff.new.bytes.len());
    let lines = diff.old.line_break.count(diff.old.bytes, last.old.end.offset, old);
    (Cursor { line: last.old.end.line + lines, offset: old }, Cursor { line: last.new.end.line + lines, offset: new })
}
