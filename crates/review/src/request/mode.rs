//! How requests are treated, which edits are saved for them, and who looks at them.

use serde::{Deserialize, Serialize};

use super::RequestId;

/// What is to happen to requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestMode {
    /// They are sent as they come.
    #[default]
    Off,
    /// They wait for a person.
    InterceptAlways,
    /// Saved edits are applied to them.
    AutoOverride,
}

impl RequestMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::InterceptAlways, Self::AutoOverride];

    /// What people call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Off => "Send normally",
            Self::InterceptAlways => "Pause & review every turn",
            Self::AutoOverride => "Auto-apply saved edits",
        }
    }
}

/// How requests are treated, in one session or in all that have no mode of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeSet {
    /// The session; all that have no mode of their own, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The mode; `None` if the session has none of its own any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RequestMode>,
    /// Whether the next turn waits, once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pause_next: bool,
    /// Whether the next turn waits so that its edits are saved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub capture_next: bool,
}

/// What became of the saved edits of a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverridesSet {
    /// The scope: `session`, `workspace` or `global`.
    pub scope: String,
    /// The session, if it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How many there are now.
    pub count: u64,
    /// The request whose edits were saved; `None` if some were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RequestId>,
}

/// What people look at, and what is no longer there to be looked at. It is counted on this machine only, and says nothing of what was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "looked", rename_all = "snake_case")]
pub enum RequestLook {
    /// A person was shown how a request differs from what came.
    Diff {
        /// The request.
        request: RequestId,
        /// How many edits it had by then.
        edits: u64,
    },
    /// A person was shown what subagents sent.
    Monitor {
        /// The newest request of theirs that was shown.
        through: RequestId,
    },
    /// The oldest runs of subagents are no longer shown: only the last ones are.
    Trimmed {
        /// How many.
        runs: u64,
    },
}
