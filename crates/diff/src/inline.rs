//! The inline form of a diff: the few lines of a card (seed `000…`).

use serde::Serialize;

use crate::diff::Diff;
use crate::hunk::LineKind;

/// Default number of lines on a card.
pub const INLINE_LINES: usize = 10;
/// Number of unchanged lines around a change.
const CONTEXT: usize = 1;

/// A line of an inline diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InlineLine {
    /// Added, removed or context.
    #[serde(rename = "type")]
    pub kind: LineKind,
    /// Text without its `\n`, but including a `\r`.
    pub text: String,
    /// `true` for a last line without a line break.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_newline: bool,
    /// Line number in the old content, from 1; `None` for an added line.
    pub old_number: Option<usize>,
    /// Line number in the new content, from 1; `None` for a removed line.
    pub new_number: Option<usize>,
}

/// The first lines of a diff, with the total number of lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InlineDiff {
    /// Lines up to the requested maximum. Gaps between hunks appear in the line numbers only.
    pub lines: Vec<InlineLine>,
    /// `true` if there are more lines.
    pub truncated: bool,
    /// Total number of lines, including context.
    pub total_lines: usize,
}

impl InlineDiff {
    /// Returns the number of omitted lines: the N of `... N more lines`.
    pub fn more_lines(&self) -> usize {
        self.total_lines - self.lines.len()
    }
}

impl Diff<'_> {
    /// Returns the first `most` lines, and builds no others.
    pub fn inline(&self, most: usize) -> InlineDiff {
        let mut lines = Vec::new();
        let mut total_lines = 0;
        // Detecting the encoding reads the whole content, so postpone it until a line is needed.
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
