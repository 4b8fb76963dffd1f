//! Hunks: changes with surrounding unchanged lines.

use std::ops::Range;

use serde::Serialize;

use crate::change::{Block, Change, Cursor};
use crate::diff::Diff;
use crate::words::{self, WordSpans};

/// The kind of a line in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// Only the new side has the line.
    Add,
    /// Only the old side has the line.
    Remove,
    /// Both sides have the line.
    Context,
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Added, removed or context.
    pub kind: LineKind,
    /// Line number in the old content, from 1; `None` for an added line.
    pub old_number: Option<usize>,
    /// Line number in the new content, from 1; `None` for a removed line.
    pub new_number: Option<usize>,
    /// Bytes including the line break, which the last line of a content may lack.
    pub bytes: &'a [u8],
}

/// A line with its changed parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedLine<'a> {
    pub line: Line<'a>,
    /// Byte ranges within the line that differ from its counterpart; empty if the whole line is new or removed.
    pub spans: Vec<Range<usize>>,
}

/// One or more nearby changes with their context.
#[derive(Clone, Copy, Debug)]
pub struct Hunk<'d, 'a> {
    diff: &'d Diff<'a>,
    changes: &'d [Change],
    /// Number within the diff, from 1.
    pub number: usize,
    /// Range in the old content, including context.
    pub old: Block,
    /// Range in the new content, including context.
    pub new: Block,
}

/// An iterator over the hunks of a diff.
#[derive(Clone, Debug)]
pub struct Hunks<'d, 'a> {
    diff: &'d Diff<'a>,
    context: usize,
    /// Index of the first change that is not yet in a hunk.
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
        // The next hunk is more than twice the context away and does not limit this one.
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
    /// Returns a hunk of a single change, by its index in [`changes`](Self::changes). Its context ends where the next
    /// change begins.
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
    /// Returns the changes of the hunk.
    pub fn changes(&self) -> &'d [Change] {
        self.changes
    }

    /// Returns the number of lines.
    pub fn line_count(&self) -> usize {
        self.old.lines() + self.changes.iter().map(|change| change.new.lines()).sum::<usize>()
    }

    /// Returns the lines in order, without copying them.
    pub fn lines(&self) -> Lines<'d, 'a> {
        Lines { diff: self.diff, changes: self.changes, old: self.old.start, new: self.new.start, end: self.old.end }
    }

    /// Returns the changed parts of the changed lines.
    pub fn word_spans(&self) -> WordSpans {
        words::spans(self.diff, self.changes)
    }

    /// Returns the lines with their changed parts.
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

/// Returns the parts of `spans` within `range`, relative to its start.
pub(crate) fn within(spans: &[Range<usize>], range: Range<usize>) -> Vec<Range<usize>> {
    let first = spans.partition_point(|span| span.end <= range.start);
    spans[first..]
        .iter()
        .take_while(|span| span.start < range.end)
        .map(|span| span.start.max(range.start) - range.start..span.end.min(range.end) - range.start)
        .collect()
}

/// An iterator over the lines of a hunk; in each change, removed lines precede added lines.
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
