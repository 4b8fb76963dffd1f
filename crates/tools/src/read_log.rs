//! Contents that the model read, to detect files that changed since.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sayso_review::{ContentHash, WsPath};
use serde::{Deserialize, Serialize};

/// Hashes of the texts that a conversation read or wrote, by the location of the file.
///
/// The hash covers the text that the model saw: decoded, with `\n` as line ending. A change of only the encoding keeps it.
#[derive(Debug, Default)]
pub struct ReadLog {
    reads: Mutex<BTreeMap<WsPath, ContentHash>>,
}

/// The entries of a [`ReadLog`] for storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReadLogEntries(pub BTreeMap<WsPath, ContentHash>);

impl ReadLog {
    /// Restores a stored log.
    pub fn restore(entries: ReadLogEntries) -> Self {
        Self { reads: Mutex::new(entries.0) }
    }

    /// Returns the entries for storage.
    pub fn entries(&self) -> ReadLogEntries {
        ReadLogEntries(self.reads().clone())
    }

    /// Records the current content of a file, after a read or an applied change.
    pub fn record(&self, location: &WsPath, content: &[u8]) {
        self.reads().insert(location.clone(), hash(content));
    }

    /// Removes a file, after its removal or a rename.
    pub fn forget(&self, location: &WsPath) {
        self.reads().remove(location);
    }

    /// Compares a file with its entry.
    pub fn state_of(&self, location: &WsPath, content: &[u8]) -> ReadState {
        match self.reads().get(location) {
            None => ReadState::Unread,
            Some(read) if *read == hash(content) => ReadState::Current,
            Some(_) => ReadState::Stale,
        }
    }

    fn reads(&self) -> std::sync::MutexGuard<'_, BTreeMap<WsPath, ContentHash>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file compared with its entry in a [`ReadLog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    Unread,
    /// The file has the content that the model saw.
    Current,
    /// The file changed since.
    Stale,
}

fn hash(content: &[u8]) -> ContentHash {
    match sayso_diff::plain_text(content) {
        Some(text) => ContentHash::of(text.as_bytes()),
        None => ContentHash::of(content),
    }
}
