//! What happened, for good, and the bytes it was about.
//!
//! A journal is a folder with one SQLite file: numbered events, which are opaque versioned bytes here, found by number or by
//! any of their keys, and blobs, which are found by the hash of their contents. A batch of both is one transaction and is on
//! disk when [`Journal::append`] returns, so what was announced after it survives a kill and a power cut, and a batch is
//! never there in part.
//!
//! One process writes ([`Journal`]) and holds a lock for as long as it does; any number read meanwhile ([`Reader`]).
//!
//! Storing must not be felt while an agent waits. So a small blob is compressed at once by something quick, a large one is
//! stored as it is and compressed by [`Journal::compact`] when there is time; a blob that is there costs a look-up. Events
//! carry a seal and blobs are their hash, so damage is reported and never handed out.
//!
//! History stays readable for good, contents do not: [`Journal::collect`] drops the blobs of old events and keeps the events.
//!
//! # Limits
//!
//! - A batch that was on disk in the write-ahead file only, and was garbled *there*, cannot be told from one that was cut off
//!   by a crash: it is gone, whole. Anything older is found by [`Reader::check`].
//! - If the first page is gone, where SQLite keeps what the others mean, a repair saves nothing; the file is still kept.
//! - Blobs and bodies have at most [`MOST_BYTES`] bytes.
//! - A network file system without working locks is no place for a journal.

mod append;
mod blob;
mod check;
mod collect;
mod event;
mod folder;
mod lock;
mod migrate;
mod open;
mod place;
mod read;
mod repair;
mod reserve;
mod salvage;
mod schema;
mod trouble;

pub use append::{AppendError, Batch};
pub use blob::MOST_BYTES;
pub use check::{Checked, Problem};
pub use collect::{Collected, Compacted, MaintainError, Retention};
pub use event::{NewEvent, StoredEvent};
pub use open::{Journal, OpenJournalError, Options};
pub use read::{ReadJournalError, Reader, Sizes};
pub use repair::{RepairError, Repaired, repair};
pub use trouble::DatabaseError;
