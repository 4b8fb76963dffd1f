//! The source of a change and the reason why it exists.

use sayso_base::WsPath;
use serde::{Deserialize, Serialize};

use super::{ChangeId, SnapshotId};

/// The source of an intent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Name of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Id of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Id of the turn, which is everything between two prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Id of the tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

/// The reason why a change exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// An agent or a person proposed it.
    Proposal,
    /// It reverts other changes.
    Undo {
        changes: Vec<ChangeId>,
        /// Reverted files; empty if all files are reverted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WsPath>,
    },
    /// It applies undone changes again.
    Redo {
        changes: Vec<ChangeId>,
        /// Redone files; empty if all files are redone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WsPath>,
    },
    /// It reviews changes that were applied without a prior decision.
    Review { changes: Vec<ChangeId>, turn: String },
    /// It restores a file to its content before a tool call.
    Restore {
        /// Snapshot with that content.
        snapshot: SnapshotId,
    },
    /// It rebases an approved change onto files that changed in the meantime.
    Rebase { original: ChangeId },
}

impl Cause {
    /// Returns the files that an undo or a redo is limited to; empty if it covers all.
    pub fn paths(&self) -> &[WsPath] {
        match self {
            Self::Undo { paths, .. } | Self::Redo { paths, .. } => paths,
            _ => &[],
        }
    }

    /// `true` if an agent wants the change, as opposed to an undo, a redo, a restore or a review.
    pub fn is_from_agent(&self) -> bool {
        matches!(self, Self::Proposal | Self::Rebase { .. })
    }

    /// `true` if a stale change can be rebased and shown again. Undo, redo and restore start from recorded states and
    /// are recomputed instead.
    pub fn can_rebase(&self) -> bool {
        matches!(self, Self::Proposal | Self::Rebase { .. } | Self::Review { .. })
    }
}
