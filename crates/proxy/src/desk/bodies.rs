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
use sayso_review::redact::{Redaction, SharedEnds, Spans};

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
    recorded: OnceLock<AsRecorded>,
    /// The bytes of the model's name, if it was looked for.
    pub(super) model: Option<Range<usize>>,
}

impl Body {
    pub(super) fn new(bytes: Rope) -> Self {
        Self { held: bytes.len(), bytes, recorded: OnceLock::new(), model: None }
    }
}

/// A body as it is recorded: the pieces of its masked bytes. The bytes in memory are exact, since others are compared with them.
#[derive(Debug)]
struct AsRecorded {
    pieces: Vec<Piece>,
    spans: Spans,
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
            (Body { bytes, held, recorded: OnceLock::new(), model }, own)
        };
        Self { body: Arc::new(body), after: Some((earlier, front, back)), own }
    }

    /// How many bytes were copied for its sake.
    pub(super) fn own(&self) -> usize {
        self.own
    }

    /// Masks its credentials and cuts it. The one before it is cut before.
    pub(super) fn cut(self) -> CutBody {
        let Self { body, after, .. } = self;
        let exact = &body.bytes;
        let known = after.as_ref().and_then(|(earlier, front, back)| {
            Some((earlier.recorded.get()?, earlier.bytes.len(), SharedEnds { front: *front, back: *back }))
        });
        let spans = match known {
            Some((earlier, len, shared)) => earlier.spans.after(len, exact.len(), shared, |range| exact.bytes(range)),
            None => Spans::of(&exact.bytes(0..exact.len())),
        };
        let redactions = spans.merged();
        let bytes = exact.masked(&redactions);
        let pieces = match known {
            Some((earlier, len, shared)) => {
                let shared = shared_as_recorded(&earlier.spans.merged(), &redactions, (len, exact.len()), shared);
                cut_after(&earlier.pieces, &bytes, shared.front, shared.back)
            }
            None => cut_anew(&bytes),
        };
        let recorded = body.recorded.get_or_init(|| AsRecorded { pieces, spans });
        CutBody { bytes, pieces: recorded.pieces.clone(), values: exact.values(&redactions), redactions }
    }
}

/// What two bodies have in common as they are recorded: less than their bytes, where what is masked differs.
fn shared_as_recorded(
    earlier: &[Redaction],
    own: &[Redaction],
    (old_len, len): (usize, usize),
    shared: SharedEnds,
) -> SharedEnds {
    let same = earlier.iter().zip(own).take_while(|(one, other)| one.range() == other.range()).count();
    let next = [earlier.get(same), own.get(same)].into_iter().flatten().map(|span| span.start).min();
    let from_end = |span: &Redaction, len: usize| (len - span.end(), span.size);
    let ends = earlier.iter().rev().zip(own.iter().rev());
    let same = ends.take_while(|(one, other)| from_end(one, old_len) == from_end(other, len)).count();
    let last = |spans: &[Redaction], len: usize| spans.iter().rev().nth(same).map(|span| len - span.end());
    let after = [last(earlier, old_len), last(own, len)].into_iter().flatten().min();
    SharedEnds {
        front: shared.front.min(next.unwrap_or(usize::MAX)),
        back: shared.back.min(after.unwrap_or(usize::MAX)),
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
mod tests;
