//! Git branch mode: a branch for a task, with uncommitted work left as it is.
//!
//! [`Git::state`] inspects, [`Git::plan`] computes the effect, and [`Git::execute`] runs the `git` program and inspects
//! again. Git alone decides which repository this is, whether a switch is possible and whether it would lose work; this
//! module reads neither objects nor the index. It never forces: no `--force`, `--discard-changes` or `--merge`, and no
//! reset, clean or stash. One default of git is turned off: overwriting *ignored* files that the other branch contains.
//!
//! # Environment of git
//!
//! The environment has only the variables of [`Environment`], so that `GIT_DIR` and the like cannot redirect git. It
//! runs in the workspace's directory, without a terminal for prompts, with a time limit and bounded output. Relative
//! entries of the search path are dropped: they could run a `git` program inside the workspace.
//!
//! The user's configuration and hooks apply. A user of `git switch` expects the `post-checkout` hook, and git itself
//! rejects repositories of other users ([`GitError::NotTrusted`]). An inspection starts no file system monitor and does
//! not refresh the index.
//!
//! # Limits
//!
//! - Submodules stay at their commit, whatever `submodule.recurse` is: switching in them could affect work there.
//! - If the workspace is a directory of a larger repository, switching to an existing branch changes files beside the
//!   workspace, since a branch belongs to the whole repository.
//! - Git gets no agents or proxies from the environment, so a partial clone may fail to fetch the files of a branch.
//! - An untracked directory counts as one entry, as in `git status`.

mod error;
mod execute;
mod inspect;
mod name;
mod plan;
mod run;
mod state;
mod status;

pub use error::GitError;
pub use execute::{BranchAction, BranchOutcome};
pub use name::{BranchName, BranchNameError, BranchPrefix};
pub use plan::{BranchPlan, Refusal, WithoutRepository};
pub use run::{Environment, Git};
pub use state::{CheckedOut, Checkout, GitState, Head, Operation, Repository};
pub use status::{Counts, Uncommitted, UncommittedKind};
