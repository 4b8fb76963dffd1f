//! The result of a `ProposeChanges` call in the form of seed `003…`.

use sayso_review::ProposedChanges;
use serde::{Deserialize, Serialize};

/// The changes of a `ProposeChanges` call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedSet {
    pub changes: Vec<ProposedFile>,
    pub has_conflicts: bool,
    pub warnings: Vec<String>,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedFile {
    pub path: String,
    /// `create`, `update`, `delete` or `rename`.
    pub operation: String,
    pub unified_diff: String,
    /// `None` for a deleted or binary file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_content: Option<String>,
    /// The file differs from the content that the agent read.
    pub conflict: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl From<&ProposedChanges> for ProposedSet {
    fn from(proposed: &ProposedChanges) -> Self {
        let file = |change: &sayso_review::ProposedChange| ProposedFile {
            path: change.path.to_string(),
            operation: change.operation.to_owned(),
            unified_diff: change.unified_diff.clone(),
            new_content: change.new_content.clone(),
            conflict: change.conflict,
            warning: change.warning.clone(),
        };
        Self {
            changes: proposed.changes.iter().map(file).collect(),
            has_conflicts: proposed.has_conflicts,
            warnings: proposed.warnings.clone(),
        }
    }
}

impl ProposedSet {
    /// Returns the payload of the tool result.
    pub fn to_json(&self) -> String {
        // Strings, lists and booleans always serialize.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
