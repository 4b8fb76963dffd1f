//! Errors of git operations.

use std::path::PathBuf;

use sayso_review::ErrorKind;
use thiserror::Error;

use super::name::BranchName;
use super::plan::Refusal;

/// Errors of git operations.
#[derive(Debug, Error)]
pub enum GitError {
    #[error("the program `git` was not found")]
    NoGit,
    /// The `git` program does not start.
    #[error("cannot run `git`: {0}")]
    NotStarted(String),
    /// A command took too long and was ended.
    #[error("`{command}` had not finished after {seconds} seconds and was ended")]
    TimedOut { command: String, seconds: f64 },
    /// A command printed more output than is read.
    #[error("`{command}` printed too much output and was ended")]
    TooMuchOutput { command: String },
    /// The output of a command cannot be parsed.
    #[error("cannot parse the output of `{command}`: {said}")]
    NotUnderstood {
        command: &'static str,
        /// Unparsed part.
        said: String,
    },
    /// Another user owns the repository, so git does not trust it.
    #[error("git does not trust the repository, since it belongs to another user: {said}")]
    NotTrusted {
        said: String,
        /// Command that git advises to run.
        advice: Option<String>,
    },
    /// The plan is a refusal.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Switching would overwrite uncommitted work. The repository is unchanged.
    #[error("switching to `{branch}` would overwrite work that is in no commit: {}", list(files))]
    WouldOverwrite { branch: BranchName, files: Vec<String> },
    /// Another git process is running, or one was interrupted.
    #[error("the repository is locked: {said}")]
    Locked { said: String },
    /// The repository changed after the plan was made. The repository is unchanged.
    #[error("the repository changed after it was inspected")]
    Changed,
    /// Git succeeded, but another branch is checked out.
    #[error("git switched to `{branch}`, but now `{head}` is checked out: a hook may have changed it")]
    NotThere { branch: BranchName, head: String },
    /// A command failed for another reason.
    #[error("`{command}` failed: {said}")]
    Failed { command: &'static str, said: String },
    /// A file in git's directory cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
}

impl GitError {
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

    /// Returns advice for the user, if there is any.
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

/// Lists the first files.
pub(super) fn list(files: &[String]) -> String {
    const MAX_LISTED: usize = 5;
    let mut text = files.iter().take(MAX_LISTED).map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
    if files.len() > MAX_LISTED {
        text.push_str(&format!(" and {} more", files.len() - MAX_LISTED));
    }
    text
}
