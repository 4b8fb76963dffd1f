//! Execution of branch plans by the `git` program, with a check of the result.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::inspect::failed;
use super::name::BranchName;
use super::plan::{BranchPlan, Refusal, WithoutRepository};
use super::run::{Answer, Git, Purpose};
use super::status::{Status, Uncommitted};
use crate::Workspace;

/// Result of [`Git::execute`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchOutcome {
    /// Branch that is now checked out.
    pub branch: BranchName,
    pub action: BranchAction,
    /// Uncommitted files now.
    pub uncommitted: Vec<Uncommitted>,
    /// Paths whose uncommitted state from before is gone or differs: the branch has the staged content, ignores the
    /// file, or restored a deleted file. No content is lost by that.
    pub settled: Vec<PathBuf>,
    /// Paths with a new or different uncommitted state: the branch ignores less, for instance, or a hook wrote them.
    pub appeared: Vec<PathBuf>,
}

/// Action that made the branch the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchAction {
    /// The branch was checked out already.
    AlreadyThere,
    Created,
    /// The branch existed and was switched to.
    Switched,
    /// A repository was created with the branch.
    Initialised,
}

/// Options that do not depend on configuration.
///
/// By default git overwrites ignored files that the other branch contains, and submodules may have work of their own.
const KEEPING: [&str; 4] = ["switch", "--quiet", "--no-overwrite-ignore", "--no-recurse-submodules"];

impl Git {
    /// Executes a plan, if the repository has not changed since.
    pub fn execute(&self, workspace: &Workspace, plan: &BranchPlan) -> Result<BranchOutcome, GitError> {
        if let BranchPlan::Refused { reason, .. } = plan {
            return Err(reason.clone().into());
        }
        let without = match plan {
            BranchPlan::Initialise { .. } => WithoutRepository::Initialise,
            _ => WithoutRepository::Refuse,
        };
        if self.plan(workspace, plan.branch(), without)? != *plan {
            return Err(GitError::Changed);
        }
        let here = workspace.path();
        let branch = plan.branch();
        let (action, before) = match plan {
            BranchPlan::Initialise { .. } => {
                self.initialise(here)?;
                let before = self.status(here)?;
                self.create(here, branch)?;
                (BranchAction::Initialised, before)
            }
            BranchPlan::Create { .. } => {
                let before = self.status(here)?;
                self.create(here, branch)?;
                (BranchAction::Created, before)
            }
            BranchPlan::Switch { .. } => {
                let before = self.status(here)?;
                self.switch(here, branch, &[&KEEPING[..], &["--no-guess", branch.as_str()]].concat())?;
                (BranchAction::Switched, before)
            }
            BranchPlan::AlreadyThere { .. } | BranchPlan::Refused { .. } => {
                (BranchAction::AlreadyThere, self.status(here)?)
            }
        };
        self.verify(here, branch, action, &before)
    }

    /// Creates a branch at HEAD, or points an unborn HEAD to it. Neither changes a file or the index.
    fn create(&self, here: &Path, branch: &BranchName) -> Result<(), GitError> {
        self.switch(here, branch, &[&KEEPING[..], &["--no-track", "--create", branch.as_str()]].concat())
    }

    fn switch(&self, here: &Path, branch: &BranchName, arguments: &[&str]) -> Result<(), GitError> {
        let answer = self.run(here, Purpose::Change, arguments)?;
        if answer.status.success() { Ok(()) } else { Err(refused(branch, &answer)) }
    }

    fn initialise(&self, here: &Path) -> Result<(), GitError> {
        let configured = self.run(here, Purpose::Look, &["config", "--get", "init.defaultBranch"])?;
        // Without a configured name for the first branch, git prints a long hint.
        let named: &[&str] = if configured.status.success() { &[] } else { &["--initial-branch=main"] };
        let answer = self.run(here, Purpose::Change, &[&["init", "--quiet"], named].concat())?;
        if answer.status.success() { Ok(()) } else { Err(failed("git init", &answer)) }
    }

    fn verify(
        &self,
        here: &Path,
        branch: &BranchName,
        action: BranchAction,
        before: &Status,
    ) -> Result<BranchOutcome, GitError> {
        let Status { commit, files, .. } = self.status(here)?;
        let head = self.head(here, commit)?;
        if head.branch() != Some(branch.as_str()) {
            return Err(GitError::NotThere { branch: branch.clone(), head: head.to_string() });
        }
        let without = |files: &[Uncommitted], others: &[Uncommitted]| {
            let others: HashSet<&Uncommitted> = others.iter().collect();
            files.iter().filter(|file| !others.contains(file)).map(|file| file.path.clone()).collect()
        };
        let (settled, appeared) = (without(&before.files, &files), without(&files, &before.files));
        Ok(BranchOutcome { branch: branch.clone(), action, uncommitted: files, settled, appeared })
    }
}

/// Creates the error of a failed switch from git's messages in the `C` locale.
fn refused(branch: &BranchName, answer: &Answer) -> GitError {
    let said = &answer.errors;
    if said.contains("would be overwritten")
        || said.contains("would be removed")
        || said.contains("would lose untracked")
    {
        // The files are on lines that start with a tab.
        let files = said.lines().filter_map(|line| line.strip_prefix('\t')).map(str::to_owned).collect();
        return GitError::WouldOverwrite { branch: branch.clone(), files };
    }
    // The list of working trees lacks it, because a rebase or a bisect there has detached its HEAD.
    let elsewhere = ["already used by worktree at '", "already checked out at '"];
    if let Some(at) = elsewhere.iter().find_map(|words| said.find(words).map(|at| at + words.len())) {
        let worktree = said[at..].lines().next().unwrap_or_default().trim_end_matches('\'');
        return Refusal::CheckedOut { branch: branch.clone(), worktree: worktree.into() }.into();
    }
    failed("git switch", answer)
}
