//! Detection of removed or replaced journal files.
//!
//! If the folder is removed under a running writer, the writer still has open files that no other process can find. It
//! would continue without a lasting record, beside a second writer with the new folder's lock.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::folder::Folder;
use crate::open::Journal;

/// Device and inode numbers of a journal's files.
#[derive(Debug)]
pub(crate) struct FileIdentity {
    folder: Folder,
    files: Vec<(PathBuf, Option<(u64, u64)>)>,
}

impl FileIdentity {
    /// Reads the numbers of the files now.
    pub(crate) fn current(folder: &Folder) -> Self {
        let files = [folder.database(), folder.lock()];
        Self {
            folder: folder.clone(),
            files: files.into_iter().map(|path| (identity(&path), path)).map(|(id, path)| (path, id)).collect(),
        }
    }

    /// Returns the first file that is no longer at its path.
    pub(crate) fn displaced(&self) -> Option<&PathBuf> {
        self.files.iter().find(|(path, id)| id.is_none() || identity(path) != *id).map(|(path, _)| path)
    }
}

#[allow(clippy::disallowed_methods, reason = "the journal owns its folder")]
fn identity(path: &std::path::Path) -> Option<(u64, u64)> {
    let file = std::fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

impl Journal {
    pub(crate) fn folder(&self) -> Folder {
        self.identity.folder.clone()
    }

    /// Returns the journal file that another program removed or replaced, if any. Appending then fails.
    pub fn displaced(&self) -> Option<&PathBuf> {
        self.identity.displaced()
    }
}
