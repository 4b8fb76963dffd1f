//! A merge as rows of three columns.

use std::ops::Range;

use crate::change::{Block, Cursor};
use crate::diff::{Diff, Side};
use crate::engine::Text;
use crate::merge::regions;
use crate::text_format::Encoding;

use super::index::Gap;
use super::lines::{LineReader, SideLines};
use super::{PageLimit, RowContent, RowOptions, RowPage, bytes_of, page};

/// Role of a row of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConflictRowKind {
    /// The same in all three versions.
    Context,
    /// Only they changed it. The merge takes their lines.
    Theirs,
    /// Only you changed it. The merge takes your lines.
    Yours,
    /// Both made the same change.
    Same,
    /// Both changed it differently.
    Conflict,
    /// Stands for lines that are the same in all three versions. The row has the numbers of the first line.
    Fold { hidden: usize },
}

/// A row of three columns: the common base, their version, your version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictRow {
    pub kind: ConflictRowKind,
    /// 1-based number of the conflict; absent elsewhere.
    pub conflict: Option<usize>,
    pub base_line: Option<usize>,
    pub theirs_line: Option<usize>,
    pub yours_line: Option<usize>,
    /// A column without content is blank. Rows have no word spans.
    pub base: Option<RowContent>,
    pub theirs: Option<RowContent>,
    pub yours: Option<RowContent>,
}

/// Lines that at least one side changed.
#[derive(Clone, Debug)]
struct RegionEntry {
    kind: ConflictRowKind,
    conflict: Option<usize>,
    /// Lines in the base, in their version and in yours.
    blocks: [Block; 3],
    row: usize,
}

/// The rows of a three-way merge, built when they are read.
///
/// Lines of a region stand beside each other by their place in it. A missing file counts as an empty one.
#[derive(Clone, Debug)]
pub struct ConflictRows<B> {
    contents: [Option<B>; 3],
    sides: [SideLines; 3],
    regions: Vec<RegionEntry>,
    options: RowOptions,
    conflicts: usize,
    rows: usize,
}

impl<B: AsRef<[u8]>> ConflictRows<B> {
    /// Merges two changes of a base and indexes the rows.
    pub fn new(base: Option<B>, theirs: Option<B>, yours: Option<B>, options: RowOptions) -> Self {
        let contents = [base, theirs, yours];
        let bytes = contents.each_ref().map(|content| bytes_of(content.as_ref()));
        // A missing file counts as empty: the changes of a diff are the same for both.
        let [base, theirs, yours] = bytes.map(Side::Present);
        let (their_diff, your_diff) = (Diff::new(base, theirs), Diff::new(base, yours));
        let texts = [their_diff.old, their_diff.new, your_diff.new];
        let lines = |text: Text<'_>| text.line_break.count(text.bytes, 0, text.bytes.len());
        let sides = texts.map(|text| {
            SideLines::new(text, Encoding::of(text.bytes), Cursor { line: lines(text), offset: text.bytes.len() })
        });
        let mut rows =
            Self { contents: [None, None, None], sides, regions: Vec::new(), options, conflicts: 0, rows: 0 };
        for region in regions(&your_diff, &their_diff) {
            rows.add([region.base, region.theirs, region.ours], texts);
        }
        let after = rows.regions.len();
        if options.whole_file {
            rows.add_runs(texts, rows.gap_blocks(after));
        }
        rows.rows += rows.gap(after).rows();
        Self { contents, ..rows }
    }

    fn add(&mut self, blocks: [Block; 3], texts: [Text<'_>; 3]) {
        let at = self.regions.len();
        let [base, theirs, yours] = [0, 1, 2].map(|side| blocks[side].of(texts[side].bytes));
        let kind = if theirs == yours {
            ConflictRowKind::Same
        } else if theirs == base {
            ConflictRowKind::Yours
        } else if yours == base {
            ConflictRowKind::Theirs
        } else {
            ConflictRowKind::Conflict
        };
        let conflict = (kind == ConflictRowKind::Conflict).then(|| {
            self.conflicts += 1;
            self.conflicts
        });
        self.regions.push(RegionEntry { kind, conflict, blocks, row: 0 });
        if self.options.whole_file {
            self.add_runs(texts, self.gap_blocks(at));
        }
        self.add_runs(texts, blocks);
        let row = self.rows + self.gap(at).rows();
        self.regions[at].row = row;
        self.rows = row + region_rows(&blocks);
    }

    fn add_runs(&mut self, texts: [Text<'_>; 3], blocks: [Block; 3]) {
        for ((side, text), block) in self.sides.iter_mut().zip(texts).zip(blocks) {
            side.add_run(text, block);
        }
    }

    /// Returns the contents of the base, their version and your version.
    pub fn contents(&self) -> [Option<&B>; 3] {
        self.contents.each_ref().map(Option::as_ref)
    }

    /// Returns the number of conflicts.
    pub fn conflicts(&self) -> usize {
        self.conflicts
    }

    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// Returns the first row of a conflict by its 1-based number.
    pub fn conflict_row(&self, number: usize) -> Option<usize> {
        self.regions.iter().find(|region| region.conflict == Some(number)).map(|region| region.row)
    }

    /// Returns a range of the rows; a range beyond the end is cut.
    pub fn rows(&self, rows: Range<usize>) -> impl Iterator<Item = ConflictRow> {
        let mut readers = [0, 1, 2].map(|side| {
            let lines = &self.sides[side];
            let text = Text { bytes: bytes_of(self.contents[side].as_ref()), line_break: lines.line_break };
            LineReader::new(lines, text)
        });
        // Rows come in order, so that the region is only looked for once.
        let mut after = self.regions.partition_point(|region| region.row <= rows.start);
        (rows.start..rows.end.min(self.rows)).map(move |row| {
            while self.regions.get(after).is_some_and(|region| region.row <= row) {
                after += 1;
            }
            self.row(row, after, &mut readers)
        })
    }

    /// Returns rows from `from` on.
    pub fn page(&self, from: usize, limit: PageLimit) -> RowPage<ConflictRow> {
        let text_bytes = |row: &ConflictRow| {
            [&row.base, &row.theirs, &row.yours].into_iter().flatten().map(|content| content.text.len()).sum()
        };
        page(self.rows(from..self.rows), from, self.rows, limit, text_bytes)
    }

    /// Builds a row; `after` regions start at it or before it.
    fn row(&self, row: usize, after: usize, readers: &mut [LineReader<'_>; 3]) -> ConflictRow {
        let start = match after.checked_sub(1).map(|at| &self.regions[at]) {
            Some(region) if row - region.row < region_rows(&region.blocks) => {
                let line = row - region.row;
                return line_row(region.kind, region.conflict, line, region.blocks, readers);
            }
            Some(region) => region.row + region_rows(&region.blocks),
            None => 0,
        };
        let (gap, blocks, offset) = (self.gap(after), self.gap_blocks(after), row - start);
        let is_folded = gap.is_folded && gap.middle > 0;
        if is_folded && offset == gap.top {
            let number = |side: usize| Some(blocks[side].start.line + gap.top + 1);
            return ConflictRow {
                kind: ConflictRowKind::Fold { hidden: gap.middle },
                conflict: None,
                base_line: number(0),
                theirs_line: number(1),
                yours_line: number(2),
                base: None,
                theirs: None,
                yours: None,
            };
        }
        let line = if is_folded && offset > gap.top { offset - 1 + gap.middle } else { offset };
        line_row(ConflictRowKind::Context, None, line, blocks, readers)
    }

    fn gap(&self, at: usize) -> Gap {
        let [base, ..] = self.gap_blocks(at);
        Gap::new(base.lines(), self.options, at > 0, at < self.regions.len())
    }

    /// The unchanged lines before a region, or after the last one.
    fn gap_blocks(&self, at: usize) -> [Block; 3] {
        let above = at.checked_sub(1).map(|above| &self.regions[above].blocks);
        let below = self.regions.get(at).map(|region| &region.blocks);
        [0, 1, 2].map(|side| Block {
            start: above.map_or(Cursor::default(), |blocks| blocks[side].end),
            end: below.map_or(self.sides[side].end, |blocks| blocks[side].start),
        })
    }
}

fn region_rows(blocks: &[Block; 3]) -> usize {
    blocks.iter().map(Block::lines).max().unwrap_or(0)
}

/// A row of one line in each column that has so many.
fn line_row(
    kind: ConflictRowKind,
    conflict: Option<usize>,
    line: usize,
    blocks: [Block; 3],
    readers: &mut [LineReader<'_>; 3],
) -> ConflictRow {
    let mut cell = |side: usize| {
        let block = blocks[side];
        let number = block.start.line + line;
        let content = (line < block.lines()).then(|| readers[side].content(number, block, |_| Vec::new()));
        (content.is_some().then_some(number + 1), content)
    };
    let ((base_line, base), (theirs_line, theirs), (yours_line, yours)) = (cell(0), cell(1), cell(2));
    ConflictRow { kind, conflict, base_line, theirs_line, yours_line, base, theirs, yours }
}
