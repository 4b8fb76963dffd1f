//! Request modes, saved edits and view events.

use serde::{Deserialize, Serialize};

use super::RequestId;

/// The treatment of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestMode {
    #[default]
    Off,
    InterceptAlways,
    AutoOverride,
}

impl RequestMode {
    pub const ALL: [Self; 3] = [Self::Off, Self::InterceptAlways, Self::AutoOverride];

    /// Returns the display name.
    pub fn label(self) -> &'static str {
        match self {
            Self::Off => "Send normally",
            Self::InterceptAlways => "Pause & review every turn",
            Self::AutoOverride => "Auto-apply saved edits",
        }
    }
}

/// A change of the request mode, for one session or for the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeSet {
    /// Session; `None` for all sessions without a mode of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// New mode; `None` if the session returns to the workspace's mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RequestMode>,
    /// `true` if the next turn is paused once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pause_next: bool,
    /// `true` if the next turn is paused and its edits are saved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capture_next: bool,
}

/// A change of the saved edits in a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverridesSet {
    /// Scope: `session`, `workspace` or `global`.
    pub scope: String,
    /// Session, for the scope `session`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Number of saved edits after the change.
    pub count: u64,
    /// Request whose edits were saved; `None` if edits were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RequestId>,
}

/// Usage facts for the user's own statistics. They never leave the machine and contain no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "view", rename_all = "snake_case")]
pub enum ViewEvent {
    /// A person viewed the difference between a request and its edited version.
    Diff {
        request: RequestId,
        /// Number of edits at that time.
        edits: u64,
    },
    /// A person viewed the requests of subagents.
    Monitor { through: RequestId },
    /// The monitor dropped its oldest subagent runs.
    Trimmed {
        /// Number of dropped runs.
        runs: u64,
    },
}
