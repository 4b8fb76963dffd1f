//! Myers' greedy search for the shortest edit script, limited to few edits.
//!
//! It serves sequences of frequent lines that differ in a few places. The cost is the length times the number of edits.
//! Beyond the limit the piece is left to an algorithm with heuristics.

use gix_imara_diff::Token;

use super::solve::Edit;

const MAX_EDITS: usize = 24;
/// Index of the main diagonal, with one spare diagonal at either end.
const MIDDLE: usize = MAX_EDITS + 1;

/// Returns the edits from `old` to `new`, if at most [`MAX_EDITS`] lines are added or removed.
pub(super) fn few_edits(old: &[Token], new: &[Token]) -> Option<Vec<Edit>> {
    if old.len().abs_diff(new.len()) > MAX_EDITS {
        return None;
    }
    // `reached[k]` is the position in `old` that a script of `edits` edits reaches on the diagonal k - MAX_EDITS - 1.
    // The position in `new` is the position in `old` minus the diagonal. One array per number of edits is kept for
    // backtracking.
    let mut trace: Vec<[u32; 2 * MIDDLE + 1]> = Vec::new();
    let mut reached = [0u32; 2 * MIDDLE + 1];
    for edits in 0..=MAX_EDITS {
        trace.push(reached);
        for k in (MIDDLE - edits..=MIDDLE + edits).step_by(2) {
            let mut at_old = if edits == 0 { 0 } else { step(&reached, k, MIDDLE, edits).0 } as usize;
            let Some(mut at_new) = (at_old + MIDDLE).checked_sub(k) else { continue };
            if at_old > old.len() || at_new > new.len() {
                // Beyond the edge: no other script continues from here.
                reached[k] = at_old as u32;
                continue;
            }
            let equal = old[at_old..].iter().zip(&new[at_new..]).take_while(|(a, b)| a == b).count();
            at_old += equal;
            at_new += equal;
            reached[k] = at_old as u32;
            if at_old == old.len() && at_new == new.len() {
                return Some(walk_back(&trace, k, MIDDLE, edits, (old.len(), new.len())));
            }
        }
    }
    None
}

/// Returns the start of a script with one more edit on the diagonal `k`, and `true` if that edit is a removal.
fn step(reached: &[u32], k: usize, middle: usize, edits: usize) -> (u32, bool) {
    let lowest = k == middle - edits;
    let highest = k == middle + edits;
    if lowest || (!highest && reached[k - 1] < reached[k + 1]) {
        (reached[k + 1], false)
    } else {
        (reached[k - 1] + 1, true)
    }
}

fn walk_back<const N: usize>(
    trace: &[[u32; N]],
    mut k: usize,
    middle: usize,
    edits: usize,
    end: (usize, usize),
) -> Vec<Edit> {
    let mut script: Vec<Edit> = Vec::new();
    for edits in (1..=edits).rev() {
        let (start, removal) = step(&trace[edits], k, middle, edits);
        let old = start - u32::from(removal);
        k = if removal { k - 1 } else { k + 1 };
        // The previous diagonal determines the position on the new side.
        let new = (old as usize + middle - k) as u32;
        script.push(if removal {
            Edit { old: old..old + 1, new: new..new }
        } else {
            Edit { old: old..old, new: new..new + 1 }
        });
    }
    script.reverse();
    debug_assert!(script.iter().all(|edit| edit.old.end as usize <= end.0 && edit.new.end as usize <= end.1));
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &[u32], new: &[u32], expected: Option<usize>) {
        let tokens = |numbers: &[u32]| numbers.iter().copied().map(Token).collect::<Vec<_>>();
        let (old, new) = (tokens(old), tokens(new));
        let script = few_edits(&old, &new);
        assert_eq!(script.as_ref().map(Vec::len), expected, "{old:?} → {new:?}");
        let Some(script) = script else { return };
        let mut result = Vec::new();
        let mut at = 0;
        for Edit { old: removed, new: added } in script {
            result.extend_from_slice(&old[at..removed.start as usize]);
            assert_eq!(result.len(), added.start as usize);
            result.extend_from_slice(&new[added.start as usize..added.end as usize]);
            at = removed.end as usize;
        }
        result.extend_from_slice(&old[at..]);
        assert_eq!(result, new);
    }

    #[test]
    fn shortest_scripts() {
        check(&[1, 1, 1], &[1, 1, 1], Some(0));
        check(&[1, 1, 1], &[1, 1], Some(1));
        check(&[1, 2, 1, 2], &[2, 1, 2, 1], Some(2));
        check(&[1, 2, 3, 1, 2, 2, 1], &[3, 2, 1, 2, 1, 3], Some(5));
        check(&[], &[1; 24], Some(24));
        check(&[1; 24], &[], Some(24));
        check(&[1; 25], &[], None);
        check(&[1; 13], &[2; 12], None);
        let mut scattered = vec![1; 1000];
        for at in [0, 10, 500, 777, 999] {
            scattered.insert(at, 2);
        }
        check(&[1; 1000], &scattered, Some(5));
        check(&scattered, &[1; 1000], Some(5));
    }

    #[test]
    fn short_pairs_are_exact() {
        let words =
            |length: u32| (0..1u32 << length).map(move |bits| (0..length).map(|at| bits >> at & 1).collect::<Vec<_>>());
        for old in (0..6).flat_map(words) {
            for new in (0..6).flat_map(words) {
                let tokens = |numbers: &[u32]| numbers.iter().copied().map(Token).collect::<Vec<_>>();
                let length = few_edits(&tokens(&old), &tokens(&new)).map(|script| script.len());
                check(&old, &new, Some(distance(&old, &new)));
                assert_eq!(length, Some(distance(&old, &new)));
            }
        }
    }

    /// Computes the edit distance by dynamic programming.
    fn distance(old: &[u32], new: &[u32]) -> usize {
        match (old, new) {
            ([], rest) | (rest, []) => rest.len(),
            ([a, old @ ..], [b, new @ ..]) if a == b => distance(old, new),
            ([_, shorter @ ..], [_, less @ ..]) => 1 + distance(shorter, new).min(distance(old, less)),
        }
    }
}
