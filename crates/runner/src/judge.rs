//! The question about one command, with everything that decides its effect.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use sayso_shell::RedirectAccess;
use sayso_shell::program::Builtin;

/// Decides about each command right before it runs. Called from several threads.
pub trait Judge: Sync {
    /// Judges one command with its redirections, before any of its effects.
    fn judge(&self, command: &PreparedCommand) -> Judgement;
}

/// The answer about one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    Proceed,
    /// The script ends, and its running programs get SIGTERM.
    Refuse {
        /// Written to standard error.
        reason: String,
    },
}

/// A command with all expansions carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedCommand {
    /// The meaning of the first word.
    pub target: Target,
    /// The first word as written and its arguments; empty for assignments or redirections by themselves.
    pub argv: Vec<OsString>,
    /// Absolute path of the folder in which it runs.
    pub directory: PathBuf,
    /// `NAME=value` before the first word.
    pub assignments: Vec<(OsString, OsString)>,
    /// All variables that a child gets, with the assignments.
    pub environment: BTreeMap<OsString, OsString>,
    /// Files that its redirections open, in order.
    pub redirects: Vec<PreparedRedirect>,
}

/// The meaning of a command's first word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The file that is executed, by its absolute path.
    Program(PathBuf),
    /// A command of the runner itself.
    Builtin(Builtin),
    /// No program has this name. The command fails, but its redirections take effect.
    Missing,
    /// The command has no word: redirections of a construct, or assignments.
    Nothing,
}

/// A file that a redirection opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedRedirect {
    /// The number of the descriptor in the command.
    pub descriptor: u8,
    /// Absolute path, with symbolic links and `..` as written.
    pub path: PathBuf,
    /// Use of the file.
    pub access: RedirectAccess,
}
