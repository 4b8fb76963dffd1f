//! Review of a change of files: from keys that a person presses to the answer of a verdict.
//!
//! [`ChangeReview`] walks through the files of a change. For each file that needs an answer, a [`HunkReview`] walks through the hunks
//! that the engine compared. Both are state machines without input or output: a surface shows the current hunk and its [`Prompt`],
//! reads a line, and passes the [`Key`] back. `--approve` gives the same answers in one text ([`parse_approval`]).

mod approval;
mod edited_lines;
mod files;
mod hunks;
mod keys;
mod unit;

pub use approval::{parse_approval, parse_comment};
pub use edited_lines::{EditableLines, NotEditable};
pub use files::{ChangeAnswer, ChangeReview, FileTurn, asked};
pub use hunks::{FileDiff, FileOutcome, HunkReview, Step};
pub use keys::{Key, Leave, Prompt, unknown_key};
pub use unit::{ChangedLines, Unit};

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests panic to fail")]
mod tests;
