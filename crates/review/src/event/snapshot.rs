//! Contents of files captured before a tool call, by path and then by call.

use std::fmt;

use sayso_base::{Fingerprint, WsPath};
use serde::{Deserialize, Serialize};

/// Sequence number of a snapshot, from 1 in each workspace; never reused.
pub type SnapshotId = u64;

/// The stage of a tool call at which a snapshot was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The call appeared in the model's response, before the agent had received all of it.
    Answer,
    /// The agent's hook asked for permission.
    Hook,
    /// The agent reported that the tool had started. The file may have changed already.
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

/// The content of a file before a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub snapshot: SnapshotId,
    /// Path as the tool call names it.
    pub path: WsPath,
    /// Path of the file itself, after symbolic links.
    pub location: WsPath,
    /// Captured state; `Absent` if the file did not exist.
    pub state: Fingerprint,
    pub tool: String,
    pub tier: Tier,
    /// Id of the expected tool call, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Session whose end frees the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// The reason why a snapshot was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreeReason {
    /// A newer snapshot of the same path replaced it before the tool started.
    Replaced,
    /// The expected call was denied or withdrawn.
    CallEnded,
    /// The session ended, and the tool never started.
    SessionEnded,
    /// The engine restarted, and the tool never started.
    Restarted,
}

/// A snapshot with its later fate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SnapshotRecord {
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// Capture time in milliseconds since 1970.
    pub time: i64,
    /// Id of the tool call that started.
    pub correlated_call: Option<String>,
    /// Reason why it was freed; `None` while it is kept.
    pub freed: Option<FreeReason>,
    /// Number of the event that references the captured content.
    #[serde(skip)]
    pub number: u64,
}

impl SnapshotRecord {
    /// `true` while the tool has not started and the snapshot is kept.
    pub fn is_pending(&self) -> bool {
        self.correlated_call.is_none() && self.freed.is_none()
    }
}
