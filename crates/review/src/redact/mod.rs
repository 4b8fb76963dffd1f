//! Credentials in bodies: found by the key that they are under or by an issuer's shape, and masked before anything is recorded.
//!
//! A masked span keeps its length and its place, so that the JSON around it, the offsets and the deltas between bodies stay valid.
//! The issuer's prefix stays readable (`ghp_****`). A span that is masked already is found again: a body that was made from a
//! recorded one is known to lack its credentials.

mod delta;
mod key;
mod scan;
mod search;
mod stream;

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use delta::{SharedEnds, Spans};
pub use key::is_credential_key;
pub use scan::find;
pub use stream::find_in_answer;

/// The byte that takes the place of each byte of a credential.
pub const FILLER: u8 = b'*';

/// A credential in a body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Redaction {
    /// Offset of its first byte in the body.
    pub start: usize,
    /// Length in bytes.
    pub size: usize,
    /// The key that it is under, such as `authorization_token`, or its shape, such as `github_token`.
    pub name: String,
}

impl Redaction {
    /// Offset after its last byte.
    pub fn end(&self) -> usize {
        self.start + self.size
    }

    /// The bytes that it covers.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end()
    }
}

/// Joins redactions that overlap. The list is sorted by offset; the result has no overlaps.
pub fn merged(found: &[Redaction]) -> Vec<Redaction> {
    let mut merged: Vec<Redaction> = Vec::with_capacity(found.len());
    for one in found {
        match merged.last_mut() {
            Some(last) if one.start < last.end() => last.size = last.end().max(one.end()) - last.start,
            _ => merged.push(one.clone()),
        }
    }
    merged
}

/// Overwrites the redacted spans of a body.
pub fn mask(bytes: &mut [u8], redactions: &[Redaction]) {
    for one in redactions {
        bytes[one.range()].fill(FILLER);
    }
}

/// A body without its credentials.
pub fn masked(bytes: &[u8]) -> Cow<'_, [u8]> {
    let found = find(bytes);
    if found.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut bytes = bytes.to_vec();
    mask(&mut bytes, &found);
    Cow::Owned(bytes)
}

/// A text without its credentials.
pub fn masked_text(text: &str) -> Cow<'_, str> {
    match masked(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Spans begin and end beside ASCII characters.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests;
