//! Names, permissions and durability of the journal's files.
//!
//! `journal.db` is created under another name and renamed when complete. So an empty `journal.db` is damage and never
//! an interrupted start. This module never opens `journal.db` itself: closing a file drops all POSIX locks of the
//! process on it, including SQLite's.

#![allow(clippy::disallowed_methods, reason = "the journal owns its folder, which is never inside the workspace")]

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Canonical path of a journal's folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

impl Folder {
    /// Creates the folder if it is missing, with permissions for the user only, regardless of the umask.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER).create(path)?;
            std::fs::set_permissions(path, Permissions::from_mode(PRIVATE_FOLDER))?;
            if let Some(parent) = path.canonicalize()?.parent() {
                File::open(parent)?.sync_all()?;
            }
        }
        Self::existing(path)
    }

    /// Opens an existing folder.
    pub(crate) fn existing(path: &Path) -> io::Result<Self> {
        Ok(Self(path.canonicalize()?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("journal.db")
    }

    /// Temporary name of a new journal.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.0.join("journal.new.db")
    }

    /// Name of a damaged journal after a repair.
    pub(crate) fn damaged(&self, number: u32) -> PathBuf {
        self.0.join(format!("journal.damaged-{number}.db"))
    }

    /// Marker of a repair in progress. Contains the number of the damaged file.
    pub(crate) fn repairing(&self) -> PathBuf {
        self.0.join("repairing")
    }

    /// Placeholder that [`crate::Journal::append_end`] deletes on a full disk.
    pub(crate) fn reserve(&self) -> PathBuf {
        self.0.join("reserve")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Makes new and changed names in the folder durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    /// Removes a database with the files that SQLite creates beside it.
    pub(crate) fn remove_database(path: &Path) -> io::Result<()> {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            remove(&with_suffix(path, suffix))?;
        }
        Ok(())
    }
}

/// Returns the name of a file that SQLite creates beside a database.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the metadata of a name without following a link; `None` if the name is free.
pub(crate) fn stat(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes a file, if it exists.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Creates an empty file that only the user can read. Fails if the name is taken.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(PRIVATE_FILE).open(path)?;
    file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
    Ok(file)
}

/// Opens or creates a file that only the user can read. Fails if the name is a link.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE).custom_flags(flags);
    let file = options.open(path)?;
    file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
    Ok(file)
}

pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Restricts the permissions of a journal file that another program copied here.
pub(crate) fn make_private(path: &Path, found: &Metadata) -> io::Result<()> {
    if found.permissions().mode() & 0o777 == PRIVATE_FILE {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(PRIVATE_FILE))
}
