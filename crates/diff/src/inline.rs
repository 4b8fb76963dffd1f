//! The short form that goes into the stream: a card's few lines (seed `000…`).

use serde::Serialize;

use crate::diff::Diff;
use crate::hunk::LineKind;

/// How many lines a card shows unless told otherwise.
pub const INLINE_LINES: usize = 10;
/// Unchanged lines kept around a change.
const CONTEXT: usize = 1;

/// A line of an inline diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InlineLine {
    /// Added, removed or context.
    #[serde(rename = "type")]
    pub kind: LineKind,
    /// The line without its `\n`; a `\r` belongs to it.
    pub text: String,
    /// Whether it is a last line without a line break.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
    /// Its 1-based number in the old content, unless it is added.
    pub old_number: Option<usize>,
    /// Its 1-based number in the new content, unless it is removed.
    pub new_number: Option<usize>,
}

/// The first lines of a diff, and how many there are in all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InlineDiff {
    /// At most as many as asked for; gaps show in their numbers only.
    pub lines: Vec<InlineLine>,
    /// Whether there are more.
    pub truncated: bool,
    /// How many lines there are, context included.
    pub total_lines: usize,
}

impl InlineDiff {
    /// How many lines are not shown: the N of `... N more lines`.
    pub fn more_lines(&self) -> usize {
        self.total_lines - self.lines.len()
    }
}

impl Diff<'_> {
    /// The first `most` lines; no line beyond them is ever built.
    pub fn inline(&self, most: usize) -> InlineDiff {
        let mut lines = Vec::new();
        let mut total_lines = 0;
        // Recognising the encoding reads the whole content, so it waits until there is a line to show.
        let mut encodings = None;
        for hunk in self.hunks(CONTEXT) {
            total_lines += hunk.line_count();
            for line in hunk.lines().take(most - lines.len()) {
                let (old, new) = *encodings.get_or_insert_with(|| (self.old.encoding(), self.new.encoding()));
                let (text, encoding) = if line.kind == LineKind::Add { (self.new, new) } else { (self.old, old) };
                lines.push(InlineLine {
                    kind: line.kind,
                    text: encoding.decode(text.line_break.without_break(line.bytes)).into_owned(),
                    no_newline: !text.line_break.breaks_before(line.bytes, line.bytes.len()),
                    old_number: line.old_number,
                    new_number: line.new_number,
                });
            }
        }
        InlineDiff { truncated: total_lines > lines.len(), lines, total_lines }
    }
}
