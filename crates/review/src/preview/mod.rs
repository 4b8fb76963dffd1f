//! What a change to files would do: computed, never executed.

mod compute;
mod edit;
mod net;
mod object;
mod problem;
mod rebase;
mod reverse;

use std::collections::BTreeSet;

use sayso_diff::{Counts, Diff, NO_FILE, Rendering, Side, Unified, UnifiedOptions};
use serde::{Deserialize, Serialize};

pub use net::{Happened, Review, net};
pub use object::{ProposedChange, ProposedChanges, ProposedHunk, ProposedNote};
pub use problem::{Clash, Problem};
pub use rebase::Rebased;
pub use reverse::{IfChanged, Transition, reverse};

use sayso_base::{ContentHash, FileState, Severity, WsPath};

use crate::note::Note;

/// Unchanged lines shown around a change; hunks are numbered with this much.
pub const CONTEXT: usize = 3;

/// What a set of changes would do, file by file, those first that a reviewer should see first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    pub(crate) files: Vec<FilePreview>,
    /// Files that were approved before and are only shown.
    pub(crate) settled: BTreeSet<WsPath>,
    pub(crate) placement: Placement,
}

/// Where what is shown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Nowhere yet: an approval makes it happen.
    Proposed,
    /// In the tree already: a refusal takes it back.
    InPlace,
}

/// What a change would do to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePreview {
    /// The file as it was asked for.
    pub path: WsPath,
    /// Where it really is: differs from `path` where that is a symbolic link.
    pub location: WsPath,
    /// What happens to it.
    pub operation: Operation,
    /// What is there now.
    pub before: FileState,
    /// What would be there.
    pub after: FileState,
    /// What a reviewer wants to know, most severe first.
    pub notes: Vec<Note>,
    /// Why it cannot be done, if it cannot.
    pub problem: Option<Problem>,
}

/// What happens to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// It comes to be.
    Create,
    /// Its content or mode changes.
    Update,
    /// It goes.
    Delete,
    /// It gets another name, and perhaps another content.
    Rename {
        /// Its name so far.
        from: WsPath,
    },
}

impl Operation {
    /// One word for it.
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
        // Stable, so that files of the same weight stay in the order they were proposed in.
        files.sort_by_key(|file| std::cmp::Reverse(file.weight()));
        Self { files, settled: BTreeSet::new(), placement: Placement::Proposed }
    }

    /// A preview as it was recorded: each file, and whether it was settled.
    pub fn recorded(files: Vec<(FilePreview, bool)>, placement: Placement) -> Self {
        let settled = files.iter().filter(|(_, settled)| *settled).map(|(file, _)| file.path.clone()).collect();
        Self { files: files.into_iter().map(|(file, _)| file).collect(), settled, placement }
    }

    /// Where what it shows is.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// The files, those first that a reviewer should see first.
    pub fn files(&self) -> &[FilePreview] {
        &self.files
    }

    /// The files that wait for an answer.
    pub fn asked(&self) -> impl Iterator<Item = &FilePreview> {
        self.files.iter().filter(|file| !self.settled.contains(&file.path))
    }

    /// Whether a file was approved before and is not asked about again.
    pub fn is_settled(&self, path: &WsPath) -> bool {
        self.settled.contains(path)
    }

    /// Whether nothing would change.
    pub fn is_unchanged(&self) -> bool {
        self.files.iter().all(|file| file.problem.is_none() && file.is_unchanged())
    }

    /// The files that cannot be changed as proposed.
    pub fn problems(&self) -> impl Iterator<Item = (&WsPath, &Problem)> {
        self.files.iter().filter_map(|file| file.problem.as_ref().map(|problem| (&file.path, problem)))
    }

    /// What a verdict on it is bound to: every path with what is there and what would be.
    pub fn hash(&self) -> ContentHash {
        let mut bound: Vec<_> = self.files.iter().map(FilePreview::bound).collect();
        bound.sort();
        ContentHash::of(bound.join("\n").as_bytes())
    }
}

impl FilePreview {
    /// What differs, line by line.
    pub fn diff(&self) -> Diff<'_> {
        Diff::new(side(&self.before), side(&self.after))
    }

    /// Whether nothing would change.
    pub fn is_unchanged(&self) -> bool {
        self.before == self.after && !matches!(self.operation, Operation::Rename { .. })
    }

    /// How much attention it needs; what cannot be done comes first of all.
    fn weight(&self) -> (bool, Option<Severity>) {
        (self.problem.is_some(), self.notes.iter().map(Note::severity).max())
    }

    fn bound(&self) -> String {
        // Of data that always serialises; were it not to, nothing would match, which is safe.
        let state = |state: &FileState| serde_json::to_string(&state.fingerprint()).unwrap_or_default();
        let from = if let Operation::Rename { from } = &self.operation { from.as_str() } else { "" };
        format!("{}\0{}\0{}\0{}", self.location.as_str(), from, state(&self.before), state(&self.after))
    }

    /// The names to show above the diff: `path (current)` and `path (proposed)`.
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

    /// The whole diff as text, or `(no changes)`; empty where nothing can be shown because it cannot be done.
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

    /// Lines added and removed.
    pub fn counts(&self) -> Counts {
        self.diff().counts()
    }
}

fn side(state: &FileState) -> Side<'_> {
    match state {
        FileState::Absent => Side::Absent,
        FileState::File { content, .. } => Side::Present(content.bytes()),
        // A link is compared by where it leads, as git does.
        FileState::Link { target } => Side::Present(target.as_bytes()),
    }
}
