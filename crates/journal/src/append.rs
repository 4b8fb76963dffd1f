//! Appending: one batch, one transaction.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension as _, params};
use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

use crate::blob::{BlobCompressor, MAX_BLOB_BYTES};
use crate::database_error::DatabaseError;
use crate::event::{NewEvent, checksum, from_sql, to_sql};
use crate::open::Journal;

/// Events, blobs and counters that are appended together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch<'b> {
    /// Contents with their hashes, which the journal does not verify. A blob that no event refers to is deleted by the
    /// next [`Journal::collect`].
    pub blobs: Vec<(ContentHash, &'b [u8])>,
    pub events: Vec<NewEvent>,
    /// Counters with their new values. A counter never decreases.
    pub counters: Vec<(&'b str, u64)>,
}

/// Reason why a batch was rejected. The journal is unchanged.
#[derive(Debug, Error)]
pub enum AppendError {
    /// A blob or an event body is larger than [`MAX_BLOB_BYTES`].
    #[error("{what} has {size} bytes, more than the {MAX_BLOB_BYTES} that the journal stores")]
    TooLarge {
        /// Name of the blob or event, for the message.
        what: String,
        /// In bytes.
        size: usize,
    },
    /// The batch has an event that refers to a blob which is stored neither in the batch nor in the journal.
    #[error("an event refers to the blob {0}, which is not stored")]
    MissingBlob(ContentHash),
    /// The batch would decrease a counter, so that its numbers would be used twice.
    #[error("the counter `{name}` is at {value} and cannot be set back to {asked}")]
    CounterBack { name: String, value: u64, asked: u64 },
    /// Another program removed or replaced a file of the journal after it was opened.
    #[error("`{}` was removed or replaced while it was in use, so sayso can record no more", path.display())]
    Displaced { path: PathBuf },
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl AppendError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } => ErrorKind::InvalidArgs,
            Self::MissingBlob(_) | Self::CounterBack { .. } => ErrorKind::Internal,
            Self::Displaced { .. } => ErrorKind::Unavailable,
            Self::Database(error) => error.kind(),
        }
    }

    /// Returns advice for the user, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TooLarge { .. } | Self::MissingBlob(_) | Self::CounterBack { .. } => None,
            Self::Displaced { .. } => Some("run the command again; it uses the folder as it is now"),
            Self::Database(error) => error.hint(),
        }
    }
}

/// Reason to roll back a transaction.
enum AppendAbort {
    Sqlite(rusqlite::Error),
    Rule(AppendError),
}

impl From<rusqlite::Error> for AppendAbort {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Journal {
    /// Appends a batch and returns the numbers of its events. On return the batch is on disk; on error no part of it
    /// is.
    pub fn append(&mut self, batch: &Batch<'_>) -> Result<Range<u64>, AppendError> {
        check_sizes(batch)?;
        if let Some(path) = self.displaced() {
            return Err(AppendError::Displaced { path: path.clone() });
        }
        let path = self.reader.path().to_owned();
        let first = self.reader.last_number().map_err(|error| into_database(error, &path))? + 1;
        let write = |journal: &mut Self| -> Result<(), AppendAbort> {
            let Self { reader, compressor, .. } = journal;
            let connection = &reader.connection;
            let transaction = Written::begin(connection)?;
            let stored = store_blobs(connection, &batch.blobs, compressor)?;
            store_events(connection, first, &batch.events, stored)?;
            set_counters(connection, &batch.counters)?;
            Ok(transaction.commit()?)
        };
        if let Err(stop) = write(self) {
            self.reader.clear_number_cache();
            return Err(match stop {
                AppendAbort::Sqlite(error) => DatabaseError::sqlite(&path, &error).into(),
                AppendAbort::Rule(error) => error,
            });
        }
        let next = first + batch.events.len() as u64;
        self.reader.cache_written(next - 1, &batch.counters);
        Ok(first..next)
    }
}

/// Transaction that rolls back on drop unless it was committed. Uses cached statements, unlike the one of `rusqlite`.
struct Written<'c>(&'c Connection);

impl<'c> Written<'c> {
    fn begin(connection: &'c Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    fn commit(self) -> rusqlite::Result<()> {
        self.0.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        // After a commit there is no open transaction; nor is there one after some failed commits.
        if !self.0.is_autocommit() {
            // If the rollback fails as well, the next `BEGIN` fails, so no later batch can be mistaken for written.
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

fn into_database(error: crate::ReadJournalError, path: &std::path::Path) -> DatabaseError {
    match error {
        crate::ReadJournalError::Database(error) => error,
        other => DatabaseError::damaged(path, other.to_string()),
    }
}

fn check_sizes(batch: &Batch<'_>) -> Result<(), AppendError> {
    for (hash, bytes) in &batch.blobs {
        debug_assert_eq!(ContentHash::of(bytes), *hash, "the hash belongs to other bytes");
        if bytes.len() > MAX_BLOB_BYTES {
            return Err(AppendError::TooLarge { what: format!("the blob {hash}"), size: bytes.len() });
        }
    }
    match batch.events.iter().find(|event| event.body.len() > MAX_BLOB_BYTES) {
        Some(event) => Err(AppendError::TooLarge { what: "an event".to_owned(), size: event.body.len() }),
        None => Ok(()),
    }
}

/// Returns a blob's row id, and `true` if its content has the recorded size.
fn find(connection: &Connection, hash: ContentHash) -> rusqlite::Result<Option<(i64, bool)>> {
    // SQLite reads the length from the record header, without the content.
    let sql = "SELECT id, length(content) = stored_size FROM blobs WHERE hash = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([hash.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn store_blobs(
    connection: &Connection,
    blobs: &[(ContentHash, &[u8])],
    compressor: &mut BlobCompressor,
) -> Result<HashMap<ContentHash, i64>, AppendAbort> {
    let mut stored = HashMap::with_capacity(blobs.len());
    let mut insert = connection.prepare_cached(
        "INSERT INTO blobs (id, hash, encoding, raw_size, stored_size, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (hash, bytes) in blobs {
        if stored.contains_key(hash) {
            continue;
        }
        let id = match find(connection, *hash)? {
            Some((id, true)) => {
                stored.insert(*hash, id);
                continue;
            }
            Some((id, false)) => {
                connection.execute("DELETE FROM blobs WHERE id = ?1", [id])?;
                Some(id)
            }
            None => None,
        };
        let (encoding, content) = compressor.compress_inline(bytes);
        let (raw, kept) = (to_sql(bytes.len() as u64), to_sql(content.len() as u64));
        let id = insert.insert(params![id, hash.as_bytes(), encoding.code(), raw, kept, &*content])?;
        stored.insert(*hash, id);
    }
    Ok(stored)
}

fn store_events(
    connection: &Connection,
    first: u64,
    events: &[NewEvent],
    mut stored: HashMap<ContentHash, i64>,
) -> Result<(), AppendAbort> {
    let mut scratch = Vec::new();
    // Events of one batch share most keys.
    let mut known: HashMap<&str, i64> = HashMap::new();
    let mut insert = connection.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut find_key = connection.prepare_cached("SELECT id FROM keys WHERE text = ?1")?;
    let mut new_key = connection.prepare_cached("INSERT INTO keys (text) VALUES (?1)")?;
    let mut add_key = connection.prepare_cached("INSERT OR IGNORE INTO event_keys VALUES (?1, ?2)")?;
    let mut refer = connection.prepare_cached("INSERT OR IGNORE INTO blob_references VALUES (?1, ?2)")?;
    for (number, event) in (first..).zip(events) {
        let checksum = checksum(number, event.version, event.time, &event.body, &mut scratch);
        let number = to_sql(number);
        insert.execute(params![number, event.version, event.time, checksum, event.body])?;
        for key in &event.keys {
            let id = match known.get(&**key) {
                Some(id) => *id,
                None => match find_key.query_row([key], |row| row.get(0)).optional()? {
                    Some(id) => id,
                    None => new_key.insert([key])?,
                },
            };
            known.insert(key, id);
            add_key.execute([id, number])?;
        }
        for hash in &event.blobs {
            let id = match stored.get(hash) {
                Some(id) => *id,
                None => match find(connection, *hash)? {
                    Some((id, true)) => *stored.entry(*hash).or_insert(id),
                    _ => return Err(AppendAbort::Rule(AppendError::MissingBlob(*hash))),
                },
            };
            refer.execute([number, id])?;
        }
    }
    Ok(())
}

fn set_counters(connection: &Connection, counters: &[(&str, u64)]) -> Result<(), AppendAbort> {
    for (name, asked) in counters {
        let sql = "INSERT INTO counters VALUES (?1, ?2)
            ON CONFLICT DO UPDATE SET value = excluded.value WHERE excluded.value >= value";
        if connection.prepare_cached(sql)?.execute(params![name, to_sql(*asked)])? == 0 {
            let mut value = connection.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
            let value = from_sql(value.query_row([name], |row| row.get(0))?);
            return Err(AppendAbort::Rule(AppendError::CounterBack { name: (*name).to_owned(), value, asked: *asked }));
        }
    }
    Ok(())
}
