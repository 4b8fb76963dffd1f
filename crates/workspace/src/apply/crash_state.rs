//! [`CrashState`]: the files that an interrupted plan left at each name, and their recovery.

use rustix::io::Errno;
use sayso_review::{ApplyRecord, ContentHash, FileState, Fingerprint, RecordedStep, WsPath};

use super::directories::Directories;
use super::entry::{DirEntry, aside};
use super::recover::RecoverError;
use super::temporary;
use crate::confine::{OpenError, Workspace};

/// Content of a file, compared with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Before,
    After,
    Other,
}

/// Content of a temporary name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemporaryContent {
    Nothing,
    /// Recorded content, or an unfinished part of it.
    Ours,
    /// Either an unfinished part of recorded content, or another program's file that starts like it.
    Doubtful,
    /// Another program's file, which must not be displaced or removed.
    Theirs,
}

/// Suffix of the temporary names of a recovery.
const BACK: &str = "-back";

struct TemporaryNames {
    /// For the new content, then for the file that it displaced.
    staged: [String; 2],
    /// For the old content that a recovery restores, then for the file that it displaced.
    back: [String; 2],
}

pub(super) struct CrashState<'w, 'r, C> {
    directories: Directories<'w>,
    record: &'r ApplyRecord,
    content: C,
}

impl<'w, 'r, C: Fn(&ContentHash) -> Option<Vec<u8>>> CrashState<'w, 'r, C> {
    pub(super) fn new(workspace: &'w Workspace, record: &'r ApplyRecord, content: C) -> Self {
        Self { directories: Directories::new(workspace), record, content }
    }

    fn names(&self, index: usize) -> TemporaryNames {
        let name = temporary(&self.record.token, index);
        let back = format!("{name}{BACK}");
        TemporaryNames { staged: [name.clone(), aside(&name)], back: [back.clone(), aside(&back)] }
    }

    /// Compares a step's file with the record. First puts back a displaced file that was not the plan's base.
    pub(super) fn look(&mut self, index: usize) -> Result<Holds, RecoverError> {
        let step = &self.record.steps[index];
        let parent = step.path.parent().unwrap_or_else(WsPath::root);
        match self.directories.open(&parent) {
            Ok(()) => self.look_at(index).map_err(|errno| failed(step, errno)),
            // A missing directory has no files.
            Err(OpenError::NotFound(_) | OpenError::NotADirectory(_)) => Ok(match (&step.before, &step.after) {
                (Fingerprint::Absent, _) => Holds::Before,
                (_, Fingerprint::Absent) => Holds::After,
                _ => Holds::Other,
            }),
            Err(OpenError::System { error, .. }) => Err(failed(step, error)),
            // The path leads elsewhere by now, so the plan's file is not there.
            Err(_) => Ok(Holds::Other),
        }
    }

    fn look_at(&self, index: usize) -> Result<Holds, Errno> {
        let step = &self.record.steps[index];
        let Some(target) = self.directories.entry(&step.path) else { return Ok(Holds::Other) };
        let names = self.names(index);
        if step.before != Fingerprint::Absent && step.after != Fingerprint::Absent && target.stat()?.is_none() {
            // The fallback without hard links leaves the name free for an instant.
            for name in [&names.staged[1], &names.back[1]] {
                match target.beside(name).move_to_free(target) {
                    Err(Errno::EXIST | Errno::NOENT) => {}
                    moved => moved?,
                }
            }
        }
        let holds = holds(step, target)?;
        let (displaced, taken) = match holds {
            Holds::After => (names.staged, &step.after),
            Holds::Before => (names.back, &step.before),
            Holds::Other => return Ok(Holds::Other),
        };
        for name in &displaced {
            let theirs = target.beside(name);
            if self.leftover(step, theirs, target)? != TemporaryContent::Theirs {
                continue;
            }
            let moved =
                if *taken == Fingerprint::Absent { theirs.move_to_free(target) } else { theirs.exchange(target) };
            match moved {
                // Another program took or freed the name meanwhile. `clear` keeps the displaced file.
                Err(Errno::EXIST | Errno::NOENT) => {}
                moved => moved?,
            }
            return Ok(Holds::Other);
        }
        Ok(holds)
    }

    /// `true` if a temporary name of the plan exists, or may exist in a directory that is gone.
    pub(super) fn any_temporary(&self) -> Result<bool, RecoverError> {
        for (index, step) in self.record.steps.iter().enumerate() {
            let Some(target) = self.directories.entry(&step.path) else { return Ok(true) };
            let names = self.names(index);
            for name in names.staged.iter().chain(&names.back) {
                if target.beside(name).stat().map_err(|errno| failed(step, errno))?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Classifies the content of a temporary name.
    fn leftover(
        &self,
        step: &RecordedStep,
        entry: DirEntry<'_>,
        target: DirEntry<'_>,
    ) -> Result<TemporaryContent, Errno> {
        let Some(stat) = entry.stat()? else { return Ok(TemporaryContent::Nothing) };
        let is_target = |named: rustix::fs::Stat| named.st_dev == stat.st_dev && named.st_ino == stat.st_ino;
        if target.stat()?.is_some_and(is_target) {
            // A hard link to the target, which keeps its own name.
            return Ok(TemporaryContent::Ours);
        }
        // An absent file has no content to compare.
        let on_record = |print: &Fingerprint| if *print == Fingerprint::Absent { Ok(false) } else { entry.has(print) };
        if on_record(&step.before)? || on_record(&step.after)? {
            return Ok(TemporaryContent::Ours);
        }
        // If the new content is not in place, nothing was displaced: the temporary name has content that was being
        // written.
        let displaced = holds(step, target)? == if is_back(entry) { Holds::Before } else { Holds::After };
        let mut leftover = TemporaryContent::Theirs;
        for print in [&step.after, &step.before] {
            let Fingerprint::File { hash, size, .. } = print else { continue };
            let Some((bytes, mode)) = entry.read_within(*size)? else { continue };
            // An unfinished file is readable by the user only.
            let unfinished = mode.bits() & !0o600 == 0;
            let part = (self.content)(hash).map(|content| content.starts_with(&bytes));
            match part {
                Some(false) => {}
                Some(true) if !displaced => return Ok(TemporaryContent::Ours),
                Some(true) if unfinished && !is_private(&step.before) => return Ok(TemporaryContent::Ours),
                Some(true) if !unfinished => {}
                Some(true) | None => leftover = TemporaryContent::Doubtful,
            }
        }
        Ok(leftover)
    }

    /// Restores the old content of a step. Returns `true` if the file still had the planned content.
    pub(super) fn put_back(&self, index: usize, saved: &mut Vec<WsPath>) -> Result<bool, RecoverError> {
        let step = &self.record.steps[index];
        let before = self.state(step)?;
        self.put_back_state(index, &before, saved).map_err(|errno| failed(step, errno))
    }

    fn put_back_state(&self, index: usize, before: &FileState, saved: &mut Vec<WsPath>) -> Result<bool, Errno> {
        let step = &self.record.steps[index];
        let names = self.names(index);
        // Without its directory the file cannot be restored.
        let Some(target) = self.directories.entry(&step.path) else { return Ok(false) };
        let (displaced, back) = (target.beside(&names.staged[0]), target.beside(&names.back[0]));
        if *before == FileState::Absent {
            self.clear_name(step, back, target, saved)?;
            match target.move_to_free(back) {
                Err(Errno::NOENT) => return Ok(true),
                moved => moved?,
            }
        } else {
            // Prefers the displaced file, because it has attributes that no record has, such as its times.
            if !back.has(&step.before)? {
                self.clear_name(step, back, target, saved)?;
                if displaced.has(&step.before)? {
                    displaced.move_to_free(back)?;
                } else {
                    back.stage(before, target)?;
                }
            }
            let moved =
                if step.after == Fingerprint::Absent { back.move_to_free(target) } else { back.exchange(target) };
            match moved {
                // Another program took the name or removed the file meanwhile.
                Err(Errno::EXIST | Errno::NOENT) => return Ok(false),
                moved => moved?,
            }
            if step.after == Fingerprint::Absent {
                return Ok(true);
            }
        }
        if back.has(&step.after)? {
            return Ok(true);
        }
        // Another program changed the file meanwhile, and its content stays.
        if *before == FileState::Absent {
            back.move_to_free(target)?;
        } else {
            back.exchange(target)?;
        }
        Ok(false)
    }

    /// Returns the old content of a step.
    fn state(&self, step: &RecordedStep) -> Result<FileState, RecoverError> {
        Ok(match &step.before {
            Fingerprint::Absent => FileState::Absent,
            Fingerprint::Link { target } => FileState::Link { target: target.clone() },
            Fingerprint::File { hash, mode, .. } => {
                let missing = || RecoverError::ContentMissing { path: step.path.clone() };
                FileState::file((self.content)(hash).ok_or_else(missing)?, *mode)
            }
        })
    }

    /// Removes the temporary files of a step. Content that is not on record is saved under a visible name.
    pub(super) fn clear(&self, index: usize, saved: &mut Vec<WsPath>) -> Result<(), RecoverError> {
        let step = &self.record.steps[index];
        let Some(target) = self.directories.entry(&step.path) else { return Ok(()) };
        let names = self.names(index);
        for name in names.staged.iter().chain(&names.back) {
            self.clear_name(step, target.beside(name), target, saved).map_err(|errno| failed(step, errno))?;
        }
        Ok(())
    }

    fn clear_name(
        &self,
        step: &RecordedStep,
        entry: DirEntry<'_>,
        target: DirEntry<'_>,
        saved: &mut Vec<WsPath>,
    ) -> Result<(), Errno> {
        match self.leftover(step, entry, target)? {
            TemporaryContent::Nothing => {}
            TemporaryContent::Ours => entry.remove()?,
            TemporaryContent::Doubtful | TemporaryContent::Theirs => {
                let name = entry.save(target, &self.record.token)?;
                saved.extend(step.path.parent().and_then(|parent| parent.join(&name)));
            }
        }
        Ok(())
    }

    /// Removes empty directories and syncs the others.
    pub(super) fn finish(mut self, emptied: &[WsPath]) -> Result<(), RecoverError> {
        self.directories.remove_empty(emptied);
        // After an error the next start recovers again.
        self.directories.sync().map_err(|(path, error)| RecoverError::System { path, error })
    }
}

/// Compares a step's file with the record.
fn holds(step: &RecordedStep, target: DirEntry<'_>) -> Result<Holds, Errno> {
    Ok(if target.has(&step.after)? {
        Holds::After
    } else if target.has(&step.before)? {
        Holds::Before
    } else {
        Holds::Other
    })
}

/// `true` for the temporary names of a recovery.
fn is_back(entry: DirEntry<'_>) -> bool {
    entry.name.contains(BACK)
}

/// `true` if a file has the same permissions as an unfinished one.
fn is_private(print: &Fingerprint) -> bool {
    if let Fingerprint::File { mode, .. } = print { mode.bits() & !0o600 == 0 } else { false }
}

fn failed(step: &RecordedStep, error: Errno) -> RecoverError {
    RecoverError::System { path: step.path.clone(), error }
}
