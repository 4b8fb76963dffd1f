//! Bodies cut into pieces for the journal.
//!
//! An agent sends its whole history again with every request, and adds to it in the middle: what tools there are often comes after what
//! was said. What a body shares with the one before, at its beginning and at its end, is neither hashed nor stored again.

use std::collections::VecDeque;

use bytes::Bytes;
use sayso_gate::{CutBody, Piece, Stored};
use sayso_review::PIECE;

use super::whose::Conversation;

/// Conversations of which the last body is remembered, and how large those may be together.
const MOST: usize = 256;
const MOST_BYTES: usize = 64 << 20;
/// Pieces beyond those that a body of its size has at least: with more, it is cut anew.
const SURPLUS: usize = 32;

/// The last body of each conversation.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    last: VecDeque<(Conversation, CutBody)>,
}

impl Bodies {
    /// Cuts a body of a conversation.
    pub(crate) fn cut(&mut self, conversation: &Conversation, bytes: Bytes) -> CutBody {
        let place = self.last.iter().position(|(of, _)| of == conversation);
        let earlier = place.and_then(|place| self.last.remove(place));
        let cut = match earlier {
            Some((_, earlier)) => after(&earlier, bytes),
            None => CutBody::new(bytes),
        };
        self.last.push_back((conversation.clone(), cut.clone()));
        while self.last.len() > MOST || self.last.iter().map(|(_, cut)| cut.bytes.len()).sum::<usize>() > MOST_BYTES {
            self.last.pop_front();
        }
        cut
    }

    /// Forgets a session that is over.
    pub(crate) fn forget(&mut self, session: &str) {
        self.last.retain(|(of, _)| of.session() != session);
    }
}

/// Cuts a body that comes after another: the pieces that are whole at the beginning and at the end of both are the same.
fn after(earlier: &CutBody, bytes: Bytes) -> CutBody {
    let (old, new) = (&earlier.bytes[..], &bytes[..]);
    let front = alike(old, new);
    let back = alike_at_end(&old[front..], &new[front..]);
    let known = |piece: &Piece| Piece { stored: Stored::Before, ..*piece };
    let (mut start, mut end) = (0, new.len());
    let mut pieces = Vec::with_capacity(earlier.pieces.len() + 2);
    for piece in earlier.pieces.iter().take_while(|piece| fits(&mut start, piece.size, front)) {
        pieces.push(known(piece));
    }
    let mut taken = 0;
    let rest = earlier.pieces[pieces.len()..].iter().rev().take_while(|piece| fits(&mut taken, piece.size, back));
    let mut last: Vec<Piece> = rest.map(known).collect();
    end -= taken;
    // Small pieces are put together with what comes after them once that is as large, so that there are never many of them.
    while let Some(piece) = pieces.pop_if(|piece| piece.size < PIECE && piece.size <= end - start) {
        start -= piece.size;
    }
    // Where both begin to be the same again, so that it can be the end of the next one, too.
    let boundary = (new.len() - back).clamp(start, end);
    pieces.extend(new[start..boundary].chunks(PIECE).chain(new[boundary..end].chunks(PIECE)).map(Piece::new));
    pieces.extend(last.drain(..).rev());
    if pieces.len() > new.len() / PIECE + SURPLUS { CutBody::new(bytes) } else { CutBody { bytes, pieces } }
}

/// Goes past a piece if that does not go too far.
fn fits(at: &mut usize, size: usize, most: usize) -> bool {
    let fits = *at + size <= most;
    if fits {
        *at += size;
    }
    fits
}

/// Compared in one go, at the speed of memory.
const STEP: usize = 4 << 10;

/// How many bytes two have in common at their beginning.
fn alike(one: &[u8], other: &[u8]) -> usize {
    let steps = one.chunks_exact(STEP).zip(other.chunks_exact(STEP)).take_while(|(one, other)| one == other).count();
    let same = steps * STEP;
    same + one[same..].iter().zip(&other[same..]).take_while(|(one, other)| one == other).count()
}

/// And at their end.
fn alike_at_end(one: &[u8], other: &[u8]) -> usize {
    let steps = one.rchunks_exact(STEP).zip(other.rchunks_exact(STEP)).take_while(|(one, other)| one == other).count();
    let same = steps * STEP;
    let (one, other) = (&one[..one.len() - same], &other[..other.len() - same]);
    same + one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    /// Whether the pieces are what they say.
    fn check(cut: &CutBody) {
        let mut at = 0;
        for piece in &cut.pieces {
            let bytes = &cut.bytes[at..at + piece.size];
            assert_eq!(piece.hash, sayso_review::ContentHash::of(bytes));
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

    #[test]
    fn of_a_history_that_grows_in_the_middle_little_is_stored_again() {
        let (conversation, mut bodies) = (Conversation::default(), Bodies::default());
        let (mut history, tools) = (noise(1, 300_000), noise(2, 70_000));
        let mut stored = 0;
        for turn in 0..400 {
            history.extend(noise(turn + 3, 3_000));
            let body: Bytes = [&history[..], &tools].concat().into();
            let cut = bodies.cut(&conversation, body);
            check(&cut);
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
            check(&bodies.cut(&Conversation::default(), body.into()));
        }
    }

    #[test]
    fn bytes_in_common_are_counted() {
        for (one, other, front, back) in
            [("abc", "abd", 2, 0), ("abc", "abcdef", 3, 0), ("", "a", 0, 0), ("xbc", "ybc", 0, 2), ("bc", "abc", 0, 2)]
        {
            let (one, other) = (one.as_bytes(), other.as_bytes());
            assert_eq!((alike(one, other), alike_at_end(one, other)), (front, back));
        }
        let long = noise(1, 3 * STEP + 5);
        assert_eq!((alike(&long, &long), alike_at_end(&long[1..], &long)), (long.len(), long.len() - 1));
    }
}
