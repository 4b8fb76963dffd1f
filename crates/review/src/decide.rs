//! Turns a preview and a verdict into a plan and a message to the agent.

use std::collections::{BTreeMap, BTreeSet};

use sayso_base::{ErrorKind, FileState, WsPath};
use sayso_diff::{Encoding, Selection};
use thiserror::Error;

use crate::agent_message;
use crate::plan::{Plan, PlanStep};
use crate::preview::{CONTEXT, FilePreview, Operation, Placement, Preview};
use crate::verdict::{Answer, FileAnswer, HunkId, Verdict};

/// The result of applying a verdict to a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Steps to apply; empty if everything was denied.
    pub plan: Plan,
    pub files: Vec<FileDecision>,
    /// Message to the agent for the case that the plan is applied.
    pub agent_message: String,
}

/// The decision on one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDecision {
    pub path: WsPath,
    pub acceptance: Acceptance,
}

/// The approved share of a file's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acceptance {
    All,
    /// Some hunks were approved.
    Hunks {
        /// Approved hunks and parts.
        accepted: BTreeSet<HunkId>,
        /// Hunks that were not approved completely.
        rejected: BTreeSet<usize>,
        count: usize,
    },
    /// Other content was approved instead.
    Edited,
    /// The file was denied.
    Denied {
        reason: Option<String>,
    },
}

/// The reason why a verdict does not fit a preview.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerdictError {
    /// The verdict answers another preview.
    #[error("the verdict answers another preview than this one")]
    OtherPreview,
    /// The preview does not have this file.
    #[error("`{0}` is not part of this change")]
    UnknownFile(WsPath),
    /// The file does not have this hunk.
    #[error("`{path}` has no hunk {hunk}; it has {count}")]
    UnknownHunk {
        path: WsPath,
        hunk: HunkId,
        /// Number of hunks in the file.
        count: usize,
    },
    /// The kind of answer does not fit the subject.
    #[error("this answer does not apply to {0}")]
    NotAnAnswer(&'static str),
    /// The proposal has a problem and cannot be approved.
    #[error("`{path}` cannot be changed as proposed: {reason}")]
    Impossible { path: WsPath, reason: String, kind: ErrorKind },
}

impl VerdictError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OtherPreview => ErrorKind::Stale,
            Self::UnknownFile(_) | Self::UnknownHunk { .. } | Self::NotAnAnswer(_) => ErrorKind::InvalidArgs,
            Self::Impossible { kind, .. } => *kind,
        }
    }
}

impl Preview {
    /// Creates the plan that a verdict approves, bound to the previewed bytes.
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
            let (acceptance, after) = file.accept(&self.answer_for(file, &verdict.answer))?;
            files.push(FileDecision { path: file.path.clone(), acceptance });
            if self.placement == Placement::InPlace {
                // The previewed content is already in the tree. A denial reverts it.
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
        let told = agent_message::compose(self, verdict, &files, &plan);
        Ok(Decision { plan, files, agent_message: told })
    }

    fn answer_for(&self, file: &FilePreview, answer: &Answer) -> FileAnswer {
        match answer {
            // `decide` rejects the last two before, because they do not answer files.
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
    /// Returns the approved share and the resulting state; `None` as the state leaves the file unchanged.
    fn accept(&self, answer: &FileAnswer) -> Result<(Acceptance, Option<FileState>), VerdictError> {
        if let FileAnswer::Deny { reason } = answer {
            return Ok((Acceptance::Denied { reason: reason.clone() }, None));
        }
        if let Some(problem) = &self.problem {
            let (reason, kind) = (problem.to_string(), problem.kind());
            return Err(VerdictError::Impossible { path: self.path.clone(), reason, kind });
        }
        match answer {
            FileAnswer::Approve => Ok((Acceptance::All, Some(self.after.clone()))),
            FileAnswer::Hunks { hunks } => self.accept_hunks(hunks),
            FileAnswer::EditedText { text } => {
                let base = self.before.bytes().or(self.after.bytes()).unwrap_or_default();
                let encoded = sayso_diff::encode_like(base, text);
                if !encoded.unrepresentable.is_empty() {
                    let characters: String = encoded.unrepresentable.iter().collect();
                    return Err(self.impossible(format!("its encoding has no way to write {characters}")));
                }
                Ok(self.replace(encoded.bytes))
            }
            FileAnswer::EditedBytes { bytes } => Ok(self.replace(bytes.as_bytes().to_vec())),
            FileAnswer::Deny { .. } => Ok((Acceptance::Denied { reason: None }, None)),
        }
    }

    fn impossible(&self, reason: String) -> VerdictError {
        VerdictError::Impossible { path: self.path.clone(), reason, kind: ErrorKind::Conflict }
    }

    /// `true` if the encoding changes. Accepting a part of such a change would leave a file in two encodings.
    pub fn changes_encoding(&self) -> bool {
        match (self.before.bytes(), self.after.bytes()) {
            (Some(before), Some(after)) if !before.is_ascii() => {
                !before.is_empty() && !after.is_empty() && Encoding::of(before) != Encoding::of(after)
            }
            _ => false,
        }
    }

    fn replace(&self, bytes: Vec<u8>) -> (Acceptance, Option<FileState>) {
        let mode = self.after.mode().or(self.before.mode()).unwrap_or(crate::FileMode::PLAIN);
        let edited = FileState::file(bytes, mode);
        if edited == self.after {
            (Acceptance::All, Some(edited))
        } else if edited == self.before && !matches!(self.operation, Operation::Rename { .. }) {
            // Editing a change until none of it is left denies it.
            (Acceptance::Denied { reason: None }, None)
        } else {
            (Acceptance::Edited, Some(edited))
        }
    }

    fn accept_hunks(&self, wanted: &BTreeSet<HunkId>) -> Result<(Acceptance, Option<FileState>), VerdictError> {
        let diff = self.diff();
        // Diff numbers single changes across the file, as hunks without context. Map hunks and parts to these numbers.
        let mut chosen = BTreeSet::new();
        let mut rejected = BTreeSet::new();
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
                rejected.insert(hunk.number);
            }
            before += parts;
        }
        let count = known.iter().filter(|id| id.part.is_none()).count();
        if let Some(hunk) = wanted.iter().find(|id| !known.contains(id)) {
            return Err(VerdictError::UnknownHunk { path: self.path.clone(), hunk: *hunk, count });
        }
        if rejected.is_empty() && !known.is_empty() {
            return Ok((Acceptance::All, Some(self.after.clone())));
        }
        let links = [&self.before, &self.after].iter().any(|state| matches!(state, FileState::Link { .. }));
        // A symbolic link has no intermediate state, so its target changes completely or not at all.
        if chosen.is_empty() || links {
            return Ok((Acceptance::Denied { reason: None }, None));
        }
        if self.changes_encoding() {
            return Err(self.impossible("its encoding changes, which is all of it or nothing".to_owned()));
        }
        // All numbers were counted above, so this call cannot fail.
        let Ok(Some(bytes)) = diff.accept(0, &Selection::Hunks(chosen)) else {
            return Ok((Acceptance::Denied { reason: None }, None));
        };
        // A partial acceptance keeps the file mode.
        let mode = self.before.mode().or(self.after.mode()).unwrap_or(crate::FileMode::PLAIN);
        let acceptance = Acceptance::Hunks { accepted: wanted.clone(), rejected, count };
        Ok((acceptance, Some(FileState::file(bytes, mode))))
    }

    /// Returns the plan steps that lead to the given state; a rename has two.
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
