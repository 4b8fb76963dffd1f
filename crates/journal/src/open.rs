//! Opening a journal: format check, lock and a probe of a few pages. [`Reader::check`] does the full check.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use sayso_review::ErrorKind;
use thiserror::Error;

use crate::blob::BlobCompressor;
use crate::database_error::DatabaseError;
use crate::file_identity::FileIdentity;
use crate::folder::{self, Folder, with_suffix};
use crate::lock::{Lock, LockAttempt};
use crate::read::Reader;
use crate::schema::{self, FORMAT};

/// Larger than the number of statements in this crate.
const MAX_CACHED_STATEMENTS: usize = 64;

/// Maximum wait of a statement for another connection.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A journal open for writing. No other process can write until it is dropped.
#[derive(Debug)]
pub struct Journal {
    // Declared before the lock, so that the connection closes first.
    pub(crate) reader: Reader,
    pub(crate) compressor: BlobCompressor,
    pub(crate) identity: FileIdentity,
    _lock: Lock,
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum wait for another process's lock.
    pub wait: Duration,
}

/// Reason why a journal could not be opened.
#[derive(Debug, Error)]
pub enum OpenJournalError {
    /// Another process has the lock.
    #[error("another sayso{} is writing to this journal: `{}`", process(*holder), folder.display())]
    Locked {
        folder: PathBuf,
        /// The other process, if known.
        holder: Option<u32>,
    },
    /// The folder has no journal.
    #[error("there is no journal in `{}`", folder.display())]
    Missing { folder: PathBuf },
    /// Another program wrote the file.
    #[error("`{}` is not a journal of sayso", path.display())]
    Foreign { path: PathBuf },
    /// The file has a later format.
    #[error("the journal `{}` was written by a newer sayso (format {format}); this one reads format {FORMAT}", path.display())]
    Newer { path: PathBuf, format: i64 },
    /// The file has an earlier format.
    #[error("the journal `{}` was written by an older sayso (format {format}); this one reads format {FORMAT}", path.display())]
    Outdated { path: PathBuf, format: i64 },
    /// The folder or its lock cannot be used.
    #[error("cannot use `{}` for a journal: {error}", folder.display())]
    Folder { folder: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

fn process(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |id| format!(", process {id},"))
}

impl OpenJournalError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Locked { .. } | Self::Missing { .. } => ErrorKind::Unavailable,
            Self::Foreign { .. } | Self::Newer { .. } | Self::Outdated { .. } => ErrorKind::Conflict,
            Self::Folder { .. } => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Newer { .. } => Some("update sayso"),
            Self::Outdated { .. } => {
                Some("move the journal's folder away to start a new journal, or run the older sayso to read this one")
            }
            Self::Foreign { .. } => Some("move the file elsewhere, or choose another folder"),
            Self::Folder { .. } => Some(
                "check the folder's owner, its permissions and the free disk space, or set XDG_STATE_HOME to another folder",
            ),
            Self::Locked { .. } | Self::Missing { .. } => None,
            Self::Database(error) => error.hint(),
        }
    }
}

/// Format of a database file, from its header.
pub(crate) enum FileFormat {
    Foreign,
    Numbered(i64),
}

impl Journal {
    /// Opens the journal in `folder` for writing. Creates the folder and the journal if they are missing.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenJournalError> {
        let (folder, lock) = lock_folder(folder, options.wait)?;
        let path = folder.database();
        if !database_exists(&folder)? {
            create(&folder)?;
        }
        let connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        check_format(&connection, &path)?;
        let sqlite = |error: rusqlite::Error| DatabaseError::sqlite(&path, &error);
        schema::tune(&connection).map_err(sqlite)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(sqlite)?;
        let reader = Reader::new(connection, path).with_number_cache();
        reader.probe()?;
        let compressor = BlobCompressor::fast().map_err(|error| DatabaseError::system(reader.path(), &error))?;
        Ok(Self { reader, compressor, identity: FileIdentity::current(&folder), _lock: lock })
    }

    /// Returns the reading side, which sees all appended events.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The last connection to close does this by itself, unless a reader elsewhere is open.
        let _ = self.reader.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

impl Reader {
    /// Opens the journal in `folder` for reading, while another process may write.
    pub fn open(folder: &Path) -> Result<Self, OpenJournalError> {
        let missing = || OpenJournalError::Missing { folder: folder.to_owned() };
        let folder = match Folder::existing(folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing()),
            Err(error) => return Err(OpenJournalError::Folder { folder: folder.to_owned(), error }),
        };
        if !database_exists(&folder)? {
            return Err(missing());
        }
        let path = folder.database();
        let connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        check_format(&connection, &path)?;
        let reader = Self::new(connection, path);
        reader.probe()?;
        Ok(reader)
    }
}

impl Reader {
    /// Opens the journal in a folder without write permission. SQLite treats the file as immutable, so it creates no
    /// files beside it, and ignores the write-ahead log that a killed engine may have left.
    pub fn open_unwritable(folder: &Path) -> Result<Self, OpenJournalError> {
        let folder_error = |error| OpenJournalError::Folder { folder: folder.to_owned(), error };
        let path = Folder::existing(folder).map_err(folder_error)?.database();
        let mut address = String::from("file:");
        for &byte in path.as_os_str().as_encoded_bytes() {
            match byte {
                b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => address.push(byte.into()),
                other => address.push_str(&format!("%{other:02X}")),
            }
        }
        address.push_str("?immutable=1");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(address, flags).map_err(|error| DatabaseError::sqlite(&path, &error))?;
        check_format(&connection, &path)?;
        let reader = Self::new(connection, path);
        reader.probe()?;
        Ok(reader)
    }
}

/// Creates the folder if it is missing, and acquires the writer's lock.
pub(crate) fn lock_folder(path: &Path, wait: Duration) -> Result<(Folder, Lock), OpenJournalError> {
    let failed = |error| OpenJournalError::Folder { folder: path.to_owned(), error };
    let folder = Folder::create(path).map_err(failed)?;
    match Lock::acquire(&folder, wait).map_err(failed)? {
        LockAttempt::Acquired(lock) => Ok((folder, lock)),
        LockAttempt::HeldBy(holder) => Err(OpenJournalError::Locked { folder: folder.path().to_owned(), holder }),
    }
}

/// Returns `true` if the folder has a journal to open. Fails if the file names show damage or an unfinished repair.
fn database_exists(folder: &Folder) -> Result<bool, DatabaseError> {
    let path = folder.database();
    let look = |path: &Path| folder::stat(path).map_err(|error| DatabaseError::system(path, &error));
    if look(&folder.repairing())?.is_some() {
        return Err(DatabaseError::damaged(&path, "a repair is running or was interrupted"));
    }
    let Some(found) = look(&path)? else {
        // SQLite would take a leftover log for part of the next database.
        if look(&with_suffix(&path, "-wal"))?.is_some_and(|wal| wal.len() > 0) {
            return Err(DatabaseError::damaged(&path, "the file is missing, but its write-ahead log exists"));
        }
        return Ok(false);
    };
    if !found.is_file() {
        return Err(DatabaseError::damaged(&path, "the file is not a regular file"));
    }
    if found.len() == 0 {
        return Err(DatabaseError::damaged(&path, "the file is empty"));
    }
    folder::make_private(&path, &found).map_err(|error| DatabaseError::system(&path, &error))?;
    Ok(true)
}

/// Creates an empty journal under a temporary name. [`publish`] renames it.
pub(crate) fn make(folder: &Folder) -> Result<Connection, DatabaseError> {
    let path = folder.unfinished();
    let system = |error: std::io::Error| DatabaseError::system(&path, &error);
    let sqlite = |error: rusqlite::Error| DatabaseError::sqlite(&path, &error);
    Folder::remove_database(&path).map_err(system)?;
    drop(folder::create_private(&path).map_err(system)?);
    let flags = schema::flags(OpenFlags::SQLITE_OPEN_READ_WRITE);
    let connection = Connection::open_with_flags(&path, flags).map_err(sqlite)?;
    schema::create(&connection).map_err(sqlite)?;
    Ok(connection)
}

/// Closes a journal that [`make`] created, and renames it to its final name.
pub(crate) fn publish(folder: &Folder, connection: Connection) -> Result<(), DatabaseError> {
    let (unfinished, path) = (folder.unfinished(), folder.database());
    // An explicit checkpoint, because closing would hide its error.
    let complete = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    match complete {
        Ok(0) => {}
        Ok(_) => return Err(DatabaseError::damaged(&unfinished, "another program has the file open")),
        Err(error) => return Err(DatabaseError::sqlite(&unfinished, &error)),
    }
    connection.close().map_err(|(_, error)| DatabaseError::sqlite(&unfinished, &error))?;
    let renamed = folder::rename(&unfinished, &path).and_then(|()| folder.sync());
    renamed.map_err(|error| DatabaseError::system(&path, &error))
}

fn create(folder: &Folder) -> Result<(), DatabaseError> {
    publish(folder, make(folder)?)
}

/// Opens a file of unknown origin without writing to it, not even on close.
pub(crate) fn connect(path: &Path, access: OpenFlags) -> Result<Connection, DatabaseError> {
    let set_up = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, schema::flags(access))?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Without this SQLite plans a statement again for every bound value, which took a quarter of the time of a
        // decision.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
        // SQLite locks the file for short moments, also for readers.
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(connection)
    };
    set_up().map_err(|error| DatabaseError::sqlite(path, &error))
}

/// Reads the format from a file's header.
pub(crate) fn identify(connection: &Connection) -> rusqlite::Result<FileFormat> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number("application_id")? != schema::APPLICATION_ID {
        return Ok(FileFormat::Foreign);
    }
    Ok(FileFormat::Numbered(number("user_version")?))
}

/// Rejects the files of other programs and of other formats.
fn check_format(connection: &Connection, path: &Path) -> Result<(), OpenJournalError> {
    match identify(connection).map_err(|error| DatabaseError::sqlite(path, &error))? {
        FileFormat::Foreign => Err(OpenJournalError::Foreign { path: path.to_owned() }),
        FileFormat::Numbered(format) if format < 1 => {
            Err(DatabaseError::damaged(path, format!("its format number is {format}")).into())
        }
        FileFormat::Numbered(format) => reject_other_format(format, path),
    }
}

/// Rejects formats that this version does not read: it neither migrates old journals nor guesses at new ones.
pub(crate) fn reject_other_format(format: i64, path: &Path) -> Result<(), OpenJournalError> {
    match format.cmp(&FORMAT) {
        Ordering::Equal => Ok(()),
        Ordering::Less => Err(OpenJournalError::Outdated { path: path.to_owned(), format }),
        Ordering::Greater => Err(OpenJournalError::Newer { path: path.to_owned(), format }),
    }
}
