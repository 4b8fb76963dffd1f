//! Runs of equal lines that a piece of both sides can be split at.

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
    /// At least one run, in the order of the new side.
    Runs,
    NothingInCommon,
    /// What there is in common occurs too often to say where it belongs.
    OnlyFrequent,
}

/// A line that occurs more often than this says nothing about where it belongs.
const MOST_OCCURRENCES: u32 = 63;

/// Where each token stands in the old side of the piece at hand.
#[derive(Default)]
pub(super) struct Runs {
    places: Vec<Places>,
    /// For each old line, the next one of the piece with the same token, if there is one.
    next: Vec<u32>,
    /// The number of the piece at hand. What carries another number is from another piece, so nothing is ever cleared.
    stamp: u32,
}

#[derive(Clone, Copy, Default)]
struct Places {
    stamp: u32,
    count: u32,
    first: u32,
}

impl Runs {
    /// Makes room for an old side of this many lines with tokens below `bound`.
    pub(super) fn reserve(&mut self, lines: usize, bound: u32) {
        if self.places.len() <= bound as usize {
            self.places.resize(bound as usize + 1, Places::default());
        }
        if self.next.len() < lines {
            self.next.resize(lines, 0);
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
        let mut rare = Rare { best: Run { old: 0, new: 0, length: 0 }, occurrences: MOST_OCCURRENCES + 1, work: 0 };
        let mut anything_in_common = false;
        let mut at = piece.new.start;
        while at < piece.new.end {
            let places = self.places[new[at as usize].0 as usize];
            if places.stamp != self.stamp {
                at += 1;
                continue;
            }
            anything_in_common = true;
            if places.count == 1 {
                let length = equal_from(old, new, piece, places.first, at);
                found.push(Run { old: places.first, new: at, length });
                at += length;
            } else if found.is_empty() && places.count <= rare.occurrences {
                // Matters only if nothing unique turns up.
                at = self.extend(old, new, piece, at, places, &mut rare);
            } else {
                at += 1;
            }
        }
        let steps = piece.old.len() + piece.new.len();
        *budget = budget.saturating_sub(steps as u64 + rare.work);
        if !found.is_empty() {
            Found::Runs
        } else if !anything_in_common {
            Found::NothingInCommon
        } else if rare.occurrences > MOST_OCCURRENCES {
            Found::OnlyFrequent
        } else {
            found.push(rare.best);
            Found::Runs
        }
    }

    fn index(&mut self, old: &[Token], piece: &Piece) {
        // Numbers start over after four thousand million pieces.
        self.stamp = self.stamp.checked_add(1).unwrap_or_else(|| {
            self.places.fill(Places::default());
            1
        });
        let lines = usizes(&piece.old);
        for ((token, next), at) in old[lines.clone()].iter().zip(&mut self.next[lines]).zip(piece.old.clone()).rev() {
            let places = &mut self.places[token.0 as usize];
            if places.stamp == self.stamp {
                *next = places.first;
                places.count += 1;
                places.first = at;
            } else {
                *places = Places { stamp: self.stamp, count: 1, first: at };
            }
        }
    }

    /// Grows the match at `at` with each of its old places in both directions, and returns where to look next.
    fn extend(&self, old: &[Token], new: &[Token], piece: &Piece, at: u32, places: Places, rare: &mut Rare) -> u32 {
        let mut next = at + 1;
        let mut seen_to = 0;
        let mut place = places.first;
        for left in (0..places.count).rev() {
            // Not inside the run just looked at.
            if place >= seen_to {
                let mut occurrences = places.count;
                let mut rarer = |line: u32| {
                    occurrences = occurrences.min(self.places[old[line as usize].0 as usize].count);
                };
                let (mut run_old, mut run_new) = (place, at);
                while run_old > piece.old.start
                    && run_new > piece.new.start
                    && old[run_old as usize - 1] == new[run_new as usize - 1]
                {
                    run_old -= 1;
                    run_new -= 1;
                    rarer(run_old);
                }
                let length = equal_from(old, new, piece, place, at);
                (place + 1..place + length).for_each(&mut rarer);
                seen_to = place + length;
                next = next.max(at + length);
                let length = seen_to - run_old;
                rare.work += u64::from(length);
                if length > rare.best.length || occurrences < rare.occurrences {
                    rare.best = Run { old: run_old, new: run_new, length };
                    rare.occurrences = occurrences;
                }
            }
            if left > 0 {
                place = self.next[place as usize];
            }
        }
        next
    }
}

/// How many tokens from two places on are equal within the piece.
#[inline]
fn equal_from(old: &[Token], new: &[Token], piece: &Piece, old_at: u32, new_at: u32) -> u32 {
    let (a, b) = (&old[old_at as usize..piece.old.end as usize], &new[new_at as usize..piece.new.end as usize]);
    a.iter().zip(b).take_while(|(a, b)| a == b).count() as u32
}

/// The best run so far where no token is unique: the one with the rarest token, and of those the longest.
struct Rare {
    best: Run,
    occurrences: u32,
    work: u64,
}
