//! A body as it was taken in: what it shares with an earlier one, and the rest.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use sayso_gate::Rope;

use super::bodies::Body;

/// A body. Of one that begins like an earlier one, only the rest is copied: reading a megabyte twice takes longer than passing it on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// The earlier one, and how many bytes of it this one begins with.
    pub(super) earlier: Option<(Arc<Body>, usize)>,
    pub(super) rest: Bytes,
}

impl From<Bytes> for Taken {
    fn from(rest: Bytes) -> Self {
        Self { earlier: None, rest }
    }
}

impl Taken {
    /// One that is compared with an earlier one now.
    pub(super) fn after(earlier: Arc<Body>, bytes: &Bytes) -> Self {
        let mut following = Following::new(earlier);
        let shared = following.go_on(bytes);
        following.end(bytes.slice(shared..))
    }

    /// How many bytes are in memory for its sake.
    pub(crate) fn own(&self) -> usize {
        self.rest.len()
    }

    /// What it begins with, up to so many bytes.
    pub(super) fn beginning(&self, most: usize) -> Cow<'_, [u8]> {
        let Some((earlier, shared)) = &self.earlier else {
            return Cow::Borrowed(&self.rest[..self.rest.len().min(most)]);
        };
        let mut beginning = earlier.bytes.bytes(0..most.min(*shared));
        if beginning.len() < most {
            let more = most - beginning.len();
            beginning.to_mut().extend_from_slice(&self.rest[..self.rest.len().min(more)]);
        }
        beginning
    }

    /// Something else made of it.
    pub(crate) fn map(self, change: impl FnOnce(Bytes) -> Bytes) -> Self {
        change(self.whole()).into()
    }

    /// All of it in one piece.
    pub(crate) fn whole(&self) -> Bytes {
        let Some((earlier, shared)) = &self.earlier else { return self.rest.clone() };
        let mut whole: Rope = earlier.bytes.slice(0..*shared);
        whole.push(self.rest.clone());
        whole.whole()
    }
}

/// Compares a body with an earlier one while it comes.
#[derive(Debug)]
pub(crate) struct Following {
    earlier: Arc<Body>,
    shared: usize,
    /// The part that comes next, and how far in it.
    part: usize,
    at: usize,
}

impl Following {
    pub(crate) fn new(earlier: Arc<Body>) -> Self {
        Self { earlier, shared: 0, part: 0, at: 0 }
    }

    /// How many of the next bytes are those of the earlier one. With fewer than all, the two go different ways from there on.
    pub(crate) fn go_on(&mut self, bytes: &[u8]) -> usize {
        let mut same = 0;
        while same < bytes.len() {
            let Some(part) = self.earlier.bytes.parts().get(self.part) else { break };
            let left = &part[self.at..];
            let next = &bytes[same..];
            let here = alike(left, next);
            same += here;
            self.at += here;
            if here < left.len() {
                break;
            }
            (self.part, self.at) = (self.part + 1, 0);
        }
        self.shared += same;
        same
    }

    /// The body, with the rest of it.
    pub(crate) fn end(self, rest: Bytes) -> Taken {
        Taken { earlier: Some((self.earlier, self.shared)), rest }
    }

    /// How many bytes were the same so far.
    pub(crate) fn shared(&self) -> usize {
        self.shared
    }
}

/// Compared in one go: first much, at the speed of memory, then less, and at last each byte.
pub(super) const STEPS: [usize; 4] = [4 << 10, 256, 16, 1];

/// How many bytes two have in common at their beginning.
pub(super) fn alike(one: &[u8], other: &[u8]) -> usize {
    let most = one.len().min(other.len());
    STEPS.iter().fold(0, |same, step| {
        let (one, other) = (one[same..most].chunks_exact(*step), other[same..most].chunks_exact(*step));
        same + step * one.zip(other).take_while(|(one, other)| one == other).count()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_common_are_counted() {
        for (one, other, front) in [("abc", "abd", 2), ("abc", "abcdef", 3), ("", "a", 0), ("xbc", "ybc", 0)] {
            assert_eq!(alike(one.as_bytes(), other.as_bytes()), front);
        }
        let long: Vec<u8> = (0..3 * STEPS[0] + 333).map(|at| (at / 7) as u8).collect();
        assert_eq!((alike(&long, &long), alike(&long, &long[..=STEPS[0]])), (long.len(), STEPS[0] + 1));
    }

    #[test]
    fn what_comes_in_any_chunks_is_taken_in_whole() {
        let earlier: Vec<u8> = (0..50).collect();
        let mut parts = Rope::default();
        for part in earlier.chunks(7) {
            parts.push(Bytes::copy_from_slice(part));
        }
        let known = Arc::new(Body::new(parts));
        for shared in 0..=earlier.len() {
            for chunk in 1..20 {
                let body = [&earlier[..shared], b"something else, and more of it"].concat();
                let (mut following, mut rest) = (Following::new(Arc::clone(&known)), Vec::new());
                for chunk in body.chunks(chunk) {
                    let same = if rest.is_empty() { following.go_on(chunk) } else { 0 };
                    rest.extend_from_slice(&chunk[same..]);
                }
                assert_eq!(following.shared(), shared);
                let taken = following.end(rest.into());
                assert_eq!(taken.whole(), body);
                for most in [0, 1, 10, 49, 50, 51, 200] {
                    assert_eq!(*taken.beginning(most), body[..body.len().min(most)]);
                }
            }
        }
    }
}
