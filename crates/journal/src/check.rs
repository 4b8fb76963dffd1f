//! Integrity check of the whole journal.

use std::fmt;

use rusqlite::Connection;
use sayso_review::ContentHash;

use crate::blob::BlobEncoding;
use crate::event::from_sql;
use crate::read::{ReadJournalError, Reader, read_event_row};

/// Result of [`Reader::check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Number of intact events.
    pub events: u64,
    /// Number of intact blobs.
    pub blobs: u64,
    pub problems: Vec<Damage>,
}

/// Damage to a part of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The checksum of the event with this number does not match.
    Event(u64),
    /// The blob's bytes do not have its hash.
    Blob(ContentHash),
    /// Number of references to missing events or blobs, and of duplicate hashes.
    Dangling(u64),
    /// Damaged pages, in SQLite's words.
    Structure(String),
}

impl fmt::Display for Damage {
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
    /// Reads the whole journal and lists the damage. Returns an error if the file cannot be read at all.
    pub fn check(&self) -> Result<CheckReport, ReadJournalError> {
        let mut checked = CheckReport::default();
        let parts = [structure, events, blobs, references];
        for part in parts {
            match part(&self.connection, &mut checked) {
                Ok(()) => {}
                Err(error) => match self.sqlite(&error) {
                    crate::DatabaseError::Damaged { reason, .. } => checked.problems.push(Damage::Structure(reason)),
                    other => return Err(other.into()),
                },
            }
        }
        Ok(checked)
    }
}

fn structure(connection: &Connection, checked: &mut CheckReport) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if text != "ok" {
            checked.problems.push(Damage::Structure(text));
        }
    }
    Ok(())
}

fn events(connection: &Connection, checked: &mut CheckReport) -> rusqlite::Result<()> {
    let mut scratch = Vec::new();
    let mut statement =
        connection.prepare("SELECT number, version, time, checksum, body FROM events ORDER BY number")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (event, whole) = read_event_row(row, &mut scratch)?;
        if whole {
            checked.events += 1;
        } else {
            checked.problems.push(Damage::Event(event.number));
        }
    }
    Ok(())
}

/// Reads a blob's hash, and its bytes if they have that hash.
pub(crate) fn read_blob_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(ContentHash, Option<Vec<u8>>)> {
    let hash = ContentHash::from_bytes(row.get("hash")?);
    let (encoding, raw_size): (i64, i64) = (row.get("encoding")?, row.get("raw_size")?);
    let stored: Vec<u8> = row.get("content")?;
    let bytes =
        BlobEncoding::from_code(encoding).and_then(|encoding| encoding.decode(stored, from_sql(raw_size) as usize));
    Ok((hash, bytes.filter(|bytes| ContentHash::of(bytes) == hash)))
}

fn blobs(connection: &Connection, checked: &mut CheckReport) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("SELECT hash, encoding, raw_size, content FROM blobs ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        match read_blob_row(row)? {
            (_, Some(_)) => checked.blobs += 1,
            (hash, None) => checked.problems.push(Damage::Blob(hash)),
        }
    }
    Ok(())
}

fn references(connection: &Connection, checked: &mut CheckReport) -> rusqlite::Result<()> {
    let sql = "SELECT (SELECT count(*) FROM blob_references
            WHERE event NOT IN (SELECT number FROM events) OR blob NOT IN (SELECT id FROM blobs))
        + (SELECT count(*) FROM event_keys
            WHERE event NOT IN (SELECT number FROM events) OR key NOT IN (SELECT id FROM keys))
        + (SELECT count(*) - count(DISTINCT hash) FROM blobs)";
    let count = from_sql(connection.query_row(sql, [], |row| row.get(0))?);
    if count > 0 {
        checked.problems.push(Damage::Dangling(count));
    }
    Ok(())
}
