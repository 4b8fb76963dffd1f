//! The log of a session: append-only entries, and their fold into a history.
//!
//! An entry serializes as a JSON object with a version. Entries of a later version are kept as they are and have no effect.

mod fold;
mod import;

mod message;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use fold::{History, HistoryItem, UserItem, UserSource};
pub use import::{ImportError, entries_from_request};

pub use message::{
    AssistantBlock, AssistantMessage, AttachedFile, CallKind, Completeness, ImageData, Prompt, RecordedResult,
    SignatureKind, SignedData, ToolCallBlock,
};

use crate::event::FinishedReason;
use crate::settings::Settings;
use crate::todo::{TodoChange, TodoWriter};

/// Version of the entries that this version writes.
pub const LOG_VERSION: u32 = 1;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    pub version: u32,
    /// Milliseconds since 1970.
    pub time_ms: i64,
    #[serde(flatten)]
    pub body: EntryBody,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EntryBody {
    Known(Entry),
    /// An entry of a later version.
    Unknown(Map<String, Value>),
}

/// An entry of this version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The first entry of a session.
    Started {
        settings: Settings,
        /// The request whose conversation it continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fork_of: Option<u64>,
        /// The session that delegated to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
        /// Tools that a delegation allows. `None`: the tools of the scenario.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
    },
    /// The system prompt from here on. It is stored, so that the prefix of requests stays the same when files change.
    Instructions {
        scenario: String,
        text: String,
    },
    Settings {
        settings: Settings,
    },
    InvocationStarted {
        invocation: String,
    },
    Prompt(Prompt),
    /// A message about an earlier change.
    Message {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<u64>,
    },
    /// A message of the engine, for example after an answer broke off.
    Notice {
        text: String,
    },
    Assistant(AssistantMessage),
    Result(RecordedResult),
    Todos {
        writer: TodoWriter,
        #[serde(flatten)]
        change: TodoChange,
    },
    /// The contents of old tool results are removed from requests.
    Pruned {
        calls: Vec<String>,
    },
    /// A summary replaces the conversation except for its last items.
    Compacted {
        summary: String,
        /// Number of kept items at the end.
        kept: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<u64>,
    },
    /// A limit was raised for the running invocation.
    LimitRaised {
        invocation: String,
    },
    InvocationEnded {
        invocation: String,
        /// `None`: it failed.
        reason: Option<FinishedReason>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        error: String,
    },
}

impl LogEntry {
    pub fn new(time_ms: i64, entry: Entry) -> Self {
        Self { version: LOG_VERSION, time_ms, body: EntryBody::Known(entry) }
    }

    /// Returns the entry as JSON.
    pub fn to_json(&self) -> String {
        // Maps have string keys, and all values serialize.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads an entry. An entry that this version does not know is kept.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the entry if this version knows it.
    pub fn known(&self) -> Option<&Entry> {
        match &self.body {
            EntryBody::Known(entry) => Some(entry),
            EntryBody::Unknown(_) => None,
        }
    }
}
