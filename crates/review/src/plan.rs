//! What is to happen to the tree, as a verdict made it.

use std::collections::BTreeMap;

use sayso_base::{FileState, Fingerprint, WsPath};
use serde::{Deserialize, Serialize};

/// What is to happen to the tree: all of it or nothing.
///
/// There is no way to make one but from a verdict on a preview, see [`Preview::decide`](crate::Preview::decide).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<PlanStep>,
    /// The old names of files that are renamed, by their new ones.
    renames: BTreeMap<WsPath, WsPath>,
}

/// What is to happen at one path. No two steps of a plan have the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// Where.
    pub path: WsPath,
    /// What has to be there; otherwise nothing of the plan happens.
    pub before: FileState,
    /// What is there afterwards.
    pub after: FileState,
}

/// A step as it is recorded, with hashes in place of contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStep {
    /// Where.
    pub path: WsPath,
    /// What was there.
    pub before: Fingerprint,
    /// What is there afterwards.
    pub after: Fingerprint,
}

/// What is written down before the first byte of a plan reaches the tree, so that a start after a crash knows what to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyRecord {
    /// A random name that the temporary files of this plan carry.
    pub token: String,
    /// What happens.
    pub steps: Vec<RecordedStep>,
    /// Directories that are made for it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<WsPath>,
    /// Directories that are removed after it if nothing is left in them, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emptied: Vec<WsPath>,
}

impl PlanStep {
    /// The step as it is recorded.
    pub fn recorded(&self) -> RecordedStep {
        RecordedStep { path: self.path.clone(), before: self.before.fingerprint(), after: self.after.fingerprint() }
    }
}

impl Plan {
    /// What is to happen where nothing is.
    pub fn nothing() -> Self {
        Self { steps: Vec::new(), renames: BTreeMap::new() }
    }

    /// Of steps whose paths differ.
    pub(crate) fn new(steps: Vec<PlanStep>, renames: BTreeMap<WsPath, WsPath>) -> Self {
        Self { steps, renames }
    }

    /// Which files had another name before, by their new one.
    pub fn renames(&self) -> &BTreeMap<WsPath, WsPath> {
        &self.renames
    }

    /// The step at a path.
    pub(crate) fn step(&self, path: &WsPath) -> Option<&PlanStep> {
        // In the order of paths, as `decide` makes them.
        let index = self.steps.binary_search_by(|step| step.path.cmp(path)).ok()?;
        self.steps.get(index)
    }

    /// What is to happen, path by path.
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// Whether nothing is to happen.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The steps as they are recorded.
    pub fn recorded(&self) -> Vec<RecordedStep> {
        self.steps.iter().map(PlanStep::recorded).collect()
    }
}
