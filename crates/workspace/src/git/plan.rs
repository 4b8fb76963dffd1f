//! Plans for switching to a task's branch, computed without changes.

use std::path::PathBuf;

use sayso_review::ErrorKind;
use thiserror::Error;

use super::error::{GitError, list};
use super::name::BranchName;
use super::run::Git;
use super::state::{GitState, Head, Operation, Repository};
use super::status::UncommittedKind;
use crate::Workspace;

/// Action if the workspace is in no repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutRepository {
    Refuse,
    /// Create a repository in the workspace's root. Only for a person who asked for it.
    Initialise,
}

/// Plan for switching to a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchPlan {
    /// The branch is checked out already.
    AlreadyThere { branch: BranchName },
    /// Create the branch at the present commit. Changes no file.
    Create {
        branch: BranchName,
        /// Present HEAD.
        from: Head,
    },
    /// Switch to the existing branch. Changes the files that differ; git refuses if uncommitted work is affected.
    Switch {
        branch: BranchName,
        /// Present HEAD.
        from: Head,
    },
    /// Create a repository in the workspace's root, and the branch in it.
    Initialise { branch: BranchName },
    /// The switch is not possible.
    Refused { branch: BranchName, reason: Refusal },
}

/// Reason why a switch is not possible. The repository is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("the program `git` was not found")]
    NoGit,
    #[error("the workspace is not in a git repository")]
    NotARepository,
    /// The repository has no working tree here.
    #[error("the repository `{}` has no working tree here", directory.display())]
    Bare {
        /// Git's directory.
        directory: PathBuf,
    },
    /// Another operation is in progress.
    #[error("a {0} is in progress in this repository")]
    InProgress(Operation),
    /// A merge left conflicted files.
    #[error("files are left to be settled after a merge: {}", list(files))]
    Unmerged { files: Vec<String> },
    /// Another working tree has checked out the branch.
    #[error("the branch `{branch}` is checked out in another working tree, `{}`", worktree.display())]
    CheckedOut { branch: BranchName, worktree: PathBuf },
    /// An existing branch name is a parent path of this one, or the reverse.
    #[error("the branch `{branch}` cannot be made beside the branch `{existing}`")]
    NameTaken {
        branch: BranchName,
        /// Conflicting branch.
        existing: String,
    },
}

impl Refusal {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoGit => ErrorKind::Unavailable,
            Self::NotARepository | Self::Bare { .. } => ErrorKind::InvalidArgs,
            Self::InProgress(_) | Self::Unmerged { .. } | Self::CheckedOut { .. } | Self::NameTaken { .. } => {
                ErrorKind::Conflict
            }
        }
    }

    /// Returns advice for the user, if this crate knows any. A surface adds its own way to create a repository.
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
    /// Computes the plan for switching to a branch.
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
