//! The side-by-side projection of the row list.

use std::ops::Range;

use super::DiffRow;
use super::index::Stretch;
use super::reader::{RowReader, RowWalk};

/// A row of two columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideBySideRow {
    /// The same on both sides: context, a fold, or a note about both.
    Both(DiffRow),
    /// Removed beside added. The n-th removed line of a change stands beside its n-th added line.
    Pair { old: SideBySideCell, new: SideBySideCell },
}

/// A cell of a two-column row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SideBySideCell {
    /// The other side has a line that this one lacks.
    Blank,
    Row(DiffRow),
}

impl SideBySideRow {
    /// The rows of the unified layout that it holds.
    pub fn rows(&self) -> impl Iterator<Item = &DiffRow> {
        let (first, second) = match self {
            Self::Both(row) => (Some(row), None),
            Self::Pair { old, new } => (old.row(), new.row()),
        };
        first.into_iter().chain(second)
    }

    pub(super) fn text_bytes(&self) -> usize {
        self.rows().map(|row| row.content.text.len()).sum()
    }
}

impl SideBySideCell {
    fn new(row: Option<DiffRow>) -> Self {
        row.map_or(Self::Blank, Self::Row)
    }

    pub fn row(&self) -> Option<&DiffRow> {
        match self {
            Self::Blank => None,
            Self::Row(row) => Some(row),
        }
    }
}

/// A range of the side-by-side rows, each built when it is asked for.
#[derive(Clone, Debug)]
pub struct SideBySideRows<'a> {
    reader: RowReader<'a>,
    walk: RowWalk,
}

impl<'a> SideBySideRows<'a> {
    pub(super) fn new(reader: RowReader<'a>, rows: Range<usize>) -> Self {
        let walk = reader.walk(&rows);
        Self { reader, walk }
    }

    fn pair(&mut self, at: usize, offset: usize) -> SideBySideRow {
        let change = self.reader.change(at);
        let is_note = offset == change.change.old.lines().max(change.change.new.lines());
        let (old, new) = if is_note {
            (self.reader.old_note(change), self.reader.new_note(change))
        } else {
            (self.reader.removed_row(at, change, offset), self.reader.added_row(at, change, offset))
        };
        SideBySideRow::Pair { old: SideBySideCell::new(old), new: SideBySideCell::new(new) }
    }
}

impl Iterator for SideBySideRows<'_> {
    type Item = SideBySideRow;

    fn next(&mut self) -> Option<SideBySideRow> {
        Some(match self.reader.step(&mut self.walk)? {
            (Stretch::Gap(at), offset) => SideBySideRow::Both(self.reader.gap_row(at, offset)),
            (Stretch::Change(at), offset) => self.pair(at, offset),
        })
    }
}
