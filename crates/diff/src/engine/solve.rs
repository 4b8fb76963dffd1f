//! Computes edits from tokens with bounded work.
//!
//! A piece of both sides is split at common lines, and the parts in between are split again, until nothing is left:
//!
//! 1. Collect the runs of equal lines that start with the rarest common line, and take the heaviest chain in order
//!    ([`Chains`]). This follows the idea of patience and histogram diffs, but a whole chain at a time avoids their
//!    many rounds.
//! 2. If every line is frequent or the budget is exhausted, compute a minimal edit script: by greedy search while few
//!    edits suffice ([`greedy`]), else by Myers' algorithm with git's heuristics (`gix-imara-diff`).
//!
//! Pieces are kept on an explicit stack, so the call depth is constant.

use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, Token};

use super::chain::Chains;
use super::greedy;
use super::runs::{Found, Run, Runs};

/// A replacement of the old tokens `old` by the new tokens `new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) old: Range<u32>,
    pub(crate) new: Range<u32>,
}

/// A part of both sides that is not compared yet.
#[derive(Clone, Debug)]
pub(super) struct UnsolvedPiece {
    pub(super) old: Range<u32>,
    pub(super) new: Range<u32>,
}

/// Maximum number of steps per line for finding runs, in total. Ordinary files need fewer than ten.
const WORK_PER_LINE: u64 = 64;

/// Maximum number of lines on both sides that Myers' algorithm processes at once.
const MAX_LINES_AT_ONCE: usize = 1 << 18;
const BLOCK: usize = 1 << 15;

/// Compares sequences and reuses its buffers.
#[derive(Default)]
pub(crate) struct Solver {
    runs: Runs,
    chains: Chains,
    found: Vec<Run>,
    stack: Vec<UnsolvedPiece>,
    myers: Myers,
}

impl Solver {
    /// Finds the edits from `old` to `new`. Tokens are below `bound`; a token that `old` lacks is `bound` itself.
    pub(crate) fn solve(&mut self, old: &[Token], new: &[Token], bound: u32) -> Vec<Edit> {
        let budget = WORK_PER_LINE * (old.len() + new.len()) as u64 + 4096;
        self.solve_within(budget, old, new, bound)
    }

    fn solve_within(&mut self, mut budget: u64, old: &[Token], new: &[Token], bound: u32) -> Vec<Edit> {
        let Self { runs, chains, found, stack, myers } = self;
        let mut edits = Edits(Vec::new());
        if new.iter().all(|token| token.0 == bound) {
            edits.push(0..old.len() as u32, 0..new.len() as u32);
            return edits.0;
        }
        runs.reserve(old.len(), bound);
        stack.push(UnsolvedPiece { old: 0..old.len() as u32, new: 0..new.len() as u32 });
        while let Some(mut piece) = stack.pop() {
            trim(old, new, &mut piece);
            if piece.old.is_empty() || piece.new.is_empty() {
                edits.push(piece.old, piece.new);
                continue;
            }
            if budget == 0 {
                myers.run_in_blocks(old, new, bound, &piece, &mut edits);
                continue;
            }
            match runs.find(old, new, &piece, found, &mut budget) {
                Found::NothingInCommon => edits.push(piece.old, piece.new),
                Found::OnlyFrequent => myers.run_in_blocks(old, new, bound, &piece, &mut edits),
                Found::Runs => {
                    chains.keep_heaviest(&piece, found);
                    let mut end = (piece.old.end, piece.new.end);
                    for run in found.iter().rev() {
                        stack
                            .push(UnsolvedPiece { old: run.old + run.length..end.0, new: run.new + run.length..end.1 });
                        end = (run.old, run.new);
                    }
                    stack.push(UnsolvedPiece { old: piece.old.start..end.0, new: piece.new.start..end.1 });
                }
            }
        }
        edits.0
    }
}

fn trim(old: &[Token], new: &[Token], piece: &mut UnsolvedPiece) {
    let (a, b) = (&old[usizes(&piece.old)], &new[usizes(&piece.new)]);
    let prefix = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let suffix = a[prefix..].iter().rev().zip(b[prefix..].iter().rev()).take_while(|(a, b)| a == b).count();
    piece.old = piece.old.start + prefix as u32..piece.old.end - suffix as u32;
    piece.new = piece.new.start + prefix as u32..piece.new.end - suffix as u32;
}

/// Computes minimal edit scripts of single pieces.
#[derive(Default)]
struct Myers {
    diff: Diff,
    before: Vec<Token>,
    after: Vec<Token>,
    /// Number of each token within the piece. It is kept between pieces, so that a small piece is cheap.
    numbers: Vec<u32>,
}

impl Myers {
    /// Processes a very large piece in blocks with the same share of each side, because the library's work grows faster
    /// than its input. Since no line is rare, a few additional lines at the block boundaries are acceptable.
    fn run_in_blocks(&mut self, old: &[Token], new: &[Token], bound: u32, piece: &UnsolvedPiece, edits: &mut Edits) {
        if let Some(script) = greedy::few_edits(&old[usizes(&piece.old)], &new[usizes(&piece.new)]) {
            for edit in script {
                edits.push_within(piece, edit.old, edit.new);
            }
            return;
        }
        let lines = piece.old.len() + piece.new.len();
        let blocks = if lines > MAX_LINES_AT_ONCE { lines.div_ceil(BLOCK) as u64 } else { 1 };
        let share = |range: &Range<u32>, block: u64| range.start + (range.len() as u64 * block / blocks) as u32;
        for block in 0..blocks {
            let old_block = share(&piece.old, block)..share(&piece.old, block + 1);
            let new_block = share(&piece.new, block)..share(&piece.new, block + 1);
            self.run(old, new, bound, &UnsolvedPiece { old: old_block, new: new_block }, edits);
        }
    }

    fn run(&mut self, old: &[Token], new: &[Token], bound: u32, piece: &UnsolvedPiece, edits: &mut Edits) {
        let (old, new) = (&old[usizes(&piece.old)], &new[usizes(&piece.new)]);
        // The library allocates arrays as long as the greatest token, so a small piece gets small token numbers.
        if self.numbers.len() <= bound as usize {
            self.numbers.resize(bound as usize + 1, u32::MAX);
        }
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
            edits.push_within(piece, hunk.before, hunk.after);
        }
    }
}

pub(super) fn usizes(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

/// Edits in order; adjacent edits are merged.
struct Edits(Vec<Edit>);

impl Edits {
    /// Adds an edit with positions relative to a piece.
    fn push_within(&mut self, piece: &UnsolvedPiece, old: Range<u32>, new: Range<u32>) {
        let (old_start, new_start) = (piece.old.start, piece.new.start);
        self.push(old_start + old.start..old_start + old.end, new_start + new.start..new_start + new.end);
    }

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

    /// Checks that the edits turn `old` into `new`, and returns the number of changed tokens.
    fn check(old: &[u32], new: &[u32]) -> usize {
        let bound = old.iter().copied().max().map_or(0, |max| max + 1);
        let old: Vec<Token> = old.iter().copied().map(Token).collect();
        let new: Vec<Token> = new.iter().map(|&token| Token(token.min(bound))).collect();
        let mut solver = Solver::default();
        let edits = solver.solve(&old, &new, bound);
        assert_eq!(edits, solver.solve(&old, &new, bound), "a used solver gives the same");
        for budget in [0, 1, old.len() as u64] {
            assert_eq!(apply(&old, &new, &solver.solve_within(budget, &old, &new, bound)), new, "budget {budget}");
        }
        assert_eq!(apply(&old, &new, &edits), new);
        edits.iter().map(|edit| edit.old.len() + edit.new.len()).sum()
    }

    fn apply(old: &[Token], new: &[Token], edits: &[Edit]) -> Vec<Token> {
        let mut result = Vec::new();
        let mut at = 0;
        for edit in edits {
            assert!(edit.old.start as usize >= at, "edits overlap: {edits:?}");
            result.extend_from_slice(&old[at..edit.old.start as usize]);
            result.extend_from_slice(&new[usizes(&edit.new)]);
            at = edit.old.end as usize;
        }
        result.extend_from_slice(&old[at..]);
        result
    }

    #[test]
    fn run_search_respects_budget() {
        let old: Vec<Token> = (0..1000).map(Token).collect();
        let new: Vec<Token> = (0..1000).rev().map(Token).collect();
        let mut runs = Runs::default();
        runs.reserve(old.len(), 1000);
        let mut budget = 10_000;
        let piece = UnsolvedPiece { old: 0..1000, new: 0..1000 };
        runs.find(&old, &new, &piece, &mut Vec::new(), &mut budget);
        assert_eq!(budget, 10_000 - 1000 - 1000 - 1000, "both sides and the runs");
        // Without a budget the whole input goes to Myers' algorithm at once.
        let exhausted = Solver::default().solve_within(0, &old, &new, 1000);
        assert_eq!(apply(&old, &new, &exhausted), new);
    }

    #[test]
    fn large_pieces_are_solved_in_blocks() {
        let (old, new) = (shuffled(150_000, 3, 1), shuffled(150_000, 3, 2));
        let changed = check(&old, &new);
        assert!(changed < 170_000, "most lines are matched all the same: {changed}");
        // Few edits are found regardless of the size.
        let mut inserted = vec![7; 200_000];
        for at in [10, 70_000, 199_000] {
            inserted.insert(at, 1_000_000);
        }
        assert_eq!(check(&vec![7; 200_000], &inserted), 3);
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
    fn moved_block_stays_whole() {
        let block: Vec<u32> = (100..150).collect();
        let rest: Vec<u32> = (0..60).collect();
        let (old, new) = ([&rest[..], &block].concat(), [&block[..], &rest].concat());
        assert_eq!(check(&old, &new), 100, "the smaller block moves");
    }

    #[test]
    fn scattered_edits_stay_near_linear_and_exact() {
        // Every second line changed makes a plain histogram diff quadratic.
        let old: Vec<u32> = (0..60_000).collect();
        let new: Vec<u32> = (0..60_000).map(|i| if i % 2 == 0 { i } else { 1_000_000 }).collect();
        assert_eq!(check(&old, &new), 60_000);
        // The same input with every line occurring twice, so no line is unique.
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
