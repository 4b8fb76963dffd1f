//! After a crash: finishes what was all done, takes back what was not.

use rustix::io::Errno;
use sayso_review::{ApplyRecord, ContentHash, WsPath};
use thiserror::Error;

use super::rescue::{Holds, Rescue};
use crate::confine::Workspace;

/// What a start found of an interrupted plan, and did about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether every file was as planned already, so that the plan counts as carried out; otherwise it was taken back.
    pub finished: bool,
    /// Files that were neither as before nor as planned. They were left alone.
    pub left_alone: Vec<WsPath>,
    /// Where somebody's work is now that was displaced in the moment of the crash, and whose name something else had taken.
    pub saved: Vec<WsPath>,
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

impl Workspace {
    /// Brings the tree to one side of an interrupted plan. Touches only files that are equal to their old or new bytes, and the
    /// temporary files that carry the record's token; of those it removes none whose content is not on record.
    pub fn recover(
        &self,
        record: &ApplyRecord,
        content: impl Fn(&ContentHash) -> Option<Vec<u8>>,
    ) -> Result<Recovery, RecoverError> {
        let mut rescue = Rescue::new(self, record, content);
        let mut holds = Vec::with_capacity(record.steps.len());
        for index in 0..record.steps.len() {
            holds.push(rescue.look(index)?);
        }
        // What was displaced is removed at the very end: without any of it, the plan was carried out, whatever became of its files
        // since.
        let done = !holds.contains(&Holds::Before) && holds.contains(&Holds::After) && !rescue.any_temporary()?;
        let finished = done || holds.iter().all(|holds| *holds == Holds::After);
        let mut recovery = Recovery { finished, left_alone: Vec::new(), saved: Vec::new() };
        for (index, step) in record.steps.iter().enumerate() {
            let alone = match holds[index] {
                Holds::Other => true,
                Holds::After if !finished => !rescue.put_back(index, &mut recovery.saved)?,
                Holds::Before | Holds::After => false,
            };
            if alone {
                recovery.left_alone.push(step.path.clone());
            }
            rescue.clear(index, &mut recovery.saved)?;
        }
        rescue.finish(if finished { &record.emptied } else { &record.directories })?;
        Ok(recovery)
    }
}
