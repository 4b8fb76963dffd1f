//! Lines of one side by their numbers, without an index of every line.

use std::ops::Range;

use crate::change::{Block, Cursor};
use crate::engine::Text;
use crate::lines::LineBreak;
use crate::text_format::Encoding;

use super::RowContent;

/// Distance between two checkpoints: whichever of the two is reached first.
const CHECKPOINT_LINES: usize = 256;
const CHECKPOINT_BYTES: usize = 64 * 1024;

/// Line structure of one side.
#[derive(Clone, Debug)]
pub(super) struct SideLines {
    pub(super) line_break: LineBreak,
    pub(super) encoding: Encoding,
    /// The end of the content.
    pub(super) end: Cursor,
    /// `true` if the content ends without a line break and is not empty.
    pub(super) is_open: bool,
    /// Some line starts within long runs, in order.
    checkpoints: Vec<Cursor>,
}

impl SideLines {
    pub(super) fn new(text: Text<'_>, encoding: Encoding, end: Cursor) -> Self {
        let is_open = end.offset > 0 && !text.line_break.breaks_before(text.bytes, end.offset);
        Self { line_break: text.line_break, encoding, end, is_open, checkpoints: Vec::new() }
    }

    /// Adds checkpoints within a run of lines, so that each of them is found fast. Runs have to come in order.
    pub(super) fn add_run(&mut self, text: Text<'_>, run: Block) {
        let is_short = |start: Cursor, at: Cursor| {
            at.line - start.line < CHECKPOINT_LINES && at.offset - start.offset < CHECKPOINT_BYTES
        };
        if is_short(run.start, run.end) {
            return;
        }
        let mut last = run.start;
        let mut at = run.start;
        let mut add = |end: usize| {
            at = Cursor { line: at.line + 1, offset: end };
            if !is_short(last, at) {
                self.checkpoints.push(at);
                last = at;
            }
        };
        let Text { bytes, line_break } = text;
        if line_break == LineBreak::Byte {
            let breaks = memchr::memchr_iter(b'\n', &bytes[run.start.offset..run.end.offset]);
            breaks.for_each(|line_feed| add(run.start.offset + line_feed + 1));
        } else {
            let mut end = run.start.offset;
            while end < run.end.offset {
                end = line_break.line_end(bytes, end);
                add(end);
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.checkpoints.capacity() * size_of::<Cursor>()
    }

    /// The last checkpoint at or before a line.
    fn checkpoint(&self, line: usize) -> Option<Cursor> {
        let after = self.checkpoints.partition_point(|checkpoint| checkpoint.line <= line);
        after.checked_sub(1).map(|at| self.checkpoints[at])
    }
}

/// Reads lines of one side by their numbers; the line after the last one read costs no search.
#[derive(Clone, Debug)]
pub(super) struct LineReader<'a> {
    pub(super) side: &'a SideLines,
    pub(super) text: Text<'a>,
    next: Cursor,
}

impl<'a> LineReader<'a> {
    pub(super) fn new(side: &'a SideLines, text: Text<'a>) -> Self {
        Self { side, text, next: Cursor::default() }
    }

    /// The bytes of a line by its 0-based number. It has to lie within `run`.
    fn line(&mut self, line: usize, run: Block) -> Range<usize> {
        let offset = if self.next.line == line { self.next.offset } else { self.seek(line, run) };
        let end = self.text.line_break.line_end(self.text.bytes, offset);
        self.next = Cursor { line: line + 1, offset: end };
        offset..end
    }

    /// Reads a line as it is shown. `words` gives the changed parts of a byte range of the content.
    pub(super) fn content(
        &mut self,
        line: usize,
        run: Block,
        words: impl FnOnce(Range<usize>) -> Vec<Range<usize>>,
    ) -> RowContent {
        let range = self.line(line, run);
        let words = words(range.clone());
        RowContent::of_line(&self.text.bytes[range], self.text.line_break, self.side.encoding, &words)
    }

    /// Finds the start of a line from the nearest known one.
    fn seek(&self, line: usize, run: Block) -> usize {
        let Text { bytes, line_break } = self.text;
        let known = self.side.checkpoint(line).filter(|known| known.line >= run.start.line).unwrap_or(run.start);
        if run.end.line - line < line - known.line {
            (line..run.end.line).fold(run.end.offset, |end, _| line_break.line_start(bytes, end))
        } else {
            (known.line..line).fold(known.offset, |start, _| line_break.line_end(bytes, start))
        }
    }
}
