//! A preview as the object that programs get: the seed's, and what a surface needs besides.

use sayso_base::{ContentHash, FileState, Fingerprint, Severity, WsPath};
use sayso_diff::{Diff, INLINE_LINES, InlineDiff};
use serde::Serialize;

use super::{CONTEXT, FilePreview, Operation, Preview, Problem};
use crate::note::Note;
use crate::verdict::HunkId;

/// What a set of changes would do (seed `003…`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedChanges {
    /// One for each file.
    pub changes: Vec<ProposedChange>,
    /// Whether any of them cannot be made as proposed.
    pub has_conflicts: bool,
    /// What is wrong or worth a look, file by file.
    pub warnings: Vec<String>,
    /// What a verdict has to name.
    pub preview: ContentHash,
}

/// What would happen to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedChange {
    /// The file.
    pub path: WsPath,
    /// `create`, `update`, `delete` or `rename`.
    pub operation: &'static str,
    /// The old name of a file that is renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<WsPath>,
    /// The whole diff, or `(no changes)`; empty if there is none because of a conflict.
    pub unified_diff: String,
    /// The new text, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_content: Option<String>,
    /// Whether it cannot be made as proposed.
    pub conflict: bool,
    /// Why not, or what is most worth a look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The conflict as data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// What is there now.
    pub base: Fingerprint,
    /// What would be there.
    pub result: Fingerprint,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// Whether lines of it would be noise.
    pub binary: bool,
    /// What can be approved on its own.
    pub hunks: Vec<ProposedHunk>,
    /// The first lines, for a card.
    pub inline: InlineDiff,
    /// What a reviewer wants to know, most severe first.
    pub notes: Vec<ProposedNote>,
    /// Whether it was approved before and is only shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
}

/// A hunk by its number and place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedHunk {
    /// Its number.
    pub id: HunkId,
    /// How many parts splitting gives.
    pub parts: usize,
    /// The line it starts at now, from 1.
    pub old_start: usize,
    /// How many lines it covers now.
    pub old_lines: usize,
    /// The line it would start at.
    pub new_start: usize,
    /// How many lines it would cover.
    pub new_lines: usize,
}

/// A note with its weight and its sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProposedNote {
    /// As data.
    #[serde(flatten)]
    pub note: Note,
    /// How much it matters.
    pub severity: Severity,
    /// For a person.
    pub text: String,
}

impl Preview {
    /// The object that programs get.
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

    /// The proposed text as a model would write it; none for what is removed or is not text.
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
    /// Of a note.
    pub fn new(note: &Note) -> Self {
        Self { note: note.clone(), severity: note.severity(), text: note.to_string() }
    }
}
