//! Bodies cut into pieces for the journal.
//!
//! An agent sends its whole history again with every request, and adds to it in the middle: what tools there are often comes after what
//! was said. What a body shares with the one before, at its beginning and at its end, is neither copied nor hashed nor stored again.

use std::collections::VecDeque;
use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use sayso_gate::{CutBody, Piece, Rope, Stored};
use sayso_review::PIECE;

use super::taken::{STEPS, Shared, Taken, alike};
use super::whose::{Conversation, Whose};

/// Conversations of which the last body is remembered, and how large those may be together.
const MOST: usize = 256;
const MOST_BYTES: usize = 64 << 20;
/// Pieces beyond those that a body of its size has at least: with more, it is cut anew.
const SURPLUS: usize = 32;
/// How much of two bodies is compared to find out which of them another one goes on from.
const BEGINNING: usize = 4 << 10;
/// Parts that a body is remembered in: with more, it is put together again.
const MOST_PARTS: usize = 24;

/// A body that others may go on from.
#[derive(Debug)]
pub(crate) struct Body {
    pub(super) bytes: Rope,
    /// How many bytes are in memory for its sake: a part may belong to something larger.
    held: usize,
    /// How it was cut, once it was, which is when it is recorded.
    pieces: OnceLock<Vec<Piece>>,
    /// The bytes of the model's name, if it was looked for.
    pub(super) model: Option<Range<usize>>,
}

impl Body {
    pub(super) fn new(bytes: Rope) -> Self {
        Self { held: bytes.len(), bytes, pieces: OnceLock::new(), model: None }
    }
}

/// A body that is to be cut.
#[derive(Debug)]
pub(super) struct Uncut {
    body: Arc<Body>,
    /// The one before, and how many bytes both have in common at the front and at the back.
    after: Option<(Arc<Body>, usize, usize)>,
    /// How many bytes were copied for its sake.
    own: usize,
}

impl Uncut {
    fn new(taken: Taken) -> Self {
        let Taken { earlier, rest, model } = taken;
        let Some(Shared { with: earlier, front, back }) = earlier else {
            let own = rest.len();
            return Self { body: Arc::new(Body { model, ..Body::new(rest.into()) }), after: None, own };
        };
        let old = &earlier.bytes;
        let (new, back) = if let Some(back) = back {
            (rest, back)
        } else {
            let back = alike_at_end(&old.slice(front..old.len()), &rest);
            // Copied, since it is little, and the rest of it is in memory already.
            (Bytes::copy_from_slice(&rest[..rest.len() - back]), back)
        };
        let own = new.len();
        let mut bytes = old.slice(0..front);
        bytes.push(new);
        bytes.append(old.slice(old.len() - back..old.len()));
        let held = earlier.held + own;
        // Those that it shares little with are not held for its sake.
        let anew = bytes.parts().len() > MOST_PARTS || held > 2 * bytes.len() + PIECE;
        let (body, own) = if anew {
            let bytes = Bytes::from(bytes.bytes(0..bytes.len()).into_owned());
            let own = bytes.len();
            (Body { model, ..Body::new(bytes.into()) }, own)
        } else {
            (Body { bytes, held, pieces: OnceLock::new(), model }, own)
        };
        Self { body: Arc::new(body), after: Some((earlier, front, back)), own }
    }

    /// How many bytes were copied for its sake.
    pub(super) fn own(&self) -> usize {
        self.own
    }

    /// Cuts it. The one before it is cut before.
    pub(super) fn cut(self) -> CutBody {
        let Self { body, after, .. } = self;
        let known = after.as_ref().and_then(|(earlier, front, back)| Some((earlier.pieces.get()?, *front, *back)));
        let pieces = match known {
            Some((pieces, front, back)) => cut_after(pieces, &body.bytes, front, back),
            None => cut_anew(&body.bytes),
        };
        CutBody { bytes: body.bytes.clone(), pieces: body.pieces.get_or_init(|| pieces).clone() }
    }
}

/// The last body of a conversation.
#[derive(Debug)]
struct Known {
    /// By which most others are passed over without a look at their names.
    mark: u64,
    of: Conversation,
    body: Arc<Body>,
}

/// The last body of each conversation.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    /// The newest at the end, which is where most look.
    last: VecDeque<Known>,
    /// How many bytes are held for their sake.
    size: usize,
}

impl Bodies {
    /// The one that a body of somebody may go on from, by what it begins with: what comes later in it is not known yet.
    pub(super) fn before(&self, whose: &Whose, beginning: &[u8]) -> Option<Arc<Body>> {
        let (session, subagent) = whose.strand();
        let mark = mark(session, subagent);
        let is_own = |known: &&Known| known.mark == mark && known.of.strand() == (session, subagent);
        let beginning = &beginning[..beginning.len().min(BEGINNING)];
        let shared = |known: &Known| known.body.bytes.parts().first().map_or(0, |part| alike(part, beginning));
        // The newest of those that share as much.
        let own = self.last.iter().filter(is_own).max_by_key(|known| shared(known)).filter(|known| shared(known) > 0);
        // A conversation that is taken up again, or that branches off, comes in a session of another name.
        let other = || self.last.iter().rev().find(|known| shared(known) == BEGINNING);
        own.or_else(other).map(|known| Arc::clone(&known.body))
    }

    fn place(&self, conversation: &Conversation) -> Option<usize> {
        let (session, subagent) = conversation.strand();
        let mark = mark(session, subagent);
        self.last.iter().rposition(|known| known.mark == mark && known.of == *conversation)
    }

    /// The last one of a conversation.
    pub(super) fn last(&self, conversation: &Conversation) -> Option<Arc<Body>> {
        self.place(conversation).map(|place| Arc::clone(&self.last[place].body))
    }

    /// Takes in one that is the last of its conversation now. Whoever calls this is to have them cut in the same order.
    pub(super) fn take_in(&mut self, conversation: Conversation, taken: Taken) -> Uncut {
        let uncut = Uncut::new(taken);
        if let Some(place) = self.place(&conversation) {
            self.drop_at(place);
        }
        self.size += uncut.body.held;
        let (session, subagent) = conversation.strand();
        let mark = mark(session, subagent);
        self.last.push_back(Known { mark, of: conversation, body: Arc::clone(&uncut.body) });
        while self.last.len() > MOST || self.size > MOST_BYTES {
            self.drop_at(0);
        }
        uncut
    }

    fn drop_at(&mut self, place: usize) {
        self.size -= self.last.remove(place).map_or(0, |known| known.body.held);
    }

    /// Forgets a session that is over.
    pub(crate) fn forget(&mut self, session: &str) {
        self.last.retain(|known| known.of.session() != session);
        self.size = self.last.iter().map(|known| known.body.held).sum();
    }
}

fn mark(session: &str, subagent: Option<&str>) -> u64 {
    // Told apart by their names in the end: this need not be a secret.
    let mut hasher = std::hash::DefaultHasher::new();
    (session, subagent).hash(&mut hasher);
    hasher.finish()
}

fn cut_anew(bytes: &Rope) -> Vec<Piece> {
    bytes.bytes(0..bytes.len()).chunks(PIECE).map(Piece::new).collect()
}

/// Cuts a body that comes after another: the pieces that are whole in what both have in common are the same.
fn cut_after(earlier: &[Piece], new: &Rope, front: usize, back: usize) -> Vec<Piece> {
    let known = |piece: &Piece| Piece { stored: Stored::Before, ..*piece };
    let (mut start, mut end) = (0, new.len());
    let mut pieces = Vec::with_capacity(earlier.len() + 2);
    for piece in earlier.iter().take_while(|piece| fits(&mut start, piece.size, front)) {
        pieces.push(known(piece));
    }
    let mut taken = 0;
    let last = earlier[pieces.len()..].iter().rev().take_while(|piece| fits(&mut taken, piece.size, back));
    let mut last: Vec<Piece> = last.map(known).collect();
    end -= taken;
    // Small pieces are put together with what comes after them once that is as large, so that there are never many of them.
    while let Some(piece) = pieces.pop_if(|piece| piece.size < PIECE && piece.size <= end - start) {
        start -= piece.size;
    }
    // Where both begin to be the same again, so that it can be the end of the next one, too.
    let boundary = (new.len() - back).clamp(start, end);
    for range in [start..boundary, boundary..end] {
        pieces.extend(new.bytes(range).chunks(PIECE).map(Piece::new));
    }
    pieces.extend(last.drain(..).rev());
    if pieces.len() > new.len() / PIECE + SURPLUS { cut_anew(new) } else { pieces }
}

/// Goes past a piece if that does not go too far.
fn fits(at: &mut usize, size: usize, most: usize) -> bool {
    let fits = *at + size <= most;
    if fits {
        *at += size;
    }
    fits
}

/// How many bytes two have in common at their end.
fn alike_at_end(rope: &Rope, bytes: &[u8]) -> usize {
    let mut same = 0;
    for part in rope.parts().iter().rev() {
        let here = alike_at_end_of(part, &bytes[..bytes.len() - same]);
        same += here;
        if here < part.len() {
            break;
        }
    }
    same
}

fn alike_at_end_of(one: &[u8], other: &[u8]) -> usize {
    let most = one.len().min(other.len());
    let (one, other) = (&one[one.len() - most..], &other[other.len() - most..]);
    STEPS.iter().fold(0, |same, step| {
        let (one, other) = (one[..most - same].rchunks_exact(*step), other[..most - same].rchunks_exact(*step));
        same + step * one.zip(other).take_while(|(one, other)| one == other).count()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::super::taken::Following;
    use super::*;

    /// Whether the pieces are what they say.
    fn check(cut: &CutBody) {
        let mut at = 0;
        for piece in &cut.pieces {
            let bytes = cut.bytes.bytes(at..at + piece.size);
            assert_eq!(piece.hash, sayso_review::ContentHash::of(&bytes));
            assert!((1..=PIECE).contains(&piece.size));
            at += piece.size;
        }
        assert_eq!(at, cut.bytes.len());
    }

    fn fresh(cut: &CutBody) -> usize {
        cut.pieces.iter().filter(|piece| piece.stored == Stored::Unknown).map(|piece| piece.size).sum()
    }

    fn noise(seed: u64, size: usize) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        std::iter::repeat_with(&mut next).take(size).collect()
    }

    /// Cuts a body as those that record do.
    fn cut_next(bodies: &mut Bodies, body: &Bytes) -> CutBody {
        let conversation = Conversation::default();
        let taken = match bodies.last(&conversation) {
            Some(last) => Taken::after(last, body),
            None => body.clone().into(),
        };
        let cut = bodies.take_in(conversation, taken).cut();
        assert_eq!(cut.bytes.whole(), body);
        cut
    }

    #[test]
    fn of_a_history_that_grows_in_the_middle_little_is_stored_again() {
        let mut bodies = Bodies::default();
        let (mut history, tools) = (noise(1, 300_000), noise(2, 70_000));
        let mut stored = 0;
        for turn in 0..400 {
            history.extend(noise(turn + 3, 3_000));
            let body: Bytes = [&history[..], &tools].concat().into();
            let cut = cut_next(&mut bodies, &body);
            check(&cut);
            assert!(cut.bytes.parts().len() <= MOST_PARTS);
            assert!(cut.pieces.len() <= cut.bytes.len() / PIECE + 12, "{} pieces", cut.pieces.len());
            if turn > 1 {
                stored += fresh(&cut);
            }
        }
        // Each byte that is new is stored a few times, and not the rest of the body with it.
        assert!(stored < 400 * 3_000 * 8, "{stored} bytes");
    }

    #[test]
    fn whatever_comes_after_whatever_is_cut_right() {
        let whole = noise(7, 5 * PIECE + 17);
        let mut bodies = Bodies::default();
        for seed in 0..400_u64 {
            let pick = |salt: u64, most: usize| {
                let bytes = noise(seed * 31 + salt, 8);
                usize::try_from(u64::from_le_bytes(bytes.try_into().unwrap()) % (most as u64 + 1)).unwrap()
            };
            let mut body = whole[..pick(1, whole.len())].to_vec();
            let at = pick(2, body.len());
            body.splice(at..(at + pick(3, 9_000)).min(body.len()), noise(seed, pick(4, 90_000)));
            check(&cut_next(&mut bodies, &body.into()));
        }
    }

    #[test]
    fn bytes_in_common_at_the_end_are_counted() {
        for (one, other, back) in
            [("abc", "abd", 0), ("abc", "abc", 3), ("", "a", 0), ("xbc", "ybc", 2), ("bc", "abc", 2)]
        {
            for cut in 0..=one.len() {
                let mut rope = Rope::from(Bytes::from(&one[..cut]));
                rope.push(Bytes::from(&one[cut..]));
                assert_eq!(alike_at_end(&rope, other.as_bytes()), back);
            }
        }
        let long = noise(1, 3 * STEPS[0] + 333);
        assert_eq!(alike_at_end(&Rope::from(Bytes::from(long[1..].to_vec())), &long), long.len() - 1);
    }

    #[test]
    fn a_body_goes_on_from_the_one_of_its_session_that_begins_like_it() {
        let whose = |session: &str, model: &str| Whose {
            session: session.into(),
            model: Some(model.into()),
            ..Whose::default()
        };
        let mut bodies = Bodies::default();
        for (session, model) in [("a", "large"), ("a", "small"), ("b", "large")] {
            let body = Bytes::from(format!("model {model}, session {session}"));
            bodies.take_in(whose(session, model).conversation(), body.into());
        }
        let found = |session: &str, beginning: &[u8]| {
            let unknown = Whose { model: None, ..whose(session, "") };
            bodies.before(&unknown, beginning).map(|body| String::from_utf8(body.bytes.whole().to_vec()).unwrap())
        };
        assert_eq!(found("a", b"model large, more").as_deref(), Some("model large, session a"));
        assert_eq!(found("a", b"model small").as_deref(), Some("model small, session a"));
        assert_eq!(found("b", b"model small").as_deref(), Some("model large, session b"));
        assert_eq!(found("c", b"model large"), None);
        assert_eq!(found("a", b"something else"), None);
    }

    #[test]
    fn a_session_that_begins_like_another_goes_on_from_it() {
        let mut bodies = Bodies::default();
        let whose = |session: &str| Whose { session: session.into(), ..Whose::default() };
        let history = Bytes::from(noise(1, 4 * PIECE));
        let first = bodies.take_in(whose("a").conversation(), history.clone().into()).cut();
        assert_eq!(fresh(&first), history.len());
        let next = Bytes::from([&history[..], b", and go on"].concat());
        let mut following = Following::new(bodies.before(&whose("b"), &next).unwrap(), next.len());
        following.take(&next);
        let cut = bodies.take_in(whose("b").conversation(), following.end()).cut();
        check(&cut);
        assert_eq!((cut.bytes.whole(), fresh(&cut)), (next.clone(), next.len() - history.len()));
        // What only begins a little alike is of somebody else, and one's own comes first.
        assert!(bodies.before(&whose("c"), &next[..BEGINNING - 1]).is_none());
        let own = bodies.before(&whose("a"), &next).unwrap();
        assert_eq!(own.bytes.len(), history.len());
    }

    #[test]
    fn a_small_body_does_not_hold_a_large_one_in_memory() {
        let mut bodies = Bodies::default();
        let large = Bytes::from(noise(1, 40 * PIECE));
        bodies.take_in(Conversation::default(), large.clone().into());
        let last = bodies.last(&Conversation::default()).unwrap();
        bodies.take_in(Conversation::default(), Taken::after(last, &large.slice(..50)));
        assert_eq!(bodies.size, 50);
        let small = bodies.last(&Conversation::default()).unwrap();
        assert_eq!(small.bytes.whole(), large[..50]);
        assert_ne!(small.bytes.parts()[0].as_ptr(), large.as_ptr(), "a part of the large one");
        // Nor does one that goes on from another for long hold much more than itself.
        for turn in 0..200 {
            let last = bodies.last(&Conversation::default()).unwrap();
            let body = [&last.bytes.whole()[..last.bytes.len() / 2], &noise(turn, 3_000)].concat();
            bodies.take_in(Conversation::default(), Taken::after(last, &body.clone().into()));
            assert!(bodies.size <= 2 * body.len() + PIECE + 3_000, "{} for {}", bodies.size, body.len());
        }
    }

    #[test]
    fn one_after_another_that_was_never_cut_is_cut_anew() {
        let mut bodies = Bodies::default();
        let first = bodies.take_in(Conversation::default(), Bytes::from(noise(1, 3 * PIECE)).into());
        drop(first);
        let last = bodies.last(&Conversation::default()).unwrap();
        let cut = bodies.take_in(Conversation::default(), Taken::after(last, &noise(1, 4 * PIECE).into())).cut();
        check(&cut);
        assert_eq!(fresh(&cut), 4 * PIECE);
    }
}
