//! Byte-pair encoding: counts the tokens of a run of bytes.
//!
//! Encoding starts with one part per byte. It repeatedly merges the two neighbours that form the token of lowest rank,
//! the leftmost on a tie, until no neighbours form a token.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ranks::{Rank, Ranks};

/// Maximum size in bytes of a run that is merged by scanning. A heap is faster for longer runs and avoids quadratic
/// time.
const MAX_SCANNED_BYTES: usize = 64;

/// The rank of a part that cannot be merged with its successor.
const NEVER: Rank = Rank::MAX;

/// Counts tokens and reuses its buffers for the next run.
#[derive(Default)]
pub(super) struct Merger {
    parts: Vec<ScannedPart>,
    nodes: Vec<HeapPart>,
    queue: BinaryHeap<Reverse<(Rank, u32)>>,
}

/// A part of a run that is merged by scanning. The last one marks the end of the run.
struct ScannedPart {
    start: usize,
    /// Rank of this part and the next as one token.
    merged: Rank,
}

/// A part of a run that is merged by heap, at the index of its first byte.
struct HeapPart {
    previous: u32,
    /// The first byte after this part.
    end: u32,
    /// Rank of this part and the next as one token. A queue entry with another rank is out of date.
    merged: Rank,
}

impl Merger {
    /// Counts the tokens of a run that the encoding does not split further.
    pub(super) fn count(&mut self, ranks: &Ranks, run: &[u8]) -> usize {
        if run.len() < 2 || ranks.rank(run).is_some() {
            return usize::from(!run.is_empty());
        }
        if run.len() <= MAX_SCANNED_BYTES { self.count_by_scan(ranks, run) } else { self.count_by_heap(ranks, run) }
    }

    fn count_by_scan(&mut self, ranks: &Ranks, run: &[u8]) -> usize {
        let parts = &mut self.parts;
        parts.clear();
        parts.extend((0..=run.len()).map(|start| ScannedPart { start, merged: NEVER }));
        let merged = |parts: &[ScannedPart], at: usize| match parts.get(at + 2) {
            Some(end) => ranks.rank(&run[parts[at].start..end.start]).unwrap_or(NEVER),
            None => NEVER,
        };
        for at in 0..run.len() {
            parts[at].merged = merged(parts, at);
        }
        while let Some((at, _)) =
            parts.iter().enumerate().filter(|(_, part)| part.merged != NEVER).min_by_key(|(_, part)| part.merged)
        {
            parts.remove(at + 1);
            parts[at].merged = merged(parts, at);
            if at > 0 {
                parts[at - 1].merged = merged(parts, at - 1);
            }
        }
        parts.len() - 1
    }

    fn count_by_heap(&mut self, ranks: &Ranks, run: &[u8]) -> usize {
        let Self { nodes, queue, .. } = self;
        nodes.clear();
        queue.clear();
        let length = run.len() as u32;
        nodes.extend((0..length).map(|at| HeapPart { previous: at.saturating_sub(1), end: at + 1, merged: NEVER }));
        // Recompute the merge of a part with its successor, and queue it.
        let update = |nodes: &mut [HeapPart], queue: &mut BinaryHeap<_>, at: u32| {
            let next = nodes[at as usize].end;
            let merged = if next < length {
                ranks.rank(&run[at as usize..nodes[next as usize].end as usize]).unwrap_or(NEVER)
            } else {
                NEVER
            };
            nodes[at as usize].merged = merged;
            if merged != NEVER {
                queue.push(Reverse((merged, at)));
            }
        };
        for at in 0..length {
            update(nodes, queue, at);
        }
        let mut count = run.len();
        while let Some(Reverse((rank, at))) = queue.pop() {
            if nodes[at as usize].merged != rank {
                continue;
            }
            let next = nodes[at as usize].end;
            let after = nodes[next as usize].end;
            nodes[next as usize].merged = NEVER;
            nodes[at as usize].end = after;
            if after < length {
                nodes[after as usize].previous = at;
            }
            count -= 1;
            update(nodes, queue, at);
            if at > 0 {
                let previous = nodes[at as usize].previous;
                update(nodes, queue, previous);
            }
        }
        count
    }
}
