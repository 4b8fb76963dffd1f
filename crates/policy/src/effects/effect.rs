//! What a command appears to do besides printing.

use std::fmt::{self, Display, Formatter};

use sayso_base::{Severity, WsPath};
use sayso_shell::visible;
use serde::{Deserialize, Serialize};

/// Something that a command appears to do. Known from the program's name and words, so it may be wrong either way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Makes or changes a file.
    Writes {
        /// Which.
        path: Place,
    },
    /// Removes a file.
    Deletes {
        /// Which.
        path: Place,
        /// Whether all that is below it goes too.
        recursive: bool,
    },
    /// Talks to other machines.
    Fetches {
        /// What is asked for, as it is written.
        what: String,
    },
    /// Runs what it has just got from another machine.
    RunsFetched,
    /// Gets the rights of another user.
    Elevates {
        /// Through which program.
        program: String,
    },
    /// Runs code of another language that is in the command or on its input.
    RunsCode {
        /// What runs it.
        interpreter: String,
    },
    /// Changes who may do what with a file.
    ChangesPermissions {
        /// Which.
        path: Place,
    },
    /// Throws away work that only git has.
    RewritesHistory {
        /// The command, as far as it says so.
        command: String,
    },
    /// Goes to, or names, what is outside the workspace.
    LeavesWorkspace {
        /// Where to, as far as it is known.
        path: String,
    },
    /// Changes what is not captured, so that an undo cannot bring it back.
    NotCaptured {
        /// What, as far as it is known.
        path: String,
        /// Why it is not, as the end of a sentence.
        reason: String,
    },
    /// Ends processes.
    Kills,
    /// Changes the machine itself.
    System {
        /// Through which program or device.
        program: String,
    },
}

/// A place that a command names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the workspace, as far as names tell: a symbolic link may lead elsewhere.
    Inside(WsPath),
    /// Outside.
    Outside(String),
    /// It depends on a variable, a pattern or an unknown directory.
    Unknown(String),
}

impl Place {
    /// The path as it is written, without saying where it is.
    pub fn name(&self) -> String {
        match self {
            Self::Inside(path) => path.to_string(),
            Self::Outside(text) | Self::Unknown(text) => text.clone(),
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside(path) => write!(f, "`{}`", visible(&path.to_string())),
            Self::Outside(path) => write!(f, "`{}` outside the workspace", visible(path)),
            Self::Unknown(path) => write!(f, "`{}`", visible(path)),
        }
    }
}

impl Display for Effect {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writes { path } => write!(f, "appears to write {path}"),
            Self::Deletes { path, recursive: false } => write!(f, "appears to delete {path}"),
            Self::Deletes { path, recursive: true } => write!(f, "appears to delete {path} and all below it"),
            Self::Fetches { what } => write!(f, "appears to reach other machines: `{}`", visible(what)),
            Self::RunsFetched => f.write_str("appears to run what it has just fetched"),
            Self::Elevates { program } => {
                let program = visible(program);
                write!(f, "appears to take another user's rights through `{program}`, ")?;
                f.write_str("which fails under the gate: `sayso exec --unmarked` runs it, in your name")
            }
            Self::RunsCode { interpreter } => write!(f, "appears to run code in `{}`", visible(interpreter)),
            Self::ChangesPermissions { path } => write!(f, "appears to change the permissions of {path}"),
            Self::RewritesHistory { command } => {
                write!(f, "appears to throw away work in git: `{}`", visible(command))
            }
            Self::LeavesWorkspace { path } => {
                write!(f, "appears to reach outside the workspace: `{}`", visible(path))
            }
            Self::NotCaptured { path, reason } => {
                write!(f, "undo cannot bring all of `{}` back: {}", visible(path), visible(reason))
            }
            Self::Kills => f.write_str("appears to end processes"),
            Self::System { program } => write!(f, "appears to change the machine itself: `{}`", visible(program)),
        }
    }
}

impl Effect {
    /// How much it matters.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Writes { path: Place::Inside(_) } => Severity::Info,
            Self::Writes { path: Place::Outside(path) } if !is_scratch(path) => Severity::Critical,
            Self::Deletes { path: Place::Inside(path), recursive: true } if path.is_root() => Severity::Critical,
            Self::Deletes { path: Place::Outside(_), .. }
            | Self::Deletes { path: Place::Unknown(_), recursive: true }
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

/// Where files are put that nobody misses.
fn is_scratch(path: &str) -> bool {
    path.starts_with("/tmp/") || path.starts_with("/var/tmp/")
}
