//! Inspection of a repository, without changes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::run::{Answer, Git, Purpose};
use super::state::{CheckedOut, Checkout, GitState, Head, Operation, Repository};
use super::status::{self, Status};
use crate::Workspace;

const BRANCHES: &str = "refs/heads/";

impl Git {
    /// Inspects the repository of a workspace.
    pub fn state(&self, workspace: &Workspace) -> Result<GitState, GitError> {
        let here = workspace.path();
        let kind = match self.run(here, Purpose::Look, &["rev-parse", "--is-inside-work-tree"]) {
            Ok(answer) => answer,
            Err(GitError::NoGit) => return Ok(GitState::NoGit),
            Err(error) => return Err(error),
        };
        if !kind.status.success() {
            // The message without "or any of the parent directories" means a `.git` file with a wrong path.
            let none = kind.errors.contains("not a git repository (or any");
            return if none { Ok(GitState::NotARepository) } else { Err(failed("git rev-parse", &kind)) };
        }
        let directory = self.path(here, &["--absolute-git-dir"])?;
        match kind.output.trim_ascii_end() {
            b"true" => {}
            b"false" => return Ok(GitState::Bare { directory }),
            other => {
                let said = String::from_utf8_lossy(other).into_owned();
                return Err(GitError::NotUnderstood { command: "git rev-parse", said });
            }
        }
        let root = self.path(here, &["--show-toplevel"])?;
        let common = self.path(here, &["--path-format=absolute", "--git-common-dir"])?;
        let superproject = self.path(here, &["--show-superproject-working-tree"])?;
        let Status { commit, upstream, files } = self.status(here)?;
        let (main, elsewhere) = self.worktrees(here, &root)?;
        let linked = directory != common;
        Ok(GitState::Repository(Box::new(Repository {
            inside: here.strip_prefix(&root).map(Path::to_owned).unwrap_or_default(),
            head: self.head(here, commit)?,
            upstream,
            uncommitted: files,
            in_progress: self.in_progress(here, &directory, &common)?,
            checkout: if linked { Checkout::Linked { main } } else { Checkout::Main },
            superproject: Some(superproject).filter(|path| !path.as_os_str().is_empty()),
            elsewhere,
            root,
        })))
    }

    /// Returns the uncommitted files.
    pub(super) fn status(&self, here: &Path) -> Result<Status, GitError> {
        // All options are explicit, since the user's configuration may change the defaults. Renames are a matter of
        // display only.
        let arguments = [
            "status",
            "--porcelain=v2",
            "--branch",
            "-z",
            "--untracked-files=normal",
            "--no-renames",
            "--no-ahead-behind",
        ];
        status::parse(&self.look(here, "git status", &arguments)?)
    }

    pub(super) fn head(&self, here: &Path, commit: Option<String>) -> Result<Head, GitError> {
        let answer = self.run(here, Purpose::Look, &["symbolic-ref", "--quiet", "HEAD"])?;
        let name = match answer.status.code() {
            Some(0) => Some(String::from_utf8_lossy(&answer.output).trim_end().to_owned()),
            Some(1) => None,
            _ => return Err(failed("git symbolic-ref", &answer)),
        };
        let branch = name.as_ref().map(|name| name.strip_prefix(BRANCHES).unwrap_or(name).to_owned());
        match (branch, commit) {
            (Some(name), Some(commit)) => Ok(Head::Branch { name, commit }),
            (Some(name), None) => Ok(Head::Unborn { name }),
            (None, Some(commit)) => Ok(Head::Detached { commit }),
            (None, None) => {
                Err(GitError::NotUnderstood { command: "git status", said: "no branch and no commit".into() })
            }
        }
    }

    /// Returns the branches named `first` or `first/…`.
    pub(super) fn branches_below(&self, here: &Path, first: &str) -> Result<Vec<String>, GitError> {
        let pattern = format!("{BRANCHES}{first}");
        let output = self.look(here, "git for-each-ref", &["for-each-ref", "--format=%(refname)", &pattern])?;
        let names = String::from_utf8_lossy(&output);
        Ok(names.lines().filter_map(|name| name.strip_prefix(BRANCHES)).map(str::to_owned).collect())
    }

    /// Returns the main working tree, and the branches that are checked out in working trees other than `root`.
    fn worktrees(&self, here: &Path, root: &Path) -> Result<(PathBuf, Vec<CheckedOut>), GitError> {
        let output = self.look(here, "git worktree", &["worktree", "list", "--porcelain", "-z"])?;
        let mut main = PathBuf::new();
        let mut elsewhere = Vec::new();
        let mut worktree = PathBuf::new();
        for field in output.split(|byte| *byte == 0) {
            if let Some(path) = field.strip_prefix(b"worktree ") {
                worktree = PathBuf::from(OsStr::from_bytes(path));
                if main.as_os_str().is_empty() {
                    main.clone_from(&worktree);
                }
            } else if let Some(branch) = field.strip_prefix(b"branch refs/heads/")
                && worktree != root
            {
                elsewhere.push(CheckedOut {
                    branch: String::from_utf8_lossy(branch).into_owned(),
                    worktree: worktree.clone(),
                });
            }
        }
        Ok((main, elsewhere))
    }

    /// Returns the operation in progress in this working tree. Git has no machine-readable command for it, so this
    /// checks for the files that git keeps meanwhile.
    fn in_progress(&self, here: &Path, directory: &Path, common: &Path) -> Result<Option<Operation>, GitError> {
        let has = |name: &str| exists(&directory.join(name));
        if has("rebase-merge")? {
            return Ok(Some(Operation::Rebase));
        }
        if has("rebase-apply")? {
            let am = has("rebase-apply/applying")?;
            return Ok(Some(if am { Operation::Am } else { Operation::Rebase }));
        }
        if has("MERGE_HEAD")? {
            return Ok(Some(Operation::Merge));
        }
        // With the reftable format, only git can look up references.
        let files = !exists(&common.join("reftable"))?;
        for (name, operation) in [("CHERRY_PICK_HEAD", Operation::CherryPick), ("REVERT_HEAD", Operation::Revert)] {
            let there = if files { has(name)? } else { self.has_reference(here, name)? };
            if there {
                return Ok(Some(operation));
            }
        }
        // Between two of several picks, only the todo list exists.
        if has("sequencer/todo")? {
            let todo = read(&directory.join("sequencer/todo"))?;
            let reverts = todo.starts_with(b"revert");
            return Ok(Some(if reverts { Operation::Revert } else { Operation::CherryPick }));
        }
        Ok(has("BISECT_LOG")?.then_some(Operation::Bisect))
    }

    fn has_reference(&self, here: &Path, name: &str) -> Result<bool, GitError> {
        let answer = self.run(here, Purpose::Look, &["rev-parse", "--verify", "--quiet", name])?;
        Ok(answer.status.success())
    }

    /// Returns one path. Each is queried separately, since a path may contain line breaks.
    fn path(&self, here: &Path, arguments: &[&str]) -> Result<PathBuf, GitError> {
        let mut output = self.look(here, "git rev-parse", &[&["rev-parse"], arguments].concat())?;
        if output.last() == Some(&b'\n') {
            output.pop();
        }
        Ok(PathBuf::from(OsString::from_vec(output)))
    }

    fn look(&self, here: &Path, command: &'static str, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        let answer = self.run(here, Purpose::Look, arguments)?;
        if answer.status.success() { Ok(answer.output) } else { Err(failed(command, &answer)) }
    }
}

/// Creates the error of a failed command, with special cases that all commands share.
pub(super) fn failed(command: &'static str, answer: &Answer) -> GitError {
    let said = answer.errors.trim();
    let first = said.lines().next().unwrap_or("git gave no reason").trim_start_matches("fatal: ").to_owned();
    if said.contains("dubious ownership") {
        let advice = said.lines().map(str::trim).find(|line| line.starts_with("git config ")).map(str::to_owned);
        return GitError::NotTrusted { said: first, advice };
    }
    if said.contains(".lock': File exists") {
        return GitError::Locked { said: first };
    }
    let said = said.lines().map(|line| line.trim_start_matches("fatal: ").trim()).collect::<Vec<_>>().join("; ");
    GitError::Failed { command, said: if said.is_empty() { first } else { said } }
}

#[expect(clippy::disallowed_methods, reason = "what git keeps in its own directory says what is in progress")]
fn exists(path: &Path) -> Result<bool, GitError> {
    std::fs::exists(path).map_err(|error| GitError::Unreadable { path: path.to_owned(), error })
}

#[expect(clippy::disallowed_methods, reason = "what git keeps in its own directory says what is in progress")]
fn read(path: &Path) -> Result<Vec<u8>, GitError> {
    std::fs::read(path).map_err(|error| GitError::Unreadable { path: path.to_owned(), error })
}
