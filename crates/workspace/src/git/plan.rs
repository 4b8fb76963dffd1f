//! What taking up a task's branch would do, computed and never executed.

use std::path::PathBuf;

use sayso_review::ErrorKind;
use thiserror::Error;

use super::error::{GitError, list};
use super::name::BranchName;
use super::run::Git;
use super::state::{GitState, Head, Operation, Repository};
use super::status::UncommittedKind;
use crate::Workspace;

/// What to do where there is no repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutRepository {
    /// Nothing.
    Refuse,
    /// Make one in the workspace's root: only when a person asks for it.
    Initialise,
}

/// What taking up a branch would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchPlan {
    /// Nothing: it is checked out.
    AlreadyThere {
        /// The branch.
        branch: BranchName,
    },
    /// Make it where the repository is now. No file is touched.
    Create {
        /// The branch.
        branch: BranchName,
        /// What is checked out now.
        from: Head,
    },
    /// Switch to it, since it exists. Files that differ between the two are changed; git refuses if uncommitted work is in the way.
    Switch {
        /// The branch.
        branch: BranchName,
        /// What is checked out now.
        from: Head,
    },
    /// Make a repository in the workspace's root, and the branch in it.
    Initialise {
        /// The branch.
        branch: BranchName,
    },
    /// Nothing, for a reason.
    Refused {
        /// The branch.
        branch: BranchName,
        /// The reason.
        reason: Refusal,
    },
}

/// Why a branch is not taken up. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is no `git` program.
    #[error("the program `git` was not found")]
    NoGit,
    /// There is no repository.
    #[error("the workspace is not in a git repository")]
    NotARepository,
    /// There are no files to work on.
    #[error("the repository `{}` has no working tree here", directory.display())]
    Bare {
        /// The repository's own directory.
        directory: PathBuf,
    },
    /// Something else was begun.
    #[error("a {0} is in progress in this repository")]
    InProgress(Operation),
    /// Files are to be settled after a merge.
    #[error("files are left to be settled after a merge: {}", list(files))]
    Unmerged {
        /// Which.
        files: Vec<String>,
    },
    /// Another working tree has it.
    #[error("the branch `{branch}` is checked out in another working tree, `{}`", worktree.display())]
    CheckedOut {
        /// The branch.
        branch: BranchName,
        /// Where.
        worktree: PathBuf,
    },
    /// Git cannot keep two branches of which one's name is the beginning of the other's.
    #[error("the branch `{branch}` cannot be made beside the branch `{existing}`")]
    NameTaken {
        /// The branch.
        branch: BranchName,
        /// The one in its way.
        existing: String,
    },
}

impl Refusal {
    /// The kind, for exit codes and the protocol.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoGit => ErrorKind::Unavailable,
            Self::NotARepository | Self::Bare { .. } => ErrorKind::InvalidArgs,
            Self::InProgress(_) | Self::Unmerged { .. } | Self::CheckedOut { .. } | Self::NameTaken { .. } => {
                ErrorKind::Conflict
            }
        }
    }

    /// What to do next, where this crate can know it: how to ask for a repository is the surface's to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoGit => Some("install git, or go on with proposals, which need none".into()),
            Self::NotARepository => None,
            Self::Bare { .. } => Some("name a working tree as the workspace; `git worktree add` makes one".into()),
            Self::InProgress(operation) => Some(operation.ways_out()),
            Self::Unmerged { .. } => Some("settle them and `git add` them first".into()),
            Self::CheckedOut { worktree, .. } => {
                Some(format!("work there, or remove it with `git worktree remove {}`", worktree.display()))
            }
            Self::NameTaken { existing, .. } => {
                Some(format!("take another prefix, or rename the other with `git branch -m {existing} NEW`"))
            }
        }
    }
}

impl BranchPlan {
    /// The branch that it is about.
    pub fn branch(&self) -> &BranchName {
        match self {
            Self::AlreadyThere { branch }
            | Self::Create { branch, .. }
            | Self::Switch { branch, .. }
            | Self::Initialise { branch }
            | Self::Refused { branch, .. } => branch,
        }
    }
}

impl Git {
    /// Says what taking up a branch would do.
    pub fn plan(
        &self,
        workspace: &Workspace,
        branch: &BranchName,
        without: WithoutRepository,
    ) -> Result<BranchPlan, GitError> {
        let branch = branch.clone();
        let reason = match self.state(workspace)? {
            GitState::Repository(repository) => return self.plan_in(workspace, &repository, branch),
            GitState::NotARepository if without == WithoutRepository::Initialise => {
                return Ok(BranchPlan::Initialise { branch });
            }
            GitState::NotARepository => Refusal::NotARepository,
            GitState::NoGit => Refusal::NoGit,
            GitState::Bare { directory } => Refusal::Bare { directory },
        };
        Ok(BranchPlan::Refused { branch, reason })
    }

    fn plan_in(
        &self,
        workspace: &Workspace,
        repository: &Repository,
        branch: BranchName,
    ) -> Result<BranchPlan, GitError> {
        if repository.head.branch() == Some(branch.as_str()) {
            return Ok(BranchPlan::AlreadyThere { branch });
        }
        let first = branch.ancestors().next().unwrap_or(branch.as_str());
        let existing = self.branches_below(workspace.path(), first)?;
        Ok(match refusal(repository, &branch, &existing) {
            Some(reason) => BranchPlan::Refused { branch, reason },
            None if existing.iter().any(|name| name == branch.as_str()) => {
                BranchPlan::Switch { branch, from: repository.head.clone() }
            }
            None => BranchPlan::Create { branch, from: repository.head.clone() },
        })
    }
}

fn refusal(repository: &Repository, branch: &BranchName, existing: &[String]) -> Option<Refusal> {
    if let Some(operation) = repository.in_progress {
        return Some(Refusal::InProgress(operation));
    }
    let unmerged = repository.uncommitted.iter().filter(|file| file.kind == UncommittedKind::Conflicted);
    let files: Vec<String> = unmerged.map(|file| file.path.to_string_lossy().into_owned()).collect();
    if !files.is_empty() {
        return Some(Refusal::Unmerged { files });
    }
    if let Some(other) = repository.elsewhere.iter().find(|other| other.branch == branch.as_str()) {
        return Some(Refusal::CheckedOut { branch: branch.clone(), worktree: other.worktree.clone() });
    }
    let below = format!("{branch}/");
    let in_the_way =
        |name: &&String| branch.ancestors().any(|parent| parent == name.as_str()) || name.starts_with(&below);
    let existing = existing.iter().find(in_the_way)?.clone();
    Some(Refusal::NameTaken { branch: branch.clone(), existing })
}
