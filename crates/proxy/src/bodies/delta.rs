//! Delta encoding: a body as the range it shares with a base, plus the bytes it adds.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use sayso_gate::Rope;
use sayso_wire::PrefixScan;

use super::cache::CachedBody;

/// Bytes at the start of a body in which most agents name the model.
const MODEL_PREFIX: usize = 4 << 10;

/// A body, encoded against a base: a common prefix, added bytes, a common suffix. Without a base, all bytes are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyDelta {
    pub(super) base: Option<BaseOverlap>,
    pub(super) added: Bytes,
    /// Position of the model's name, once [`Self::find_model`] has found it.
    pub(super) model: Option<Range<usize>>,
}

/// The ranges that a body shares with its base.
#[derive(Clone, Debug)]
pub(super) struct BaseOverlap {
    pub(super) base: Arc<CachedBody>,
    /// Length of the common prefix.
    pub(super) prefix: usize,
    /// Length of the common suffix; `None` until it is computed, and the suffix is then part of the added bytes.
    pub(super) suffix: Option<usize>,
}

impl From<Bytes> for BodyDelta {
    fn from(added: Bytes) -> Self {
        Self { base: None, added, model: None }
    }
}

impl BodyDelta {
    /// Encodes a complete body against a base.
    pub(super) fn against(base: Arc<CachedBody>, bytes: &Bytes) -> Self {
        let prefix = Cursor::default().advance_while_equal(&base, bytes);
        Self { base: Some(BaseOverlap { base, prefix, suffix: None }), added: bytes.slice(prefix..), model: None }
    }

    /// Length of the added bytes, which are the memory that this body needs of its own.
    pub(crate) fn added_bytes(&self) -> usize {
        self.added.len()
    }

    /// The first bytes of the body, at most `max`.
    pub(super) fn first_bytes(&self, max: usize) -> Cow<'_, [u8]> {
        let Some(BaseOverlap { base, prefix, suffix }) = &self.base else {
            return Cow::Borrowed(&self.added[..self.added.len().min(max)]);
        };
        let mut bytes = base.bytes.bytes(0..max.min(*prefix));
        if bytes.len() < max {
            let missing = max - bytes.len();
            bytes.to_mut().extend_from_slice(&self.added[..self.added.len().min(missing)]);
        }
        if let (missing @ 1.., Some(suffix)) = (max - bytes.len(), *suffix) {
            let start = base.bytes.len() - suffix;
            bytes.to_mut().extend_from_slice(&base.bytes.bytes(start..start + suffix.min(missing)));
        }
        bytes
    }

    /// Returns the model that the body names at its top level. Bytes shared with the base are not searched again.
    pub(crate) fn find_model(&mut self) -> Option<String> {
        let scan = PrefixScan::for_model(&self.first_bytes(MODEL_PREFIX));
        if scan.model.is_some() {
            self.model = scan.model_range;
            return scan.model;
        }
        if let Some((model, range)) = self.model_in_base() {
            self.model = Some(range);
            return Some(model);
        }
        let scan = PrefixScan::for_model_anywhere(&self.to_bytes());
        self.model = scan.model_range;
        scan.model
    }

    /// The model of the base and its position in this body, if its bytes lie in a shared range.
    fn model_in_base(&self) -> Option<(String, Range<usize>)> {
        let BaseOverlap { base, prefix, suffix } = self.base.as_ref()?;
        let range = base.model.clone()?;
        let text = String::from_utf8(base.bytes.bytes(range.clone()).into_owned()).ok()?;
        if range.end <= *prefix {
            return Some((text, range));
        }
        let from_end = base.bytes.len() - range.start;
        let in_suffix = match suffix {
            Some(suffix) => from_end <= *suffix,
            None => self.added.ends_with(&base.bytes.bytes(range.start..base.bytes.len())),
        };
        let start = (prefix + self.added.len() + suffix.unwrap_or(0)).checked_sub(from_end)?;
        in_suffix.then(|| (text, start..start + range.len()))
    }

    /// Transforms the whole body. The result has no base.
    pub(crate) fn map(self, change: impl FnOnce(Bytes) -> Bytes) -> Self {
        change(self.to_bytes()).into()
    }

    /// The whole body in one allocation.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let Some(BaseOverlap { base, prefix, suffix }) = &self.base else { return self.added.clone() };
        let mut rope: Rope = base.bytes.slice(0..*prefix);
        rope.push(self.added.clone());
        rope.append(base.bytes.slice(base.bytes.len() - suffix.unwrap_or(0)..base.bytes.len()));
        rope.to_bytes()
    }
}

/// A position in the rope of a cached body.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    part: usize,
    /// Offset within the part.
    offset: usize,
}

impl Cursor {
    /// Moves past the bytes that equal the start of `bytes`, and returns how many they are.
    fn advance_while_equal(&mut self, body: &CachedBody, bytes: &[u8]) -> usize {
        let mut same = 0;
        while same < bytes.len() {
            let Some(part) = body.bytes.parts().get(self.part) else { break };
            let left = &part[self.offset..];
            let here = common_prefix_len(left, &bytes[same..]);
            same += here;
            self.offset += here;
            if here < left.len() {
                break;
            }
            (self.part, self.offset) = (self.part + 1, 0);
        }
        same
    }
}

/// Encodes a body against a base while it is received.
///
/// An agent inserts new messages into its history; what follows them (tools, settings) is unchanged. The insertion is as long as the
/// body is longer than the base. So after the first difference, that many bytes are copied, and the comparison then continues in the
/// base where it stopped. If the guess is wrong, the rest of the body is copied.
#[derive(Debug)]
pub(crate) struct DeltaEncoder {
    base: Arc<CachedBody>,
    cursor: Cursor,
    /// Expected length of the body; 0 if it is unknown.
    size: usize,
    prefix: usize,
    copied: Vec<u8>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// All bytes so far equal the base.
    Prefix,
    /// Within the insertion; this many of its bytes are still to come.
    Insertion(usize),
    /// After the insertion; this many bytes equalled the base again.
    Suffix(usize),
    /// The body differs in another way; everything is copied.
    Remainder,
}

impl DeltaEncoder {
    pub(super) fn new(base: Arc<CachedBody>, size: usize) -> Self {
        Self { base, cursor: Cursor::default(), size, prefix: 0, copied: Vec::new(), stage: Stage::Prefix }
    }

    /// Encodes the next bytes of the body.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let consumed = match &mut self.stage {
                Stage::Prefix => {
                    let same = self.cursor.advance_while_equal(&self.base, bytes);
                    self.prefix += same;
                    if same < bytes.len() {
                        self.end_prefix();
                    }
                    same
                }
                Stage::Insertion(left) => {
                    let added = bytes.len().min(*left);
                    self.copied.extend_from_slice(&bytes[..added]);
                    *left -= added;
                    if *left == 0 {
                        self.stage = Stage::Suffix(0);
                    }
                    added
                }
                Stage::Suffix(suffix) => {
                    let same = self.cursor.advance_while_equal(&self.base, bytes);
                    *suffix += same;
                    if same < bytes.len() {
                        self.abandon_suffix();
                    }
                    same
                }
                Stage::Remainder => {
                    self.copied.extend_from_slice(bytes);
                    bytes.len()
                }
            };
            bytes = &bytes[consumed..];
        }
    }

    fn end_prefix(&mut self) {
        let inserted = self.size.saturating_sub(self.base.bytes.len());
        let capacity = if inserted > 0 { inserted } else { self.size.saturating_sub(self.prefix) };
        self.copied.reserve_exact(capacity);
        self.stage = if inserted > 0 { Stage::Insertion(inserted) } else { Stage::Remainder };
    }

    /// Copies the bytes that matched after the insertion from the base, and everything that follows from the body.
    fn abandon_suffix(&mut self) {
        if let Stage::Suffix(suffix) = std::mem::replace(&mut self.stage, Stage::Remainder) {
            self.copied.reserve_exact(self.size.saturating_sub(self.prefix + self.copied.len()));
            self.copied.extend_from_slice(&self.base.bytes.bytes(self.prefix..self.prefix + suffix));
        }
    }

    pub(crate) fn finish(mut self) -> BodyDelta {
        let suffix = match self.stage {
            Stage::Suffix(suffix) if self.prefix + suffix == self.base.bytes.len() => Some(suffix),
            _ => None,
        };
        if suffix.is_none() {
            // The body broke off before the end of the base.
            self.abandon_suffix();
        }
        BodyDelta {
            base: Some(BaseOverlap { base: self.base, prefix: self.prefix, suffix }),
            added: self.copied.into(),
            model: None,
        }
    }
}

/// Block sizes for comparing two slices: large blocks compare at memory speed, smaller ones find the first difference.
pub(super) const COMPARE_STEPS: [usize; 4] = [4 << 10, 256, 16, 1];

pub(super) fn common_prefix_len(one: &[u8], other: &[u8]) -> usize {
    let max = one.len().min(other.len());
    COMPARE_STEPS.iter().fold(0, |same, step| {
        let (one, other) = (one[same..max].chunks_exact(*step), other[same..max].chunks_exact(*step));
        same + step * one.zip(other).take_while(|(one, other)| one == other).count()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    #[test]
    fn common_prefix_len_counts_equal_bytes() {
        for (one, other, prefix) in [("abc", "abd", 2), ("abc", "abcdef", 3), ("", "a", 0), ("xbc", "ybc", 0)] {
            assert_eq!(common_prefix_len(one.as_bytes(), other.as_bytes()), prefix);
        }
        let long: Vec<u8> = (0..3 * COMPARE_STEPS[0] + 333).map(|at| (at / 7) as u8).collect();
        assert_eq!(
            (common_prefix_len(&long, &long), common_prefix_len(&long, &long[..=COMPARE_STEPS[0]])),
            (long.len(), COMPARE_STEPS[0] + 1)
        );
    }

    #[test]
    fn encoder_any_chunks_keeps_body() {
        let earlier: Vec<u8> = (0..50).collect();
        let mut parts = Rope::default();
        for part in earlier.chunks(7) {
            parts.push(Bytes::copy_from_slice(part));
        }
        let base = Arc::new(CachedBody::new(parts));
        for shared in 0..=earlier.len() {
            for chunk in 1..20 {
                let body = [&earlier[..shared], b"something else, and more of it"].concat();
                for size in [body.len(), 0, 7, earlier.len() + 3, usize::MAX] {
                    let mut encoder = DeltaEncoder::new(Arc::clone(&base), size.min(1 << 20));
                    body.chunks(chunk).for_each(|chunk| encoder.feed(chunk));
                    let delta = encoder.finish();
                    assert_eq!(delta.base.as_ref().map(|overlap| overlap.prefix), Some(shared));
                    check(&delta, &body);
                }
            }
        }
    }

    fn check(delta: &BodyDelta, body: &[u8]) {
        assert_eq!(delta.to_bytes(), body);
        for max in [0, 1, 10, 49, 50, 51, 200] {
            assert_eq!(*delta.first_bytes(max), body[..body.len().min(max)]);
        }
    }

    #[test]
    fn model_after_messages_found_in_base() {
        let body = |added: &str, model: &str| {
            let text = "x".repeat(MODEL_PREFIX);
            Bytes::from(format!(r#"{{"messages":["{text}"{added}],"model":"{model}","stream":true}}"#))
        };
        let mut first = BodyDelta::from(body("", "one"));
        assert_eq!(first.find_model().as_deref(), Some("one"));
        let mut base = CachedBody::new(body("", "one").into());
        base.model = first.model;
        let base = Arc::new(base);
        for (added, model, in_base) in [(r#","y""#, "one", true), ("", "one", true), (r#","y""#, "two", false)] {
            let next = body(added, model);
            for size in [next.len(), 0] {
                let mut encoder = DeltaEncoder::new(Arc::clone(&base), size);
                encoder.feed(&next);
                let mut delta = encoder.finish();
                assert_eq!(delta.model_in_base().is_some(), in_base, "{added} {model} {size}");
                assert_eq!(delta.find_model().as_deref(), Some(model));
                assert_eq!(&next[delta.model.unwrap()], model.as_bytes());
            }
        }
    }

    #[test]
    fn encoder_insertion_copies_only_new_bytes() {
        let earlier = b"[one, two], and what comes after";
        let base = Arc::new(CachedBody::new(Bytes::from_static(earlier).into()));
        for at in 0..=earlier.len() {
            for chunk in 1..20 {
                let body = [&earlier[..at], b", three", &earlier[at..]].concat();
                let follow = |size, body: &[u8]| {
                    let mut encoder = DeltaEncoder::new(Arc::clone(&base), size);
                    body.chunks(chunk).for_each(|chunk| encoder.feed(chunk));
                    encoder.finish()
                };
                let delta = follow(body.len(), &body);
                assert_eq!(delta.added.len(), 7, "{delta:?}");
                check(&delta, &body);
                // A body that breaks off, and a body that differs after the insertion.
                for end in 0..body.len() {
                    check(&follow(body.len(), &body[..end]), &body[..end]);
                    let other = [&body[..end], b"#", &body[end + 1..]].concat();
                    check(&follow(other.len(), &other), &other);
                }
            }
        }
    }
}
