//! The observed state of workspace files.

use std::collections::BTreeMap;
use std::fmt;

use sayso_base::{FileState, WsPath};
use serde::{Deserialize, Serialize};

use crate::note::Note;

/// Maximum size in bytes of a file that is compared or written. Larger files are not read and could not be undone.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The observed state of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedFile {
    /// Path of the file itself, after symbolic links. A write changes this file.
    pub location: WsPath,
    /// State of the file, or the reason why it cannot be read or changed.
    pub found: Result<FileState, Obstacle>,
    /// Target of the path if it is a symbolic link. Deleting or renaming affects the link only.
    pub link: Option<String>,
    /// Notes that only the file system can provide, such as hard links.
    pub facts: Vec<Note>,
}

impl ObservedFile {
    /// Returns the state of the path itself, without following a symbolic link.
    pub fn state(&self) -> Result<FileState, &Obstacle> {
        match &self.link {
            Some(target) => Ok(FileState::Link { target: target.clone() }),
            None => self.found.as_ref().cloned(),
        }
    }

    /// `true` if the path itself has exactly this state.
    pub fn is(&self, state: &FileState) -> bool {
        self.state().is_ok_and(|found| found == *state)
    }
}

/// The observed states of several paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// States by the requested path.
    pub files: BTreeMap<WsPath, ObservedFile>,
    /// Permission bits removed from new files.
    pub umask: u32,
}

/// The reason why a path cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "obstacle", rename_all = "snake_case")]
pub enum Obstacle {
    Directory,
    /// It is a device, a pipe or a socket.
    Special,
    /// A parent of the path is not a directory.
    NotADirectory,
    /// The file exceeds the size limit.
    TooLarge {
        /// Size limit in bytes.
        limit: u64,
    },
    /// The path leads out of the workspace.
    Outside {
        reason: String,
    },
    /// The permissions of the file or its directory forbid writing.
    ReadOnly {
        reason: String,
    },
    /// The path belongs to sayso's own records.
    Protected,
    /// The system reports an error.
    Unreadable {
        /// Error message of the system.
        reason: String,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => f.write_str("it is a directory"),
            Self::Special => f.write_str("it is not a regular file"),
            Self::NotADirectory => f.write_str("a parent of its path is not a directory"),
            Self::TooLarge { limit } => write!(f, "it exceeds the size limit of {} MiB", limit >> 20),
            Self::Outside { reason } => write!(f, "it leads out of the workspace: {reason}"),
            Self::ReadOnly { reason } => write!(f, "it is read-only: {reason}"),
            Self::Protected => f.write_str("it belongs to sayso's own records"),
            Self::Unreadable { reason } => write!(f, "it cannot be read: {reason}"),
        }
    }
}
