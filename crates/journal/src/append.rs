//! Writing: a batch in one transaction.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension as _, params};
use sayso_review::{ContentHash, ErrorKind};
use thiserror::Error;

use crate::blob::{MOST_BYTES, Press};
use crate::event::{NewEvent, from_sql, seal, to_sql};
use crate::open::Journal;
use crate::trouble::DatabaseError;

/// What is to be appended: all of it, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Batch<'b> {
    /// Contents to be stored, each with its hash, which is taken on trust. One that no event refers to goes with the next
    /// [`Journal::collect`].
    pub blobs: Vec<(ContentHash, &'b [u8])>,
    /// Events, in order.
    pub events: Vec<NewEvent>,
    /// Counters and their new values. A counter never goes back.
    pub counters: Vec<(&'b str, u64)>,
}

/// Why a batch was not appended. The journal is as it was.
#[derive(Debug, Error)]
pub enum AppendError {
    /// A blob or a body has more bytes than can be stored.
    #[error("{what} has {size} bytes, more than the {MOST_BYTES} that the journal stores")]
    TooLarge {
        /// Which one.
        what: String,
        /// Its size.
        size: usize,
    },
    /// An event refers to a blob that is neither in the batch nor in the journal.
    #[error("an event refers to the blob {0}, which is not stored")]
    MissingBlob(ContentHash),
    /// A counter would go back, and numbers would be given twice.
    #[error("the counter `{name}` is at {value} and cannot go back to {asked}")]
    CounterBack {
        /// Its name.
        name: String,
        /// Where it is.
        value: u64,
        /// Where it was to go.
        asked: u64,
    },
    /// A file of the journal was removed or replaced since it was opened.
    #[error("`{}` was removed or replaced while it was in use, so that nothing can be recorded", path.display())]
    Displaced {
        /// The file.
        path: PathBuf,
    },
    /// The file does not serve.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl AppendError {
    /// The kind that programs see.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } => ErrorKind::InvalidArgs,
            Self::MissingBlob(_) | Self::CounterBack { .. } => ErrorKind::Internal,
            Self::Displaced { .. } => ErrorKind::Unavailable,
            Self::Database(error) => error.kind(),
        }
    }

    /// What to do about it, where there is something to do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::TooLarge { .. } | Self::MissingBlob(_) | Self::CounterBack { .. } => None,
            Self::Displaced { .. } => {
                Some("nothing was done; run the command again, which starts with the folder as it is now")
            }
            Self::Database(error) => error.hint(),
        }
    }
}

/// What ends a transaction: SQLite, or one of our own rules.
enum Stop {
    Sqlite(rusqlite::Error),
    Rule(AppendError),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl Journal {
    /// Appends a batch and says which numbers its events got. It is on disk when this returns; if it fails, nothing is.
    pub fn append(&mut self, batch: &Batch<'_>) -> Result<Range<u64>, AppendError> {
        check_sizes(batch)?;
        if let Some(path) = self.displaced() {
            return Err(AppendError::Displaced { path: path.clone() });
        }
        let path = self.reader.path().to_owned();
        let first = self.reader.last_number().map_err(|error| into_database(error, &path))? + 1;
        let write = |journal: &mut Self| -> Result<(), Stop> {
            let Self { reader, press, .. } = journal;
            let connection = &reader.connection;
            let transaction = Written::begin(connection)?;
            let stored = store_blobs(connection, &batch.blobs, press)?;
            store_events(connection, first, &batch.events, stored)?;
            set_counters(connection, &batch.counters)?;
            Ok(transaction.commit()?)
        };
        if let Err(stop) = write(self) {
            self.reader.forget();
            return Err(match stop {
                Stop::Sqlite(error) => DatabaseError::sqlite(&path, &error).into(),
                Stop::Rule(error) => error,
            });
        }
        let next = first + batch.events.len() as u64;
        self.reader.wrote(next - 1, &batch.counters);
        Ok(first..next)
    }
}

/// A transaction that is taken back unless it is committed, by statements that are understood once and not each time.
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
        // A commit that went well leaves none open; nor do some of those that failed.
        if !self.0.is_autocommit() {
            // Should this fail too, beginning the next one does, and nothing is taken for written.
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
        debug_assert_eq!(ContentHash::of(bytes), *hash, "a blob comes under its own name");
        if bytes.len() > MOST_BYTES {
            return Err(AppendError::TooLarge { what: format!("the blob {hash}"), size: bytes.len() });
        }
    }
    match batch.events.iter().find(|event| event.body.len() > MOST_BYTES) {
        Some(event) => Err(AppendError::TooLarge { what: "an event".to_owned(), size: event.body.len() }),
        None => Ok(()),
    }
}

/// A blob that is there: its row, and whether its content really is.
fn find(connection: &Connection, hash: ContentHash) -> rusqlite::Result<Option<(i64, bool)>> {
    // The length of a content is known without reading it.
    let sql = "SELECT id, length(content) = stored_size FROM blobs WHERE hash = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([hash.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

fn store_blobs(
    connection: &Connection,
    blobs: &[(ContentHash, &[u8])],
    press: &mut Press,
) -> Result<HashMap<ContentHash, i64>, Stop> {
    let mut stored = HashMap::with_capacity(blobs.len());
    let mut insert = connection.prepare_cached(
        "INSERT INTO blobs (id, hash, form, raw_size, stored_size, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
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
        let (form, content) = press.at_once(bytes);
        let (raw, kept) = (to_sql(bytes.len() as u64), to_sql(content.len() as u64));
        let id = insert.insert(params![id, hash.as_bytes(), form.code(), raw, kept, &*content])?;
        stored.insert(*hash, id);
    }
    Ok(stored)
}

fn store_events(
    connection: &Connection,
    first: u64,
    events: &[NewEvent],
    mut stored: HashMap<ContentHash, i64>,
) -> Result<(), Stop> {
    let mut scratch = Vec::new();
    // Events of a batch have much in common.
    let mut known: HashMap<&str, i64> = HashMap::new();
    let mut insert = connection.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut find_key = connection.prepare_cached("SELECT id FROM keys WHERE text = ?1")?;
    let mut new_key = connection.prepare_cached("INSERT INTO keys (text) VALUES (?1)")?;
    let mut add_key = connection.prepare_cached("INSERT OR IGNORE INTO event_keys VALUES (?1, ?2)")?;
    let mut refer = connection.prepare_cached("INSERT OR IGNORE INTO blob_references VALUES (?1, ?2)")?;
    for (number, event) in (first..).zip(events) {
        let seal = seal(number, event.version, event.time, &event.body, &mut scratch);
        let number = to_sql(number);
        insert.execute(params![number, event.version, event.time, seal, event.body])?;
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
                    _ => return Err(Stop::Rule(AppendError::MissingBlob(*hash))),
                },
            };
            refer.execute([number, id])?;
        }
    }
    Ok(())
}

fn set_counters(connection: &Connection, counters: &[(&str, u64)]) -> Result<(), Stop> {
    for (name, asked) in counters {
        let sql = "INSERT INTO counters VALUES (?1, ?2)
            ON CONFLICT DO UPDATE SET value = excluded.value WHERE excluded.value >= value";
        if connection.prepare_cached(sql)?.execute(params![name, to_sql(*asked)])? == 0 {
            let mut value = connection.prepare_cached("SELECT value FROM counters WHERE name = ?1")?;
            let value = from_sql(value.query_row([name], |row| row.get(0))?);
            return Err(Stop::Rule(AppendError::CounterBack { name: (*name).to_owned(), value, asked: *asked }));
        }
    }
    Ok(())
}
