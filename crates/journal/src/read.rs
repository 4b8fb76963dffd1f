//! Reading, which never waits for the writer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};
use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

use crate::blob::Form;
use crate::event::{StoredEvent, from_sql, seal, to_sql};
use crate::folder::beside;
use crate::trouble::DatabaseError;

/// The reading side of a journal.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    path: PathBuf,
    known: Known,
}

/// Numbers that need not be asked for.
#[derive(Debug)]
enum Known {
    /// None: somebody else may be writing.
    Nothing,
    /// Those that were read or written before, for nobody but this connection writes.
    Ours(RefCell<Numbers>),
}

/// The last number, and counters with their values, as far as they are known.
#[derive(Debug, Default)]
struct Numbers {
    last: Option<u64>,
    counters: BTreeMap<String, u64>,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Events.
    pub events: u64,
    /// Blobs.
    pub blobs: u64,
    /// The blobs' bytes as they were handed in.
    pub raw_bytes: u64,
    /// The blobs' bytes as they are stored.
    pub stored_bytes: u64,
    /// The bytes that [`crate::Journal::compact`] has not seen yet.
    pub waiting_bytes: u64,
    /// The bytes of the file and of its write-ahead log.
    pub file_bytes: u64,
}

/// Why something could not be read.
#[derive(Debug, Error)]
pub enum ReadJournalError {
    /// A blob's bytes are not the ones it is named after.
    #[error("the blob {hash} in the journal `{}` is damaged", path.display())]
    DamagedBlob {
        /// Its name.
        hash: ContentHash,
        /// The journal's file.
        path: PathBuf,
    },
    /// An event is not as it was written.
    #[error("event {number} in the journal `{}` is damaged", path.display())]
    DamagedEvent {
        /// Its number.
        number: u64,
        /// The journal's file.
        path: PathBuf,
    },
    /// The file does not serve.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl ReadJournalError {
    /// The kind that programs see.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::DamagedBlob { .. } | Self::DamagedEvent { .. } => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::DamagedBlob { path, .. } | Self::DamagedEvent { path, .. } => DatabaseError::damaged(path, "").hint(),
            Self::Database(error) => error.hint(),
        }
    }
}

/// An event as it lies there, and whether its seal is whole.
pub(crate) fn event_of(row: &Row<'_>, scratch: &mut Vec<u8>) -> rusqlite::Result<(StoredEvent, bool)> {
    let event =
        StoredEvent { number: from_sql(row.get(0)?), version: row.get(1)?, time: row.get(2)?, body: row.get(4)? };
    let whole = seal(event.number, event.version, event.time, &event.body, scratch) == row.get::<_, i64>(3)?;
    Ok((event, whole))
}

impl Reader {
    pub(crate) fn new(connection: Connection, path: PathBuf) -> Self {
        Self { connection, path, known: Known::Nothing }
    }

    /// The reading side of whoever writes, and is alone in that.
    pub(crate) fn of_the_writer(self) -> Self {
        Self { known: Known::Ours(RefCell::default()), ..self }
    }

    /// Takes up what was written, now that it is on disk.
    pub(crate) fn wrote(&self, last: u64, counters: &[(&str, u64)]) {
        if let Known::Ours(numbers) = &self.known {
            let mut numbers = numbers.borrow_mut();
            numbers.last = Some(last);
            numbers.counters.extend(counters.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        }
    }

    /// Asks again from now on: something failed, and it is the file that says how far it came.
    pub(crate) fn forget(&self) {
        if let Known::Ours(numbers) = &self.known {
            numbers.take();
        }
    }

    /// The journal's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn sqlite(&self, error: &rusqlite::Error) -> DatabaseError {
        DatabaseError::sqlite(&self.path, error)
    }

    /// Reads a few pages of what is read most, so that a file that is cut off or garbled at its start fails when opened.
    pub(crate) fn try_out(&self) -> Result<(), DatabaseError> {
        let tables = ["events", "keys", "event_keys", "blobs", "blob_references", "counters", "losses"];
        for table in tables {
            let sql = format!("SELECT 1 FROM {table} LIMIT 1");
            let first = self.connection.query_row(&sql, [], |_| Ok(())).optional();
            match first {
                Ok(_) => {}
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown) => {
                    return Err(DatabaseError::damaged(&self.path, format!("it has no table `{table}`")));
                }
                Err(error) => return Err(self.sqlite(&error)),
            }
        }
        self.used().map(drop).map_err(|error| self.sqlite(&error))
    }

    fn events_of(&self, sql: &str, params: impl Params) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sqlite = |error: rusqlite::Error| self.sqlite(&error);
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        let mut rows = statement.query(params).map_err(sqlite)?;
        let (mut events, mut scratch) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next().map_err(sqlite)? {
            let (event, whole) = event_of(row, &mut scratch).map_err(sqlite)?;
            if !whole {
                return Err(ReadJournalError::DamagedEvent { number: event.number, path: self.path.clone() });
            }
            events.push(event);
        }
        Ok(events)
    }

    /// The event of this number; none if it was never given, or was lost and repaired away.
    pub fn event(&self, number: u64) -> Result<Option<StoredEvent>, ReadJournalError> {
        let sql = "SELECT number, version, time, seal, body FROM events WHERE number = ?1";
        Ok(self.events_of(sql, [to_sql(number)])?.pop())
    }

    /// The events after a number, oldest first.
    pub fn events(&self, after: u64, limit: usize) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sql = "SELECT number, version, time, seal, body FROM events WHERE number > ?1 ORDER BY number LIMIT ?2";
        self.events_of(sql, params![to_sql(after), to_sql(limit as u64)])
    }

    /// The events before a number, or the last ones, newest first.
    pub fn latest(&self, before: Option<u64>, limit: usize) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sql =
            "SELECT number, version, time, seal, body FROM events WHERE number < ?1 ORDER BY number DESC LIMIT ?2";
        self.events_of(sql, params![before.map_or(i64::MAX, to_sql), to_sql(limit as u64)])
    }

    /// The events with a key after a number, oldest first.
    pub fn events_with(&self, key: &str, after: u64, limit: usize) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sql = "SELECT number, version, time, seal, body FROM event_keys JOIN events ON number = event
            WHERE key = (SELECT id FROM keys WHERE text = ?1) AND event > ?2 ORDER BY event LIMIT ?3";
        self.events_of(sql, params![key, to_sql(after), to_sql(limit as u64)])
    }

    /// The events with a key before a number, or the last ones, newest first.
    pub fn latest_with(
        &self,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sql = "SELECT number, version, time, seal, body FROM event_keys JOIN events ON number = event
            WHERE key = (SELECT id FROM keys WHERE text = ?1) AND event < ?2 ORDER BY event DESC LIMIT ?3";
        self.events_of(sql, params![key, before.map_or(i64::MAX, to_sql), to_sql(limit as u64)])
    }

    /// The last number that was given to an event, or 0.
    pub fn last_number(&self) -> Result<u64, ReadJournalError> {
        let Known::Ours(numbers) = &self.known else { return Ok(self.used().map_err(|error| self.sqlite(&error))?) };
        if let Some(last) = numbers.borrow().last {
            return Ok(last);
        }
        let last = self.used().map_err(|error| self.sqlite(&error))?;
        numbers.borrow_mut().last = Some(last);
        Ok(last)
    }

    pub(crate) fn used(&self) -> rusqlite::Result<u64> {
        let sql = "SELECT max(coalesce((SELECT max(number) FROM events), 0),
            coalesce((SELECT max(numbers_used) FROM losses), 0))";
        self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).map(from_sql)
    }

    /// A counter's value; 0 if it was never set.
    pub fn counter(&self, name: &str) -> Result<u64, ReadJournalError> {
        let Known::Ours(numbers) = &self.known else { return self.read_counter(name) };
        if let Some(value) = numbers.borrow().counters.get(name) {
            return Ok(*value);
        }
        let value = self.read_counter(name)?;
        numbers.borrow_mut().counters.insert(name.to_owned(), value);
        Ok(value)
    }

    fn read_counter(&self, name: &str) -> Result<u64, ReadJournalError> {
        let read = || -> rusqlite::Result<Option<i64>> {
            let mut statement = self.connection.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
            statement.query_row([name], |row| row.get(0)).optional()
        };
        Ok(from_sql(read().map_err(|error| self.sqlite(&error))?.unwrap_or(0)))
    }

    /// The bytes of this name, if they are there; never others.
    pub fn blob(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, ReadJournalError> {
        let read = || -> rusqlite::Result<Option<(i64, i64, Vec<u8>)>> {
            let sql = "SELECT form, raw_size, content FROM blobs WHERE hash = ?1";
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_row([hash.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        };
        let Some((form, raw_size, stored)) = read().map_err(|error| self.sqlite(&error))? else { return Ok(None) };
        let bytes = Form::from_code(form).and_then(|form| form.decode(stored, from_sql(raw_size) as usize));
        match bytes {
            Some(bytes) if ContentHash::of(&bytes) == hash => Ok(Some(bytes)),
            _ => Err(ReadJournalError::DamagedBlob { hash, path: self.path.clone() }),
        }
    }

    /// Whether there is a blob of this name.
    pub fn has_blob(&self, hash: ContentHash) -> Result<bool, ReadJournalError> {
        let read = || -> rusqlite::Result<bool> {
            let mut statement = self.connection.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?;
            statement.exists([hash.as_bytes()])
        };
        Ok(read().map_err(|error| self.sqlite(&error))?)
    }

    /// Adds up what there is.
    pub fn sizes(&self) -> Result<Sizes, ReadJournalError> {
        let read = || -> rusqlite::Result<Sizes> {
            let lost: i64 =
                self.connection.query_row("SELECT coalesce(max(events_lost), 0) FROM losses", [], |row| row.get(0))?;
            let events = self.used()?.saturating_sub(from_sql(lost));
            let sql = "SELECT count(*), coalesce(sum(raw_size), 0), coalesce(sum(stored_size), 0),
                coalesce(sum(stored_size) FILTER (WHERE form = 0), 0) FROM blobs INDEXED BY blobs_by_hash";
            self.connection.query_row(sql, [], |row| {
                Ok(Sizes {
                    events,
                    blobs: from_sql(row.get(0)?),
                    raw_bytes: from_sql(row.get(1)?),
                    stored_bytes: from_sql(row.get(2)?),
                    waiting_bytes: from_sql(row.get(3)?),
                    file_bytes: self.disk_bytes()?,
                })
            })
        };
        Ok(read().map_err(|error| self.sqlite(&error))?)
    }

    /// The bytes of the file and of its write-ahead log.
    pub(crate) fn disk_bytes(&self) -> rusqlite::Result<u64> {
        #[allow(clippy::disallowed_methods, reason = "the journal owns its folder")]
        let log = std::fs::metadata(beside(self.path(), "-wal")).map_or(0, |file| file.len());
        Ok(self.file_bytes()? + log)
    }

    pub(crate) fn file_bytes(&self) -> rusqlite::Result<u64> {
        let pages: i64 = self.connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let size: i64 = self.connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        Ok(from_sql(pages * size))
    }
}
