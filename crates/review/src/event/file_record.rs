//! What a change was about, and how it ended.

use sayso_base::{Fingerprint, WsPath};
use serde::{Deserialize, Deserializer, Serialize};

use crate::note::Note;
use crate::preview::{Operation, Problem};

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
    /// The command or the tool ran.
    Ran {
        /// What it ended with, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// How it ran, where that is not as usual: stopped before a command that the rules do not allow, or without marks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
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
