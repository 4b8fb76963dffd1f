//! Events before and after they are stored.

use sayso_review::ContentHash;

/// Event for [`crate::Journal::append`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewEvent {
    /// Version of the body's format.
    pub version: u32,
    /// In milliseconds since 1970.
    pub time: i64,
    /// Lookup keys, for instance `change:12`.
    pub keys: Vec<String>,
    /// Blobs that are kept as long as the event refers to them.
    pub blobs: Vec<ContentHash>,
    /// Opaque to the journal.
    pub body: Vec<u8>,
}

/// Event as read from the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Position in the journal, from 1.
    pub number: u64,
    /// Version of the body's format.
    pub version: u32,
    /// In milliseconds since 1970.
    pub time: i64,
    /// Opaque to the journal.
    pub body: Vec<u8>,
}

/// Computes the checksum of an event's columns, which detects damage inside a body. `scratch` is a reused buffer.
pub(crate) fn checksum(number: u64, version: u32, time: i64, body: &[u8], scratch: &mut Vec<u8>) -> i64 {
    scratch.clear();
    scratch.extend_from_slice(&number.to_le_bytes());
    scratch.extend_from_slice(&version.to_le_bytes());
    scratch.extend_from_slice(&time.to_le_bytes());
    scratch.extend_from_slice(body);
    let hash = ContentHash::of(scratch);
    let (eight, _) = hash.as_bytes().as_chunks::<8>();
    i64::from_le_bytes(eight[0])
}

/// Converts a number to SQLite's range, which no journal exceeds.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number from SQLite. The journal writes no negative number.
pub(crate) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
