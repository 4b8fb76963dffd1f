//! [`Transaction`]: the application of one plan, with its progress and its rollback.

use std::collections::BTreeMap;

use rustix::fs::{Access, AtFlags, FileType, Stat};
use rustix::io::Errno;
use sayso_review::{FileMode, FileState, PlanStep, WsPath};

use super::directories::Directories;
use super::entry::{DirEntry, PERMISSIONS};
use super::error::ApplyError;
use super::{parallel, temporary};

/// Progress of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Untouched,
    /// The new content, or a part of it, has the temporary name.
    Staged,
    /// The new content has the file's name, the old one the temporary name.
    Exchanged,
}

/// Application of one plan.
pub(super) struct Transaction<'w, 'p> {
    directories: Directories<'w>,
    steps: &'p [PlanStep],
    token: &'p str,
    temporaries: Vec<String>,
    progress: Vec<Progress>,
    /// The `stat` of each displaced file when it was compared.
    displaced: Vec<Option<Stat>>,
    lost: Vec<(WsPath, Vec<&'static str>)>,
    names_before: BTreeMap<WsPath, WsPath>,
}

/// Reason why a content could not be staged.
struct NotStaged {
    error: Box<ApplyError>,
    left: Leftover,
}

/// Content of a temporary name after an error.
#[derive(PartialEq, Eq)]
enum Leftover {
    None,
    Possible,
}

impl From<ApplyError> for NotStaged {
    fn from(error: ApplyError) -> Self {
        Self { error: Box::new(error), left: Leftover::None }
    }
}

/// Errors of a rollback.
#[derive(Default)]
struct RollbackFailure {
    paths: Vec<WsPath>,
    why: Option<String>,
    saved: Vec<WsPath>,
}

impl<'w, 'p> Transaction<'w, 'p> {
    pub(super) fn new(directories: Directories<'w>, steps: &'p [PlanStep], token: &'p str) -> Self {
        Self {
            directories,
            steps,
            token,
            temporaries: (0..steps.len()).map(|index| temporary(token, index)).collect(),
            progress: vec![Progress::Untouched; steps.len()],
            displaced: vec![None; steps.len()],
            lost: Vec::new(),
            names_before: BTreeMap::new(),
        }
    }

    /// Sets the former names of renamed files, whose attributes the new files get.
    pub(super) fn with_names_before(mut self, names: &BTreeMap<WsPath, WsPath>) -> Self {
        self.names_before.clone_from(names);
        self
    }

    pub(super) fn make_directories(&mut self, directories: &[WsPath]) -> Result<(), ApplyError> {
        directories.iter().try_for_each(|directory| self.directories.make(directory))
    }

    /// Returns the target and the temporary entry of a step.
    fn entries(&self, index: usize) -> Result<(DirEntry<'_>, DirEntry<'_>), ApplyError> {
        let path = &self.steps[index].path;
        let target = self.directories.entry(path).ok_or_else(|| ApplyError::Stale { path: path.clone() })?;
        Ok((target, target.beside(&self.temporaries[index])))
    }

    /// Stages all new contents and exchanges the names. Stops at the first error.
    pub(super) fn exchange_all(&mut self) -> Result<(), ApplyError> {
        self.open_directories()?;
        self.stage_all()?;
        // Detects most errors before a change is visible.
        self.directories.all_in_place()?;
        for index in 0..self.steps.len() {
            self.exchange(index)?;
        }
        self.check_again()
    }

    fn open_directories(&mut self) -> Result<(), ApplyError> {
        for step in self.steps {
            if let Some(parent) = step.path.parent() {
                self.directories.open(&parent).map_err(|error| ApplyError::opening(&step.path, &error))?;
            }
        }
        Ok(())
    }

    /// Writes all new contents under their temporary names, and syncs them.
    fn stage_all(&mut self) -> Result<(), ApplyError> {
        let mut failure = None;
        for (index, staged) in parallel::each(self.steps.len(), |index| self.stage(index)) {
            match staged {
                Ok(lost) => {
                    self.progress[index] = Progress::Staged;
                    if !lost.is_empty() {
                        self.lost.push((self.steps[index].path.clone(), lost));
                    }
                }
                Err(NotStaged { error, left }) => {
                    if left == Leftover::Possible {
                        self.progress[index] = Progress::Staged;
                    }
                    failure = failure.or(Some(*error));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Writes one new content under its temporary name. Returns the attributes that could not be preserved.
    fn stage(&self, index: usize) -> Result<Vec<&'static str>, NotStaged> {
        let step = &self.steps[index];
        let failed = |errno| ApplyError::system(&step.path, errno);
        let (target, temporary) = self.entries(index)?;
        if !resembles(&step.before, target.stat().map_err(failed)?.as_ref()) {
            return Err(ApplyError::Stale { path: step.path.clone() }.into());
        }
        if matches!(step.before, FileState::File { .. }) {
            // An exchange of names does not check the file's write permission.
            match rustix::fs::accessat(target.directory, target.name, Access::WRITE_OK, AtFlags::EACCESS) {
                Ok(()) => {}
                Err(Errno::NOENT) => return Err(ApplyError::Stale { path: step.path.clone() }.into()),
                Err(errno) => return Err(failed(errno).into()),
            }
        }
        let like = self.names_before.get(&step.path).and_then(|from| self.directories.entry(from)).unwrap_or(target);
        let lost = temporary.stage(&step.after, like).map_err(|errno| {
            // After an error the temporary name may have a part of the content. If it existed before, it is another
            // program's.
            let left = if errno == Errno::EXIST { Leftover::None } else { Leftover::Possible };
            NotStaged { error: Box::new(failed(errno)), left }
        })?;
        if let (true, Some(mode)) = (lost.contains(&PERMISSIONS), step.after.mode()) {
            // Permissions are part of what was approved, and the file would count as changed.
            let reason = format!("it cannot be given the permissions {mode} here");
            let error = ApplyError::System { path: step.path.clone(), reason };
            return Err(NotStaged { error: Box::new(error), left: Leftover::Possible });
        }
        Ok(lost)
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
            temporary.exchange(target).map_err(failed)?;
        }
        let stat = temporary.stat();
        let held = temporary.holds(&step.before);
        self.progress[index] = Progress::Exchanged;
        self.displaced[index] = stat.map_err(failed)?;
        if held.map_err(failed)? { Ok(()) } else { Err(stale()) }
    }

    /// Checks that no displaced file was written to, and no directory moved, since the exchange.
    fn check_again(&self) -> Result<(), ApplyError> {
        for (index, displaced) in self.displaced.iter().enumerate() {
            let Some(then) = displaced else { continue };
            let step = &self.steps[index];
            let failed = |errno| ApplyError::system(&step.path, errno);
            let (_, temporary) = self.entries(index)?;
            let now = temporary.stat().map_err(failed)?;
            let same = match now {
                None => false,
                // The times of a file with several names also change when another name does, even by this plan.
                Some(now) if now.st_nlink > 1 || then.st_nlink > 1 => temporary.holds(&step.before).map_err(failed)?,
                Some(now) => times(&now) == times(then),
            };
            if !same {
                return Err(ApplyError::Stale { path: step.path.clone() });
            }
        }
        self.directories.all_in_place()
    }

    /// Removes the displaced files and syncs the directories.
    pub(super) fn clear_and_sync(&self) -> Result<(), ApplyError> {
        for (index, step) in self.steps.iter().enumerate() {
            let (_, temporary) = self.entries(index)?;
            if step.before != FileState::Absent {
                temporary.remove().map_err(|errno| ApplyError::system(&step.path, errno))?;
            }
        }
        self.directories.sync().map_err(|(path, errno)| ApplyError::system(&path, errno))
    }

    /// Removes empty directories, and returns the attributes that were lost.
    pub(super) fn finish(mut self, emptied: &[WsPath]) -> Vec<(WsPath, Vec<&'static str>)> {
        let changed = self.directories.remove_empty(emptied);
        // After a power failure an empty directory may reappear, which is harmless.
        let _ = self.directories.sync_only(&changed);
        self.lost
    }

    /// Reverts all steps, last first. Returns the error, extended if the rollback failed as well.
    pub(super) fn roll_back(mut self, error: ApplyError) -> ApplyError {
        let mut left = RollbackFailure::default();
        if !self.directories.any_made() && self.progress.iter().all(|progress| *progress == Progress::Untouched) {
            return error;
        }
        for index in (0..self.steps.len()).rev() {
            if let Err(errno) = self.roll_back_step(index, &mut left.saved) {
                left.paths.push(self.steps[index].path.clone());
                left.why = Some(errno.to_string());
            }
        }
        self.directories.remove_made();
        // The caller forgets a plan that wrote nothing, so the rollback must survive a power failure.
        if let Err((path, errno)) = self.directories.sync() {
            left.paths.push(path);
            left.why = Some(errno.to_string());
        }
        left.explain(error)
    }

    fn roll_back_step(&self, index: usize, saved: &mut Vec<WsPath>) -> Result<(), Errno> {
        let step = &self.steps[index];
        let Ok((target, temporary)) = self.entries(index) else {
            return if self.progress[index] == Progress::Untouched { Ok(()) } else { Err(Errno::NOENT) };
        };
        match self.progress[index] {
            Progress::Untouched => return Ok(()),
            Progress::Staged => return temporary.remove(),
            Progress::Exchanged => {}
        }
        if step.after == FileState::Absent {
            return match temporary.move_to_free(target) {
                // Another program created a file with this name meanwhile, which stays.
                Err(Errno::EXIST) => self.release(index, saved).and(Err(Errno::BUSY)),
                result => result,
            };
        }
        let moved =
            if step.before == FileState::Absent { target.move_to_free(temporary) } else { temporary.exchange(target) };
        match (moved, &step.before) {
            // Another program removed the new file meanwhile.
            (Err(Errno::NOENT), FileState::Absent) => return Ok(()),
            (Err(Errno::NOENT), _) => return temporary.move_to_free(target),
            (moved, _) => moved?,
        }
        if temporary.holds(&step.after)? {
            return temporary.remove();
        }
        // Another program wrote to the new file meanwhile, which stays.
        if step.before == FileState::Absent {
            temporary.move_to_free(target)?;
        } else {
            temporary.exchange(target)?;
            self.release(index, saved)?;
        }
        Err(Errno::BUSY)
    }

    /// Removes a displaced file that has no name to return to. If its content is not on record, it is saved under
    /// another name.
    fn release(&self, index: usize, saved: &mut Vec<WsPath>) -> Result<(), Errno> {
        let step = &self.steps[index];
        let Ok((target, temporary)) = self.entries(index) else { return Err(Errno::NOENT) };
        if temporary.holds(&step.before)? {
            return temporary.remove();
        }
        let name = temporary.save(target, self.token)?;
        saved.extend(step.path.parent().and_then(|parent| parent.join(&name)));
        Ok(())
    }

    /// Writes the old contents back after the last phase failed. The displaced files are deleted by then, but the plan
    /// has their contents.
    pub(super) fn write_back(self, error: ApplyError) -> ApplyError {
        let reversed: Vec<PlanStep> = self
            .steps
            .iter()
            .map(|step| PlanStep { path: step.path.clone(), before: step.after.clone(), after: step.before.clone() })
            .collect();
        let mut transaction = Transaction::new(self.directories, &reversed, self.token);
        let done = transaction
            .remove_temporaries()
            .and_then(|()| transaction.exchange_all())
            .and_then(|()| transaction.clear_and_sync());
        transaction.directories.remove_made();
        let mut left = RollbackFailure::default();
        if let Err(second) = done {
            left.paths = reversed.iter().map(|step| step.path.clone()).collect();
            left.why = Some(second.to_string());
        }
        left.explain(error)
    }

    /// Removes the temporary files of the first attempt, whose names are needed again. They have the plan's base
    /// content.
    fn remove_temporaries(&self) -> Result<(), ApplyError> {
        for (index, step) in self.steps.iter().enumerate() {
            let (_, temporary) = self.entries(index)?;
            temporary.remove().map_err(|errno| ApplyError::system(&step.path, errno))?;
        }
        Ok(())
    }
}

impl RollbackFailure {
    fn explain(self, error: ApplyError) -> ApplyError {
        match self.why {
            None => error,
            Some(why) => ApplyError::Torn {
                path: error.path().clone(),
                reason: error.cause(),
                left: self.paths,
                why,
                saved: self.saved,
            },
        }
    }
}

/// Compares a state with a file's `stat`, without reading the file.
fn resembles(state: &FileState, stat: Option<&Stat>) -> bool {
    let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
    match (state, stat) {
        (FileState::Absent, None) => true,
        (FileState::Link { .. }, Some(_)) => kind == Some(FileType::Symlink),
        (FileState::File { content, mode }, Some(stat)) => {
            kind == Some(FileType::RegularFile)
                && FileMode::new(stat.st_mode) == *mode
                && u64::try_from(stat.st_size) == Ok(content.bytes().len() as u64)
        }
        _ => false,
    }
}

/// Returns the fields that change when a file is written to.
fn times(stat: &Stat) -> impl PartialEq {
    (stat.st_size, (stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec))
}
