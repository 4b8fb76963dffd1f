//! Taking up a branch: git does it, and then it is looked at again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::look::failed;
use super::name::BranchName;
use super::plan::{BranchPlan, Refusal, WithoutRepository};
use super::run::{Answer, Git, Purpose};
use super::status::{Status, Uncommitted};
use crate::Workspace;

/// What was done, and the uncommitted work that came along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    /// The branch that is checked out now.
    pub branch: BranchName,
    /// What was done for it.
    pub deed: Deed,
    /// What is in no commit, now.
    pub uncommitted: Vec<Uncommitted>,
    /// Paths that were uncommitted before and are not, or not in the same way: the branch holds just what was staged, or ignores what
    /// the other did not, or has a file anew that was deleted. No bytes of anybody's are lost by that.
    pub settled: Vec<PathBuf>,
    /// Paths that are uncommitted now and were not, or not in the same way: the branch ignores less, say, or a hook wrote them.
    pub appeared: Vec<PathBuf>,
}

/// What was done to take up a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Nothing: it was checked out.
    AlreadyThere,
    /// It was made.
    Created,
    /// It was there, and was switched to.
    Switched,
    /// A repository was made, and the branch in it.
    Initialised,
}

/// What is never left to configuration: other files than those of the branch stay as they are.
///
/// Git overwrites ignored files by default when the other branch contains them. Submodules may hold work of their own.
const KEEPING: [&str; 4] = ["switch", "--quiet", "--no-overwrite-ignore", "--no-recurse-submodules"];

impl Git {
    /// Carries out a plan, if the repository is still as it was when it was made.
    pub fn perform(&self, workspace: &Workspace, plan: &BranchPlan) -> Result<Performed, GitError> {
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
        let (deed, before) = match plan {
            BranchPlan::Initialise { .. } => {
                self.initialise(here)?;
                let before = self.status(here)?;
                self.create(here, branch)?;
                (Deed::Initialised, before)
            }
            BranchPlan::Create { .. } => {
                let before = self.status(here)?;
                self.create(here, branch)?;
                (Deed::Created, before)
            }
            BranchPlan::Switch { .. } => {
                let before = self.status(here)?;
                self.switch(here, branch, &[&KEEPING[..], &["--no-guess", branch.as_str()]].concat())?;
                (Deed::Switched, before)
            }
            BranchPlan::AlreadyThere { .. } | BranchPlan::Refused { .. } => (Deed::AlreadyThere, self.status(here)?),
        };
        self.verify(here, branch, deed, &before)
    }

    /// Makes a branch at HEAD, or lets HEAD name it where there is no commit yet. Neither touches a file or the index.
    fn create(&self, here: &Path, branch: &BranchName) -> Result<(), GitError> {
        self.switch(here, branch, &[&KEEPING[..], &["--no-track", "--create", branch.as_str()]].concat())
    }

    fn switch(&self, here: &Path, branch: &BranchName, arguments: &[&str]) -> Result<(), GitError> {
        let answer = self.run(here, Purpose::Change, arguments)?;
        if answer.status.success() { Ok(()) } else { Err(refused(branch, &answer)) }
    }

    fn initialise(&self, here: &Path) -> Result<(), GitError> {
        let configured = self.run(here, Purpose::Look, &["config", "--get", "init.defaultBranch"])?;
        // Where the user has not said what a first branch is called, git would say at length that it might change its mind.
        let named: &[&str] = if configured.status.success() { &[] } else { &["--initial-branch=main"] };
        let answer = self.run(here, Purpose::Change, &[&["init", "--quiet"], named].concat())?;
        if answer.status.success() { Ok(()) } else { Err(failed("git init", &answer)) }
    }

    fn verify(&self, here: &Path, branch: &BranchName, deed: Deed, before: &Status) -> Result<Performed, GitError> {
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
        Ok(Performed { branch: branch.clone(), deed, uncommitted: files, settled, appeared })
    }
}

/// What git had against switching, from its words in the language of programs (`LC_ALL=C`).
fn refused(branch: &BranchName, answer: &Answer) -> GitError {
    let said = &answer.errors;
    if said.contains("would be overwritten")
        || said.contains("would be removed")
        || said.contains("would lose untracked")
    {
        // The files are the lines that start with a tab.
        let files = said.lines().filter_map(|line| line.strip_prefix('\t')).map(str::to_owned).collect();
        return GitError::WouldOverwrite { branch: branch.clone(), files };
    }
    // Not in the list of working trees, since a rebase or a bisect there has detached its HEAD.
    let elsewhere = ["already used by worktree at '", "already checked out at '"];
    if let Some(at) = elsewhere.iter().find_map(|words| said.find(words).map(|at| at + words.len())) {
        let worktree = said[at..].lines().next().unwrap_or_default().trim_end_matches('\'');
        return Refusal::CheckedOut { branch: branch.clone(), worktree: worktree.into() }.into();
    }
    failed("git switch", answer)
}
