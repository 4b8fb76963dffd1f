//! Finds the credentials of a body that shares its prefix and suffix with an earlier body, by scanning only the
//! difference.

use std::borrow::Cow;
use std::ops::Range;

use super::scan::{CONTEXT, REACH};
use super::{Redaction, find, merged};

/// Number of bytes scanned before the first new byte. Whatever makes a span a credential is within this distance.
const LOOKBACK: usize = 2 * CONTEXT;

/// The credentials found in a body, sorted by offset; nested credentials overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    found: Vec<Redaction>,
}

/// The common prefix and suffix of two bodies. The shorter body has at least `front + back` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedEnds {
    /// Length of the common prefix, in bytes.
    pub front: usize,
    /// Length of the common suffix, in bytes.
    pub back: usize,
}

impl Spans {
    /// Scans a whole body.
    pub fn of(bytes: &[u8]) -> Self {
        Self { found: find(bytes) }
    }

    /// Returns the spans of a body of `len` bytes, given the spans of an `earlier` body. The result equals a full scan.
    #[must_use]
    pub fn after<'b>(
        &self,
        earlier: usize,
        len: usize,
        shared: SharedEnds,
        read: impl Fn(Range<usize>) -> Cow<'b, [u8]>,
    ) -> Self {
        let from = self.scan_start(shared.front);
        let until = len.min(len - shared.back + LOOKBACK);
        let mut found: Vec<_> = self.found.iter().take_while(|span| span.start < from).cloned().collect();
        found.extend(scanned(from..until, len, read));
        for span in self.found.iter().filter(|span| span.start + len >= until + earlier && until < len) {
            found.push(Redaction { start: span.start + len - earlier, ..span.clone() });
        }
        Self { found }
    }

    /// Returns the offset at which the scan must begin, so that no span before it depends on new bytes.
    fn scan_start(&self, front: usize) -> usize {
        let mut from = front.saturating_sub(REACH + CONTEXT);
        for span in self.found.iter().rev().filter(|span| span.start < front) {
            if span.start < from && span.end() > from {
                from = span.start;
            }
        }
        from
    }

    /// Returns the spans without overlaps.
    pub fn merged(&self) -> Vec<Redaction> {
        merged(&self.found)
    }
}

/// Returns the spans that begin within a range of the body.
fn scanned<'b>(range: Range<usize>, len: usize, read: impl Fn(Range<usize>) -> Cow<'b, [u8]>) -> Vec<Redaction> {
    let start = range.start.saturating_sub(LOOKBACK);
    let mut end = len.min(range.end + REACH + CONTEXT);
    loop {
        let mut found = find(&read(start..end));
        for span in &mut found {
            span.start += start;
        }
        found.retain(|span| range.contains(&span.start));
        // The value continues beyond the bytes read so far.
        if end < len && found.iter().any(|span| span.end() == end) {
            end = len;
            continue;
        }
        return found;
    }
}
