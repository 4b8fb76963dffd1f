//! The entries of the stream, which the engine, the protocol and every surface share.
//!
//! Events are written as JSON with a version beside them. What a later version adds is ignored, an event of an unknown kind
//! stays readable as data, and nothing that was recorded ever changes its meaning.

use serde::{Deserialize, Deserializer, Serialize};

use crate::content::ContentHash;
use crate::file_state::Fingerprint;
use crate::note::Note;
use crate::plan::ApplyRecord;
use crate::preview::{Operation, Problem};
use crate::verdict::Verdict;
use crate::ws_path::WsPath;

/// The version of events that this program writes.
pub const EVENT_VERSION: u32 = 1;

/// The number of a change: 1 for the first in a workspace.
pub type ChangeId = u64;

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
    },
    /// It makes changes again that were taken back.
    Redo {
        /// Those.
        of: Vec<ChangeId>,
    },
    /// It brings an approved change onto files that changed meanwhile.
    Rebase {
        /// The change that was approved.
        of: ChangeId,
    },
}

/// What a change is about, file by file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The file as it was asked for.
    pub path: WsPath,
    /// Where it really is.
    pub location: WsPath,
    /// What happens to it.
    pub operation: Operation,
    /// What was there.
    pub before: Fingerprint,
    /// What would be there.
    pub after: Fingerprint,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// What a reviewer was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known_notes")]
    pub notes: Vec<Note>,
    /// Why it could not be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// Whether it was approved before and was only shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
}

/// Notes inform and never decide, so one that a later version wrote does not make the whole event unreadable.
fn known_notes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Note>, D::Error> {
    let notes = Vec::<serde_json::Value>::deserialize(deserializer)?;
    Ok(notes.into_iter().filter_map(|note| serde_json::from_value(note).ok()).collect())
}

/// How an intent ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It is in the tree.
    Applied,
    /// The request was sent.
    Sent,
    /// The command ran.
    Ran,
    /// Nobody wanted it.
    Denied,
    /// The files were no longer those that were shown.
    Stale {
        /// Which.
        files: Vec<WsPath>,
    },
    /// It was withdrawn.
    Cancelled,
    /// It could not be done; the tree is as it was.
    Failed {
        /// Why.
        reason: String,
    },
}

/// One entry of the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A change was previewed.
    Proposed {
        /// Its number.
        change: ChangeId,
        /// Where it comes from.
        origin: Origin,
        /// Why there is one.
        cause: Cause,
        /// What it is about.
        files: Vec<FileRecord>,
        /// What a verdict on it is bound to.
        preview: ContentHash,
    },
    /// Somebody decided.
    Decided {
        /// The change.
        change: ChangeId,
        /// What they said.
        verdict: Verdict,
        /// What the agent is told.
        told: String,
    },
    /// A plan is about to reach the tree. Without an outcome after it, it was interrupted.
    Applying {
        /// The change.
        change: ChangeId,
        /// What happens.
        record: ApplyRecord,
    },
    /// A change ended.
    Ended {
        /// The change.
        change: ChangeId,
        /// How.
        outcome: Outcome,
        /// What the agent is told, if that is not what was to be said had it gone as decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<String>,
    },
    /// A change that was applied was taken back.
    Undone {
        /// It.
        change: ChangeId,
        /// The change that did so.
        by: ChangeId,
    },
    /// A change that was taken back was made again.
    Redone {
        /// It.
        change: ChangeId,
        /// The change that did so.
        by: ChangeId,
    },
    /// A start found a plan that was interrupted, and finished it or took it back.
    Recovered {
        /// The change.
        change: ChangeId,
        /// What the start found and did.
        finished: bool,
        /// Files that were neither as before nor as planned, and were left alone.
        left_alone: Vec<WsPath>,
        /// Where somebody's work is that was displaced in the moment of the crash.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        saved: Vec<WsPath>,
    },
}

impl Event {
    /// The change it is about.
    pub fn change(&self) -> ChangeId {
        match self {
            Self::Proposed { change, .. }
            | Self::Decided { change, .. }
            | Self::Applying { change, .. }
            | Self::Ended { change, .. }
            | Self::Undone { change, .. }
            | Self::Redone { change, .. }
            | Self::Recovered { change, .. } => *change,
        }
    }
}

/// An event with its number and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its number in the stream, from 1 without gaps.
    pub number: u64,
    /// When it was recorded, in milliseconds since 1970.
    pub time: i64,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// An event as far as this program understands it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EventBody {
    /// One that it knows.
    Known(Event),
    /// One that a later version wrote.
    Unknown(serde_json::Value),
}

impl EventBody {
    /// Reads what was recorded. Nothing is lost: what is not understood is kept as data.
    pub fn decode(bytes: &[u8]) -> Self {
        // Always an object, so that it can be written out beside its number and time.
        let value = match serde_json::from_slice(bytes) {
            Ok(value @ serde_json::Value::Object(_)) => value,
            _ => serde_json::json!({ "unreadable": String::from_utf8_lossy(bytes) }),
        };
        match serde_json::from_value(value.clone()) {
            Ok(event) => Self::Known(event),
            Err(_) => Self::Unknown(value),
        }
    }
}
