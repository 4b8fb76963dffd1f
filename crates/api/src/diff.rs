//! Diffs as typed data: subjects, files and rows with their syntax.

use std::ops::Range;

use sayso_diff::{Counts, DiffRow, Encoding, HunkRows, TextFormat};
use sayso_review::{ChangeId, ContentHash, Fingerprint, IfChanged, Operation, Problem, RequestId, SnapshotId, Target};

use crate::proto::SyntaxClass;

/// Origin of the versions that a diff compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffSubject {
    /// The proposed effect of a change.
    Change(ChangeId),
    /// The applied effect of a change.
    AppliedChange(ChangeId),
    /// The net effect of a turn's applied changes.
    Turn { session: String, turn: String },
    /// The planned effect of an undo.
    Undo { target: Target, if_changed: IfChanged },
    /// The planned effect of a redo.
    Redo { target: Target, if_changed: IfChanged },
    /// The planned effect of restoring a snapshot.
    Restore(SnapshotId),
    /// The three versions of a stale change, or of the change that merges it.
    Conflict(ChangeId),
    /// The edits of a request.
    Request(RequestId),
}

/// The reason why a file has no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoDiffReason {
    /// The content is equal. The mode or the name may differ.
    Unchanged,
    Binary,
    /// The content is no longer stored.
    ContentGone,
    /// Policy does not allow the caller to read the file.
    Withheld,
    /// The file was too large for a list. A page of it has rows.
    NotCompared,
}

/// Format and length of one side of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffSide {
    /// The encoding of a binary side is meaningless.
    pub format: TextFormat,
    pub lines: usize,
}

/// A file of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffFile {
    /// Key of the file in calls. For a request, path of the edited value.
    pub path: String,
    /// Display name of a request's section. `None` for files.
    pub label: Option<String>,
    pub operation: Operation,
    /// State of the old side.
    pub before: Fingerprint,
    /// State of the new side.
    pub after: Fingerprint,
    /// `None` if there is no old file, or if it was not compared.
    pub old_side: Option<DiffSide>,
    /// `None` if there is no new file, or if it was not compared.
    pub new_side: Option<DiffSide>,
    /// Changed lines of the whole file.
    pub counts: Counts,
    /// Hunks of the whole file.
    pub hunks: usize,
    /// Conflicts of the whole file. 0 for other subjects.
    pub conflicts: usize,
    /// Rows of the whole file. `None` in a list.
    pub rows: Option<usize>,
    /// Reason why the change cannot be applied.
    pub problem: Option<Problem>,
    /// `None` if the file has rows.
    pub no_diff: Option<NoDiffReason>,
}

impl DiffFile {
    /// `true` if the file would stay as it is.
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after && !matches!(self.operation, Operation::Rename { .. })
    }

    /// `true` if the two sides have different encodings.
    pub fn has_two_encodings(&self) -> bool {
        let encoding = |side: &Option<DiffSide>| side.map(|side| side.format.encoding);
        let pair: Option<(Encoding, Encoding)> = encoding(&self.old_side).zip(encoding(&self.new_side));
        pair.is_some_and(|(old, new)| old != new)
    }
}

/// The files of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffFiles {
    /// Hash of the compared versions. For a proposed change and a plan, the hash that verdicts quote.
    pub hash: ContentHash,
    /// In review order.
    pub files: Vec<DiffFile>,
    /// Changed lines of all files.
    pub counts: Counts,
}

/// A token of a row's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxToken {
    /// In bytes of the text, between characters.
    pub range: Range<usize>,
    pub class: SyntaxClass,
}

/// A row with the syntax of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighlightedRow {
    pub row: DiffRow,
    /// In order. Empty for unknown languages and long lines.
    pub syntax: Vec<SyntaxToken>,
}

/// Consecutive rows of a file in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffPage {
    /// Hash of the compared versions.
    pub hash: ContentHash,
    pub file: DiffFile,
    /// Number of the first row, from 0.
    pub from_row: usize,
    pub rows: Vec<HighlightedRow>,
    /// Hunks with a row of the page.
    pub hunks: Vec<HunkRows>,
    /// `true` if more rows follow.
    pub has_more: bool,
}

/// A hunk with all its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffHunk {
    pub place: HunkRows,
    pub rows: Vec<HighlightedRow>,
}
