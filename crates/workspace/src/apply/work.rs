//! A plan on its way: what was done so far, and how that is taken back.

use std::collections::BTreeMap;

use rustix::fs::{Access, AtFlags, FileType, Stat};
use rustix::io::Errno;
use sayso_review::{FileMode, FileState, PlanStep, WsPath};

use super::directories::Directories;
use super::entry::{Entry, PERMISSIONS};
use super::error::ApplyError;
use super::{parallel, temporary};

/// How far a step is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Untouched,
    /// The new content is there under its temporary name, or a part of it.
    Staged,
    /// The new content is there under its name, the old one under the temporary name.
    Exchanged,
}

/// A plan on its way.
pub(super) struct Work<'w, 'p> {
    directories: Directories<'w>,
    steps: &'p [PlanStep],
    token: &'p str,
    temporaries: Vec<String>,
    progress: Vec<Progress>,
    /// What was displaced, as it was when it was compared.
    displaced: Vec<Option<Stat>>,
    lost: Vec<(WsPath, Vec<&'static str>)>,
    names_before: BTreeMap<WsPath, WsPath>,
}

/// Why a content could not be put under its temporary name.
struct NotStaged {
    error: Box<ApplyError>,
    left: Leftover,
}

/// Whether something of ours may be under a temporary name.
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

/// What could not be taken back.
#[derive(Default)]
struct Left {
    paths: Vec<WsPath>,
    why: Option<String>,
    saved: Vec<WsPath>,
}

impl<'w, 'p> Work<'w, 'p> {
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

    /// Which files had another name before: they take along what they had besides their content.
    pub(super) fn with_names_before(mut self, names: &BTreeMap<WsPath, WsPath>) -> Self {
        self.names_before.clone_from(names);
        self
    }

    pub(super) fn make_directories(&mut self, directories: &[WsPath]) -> Result<(), ApplyError> {
        directories.iter().try_for_each(|directory| self.directories.make(directory))
    }

    /// The target and the temporary entry of a step.
    fn entries(&self, index: usize) -> Result<(Entry<'_>, Entry<'_>), ApplyError> {
        let path = &self.steps[index].path;
        let target = self.directories.entry(path).ok_or_else(|| ApplyError::Stale { path: path.clone() })?;
        Ok((target, target.beside(&self.temporaries[index])))
    }

    /// Puts all new contents where they belong, or fails somewhere on the way.
    pub(super) fn exchange_all(&mut self) -> Result<(), ApplyError> {
        self.open_directories()?;
        self.stage_all()?;
        // Most of what is wrong shows by now, before anything was visible under its own name.
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

    /// Puts all new contents under their temporary names, durable.
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

    /// Puts one new content under its temporary name, and says what could not be kept of the old file.
    fn stage(&self, index: usize) -> Result<Vec<&'static str>, NotStaged> {
        let step = &self.steps[index];
        let failed = |errno| ApplyError::system(&step.path, errno);
        let (target, temporary) = self.entries(index)?;
        if !resembles(&step.before, target.stat().map_err(failed)?.as_ref()) {
            return Err(ApplyError::Stale { path: step.path.clone() }.into());
        }
        if matches!(step.before, FileState::File { .. }) {
            // An exchange of names would not ask whether the file may be written.
            match rustix::fs::accessat(target.directory, target.name, Access::WRITE_OK, AtFlags::EACCESS) {
                Ok(()) => {}
                Err(Errno::NOENT) => return Err(ApplyError::Stale { path: step.path.clone() }.into()),
                Err(errno) => return Err(failed(errno).into()),
            }
        }
        let like = self.names_before.get(&step.path).and_then(|from| self.directories.entry(from)).unwrap_or(target);
        let lost = temporary.stage(&step.after, like).map_err(|errno| {
            // Even of what failed, a part may be there; a name that was taken has somebody else's.
            let left = if errno == Errno::EXIST { Leftover::None } else { Leftover::Possible };
            NotStaged { error: Box::new(failed(errno)), left }
        })?;
        if let (true, Some(mode)) = (lost.contains(&PERMISSIONS), step.after.mode()) {
            // They are part of what was approved, and later looks would take the file for another.
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

    /// Whether nobody wrote to what was displaced, or moved a directory, since.
    fn check_again(&self) -> Result<(), ApplyError> {
        for (index, displaced) in self.displaced.iter().enumerate() {
            let Some(then) = displaced else { continue };
            let step = &self.steps[index];
            let failed = |errno| ApplyError::system(&step.path, errno);
            let (_, temporary) = self.entries(index)?;
            let now = temporary.stat().map_err(failed)?;
            let same = match now {
                None => false,
                // A file with several names also shows it when something happens to another of them, even by this plan.
                Some(now) if now.st_nlink > 1 || then.st_nlink > 1 => temporary.holds(&step.before).map_err(failed)?,
                Some(now) => times(&now) == times(then),
            };
            if !same {
                return Err(ApplyError::Stale { path: step.path.clone() });
            }
        }
        self.directories.all_in_place()
    }

    /// Removes what was displaced and makes everything last.
    pub(super) fn clear_and_sync(&self) -> Result<(), ApplyError> {
        for (index, step) in self.steps.iter().enumerate() {
            let (_, temporary) = self.entries(index)?;
            if step.before != FileState::Absent {
                temporary.remove().map_err(|errno| ApplyError::system(&step.path, errno))?;
            }
        }
        self.directories.sync().map_err(|(path, errno)| ApplyError::system(&path, errno))
    }

    /// Removes directories that nothing is left in, and says what was lost on the way.
    pub(super) fn finish(mut self, emptied: &[WsPath]) -> Vec<(WsPath, Vec<&'static str>)> {
        let changed = self.directories.remove_empty(emptied);
        // An empty directory that comes back after a power cut is no loss.
        let _ = self.directories.sync_only(&changed);
        self.lost
    }

    /// Takes back everything that was done, last first, and says why.
    pub(super) fn take_back(mut self, error: ApplyError) -> ApplyError {
        let mut left = Left::default();
        if !self.directories.any_made() && self.progress.iter().all(|progress| *progress == Progress::Untouched) {
            return error;
        }
        for index in (0..self.steps.len()).rev() {
            if let Err(errno) = self.take_back_one(index, &mut left.saved) {
                left.paths.push(self.steps[index].path.clone());
                left.why = Some(errno.to_string());
            }
        }
        self.directories.remove_made();
        // Whoever hears that nothing was written forgets about it, so that has to be true after a power cut too.
        if let Err((path, errno)) = self.directories.sync() {
            left.paths.push(path);
            left.why = Some(errno.to_string());
        }
        left.explain(error)
    }

    fn take_back_one(&self, index: usize, saved: &mut Vec<WsPath>) -> Result<(), Errno> {
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
                // Somebody has made a file of this name already: theirs is the last word.
                Err(Errno::EXIST) => self.let_go(index, saved).and(Err(Errno::BUSY)),
                result => result,
            };
        }
        let moved =
            if step.before == FileState::Absent { target.move_to_free(temporary) } else { temporary.exchange(target) };
        match (moved, &step.before) {
            // Somebody has removed the new file already.
            (Err(Errno::NOENT), FileState::Absent) => return Ok(()),
            (Err(Errno::NOENT), _) => return temporary.move_to_free(target),
            (moved, _) => moved?,
        }
        if temporary.holds(&step.after)? {
            return temporary.remove();
        }
        // Somebody has written to the new file already: theirs is the last word.
        if step.before == FileState::Absent {
            temporary.move_to_free(target)?;
        } else {
            temporary.exchange(target)?;
            self.let_go(index, saved)?;
        }
        Err(Errno::BUSY)
    }

    /// Removes what was displaced and has no name to go back to; should it be what nobody has a record of, it is kept.
    fn let_go(&self, index: usize, saved: &mut Vec<WsPath>) -> Result<(), Errno> {
        let step = &self.steps[index];
        let Ok((target, temporary)) = self.entries(index) else { return Err(Errno::NOENT) };
        if temporary.holds(&step.before)? {
            return temporary.remove();
        }
        let name = temporary.save(target, self.token)?;
        saved.extend(step.path.parent().and_then(|parent| parent.join(&name)));
        Ok(())
    }

    /// Writes back what was there before, after the last part of a plan failed: it is gone from the disk, and known from the
    /// plan.
    pub(super) fn write_back(self, error: ApplyError) -> ApplyError {
        let reversed: Vec<PlanStep> = self
            .steps
            .iter()
            .map(|step| PlanStep { path: step.path.clone(), before: step.after.clone(), after: step.before.clone() })
            .collect();
        let mut work = Work::new(self.directories, &reversed, self.token);
        let done = work.remove_temporaries().and_then(|()| work.exchange_all()).and_then(|()| work.clear_and_sync());
        work.directories.remove_made();
        let mut left = Left::default();
        if let Err(second) = done {
            left.paths = reversed.iter().map(|step| step.path.clone()).collect();
            left.why = Some(second.to_string());
        }
        left.explain(error)
    }

    /// Removes temporary files of an earlier attempt, whose names are needed. They hold what the plan starts from.
    fn remove_temporaries(&self) -> Result<(), ApplyError> {
        for (index, step) in self.steps.iter().enumerate() {
            let (_, temporary) = self.entries(index)?;
            temporary.remove().map_err(|errno| ApplyError::system(&step.path, errno))?;
        }
        Ok(())
    }
}

impl Left {
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

/// Whether what is at a name could be this, as far as can be seen without reading it.
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

/// What changes when somebody writes to a file.
fn times(stat: &Stat) -> impl PartialEq {
    (stat.st_size, (stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec))
}
