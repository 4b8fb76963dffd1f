//! Errors of the journal's file, common to all operations.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use sayso_review::ErrorKind;
use thiserror::Error;

const REPAIR: &str = "run `sayso gc --repair`; it saves all readable data and keeps the damaged file";

/// Reason why the journal's file cannot be used.
#[derive(Debug, Error)]
pub enum DatabaseError {
    /// The file's content is inconsistent.
    #[error("the journal `{}` is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    /// The disk is full. The journal is unchanged.
    #[error("the journal `{}` cannot grow: the disk is full", path.display())]
    Full { path: PathBuf },
    /// Another program holds the file and does not release it in time.
    #[error("the journal `{}` is held by another program", path.display())]
    Busy { path: PathBuf },
    /// Any other error of the operating system.
    #[error("the journal `{}` cannot be used: {reason}", path.display())]
    System { path: PathBuf, reason: String },
}

impl DatabaseError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Busy { .. } | Self::Full { .. } => ErrorKind::Unavailable,
            Self::Damaged { .. } | Self::System { .. } => ErrorKind::Internal,
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Damaged { .. } => Some(REPAIR),
            Self::Full { .. } => Some("run `sayso gc` to delete the contents of old events"),
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
            // A conversion failed: the column has a value of a type that no version wrote.
            None => Self::Damaged { path, reason: error.to_string() },
        }
    }
}
