//! The preview as JSON for programs, in the form that the user's seed specifies plus the data that surfaces need.

use sayso_base::{ContentHash, FileState, Fingerprint, Severity, WsPath};
use sayso_diff::{Diff, INLINE_LINES, InlineDiff};
use serde::Serialize;

use super::{CONTEXT, FilePreview, Operation, Preview, Problem};
use crate::note::Note;
use crate::verdict::HunkId;

/// The effects of a set of changes (seed `003…`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedChanges {
    pub changes: Vec<ProposedChange>,
    /// `true` if any file has a problem.
    pub has_conflicts: bool,
    /// Problems and important notes, file by file.
    pub warnings: Vec<String>,
    /// Hash that a verdict must carry.
    pub preview: ContentHash,
}

/// The effect on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedChange {
    pub path: WsPath,
    /// `create`, `update`, `delete` or `rename`.
    pub operation: &'static str,
    /// Old path of a renamed file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<WsPath>,
    /// Whole unified diff, or `(no changes)`; empty if a problem prevents a diff.
    pub unified_diff: String,
    /// Proposed text; `None` for a deleted or binary file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_content: Option<String>,
    /// `true` if the file has a problem.
    pub conflict: bool,
    /// Problem, or the most severe note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    pub base: Fingerprint,
    pub result: Fingerprint,
    pub added: usize,
    pub removed: usize,
    /// `true` if the content is binary and has no readable diff.
    pub binary: bool,
    /// Hunks that can be approved separately.
    pub hunks: Vec<ProposedHunk>,
    /// First lines of the diff, for a card.
    pub inline: InlineDiff,
    /// Notes for the reviewer, most severe first.
    pub notes: Vec<ProposedNote>,
    /// `true` if the file was approved earlier and is only shown for context.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
}

/// A hunk with its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedHunk {
    pub id: HunkId,
    /// Number of parts after splitting.
    pub parts: usize,
    /// First line in the current file, from 1.
    pub old_start: usize,
    /// Number of lines in the current file.
    pub old_lines: usize,
    /// First line in the proposed file, from 1.
    pub new_start: usize,
    /// Number of lines in the proposed file.
    pub new_lines: usize,
}

/// A note with its severity and text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedNote {
    #[serde(flatten)]
    pub note: Note,
    pub severity: Severity,
    /// Sentence for a person.
    pub text: String,
}

impl Preview {
    /// Returns the preview as a serializable object.
    pub fn object(&self) -> ProposedChanges {
        let changes: Vec<ProposedChange> =
            self.files().iter().map(|file| file.object(self.is_settled(&file.path))).collect();
        let mut warnings = Vec::new();
        for file in self.files() {
            warnings.extend(file.problem.iter().map(|problem| format!("{}: {problem}", file.path)));
            warnings.extend(file.warnings().map(|note| format!("{}: {note}", file.path)));
        }
        ProposedChanges { has_conflicts: self.problems().next().is_some(), changes, warnings, preview: self.hash() }
    }
}

impl FilePreview {
    fn warnings(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(|note| note.severity() > Severity::Info)
    }

    fn object(&self, settled: bool) -> ProposedChange {
        let diff = self.diff();
        let binary = diff.is_binary();
        let counts = diff.counts();
        let warning = match &self.problem {
            Some(problem) => Some(problem.to_string()),
            None => self.warnings().next().map(ToString::to_string),
        };
        ProposedChange {
            path: self.path.clone(),
            operation: self.operation.name(),
            from: if let Operation::Rename { from } = &self.operation { Some(from.clone()) } else { None },
            unified_diff: self.unified(),
            new_content: self.new_text(),
            conflict: self.problem.is_some(),
            warning,
            problem: self.problem.clone(),
            base: self.before.fingerprint(),
            result: self.after.fingerprint(),
            added: counts.added,
            removed: counts.removed,
            binary,
            hunks: hunks(&diff),
            inline: diff.inline(if binary { 0 } else { INLINE_LINES }),
            notes: self.notes.iter().map(ProposedNote::new).collect(),
            settled,
        }
    }

    /// Returns the proposed text with `\n` line endings; `None` for a deleted or binary file.
    fn new_text(&self) -> Option<String> {
        match &self.after {
            FileState::File { content, .. } if self.problem.is_none() => {
                sayso_diff::plain_text(content.bytes()).map(std::borrow::Cow::into_owned)
            }
            _ => None,
        }
    }
}

fn hunks(diff: &Diff<'_>) -> Vec<ProposedHunk> {
    diff.hunks(CONTEXT)
        .map(|hunk| ProposedHunk {
            id: HunkId::whole(hunk.number),
            parts: hunk.changes().len(),
            old_start: hunk.old.start.line + 1,
            old_lines: hunk.old.lines(),
            new_start: hunk.new.start.line + 1,
            new_lines: hunk.new.lines(),
        })
        .collect()
}

impl ProposedNote {
    pub fn new(note: &Note) -> Self {
        Self { note: note.clone(), severity: note.severity(), text: note.to_string() }
    }
}
