//! Plans: approved steps over the file tree.

use std::collections::BTreeMap;

use sayso_base::{FileState, Fingerprint, WsPath};
use serde::{Deserialize, Serialize};

/// Approved steps over the file tree, applied all or none.
///
/// The only constructor with steps is a verdict on a preview, see [`Preview::decide`](crate::Preview::decide).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    steps: Vec<PlanStep>,
    /// Old paths of renamed files, by new path.
    renames: BTreeMap<WsPath, WsPath>,
}

/// A step at one path. The paths of a plan are unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    pub path: WsPath,
    /// Required current state. If any step finds another state, the whole plan is stale.
    pub before: FileState,
    /// State after the step.
    pub after: FileState,
}

/// A step as recorded, with hashes in place of contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStep {
    pub path: WsPath,
    pub before: Fingerprint,
    pub after: Fingerprint,
}

/// The journal's record of a plan, written before the first byte reaches the tree. Crash recovery starts from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyRecord {
    /// Random part of the names of this plan's temporary files.
    pub token: String,
    pub steps: Vec<RecordedStep>,
    /// Directories created for the plan, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<WsPath>,
    /// Directories removed after the plan if they are empty, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emptied: Vec<WsPath>,
}

impl PlanStep {
    /// Returns the step with hashes in place of contents.
    pub fn recorded(&self) -> RecordedStep {
        RecordedStep { path: self.path.clone(), before: self.before.fingerprint(), after: self.after.fingerprint() }
    }
}

impl Plan {
    /// Returns a plan without steps.
    pub fn nothing() -> Self {
        Self { steps: Vec::new(), renames: BTreeMap::new() }
    }

    /// Creates a plan from steps with unique paths in ascending order.
    pub(crate) fn new(steps: Vec<PlanStep>, renames: BTreeMap<WsPath, WsPath>) -> Self {
        Self { steps, renames }
    }

    /// Returns the old paths of renamed files, by new path.
    pub fn renames(&self) -> &BTreeMap<WsPath, WsPath> {
        &self.renames
    }

    /// Returns the step at a path.
    pub(crate) fn step(&self, path: &WsPath) -> Option<&PlanStep> {
        // `decide` sorts the steps by path.
        let index = self.steps.binary_search_by(|step| step.path.cmp(path)).ok()?;
        self.steps.get(index)
    }

    /// Returns the steps in order of their paths.
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// `true` if the plan has no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the steps with hashes in place of contents.
    pub fn recorded(&self) -> Vec<RecordedStep> {
        self.steps.iter().map(PlanStep::recorded).collect()
    }
}
