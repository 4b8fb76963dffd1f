//! Effects of a command beyond printing.

use std::fmt::{self, Display, Formatter};

use sayso_base::{Severity, WsPath};
use sayso_shell::escape_unprintable;
use serde::{Deserialize, Serialize};

/// An apparent effect of a command. It is inferred from the program's name and words, so it may be wrong either way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Creates or changes a file.
    Writes { path: PathTarget },
    /// Removes a file.
    Deletes {
        path: PathTarget,
        /// Deletes everything below the path too.
        recursive: bool,
    },
    /// Connects to other machines.
    Fetches {
        /// The command as written.
        what: String,
    },
    /// Runs code that an earlier command of the script downloaded.
    RunsFetched,
    /// Runs with another user's privileges.
    Elevates { program: String },
    /// Runs code in another language from the command line or from standard input.
    RunsCode { interpreter: String },
    /// Changes the mode or owner of a file.
    ChangesPermissions { path: PathTarget },
    /// Discards commits or uncommitted work in git.
    RewritesHistory { command: String },
    /// Enters or names a path outside the workspace.
    LeavesWorkspace { path: String },
    /// Changes files that are not captured, so undo cannot restore them.
    NotCaptured {
        path: String,
        /// Completes the sentence "undo cannot restore … because".
        reason: String,
    },
    /// Terminates processes.
    Kills,
    /// Changes the machine itself.
    System {
        /// The program, or the device that is written.
        program: String,
    },
}

/// A path that an action names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathTarget {
    /// In the workspace by name. A symbolic link may lead elsewhere.
    Inside(WsPath),
    /// Outside the workspace.
    Outside(String),
    /// Depends on a variable, a pattern or an unknown directory.
    Unknown(String),
}

impl PathTarget {
    /// Returns the path as written.
    pub fn text(&self) -> String {
        match self {
            Self::Inside(path) => path.to_string(),
            Self::Outside(text) | Self::Unknown(text) => text.clone(),
        }
    }
}

impl Display for PathTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside(path) => write!(f, "`{}`", escape_unprintable(&path.to_string())),
            Self::Outside(path) => write!(f, "`{}` outside the workspace", escape_unprintable(path)),
            Self::Unknown(path) => write!(f, "`{}`", escape_unprintable(path)),
        }
    }
}

impl Display for Effect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writes { path } => write!(f, "appears to write {path}"),
            Self::Deletes { path, recursive: false } => write!(f, "appears to delete {path}"),
            Self::Deletes { path, recursive: true } => write!(f, "appears to delete {path} and all below it"),
            Self::Fetches { what } => write!(f, "appears to reach other machines: `{}`", escape_unprintable(what)),
            Self::RunsFetched => f.write_str("appears to run what it has just fetched"),
            Self::Elevates { program } => {
                let program = escape_unprintable(program);
                write!(f, "appears to take another user's privileges through `{program}`, ")?;
                f.write_str("which fails under the gate; run it yourself with `sayso exec --unmarked`")
            }
            Self::RunsCode { interpreter } => write!(f, "appears to run code in `{}`", escape_unprintable(interpreter)),
            Self::ChangesPermissions { path } => write!(f, "appears to change the permissions of {path}"),
            Self::RewritesHistory { command } => {
                write!(f, "appears to discard work in git: `{}`", escape_unprintable(command))
            }
            Self::LeavesWorkspace { path } => {
                write!(f, "appears to reach outside the workspace: `{}`", escape_unprintable(path))
            }
            Self::NotCaptured { path, reason } => {
                write!(f, "undo cannot restore all of `{}`: {}", escape_unprintable(path), escape_unprintable(reason))
            }
            Self::Kills => f.write_str("appears to end processes"),
            Self::System { program } => {
                write!(f, "appears to change the machine itself: `{}`", escape_unprintable(program))
            }
        }
    }
}

impl Effect {
    pub fn severity(&self) -> Severity {
        match self {
            Self::Writes { path: PathTarget::Inside(_) } => Severity::Info,
            Self::Writes { path: PathTarget::Outside(path) } if !is_scratch(path) => Severity::Critical,
            Self::Deletes { path: PathTarget::Inside(path), recursive: true } if path.is_root() => Severity::Critical,
            Self::Deletes { path: PathTarget::Outside(_), .. }
            | Self::Deletes { path: PathTarget::Unknown(_), recursive: true }
            | Self::RunsFetched
            | Self::Elevates { .. }
            | Self::RewritesHistory { .. }
            | Self::System { .. } => Severity::Critical,
            Self::Writes { .. }
            | Self::Deletes { .. }
            | Self::Fetches { .. }
            | Self::RunsCode { .. }
            | Self::ChangesPermissions { .. }
            | Self::LeavesWorkspace { .. }
            | Self::NotCaptured { .. }
            | Self::Kills => Severity::Warning,
        }
    }
}

/// `true` for directories of temporary files.
fn is_scratch(path: &str) -> bool {
    path.starts_with("/tmp/") || path.starts_with("/var/tmp/")
}
