//! What can go wrong with the file itself, whatever is done to it.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use sayso_review::ErrorKind;
use thiserror::Error;

/// What to do about a damaged journal.
const REPAIR: &str = "`sayso gc --repair` saves what can still be read and keeps the damaged file aside";

/// Why the journal's file does not serve.
#[derive(Debug, Error)]
pub enum DatabaseError {
    /// What is in the file cannot be right.
    #[error("the journal `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How it shows.
        reason: String,
    },
    /// There is no room for more. The journal is as it was.
    #[error("the journal `{}` cannot grow: the disk is full", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another program holds it for longer than we wait.
    #[error("the journal `{}` is held by another program", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The system fails.
    #[error("the journal `{}` cannot be used: {reason}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What it says.
        reason: String,
    },
}

impl DatabaseError {
    /// The kind that programs see.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy { .. } | Self::Full { .. } => ErrorKind::Unavailable,
            Self::Damaged { .. } | Self::System { .. } => ErrorKind::Internal,
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Damaged { .. } => Some(REPAIR),
            Self::Full { .. } => Some("`sayso gc` drops the contents of old events"),
            Self::Busy { .. } | Self::System { .. } => None,
        }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    pub(crate) fn system(path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull => Self::Full { path: path.to_owned() },
            _ => Self::System { path: path.to_owned(), reason: error.to_string() },
        }
    }

    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::Damaged { path, reason: "it is not a database".to_owned() },
            Some(ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { path, reason: "its pages do not fit together".to_owned() }
            }
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(_) => Self::System { path, reason: error.to_string() },
            // Not SQLite but a column says no: it holds something else than was ever written there.
            None => Self::Damaged { path, reason: error.to_string() },
        }
    }
}
