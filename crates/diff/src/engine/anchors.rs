//! Splits a piece at every line that occurs exactly once on both sides: the "patience" idea.

use gix_imara_diff::Token;

use super::solve::{Piece, usizes};

pub(super) struct Anchors<'a> {
    old: &'a [Token],
    new: &'a [Token],
    distinct: u32,
    /// Where each token stands in the piece at hand, old and new; kept between pieces so that a small one costs little.
    places: Vec<(u32, u32)>,
}

/// Where a token was seen: nowhere, at one place, or at many.
const NOWHERE: u32 = u32::MAX;
const MANY: u32 = u32::MAX - 1;

impl<'a> Anchors<'a> {
    pub(super) fn new(old: &'a [Token], new: &'a [Token], distinct: u32) -> Self {
        Self { old, new, distinct, places: Vec::new() }
    }

    /// Pushes the parts between the anchors, last part on the bottom, or returns `false` if there is no anchor.
    pub(super) fn split(&mut self, piece: &Piece, stack: &mut Vec<Piece>) -> bool {
        let (old, new) = (&self.old[usizes(&piece.old)], &self.new[usizes(&piece.new)]);
        self.places.resize(self.distinct as usize + 1, (NOWHERE, NOWHERE));
        for (token, at) in old.iter().zip(piece.old.start..) {
            let place = &mut self.places[token.0 as usize].0;
            *place = if *place == NOWHERE { at } else { MANY };
        }
        for (token, at) in new.iter().zip(piece.new.start..) {
            let place = &mut self.places[token.0 as usize].1;
            *place = if *place == NOWHERE { at } else { MANY };
        }
        let once = |place: &(u32, u32)| place.0 < MANY && place.1 < MANY;
        let candidates: Vec<_> = old.iter().map(|token| self.places[token.0 as usize]).filter(once).collect();
        for token in old.iter().chain(new) {
            self.places[token.0 as usize] = (NOWHERE, NOWHERE);
        }

        let anchors = longest_rising(&candidates);
        if anchors.is_empty() {
            return false;
        }
        let level = piece.level + 1;
        let mut end = (piece.old.end, piece.new.end);
        for &(old, new) in anchors.iter().rev() {
            stack.push(Piece { old: old + 1..end.0, new: new + 1..end.1, level });
            end = (old, new);
        }
        stack.push(Piece { old: piece.old.start..end.0, new: piece.new.start..end.1, level });
        true
    }
}

/// The longest subsequence whose second members rise; the first members rise already.
fn longest_rising(pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    // tails[n] ends the lowest rising sequence of n + 1 pairs so far; before[i] precedes pair i in its own.
    let mut tails: Vec<u32> = Vec::new();
    let mut before = vec![u32::MAX; pairs.len()];
    for (i, pair) in pairs.iter().enumerate() {
        let length = tails.partition_point(|&tail| pairs[tail as usize].1 < pair.1);
        if length > 0 {
            before[i] = tails[length - 1];
        }
        if length == tails.len() {
            tails.push(i as u32);
        } else {
            tails[length] = i as u32;
        }
    }
    let mut rising = Vec::with_capacity(tails.len());
    let mut at = tails.last().copied().unwrap_or(u32::MAX);
    while at != u32::MAX {
        rising.push(pairs[at as usize]);
        at = before[at as usize];
    }
    rising.reverse();
    rising
}

#[cfg(test)]
mod tests {
    use super::longest_rising;

    #[test]
    fn rising_subsequences() {
        let check = |seconds: &[u32], expected: &[u32]| {
            let pairs: Vec<(u32, u32)> = (0..).zip(seconds.iter().copied()).collect();
            let rising: Vec<u32> = longest_rising(&pairs).into_iter().map(|pair| pair.1).collect();
            assert_eq!(rising, expected, "of {seconds:?}");
        };
        check(&[], &[]);
        check(&[3], &[3]);
        check(&[0, 1, 2], &[0, 1, 2]);
        check(&[2, 1, 0], &[0]);
        check(&[5, 0, 1, 9, 2], &[0, 1, 2]);
    }
}
