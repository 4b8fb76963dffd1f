//! Tokens to edits, with a bound on the work.
//!
//! Three ways to find what two sequences have in common, each used where it is best:
//!
//! 1. **Histogram**: split at the longest run around the rarest common line. Its output is what people like to read, but a
//!    file with many scattered edits makes it quadratic, so it works on a budget.
//! 2. **Anchors**: where the budget ran out, split at all lines that occur exactly once on both sides, in one go.
//! 3. **Myers** (`gix-imara-diff`, with git's heuristics): what has neither rare nor unique lines.
//!
//! Pieces wait on a stack of our own rather than on the call stack, so depth is no concern.

use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, Token};

use super::anchors::Anchors;
use super::histogram::{Histogram, Step};

/// Old tokens `old` become new tokens `new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: Range<u32>,
    pub(crate) new: Range<u32>,
}

/// A part of both sides that still has to be compared.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) old: Range<u32>,
    pub(super) new: Range<u32>,
    /// How many times it has been split at anchors; each level has a budget of its own.
    pub(super) level: usize,
}

/// What the histogram may do at each level, in steps per line. Real files need under ten.
const WORK_PER_LINE: u64 = 48;
const LEVELS: usize = 4;

/// Compares two sequences whose common ends have been trimmed. Tokens of `new` that `old` lacks are `distinct`.
pub(crate) fn solve(old: &[Token], new: &[Token], distinct: u32) -> Vec<Edit> {
    let mut edits = Edits(Vec::new());
    let whole = Piece { old: 0..old.len() as u32, new: 0..new.len() as u32, level: 0 };
    let histogram = Histogram::new(old, new, distinct);
    let mut anchors = Anchors::new(old, new, distinct);
    let mut myers = Myers::default();
    let mut budgets = [WORK_PER_LINE * (old.len() + new.len()) as u64 + 4096; LEVELS];
    let mut stack = vec![whole];
    while let Some(mut piece) = stack.pop() {
        trim(old, new, &mut piece);
        if piece.old.is_empty() || piece.new.is_empty() {
            edits.push(piece.old, piece.new);
            continue;
        }
        match histogram.step(&piece, &mut budgets[piece.level]) {
            Step::Split(run) => {
                let Piece { old, new, level } = piece;
                stack.push(Piece { old: run.old + run.length..old.end, new: run.new + run.length..new.end, level });
                stack.push(Piece { old: old.start..run.old, new: new.start..run.new, level });
            }
            Step::NothingInCommon => edits.push(piece.old, piece.new),
            Step::TooRepetitive => myers.run(old, new, distinct, &piece, &mut edits),
            Step::OutOfBudget => {
                let split = piece.level + 1 < LEVELS && anchors.split(&piece, &mut stack);
                if !split {
                    myers.run(old, new, distinct, &piece, &mut edits);
                }
            }
        }
    }
    edits.0
}

fn trim(old: &[Token], new: &[Token], piece: &mut Piece) {
    let (a, b) = (&old[usizes(&piece.old)], &new[usizes(&piece.new)]);
    let prefix = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let suffix = a[prefix..].iter().rev().zip(b[prefix..].iter().rev()).take_while(|(a, b)| a == b).count();
    piece.old = piece.old.start + prefix as u32..piece.old.end - suffix as u32;
    piece.new = piece.new.start + prefix as u32..piece.new.end - suffix as u32;
}

/// The library's Myers on one piece at a time.
#[derive(Default)]
struct Myers {
    diff: Diff,
    before: Vec<Token>,
    after: Vec<Token>,
    /// The piece's own number of each token, kept between pieces so that a small piece costs little.
    numbers: Vec<u32>,
}

impl Myers {
    fn run(&mut self, old: &[Token], new: &[Token], distinct: u32, piece: &Piece, edits: &mut Edits) {
        let (old, new) = (&old[usizes(&piece.old)], &new[usizes(&piece.new)]);
        // The library counts tokens in arrays as long as the greatest one, so a small piece gets small numbers.
        self.numbers.resize(distinct as usize + 1, u32::MAX);
        let mut next = 0;
        for (tokens, renumbered) in [(old, &mut self.before), (new, &mut self.after)] {
            renumbered.clear();
            renumbered.extend(tokens.iter().map(|token| {
                let number = &mut self.numbers[token.0 as usize];
                if *number == u32::MAX {
                    *number = next;
                    next += 1;
                }
                Token(*number)
            }));
        }
        for token in old.iter().chain(new) {
            self.numbers[token.0 as usize] = u32::MAX;
        }
        self.diff.compute_with(Algorithm::Myers, &self.before, &self.after, next);
        for hunk in self.diff.hunks() {
            edits.push(
                piece.old.start + hunk.before.start..piece.old.start + hunk.before.end,
                piece.new.start + hunk.after.start..piece.new.start + hunk.after.end,
            );
        }
    }
}

pub(super) fn usizes(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Edits in order; two that touch are one.
struct Edits(Vec<Edit>);

impl Edits {
    fn push(&mut self, old: Range<u32>, new: Range<u32>) {
        if old.is_empty() && new.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => self.0.push(Edit { old, new }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies the edits to `old` and checks that `new` comes out; returns how many tokens changed.
    fn check(old: &[u32], new: &[u32]) -> usize {
        let distinct = old.iter().copied().max().map_or(0, |max| max + 1);
        let old: Vec<Token> = old.iter().copied().map(Token).collect();
        let new: Vec<Token> = new.iter().map(|&token| Token(token.min(distinct))).collect();
        let edits = solve(&old, &new, distinct);
        let mut result = Vec::new();
        let mut at = 0;
        for edit in &edits {
            assert!(edit.old.start as usize >= at, "edits overlap: {edits:?}");
            result.extend_from_slice(&old[at..edit.old.start as usize]);
            result.extend_from_slice(&new[usizes(&edit.new)]);
            at = edit.old.end as usize;
        }
        result.extend_from_slice(&old[at..]);
        assert_eq!(result, new);
        edits.iter().map(|edit| edit.old.len() + edit.new.len()).sum()
    }

    fn shuffled(length: u32, distinct: u32, seed: u64) -> Vec<u32> {
        let mut state = seed;
        let mut step = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        (0..length).map(|_| (step() % u64::from(distinct)) as u32).collect()
    }

    #[test]
    fn small_cases() {
        assert_eq!(check(&[], &[]), 0);
        assert_eq!(check(&[1, 2, 3], &[1, 2, 3]), 0);
        assert_eq!(check(&[1, 2, 3], &[1, 3]), 1);
        assert_eq!(check(&[1, 2, 3], &[4, 5]), 5);
        assert_eq!(check(&[1, 2, 3, 4, 5], &[1, 9, 3, 8, 5]), 4);
        assert_eq!(check(&[7; 300], &[7; 310]), 10);
    }

    #[test]
    fn scattered_edits_stay_near_linear_and_exact() {
        // Every second of many lines changed makes a plain histogram quadratic.
        let old: Vec<u32> = (0..60_000).collect();
        let new: Vec<u32> = (0..60_000).map(|i| if i % 2 == 0 { i } else { 1_000_000 }).collect();
        assert_eq!(check(&old, &new), 60_000);
        // The same with lines that occur twice, so that no line is unique.
        let old: Vec<u32> = (0..60_000).map(|i| i % 30_000).collect();
        let new: Vec<u32> = (0..60_000).map(|i| if i % 2 == 0 { i % 30_000 } else { 1_000_000 }).collect();
        assert_eq!(check(&old, &new), 60_000);
    }

    #[test]
    fn shuffles_of_any_alphabet_round_trip() {
        for distinct in [1, 2, 7, 50, 2_000, 100_000] {
            check(&shuffled(5_000, distinct, 1), &shuffled(5_000, distinct, 2));
        }
    }
}
