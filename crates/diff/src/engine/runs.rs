//! Finds runs of equal lines at which both sides of a piece can be split, starting with the rarest common line.

use gix_imara_diff::Token;

use super::solve::{UnsolvedPiece, usizes};

/// A run of `length` equal tokens, at `old` on one side and at `new` on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) old: u32,
    pub(super) new: u32,
    pub(super) length: u32,
}

pub(super) enum Found {
    /// At least one run. Runs are in the order of the new side and do not overlap there. Of several runs at the same
    /// new line, lower ones on the old side come first.
    Runs,
    NothingInCommon,
    /// All common lines are too frequent to identify their counterparts.
    OnlyFrequent,
}

/// Maximum number of occurrences of a line that can identify its counterpart.
const MAX_OCCURRENCES: u32 = 63;
/// Maximum number of collected runs per line, because every pair of occurrences is a run.
const RUNS_PER_LINE: usize = 2;

/// The positions of each token in the old side of the current piece.
#[derive(Default)]
pub(super) struct Runs {
    places: Vec<Places>,
    /// For each old line, the previous line in the piece with the same token.
    previous: Vec<u32>,
    /// Number of the current piece. Entries with another number belong to another piece, so nothing needs clearing.
    stamp: u32,
}

#[derive(Clone, Copy, Default)]
struct Places {
    stamp: u32,
    count: u32,
    last: u32,
}

impl Runs {
    /// Reserves memory for an old side of `lines` lines with tokens up to `bound`.
    pub(super) fn reserve(&mut self, lines: usize, bound: u32) {
        if self.places.len() <= bound as usize {
            self.places.resize(bound as usize + 1, Places::default());
        }
        if self.previous.len() < lines {
            self.previous.resize(lines, 0);
        }
    }

    /// Collects the runs of the piece into `found`, and subtracts the steps from `budget`.
    pub(super) fn find(
        &mut self,
        old: &[Token],
        new: &[Token],
        piece: &UnsolvedPiece,
        found: &mut Vec<Run>,
        budget: &mut u64,
    ) -> Found {
        found.clear();
        self.index(old, piece);
        let most = RUNS_PER_LINE * (piece.old.len() + piece.new.len());
        let rarest = self.rarest(new, piece);
        if let 1..=MAX_OCCURRENCES = rarest {
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
            1..=MAX_OCCURRENCES => Found::Runs,
            _ => Found::OnlyFrequent,
        }
    }

    fn index(&mut self, old: &[Token], piece: &UnsolvedPiece) {
        // The number wraps around after 2^32 pieces.
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

    /// Returns the number of occurrences of the rarest common token on the old side.
    fn rarest(&self, new: &[Token], piece: &UnsolvedPiece) -> u32 {
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

    /// Adds the runs that start at a new line, one for each occurrence on the old side. Returns the next line to
    /// examine.
    fn collect(
        &self,
        old: &[Token],
        new: &[Token],
        piece: &UnsolvedPiece,
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

/// Returns the number of equal tokens from two positions on, within the piece.
#[inline]
fn equal_from(old: &[Token], new: &[Token], piece: &UnsolvedPiece, old_at: u32, new_at: u32) -> u32 {
    let (a, b) = (&old[old_at as usize..piece.old.end as usize], &new[new_at as usize..piece.new.end as usize]);
    a.iter().zip(b).take_while(|(a, b)| a == b).count() as u32
}
