//! Previews: the computed effects of file changes, never executed.

mod compute;
mod edit;
mod net_change;
mod object;
mod problem;
mod rebase;
mod reverse;

use std::collections::BTreeSet;

use sayso_diff::{Counts, Diff, NO_FILE, Rendering, Side, Unified, UnifiedOptions};
use serde::{Deserialize, Serialize};

pub use net_change::{AppliedChange, ReviewState, net_change};
pub use object::{ProposedChange, ProposedChanges, ProposedHunk, ProposedNote};
pub use problem::{Conflict, Problem};
pub use rebase::Rebased;
pub use reverse::{IfChanged, Transition, reverse};

use sayso_base::{ContentHash, FileState, Severity, WsPath};

use crate::note::Note;

/// Number of unchanged lines around a hunk. Hunk numbers depend on it.
pub const CONTEXT: usize = 3;

/// The effects of a set of changes, most important files first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    pub(crate) files: Vec<FilePreview>,
    /// Files that were approved earlier and are only shown for context.
    pub(crate) settled: BTreeSet<WsPath>,
    pub(crate) placement: Placement,
}

/// The place where the previewed content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Not in the tree; approval writes it.
    Proposed,
    /// Already in the tree; denial reverts it.
    InPlace,
}

/// The effect of a change on one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePreview {
    /// Path as the agent named it.
    pub path: WsPath,
    /// Path of the file itself; differs from `path` if that is a symbolic link.
    pub location: WsPath,
    pub operation: Operation,
    pub before: FileState,
    pub after: FileState,
    /// Notes for the reviewer, most severe first.
    pub notes: Vec<Note>,
    /// Reason why the change cannot be made.
    pub problem: Option<Problem>,
}

/// The kind of a file change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Create,
    /// The content or the mode changes.
    Update,
    Delete,
    /// The file is renamed, and its content may change.
    Rename {
        from: WsPath,
    },
}

impl Operation {
    /// Returns the operation as one word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Rename { .. } => "rename",
        }
    }
}

impl Preview {
    pub(crate) fn new(mut files: Vec<FilePreview>) -> Self {
        // The sort is stable, so files of equal weight keep the order of the proposal.
        files.sort_by_key(|file| std::cmp::Reverse(file.weight()));
        Self { files, settled: BTreeSet::new(), placement: Placement::Proposed }
    }

    /// Restores a recorded preview from its files and their settled flags.
    pub fn recorded(files: Vec<(FilePreview, bool)>, placement: Placement) -> Self {
        let settled = files.iter().filter(|(_, settled)| *settled).map(|(file, _)| file.path.clone()).collect();
        Self { files: files.into_iter().map(|(file, _)| file).collect(), settled, placement }
    }

    /// Returns the place of the previewed content.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Returns the files, most important first.
    pub fn files(&self) -> &[FilePreview] {
        &self.files
    }

    /// Returns the files that need a decision.
    pub fn asked(&self) -> impl Iterator<Item = &FilePreview> {
        self.files.iter().filter(|file| !self.settled.contains(&file.path))
    }

    /// `true` if the file was approved earlier and needs no decision.
    pub fn is_settled(&self, path: &WsPath) -> bool {
        self.settled.contains(path)
    }

    /// `true` if the change has no effect.
    pub fn is_unchanged(&self) -> bool {
        self.files.iter().all(|file| file.problem.is_none() && file.is_unchanged())
    }

    /// Returns the files that cannot be changed as proposed.
    pub fn problems(&self) -> impl Iterator<Item = (&WsPath, &Problem)> {
        self.files.iter().filter_map(|file| file.problem.as_ref().map(|problem| (&file.path, problem)))
    }

    /// Returns the hash that a verdict must carry. It covers every path with its current and proposed state.
    pub fn hash(&self) -> ContentHash {
        let mut bound: Vec<_> = self.files.iter().map(FilePreview::bound).collect();
        bound.sort();
        ContentHash::of(bound.join("\n").as_bytes())
    }
}

impl FilePreview {
    /// Returns the line diff.
    pub fn diff(&self) -> Diff<'_> {
        Diff::new(side(&self.before), side(&self.after))
    }

    /// `true` if the file would not change.
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after && !matches!(self.operation, Operation::Rename { .. })
    }

    /// Returns the sort key: files with a problem come first, then files with severe notes.
    fn weight(&self) -> (bool, Option<Severity>) {
        (self.problem.is_some(), self.notes.iter().map(Note::severity).max())
    }

    fn bound(&self) -> String {
        // Serializing this data cannot fail. If it did, no verdict would match, which is safe.
        let state = |state: &FileState| serde_json::to_string(&state.fingerprint()).unwrap_or_default();
        let from = if let Operation::Rename { from } = &self.operation { from.as_str() } else { "" };
        format!("{}\0{}\0{}\0{}", self.location.as_str(), from, state(&self.before), state(&self.after))
    }

    /// Returns the labels above the diff: `path (current)` and `path (proposed)`.
    pub fn labels(&self) -> (String, String) {
        let path = sayso_diff::one_line(self.path.as_str());
        match &self.operation {
            Operation::Create => (NO_FILE.to_owned(), format!("{path} (new file)")),
            Operation::Delete => (format!("{path} (current)"), NO_FILE.to_owned()),
            Operation::Update => (format!("{path} (current)"), format!("{path} (proposed)")),
            Operation::Rename { from } => {
                (format!("{} (current)", sayso_diff::one_line(from.as_str())), format!("{path} (proposed)"))
            }
        }
    }

    /// Returns the whole unified diff, or `(no changes)`; empty if the change has a problem and no diff.
    pub fn unified(&self) -> String {
        let (old_label, new_label) = self.labels();
        let diff = self.diff();
        if diff.is_binary() && !diff.is_unchanged() {
            return format!("Binary files {old_label} and {new_label} differ\n");
        }
        let options = UnifiedOptions {
            context: CONTEXT,
            old_label: &old_label,
            new_label: &new_label,
            rendering: Rendering::Readable,
            limit: None,
        };
        match diff.unified(&options) {
            Unified::Changes { text, .. } => match String::from_utf8(text) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            },
            Unified::NoChanges if self.problem.is_some() => String::new(),
            Unified::NoChanges if self.is_unchanged() => "(no changes)".to_owned(),
            Unified::NoChanges => match &self.operation {
                Operation::Rename { from } => {
                    format!("(renamed from {}, no changes to the content)", sayso_diff::one_line(from.as_str()))
                }
                _ => "(no changes to the content)".to_owned(),
            },
        }
    }

    /// Counts added and removed lines.
    pub fn counts(&self) -> Counts {
        self.diff().counts()
    }
}

fn side(state: &FileState) -> Side<'_> {
    match state {
        FileState::Absent => Side::Absent,
        FileState::File { content, .. } => Side::Present(content.bytes()),
        // Compare a link by its target, as git does.
        FileState::Link { target } => Side::Present(target.as_bytes()),
    }
}
