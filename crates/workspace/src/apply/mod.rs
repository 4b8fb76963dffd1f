//! Carries a plan out, or leaves the tree as it was.
//!
//! The order is what makes it safe. [`Workspace::prepare`] looks and touches nothing; the caller writes [`Prepared::record`]
//! down, durable; only then does [`Prepared::apply`] start. It first puts every new content beside its target under a name
//! that carries the record's token, durable, and then exchanges names. What comes out of an exchange has to be, byte for byte,
//! what the plan starts from: if it is not, that name and all before it are exchanged back. After a crash,
//! [`Workspace::recover`] needs nothing but the record and the contents to finish or to take back.

mod attributes;
mod directories;
mod entry;
mod error;
mod recover;

use rustix::fs::{Access, AtFlags, Stat};
use rustix::io::Errno;
use sayso_review::{ApplyRecord, FileState, Plan, PlanStep, WsPath};

pub(crate) use attributes::names as attribute_names;
use directories::Directories;
use entry::Entry;
pub use entry::Swap;
pub use error::ApplyError;
pub use recover::{RecoverError, Recovery};

use crate::confine::{OpenError, Workspace};

/// A plan of which it is known what it needs; nothing has happened yet.
#[derive(Debug)]
pub struct Prepared<'w> {
    workspace: &'w Workspace,
    plan: Plan,
    token: String,
    directories: Vec<WsPath>,
    emptied: Vec<WsPath>,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What files had besides their content that could not be kept, such as their owner.
    pub lost: Vec<(WsPath, Vec<&'static str>)>,
}

impl Workspace {
    /// Finds out what a plan needs. `emptied` are directories to be removed afterwards if nothing is left in them.
    pub fn prepare(&self, plan: Plan, emptied: Vec<WsPath>) -> Result<Prepared<'_>, ApplyError> {
        let mut directories: Vec<WsPath> = Vec::new();
        let mut known = std::collections::BTreeSet::new();
        for step in plan.steps() {
            if step.after == FileState::Absent {
                continue;
            }
            let mut missing = Vec::new();
            let mut above = step.path.parent();
            while let Some(directory) = above {
                if !known.insert(directory.clone()) {
                    break;
                }
                match self.open_directory(&directory) {
                    Ok(_) => break,
                    Err(OpenError::NotFound(_)) => {}
                    Err(error) => return Err(ApplyError::opening(&step.path, &error)),
                }
                above = directory.parent();
                missing.push(directory);
            }
            directories.extend(missing.into_iter().rev());
        }
        let mut bytes = [0_u8; 8];
        // Without randomness the name would only be easier to guess, and a name that is taken is never written to.
        let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::NONBLOCK);
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Prepared { workspace: self, plan, token, directories, emptied })
    }
}

impl Prepared<'_> {
    /// What has to be written down before [`apply`](Self::apply).
    pub fn record(&self) -> ApplyRecord {
        ApplyRecord {
            token: self.token.clone(),
            steps: self.plan.recorded(),
            directories: self.directories.clone(),
            emptied: self.emptied.clone(),
        }
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Carries the plan out, or leaves the tree as it was.
    pub fn apply(self) -> Result<Applied, ApplyError> {
        let mut work = Work::new(self.workspace, self.plan.steps(), &self.token);
        if let Err(error) = work.make_directories(&self.directories).and_then(|()| work.exchange_all()) {
            return Err(work.take_back(&self.directories, error));
        }
        if let Err(error) = work.clear_and_sync() {
            // What was there is gone from the disk, and known from the plan: written again, it is back.
            return Err(write_back(self.workspace, self.plan.steps(), &self.token, &self.directories, error));
        }
        for directory in self.emptied.iter().rev() {
            work.directories.remove_empty(directory);
        }
        Ok(Applied { lost: work.lost })
    }
}

/// The name of a temporary file. It is beside its target, since a name can only be exchanged within a file system.
fn temporary(token: &str, index: usize) -> String {
    format!(".sayso-{token}-{index}")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Untouched,
    /// The new content is there under its temporary name.
    Staged,
    /// The new content is there under its name, the old one under the temporary name.
    Exchanged,
}

/// A plan on its way.
struct Work<'w, 'p> {
    workspace: &'w Workspace,
    directories: Directories<'w>,
    steps: &'p [PlanStep],
    temporaries: Vec<String>,
    progress: Vec<Progress>,
    /// What was displaced, as it was when it was compared.
    displaced: Vec<Option<Stat>>,
    lost: Vec<(WsPath, Vec<&'static str>)>,
}

impl<'w, 'p> Work<'w, 'p> {
    fn new(workspace: &'w Workspace, steps: &'p [PlanStep], token: &str) -> Self {
        Self {
            workspace,
            directories: Directories::new(workspace),
            steps,
            temporaries: (0..steps.len()).map(|index| temporary(token, index)).collect(),
            progress: vec![Progress::Untouched; steps.len()],
            displaced: vec![None; steps.len()],
            lost: Vec::new(),
        }
    }

    fn make_directories(&mut self, directories: &[WsPath]) -> Result<(), ApplyError> {
        directories.iter().try_for_each(|directory| self.directories.make(directory))
    }

    /// The target and the temporary entry of a step.
    fn entries(&self, index: usize) -> Result<(Entry<'_>, Entry<'_>), ApplyError> {
        let path = &self.steps[index].path;
        let stale = || ApplyError::Stale { path: path.clone() };
        let (Some(parent), Some(name)) = (path.parent(), path.names().next_back()) else { return Err(stale()) };
        let directory = self.directories.handle(&parent).ok_or_else(stale)?;
        let target = Entry { directory, name };
        Ok((target, target.beside(&self.temporaries[index])))
    }

    fn exchange_all(&mut self) -> Result<(), ApplyError> {
        let steps = self.steps;
        for step in steps {
            if let Some(parent) = step.path.parent() {
                self.directories.open(&parent).map_err(|error| ApplyError::opening(&step.path, &error))?;
            }
        }
        for index in 0..steps.len() {
            self.stage(index)?;
        }
        for index in 0..steps.len() {
            self.exchange(index)?;
        }
        self.check_again()
    }

    fn stage(&mut self, index: usize) -> Result<(), ApplyError> {
        let step = &self.steps[index];
        let failed = |errno| ApplyError::system(&step.path, errno);
        let (target, temporary) = self.entries(index)?;
        if matches!(step.before, FileState::File { .. }) {
            // An exchange of names would not ask whether the file may be written.
            match rustix::fs::accessat(target.directory, target.name, Access::WRITE_OK, AtFlags::EACCESS) {
                Ok(()) => {}
                Err(Errno::NOENT) => return Err(ApplyError::Stale { path: step.path.clone() }),
                Err(errno) => return Err(failed(errno)),
            }
        }
        let staged = temporary.stage(&step.after, target);
        // Even of what failed, a part may be there.
        self.progress[index] = Progress::Staged;
        let lost = staged.map_err(failed)?;
        if !lost.is_empty() {
            self.lost.push((step.path.clone(), lost));
        }
        Ok(())
    }

    fn exchange(&mut self, index: usize) -> Result<(), ApplyError> {
        let step = &self.steps[index];
        let stale = || ApplyError::Stale { path: step.path.clone() };
        let failed = |errno| match errno {
            Errno::NOENT | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR => stale(),
            errno => ApplyError::system(&step.path, errno),
        };
        let (target, temporary) = self.entries(index)?;
        if step.before == FileState::Absent {
            temporary.move_to_free(target).map_err(failed)?;
            self.progress[index] = Progress::Exchanged;
            return Ok(());
        }
        if step.after == FileState::Absent {
            target.move_to_free(temporary).map_err(failed)?;
        } else {
            temporary.exchange(target, self.workspace.swap).map_err(failed)?;
        }
        let stat = temporary.stat();
        let held = temporary.holds(&step.before);
        self.progress[index] = Progress::Exchanged;
        self.displaced[index] = stat.map_err(failed)?;
        if held.map_err(failed)? { Ok(()) } else { Err(stale()) }
    }

    /// Whether nobody wrote to what was displaced, or moved a directory, since.
    fn check_again(&self) -> Result<(), ApplyError> {
        for (index, displaced) in self.displaced.iter().enumerate() {
            let Some(then) = displaced else { continue };
            let (_, temporary) = self.entries(index)?;
            let when =
                |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
            let now = temporary.stat().map_err(|errno| ApplyError::system(&self.steps[index].path, errno))?;
            if now.is_none_or(|now| when(&now) != when(then)) {
                return Err(ApplyError::Stale { path: self.steps[index].path.clone() });
            }
        }
        self.directories.all_in_place().map_err(|path| ApplyError::Outside {
            path,
            reason: "its directory was moved while it was written".to_owned(),
        })
    }

    /// Removes what was displaced and makes everything last.
    fn clear_and_sync(&self) -> Result<(), ApplyError> {
        for (index, step) in self.steps.iter().enumerate() {
            let (_, temporary) = self.entries(index)?;
            if step.before != FileState::Absent {
                temporary.remove().map_err(|errno| ApplyError::system(&step.path, errno))?;
            }
        }
        self.directories.sync()
    }

    /// Takes back everything that was done, last first, and says why.
    fn take_back(&mut self, made: &[WsPath], error: ApplyError) -> ApplyError {
        let mut left = Vec::new();
        let mut why = String::new();
        for index in (0..self.steps.len()).rev() {
            if let Err(errno) = self.take_back_one(index) {
                left.push(self.steps[index].path.clone());
                why = errno.to_string();
            }
        }
        for directory in made.iter().rev() {
            self.directories.remove_empty(directory);
        }
        if left.is_empty() {
            return error;
        }
        ApplyError::Torn { path: error.path().clone(), reason: error.to_string(), left, why }
    }

    fn take_back_one(&self, index: usize) -> Result<(), Errno> {
        let progress = self.progress[index];
        let step = &self.steps[index];
        if progress == Progress::Untouched {
            return Ok(());
        }
        let Ok((target, temporary)) = self.entries(index) else { return Err(Errno::NOENT) };
        if progress == Progress::Staged {
            return temporary.remove();
        }
        match (&step.before, &step.after) {
            (_, FileState::Absent) => return temporary.move_to_free(target),
            (FileState::Absent, _) => target.move_to_free(temporary)?,
            _ => temporary.exchange(target, self.workspace.swap)?,
        }
        if temporary.holds(&step.after)? {
            return temporary.remove();
        }
        // Somebody has written to the new file already: theirs is the last word.
        if step.before == FileState::Absent {
            temporary.move_to_free(target)?;
        } else {
            temporary.exchange(target, self.workspace.swap)?;
            temporary.remove()?;
        }
        Err(Errno::BUSY)
    }
}

/// Writes back what was there before, after the last step of a plan failed.
fn write_back(
    workspace: &Workspace,
    steps: &[PlanStep],
    token: &str,
    made: &[WsPath],
    error: ApplyError,
) -> ApplyError {
    let reversed: Vec<PlanStep> = steps
        .iter()
        .map(|step| PlanStep { path: step.path.clone(), before: step.after.clone(), after: step.before.clone() })
        .collect();
    let mut work = Work::new(workspace, &reversed, token);
    // Some temporary files may be left of the first attempt, and their names are needed.
    let done = work.exchange_open().and_then(|()| work.exchange_all());
    if let Err(second) = done {
        let left = steps.iter().map(|step| step.path.clone()).collect();
        return ApplyError::Torn {
            path: error.path().clone(),
            reason: error.to_string(),
            left,
            why: second.to_string(),
        };
    }
    // The disk has failed once already: what cannot be removed now is removed at the next start.
    let _ = work.clear_and_sync();
    for directory in made.iter().rev() {
        work.directories.remove_empty(directory);
    }
    error
}

impl Work<'_, '_> {
    /// Opens the directories and removes temporary files of an earlier attempt.
    fn exchange_open(&mut self) -> Result<(), ApplyError> {
        for index in 0..self.steps.len() {
            let path = &self.steps[index].path;
            if let Some(parent) = path.parent() {
                self.directories.open(&parent).map_err(|error| ApplyError::opening(path, &error))?;
            }
            let (_, temporary) = self.entries(index)?;
            temporary.remove().map_err(|errno| ApplyError::system(path, errno))?;
        }
        Ok(())
    }
}
