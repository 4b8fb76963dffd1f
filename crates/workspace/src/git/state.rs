//! State of a workspace's git repository.

use std::fmt;
use std::path::PathBuf;

use super::status::{Counts, Uncommitted};

/// State of a workspace's git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GitState {
    NoGit,
    NotARepository,
    /// The workspace is in a bare repository or inside a `.git` directory.
    Bare {
        /// Git's directory.
        directory: PathBuf,
    },
    /// The workspace is in the working tree of a repository.
    Repository(Box<Repository>),
}

/// Repository of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Root of the working tree: the workspace or a directory above it. Nested repositories are ignored.
    pub root: PathBuf,
    /// Path of the workspace below the root; empty if it is the root.
    pub inside: PathBuf,
    pub head: Head,
    /// Upstream branch, such as `origin/main`.
    pub upstream: Option<String>,
    /// Uncommitted files in git's order, without ignored ones.
    pub uncommitted: Vec<Uncommitted>,
    /// Operation in progress.
    pub in_progress: Option<Operation>,
    pub checkout: Checkout,
    /// Working tree of the repository that has this one as a submodule.
    pub superproject: Option<PathBuf>,
    /// Branches that are checked out in other working trees of the repository.
    pub elsewhere: Vec<CheckedOut>,
}

impl Repository {
    /// Counts the uncommitted files by kind.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.uncommitted)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    Branch {
        /// Without `refs/heads/`.
        name: String,
        commit: String,
    },
    /// A branch without a commit.
    Unborn {
        /// Without `refs/heads/`.
        name: String,
    },
    /// A commit without a branch.
    Detached { commit: String },
}

impl Head {
    /// Returns the branch, if one is checked out.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } | Self::Unborn { name } => Some(name),
            Self::Detached { .. } => None,
        }
    }
}

impl fmt::Display for Head {
    /// Shows the branch or the abbreviated commit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch { name, .. } | Self::Unborn { name } => f.write_str(name),
            Self::Detached { commit } => f.write_str(commit.get(..10).unwrap_or(commit)),
        }
    }
}

/// An unfinished operation of git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Rebase,
    Merge,
    CherryPick,
    Revert,
    Bisect,
    Am,
}

impl Operation {
    /// Returns git's name for the operation.
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

    /// Returns advice on how to finish or abort the operation.
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

/// Kind of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkout {
    Main,
    /// A working tree that `git worktree add` created.
    Linked {
        /// Path of the main working tree or bare repository.
        main: PathBuf,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedOut {
    /// Without `refs/heads/`.
    pub branch: String,
    pub worktree: PathBuf,
}
