//! The full check, which reads everything.

use std::fmt;

use rusqlite::Connection;
use sayso_review::ContentHash;

use crate::blob::Form;
use crate::event::from_sql;
use crate::read::{ReadJournalError, Reader, event_of};

/// What a full check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Events that were read and are whole.
    pub events: u64,
    /// Blobs that were read and are what they are named after.
    pub blobs: u64,
    /// Everything else.
    pub problems: Vec<Problem>,
}

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An event's seal is broken.
    Event(u64),
    /// A blob's bytes are not the ones it is named after.
    Blob(ContentHash),
    /// This many references lead to events or blobs that are not there, or names are given twice.
    Dangling(u64),
    /// The file's pages do not fit together, in SQLite's words.
    Structure(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(number) => write!(f, "event {number} is damaged"),
            Self::Blob(hash) => write!(f, "the blob {hash} is damaged"),
            Self::Dangling(count) => write!(f, "{count} references lead nowhere"),
            Self::Structure(text) => write!(f, "the file's pages do not fit together: {text}"),
        }
    }
}

impl Reader {
    /// Reads everything there is, and lists what is damaged. An error means that not even that could be found out.
    pub fn check(&self) -> Result<Checked, ReadJournalError> {
        let mut checked = Checked::default();
        let parts = [structure, events, blobs, references];
        for part in parts {
            match part(&self.connection, &mut checked) {
                Ok(()) => {}
                Err(error) => match self.sqlite(&error) {
                    crate::DatabaseError::Damaged { reason, .. } => checked.problems.push(Problem::Structure(reason)),
                    other => return Err(other.into()),
                },
            }
        }
        Ok(checked)
    }
}

fn structure(connection: &Connection, checked: &mut Checked) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            checked.problems.push(Problem::Structure(text));
        }
    }
    Ok(())
}

fn events(connection: &Connection, checked: &mut Checked) -> rusqlite::Result<()> {
    let mut scratch = Vec::new();
    let mut statement = connection.prepare("SELECT number, version, time, seal, body FROM events ORDER BY number")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (event, whole) = event_of(row, &mut scratch)?;
        if whole {
            checked.events += 1;
        } else {
            checked.problems.push(Problem::Event(event.number));
        }
    }
    Ok(())
}

/// A blob as it lies there: its name, and its bytes if they are the ones it is named after.
pub(crate) fn blob_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<(ContentHash, Option<Vec<u8>>)> {
    let hash = ContentHash::from_bytes(row.get("hash")?);
    let (form, raw_size): (i64, i64) = (row.get("form")?, row.get("raw_size")?);
    let stored: Vec<u8> = row.get("content")?;
    let bytes = Form::from_code(form).and_then(|form| form.decode(stored, from_sql(raw_size) as usize));
    Ok((hash, bytes.filter(|bytes| ContentHash::of(bytes) == hash)))
}

fn blobs(connection: &Connection, checked: &mut Checked) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT hash, form, raw_size, content FROM blobs ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        match blob_of(row)? {
            (_, Some(_)) => checked.blobs += 1,
            (hash, None) => checked.problems.push(Problem::Blob(hash)),
        }
    }
    Ok(())
}

fn references(connection: &Connection, checked: &mut Checked) -> rusqlite::Result<()> {
    let sql = "SELECT (SELECT count(*) FROM blob_references
            WHERE event NOT IN (SELECT number FROM events) OR blob NOT IN (SELECT id FROM blobs))
        + (SELECT count(*) FROM event_keys
            WHERE event NOT IN (SELECT number FROM events) OR key NOT IN (SELECT id FROM keys))
        + (SELECT count(*) - count(DISTINCT hash) FROM blobs)";
    let count = from_sql(connection.query_row(sql, [], |row| row.get(0))?);
    if count > 0 {
        checked.problems.push(Problem::Dangling(count));
    }
    Ok(())
}
