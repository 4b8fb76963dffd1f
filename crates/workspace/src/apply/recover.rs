//! After a crash: finishes what was all done, takes back what was not.

use rustix::io::Errno;
use sayso_review::{ApplyRecord, ContentHash, FileState, Fingerprint, RecordedStep, WsPath};
use thiserror::Error;

use super::directories::Directories;
use super::entry::Entry;
use super::temporary;
use crate::confine::Workspace;

/// What a start found of an interrupted plan, and did about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether every file was as planned already, so that the plan counts as carried out; otherwise it was taken back.
    pub finished: bool,
    /// Files that were neither as before nor as planned. They were left alone.
    pub left_alone: Vec<WsPath>,
}

/// Why an interrupted plan could not be recovered from; trying again later does no harm.
#[derive(Debug, Error)]
pub enum RecoverError {
    /// A content that is needed is not to be had.
    #[error("the content that `{path}` had is missing from the journal")]
    ContentMissing {
        /// The file.
        path: WsPath,
    },
    /// The system refuses.
    #[error("`{path}` cannot be put back: {error}")]
    System {
        /// The file.
        path: WsPath,
        /// What it says.
        error: Errno,
    },
}

/// What a name holds, compared with a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Before,
    After,
    Other,
}

impl Workspace {
    /// Brings the tree to one side of an interrupted plan. Touches only files that are equal to their old or new bytes, and the
    /// temporary files that carry the record's token.
    pub fn recover(
        &self,
        record: &ApplyRecord,
        content: impl Fn(&ContentHash) -> Option<Vec<u8>>,
    ) -> Result<Recovery, RecoverError> {
        let mut rescue = Rescue { workspace: self, directories: Directories::new(self), record };
        let mut holds = Vec::with_capacity(record.steps.len());
        for (index, step) in record.steps.iter().enumerate() {
            holds.push(rescue.look(index, step).map_err(|error| failed(step, error))?);
        }
        let finished = holds.iter().all(|holds| *holds == Holds::After);
        let mut recovery = Recovery { finished, left_alone: Vec::new() };
        for (index, step) in record.steps.iter().enumerate() {
            match holds[index] {
                Holds::Other => recovery.left_alone.push(step.path.clone()),
                Holds::After if !finished => {
                    let before = state(step, &content)?;
                    if !rescue.put_back(index, step, &before).map_err(|error| failed(step, error))? {
                        recovery.left_alone.push(step.path.clone());
                    }
                }
                Holds::Before | Holds::After => {}
            }
            rescue.remove_temporaries(index, step).map_err(|error| failed(step, error))?;
        }
        for directory in if finished { &record.emptied } else { &record.directories }.iter().rev() {
            rescue.directories.remove_empty(directory);
        }
        // What could not be made to last now is looked at again at the next start.
        rescue
            .directories
            .sync()
            .map_err(|error| RecoverError::System { path: error.path().clone(), error: Errno::IO })?;
        Ok(recovery)
    }
}

fn failed(step: &RecordedStep, error: Errno) -> RecoverError {
    RecoverError::System { path: step.path.clone(), error }
}

/// What was there before, whole.
fn state(step: &RecordedStep, content: &impl Fn(&ContentHash) -> Option<Vec<u8>>) -> Result<FileState, RecoverError> {
    Ok(match &step.before {
        Fingerprint::Absent => FileState::Absent,
        Fingerprint::Link { target } => FileState::Link { target: target.clone() },
        Fingerprint::File { hash, mode, .. } => {
            let missing = || RecoverError::ContentMissing { path: step.path.clone() };
            FileState::file(content(hash).ok_or_else(missing)?, *mode)
        }
    })
}

struct Rescue<'w, 'r> {
    workspace: &'w Workspace,
    directories: Directories<'w>,
    record: &'r ApplyRecord,
}

impl Rescue<'_, '_> {
    /// The names that may be in use for a step besides its own: of the plan, of a fallback's exchange, of an earlier rescue.
    fn names(&self, index: usize) -> [String; 3] {
        let name = temporary(&self.record.token, index);
        [name.clone(), format!("{name}-old"), format!("{name}-back")]
    }

    fn target<'a>(&'a self, step: &'a RecordedStep) -> Option<Entry<'a>> {
        let directory = self.directories.handle(&step.path.parent()?)?;
        Some(Entry { directory, name: step.path.names().next_back()? })
    }

    /// What a step's name holds. What an exchange brought out that was not what the plan starts from goes back first: it is
    /// somebody's work, and was never ours to displace.
    fn look(&mut self, index: usize, step: &RecordedStep) -> Result<Holds, Errno> {
        let parent = step.path.parent().unwrap_or_else(WsPath::root);
        if self.directories.open(&parent).is_err() {
            // A directory that is not there has nothing in it, and one that leads elsewhere is not ours to look into.
            let absent = self.workspace.open_path(&parent).is_err();
            return Ok(match (absent, &step.before, &step.after) {
                (true, Fingerprint::Absent, _) => Holds::Before,
                (true, _, Fingerprint::Absent) => Holds::After,
                _ => Holds::Other,
            });
        }
        let names = self.names(index);
        let Some(target) = self.target(step) else { return Ok(Holds::Other) };
        let displaced = target.beside(&names[0]);
        let is_after = target.has(&step.after)?;
        if is_after
            && step.before != Fingerprint::Absent
            && displaced.stat()?.is_some()
            && !displaced.has(&step.before)?
        {
            if step.after == Fingerprint::Absent {
                displaced.move_to_free(target)?;
            } else {
                displaced.exchange(target, self.workspace.swap)?;
            }
            return Ok(Holds::Other);
        }
        if is_after {
            Ok(Holds::After)
        } else if target.has(&step.before)? {
            Ok(Holds::Before)
        } else {
            Ok(Holds::Other)
        }
    }

    /// Puts back what was there before; says whether the name still held what was planned.
    fn put_back(&self, index: usize, step: &RecordedStep, before: &FileState) -> Result<bool, Errno> {
        let names = self.names(index);
        let Some(target) = self.target(step) else { return Ok(false) };
        let back = target.beside(&names[2]);
        back.remove()?;
        if *before == FileState::Absent {
            target.move_to_free(back)?;
        } else {
            // The file that was displaced has what no record has, such as its times.
            let displaced = target.beside(&names[0]);
            if displaced.has(&step.before)? {
                displaced.move_to_free(back)?;
            } else {
                back.stage(before, target)?;
            }
            if step.after == Fingerprint::Absent {
                return match back.move_to_free(target) {
                    Ok(()) => Ok(true),
                    Err(Errno::EXIST) => Ok(false),
                    Err(errno) => Err(errno),
                };
            }
            back.exchange(target, self.workspace.swap)?;
        }
        if back.has(&step.after)? {
            return Ok(true);
        }
        // Changed in this very moment: theirs is the last word.
        if *before == FileState::Absent {
            back.move_to_free(target)?;
        } else {
            back.exchange(target, self.workspace.swap)?;
        }
        Ok(false)
    }

    fn remove_temporaries(&self, index: usize, step: &RecordedStep) -> Result<(), Errno> {
        let names = self.names(index);
        let Some(target) = self.target(step) else { return Ok(()) };
        names.iter().try_for_each(|name| target.beside(name).remove())
    }
}
