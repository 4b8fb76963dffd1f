//! A diff as rows: data that a surface draws without computing anything.
//!
//! [`DiffRows`] knows the place of every row of a file's diff, but builds a row only when it is read. It stores a few numbers a
//! change and a cursor every few hundred lines, so that a page costs the same at every place of the list. [`RowLayout`] names
//! the two projections of the list. [`ConflictRows`] shows the three versions of a merge beside each other.
//!
//! Rows lose no byte: [`RowContent::source`] gives the bytes of a line. Context and removed rows in order are the old content,
//! context and added rows are the new one, as long as no line is folded.

mod conflict;
mod content;
mod index;
mod lines;
mod paired;
mod reader;

use std::ops::Range;

pub use conflict::{ConflictRow, ConflictRowKind, ConflictRows};
pub use content::{Escape, EscapedOriginal, LineTerminator, RowContent};
pub use index::{DiffFacts, HunkRows, SideFacts};
pub use paired::{SideBySideCell, SideBySideRow, SideBySideRows};
pub use reader::UnifiedRows;

use crate::diff::{Diff, Side};
use crate::engine::Text;
use index::RowIndex;
use reader::RowReader;

/// Unchanged lines around a change by default.
const DEFAULT_CONTEXT_LINES: usize = 3;

/// Selection and grouping of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowOptions {
    /// Unchanged lines shown around a change. Hunks are grouped and numbered by it, as in [`Diff::hunks`].
    pub context: usize,
    /// `true` to show every line of the file. Hunks keep their numbers; lines far from a change belong to no hunk.
    pub whole_file: bool,
}

impl Default for RowOptions {
    fn default() -> Self {
        Self { context: DEFAULT_CONTEXT_LINES, whole_file: false }
    }
}

/// A projection of the row list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowLayout {
    /// One column: removed rows of a change, then its added rows.
    Unified,
    /// Two columns: the removed rows of a change beside its added rows.
    SideBySide,
}

/// Role of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    Context,
    Added,
    Removed,
    /// Stands for unchanged lines. The row has the numbers of the first line.
    Fold {
        /// Lines it stands for.
        hidden: usize,
    },
    /// A fact about the row before it.
    Note(RowNote),
}

/// Fact about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowNote {
    /// The last line has no line break. The row's numbers name the sides.
    NoFinalNewline,
}

/// A row of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffRow {
    pub kind: RowKind,
    /// 1-based line number in the old content. Absent for added rows.
    pub old_line: Option<usize>,
    /// 1-based line number in the new content. Absent for removed rows.
    pub new_line: Option<usize>,
    /// The line. A context row is decoded as the old side is. Empty for folds; English text for notes.
    pub content: RowContent,
    /// 1-based number of its hunk; absent outside of hunks.
    pub hunk: Option<usize>,
    /// 1-based number of its change within the hunk; absent for unchanged lines.
    pub part: Option<usize>,
}

/// Bound of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit {
    pub rows: usize,
    /// Bytes of text. The row that exceeds the limit is the last of the page, so that a page is never empty for its size.
    pub text_bytes: usize,
}

/// Consecutive rows, and where the list continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPage<R> {
    pub rows: Vec<R>,
    /// Number of the row after the last one; absent at the end of the list.
    pub next_row: Option<usize>,
}

/// The rows of a file's diff, built when they are read.
///
/// `B` holds a content's bytes: a slice, or a handle that keeps them alive in a cache.
#[derive(Clone, Debug)]
pub struct DiffRows<B> {
    old: Option<B>,
    new: Option<B>,
    index: RowIndex,
}

impl<B: AsRef<[u8]>> DiffRows<B> {
    /// Compares two contents and indexes their rows. `None` stands for no file.
    pub fn new(old: Option<B>, new: Option<B>, options: RowOptions) -> Self {
        let index = {
            let diff = Diff::new(old.as_ref().map(AsRef::as_ref), new.as_ref().map(AsRef::as_ref));
            RowIndex::new(&diff, options)
        };
        Self { old, new, index }
    }

    /// Returns what is known about the diff as a whole. Independent of paging.
    pub fn facts(&self) -> &DiffFacts {
        self.index.facts()
    }

    /// Returns the old and the new content.
    pub fn contents(&self) -> (Option<&B>, Option<&B>) {
        (self.old.as_ref(), self.new.as_ref())
    }

    /// Returns the number of rows in a layout.
    pub fn row_count(&self, layout: RowLayout) -> usize {
        self.index.row_count(layout)
    }

    /// Returns the place and size of a hunk by its 1-based number.
    pub fn hunk(&self, number: usize, layout: RowLayout) -> Option<HunkRows> {
        self.index.hunk(number, layout)
    }

    /// Returns the approximate memory of the index in bytes, without the contents. For the bound of a cache.
    pub fn index_bytes(&self) -> usize {
        self.index.memory_bytes()
    }

    /// Reads a range of the unified rows; a range beyond the end is cut.
    pub fn unified(&self, rows: Range<usize>) -> UnifiedRows<'_> {
        UnifiedRows::new(self.reader(RowLayout::Unified), rows)
    }

    /// Reads a range of the side-by-side rows; a range beyond the end is cut.
    pub fn side_by_side(&self, rows: Range<usize>) -> SideBySideRows<'_> {
        SideBySideRows::new(self.reader(RowLayout::SideBySide), rows)
    }

    /// Returns unified rows from `from` on.
    pub fn unified_page(&self, from: usize, limit: PageLimit) -> RowPage<DiffRow> {
        let total = self.row_count(RowLayout::Unified);
        page(self.unified(from..total), from, total, limit, |row| row.content.text.len())
    }

    /// Returns side-by-side rows from `from` on.
    pub fn side_by_side_page(&self, from: usize, limit: PageLimit) -> RowPage<SideBySideRow> {
        let total = self.row_count(RowLayout::SideBySide);
        page(self.side_by_side(from..total), from, total, limit, SideBySideRow::text_bytes)
    }

    /// Returns unchanged lines as context rows, for a surface that opens a fold: at most `lines` from the 1-based `old_line` on,
    /// and none beyond the next change. The numbers of other rows stay as they are. The cost grows with the distance to the
    /// nearer end of the fold, since folded lines have no index.
    pub fn unfolded(&self, old_line: usize, lines: usize) -> Vec<DiffRow> {
        self.reader(RowLayout::Unified).unfolded(old_line, lines)
    }

    fn reader(&self, layout: RowLayout) -> RowReader<'_> {
        let (old, new) = self.index.sides();
        let old = Text { bytes: bytes_of(self.old.as_ref()), line_break: old.line_break };
        let new = Text { bytes: bytes_of(self.new.as_ref()), line_break: new.line_break };
        RowReader::new(&self.index, layout, old, new)
    }
}

impl<'a> DiffRows<&'a [u8]> {
    /// Indexes the rows of a diff that exists already.
    pub fn of_diff(diff: &Diff<'a>, options: RowOptions) -> Self {
        let content = |side: Side<'a>| if let Side::Present(bytes) = side { Some(bytes) } else { None };
        Self { old: content(diff.old_side()), new: content(diff.new_side()), index: RowIndex::new(diff, options) }
    }
}

fn bytes_of<B: AsRef<[u8]>>(content: Option<&B>) -> &[u8] {
    content.map_or(&[], AsRef::as_ref)
}

/// Collects rows up to a limit.
fn page<R>(
    rows: impl Iterator<Item = R>,
    from: usize,
    total: usize,
    limit: PageLimit,
    text_bytes: impl Fn(&R) -> usize,
) -> RowPage<R> {
    let mut bytes = 0;
    let mut page = Vec::new();
    for row in rows.take(limit.rows) {
        bytes += text_bytes(&row);
        page.push(row);
        if bytes > limit.text_bytes {
            break;
        }
    }
    let next = from.saturating_add(page.len());
    RowPage { rows: page, next_row: (next < total).then_some(next) }
}
