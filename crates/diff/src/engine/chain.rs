//! Of many runs that cross each other, those to keep.

use super::runs::Run;

/// Reduces `runs`, which are in the order of the new side and do not overlap there, to the chain of greatest total length
/// that is in order on the old side too.
pub(super) fn heaviest_chain(runs: &mut Vec<Run>) {
    let in_order = |pair: &[Run]| pair[0].old + pair[0].length <= pair[1].old;
    if runs.windows(2).all(in_order) {
        return;
    }
    // The heaviest chain that ends within a prefix of the old side, for each prefix that ends where a run ends: a Fenwick
    // tree of maxima over these ends. Runs come in new order, so whatever is in the tree may precede the one at hand.
    let mut ends: Vec<u32> = runs.iter().map(|run| run.old + run.length).collect();
    ends.sort_unstable();
    let mut tree = vec![Chain { weight: 0, last: NONE }; ends.len() + 1];
    let mut before = vec![NONE; runs.len()];
    let mut best = tree[0];
    for (run, at) in runs.iter().zip(0u32..) {
        let mut prefix = ends.partition_point(|&end| end <= run.old);
        let mut longest = tree[0];
        while prefix > 0 {
            longest = longest.heavier(tree[prefix]);
            prefix &= prefix - 1;
        }
        before[at as usize] = longest.last;
        let chain = Chain { weight: longest.weight + run.length, last: at };
        best = best.heavier(chain);
        let mut place = ends.partition_point(|&end| end < run.old + run.length) + 1;
        while place < tree.len() {
            tree[place] = tree[place].heavier(chain);
            place += place & place.wrapping_neg();
        }
    }
    let mut chain = Vec::new();
    let mut at = best.last;
    while at != NONE {
        chain.push(runs[at as usize]);
        at = before[at as usize];
    }
    chain.reverse();
    *runs = chain;
}

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Chain {
    weight: u32,
    /// The run it ends with.
    last: u32,
}

impl Chain {
    /// The heavier of two; the earlier found of two equal ones.
    fn heavier(self, other: Self) -> Self {
        if other.weight > self.weight { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(runs: &[(u32, u32)], expected: &[(u32, u32)]) {
        let mut new = 0;
        let mut chain: Vec<Run> = runs
            .iter()
            .map(|&(old, length)| {
                new += length + 1;
                Run { old, new: new - length - 1, length }
            })
            .collect();
        heaviest_chain(&mut chain);
        let kept: Vec<(u32, u32)> = chain.iter().map(|run| (run.old, run.length)).collect();
        assert_eq!(kept, expected, "of {runs:?}");
    }

    #[test]
    fn chains() {
        check(&[], &[]);
        check(&[(3, 1)], &[(3, 1)]);
        check(&[(0, 2), (2, 5), (9, 1)], &[(0, 2), (2, 5), (9, 1)]);
        // One long run outweighs two short ones, and three outweigh it.
        check(&[(50, 5), (0, 2), (10, 2)], &[(50, 5)]);
        check(&[(50, 5), (0, 2), (10, 2), (20, 2)], &[(0, 2), (10, 2), (20, 2)]);
        // Runs that overlap on the old side cannot both stay.
        check(&[(0, 10), (5, 3)], &[(0, 10)]);
        check(&[(0, 3), (2, 10)], &[(2, 10)]);
    }
}
