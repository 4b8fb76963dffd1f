//! Marks for hunks that were on screen. All surfaces of the user share them.
//!
//! A mark belongs to the content that was shown. Once the preview of a file changes, the marks of the file no longer count.

use std::collections::{BTreeMap, BTreeSet};

use sayso_base::{ContentHash, WsPath};

use crate::event::{Event, EventBody, FileRecord, Recorded};

/// Hunks of a change that were on screen, by the previewed path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenMarks {
    /// Numbers of the hunks, from 1.
    pub files: BTreeMap<WsPath, BTreeSet<usize>>,
}

impl SeenMarks {
    /// Folds the marks of a change, in order. Marks of an earlier preview of a file are dropped.
    pub fn fold(events: impl IntoIterator<Item = Recorded>, files: &[FileRecord]) -> Self {
        let current: BTreeMap<&WsPath, ContentHash> =
            files.iter().map(|file| (&file.path, file.preview_hash())).collect();
        let mut marks = Self::default();
        for event in events {
            let EventBody::Known(Event::HunksSeen { path, file, hunks, .. }) = event.body else { continue };
            if current.get(&path) == Some(&file) {
                marks.files.entry(path).or_default().extend(hunks);
            }
        }
        marks
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl FileRecord {
    /// Returns the hash of the previewed effect on this file. Another effect has another hash.
    pub fn preview_hash(&self) -> ContentHash {
        let effect = (&self.path, &self.location, &self.operation, &self.before, &self.after);
        // Serializing this data cannot fail: it consists of strings and numbers.
        ContentHash::of(&serde_json::to_vec(&effect).unwrap_or_default())
    }

    /// Upper bound for the number of hunks: each one adds or removes a line. A file without changed lines counts as one hunk.
    pub fn max_hunks(&self) -> usize {
        (self.added + self.removed).max(1)
    }
}
