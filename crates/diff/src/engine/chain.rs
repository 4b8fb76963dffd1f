//! Selects the heaviest chain among crossing runs.

use super::runs::Run;
use super::solve::UnsolvedPiece;

/// Finds heaviest chains and reuses its buffers.
#[derive(Default)]
pub(super) struct Chains {
    /// The heaviest chain ending within each prefix of the old side, as a Fenwick tree of maxima.
    tree: Vec<Chain>,
    /// For each run, its predecessor in the heaviest chain that it ends.
    before: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Chain {
    weight: u32,
    /// Last run of the chain.
    last: u32,
}

const NONE: u32 = u32::MAX;
const EMPTY: Chain = Chain { weight: 0, last: NONE };

impl Chains {
    /// Reduces runs to the chain of greatest total length that is in order on both sides. The input order is described
    /// at [`Found::Runs`](super::runs::Found::Runs).
    pub(super) fn keep_heaviest(&mut self, piece: &UnsolvedPiece, runs: &mut Vec<Run>) {
        let in_order = |pair: &[Run]| pair[0].new < pair[1].new && pair[0].old + pair[0].length <= pair[1].old;
        if runs.windows(2).all(in_order) {
            return;
        }
        self.tree.clear();
        self.tree.resize(piece.old.len() + 1, EMPTY);
        self.before.clear();
        let mut best = EMPTY;
        for (run, at) in runs.iter().zip(0u32..) {
            // Runs are in the order of the new side, so every chain in the tree may precede this run. A run with the
            // same new line starts further down on the old side, outside of the prefix.
            let start = (run.old - piece.old.start) as usize;
            let longest = self.heaviest_within(start);
            self.before.push(longest.last);
            let chain = Chain { weight: longest.weight + run.length, last: at };
            best = best.heavier(chain);
            self.add(start + run.length as usize, chain);
        }
        // The chain is found from its end. Build it at the end of the list, whose runs are no longer needed.
        let mut at = best.last;
        let mut kept = runs.len();
        while at != NONE {
            kept -= 1;
            runs[kept] = runs[at as usize];
            at = self.before[at as usize];
        }
        runs.drain(..kept);
    }

    fn heaviest_within(&self, mut prefix: usize) -> Chain {
        let mut heaviest = EMPTY;
        while prefix > 0 {
            heaviest = heaviest.heavier(self.tree[prefix]);
            prefix &= prefix - 1;
        }
        heaviest
    }

    fn add(&mut self, mut end: usize, chain: Chain) {
        while let Some(node) = self.tree.get_mut(end) {
            *node = node.heavier(chain);
            end += end & end.wrapping_neg();
        }
    }
}

impl Chain {
    /// Returns the heavier chain; the earlier one if both are equal.
    fn heavier(self, other: Self) -> Self {
        if other.weight > self.weight { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(runs: &[(u32, u32, u32)], expected: &[(u32, u32, u32)]) {
        let piece = UnsolvedPiece { old: 0..100, new: 0..100 };
        let mut chain: Vec<Run> = runs.iter().map(|&(old, new, length)| Run { old, new, length }).collect();
        Chains::default().keep_heaviest(&piece, &mut chain);
        let kept: Vec<_> = chain.iter().map(|run| (run.old, run.new, run.length)).collect();
        assert_eq!(kept, expected, "of {runs:?}");
    }

    #[test]
    fn chains() {
        check(&[], &[]);
        check(&[(3, 0, 1)], &[(3, 0, 1)]);
        check(&[(0, 0, 2), (2, 5, 5), (9, 20, 1)], &[(0, 0, 2), (2, 5, 5), (9, 20, 1)]);
        // One long run outweighs two short ones, but not three.
        check(&[(50, 0, 5), (0, 10, 2), (10, 20, 2)], &[(50, 0, 5)]);
        check(&[(50, 0, 5), (0, 10, 2), (10, 20, 2), (20, 30, 2)], &[(0, 10, 2), (10, 20, 2), (20, 30, 2)]);
        // Runs that overlap on the old side, or share their new line, exclude each other.
        check(&[(0, 0, 10), (5, 20, 3)], &[(0, 0, 10)]);
        check(&[(0, 0, 3), (2, 20, 10)], &[(2, 20, 10)]);
        check(&[(40, 0, 1), (20, 0, 2), (0, 0, 1), (22, 10, 3)], &[(20, 0, 2), (22, 10, 3)]);
    }
}
