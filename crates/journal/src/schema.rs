//! The tables.

use rusqlite::{Connection, OpenFlags};

/// "SaSo": what tells our files from other SQLite files.
pub(crate) const APPLICATION: i64 = 0x5361_536f;
/// The version that this program writes.
pub(crate) const VERSION: i64 = 2;
/// Measured: a megabyte costs half of what it does with 4 kB pages, a single event no more.
const PAGE_BYTES: i64 = 16384;

/// Version 2. `blobs_by_hash` holds everything about a blob but its content, so that looking one up, adding up sizes and
/// finding what nobody refers to never reads contents; that it is unique is the writer's care and [`crate::Reader::check`]'s.
pub(crate) const TABLES: &str = "
CREATE TABLE events (
    number INTEGER PRIMARY KEY, version INTEGER NOT NULL, time INTEGER NOT NULL, seal INTEGER NOT NULL, body BLOB NOT NULL
) STRICT;
CREATE TABLE keys (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE event_keys (
    key INTEGER NOT NULL, event INTEGER NOT NULL, PRIMARY KEY (key, event)
) STRICT, WITHOUT ROWID;
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY, hash BLOB NOT NULL, form INTEGER NOT NULL, raw_size INTEGER NOT NULL,
    stored_size INTEGER NOT NULL, content BLOB NOT NULL
) STRICT;
CREATE INDEX blobs_by_hash ON blobs (hash, form, raw_size, stored_size);
CREATE INDEX blobs_waiting ON blobs (id) WHERE form = 0;
CREATE TABLE blob_references (
    event INTEGER NOT NULL, blob INTEGER NOT NULL, PRIMARY KEY (event, blob)
) STRICT, WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE losses (numbers_used INTEGER NOT NULL, events_lost INTEGER NOT NULL) STRICT;
";

/// How every connection is opened: the caller locks, and no name of ours is a link.
pub(crate) fn flags(access: OpenFlags) -> OpenFlags {
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW
}

/// Fills an empty file.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    // So that space can be given back without writing everything anew.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
    ))
}

/// What a writer needs on top of the defaults.
pub(crate) fn tune(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // 32 MB: a batch seldom has to copy those before it to the main file, for `compact` does so when there is time.
    connection.pragma_update(None, "wal_autocheckpoint", 2048)?;
    connection.pragma_update(None, "journal_size_limit", 32 << 20)?;
    connection.pragma_update(None, "cache_size", -16384)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}
