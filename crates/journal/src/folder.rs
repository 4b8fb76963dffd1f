//! The journal's folder: names, permissions, and what has to be on disk before what.
//!
//! `journal.db` is made under another name and renamed when it is complete, so that an empty one is damage and never a start
//! that was cut off. We never open it ourselves: closing a file drops all of a process's POSIX locks on it, SQLite's too.

#![allow(clippy::disallowed_methods, reason = "the journal owns its folder, which is never inside the workspace")]

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A journal's folder, by its real path.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

/// Only the user's.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_FOLDER: u32 = 0o700;

impl Folder {
    /// Creates what is missing, for the user only, whatever the umask says.
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

    /// A folder that is there.
    pub(crate) fn existing(path: &Path) -> io::Result<Self> {
        Ok(Self(path.canonicalize()?))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The journal's file.
    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("journal.db")
    }

    /// Where a new one is made.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.0.join("journal.new.db")
    }

    /// Where the damaged one goes.
    pub(crate) fn damaged(&self, number: u32) -> PathBuf {
        self.0.join(format!("journal.damaged-{number}.db"))
    }

    /// There while a repair is under way, with the number of the damaged file in it.
    pub(crate) fn repairing(&self) -> PathBuf {
        self.0.join("repairing")
    }

    /// Room for the end of what has begun.
    pub(crate) fn reserve(&self) -> PathBuf {
        self.0.join("reserve")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Makes renames and new names last.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    /// Removes a database and what SQLite puts beside it.
    pub(crate) fn remove_database(path: &Path) -> io::Result<()> {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            remove(&beside(path, suffix))?;
        }
        Ok(())
    }
}

/// The name of a file that SQLite keeps beside a database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// What is of this name, without following a link; nothing is not an error.
pub(crate) fn look(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes a file; none of that name is not an error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Renames within the folder.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// Makes an empty file that only the user can read, where nothing is.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(PRIVATE_FILE).open(path)?;
    file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
    Ok(file)
}

/// Opens a file of ours that may be there already; a link of its name is refused.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE).custom_flags(flags);
    let file = options.open(path)?;
    file.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
    Ok(file)
}

/// Reads a small file of ours.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Takes away what others may do with a file that was copied here.
pub(crate) fn make_private(path: &Path, found: &Metadata) -> io::Result<()> {
    if found.permissions().mode() & 0o777 == PRIVATE_FILE {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(PRIVATE_FILE))
}
