//! Opening: whose file it is, of which version, and whether it can be read at all. What costs more than a few pages is left
//! to [`Reader::check`].

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use sayso_review::ErrorKind;
use thiserror::Error;

use crate::blob::Press;
use crate::folder::{self, Folder, beside};
use crate::lock::{Lock, Taken};
use crate::place::Place;
use crate::read::Reader;
use crate::trouble::DatabaseError;
use crate::{migrate, schema};

/// More statements than there are.
const STATEMENTS: usize = 64;

/// How long a statement waits for another connection.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// A journal, open for writing; nobody else writes until it is dropped.
#[derive(Debug)]
pub struct Journal {
    // Before the lock, so that it is closed by then.
    pub(crate) reader: Reader,
    pub(crate) press: Press,
    pub(crate) place: Place,
    _lock: Lock,
}

/// How to open a journal.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long to wait for another process that is writing.
    pub wait: Duration,
}

/// Why a journal could not be opened.
#[derive(Debug, Error)]
pub enum OpenJournalError {
    /// Another process is writing.
    #[error("another sayso{} is writing to this journal: `{}`", process(*holder), folder.display())]
    Locked {
        /// The journal's folder.
        folder: PathBuf,
        /// The other process, if it said.
        holder: Option<u32>,
    },
    /// There is none to read.
    #[error("there is no journal in `{}`", folder.display())]
    Missing {
        /// Where one was expected.
        folder: PathBuf,
    },
    /// The file is another program's.
    #[error("`{}` is not a journal of sayso, and was left alone", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is from the future.
    #[error("`{}` was written by a newer sayso: its version is {version}, this one knows up to {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
        /// The newest known here.
        known: i64,
    },
    /// The file is from the past, and a reader cannot bring it up to date.
    #[error("`{}` was written by an older sayso: its version is {version}, this one reads {known}", path.display())]
    Outdated {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
        /// The one that is read here.
        known: i64,
    },
    /// The folder or the lock cannot be had.
    #[error("`{}` cannot be used for a journal: {error}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file does not serve.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

fn process(holder: Option<u32>) -> String {
    holder.map_or_else(String::new, |id| format!(", process {id},"))
}

impl OpenJournalError {
    /// The kind that programs see.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Locked { .. } | Self::Missing { .. } => ErrorKind::Unavailable,
            Self::Foreign { .. } | Self::Newer { .. } | Self::Outdated { .. } => ErrorKind::Conflict,
            Self::Folder { .. } => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Newer { .. } => Some("update sayso"),
            Self::Outdated { .. } => Some("any command that writes brings it up to date, for instance `sayso gc`"),
            Self::Foreign { .. } => Some("move it elsewhere, or choose another folder"),
            Self::Folder { .. } => Some(
                "look at the folder's owner and permissions and at the disk's free space, or set XDG_STATE_HOME to a folder that is yours",
            ),
            Self::Locked { .. } | Self::Missing { .. } => None,
            Self::Database(error) => error.hint(),
        }
    }
}

/// What a file says about itself.
pub(crate) enum Identity {
    Foreign,
    Version(i64),
}

impl Journal {
    /// Opens the journal in `folder`, for this process alone to write; makes what is missing, brings up to date what is old.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenJournalError> {
        let (folder, lock) = take(folder, options.wait)?;
        let path = folder.database();
        if !is_there(&folder)? {
            create(&folder)?;
        }
        let mut connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let version = known_version(&connection, &path)?;
        let sqlite = |error: rusqlite::Error| DatabaseError::sqlite(&path, &error);
        schema::tune(&connection).map_err(sqlite)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(sqlite)?;
        if version < schema::VERSION {
            migrate::migrate(&mut connection, version).map_err(sqlite)?;
        }
        let reader = Reader::new(connection, path).of_the_writer();
        reader.try_out()?;
        let press = Press::quick().map_err(|error| DatabaseError::system(reader.path(), &error))?;
        Ok(Self { reader, press, place: Place::of(&folder), _lock: lock })
    }

    /// The reading side, which sees what was appended.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The last connection to close does this by itself; a reader elsewhere would keep it from happening.
        let _ = self.reader.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

impl Reader {
    /// Opens the journal in `folder` for reading, whoever may be writing.
    pub fn open(folder: &Path) -> Result<Self, OpenJournalError> {
        let missing = || OpenJournalError::Missing { folder: folder.to_owned() };
        let folder = match Folder::existing(folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing()),
            Err(error) => return Err(OpenJournalError::Folder { folder: folder.to_owned(), error }),
        };
        if !is_there(&folder)? {
            return Err(missing());
        }
        let path = folder.database();
        let connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let version = known_version(&connection, &path)?;
        if version < schema::VERSION {
            return Err(OpenJournalError::Outdated { path, version, known: schema::VERSION });
        }
        let reader = Self::new(connection, path);
        reader.try_out()?;
        Ok(reader)
    }
}

impl Reader {
    /// Opens the journal in a folder that cannot be written to, as it is: SQLite is told that nobody writes to it, so that it needs no
    /// files of its own. What an engine that was killed left in the write-ahead log is not seen.
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
        let version = known_version(&connection, &path)?;
        if version < schema::VERSION {
            return Err(OpenJournalError::Outdated { path, version, known: schema::VERSION });
        }
        let reader = Self::new(connection, path);
        reader.try_out()?;
        Ok(reader)
    }
}

/// Makes the folder if need be, and takes the writer's lock.
pub(crate) fn take(path: &Path, wait: Duration) -> Result<(Folder, Lock), OpenJournalError> {
    let failed = |error| OpenJournalError::Folder { folder: path.to_owned(), error };
    let folder = Folder::create(path).map_err(failed)?;
    match Lock::take(&folder, wait).map_err(failed)? {
        Taken::Ours(lock) => Ok((folder, lock)),
        Taken::Theirs(holder) => Err(OpenJournalError::Locked { folder: folder.path().to_owned(), holder }),
    }
}

/// Looks at the names in the folder, and says whether there is a journal to be opened.
fn is_there(folder: &Folder) -> Result<bool, DatabaseError> {
    let path = folder.database();
    let look = |path: &Path| folder::look(path).map_err(|error| DatabaseError::system(path, &error));
    if look(&folder.repairing())?.is_some() {
        return Err(DatabaseError::damaged(&path, "a repair of it is under way or was cut off"));
    }
    let Some(found) = look(&path)? else {
        // Left alone by its database, it would be taken for part of the next one.
        if look(&beside(&path, "-wal"))?.is_some_and(|wal| wal.len() > 0) {
            return Err(DatabaseError::damaged(&path, "it is missing, and its write-ahead file is still there"));
        }
        return Ok(false);
    };
    if !found.is_file() {
        return Err(DatabaseError::damaged(&path, "it is not a regular file"));
    }
    if found.len() == 0 {
        return Err(DatabaseError::damaged(&path, "it is empty"));
    }
    folder::make_private(&path, &found).map_err(|error| DatabaseError::system(&path, &error))?;
    Ok(true)
}

/// Makes an empty journal under another name; [`publish`] gives it its own.
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

/// Closes what [`make`] made, which is complete by now, and makes it the journal.
pub(crate) fn publish(folder: &Folder, connection: Connection) -> Result<(), DatabaseError> {
    let (unfinished, path) = (folder.unfinished(), folder.database());
    // Into the one file, and in so many words: closing would do so too, but keep silent if it fails.
    let complete = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    match complete {
        Ok(0) => {}
        Ok(_) => return Err(DatabaseError::damaged(&unfinished, "somebody else has it open")),
        Err(error) => return Err(DatabaseError::sqlite(&unfinished, &error)),
    }
    connection.close().map_err(|(_, error)| DatabaseError::sqlite(&unfinished, &error))?;
    let renamed = folder::rename(&unfinished, &path).and_then(|()| folder.sync());
    renamed.map_err(|error| DatabaseError::system(&path, &error))
}

fn create(folder: &Folder) -> Result<(), DatabaseError> {
    publish(folder, make(folder)?)
}

/// Opens a file that nothing is known about yet: nothing is written to it, not even when it is closed.
pub(crate) fn connect(path: &Path, access: OpenFlags) -> Result<Connection, DatabaseError> {
    let set_up = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, schema::flags(access))?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Otherwise a statement is planned anew for every value that is bound to it, which took a quarter of a decision's time.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // For those short moments in which SQLite needs a file for itself.
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        Ok(connection)
    };
    set_up().map_err(|error| DatabaseError::sqlite(path, &error))
}

/// Reads what a file says about itself.
pub(crate) fn identify(connection: &Connection) -> rusqlite::Result<Identity> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if number("application_id")? != schema::APPLICATION {
        return Ok(Identity::Foreign);
    }
    Ok(Identity::Version(number("user_version")?))
}

fn known_version(connection: &Connection, path: &Path) -> Result<i64, OpenJournalError> {
    let known = schema::VERSION;
    match identify(connection).map_err(|error| DatabaseError::sqlite(path, &error))? {
        Identity::Foreign => Err(OpenJournalError::Foreign { path: path.to_owned() }),
        Identity::Version(version) if version > known => {
            Err(OpenJournalError::Newer { path: path.to_owned(), version, known })
        }
        Identity::Version(version) if version < 1 => {
            Err(DatabaseError::damaged(path, format!("it has the version {version}")).into())
        }
        Identity::Version(version) => Ok(version),
    }
}
