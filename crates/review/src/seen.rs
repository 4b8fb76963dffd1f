//! What was found in the workspace when it was looked at, as data.

use std::collections::BTreeMap;
use std::fmt;

use sayso_base::{FileState, WsPath};
use serde::{Deserialize, Serialize};

use crate::note::Note;

/// The most bytes of a file that are compared or written. What is larger could not be undone, since it could not be read.
pub const MOST_BYTES: u64 = 64 << 20;

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where it really is, after symbolic links: this is what a write changes.
    pub location: WsPath,
    /// What is there, or why that cannot be known or changed.
    pub found: Result<FileState, Obstacle>,
    /// The target of the path itself, if it is a symbolic link: removing or renaming concerns the link, not where it leads.
    pub link: Option<String>,
    /// What a reviewer should know before it is changed.
    pub facts: Vec<Note>,
}

impl Seen {
    /// What is at the path itself: a symbolic link is not followed.
    pub fn state(&self) -> Result<FileState, &Obstacle> {
        match &self.link {
            Some(target) => Ok(FileState::Link { target: target.clone() }),
            None => self.found.as_ref().cloned(),
        }
    }

    /// Whether exactly this is at the path itself.
    pub fn is(&self, state: &FileState) -> bool {
        self.state().is_ok_and(|found| found == *state)
    }
}

/// Everything that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// By the path that was asked for.
    pub files: BTreeMap<WsPath, Seen>,
    /// The permissions that new files do not get.
    pub umask: u32,
}

/// Why a path cannot be changed by us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "obstacle", rename_all = "snake_case")]
pub enum Obstacle {
    /// It is a directory.
    Directory,
    /// It is a device, a pipe or a socket.
    Special,
    /// It goes through something that is not a directory.
    NotADirectory,
    /// It is larger than what is ever read.
    TooLarge {
        /// The most bytes that are read.
        limit: u64,
    },
    /// It leads out of the workspace.
    Outside {
        /// How.
        reason: String,
    },
    /// Its permissions, or the directory's, do not let us write.
    ReadOnly {
        /// What forbids it.
        reason: String,
    },
    /// It belongs to sayso itself.
    Protected,
    /// The system refuses.
    Unreadable {
        /// What it says.
        reason: String,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => f.write_str("it is a directory"),
            Self::Special => f.write_str("it is not a regular file"),
            Self::NotADirectory => f.write_str("its path goes through something that is not a directory"),
            Self::TooLarge { limit } => write!(f, "it is larger than {} MiB, the most that is compared", limit >> 20),
            Self::Outside { reason } => write!(f, "it leads out of the workspace: {reason}"),
            Self::ReadOnly { reason } => write!(f, "it is read-only: {reason}"),
            Self::Protected => f.write_str("it belongs to sayso's own records"),
            Self::Unreadable { reason } => write!(f, "it cannot be read: {reason}"),
        }
    }
}
