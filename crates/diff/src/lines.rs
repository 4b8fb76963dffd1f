//! Line boundaries, and fast searches for them.
//!
//! A line ends with the code unit `\n`, which it includes; a preceding `\r` belongs to the line. The last line may lack
//! its break. In UTF-16 the code unit has two bytes at an even offset, so U+0A0D and U+0D0A never break a line.

use memchr::{memchr, memchr_iter, memrchr};

/// The code unit that ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineBreak {
    Byte,
    Utf16Le,
    Utf16Be,
}

impl LineBreak {
    /// Returns the end of the line that starts at `start`.
    #[inline]
    pub(crate) fn line_end(self, bytes: &[u8], start: usize) -> usize {
        match self {
            Self::Byte => memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1),
            Self::Utf16Le | Self::Utf16Be => memchr_iter(b'\n', &bytes[start..])
                .find_map(|at| self.wide_break(bytes, start + at))
                .unwrap_or(bytes.len()),
        }
    }

    /// Returns the start of the line that ends at `end`, which must not be 0.
    #[inline]
    pub(crate) fn line_start(self, bytes: &[u8], end: usize) -> usize {
        match self {
            Self::Byte => memrchr(b'\n', &bytes[..end - 1]).map_or(0, |at| at + 1),
            Self::Utf16Le | Self::Utf16Be => memchr::memrchr_iter(b'\n', &bytes[..end])
                .find_map(|at| self.wide_break(bytes, at).filter(|&after| after < end))
                .unwrap_or(0),
        }
    }

    /// `true` if the line that ends at `end` has a break; the last line may end without one.
    #[inline]
    pub(crate) fn breaks_before(self, bytes: &[u8], end: usize) -> bool {
        match self {
            Self::Byte => end > 0 && bytes[end - 1] == b'\n',
            Self::Utf16Le => end >= 2 && end.is_multiple_of(2) && bytes[end - 2..end] == [b'\n', 0],
            Self::Utf16Be => end >= 2 && end.is_multiple_of(2) && bytes[end - 2..end] == [0, b'\n'],
        }
    }

    /// Counts the lines in `bytes[start..end]`, where both are line boundaries.
    pub(crate) fn count(self, bytes: &[u8], start: usize, end: usize) -> usize {
        if start == end {
            return 0;
        }
        let breaks = match self {
            Self::Byte => memchr_iter(b'\n', &bytes[start..end]).count(),
            Self::Utf16Le | Self::Utf16Be => {
                memchr_iter(b'\n', &bytes[start..end]).filter(|at| self.wide_break(bytes, start + at).is_some()).count()
            }
        };
        breaks + usize::from(!self.breaks_before(bytes, end))
    }

    /// Returns a line without its break.
    pub(crate) fn without_break(self, line: &[u8]) -> &[u8] {
        let width = if self == Self::Byte { 1 } else { 2 };
        if self.breaks_before(line, line.len()) { &line[..line.len() - width] } else { line }
    }

    /// Returns the offset after a UTF-16 break whose byte `0A` is at `at`.
    fn wide_break(self, bytes: &[u8], at: usize) -> Option<usize> {
        match self {
            Self::Byte => Some(at + 1),
            Self::Utf16Le => (at.is_multiple_of(2) && bytes.get(at + 1) == Some(&0)).then_some(at + 2),
            Self::Utf16Be => (!at.is_multiple_of(2) && bytes[at - 1] == 0).then_some(at + 1),
        }
    }
}

/// Returns the length of the common prefix, in bytes.
#[inline]
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let (a, b) = (&a[..length], &b[..length]);
    // Most calls end within the first words. Long runs are compared with the speed of `memcmp`.
    let mut at = word_prefix(&a[..length.min(64)], &b[..length.min(64)]);
    if at < 64 {
        return at;
    }
    for step in [4096, 256] {
        while at + step <= length && a[at..at + step] == b[at..at + step] {
            at += step;
        }
    }
    at + word_prefix(&a[at..], &b[at..])
}

#[inline]
fn word_prefix(a: &[u8], b: &[u8]) -> usize {
    let ((a_words, a_rest), (b_words, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut at = 0;
    for (a, b) in a_words.iter().zip(b_words) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return at + (difference.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + a_rest.iter().zip(b_rest).take_while(|(a, b)| a == b).count()
}

/// Returns the length of the common suffix, in bytes.
pub(crate) fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let length = a.len().min(b.len());
    let (a, b) = (&a[a.len() - length..], &b[b.len() - length..]);
    let mut left = length;
    for step in [4096, 256, 8] {
        while left >= step && a[left - step..left] == b[left - step..left] {
            left -= step;
        }
    }
    while left > 0 && a[left - 1] == b[left - 1] {
        left -= 1;
    }
    length - left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(kind: LineBreak, bytes: &[u8]) -> Vec<&[u8]> {
        let mut found = Vec::new();
        let mut start = 0;
        while start < bytes.len() {
            let end = kind.line_end(bytes, start);
            assert_eq!(kind.line_start(bytes, end), start, "backwards from {end} in {bytes:?}");
            found.push(&bytes[start..end]);
            start = end;
        }
        assert_eq!(kind.count(bytes, 0, bytes.len()), found.len(), "count of {bytes:?}");
        found
    }

    #[test]
    fn bytes_break_after_line_feed_only() {
        assert_eq!(lines(LineBreak::Byte, b"a\r\nb\rc\n\nd"), [&b"a\r\n"[..], b"b\rc\n", b"\n", b"d"]);
        assert!(lines(LineBreak::Byte, b"").is_empty());
    }

    #[test]
    fn utf16_breaks_on_code_units() {
        // U+0A61 contains the byte 0A, but is not a line feed.
        assert_eq!(lines(LineBreak::Utf16Le, b"\x61\x0a\x0a\x00b\x00"), [&b"\x61\x0a\x0a\x00"[..], b"b\x00"]);
        assert_eq!(lines(LineBreak::Utf16Be, b"\x0a\x61\x00\x0a\x00b"), [&b"\x0a\x61\x00\x0a"[..], b"\x00b"]);
        // 00 0A at an odd offset spans two code units.
        assert_eq!(lines(LineBreak::Utf16Be, b"a\x00\x0ab").len(), 1);
        assert_eq!(lines(LineBreak::Utf16Le, b"a\x00\x0a").len(), 1, "a torn last unit breaks nothing");
    }

    #[test]
    fn common_ends_are_exact_at_every_length() {
        for length in [0, 1, 7, 8, 9, 63, 64, 65, 300, 4095, 4096, 5000, 9000] {
            let a: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            assert_eq!((common_prefix(&a, &a), common_suffix(&a, &a)), (length, length));
            for at in (0..length).step_by(1 + length / 97) {
                let mut b = a.clone();
                b[at] ^= 0x80;
                assert_eq!(common_prefix(&a, &b), at);
                assert_eq!(common_suffix(&a, &b), length - at - 1);
            }
        }
    }
}
