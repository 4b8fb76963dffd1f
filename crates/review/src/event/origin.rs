//! Where a change comes from, and why there is one.

use sayso_base::WsPath;
use serde::{Deserialize, Serialize};

use super::{ChangeId, SnapshotId};

/// Where an intent comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What happens between two prompts of a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

/// Why there is a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// Somebody proposed it.
    Proposal,
    /// It takes other changes back.
    Undo {
        /// Those.
        of: Vec<ChangeId>,
        /// Only these files of them; all, if none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WsPath>,
    },
    /// It makes changes again that were taken back.
    Redo {
        /// Those.
        of: Vec<ChangeId>,
        /// Only these files of them; all, if none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WsPath>,
    },
    /// It says what stays of changes that happened at once.
    Review {
        /// Those.
        of: Vec<ChangeId>,
        /// The turn.
        turn: String,
    },
    /// It puts a file back to what it was before a tool call.
    Restore {
        /// What was kept then.
        snapshot: SnapshotId,
    },
    /// It brings an approved change onto files that changed meanwhile.
    Rebase {
        /// The change that was approved.
        of: ChangeId,
    },
}

impl Cause {
    /// The files that an undo or a redo is limited to; none, if it is about all.
    pub fn paths(&self) -> &[WsPath] {
        match self {
            Self::Undo { paths, .. } | Self::Redo { paths, .. } => paths,
            _ => &[],
        }
    }

    /// Whether an agent wants it, and not somebody who takes back or reviews what agents did.
    pub fn is_the_agents(&self) -> bool {
        matches!(self, Self::Proposal | Self::Rebase { .. })
    }

    /// Whether the change starts from what it found, and not from what is recorded: then, if files changed meanwhile, it can be
    /// brought onto them and asked about again.
    pub fn is_rebased_if_stale(&self) -> bool {
        matches!(self, Self::Proposal | Self::Rebase { .. } | Self::Review { .. })
    }
}
