//! The credentials of a body that shares its beginning and its end with an earlier one: only what lies between is scanned.

use std::borrow::Cow;
use std::ops::Range;

use super::scan::{CONTEXT, REACH};
use super::{Redaction, find, merged};

/// Bytes that are read before the place from which spans count: whatever makes a span one is within them.
const LOOKBACK: usize = 2 * CONTEXT;

/// The credentials of a body, as they were found: sorted by offset, overlapping where one lies in another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    found: Vec<Redaction>,
}

/// Bytes that two bodies have in common. The shorter of the two has at least `front + back` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedEnds {
    /// At their beginning.
    pub front: usize,
    /// At their end.
    pub back: usize,
}

impl Spans {
    /// Scans a whole body.
    pub fn of(bytes: &[u8]) -> Self {
        Self { found: find(bytes) }
    }

    /// The spans of a body of `len` bytes that follows one of `earlier` bytes, whose spans these are. Equal to a scan of all of it.
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

    /// Where the scan of a body with so many bytes of the front begins: before it, nothing depends on what is new.
    fn scan_start(&self, front: usize) -> usize {
        let mut from = front.saturating_sub(REACH + CONTEXT);
        for span in self.found.iter().rev().filter(|span| span.start < front) {
            if span.start < from && span.end() > from {
                from = span.start;
            }
        }
        from
    }

    /// The spans without overlaps.
    pub fn merged(&self) -> Vec<Redaction> {
        merged(&self.found)
    }
}

/// The spans that begin within a range of a body.
fn scanned<'b>(range: Range<usize>, len: usize, read: impl Fn(Range<usize>) -> Cow<'b, [u8]>) -> Vec<Redaction> {
    let start = range.start.saturating_sub(LOOKBACK);
    let mut end = len.min(range.end + REACH + CONTEXT);
    loop {
        let mut found = find(&read(start..end));
        for span in &mut found {
            span.start += start;
        }
        found.retain(|span| range.contains(&span.start));
        // A value that goes on beyond what was read.
        if end < len && found.iter().any(|span| span.end() == end) {
            end = len;
            continue;
        }
        return found;
    }
}
