//! Whether the files that a writer has open still are those at their paths.
//!
//! A folder that is removed under a running writer leaves it with files that nobody else can find: it would go on without a record
//! that lasts, beside a second writer that takes the lock of the new folder.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::folder::Folder;
use crate::open::Journal;

/// The files of a journal, told from others of the same name by device and inode.
#[derive(Debug)]
pub(crate) struct Place {
    folder: Folder,
    files: Vec<(PathBuf, Option<(u64, u64)>)>,
}

impl Place {
    /// The files as they are now.
    pub(crate) fn of(folder: &Folder) -> Self {
        let files = [folder.database(), folder.lock()];
        Self {
            folder: folder.clone(),
            files: files.into_iter().map(|path| (identity(&path), path)).map(|(id, path)| (path, id)).collect(),
        }
    }

    /// The first file that is not at its path any more.
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
        self.place.folder.clone()
    }

    /// The file of the journal that was removed or replaced since it was opened, if one was: nothing can be recorded any more.
    pub fn displaced(&self) -> Option<&PathBuf> {
        self.place.displaced()
    }
}
