//! Event log with content-addressed blobs, on SQLite.
//!
//! A journal is a folder with one SQLite file. Events are numbered and hold opaque, versioned bytes; they are found by
//! number or by any of their keys. Blobs are found by the hash of their content. A batch of events and blobs is one
//! transaction. It is on disk when [`Journal::append`] returns, so it survives a kill and a power failure.
//!
//! One process writes ([`Journal`]) and holds a lock for that time. Any number of processes read meanwhile
//! ([`Reader`]).
//!
//! Appending is fast because an agent waits for it. A small blob is compressed at once with a fast level. A large blob
//! is stored uncompressed until [`Journal::compact`] runs. A blob that is already stored costs one lookup.
//!
//! Events have checksums and blobs have hashes, so damage is reported and damaged data is never returned.
//!
//! Events are kept forever, contents are not: [`Journal::collect`] deletes the blobs of old events and keeps the
//! events.
//!
//! # Limits
//!
//! - If a batch is damaged while it is only in the write-ahead log, it looks like a batch that a crash interrupted, and
//!   is lost. [`Reader::check`] finds all other damage.
//! - If the first page is lost, where SQLite stores the schema, a repair saves nothing. The file is kept.
//! - Blobs and bodies have at most [`MAX_BLOB_BYTES`] bytes.
//! - The folder must not be on a network file system without working locks.

mod append;
mod blob;
mod check;
mod collect;
mod database_error;
mod event;
mod file_identity;
mod folder;
mod lock;
mod open;
mod read;
mod repair;
mod reserve;
mod salvage;
mod schema;

pub use append::{AppendError, Batch};
pub use blob::MAX_BLOB_BYTES;
pub use check::{CheckReport, Damage};
pub use collect::{CollectReport, CompactReport, MaintainError, Retention};
pub use database_error::DatabaseError;
pub use event::{NewEvent, StoredEvent};
pub use open::{Journal, OpenJournalError, Options};
pub use read::{JournalSizes, ReadJournalError, Reader};
pub use repair::{RepairError, RepairReport, repair};
