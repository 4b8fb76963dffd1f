//! The vocabulary of an encoding: the rank of each token, looked up in tables that are part of the program.

use super::layout::{EMPTY, RANK_BITS, SLOT_BYTES, hash, tag};

/// A token's place in its vocabulary. Byte-pair encoding merges the pair of lowest rank first.
pub(super) type Rank = u32;

/// A vocabulary in the layout of [`super::layout`].
pub(super) struct Ranks {
    /// All tokens one after another, by rank.
    tokens: &'static [u8],
    /// Where each token ends in `tokens`, as little-endian `u32`.
    ends: &'static [u8],
    slots: &'static [u8],
}

macro_rules! ranks {
    ($name:literal) => {
        Ranks {
            tokens: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tokens")),
            ends: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".ends")),
            slots: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".slots")),
        }
    };
}

pub(super) static O200K: Ranks = ranks!("o200k");
pub(super) static CL100K: Ranks = ranks!("cl100k");

impl Ranks {
    /// Returns the rank of a token, or `None` if the bytes are not one token.
    pub(super) fn rank(&self, bytes: &[u8]) -> Option<Rank> {
        let hash = hash(bytes);
        let mask = self.slots.len() / SLOT_BYTES - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = word(self.slots, at);
            if slot == EMPTY {
                return None;
            }
            if let Some(rank) = rank_if_tagged(slot, hash)
                && self.token(rank) == bytes
            {
                return Some(rank);
            }
            at = (at + 1) & mask;
        }
    }

    fn token(&self, rank: Rank) -> &'static [u8] {
        let start = if rank == 0 { 0 } else { word(self.ends, rank as usize - 1) };
        &self.tokens[start as usize..word(self.ends, rank as usize) as usize]
    }
}

fn word(table: &[u8], index: usize) -> u32 {
    let mut word = [0; SLOT_BYTES];
    word.copy_from_slice(&table[index * SLOT_BYTES..(index + 1) * SLOT_BYTES]);
    u32::from_le_bytes(word)
}

/// Returns the rank in a slot if its tag agrees with `hash`.
fn rank_if_tagged(slot: u32, hash: u64) -> Option<Rank> {
    const RANKS: u32 = (1 << RANK_BITS) - 1;
    (slot & !RANKS == tag(hash)).then_some(slot & RANKS)
}
