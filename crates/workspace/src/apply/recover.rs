//! Recovery of an interrupted plan after a crash.

use rustix::io::Errno;
use sayso_review::{ApplyRecord, ContentHash, WsPath};
use thiserror::Error;

use super::crash_state::{CrashState, Holds};
use crate::confine::Workspace;

/// Result of [`Workspace::recover`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// `true` if every file had the planned content, so that the plan counts as applied; `false` if it was rolled back.
    pub finished: bool,
    /// Files with neither the old nor the new content. They are unchanged.
    pub skipped_files: Vec<WsPath>,
    /// New names of other programs' files that the crash displaced and whose names were taken.
    pub rescued_files: Vec<WsPath>,
}

/// Reason why a recovery failed. It can be tried again.
#[derive(Debug, Error)]
pub enum RecoverError {
    /// The journal does not have a content that is needed.
    #[error("the content that `{path}` had is missing from the journal")]
    ContentMissing { path: WsPath },
    #[error("`{path}` cannot be put back: {error}")]
    System { path: WsPath, error: Errno },
}

impl Workspace {
    /// Completes or rolls back an interrupted plan. Touches only files with their old or new content, and temporary
    /// files with the record's token. Removes temporary files only if their content is on record.
    pub fn recover(
        &self,
        record: &ApplyRecord,
        content: impl Fn(&ContentHash) -> Option<Vec<u8>>,
    ) -> Result<Recovery, RecoverError> {
        let mut state = CrashState::new(self, record, content);
        let mut holds = Vec::with_capacity(record.steps.len());
        for index in 0..record.steps.len() {
            holds.push(state.look(index)?);
        }
        // Displaced files are removed last. If none is left, the plan was applied, even if its files changed
        // afterwards.
        let done = !holds.contains(&Holds::Before) && holds.contains(&Holds::After) && !state.any_temporary()?;
        let finished = done || holds.iter().all(|holds| *holds == Holds::After);
        let mut recovery = Recovery { finished, skipped_files: Vec::new(), rescued_files: Vec::new() };
        for (index, step) in record.steps.iter().enumerate() {
            let alone = match holds[index] {
                Holds::Other => true,
                Holds::After if !finished => !state.put_back(index, &mut recovery.rescued_files)?,
                Holds::Before | Holds::After => false,
            };
            if alone {
                recovery.skipped_files.push(step.path.clone());
            }
            state.clear(index, &mut recovery.rescued_files)?;
        }
        state.finish(if finished { &record.emptied } else { &record.directories })?;
        Ok(recovery)
    }
}
