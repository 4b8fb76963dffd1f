//! Byte rope of shared parts.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use sayso_review::redact::{FILLER, Redaction};

static FILLERS: [u8; 256] = [FILLER; 256];

/// Bytes in parts. Bodies share their common parts in memory.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    parts: Vec<Bytes>,
    len: usize,
}

impl From<Bytes> for Rope {
    fn from(bytes: Bytes) -> Self {
        let mut rope = Self::default();
        rope.push(bytes);
        rope
    }
}

impl Rope {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the parts in order. No part is empty.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.len += bytes.len();
            self.parts.push(bytes);
        }
    }

    /// Appends another rope.
    pub fn append(&mut self, other: Self) {
        self.len += other.len;
        self.parts.extend(other.parts);
    }

    /// Returns the parts that overlap a range.
    fn parts_in(&self, range: Range<usize>) -> impl Iterator<Item = (&Bytes, Range<usize>)> {
        let mut start = 0;
        self.parts.iter().filter_map(move |part| {
            let (from, to) = (range.start.max(start), range.end.min(start + part.len()));
            let own = (from < to).then(|| (part, from - start..to - start));
            start += part.len();
            own
        })
    }

    /// Returns a range without copying it.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let mut slice = Self::default();
        for (part, range) in self.parts_in(range) {
            slice.push(part.slice(range));
        }
        slice
    }

    /// Returns a range as one slice. Copies it only if it spans several parts.
    pub fn bytes(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let mut within = self.parts_in(range).map(|(part, range)| &part[range]);
        let first = within.next().unwrap_or_default();
        let mut whole = Cow::Borrowed(first);
        for part in within {
            whole.to_mut().extend_from_slice(part);
        }
        whole
    }

    /// Returns a copy with fillers instead of some spans, which are sorted and do not overlap. The rest is shared.
    #[must_use]
    pub fn masked(&self, redactions: &[Redaction]) -> Self {
        let (mut masked, mut at) = (Self::default(), 0);
        for redaction in redactions {
            masked.append(self.slice(at..redaction.start));
            let mut left = redaction.size;
            while left > 0 {
                let size = left.min(FILLERS.len());
                masked.push(Bytes::from_static(&FILLERS[..size]));
                left -= size;
            }
            at = redaction.end();
        }
        masked.append(self.slice(at..self.len));
        masked
    }

    /// Copies the bytes of some spans, so that they keep no other memory alive.
    pub fn copy_spans(&self, redactions: &[Redaction]) -> Vec<Bytes> {
        redactions.iter().map(|one| Bytes::copy_from_slice(&self.bytes(one.range()))).collect()
    }

    /// Returns the bytes in one piece.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match self.parts.as_slice() {
            [] => Bytes::new(),
            [only] => only.clone(),
            parts => parts.concat().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_equal_ranges_of_whole() {
        let text: Vec<u8> = (0..12).collect();
        for cuts in [vec![], vec![5], vec![0, 12], vec![1, 2, 7], (0..12).collect()] {
            let mut rope = Rope::default();
            let mut start = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                rope.push(Bytes::copy_from_slice(&text[start..cut]));
                start = cut;
            }
            assert_eq!(rope.len(), text.len());
            assert_eq!(rope.to_bytes(), text);
            for from in 0..=text.len() {
                for to in from..=text.len() {
                    assert_eq!(*rope.bytes(from..to), text[from..to]);
                    let slice = rope.slice(from..to);
                    assert_eq!((slice.len(), &slice.to_bytes()[..]), (to - from, &text[from..to]));
                    assert!(slice.parts().iter().all(|part| !part.is_empty()));
                    let mut joined = rope.slice(0..from);
                    joined.append(rope.slice(from..to));
                    assert_eq!(joined.to_bytes(), text[..to]);
                }
            }
        }
    }
}
