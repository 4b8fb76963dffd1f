//! Hunks: changes with the unchanged lines around them, as data.

use std::ops::Range;

use serde::Serialize;

use crate::change::{Block, Change, Cursor};
use crate::diff::Diff;
use crate::words::{self, WordSpans};

/// What a line is to the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// Only the new side has it.
    Add,
    /// Only the old side has it.
    Remove,
    /// Both have it.
    Context,
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Added, removed or context.
    pub kind: LineKind,
    /// Its 1-based number in the old content, unless it is added.
    pub old_number: Option<usize>,
    /// Its 1-based number in the new content, unless it is removed.
    pub new_number: Option<usize>,
    /// Its bytes, line break included; the last line of a content may have none.
    pub bytes: &'a [u8],
}

/// A line with the parts of it that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedLine<'a> {
    /// The line.
    pub line: Line<'a>,
    /// Byte ranges within the line that differ from its counterpart; empty where the whole line is new or gone.
    pub spans: Vec<Range<usize>>,
}

/// One or more changes that lie close together, with their context.
#[derive(Clone, Copy, Debug)]
pub struct Hunk<'d, 'a> {
    diff: &'d Diff<'a>,
    changes: &'d [Change],
    /// Its 1-based number in the diff.
    pub number: usize,
    /// Its old lines, context included.
    pub old: Block,
    /// Its new lines, context included.
    pub new: Block,
}

/// The hunks of a diff, one after the other.
#[derive(Clone, Debug)]
pub struct Hunks<'d, 'a> {
    diff: &'d Diff<'a>,
    context: usize,
    /// The first change that is in no hunk yet.
    next: usize,
    count: usize,
}

impl<'d, 'a> Hunks<'d, 'a> {
    pub(crate) fn new(diff: &'d Diff<'a>, context: usize) -> Self {
        Self { diff, context, next: 0, count: 0 }
    }
}

impl<'d, 'a> Iterator for Hunks<'d, 'a> {
    type Item = Hunk<'d, 'a>;

    fn next(&mut self) -> Option<Hunk<'d, 'a>> {
        let Self { diff, context, next: first, .. } = *self;
        let changes = diff.changes();
        let top = changes.get(first)?;
        let near = |pair: &[Change]| pair[1].old.start.line - pair[0].old.end.line <= context.saturating_mul(2);
        let last = first + changes[first..].windows(2).take_while(|pair| near(pair)).count();
        let bottom = &changes[last];
        let above = if first == 0 { 0 } else { changes[first - 1].old.end.line };
        let start = diff.up((top.old.start, top.new.start), (top.old.start.line - above).min(context));
        // The next hunk is more than twice the context away, so it does not limit this one.
        let end = diff.down((bottom.old.end, bottom.new.end), context);
        self.next = last + 1;
        self.count += 1;
        Some(Hunk {
            diff,
            changes: &changes[first..=last],
            number: self.count,
            old: Block { start: start.0, end: end.0 },
            new: Block { start: start.1, end: end.1 },
        })
    }
}

impl<'a> Diff<'a> {
    /// A hunk of one change alone, by its place among [`changes`](Self::changes): what splitting a hunk gives. Its context ends
    /// where the next change begins.
    pub fn part(&self, index: usize, context: usize) -> Option<Hunk<'_, 'a>> {
        let changes = self.changes();
        let change = changes.get(index)?;
        let above = if index == 0 { 0 } else { changes[index - 1].old.end.line };
        let below = changes.get(index + 1).map_or(usize::MAX, |next| next.old.start.line - change.old.end.line);
        let start = self.up((change.old.start, change.new.start), (change.old.start.line - above).min(context));
        let end = self.down((change.old.end, change.new.end), below.min(context));
        Some(Hunk {
            diff: self,
            changes: &changes[index..=index],
            number: index + 1,
            old: Block { start: start.0, end: end.0 },
            new: Block { start: start.1, end: end.1 },
        })
    }
}

impl<'d, 'a> Hunk<'d, 'a> {
    /// The changes it holds.
    pub fn changes(&self) -> &'d [Change] {
        self.changes
    }

    /// How many lines it shows.
    pub fn line_count(&self) -> usize {
        self.old.lines() + self.changes.iter().map(|change| change.new.lines()).sum::<usize>()
    }

    /// Its lines in order, none of them copied.
    pub fn lines(&self) -> Lines<'d, 'a> {
        Lines { diff: self.diff, changes: self.changes, old: self.old.start, new: self.new.start, end: self.old.end }
    }

    /// The parts of its changed lines that changed.
    pub fn word_spans(&self) -> WordSpans {
        words::spans(self.diff, self.changes)
    }

    /// Its lines with the changed parts of each marked.
    pub fn marked_lines(&self) -> Vec<MarkedLine<'a>> {
        let spans = self.word_spans();
        let (mut old, mut new) = (self.old.start.offset, self.new.start.offset);
        self.lines()
            .map(|line| {
                let length = line.bytes.len();
                let spans = match line.kind {
                    LineKind::Add => within(&spans.new, new..new + length),
                    LineKind::Remove => within(&spans.old, old..old + length),
                    LineKind::Context => Vec::new(),
                };
                old += if line.kind == LineKind::Add { 0 } else { length };
                new += if line.kind == LineKind::Remove { 0 } else { length };
                MarkedLine { line, spans }
            })
            .collect()
    }
}

/// The parts of `spans` that lie in `range`, counted from its start.
fn within(spans: &[Range<usize>], range: Range<usize>) -> Vec<Range<usize>> {
    let first = spans.partition_point(|span| span.end <= range.start);
    spans[first..]
        .iter()
        .take_while(|span| span.start < range.end)
        .map(|span| span.start.max(range.start) - range.start..span.end.min(range.end) - range.start)
        .collect()
}

/// The lines of a hunk, from top to bottom: of each change first what goes, then what comes.
#[derive(Clone, Debug)]
pub struct Lines<'d, 'a> {
    diff: &'d Diff<'a>,
    changes: &'d [Change],
    old: Cursor,
    new: Cursor,
    end: Cursor,
}

impl<'a> Iterator for Lines<'_, 'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let kind = loop {
            match self.changes.first() {
                Some(change) if self.old.line >= change.old.start.line => {
                    if self.old.line < change.old.end.line {
                        break LineKind::Remove;
                    }
                    if self.new.line < change.new.end.line {
                        break LineKind::Add;
                    }
                    self.changes = &self.changes[1..];
                }
                _ if self.old.line < self.end.line => break LineKind::Context,
                _ => return None,
            }
        };
        let (text, start) = match kind {
            LineKind::Add => (self.diff.new, self.new.offset),
            LineKind::Remove | LineKind::Context => (self.diff.old, self.old.offset),
        };
        let bytes = &text.bytes[start..text.line_break.line_end(text.bytes, start)];
        let line = Line {
            kind,
            old_number: (kind != LineKind::Add).then_some(self.old.line + 1),
            new_number: (kind != LineKind::Remove).then_some(self.new.line + 1),
            bytes,
        };
        let after = |cursor: Cursor| Cursor { line: cursor.line + 1, offset: cursor.offset + bytes.len() };
        if kind != LineKind::Add {
            self.old = after(self.old);
        }
        if kind != LineKind::Remove {
            self.new = after(self.new);
        }
        Some(line)
    }
}
