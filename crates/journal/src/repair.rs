//! Repair of a damaged journal.
//!
//! The damaged file is renamed and never changed, and a new file is filled from it. A marker file exists meanwhile.
//! After an interrupted repair the journal refuses to open and can be repaired again; it is never silently empty.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

use crate::database_error::DatabaseError;
use crate::folder::{self, Folder, with_suffix};
use crate::open::{self, FileFormat, OpenJournalError, Options};
use crate::salvage;

/// Result of [`repair`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// New path of the damaged file, if there was one.
    pub damaged: Option<PathBuf>,
    /// Events in the new journal, with their old numbers.
    pub events_saved: u64,
    /// Known lost events. Events after the last number that could be read are not counted.
    pub events_lost: u64,
    /// Blobs in the new journal, all of them verified.
    pub blobs_saved: u64,
    /// Known lost blobs.
    pub blobs_lost: u64,
    /// Hashes of lost blobs, as far as they could be read.
    pub lost_blobs: Vec<ContentHash>,
    /// Other read errors: of keys, references and counters.
    pub read_errors: Vec<String>,
}

/// Reason why a repair failed.
#[derive(Debug, Error)]
pub enum RepairError {
    /// The folder cannot be locked, or the file is not for this version to repair.
    #[error(transparent)]
    Open(#[from] OpenJournalError),
    /// The new file cannot be written.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl RepairError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Open(error) => error.kind(),
            Self::Database(error) => error.kind(),
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(error) => error.hint(),
            Self::Database(error) => error.hint(),
        }
    }
}

/// Replaces a damaged journal with a new one that has all readable data. The damaged file is kept under another name.
pub fn repair(folder: &Path, options: Options) -> Result<RepairReport, RepairError> {
    let (folder, _lock) = open::lock_folder(folder, options.wait)?;
    let path = folder.database();
    reject_foreign_file(&path)?;
    let system = |error: std::io::Error| DatabaseError::system(&path, &error);
    let damaged = set_aside(&folder).map_err(system)?;
    let mut target = open::make(&folder)?;
    let mut repaired = RepairReport::default();
    if folder::stat(&damaged).map_err(system)?.is_some() {
        salvage::salvage(&damaged, &mut target, &mut repaired)?;
        repaired.damaged = Some(damaged.clone());
    }
    // An interrupted repair may have left a new journal here. Because of the marker, no program has used it.
    Folder::remove_database(&path).map_err(system)?;
    open::publish(&folder, target)?;
    folder::remove(&with_suffix(&damaged, "-shm")).map_err(system)?;
    folder::remove(&folder.repairing()).and_then(|()| folder.sync()).map_err(system)?;
    Ok(repaired)
}

/// Rejects files of other programs and other formats. A file with an unreadable header counts as damaged.
fn reject_foreign_file(path: &Path) -> Result<(), OpenJournalError> {
    let Ok(Some(found)) = folder::stat(path) else { return Ok(()) };
    if !found.is_file() || found.len() == 0 {
        return Ok(());
    }
    let Ok(connection) = salvage::connect(path) else { return Ok(()) };
    match open::identify(&connection) {
        Ok(FileFormat::Foreign) => {
            // Damage can change the application id, but this table is sayso's own.
            let ours = connection.prepare("SELECT number, checksum FROM events LIMIT 1").is_ok();
            if ours { Ok(()) } else { Err(OpenJournalError::Foreign { path: path.to_owned() }) }
        }
        Ok(FileFormat::Numbered(format)) => open::reject_other_format(format, path),
        Err(_) => Ok(()),
    }
}

/// Renames the damaged file and its write-ahead log, or finishes the renaming of an interrupted repair. Returns the new path.
fn set_aside(folder: &Folder) -> std::io::Result<PathBuf> {
    let (marker, path) = (folder.repairing(), folder.database());
    let stored = match folder::stat(&marker)? {
        Some(_) => folder::read_text(&marker)?.trim().parse().ok(),
        None => None,
    };
    let number = stored.map_or_else(|| choose_number(folder), Ok)?;
    let damaged = folder.damaged(number);
    for suffix in ["", "-wal"] {
        let (from, to) = (with_suffix(&path, suffix), with_suffix(&damaged, suffix));
        if folder::stat(&to)?.is_none() && folder::stat(&from)?.is_some() {
            folder::rename(&from, &to)?;
        }
    }
    folder::remove(&with_suffix(&path, "-shm"))?;
    folder.sync()?;
    Ok(damaged)
}

/// Chooses a number for the name of the damaged file, and stores it in the marker before any rename.
fn choose_number(folder: &Folder) -> std::io::Result<u32> {
    let taken = |path: &Path| folder::stat(path).map(|found| found.is_some());
    let mut number = 1;
    while taken(&folder.damaged(number))? || taken(&with_suffix(&folder.damaged(number), "-wal"))? {
        number += 1;
    }
    folder::remove(&folder.repairing())?;
    let mut file = folder::create_private(&folder.repairing())?;
    writeln!(file, "{number}")?;
    file.sync_all()?;
    folder.sync()?;
    Ok(number)
}
