//! How a workspace stands with git.

use std::fmt;
use std::path::PathBuf;

use super::status::{Counts, Uncommitted};

/// How a workspace stands with git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitState {
    /// There is no `git` program.
    NoGit,
    /// It is in no repository.
    NotARepository,
    /// It is in a repository without a working tree: a bare one, or inside a `.git` directory.
    Bare {
        /// The repository's own directory.
        directory: PathBuf,
    },
    /// It is in the working tree of a repository.
    Repository(Box<Repository>),
}

/// The repository that a workspace is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The root of the working tree. It is the workspace or lies above it; a repository further down is not looked for.
    pub root: PathBuf,
    /// Where the workspace is below that root; empty if it is the root.
    pub inside: PathBuf,
    /// What is checked out.
    pub head: Head,
    /// The branch that this one follows, as in `origin/main`.
    pub upstream: Option<String>,
    /// What is in no commit, in git's order; ignored files are not looked for.
    pub uncommitted: Vec<Uncommitted>,
    /// What was begun and is to be finished or given up first.
    pub in_progress: Option<Operation>,
    /// Which of the repository's working trees this is.
    pub checkout: Checkout,
    /// The working tree of the repository that this one is a submodule of.
    pub superproject: Option<PathBuf>,
    /// Branches that are checked out in the repository's other working trees.
    pub elsewhere: Vec<CheckedOut>,
}

impl Repository {
    /// How many files are in no commit, by kind.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.uncommitted)
    }
}

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A branch.
    Branch {
        /// Its name, without `refs/heads/`.
        name: String,
        /// The commit it is at.
        commit: String,
    },
    /// A branch that will exist with its first commit.
    Unborn {
        /// Its name, without `refs/heads/`.
        name: String,
    },
    /// A commit, on no branch.
    Detached {
        /// The commit.
        commit: String,
    },
}

impl Head {
    /// The branch, if one is checked out.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } | Self::Unborn { name } => Some(name),
            Self::Detached { .. } => None,
        }
    }
}

impl fmt::Display for Head {
    /// As a person calls it: the branch, or the beginning of the commit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch { name, .. } | Self::Unborn { name } => f.write_str(name),
            Self::Detached { commit } => f.write_str(commit.get(..10).unwrap_or(commit)),
        }
    }
}

/// Something that git was asked to do and has not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `git rebase`.
    Rebase,
    /// `git merge`.
    Merge,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
    /// `git am`.
    Am,
}

impl Operation {
    /// Git's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rebase => "rebase",
            Self::Merge => "merge",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
            Self::Am => "am",
        }
    }

    /// How to finish it and how to give it up.
    pub fn ways_out(self) -> String {
        match self {
            Self::Bisect => "end it with `git bisect reset`".to_owned(),
            other => format!("finish it with `git {0} --continue`, or give it up with `git {0} --abort`", other.name()),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which of a repository's working trees one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkout {
    /// The main one.
    Main,
    /// One that `git worktree add` made.
    Linked {
        /// The main one; for a bare repository, that.
        main: PathBuf,
    },
}

/// A branch that is checked out in another working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedOut {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// Where.
    pub worktree: PathBuf,
}
