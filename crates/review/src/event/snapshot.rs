//! What a file was before a tool call, kept by path and then by call (the user's seed on snapshots that win the race).

use std::fmt;

use sayso_base::{Fingerprint, WsPath};
use serde::{Deserialize, Serialize};

/// The number of a snapshot: 1 for the first in a workspace, and never given twice, however close in time two are.
pub type SnapshotId = u64;

/// Where in the life of a tool call a snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The call was in the model's answer, which the agent had not received to its end.
    Answer,
    /// The agent asked whether it may.
    Hook,
    /// The agent said that the tool had started. The file may have been changed already.
    Start,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "the model's answer",
            Self::Hook => "the agent's hook",
            Self::Start => "the tool's start",
        })
    }
}

/// What a file was before a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its number.
    pub snapshot: SnapshotId,
    /// The file as the call names it.
    pub path: WsPath,
    /// Where it really is.
    pub location: WsPath,
    /// What was there; nothing, if the file is new.
    pub state: Fingerprint,
    /// The tool.
    pub tool: String,
    /// When it was taken.
    pub tier: Tier,
    /// The call that it is meant for, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The session that it is freed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Why a snapshot is no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freed {
    /// A newer one of the same path took its place before the tool started.
    Replaced,
    /// The call it was meant for was denied or withdrawn.
    CallEnded,
    /// The session ended, and the tool never started.
    SessionEnded,
    /// The program that took it is gone, and the tool never started.
    Restarted,
}

/// A snapshot and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotRecord {
    /// What was kept.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// When, in milliseconds since 1970.
    pub time: i64,
    /// The call that it is of.
    pub of_call: Option<String>,
    /// Why it is no longer kept.
    pub freed: Option<Freed>,
    /// The number of the event that keeps its content.
    #[serde(skip)]
    pub number: u64,
}

impl SnapshotRecord {
    /// Whether the tool has not started.
    pub fn is_pending(&self) -> bool {
        self.of_call.is_none() && self.freed.is_none()
    }
}
