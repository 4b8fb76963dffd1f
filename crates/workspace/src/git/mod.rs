//! Git branch mode: a branch of its own for a task, with uncommitted work left exactly as it is.
//!
//! [`Git::state`] looks, [`Git::plan`] says what would happen, [`Git::perform`] lets the `git` program do it and looks again. What a
//! repository is, what may be switched and what would be lost is git's to decide; nothing here second-guesses it by reading objects
//! or the index. It is never asked to force: no `--force`, no `--discard-changes`, no `--merge`, no reset, clean or stash. One thing
//! git does by itself is turned off: to overwrite *ignored* files that the other branch happens to contain.
//!
//! # How git is run
//!
//! With nothing of our environment but what [`Environment`] names, so that `GIT_DIR` and its like cannot point it elsewhere; in the
//! workspace's directory; without a terminal to ask on; with a time limit; with bounded output. Relative entries of the search path
//! are left out: they would run a `git` that lies in the workspace.
//!
//! The user's configuration and hooks stay on. Who runs `git switch` expects a `post-checkout` hook to run, and a repository that is not
//! theirs is one that git itself refuses ([`GitError::NotTrusted`]). When only looking, no file system monitor is started and
//! the index is not refreshed.
//!
//! # Limits
//!
//! - Submodules stay at the commit they are at, whatever `submodule.recurse` says: switching in them could touch work there.
//! - Where the workspace is a directory of a larger repository, switching to an existing branch changes files beside the workspace:
//!   a branch is the repository's.
//! - Since git gets no agents or proxies from the environment, a partial clone that has to fetch what it switches to may fail to.
//! - Untracked directories count as one, as in `git status`.

mod error;
mod look;
mod name;
mod perform;
mod plan;
mod run;
mod state;
mod status;

pub use error::GitError;
pub use name::{BranchName, BranchNameError, BranchPrefix};
pub use perform::{Deed, Performed};
pub use plan::{BranchPlan, Refusal, WithoutRepository};
pub use run::{Environment, Git};
pub use state::{CheckedOut, Checkout, GitState, Head, Operation, Repository};
pub use status::{Counts, Uncommitted, UncommittedKind};
