//! Reserved disk space for the end of a change.
//!
//! A change that reached the user's files must be recorded as done even if the disk is full by then. So a placeholder
//! file exists beside the journal. If such a record does not fit, the placeholder is deleted; it is written again
//! before the next change begins.

#![allow(clippy::disallowed_methods, reason = "the journal owns its folder, which is never inside the workspace")]

use std::io::{self, Write as _};

use crate::append::{AppendError, Batch};
use crate::database_error::DatabaseError;
use crate::folder::{self, Folder};
use crate::open::Journal;

/// Larger than the record of any change's end.
const RESERVE_BYTES: usize = 1 << 20;

impl Journal {
    /// Writes the placeholder, if it is missing. Call this before a change begins.
    pub fn reserve(&self) -> Result<(), AppendError> {
        let folder = self.folder();
        if let Some(path) = self.displaced() {
            return Err(AppendError::Displaced { path: path.clone() });
        }
        if std::fs::metadata(folder.reserve()).is_ok_and(|file| file.len() == RESERVE_BYTES as u64) {
            return Ok(());
        }
        fill(&folder).map_err(|error| {
            let _ = std::fs::remove_file(folder.reserve());
            DatabaseError::system(self.reader().path(), &error).into()
        })
    }

    /// Appends the end of a change, in the reserved space if the disk is full.
    pub fn append_end(&mut self, batch: &Batch<'_>) -> Result<std::ops::Range<u64>, AppendError> {
        match self.append(batch) {
            Err(AppendError::Database(DatabaseError::Full { .. })) => {
                let _ = std::fs::remove_file(self.folder().reserve());
                self.append(batch)
            }
            appended => appended,
        }
    }
}

/// Writes zeros, because a sparse file reserves no space.
fn fill(folder: &Folder) -> io::Result<()> {
    let mut file = folder::open_private(&folder.reserve())?;
    file.set_len(0)?;
    file.write_all(&vec![0; RESERVE_BYTES])?;
    file.sync_data()
}
