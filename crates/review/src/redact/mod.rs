//! Redacts credentials in bodies before they are recorded, found by JSON key or by an issuer's prefix.
//!
//! A masked span keeps its length and position, so the surrounding JSON, offsets and deltas between bodies stay valid.
//! The issuer's prefix stays readable (`ghp_****`). A masked span is detected again, so that a body derived from a
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

/// The byte that replaces each byte of a credential.
pub const FILLER: u8 = b'*';

/// A credential in a body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Redaction {
    /// Offset of the first byte in the body.
    pub start: usize,
    pub size: usize,
    /// Key of the credential, such as `authorization_token`, or its kind, such as `github_token`.
    pub name: String,
}

impl Redaction {
    /// Returns the offset after the last byte.
    pub fn end(&self) -> usize {
        self.start + self.size
    }

    pub fn range(&self) -> Range<usize> {
        self.start..self.end()
    }
}

/// Merges overlapping redactions. The list is sorted by offset.
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

/// Returns a body with its credentials masked.
pub fn masked(bytes: &[u8]) -> Cow<'_, [u8]> {
    let found = find(bytes);
    if found.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut bytes = bytes.to_vec();
    mask(&mut bytes, &found);
    Cow::Owned(bytes)
}

/// Returns a text with its credentials masked.
pub fn masked_text(text: &str) -> Cow<'_, str> {
    match masked(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Spans begin and end at ASCII characters, so the result is valid UTF-8.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests;
