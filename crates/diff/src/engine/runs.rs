//! Runs of equal lines that a piece of both sides can be split at: those that start with the rarest line in common.

use gix_imara_diff::Token;

use super::solve::{Piece, usizes};

/// Equal tokens: `length` of them from `old` on one side and `new` on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) old: u32,
    pub(super) new: u32,
    pub(super) length: u32,
}

pub(super) enum Found {
    /// At least one run. They are in the order of the new side and do not overlap there; of several that start at one new
    /// line, those further down on the old side come first.
    Runs,
    NothingInCommon,
    /// What there is in common occurs too often to say where it belongs.
    OnlyFrequent,
}

/// A line that occurs more often than this says nothing about where it belongs.
const MOST_OCCURRENCES: u32 = 63;
/// How many runs to collect at most, per line: where a line is frequent, every pair of its places is one.
const RUNS_PER_LINE: usize = 2;

/// Where each token stands in the old side of the piece at hand.
#[derive(Default)]
pub(super) struct Runs {
    places: Vec<Places>,
    /// For each old line, the one before it in the piece with the same token, if there is one.
    previous: Vec<u32>,
    /// The number of the piece at hand. What carries another number is from another piece, so nothing is ever cleared.
    stamp: u32,
}

#[derive(Clone, Copy, Default)]
struct Places {
    stamp: u32,
    count: u32,
    last: u32,
}

impl Runs {
    /// Makes room for an old side of this many lines with tokens up to `bound`.
    pub(super) fn reserve(&mut self, lines: usize, bound: u32) {
        if self.places.len() <= bound as usize {
            self.places.resize(bound as usize + 1, Places::default());
        }
        if self.previous.len() < lines {
            self.previous.resize(lines, 0);
        }
    }

    /// Collects what the piece can be split at into `found`; the steps it takes are paid from `budget`.
    pub(super) fn find(
        &mut self,
        old: &[Token],
        new: &[Token],
        piece: &Piece,
        found: &mut Vec<Run>,
        budget: &mut u64,
    ) -> Found {
        found.clear();
        self.index(old, piece);
        let most = RUNS_PER_LINE * (piece.old.len() + piece.new.len());
        let rarest = self.rarest(new, piece);
        if let 1..=MOST_OCCURRENCES = rarest {
            let mut at = piece.new.start;
            while at < piece.new.end && found.len() < most {
                let places = self.places[new[at as usize].0 as usize];
                at = if places.stamp == self.stamp && places.count == rarest {
                    self.collect(old, new, piece, at, places, found)
                } else {
                    at + 1
                };
            }
        }
        *budget = budget.saturating_sub((piece.old.len() + piece.new.len() + found.len()) as u64);
        match rarest {
            NEVER => Found::NothingInCommon,
            1..=MOST_OCCURRENCES => Found::Runs,
            _ => Found::OnlyFrequent,
        }
    }

    fn index(&mut self, old: &[Token], piece: &Piece) {
        // Numbers start over after four thousand million pieces.
        self.stamp = self.stamp.checked_add(1).unwrap_or_else(|| {
            self.places.fill(Places::default());
            1
        });
        let lines = usizes(&piece.old);
        for ((token, previous), at) in old[lines.clone()].iter().zip(&mut self.previous[lines]).zip(piece.old.clone()) {
            let places = &mut self.places[token.0 as usize];
            if places.stamp == self.stamp {
                *previous = places.last;
                places.count += 1;
                places.last = at;
            } else {
                *places = Places { stamp: self.stamp, count: 1, last: at };
            }
        }
    }

    /// How often the rarest common token occurs on the old side.
    fn rarest(&self, new: &[Token], piece: &Piece) -> u32 {
        let mut rarest = NEVER;
        for token in &new[usizes(&piece.new)] {
            let places = self.places[token.0 as usize];
            if places.stamp == self.stamp && places.count < rarest {
                rarest = places.count;
                if rarest == 1 {
                    break;
                }
            }
        }
        rarest
    }

    /// Adds the runs that start at a new line, one for each of its old places, and returns where to look next.
    fn collect(
        &self,
        old: &[Token],
        new: &[Token],
        piece: &Piece,
        at: u32,
        places: Places,
        found: &mut Vec<Run>,
    ) -> u32 {
        let mut place = places.last;
        let mut longest = 0;
        for left in (0..places.count).rev() {
            let length = equal_from(old, new, piece, place, at);
            found.push(Run { old: place, new: at, length });
            longest = longest.max(length);
            if left > 0 {
                place = self.previous[place as usize];
            }
        }
        at + longest
    }
}

const NEVER: u32 = u32::MAX;

/// How many tokens from two places on are equal within the piece.
#[inline]
fn equal_from(old: &[Token], new: &[Token], piece: &Piece, old_at: u32, new_at: u32) -> u32 {
    let (a, b) = (&old[old_at as usize..piece.old.end as usize], &new[new_at as usize..piece.new.end as usize]);
    a.iter().zip(b).take_while(|(a, b)| a == b).count() as u32
}
