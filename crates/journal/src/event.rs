//! Events as they come and as they are kept.

use sayso_review::ContentHash;

/// An event to be appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewEvent {
    /// The version of the body's form.
    pub version: u32,
    /// When it happened, in milliseconds since the epoch.
    pub time: i64,
    /// What it can be found by, for instance `change:12`.
    pub keys: Vec<String>,
    /// The blobs it refers to, which are kept for as long as it does.
    pub blobs: Vec<ContentHash>,
    /// What happened; opaque here.
    pub body: Vec<u8>,
}

/// An event from the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its place in the journal, from 1.
    pub number: u64,
    /// The version of the body's form.
    pub version: u32,
    /// When it happened, in milliseconds since the epoch.
    pub time: i64,
    /// What happened; opaque here.
    pub body: Vec<u8>,
}

/// A check sum over everything that an event is, so that damage inside a body does not pass for a body.
pub(crate) fn seal(number: u64, version: u32, time: i64, body: &[u8], scratch: &mut Vec<u8>) -> i64 {
    scratch.clear();
    scratch.extend_from_slice(&number.to_le_bytes());
    scratch.extend_from_slice(&version.to_le_bytes());
    scratch.extend_from_slice(&time.to_le_bytes());
    scratch.extend_from_slice(body);
    let hash = ContentHash::of(scratch);
    let (eight, _) = hash.as_bytes().as_chunks::<8>();
    i64::from_le_bytes(eight[0])
}

/// A number as SQLite keeps it. Those beyond its range are beyond any journal's too.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number as SQLite kept it. We never write a negative one.
pub(crate) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
