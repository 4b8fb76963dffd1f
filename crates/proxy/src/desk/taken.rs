//! A body as it was taken in: what it shares with an earlier one, and the rest.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use sayso_gate::Rope;
use sayso_wire::Glance;

use super::bodies::Body;

/// Bytes at the beginning of a body in which most agents name the model.
const MODEL_PREFIX: usize = 4 << 10;

/// A body. Of one that begins like an earlier one, and perhaps ends like it, only the rest is copied: reading a megabyte twice takes
/// longer than passing it on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// The earlier one, if there is one.
    pub(super) earlier: Option<Shared>,
    /// What is not in it.
    pub(super) rest: Bytes,
    /// The bytes of the model's name, once [`Self::find_model`] has found them.
    pub(super) model: Option<Range<usize>>,
}

/// What a body has in common with an earlier one.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) with: Arc<Body>,
    /// How many bytes at its beginning.
    pub(super) front: usize,
    /// How many at its end; `None` as long as nobody has looked.
    pub(super) back: Option<usize>,
}

impl From<Bytes> for Taken {
    fn from(rest: Bytes) -> Self {
        Self { earlier: None, rest, model: None }
    }
}

impl Taken {
    /// One that is compared with an earlier one now.
    pub(super) fn after(earlier: Arc<Body>, bytes: &Bytes) -> Self {
        let front = Cursor::default().go_on(&earlier, bytes);
        Self { earlier: Some(Shared { with: earlier, front, back: None }), rest: bytes.slice(front..), model: None }
    }

    /// How many bytes are in memory for its sake.
    pub(crate) fn own(&self) -> usize {
        self.rest.len()
    }

    /// What it begins with, up to so many bytes.
    pub(super) fn beginning(&self, most: usize) -> Cow<'_, [u8]> {
        let Some(Shared { with, front, back }) = &self.earlier else {
            return Cow::Borrowed(&self.rest[..self.rest.len().min(most)]);
        };
        let mut beginning = with.bytes.bytes(0..most.min(*front));
        if beginning.len() < most {
            let more = most - beginning.len();
            beginning.to_mut().extend_from_slice(&self.rest[..self.rest.len().min(more)]);
        }
        if let (more @ 1.., Some(back)) = (most - beginning.len(), *back) {
            let at = with.bytes.len() - back;
            beginning.to_mut().extend_from_slice(&with.bytes.bytes(at..at + back.min(more)));
        }
        beginning
    }

    /// The model that the body names at its top level. What it shares with the earlier body is not searched again.
    pub(crate) fn find_model(&mut self) -> Option<String> {
        let glance = Glance::for_model(&self.beginning(MODEL_PREFIX));
        if glance.model.is_some() {
            self.model = glance.model_range;
            return glance.model;
        }
        if let Some((model, range)) = self.model_of_earlier() {
            self.model = Some(range);
            return Some(model);
        }
        let glance = Glance::for_model_anywhere(&self.whole());
        self.model = glance.model_range;
        glance.model
    }

    /// The model of the earlier body, if its bytes are in what both have in common.
    fn model_of_earlier(&self) -> Option<(String, Range<usize>)> {
        let Shared { with, front, back } = self.earlier.as_ref()?;
        let range = with.model.clone()?;
        let text = String::from_utf8(with.bytes.bytes(range.clone()).into_owned()).ok()?;
        if range.end <= *front {
            return Some((text, range));
        }
        let from_end = with.bytes.len() - range.start;
        let at_end = match back {
            Some(back) => from_end <= *back,
            None => self.rest.ends_with(&with.bytes.bytes(range.start..with.bytes.len())),
        };
        let start = (front + self.rest.len() + back.unwrap_or(0)).checked_sub(from_end)?;
        at_end.then(|| (text, start..start + range.len()))
    }

    /// Something else made of it.
    pub(crate) fn map(self, change: impl FnOnce(Bytes) -> Bytes) -> Self {
        change(self.whole()).into()
    }

    /// All of it in one piece.
    pub(crate) fn whole(&self) -> Bytes {
        let Some(Shared { with, front, back }) = &self.earlier else { return self.rest.clone() };
        let mut whole: Rope = with.bytes.slice(0..*front);
        whole.push(self.rest.clone());
        whole.append(with.bytes.slice(with.bytes.len() - back.unwrap_or(0)..with.bytes.len()));
        whole.whole()
    }
}

/// A place in a body.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// The part that comes next, and how far in it.
    part: usize,
    at: usize,
}

impl Cursor {
    /// How many of some bytes are those that come next in a body, past which it goes.
    fn go_on(&mut self, body: &Body, bytes: &[u8]) -> usize {
        let mut same = 0;
        while same < bytes.len() {
            let Some(part) = body.bytes.parts().get(self.part) else { break };
            let left = &part[self.at..];
            let here = alike(left, &bytes[same..]);
            same += here;
            self.at += here;
            if here < left.len() {
                break;
            }
            (self.part, self.at) = (self.part + 1, 0);
        }
        same
    }
}

/// Compares a body with an earlier one while it comes.
///
/// An agent adds to its history, after which comes what was there before. What is added is as long as the body is longer, so that it is
/// known where the earlier one goes on, and nothing else is copied.
#[derive(Debug)]
pub(crate) struct Following {
    earlier: Arc<Body>,
    cursor: Cursor,
    /// How many bytes the body has, as far as that is known.
    size: usize,
    front: usize,
    copied: Vec<u8>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// So far it is the same.
    Front,
    /// So many bytes more are added.
    Added(usize),
    /// After what was added, so many bytes are the same again.
    Back(usize),
    /// It is another one.
    Rest,
}

impl Following {
    pub(super) fn new(earlier: Arc<Body>, size: usize) -> Self {
        Self { earlier, cursor: Cursor::default(), size, front: 0, copied: Vec::new(), stage: Stage::Front }
    }

    /// Takes in what comes next.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = match &mut self.stage {
                Stage::Front => {
                    let same = self.cursor.go_on(&self.earlier, bytes);
                    self.front += same;
                    if same < bytes.len() {
                        self.differs();
                    }
                    same
                }
                Stage::Added(left) => {
                    let added = bytes.len().min(*left);
                    self.copied.extend_from_slice(&bytes[..added]);
                    *left -= added;
                    if *left == 0 {
                        self.stage = Stage::Back(0);
                    }
                    added
                }
                Stage::Back(back) => {
                    let same = self.cursor.go_on(&self.earlier, bytes);
                    *back += same;
                    if same < bytes.len() {
                        self.differs_after_all();
                    }
                    same
                }
                Stage::Rest => {
                    self.copied.extend_from_slice(bytes);
                    bytes.len()
                }
            };
            bytes = &bytes[taken..];
        }
    }

    fn differs(&mut self) {
        let added = self.size.saturating_sub(self.earlier.bytes.len());
        let room = if added > 0 { added } else { self.size.saturating_sub(self.front) };
        self.copied.reserve_exact(room);
        self.stage = if added > 0 { Stage::Added(added) } else { Stage::Rest };
    }

    /// What was the same again is copied from where it is.
    fn differs_after_all(&mut self) {
        if let Stage::Back(back) = std::mem::replace(&mut self.stage, Stage::Rest) {
            self.copied.reserve_exact(self.size.saturating_sub(self.front + self.copied.len()));
            self.copied.extend_from_slice(&self.earlier.bytes.bytes(self.front..self.front + back));
        }
    }

    /// The body.
    pub(crate) fn end(mut self) -> Taken {
        let back = match self.stage {
            Stage::Back(back) if self.front + back == self.earlier.bytes.len() => Some(back),
            _ => None,
        };
        if back.is_none() {
            // It ends where the earlier one does not.
            self.differs_after_all();
        }
        Taken {
            earlier: Some(Shared { with: self.earlier, front: self.front, back }),
            rest: self.copied.into(),
            model: None,
        }
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
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

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
                for size in [body.len(), 0, 7, earlier.len() + 3, usize::MAX] {
                    let mut following = Following::new(Arc::clone(&known), size.min(1 << 20));
                    body.chunks(chunk).for_each(|chunk| following.take(chunk));
                    let taken = following.end();
                    assert_eq!(taken.earlier.as_ref().map(|shared| shared.front), Some(shared));
                    check(&taken, &body);
                }
            }
        }
    }

    fn check(taken: &Taken, body: &[u8]) {
        assert_eq!(taken.whole(), body);
        for most in [0, 1, 10, 49, 50, 51, 200] {
            assert_eq!(*taken.beginning(most), body[..body.len().min(most)]);
        }
    }

    #[test]
    fn model_after_the_messages_is_found_again_in_what_is_shared() {
        let body = |added: &str, model: &str| {
            let said = "x".repeat(MODEL_PREFIX);
            Bytes::from(format!(r#"{{"messages":["{said}"{added}],"model":"{model}","stream":true}}"#))
        };
        let mut first = Taken::from(body("", "one"));
        assert_eq!(first.find_model().as_deref(), Some("one"));
        let mut known = Body::new(body("", "one").into());
        known.model = first.model;
        let known = Arc::new(known);
        for (added, model, inherits) in [(r#","y""#, "one", true), ("", "one", true), (r#","y""#, "two", false)] {
            let next = body(added, model);
            for size in [next.len(), 0] {
                let mut following = Following::new(Arc::clone(&known), size);
                following.take(&next);
                let mut taken = following.end();
                assert_eq!(taken.model_of_earlier().is_some(), inherits, "{added} {model} {size}");
                assert_eq!(taken.find_model().as_deref(), Some(model));
                assert_eq!(&next[taken.model.unwrap()], model.as_bytes());
            }
        }
    }

    #[test]
    fn what_is_added_in_the_middle_is_all_that_is_copied() {
        let earlier = b"[one, two], and what comes after";
        let known = Arc::new(Body::new(Bytes::from_static(earlier).into()));
        for at in 0..=earlier.len() {
            for chunk in 1..20 {
                let body = [&earlier[..at], b", three", &earlier[at..]].concat();
                let follow = |size, body: &[u8]| {
                    let mut following = Following::new(Arc::clone(&known), size);
                    body.chunks(chunk).for_each(|chunk| following.take(chunk));
                    following.end()
                };
                let taken = follow(body.len(), &body);
                assert_eq!(taken.rest.len(), 7, "{taken:?}");
                check(&taken, &body);
                // One that breaks off, and one in which something else comes later.
                for end in 0..body.len() {
                    check(&follow(body.len(), &body[..end]), &body[..end]);
                    let other = [&body[..end], b"#", &body[end + 1..]].concat();
                    check(&follow(other.len(), &other), &other);
                }
            }
        }
    }
}
