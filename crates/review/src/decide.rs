//! From a preview and a verdict to a plan, and to what the agent is told.

use std::collections::{BTreeMap, BTreeSet};

use sayso_base::{ErrorKind, FileState, WsPath};
use sayso_diff::{Encoding, Selection};
use thiserror::Error;

use crate::plan::{Plan, PlanStep};
use crate::preview::{CONTEXT, FilePreview, Operation, Placement, Preview};
use crate::told;
use crate::verdict::{Answer, FileAnswer, HunkId, Verdict};

/// What follows from a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is to happen; nothing, if nothing was approved.
    pub plan: Plan,
    /// What was decided about each file.
    pub files: Vec<FileDecision>,
    /// What the agent is told, once the plan was carried out.
    pub told: String,
}

/// What was decided about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDecision {
    /// The file as it was shown.
    pub path: WsPath,
    /// How much of it.
    pub taken: Taken,
}

/// How much of a file's change was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All of it.
    All,
    /// Some hunks.
    Hunks {
        /// Those approved.
        taken: BTreeSet<HunkId>,
        /// The hunks of which at least a part was not.
        refused: BTreeSet<usize>,
        /// How many there are.
        count: usize,
    },
    /// Another content instead.
    Edited,
    /// Nothing.
    Nothing {
        /// Why.
        reason: Option<String>,
    },
}

/// Why a verdict does not fit the preview.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerdictError {
    /// It answers something else.
    #[error("the verdict answers another preview than this one")]
    OtherPreview,
    /// A file that the preview does not have.
    #[error("`{0}` is not part of this change")]
    UnknownFile(WsPath),
    /// A hunk that the file does not have.
    #[error("`{path}` has no hunk {hunk}; it has {count}")]
    UnknownHunk {
        /// The file.
        path: WsPath,
        /// The number.
        hunk: HunkId,
        /// How many there are.
        count: usize,
    },
    /// An answer to something else.
    #[error("that is no answer about {0}")]
    NotAnAnswer(&'static str),
    /// What cannot be done cannot be approved.
    #[error("`{path}` cannot be changed as proposed: {reason}")]
    Impossible {
        /// The file.
        path: WsPath,
        /// Why.
        reason: String,
        /// What sort of failure that is.
        kind: ErrorKind,
    },
}

impl VerdictError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OtherPreview => ErrorKind::Stale,
            Self::UnknownFile(_) | Self::UnknownHunk { .. } | Self::NotAnAnswer(_) => ErrorKind::InvalidArgs,
            Self::Impossible { kind, .. } => *kind,
        }
    }
}

impl Preview {
    /// Makes a plan of what a verdict approves, bound to the bytes that were shown.
    pub fn decide(&self, verdict: &Verdict) -> Result<Decision, VerdictError> {
        if verdict.preview != self.hash() {
            return Err(VerdictError::OtherPreview);
        }
        if matches!(verdict.answer, Answer::Command { .. } | Answer::Arguments { .. }) {
            return Err(VerdictError::NotAnAnswer("files"));
        }
        let named = if let Answer::Files { files, .. } = &verdict.answer { Some(files) } else { None };
        let known: BTreeSet<&WsPath> = self.files.iter().map(|file| &file.path).collect();
        if let Some(path) = named.and_then(|files| files.keys().find(|path| !known.contains(path))) {
            return Err(VerdictError::UnknownFile(path.clone()));
        }
        let mut steps: BTreeMap<WsPath, PlanStep> = BTreeMap::new();
        let mut renames = BTreeMap::new();
        let mut files = Vec::new();
        for file in &self.files {
            let (taken, after) = file.take(&self.answer_for(file, &verdict.answer))?;
            files.push(FileDecision { path: file.path.clone(), taken });
            if self.placement == Placement::InPlace {
                // What was shown is there; what was not taken of it goes.
                let after = after.unwrap_or_else(|| file.before.clone());
                let path = file.location.clone();
                steps.insert(path.clone(), PlanStep { path, before: file.after.clone(), after });
                continue;
            }
            let Some(after) = after else { continue };
            if let Operation::Rename { from } = &file.operation {
                renames.insert(file.location.clone(), from.clone());
            }
            for step in file.steps(after) {
                steps.insert(step.path.clone(), step);
            }
        }
        let plan = Plan::new(steps.into_values().filter(|step| step.before != step.after).collect(), renames);
        let told = told::compose(self, verdict, &files, &plan);
        Ok(Decision { plan, files, told })
    }

    fn answer_for(&self, file: &FilePreview, answer: &Answer) -> FileAnswer {
        match answer {
            // `decide` refuses the other two, which are no answers about files.
            Answer::Approve | Answer::Command { .. } | Answer::Arguments { .. } => FileAnswer::Approve,
            Answer::Deny { reason } => FileAnswer::Deny { reason: reason.clone() },
            Answer::Files { files, reason } => match files.get(&file.path) {
                Some(answer) => answer.clone(),
                None if self.is_settled(&file.path) => FileAnswer::Approve,
                None => FileAnswer::Deny { reason: reason.clone() },
            },
        }
    }
}

impl FilePreview {
    /// How much of the file an answer takes, and what the file is afterwards.
    fn take(&self, answer: &FileAnswer) -> Result<(Taken, Option<FileState>), VerdictError> {
        if let FileAnswer::Deny { reason } = answer {
            return Ok((Taken::Nothing { reason: reason.clone() }, None));
        }
        if let Some(problem) = &self.problem {
            let (reason, kind) = (problem.to_string(), problem.kind());
            return Err(VerdictError::Impossible { path: self.path.clone(), reason, kind });
        }
        match answer {
            FileAnswer::Approve => Ok((Taken::All, Some(self.after.clone()))),
            FileAnswer::Hunks { hunks } => self.take_hunks(hunks),
            FileAnswer::EditedText { text } => {
                let base = self.before.bytes().or(self.after.bytes()).unwrap_or_default();
                let alike = sayso_diff::like(base, text);
                if !alike.unrepresentable.is_empty() {
                    let characters: String = alike.unrepresentable.iter().collect();
                    return Err(self.impossible(format!("its encoding has no way to write {characters}")));
                }
                Ok(self.replace(alike.bytes))
            }
            FileAnswer::EditedBytes { bytes } => Ok(self.replace(bytes.as_bytes().to_vec())),
            FileAnswer::Deny { .. } => Ok((Taken::Nothing { reason: None }, None)),
        }
    }

    fn impossible(&self, reason: String) -> VerdictError {
        VerdictError::Impossible { path: self.path.clone(), reason, kind: ErrorKind::Conflict }
    }

    /// Whether the bytes stand for characters in another way afterwards, so that a part of the change would leave a file in two
    /// encodings.
    pub fn changes_encoding(&self) -> bool {
        match (self.before.bytes(), self.after.bytes()) {
            (Some(before), Some(after)) if !before.is_ascii() => {
                !before.is_empty() && !after.is_empty() && Encoding::of(before) != Encoding::of(after)
            }
            _ => false,
        }
    }

    fn replace(&self, bytes: Vec<u8>) -> (Taken, Option<FileState>) {
        let mode = self.after.mode().or(self.before.mode()).unwrap_or(crate::FileMode::PLAIN);
        let edited = FileState::file(bytes, mode);
        if edited == self.after {
            (Taken::All, Some(edited))
        } else if edited == self.before && !matches!(self.operation, Operation::Rename { .. }) {
            // Whoever edits a change until nothing of it is left has refused it.
            (Taken::Nothing { reason: None }, None)
        } else {
            (Taken::Edited, Some(edited))
        }
    }

    fn take_hunks(&self, wanted: &BTreeSet<HunkId>) -> Result<(Taken, Option<FileState>), VerdictError> {
        let diff = self.diff();
        // The smallest units, which are the hunks without context, numbered through the file.
        let mut chosen = BTreeSet::new();
        let mut refused = BTreeSet::new();
        let mut known = BTreeSet::new();
        let mut before = 0;
        for hunk in diff.hunks(CONTEXT) {
            let parts = hunk.changes().len();
            let whole = wanted.contains(&HunkId::whole(hunk.number));
            known.insert(HunkId::whole(hunk.number));
            let mut all = true;
            for part in 1..=parts {
                let id = HunkId { hunk: hunk.number, part: Some(part) };
                known.insert(id);
                if whole || wanted.contains(&id) {
                    chosen.insert(before + part);
                } else {
                    all = false;
                }
            }
            if !all {
                refused.insert(hunk.number);
            }
            before += parts;
        }
        let count = known.iter().filter(|id| id.part.is_none()).count();
        if let Some(hunk) = wanted.iter().find(|id| !known.contains(id)) {
            return Err(VerdictError::UnknownHunk { path: self.path.clone(), hunk: *hunk, count });
        }
        if refused.is_empty() && !known.is_empty() {
            return Ok((Taken::All, Some(self.after.clone())));
        }
        let links = [&self.before, &self.after].iter().any(|state| matches!(state, FileState::Link { .. }));
        // A symbolic link leads to one place or to another, and to nothing in between.
        if chosen.is_empty() || links {
            return Ok((Taken::Nothing { reason: None }, None));
        }
        if self.changes_encoding() {
            return Err(self.impossible("its encoding changes, which is all of it or nothing".to_owned()));
        }
        // Every number is one of a hunk that was counted just now, so nothing is rejected.
        let Ok(Some(bytes)) = diff.accept(0, &Selection::Hunks(chosen)) else {
            return Ok((Taken::Nothing { reason: None }, None));
        };
        // The mode belongs to the change as a whole.
        let mode = self.before.mode().or(self.after.mode()).unwrap_or(crate::FileMode::PLAIN);
        let taken = Taken::Hunks { taken: wanted.clone(), refused, count };
        Ok((taken, Some(FileState::file(bytes, mode))))
    }

    /// What happens at which path, if this is the file's state afterwards.
    pub fn steps(&self, after: FileState) -> Vec<PlanStep> {
        let path = self.location.clone();
        match &self.operation {
            Operation::Rename { from } => vec![
                PlanStep { path: from.clone(), before: self.before.clone(), after: FileState::Absent },
                PlanStep { path, before: FileState::Absent, after },
            ],
            _ => vec![PlanStep { path, before: self.before.clone(), after }],
        }
    }
}
