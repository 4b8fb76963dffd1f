//! Tables and settings of the database.

use rusqlite::{Connection, OpenFlags};

/// "SaSo". Distinguishes journals from other SQLite files.
pub(crate) const APPLICATION_ID: i64 = 0x5361_536f;
/// Format number that this version reads and writes. It rises with every change of the tables and of the persisted
/// names in event bodies.
pub(crate) const FORMAT: i64 = 3;
/// Measured: appending 1 MB takes half the time that it takes with 4 kB pages; a single event takes no longer.
const PAGE_BYTES: i64 = 16384;

/// Tables of the format. `blobs_by_hash` has all columns of a blob but its content, so lookups, sizes and the search
/// for unreferenced blobs never read contents. The writer keeps hashes unique, and [`crate::Reader::check`] verifies
/// it.
pub(crate) const TABLES: &str = "
CREATE TABLE events (
    number INTEGER PRIMARY KEY, version INTEGER NOT NULL, time INTEGER NOT NULL, checksum INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE TABLE keys (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE event_keys (
    key INTEGER NOT NULL, event INTEGER NOT NULL, PRIMARY KEY (key, event)
) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY, hash BLOB NOT NULL, encoding INTEGER NOT NULL, raw_size INTEGER NOT NULL,
    stored_size INTEGER NOT NULL, content BLOB NOT NULL
) STRICT;
CREATE INDEX blobs_by_hash ON blobs (hash, encoding, raw_size, stored_size);
CREATE INDEX blobs_uncompressed ON blobs (id) WHERE encoding = 0;
CREATE TABLE blob_references (
    event INTEGER NOT NULL, blob INTEGER NOT NULL, PRIMARY KEY (event, blob)
) STRICT, WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE losses (numbers_used INTEGER NOT NULL, events_lost INTEGER NOT NULL) STRICT;
";

/// Returns the flags of every connection. The caller locks, and no journal file may be a link.
pub(crate) fn flags(access: OpenFlags) -> OpenFlags {
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW
}

/// Creates the tables in an empty file.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    // Lets the file shrink without a full rewrite.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; COMMIT;"
    ))
}

/// Sets the options of a writing connection.
pub(crate) fn tune(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // 32 MB. Appending then seldom has to checkpoint; `compact` does so when there is time.
    connection.pragma_update(None, "wal_autocheckpoint", 2048)?;
    connection.pragma_update(None, "journal_size_limit", 32 << 20)?;
    connection.pragma_update(None, "cache_size", -16384)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}
