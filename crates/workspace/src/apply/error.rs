//! Why a plan was not carried out.

use rustix::io::Errno;
use sayso_review::{ErrorKind, WsPath};
use thiserror::Error;

use crate::confine::OpenError;

/// Why a plan was not carried out. Unless it says otherwise, the tree is as it was.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// A file is not what the plan starts from.
    #[error("`{path}` changed after it was shown; nothing was written")]
    Stale {
        /// The file.
        path: WsPath,
    },
    /// It leads out of the workspace.
    #[error("`{path}` cannot be written: {reason}; nothing was written")]
    Outside {
        /// The file.
        path: WsPath,
        /// How.
        reason: String,
    },
    /// The system refuses.
    #[error("`{path}` cannot be written: {reason}; nothing was written")]
    System {
        /// The file.
        path: WsPath,
        /// What it says, for a person.
        reason: String,
    },
    /// The system refused, and then refused to take back what was done.
    #[error("`{path}` cannot be written: {reason}; {} could not be taken back: {why}{}", list(.left), kept(.saved))]
    Torn {
        /// The file that failed first.
        path: WsPath,
        /// Why.
        reason: String,
        /// The files that are not as they were.
        left: Vec<WsPath>,
        /// Why they could not be taken back.
        why: String,
        /// Where the work of somebody else is now, who wrote to one of the files in the same moment.
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
            // The directory went away, or is one no more.
            OpenError::NotFound(_) | OpenError::NotADirectory(_) => Self::Stale { path: path.clone() },
            OpenError::Special(_) | OpenError::TooManyLinks(_) => {
                Self::Outside { path: path.clone(), reason: error.to_string() }
            }
        }
    }

    /// Why, without what that means for the tree.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Stale { .. } => "it changed after it was shown".to_owned(),
            Self::Outside { reason, .. } | Self::System { reason, .. } | Self::Torn { reason, .. } => reason.clone(),
        }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Stale { .. } => ErrorKind::Stale,
            Self::Outside { .. } => ErrorKind::FsDenied,
            Self::System { .. } => ErrorKind::ToolFailed,
            Self::Torn { .. } => ErrorKind::Internal,
        }
    }

    /// The file it happened at.
    pub fn path(&self) -> &WsPath {
        match self {
            Self::Stale { path } | Self::Outside { path, .. } | Self::System { path, .. } | Self::Torn { path, .. } => {
                path
            }
        }
    }
}
