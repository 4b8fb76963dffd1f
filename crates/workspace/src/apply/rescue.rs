//! What an interrupted plan left at each name, and what becomes of it.

use rustix::io::Errno;
use sayso_review::{ApplyRecord, ContentHash, FileState, Fingerprint, RecordedStep, WsPath};

use super::directories::Directories;
use super::entry::{Entry, aside};
use super::recover::RecoverError;
use super::temporary;
use crate::confine::{OpenError, Workspace};

/// What a name holds, compared with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Before,
    After,
    Other,
}

/// What a temporary name holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leftover {
    Nothing,
    /// What is on record, or a part of it that we were writing.
    Ours,
    /// A part of what we were writing, or somebody's work that reads like one.
    Doubtful,
    /// Somebody's work: never ours to displace, much less to remove.
    Theirs,
}

/// How the names end that a rescue uses.
const BACK: &str = "-back";

/// The temporary names of a step.
struct Names {
    /// Of the new content, and then of what it displaced.
    staged: [String; 2],
    /// Of what a rescue puts back, and then of what that displaced.
    back: [String; 2],
}

pub(super) struct Rescue<'w, 'r, C> {
    directories: Directories<'w>,
    record: &'r ApplyRecord,
    content: C,
}

impl<'w, 'r, C: Fn(&ContentHash) -> Option<Vec<u8>>> Rescue<'w, 'r, C> {
    pub(super) fn new(workspace: &'w Workspace, record: &'r ApplyRecord, content: C) -> Self {
        Self { directories: Directories::new(workspace), record, content }
    }

    fn names(&self, index: usize) -> Names {
        let name = temporary(&self.record.token, index);
        let back = format!("{name}{BACK}");
        Names { staged: [name.clone(), aside(&name)], back: [back.clone(), aside(&back)] }
    }

    /// What a step's name holds. What an exchange brought out that was not what the plan starts from goes back first.
    pub(super) fn look(&mut self, index: usize) -> Result<Holds, RecoverError> {
        let step = &self.record.steps[index];
        let parent = step.path.parent().unwrap_or_else(WsPath::root);
        match self.directories.open(&parent) {
            Ok(()) => self.look_at(index).map_err(|errno| failed(step, errno)),
            // A directory that is not there has nothing in it.
            Err(OpenError::NotFound(_) | OpenError::NotADirectory(_)) => Ok(match (&step.before, &step.after) {
                (Fingerprint::Absent, _) => Holds::Before,
                (_, Fingerprint::Absent) => Holds::After,
                _ => Holds::Other,
            }),
            Err(OpenError::System { error, .. }) => Err(failed(step, error)),
            // One that leads elsewhere is not ours to look into.
            Err(_) => Ok(Holds::Other),
        }
    }

    fn look_at(&self, index: usize) -> Result<Holds, Errno> {
        let step = &self.record.steps[index];
        let Some(target) = self.directories.entry(&step.path) else { return Ok(Holds::Other) };
        let names = self.names(index);
        if step.before != Fingerprint::Absent && step.after != Fingerprint::Absent && target.stat()?.is_none() {
            // Where nothing can have two names, a fallback's exchange leaves the name free for an instant.
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
            if self.leftover(step, theirs, target)? != Leftover::Theirs {
                continue;
            }
            let moved =
                if *taken == Fingerprint::Absent { theirs.move_to_free(target) } else { theirs.exchange(target) };
            match moved {
                // The name was taken or left in this very moment; what was displaced is kept when the rest is cleared.
                Err(Errno::EXIST | Errno::NOENT) => {}
                moved => moved?,
            }
            return Ok(Holds::Other);
        }
        Ok(holds)
    }

    /// Whether any temporary name of the plan is, or may be, in use: a directory that went away tells nothing.
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

    /// What a temporary name of a step holds.
    fn leftover(&self, step: &RecordedStep, entry: Entry<'_>, target: Entry<'_>) -> Result<Leftover, Errno> {
        let Some(stat) = entry.stat()? else { return Ok(Leftover::Nothing) };
        let is_target = |named: rustix::fs::Stat| named.st_dev == stat.st_dev && named.st_ino == stat.st_ino;
        if target.stat()?.is_some_and(is_target) {
            // A second name of the same file, which stays under its own.
            return Ok(Leftover::Ours);
        }
        // What stands for nothing is no content to be on record.
        let on_record = |print: &Fingerprint| if *print == Fingerprint::Absent { Ok(false) } else { entry.has(print) };
        if on_record(&step.before)? || on_record(&step.after)? {
            return Ok(Leftover::Ours);
        }
        // Where what was written is not in place, nothing was displaced: this is what was being written.
        let displaced = holds(step, target)? == if is_back(entry) { Holds::Before } else { Holds::After };
        let mut leftover = Leftover::Theirs;
        for print in [&step.after, &step.before] {
            let Fingerprint::File { hash, size, .. } = print else { continue };
            let Some((bytes, mode)) = entry.read_within(*size)? else { continue };
            // Until it is whole, what we write is for nobody else to read.
            let unfinished = mode.bits() & !0o600 == 0;
            let part = (self.content)(hash).map(|content| content.starts_with(&bytes));
            match part {
                Some(false) => {}
                Some(true) if !displaced => return Ok(Leftover::Ours),
                Some(true) if unfinished && !is_private(&step.before) => return Ok(Leftover::Ours),
                Some(true) if !unfinished => {}
                Some(true) | None => leftover = Leftover::Doubtful,
            }
        }
        Ok(leftover)
    }

    /// Puts back what was there before; says whether the name still held what was planned.
    pub(super) fn put_back(&self, index: usize, saved: &mut Vec<WsPath>) -> Result<bool, RecoverError> {
        let step = &self.record.steps[index];
        let before = self.state(step)?;
        self.put_back_state(index, &before, saved).map_err(|errno| failed(step, errno))
    }

    fn put_back_state(&self, index: usize, before: &FileState, saved: &mut Vec<WsPath>) -> Result<bool, Errno> {
        let step = &self.record.steps[index];
        let names = self.names(index);
        // A directory that is not there has nothing to put back into.
        let Some(target) = self.directories.entry(&step.path) else { return Ok(false) };
        let (displaced, back) = (target.beside(&names.staged[0]), target.beside(&names.back[0]));
        if *before == FileState::Absent {
            self.clear_name(step, back, target, saved)?;
            match target.move_to_free(back) {
                Err(Errno::NOENT) => return Ok(true),
                moved => moved?,
            }
        } else {
            // The file that was displaced has what no record has, such as its times.
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
                // Somebody took the name, or removed the file, in this very moment.
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
        // Changed in this very moment: theirs is the last word.
        if *before == FileState::Absent {
            back.move_to_free(target)?;
        } else {
            back.exchange(target)?;
        }
        Ok(false)
    }

    /// What was there before, whole.
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

    /// Removes the temporary files of a step, and keeps what is on no record where it can be seen.
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
        entry: Entry<'_>,
        target: Entry<'_>,
        saved: &mut Vec<WsPath>,
    ) -> Result<(), Errno> {
        match self.leftover(step, entry, target)? {
            Leftover::Nothing => {}
            Leftover::Ours => entry.remove()?,
            Leftover::Doubtful | Leftover::Theirs => {
                let name = entry.save(target, &self.record.token)?;
                saved.extend(step.path.parent().and_then(|parent| parent.join(&name)));
            }
        }
        Ok(())
    }

    /// Removes directories that nothing is left in, and makes everything last.
    pub(super) fn finish(mut self, emptied: &[WsPath]) -> Result<(), RecoverError> {
        self.directories.remove_empty(emptied);
        // What could not be made to last now is looked at again at the next start.
        self.directories.sync().map_err(|(path, error)| RecoverError::System { path, error })
    }
}

/// What a step's own name holds.
fn holds(step: &RecordedStep, target: Entry<'_>) -> Result<Holds, Errno> {
    Ok(if target.has(&step.after)? {
        Holds::After
    } else if target.has(&step.before)? {
        Holds::Before
    } else {
        Holds::Other
    })
}

/// Whether a temporary name is one of those that a rescue uses.
fn is_back(entry: Entry<'_>) -> bool {
    entry.name.contains(BACK)
}

/// Whether a file cannot be told by its permissions from one that is being written.
fn is_private(print: &Fingerprint) -> bool {
    if let Fingerprint::File { mode, .. } = print { mode.bits() & !0o600 == 0 } else { false }
}

fn failed(step: &RecordedStep, error: Errno) -> RecoverError {
    RecoverError::System { path: step.path.clone(), error }
}
