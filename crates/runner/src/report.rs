//! The result of a run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::judge::PreparedCommand;

/// Commands that a report lists at most.
const MAX_RAN: usize = 1000;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Exit code for the caller: 126 after a refusal, 128 + n after signal n.
    pub exit_code: u8,
    /// Programs and builtins in the order in which they ended.
    pub ran: Vec<RanCommand>,
    /// Number of further commands that ran.
    pub omitted: usize,
    /// The command that ended the script by a refusal.
    pub refused: Option<Refusal>,
    /// Folder of the script when it ended.
    pub directory: PathBuf,
}

/// A command that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanCommand {
    /// Its words after expansion.
    pub argv: Vec<OsString>,
    /// The folder in which it ran.
    pub directory: PathBuf,
    /// Its exit code, 128 + n after signal n.
    pub exit: u8,
}

/// A command that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The command as it was judged.
    pub command: PreparedCommand,
    /// Reason of the judge, as written to standard error.
    pub reason: String,
}

/// Collects the report from all threads of a run.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    ran: Vec<RanCommand>,
    omitted: usize,
    refused: Option<Refusal>,
}

impl Log {
    pub(crate) fn ran(&self, command: RanCommand) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.ran.len() < MAX_RAN {
            entries.ran.push(command);
        } else {
            entries.omitted += 1;
        }
    }

    /// Notes a refusal; the first one counts.
    pub(crate) fn refused(&self, refusal: Refusal) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.refused.get_or_insert(refusal);
    }

    pub(crate) fn into_report(self, exit_code: u8, directory: PathBuf) -> Report {
        let entries = self.entries.into_inner().unwrap_or_else(PoisonError::into_inner);
        Report { exit_code, ran: entries.ran, omitted: entries.omitted, refused: entries.refused, directory }
    }
}
