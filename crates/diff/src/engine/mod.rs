//! Computes the changes between two byte strings.
//!
//! The stages: trim the common prefix and suffix with the speed of `memcmp`, intern the lines in between ([`intern`]),
//! find the edits ([`solve`]), and move each edit to its most readable position ([`slide`]). The work of every stage is
//! bounded by the input size times its logarithm, or times a constant limit.

mod chain;
mod greedy;
mod intern;
mod runs;
mod slide;
mod solve;

pub(crate) use intern::{Slices, intern_slices};
pub(crate) use solve::{Edit, Solver};

use crate::change::{Block, Change, Cursor};
use crate::lines::{LineBreak, common_prefix, common_suffix};
use crate::text_format::Encoding;

/// A content with its line break.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) line_break: LineBreak,
}

impl Text<'_> {
    /// Returns the encoding of the lines; the line break determines it for UTF-16.
    pub(crate) fn encoding(self) -> Encoding {
        match self.line_break {
            LineBreak::Utf16Le => Encoding::Utf16Le,
            LineBreak::Utf16Be => Encoding::Utf16Be,
            LineBreak::Byte => Encoding::of(self.bytes),
        }
    }
}

/// Returns the changes from `old` to `new` in order, separated by unchanged lines.
pub(crate) fn changes(old: Text<'_>, new: Text<'_>) -> Vec<Change> {
    let (prefix, suffix) = common_lines(old, new);
    let old_middle = &old.bytes[prefix..old.bytes.len() - suffix];
    let new_middle = &new.bytes[prefix..new.bytes.len() - suffix];
    if old_middle.is_empty() && new_middle.is_empty() {
        return Vec::new();
    }
    let start = Cursor { line: old.line_break.count(old.bytes, 0, prefix), offset: prefix };
    let mut changes = if can_share(old_middle, old.line_break, new_middle, new.line_break) {
        middle_changes(old_middle, old.line_break, new_middle, new.line_break, start)
    } else {
        let block = |text: Text<'_>| {
            let end = text.bytes.len() - suffix;
            let line = start.line + text.line_break.count(text.bytes, start.offset, end);
            Block { start, end: Cursor { line, offset: end } }
        };
        vec![Change { old: block(old), new: block(new) }]
    };
    slide::settle(&mut changes, old, new);
    changes
}

/// Returns the sizes of the common prefix and the common suffix in whole lines, in bytes.
fn common_lines(old: Text<'_>, new: Text<'_>) -> (usize, usize) {
    if old.line_break != new.line_break {
        let equal = old.bytes == new.bytes;
        return (if equal { old.bytes.len() } else { 0 }, 0);
    }
    let line_break = old.line_break;
    let mut prefix = common_prefix(old.bytes, new.bytes);
    if prefix == old.bytes.len() && prefix == new.bytes.len() {
        return (prefix, 0);
    }
    if !line_break.breaks_before(old.bytes, prefix) {
        prefix = if prefix == 0 { 0 } else { line_break.line_start(old.bytes, prefix) };
    }
    let (old_rest, new_rest) = (&old.bytes[prefix..], &new.bytes[prefix..]);
    let mut suffix = common_suffix(old_rest, new_rest);
    if line_break != LineBreak::Byte {
        // In UTF-16, equal bytes are equal code units only at even offsets on both sides.
        suffix -= suffix.min((old.bytes.len() - suffix) % 2);
        if !(new.bytes.len() - suffix).is_multiple_of(2) {
            suffix = 0;
        }
    }
    let starts_line = |text: &[u8], suffix: usize| {
        let at = text.len() - suffix;
        at == prefix || line_break.breaks_before(text, at)
    };
    if suffix > 0 && !(starts_line(old.bytes, suffix) && starts_line(new.bytes, suffix)) {
        suffix = old.bytes.len() - line_break.line_end(old.bytes, old.bytes.len() - suffix);
    }
    (prefix, suffix)
}

/// `true` if the trimmed middles can have a line in common. Two single lines cannot, because they would have been
/// trimmed. Contents of 4 GiB are not compared.
fn can_share(old: &[u8], old_break: LineBreak, new: &[u8], new_break: LineBreak) -> bool {
    let is_small = |middle: &[u8]| u32::try_from(middle.len()).is_ok() && !middle.is_empty();
    let is_one_line = |middle: &[u8], line_break: LineBreak| line_break.line_end(middle, 0) == middle.len();
    is_small(old) && is_small(new) && !(is_one_line(old, old_break) && is_one_line(new, new_break))
}

fn middle_changes(old: &[u8], old_break: LineBreak, new: &[u8], new_break: LineBreak, start: Cursor) -> Vec<Change> {
    let interned = intern::intern_lines(old, old_break, new, new_break);
    let cursor = |starts: &[u32], line: u32| Cursor {
        line: start.line + line as usize,
        offset: start.offset + starts[line as usize] as usize,
    };
    let block = |starts: &[u32], lines: std::ops::Range<u32>| Block {
        start: cursor(starts, lines.start),
        end: cursor(starts, lines.end),
    };
    Solver::default()
        .solve(&interned.old, &interned.new, interned.bound)
        .into_iter()
        .map(|Edit { old, new }| Change {
            old: block(&interned.old_starts, old),
            new: block(&interned.new_starts, new),
        })
        .collect()
}
