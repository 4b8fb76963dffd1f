//! Finds the run of equal lines to split at: the one around the rarest line, and of those the longest.

use std::ops::Range;

use gix_imara_diff::Token;

use super::solve::{Piece, usizes};

/// A line that occurs more often than this says nothing about where it belongs.
const MOST_OCCURRENCES: u32 = 63;

/// Equal tokens: `length` of them from `old` on one side and `new` on the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) old: u32,
    pub(super) new: u32,
    pub(super) length: u32,
}

pub(super) enum Step {
    Split(Run),
    NothingInCommon,
    TooRepetitive,
    OutOfBudget,
}

/// Where each token stands in the old side, in order.
pub(super) struct Histogram<'a> {
    old: &'a [Token],
    new: &'a [Token],
    /// Token t stands at `positions[bounds[t]..bounds[t + 1]]`.
    bounds: Vec<u32>,
    positions: Vec<u32>,
}

impl<'a> Histogram<'a> {
    pub(super) fn new(old: &'a [Token], new: &'a [Token], distinct: u32) -> Self {
        // Counting sort; the extra token that stands for lines the old side lacks keeps an empty range.
        let mut bounds = vec![0u32; distinct as usize + 2];
        for token in old {
            bounds[token.0 as usize + 1] += 1;
        }
        let mut sum = 0;
        for bound in &mut bounds {
            sum += *bound;
            *bound = sum;
        }
        let mut positions = vec![0u32; old.len()];
        for (place, token) in old.iter().enumerate().rev() {
            let bound = &mut bounds[token.0 as usize + 1];
            *bound -= 1;
            positions[*bound as usize] = place as u32;
        }
        // Each bound has moved down to its token's start: shift them back by one token.
        bounds.remove(0);
        bounds.push(old.len() as u32);
        Self { old, new, bounds, positions }
    }

    /// Looks for the best run within a piece; the steps it takes are paid from `budget`.
    pub(super) fn step(&self, piece: &Piece, budget: &mut u64) -> Step {
        if *budget == 0 {
            return Step::OutOfBudget;
        }
        let mut search = Search { best: Run { old: 0, new: 0, length: 0 }, rarest: MOST_OCCURRENCES + 1, work: 0 };
        let mut anything_in_common = false;
        let mut at = piece.new.start;
        while at < piece.new.end {
            search.work += 1;
            let places = self.places(self.new[at as usize], &piece.old);
            anything_in_common |= !places.is_empty();
            if places.is_empty() || places.len() as u32 > search.rarest {
                at += 1;
            } else {
                at = self.extend(piece, at, places, &mut search);
            }
        }
        *budget = budget.saturating_sub(search.work);
        if !anything_in_common {
            Step::NothingInCommon
        } else if search.rarest > MOST_OCCURRENCES {
            Step::TooRepetitive
        } else {
            Step::Split(search.best)
        }
    }

    /// Grows the match at `at` with each of its old places, and returns where to look next.
    fn extend(&self, piece: &Piece, at: u32, places: &[u32], search: &mut Search) -> u32 {
        let mut next = at + 1;
        let mut seen_to = 0;
        for &place in places {
            // Inside the run just looked at.
            if place < seen_to {
                continue;
            }
            let mut rarest = places.len() as u32;
            let (mut old, mut new) = (place, at);
            while old > piece.old.start
                && new > piece.new.start
                && self.old[old as usize - 1] == self.new[new as usize - 1]
            {
                old -= 1;
                new -= 1;
                rarest = self.rarer(rarest, old, piece);
            }
            let (mut old_end, mut new_end) = (place + 1, at + 1);
            while old_end < piece.old.end
                && new_end < piece.new.end
                && self.old[old_end as usize] == self.new[new_end as usize]
            {
                rarest = self.rarer(rarest, old_end, piece);
                old_end += 1;
                new_end += 1;
            }
            seen_to = old_end;
            next = next.max(new_end);
            let length = old_end - old;
            search.work += u64::from(length);
            if length > search.best.length || rarest < search.rarest {
                search.best = Run { old, new, length };
                search.rarest = rarest;
            }
        }
        next
    }

    #[inline]
    fn rarer(&self, rarest: u32, old: u32, piece: &Piece) -> u32 {
        if rarest == 1 { 1 } else { rarest.min(self.places(self.old[old as usize], &piece.old).len() as u32) }
    }

    /// Where `token` stands within `range` of the old side.
    #[inline]
    fn places(&self, token: Token, range: &Range<u32>) -> &[u32] {
        let token = token.0 as usize;
        let all = &self.positions[usizes(&(self.bounds[token]..self.bounds[token + 1]))];
        match all {
            [] => all,
            [only] => {
                if range.contains(only) {
                    all
                } else {
                    &[]
                }
            }
            _ => {
                let from = all.partition_point(|&place| place < range.start);
                let to = from + all[from..].partition_point(|&place| place < range.end);
                &all[from..to]
            }
        }
    }
}

struct Search {
    best: Run,
    rarest: u32,
    work: u64,
}
