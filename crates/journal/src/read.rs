//! Reading, which never waits for the writer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};
use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

use crate::blob::BlobEncoding;
use crate::database_error::DatabaseError;
use crate::event::{StoredEvent, checksum, from_sql, to_sql};
use crate::folder::with_suffix;

/// Read access to a journal.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    path: PathBuf,
    numbers: NumberCache,
}

/// Cache of the last event number and of counters.
#[derive(Debug)]
enum NumberCache {
    /// Another connection may write.
    Disabled,
    /// Only this connection writes, so values that were read or written stay valid.
    Enabled(RefCell<CachedNumbers>),
}

#[derive(Debug, Default)]
struct CachedNumbers {
    last: Option<u64>,
    counters: BTreeMap<String, u64>,
}

/// Sizes of a journal's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalSizes {
    pub events: u64,
    pub blobs: u64,
    /// Uncompressed size of the blobs, in bytes.
    pub raw_bytes: u64,
    /// Stored size of the blobs, in bytes.
    pub stored_bytes: u64,
    /// Stored size of the blobs that [`crate::Journal::compact`] has not processed.
    pub uncompressed_bytes: u64,
    /// Size of the file and of its write-ahead log, in bytes.
    pub file_bytes: u64,
}

/// Reason why reading failed.
#[derive(Debug, Error)]
pub enum ReadJournalError {
    /// The blob's bytes do not have its hash.
    #[error("the blob {hash} in the journal `{}` is damaged", path.display())]
    DamagedBlob { hash: ContentHash, path: PathBuf },
    /// The event's checksum does not match.
    #[error("event {number} in the journal `{}` is damaged", path.display())]
    DamagedEvent { number: u64, path: PathBuf },
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl ReadJournalError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::DamagedBlob { .. } | Self::DamagedEvent { .. } => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::DamagedBlob { path, .. } | Self::DamagedEvent { path, .. } => DatabaseError::damaged(path, "").hint(),
            Self::Database(error) => error.hint(),
        }
    }
}

/// Reads an event, and `true` if its checksum matches.
pub(crate) fn read_event_row(row: &Row<'_>, scratch: &mut Vec<u8>) -> rusqlite::Result<(StoredEvent, bool)> {
    let event =
        StoredEvent { number: from_sql(row.get(0)?), version: row.get(1)?, time: row.get(2)?, body: row.get(4)? };
    let whole = checksum(event.number, event.version, event.time, &event.body, scratch) == row.get::<_, i64>(3)?;
    Ok((event, whole))
}

impl Reader {
    pub(crate) fn new(connection: Connection, path: PathBuf) -> Self {
        Self { connection, path, numbers: NumberCache::Disabled }
    }

    /// Enables the number cache. The caller must hold the writer's lock.
    pub(crate) fn with_number_cache(self) -> Self {
        Self { numbers: NumberCache::Enabled(RefCell::default()), ..self }
    }

    /// Caches numbers that a committed transaction wrote.
    pub(crate) fn cache_written(&self, last: u64, counters: &[(&str, u64)]) {
        if let NumberCache::Enabled(numbers) = &self.numbers {
            let mut numbers = numbers.borrow_mut();
            numbers.last = Some(last);
            numbers.counters.extend(counters.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        }
    }

    /// Clears the cache after a failed write, since the file may be ahead of it or behind it.
    pub(crate) fn clear_number_cache(&self) {
        if let NumberCache::Enabled(numbers) = &self.numbers {
            numbers.take();
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn sqlite(&self, error: &rusqlite::Error) -> DatabaseError {
        DatabaseError::sqlite(&self.path, error)
    }

    /// Reads the first row of each table, so that a truncated or garbled file fails on opening.
    pub(crate) fn probe(&self) -> Result<(), DatabaseError> {
        let tables = ["events", "keys", "event_keys", "blobs", "blob_references", "counters", "losses"];
        for table in tables {
            let sql = format!("SELECT 1 FROM {table} LIMIT 1");
            let first = self.connection.query_row(&sql, [], |_| Ok(())).optional();
            match first {
                Ok(_) => {}
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::Unknown) => {
                    return Err(DatabaseError::damaged(&self.path, format!("table `{table}` is missing")));
                }
                Err(error) => return Err(self.sqlite(&error)),
            }
        }
        self.last_used_number().map(drop).map_err(|error| self.sqlite(&error))
    }

    fn query_events(&self, sql: &str, params: impl Params) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sqlite = |error: rusqlite::Error| self.sqlite(&error);
        let mut statement = self.connection.prepare_cached(sql).map_err(sqlite)?;
        let mut rows = statement.query(params).map_err(sqlite)?;
        let (mut events, mut scratch) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next().map_err(sqlite)? {
            let (event, whole) = read_event_row(row, &mut scratch).map_err(sqlite)?;
            if !whole {
                return Err(ReadJournalError::DamagedEvent { number: event.number, path: self.path.clone() });
            }
            events.push(event);
        }
        Ok(events)
    }

    /// Returns the event with this number; `None` if it was never written, or was lost in a repair.
    pub fn event(&self, number: u64) -> Result<Option<StoredEvent>, ReadJournalError> {
        let sql = "SELECT number, version, time, checksum, body FROM events WHERE number = ?1";
        Ok(self.query_events(sql, [to_sql(number)])?.pop())
    }

    /// Returns the events after a number, oldest first.
    pub fn events(&self, after: u64, limit: usize) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sql = "SELECT number, version, time, checksum, body FROM events WHERE number > ?1 ORDER BY number LIMIT ?2";
        self.query_events(sql, params![to_sql(after), to_sql(limit as u64)])
    }

    /// Returns the events before a number, or the last events, newest first.
    pub fn latest(&self, before: Option<u64>, limit: usize) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sql =
            "SELECT number, version, time, checksum, body FROM events WHERE number < ?1 ORDER BY number DESC LIMIT ?2";
        self.query_events(sql, params![before.map_or(i64::MAX, to_sql), to_sql(limit as u64)])
    }

    /// Returns the events with a key after a number, oldest first.
    pub fn events_with(&self, key: &str, after: u64, limit: usize) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sql = "SELECT number, version, time, checksum, body FROM event_keys JOIN events ON number = event
            WHERE key = (SELECT id FROM keys WHERE text = ?1) AND event > ?2 ORDER BY event LIMIT ?3";
        self.query_events(sql, params![key, to_sql(after), to_sql(limit as u64)])
    }

    /// Returns the events with a key before a number, or the last events with it, newest first.
    pub fn latest_with(
        &self,
        key: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ReadJournalError> {
        let sql = "SELECT number, version, time, checksum, body FROM event_keys JOIN events ON number = event
            WHERE key = (SELECT id FROM keys WHERE text = ?1) AND event < ?2 ORDER BY event DESC LIMIT ?3";
        self.query_events(sql, params![key, before.map_or(i64::MAX, to_sql), to_sql(limit as u64)])
    }

    /// Returns the number of the last event, or 0. Lost events count.
    pub fn last_number(&self) -> Result<u64, ReadJournalError> {
        let NumberCache::Enabled(numbers) = &self.numbers else {
            return Ok(self.last_used_number().map_err(|error| self.sqlite(&error))?);
        };
        if let Some(last) = numbers.borrow().last {
            return Ok(last);
        }
        let last = self.last_used_number().map_err(|error| self.sqlite(&error))?;
        numbers.borrow_mut().last = Some(last);
        Ok(last)
    }

    pub(crate) fn last_used_number(&self) -> rusqlite::Result<u64> {
        let sql = "SELECT max(coalesce((SELECT max(number) FROM events), 0),
            coalesce((SELECT max(numbers_used) FROM losses), 0))";
        self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).map(from_sql)
    }

    /// Returns the value of a counter, or 0.
    pub fn counter(&self, name: &str) -> Result<u64, ReadJournalError> {
        let NumberCache::Enabled(numbers) = &self.numbers else { return self.read_counter(name) };
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

    /// Returns the content with this hash, if it is stored. Damaged content is an error.
    pub fn blob(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, ReadJournalError> {
        let read = || -> rusqlite::Result<Option<(i64, i64, Vec<u8>)>> {
            let sql = "SELECT encoding, raw_size, content FROM blobs WHERE hash = ?1";
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_row([hash.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        };
        let Some((encoding, raw_size, stored)) = read().map_err(|error| self.sqlite(&error))? else { return Ok(None) };
        let bytes =
            BlobEncoding::from_code(encoding).and_then(|encoding| encoding.decode(stored, from_sql(raw_size) as usize));
        match bytes {
            Some(bytes) if ContentHash::of(&bytes) == hash => Ok(Some(bytes)),
            _ => Err(ReadJournalError::DamagedBlob { hash, path: self.path.clone() }),
        }
    }

    /// `true` if a blob with this hash is stored. Does not read its content.
    pub fn has_blob(&self, hash: ContentHash) -> Result<bool, ReadJournalError> {
        let read = || -> rusqlite::Result<bool> {
            let mut statement = self.connection.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?;
            statement.exists([hash.as_bytes()])
        };
        Ok(read().map_err(|error| self.sqlite(&error))?)
    }

    /// Computes the sizes of the content.
    pub fn sizes(&self) -> Result<JournalSizes, ReadJournalError> {
        let read = || -> rusqlite::Result<JournalSizes> {
            let lost: i64 =
                self.connection.query_row("SELECT coalesce(max(events_lost), 0) FROM losses", [], |row| row.get(0))?;
            let events = self.last_used_number()?.saturating_sub(from_sql(lost));
            let sql = "SELECT count(*), coalesce(sum(raw_size), 0), coalesce(sum(stored_size), 0),
                coalesce(sum(stored_size) FILTER (WHERE encoding = 0), 0) FROM blobs INDEXED BY blobs_by_hash";
            self.connection.query_row(sql, [], |row| {
                Ok(JournalSizes {
                    events,
                    blobs: from_sql(row.get(0)?),
                    raw_bytes: from_sql(row.get(1)?),
                    stored_bytes: from_sql(row.get(2)?),
                    uncompressed_bytes: from_sql(row.get(3)?),
                    file_bytes: self.disk_bytes()?,
                })
            })
        };
        Ok(read().map_err(|error| self.sqlite(&error))?)
    }

    /// Size of the file and of its write-ahead log, in bytes.
    pub(crate) fn disk_bytes(&self) -> rusqlite::Result<u64> {
        #[allow(clippy::disallowed_methods, reason = "the journal owns its folder")]
        let log = std::fs::metadata(with_suffix(self.path(), "-wal")).map_or(0, |file| file.len());
        Ok(self.file_bytes()? + log)
    }

    pub(crate) fn file_bytes(&self) -> rusqlite::Result<u64> {
        let pages: i64 = self.connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        let size: i64 = self.connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        Ok(from_sql(pages * size))
    }
}
