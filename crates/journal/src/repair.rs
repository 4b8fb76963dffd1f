//! Saving what can still be read.
//!
//! The damaged file is renamed, never changed, and a new one is filled from it. A marker stands in the folder meanwhile: a
//! repair that is cut off leaves a journal that refuses to open and can be repaired again, never one that is quietly empty.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

use crate::folder::{self, Folder, beside};
use crate::open::{self, Identity, OpenJournalError, Options};
use crate::salvage;
use crate::schema;
use crate::trouble::DatabaseError;

/// What a repair saved and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Where the damaged file is now, if there was one.
    pub damaged: Option<PathBuf>,
    /// Events that are in the new journal, with their numbers.
    pub events_saved: u64,
    /// Events that are known to be lost. What lay behind the last number that was found is not among them.
    pub events_lost: u64,
    /// Blobs that are in the new journal, each of them checked.
    pub blobs_saved: u64,
    /// Blobs that are known to be lost.
    pub blobs_lost: u64,
    /// Those of them whose names could be read.
    pub lost: Vec<ContentHash>,
    /// What else could not be read, in words: keys, references, counters.
    pub troubles: Vec<String>,
}

/// Why a repair could not be done.
#[derive(Debug, Error)]
pub enum RepairError {
    /// It could not be begun.
    #[error(transparent)]
    Open(#[from] OpenJournalError),
    /// The new file could not be made.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl RepairError {
    /// The kind that programs see.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Open(error) => error.kind(),
            Self::Database(error) => error.kind(),
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(error) => error.hint(),
            Self::Database(error) => error.hint(),
        }
    }
}

/// Puts a new journal with everything that can still be read in the place of a damaged one, which is kept aside.
pub fn repair(folder: &Path, options: Options) -> Result<Repaired, RepairError> {
    let (folder, _lock) = open::take(folder, options.wait)?;
    let path = folder.database();
    refuse_what_is_not_ours(&path)?;
    let system = |error: std::io::Error| DatabaseError::system(&path, &error);
    let damaged = set_aside(&folder).map_err(system)?;
    let mut target = open::make(&folder)?;
    let mut repaired = Repaired::default();
    if folder::look(&damaged).map_err(system)?.is_some() {
        salvage::salvage(&damaged, &mut target, &mut repaired)?;
        repaired.damaged = Some(damaged.clone());
    }
    // A journal that a cut-off repair had made has had no other user.
    Folder::remove_database(&path).map_err(system)?;
    open::publish(&folder, target)?;
    folder::remove(&beside(&damaged, "-shm")).map_err(system)?;
    folder::remove(&folder.repairing()).and_then(|()| folder.sync()).map_err(system)?;
    Ok(repaired)
}

/// Another program's file, a newer one's or an older one's is not ours to take apart. What cannot be read is.
fn refuse_what_is_not_ours(path: &Path) -> Result<(), OpenJournalError> {
    let known = schema::VERSION;
    let Ok(Some(found)) = folder::look(path) else { return Ok(()) };
    if !found.is_file() || found.len() == 0 {
        return Ok(());
    }
    let Ok(connection) = salvage::connect(path) else { return Ok(()) };
    match open::identify(&connection) {
        Ok(Identity::Foreign) => {
            let ours = connection.prepare("SELECT number, seal FROM events LIMIT 1").is_ok();
            if ours { Ok(()) } else { Err(OpenJournalError::Foreign { path: path.to_owned() }) }
        }
        Ok(Identity::Version(version)) if version > known => {
            Err(OpenJournalError::Newer { path: path.to_owned(), version, known })
        }
        Ok(Identity::Version(version)) if version < known => {
            Err(OpenJournalError::Outdated { path: path.to_owned(), version, known })
        }
        Ok(Identity::Version(_)) | Err(_) => Ok(()),
    }
}

/// Gives the damaged file and its write-ahead file another name, or finds them where a cut-off repair put them.
fn set_aside(folder: &Folder) -> std::io::Result<PathBuf> {
    let (marker, path) = (folder.repairing(), folder.database());
    let begun = match folder::look(&marker)? {
        Some(_) => folder::read_text(&marker)?.trim().parse().ok(),
        None => None,
    };
    let number = begun.map_or_else(|| begin(folder), Ok)?;
    let damaged = folder.damaged(number);
    for suffix in ["", "-wal"] {
        let (from, to) = (beside(&path, suffix), beside(&damaged, suffix));
        if folder::look(&to)?.is_none() && folder::look(&from)?.is_some() {
            folder::rename(&from, &to)?;
        }
    }
    folder::remove(&beside(&path, "-shm"))?;
    folder.sync()?;
    Ok(damaged)
}

/// Chooses a name for the damaged file, and writes it down before anything is renamed.
fn begin(folder: &Folder) -> std::io::Result<u32> {
    let taken = |path: &Path| folder::look(path).map(|found| found.is_some());
    let mut number = 1;
    while taken(&folder.damaged(number))? || taken(&beside(&folder.damaged(number), "-wal"))? {
        number += 1;
    }
    folder::remove(&folder.repairing())?;
    let mut file = folder::create_private(&folder.repairing())?;
    writeln!(file, "{number}")?;
    file.sync_all()?;
    folder.sync()?;
    Ok(number)
}
