//! Room for the end of what has begun.
//!
//! What reached the user's files has to be recorded as done even if the disk is full by then. So a file of some size lies beside the
//! journal; it is removed when such a record does not fit, and made again before anything else begins.

#![allow(clippy::disallowed_methods, reason = "the journal owns its folder, which is never inside the workspace")]

use std::io::{self, Write as _};

use crate::append::{AppendError, Batch};
use crate::folder::{self, Folder};
use crate::open::Journal;
use crate::trouble::DatabaseError;

/// More than the end of any change takes.
const SIZE: usize = 1 << 20;

impl Journal {
    /// Makes sure that there is room for the end of what is about to begin.
    pub fn reserve(&self) -> Result<(), AppendError> {
        let folder = self.folder();
        if let Some(path) = self.displaced() {
            return Err(AppendError::Displaced { path: path.clone() });
        }
        if std::fs::metadata(folder.reserve()).is_ok_and(|file| file.len() == SIZE as u64) {
            return Ok(());
        }
        fill(&folder).map_err(|error| {
            let _ = std::fs::remove_file(folder.reserve());
            DatabaseError::system(self.reader().path(), &error).into()
        })
    }

    /// Appends the end of something that happened, if need be into the room that was kept for it.
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

/// Writes it, for a file of nothing but its length takes no room.
fn fill(folder: &Folder) -> io::Result<()> {
    let mut file = folder::open_private(&folder.reserve())?;
    file.set_len(0)?;
    file.write_all(&vec![0; SIZE])?;
    file.sync_data()
}
