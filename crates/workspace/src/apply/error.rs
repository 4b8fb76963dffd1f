//! Errors of applying a plan.

use rustix::io::Errno;
use sayso_review::{ErrorKind, WsPath};
use thiserror::Error;

use crate::confine::OpenError;

/// Reason why a plan was not applied. Unless stated otherwise, the tree is as before.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// A file does not have the plan's base content.
    #[error("`{path}` changed after it was shown; nothing was written")]
    Stale { path: WsPath },
    /// The path leads out of the workspace.
    #[error("`{path}` cannot be written: {reason}; nothing was written")]
    Outside { path: WsPath, reason: String },
    /// Any other error of the system.
    #[error("`{path}` cannot be written: {reason}; nothing was written")]
    System { path: WsPath, reason: String },
    /// A step failed, and the rollback failed as well.
    #[error("`{path}` cannot be written: {reason}; {} could not be taken back: {why}{}", list(.left), kept(.saved))]
    Torn {
        path: WsPath,
        reason: String,
        /// Files that are not as before.
        left: Vec<WsPath>,
        /// Error of the rollback.
        why: String,
        /// New names of files that other programs wrote meanwhile.
        saved: Vec<WsPath>,
    },
}

fn list(paths: &[WsPath]) -> String {
    paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ")
}

fn kept(saved: &[WsPath]) -> String {
    if saved.is_empty() { String::new() } else { format!("; what was there meanwhile is kept as {}", list(saved)) }
}

impl ApplyError {
    pub(super) fn system(path: &WsPath, errno: Errno) -> Self {
        let reason = match errno {
            Errno::NOSPC | Errno::DQUOT => "there is no space left; free some and try again".to_owned(),
            Errno::ROFS => "the file system is read-only".to_owned(),
            Errno::ACCESS | Errno::PERM => {
                format!("permission denied by the file, its directory or the file system ({errno})")
            }
            Errno::MFILE | Errno::NFILE => {
                "more directories than this process may hold open; raise the limit with `ulimit -n`".to_owned()
            }
            Errno::NAMETOOLONG => "its name is too long for the file system".to_owned(),
            errno => errno.to_string(),
        };
        Self::System { path: path.clone(), reason }
    }

    pub(super) fn opening(path: &WsPath, error: &OpenError) -> Self {
        match error {
            OpenError::Outside { reason, .. } => Self::Outside { path: path.clone(), reason: (*reason).to_owned() },
            OpenError::System { error, .. } => Self::system(path, *error),
            // The directory was removed or replaced.
            OpenError::NotFound(_) | OpenError::NotADirectory(_) => Self::Stale { path: path.clone() },
            OpenError::Special(_) | OpenError::TooManyLinks(_) => {
                Self::Outside { path: path.clone(), reason: error.to_string() }
            }
        }
    }

    /// Returns the reason, without the consequence for the tree.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Stale { .. } => "it changed after it was shown".to_owned(),
            Self::Outside { reason, .. } | Self::System { reason, .. } | Self::Torn { reason, .. } => reason.clone(),
        }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Stale { .. } => ErrorKind::Stale,
            Self::Outside { .. } => ErrorKind::FsDenied,
            Self::System { .. } => ErrorKind::ToolFailed,
            Self::Torn { .. } => ErrorKind::Internal,
        }
    }

    /// Returns the file that failed.
    pub fn path(&self) -> &WsPath {
        match self {
            Self::Stale { path } | Self::Outside { path, .. } | Self::System { path, .. } | Self::Torn { path, .. } => {
                path
            }
        }
    }
}
