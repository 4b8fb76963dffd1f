//! Why git could not be asked, or did not do what it was asked.

use std::path::PathBuf;

use sayso_review::ErrorKind;
use thiserror::Error;

use super::name::BranchName;
use super::plan::Refusal;

/// Why git could not be asked, or did not do what it was asked.
#[derive(Debug, Error)]
pub enum GitError {
    /// There is no `git` program.
    #[error("the program `git` was not found")]
    NoGit,
    /// There is one, and it does not start.
    #[error("`git` could not be run: {0}")]
    NotStarted(String),
    /// It took too long and was ended.
    #[error("`{command}` had not finished after {seconds} seconds and was ended")]
    TimedOut {
        /// The command.
        command: String,
        /// The limit.
        seconds: f64,
    },
    /// It said more than anybody wants to read.
    #[error("`{command}` said too much, and was ended")]
    TooMuchOutput {
        /// The command.
        command: String,
    },
    /// It said something that we do not understand.
    #[error("what `{command}` said was not understood: {said}")]
    NotUnderstood {
        /// The command.
        command: &'static str,
        /// The part in question.
        said: String,
    },
    /// The repository belongs to somebody else, and git does not trust it.
    #[error("git does not trust the repository, since it belongs to another user: {said}")]
    NotTrusted {
        /// What git says.
        said: String,
        /// The command that it advises, where it does.
        advice: Option<String>,
    },
    /// What was planned is not to be done.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Switching would overwrite work that is in no commit. Nothing was changed.
    #[error("switching to `{branch}` would overwrite work that is in no commit: {}", list(files))]
    WouldOverwrite {
        /// Where to.
        branch: BranchName,
        /// The files.
        files: Vec<String>,
    },
    /// Another git is at work, or one was interrupted.
    #[error("the repository is locked: {said}")]
    Locked {
        /// What git says.
        said: String,
    },
    /// The repository is no longer as it was when the plan was made. Nothing was changed.
    #[error("the repository has changed since it was looked at")]
    Changed,
    /// Git says that it succeeded, and yet the branch is another.
    #[error("git switched to `{branch}`, but now `{head}` is checked out: a hook may have changed it")]
    NotThere {
        /// Where to.
        branch: BranchName,
        /// Where it is.
        head: String,
    },
    /// It failed for another reason.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// The command.
        command: &'static str,
        /// What git says.
        said: String,
    },
    /// A file of the repository's own could not be looked at.
    #[error("`{}` could not be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

impl GitError {
    /// The kind, for exit codes and the protocol.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoGit | Self::NotStarted(_) => ErrorKind::Unavailable,
            Self::Refused(refusal) => refusal.kind(),
            Self::WouldOverwrite { .. } | Self::Locked { .. } | Self::NotThere { .. } => ErrorKind::Conflict,
            Self::Changed => ErrorKind::Stale,
            Self::NotUnderstood { .. } => ErrorKind::Internal,
            Self::NotTrusted { .. }
            | Self::TimedOut { .. }
            | Self::TooMuchOutput { .. }
            | Self::Failed { .. }
            | Self::Unreadable { .. } => ErrorKind::ToolFailed,
        }
    }

    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoGit => Refusal::NoGit.hint(),
            Self::Refused(refusal) => refusal.hint(),
            Self::TimedOut { .. } => {
                Some("`git status` says how far it came; uncommitted work is not overwritten".into())
            }
            Self::NotTrusted { advice: Some(advice), .. } => Some(format!("if you trust it, run `{advice}`")),
            Self::NotTrusted { advice: None, .. } => Some("if you trust it, add it to git's safe.directory".into()),
            Self::WouldOverwrite { .. } => {
                Some("nothing was changed; commit these files or move them away first".into())
            }
            Self::Locked { .. } => {
                Some("wait for the other git to finish; if there is none, remove the lock file it names".into())
            }
            Self::Changed => Some("nothing was changed; run it again".into()),
            Self::NotThere { .. } => Some("look at `git status` and at the hook `post-checkout`".into()),
            Self::TooMuchOutput { .. } => Some("keep generated files out of the status with .gitignore".into()),
            Self::NotStarted(_) | Self::NotUnderstood { .. } | Self::Failed { .. } | Self::Unreadable { .. } => None,
        }
    }
}

/// Names the first few.
pub(super) fn list(files: &[String]) -> String {
    const MOST: usize = 5;
    let mut text = files.iter().take(MOST).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    if files.len() > MOST {
        text.push_str(&format!(" and {} more", files.len() - MOST));
    }
    text
}
