//! Recorded effects on files, and the outcome of an intent.

use sayso_base::{Fingerprint, WsPath};
use serde::{Deserialize, Deserializer, Serialize};

use super::card::InlineCard;
use crate::note::Note;
use crate::preview::{Operation, Problem};

/// The recorded effect of a change on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Path as the agent named it.
    pub path: WsPath,
    /// Path of the file itself, after symbolic links.
    pub location: WsPath,
    pub operation: Operation,
    /// State before the change.
    pub before: Fingerprint,
    pub after: Fingerprint,
    pub added: usize,
    pub removed: usize,
    /// Notes shown to the reviewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "known_notes")]
    pub notes: Vec<Note>,
    /// Reason why the change could not be made to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
    /// `true` if the file was approved earlier and is only shown for context.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// First lines of the diff. Absent without changed lines, for binary files, and beyond the first 100 files of a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<InlineCard>,
}

/// Notes only inform. A note of an unknown kind, written by a later version, is dropped instead of failing the whole
/// event.
fn known_notes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Note>, D::Error> {
    let notes = Vec::<serde_json::Value>::deserialize(deserializer)?;
    Ok(notes.into_iter().filter_map(|note| serde_json::from_value(note).ok()).collect())
}

/// The final result of an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The change was written to the tree.
    Applied,
    /// The request was sent.
    Sent,
    /// The command or the tool ran.
    Ran {
        /// Exit code; `None` if it is unknown or the intent was a tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Deviation from a normal run: stopped before a command that the rules deny, or started without kernel marks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// A person or a rule denied it.
    Denied,
    /// Files changed after the preview was made.
    Stale { files: Vec<WsPath> },
    /// The agent withdrew it.
    Cancelled,
    /// It failed, and the tree is unchanged.
    Failed { reason: String },
}
