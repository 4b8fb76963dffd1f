//! The vocabulary of an encoding: the rank of each token.
//!
//! The program contains the tokens and their lengths. The index over them, a hash table with linear probing, is built at first
//! use: it takes a few milliseconds, and most commands never count a token.

use std::sync::LazyLock;

/// The position of a token in its vocabulary. Byte-pair encoding merges the pair of lowest rank first.
pub(super) type Rank = u32;

/// An empty slot. No token has this rank.
const EMPTY: u32 = u32::MAX;

/// Number of low bits of a slot that hold the rank. The higher bits hold a part of the token's hash, which rejects most
/// other tokens without reading them.
const RANK_BITS: u32 = 18;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;

/// A vocabulary with its index.
pub(super) struct Ranks {
    /// All tokens one after another, by rank.
    tokens: &'static [u8],
    /// Start of each token in `tokens`, followed by the end of the last one.
    starts: Box<[u32]>,
    /// Hash table whose size is a power of two, at most half full.
    slots: Box<[u32]>,
}

macro_rules! ranks {
    ($name:literal) => {
        LazyLock::new(|| {
            Ranks::new(
                include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".tokens")),
                include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".lengths")),
            )
        })
    };
}

pub(super) static O200K: LazyLock<Ranks> = ranks!("o200k");
pub(super) static CL100K: LazyLock<Ranks> = ranks!("cl100k");

impl Ranks {
    fn new(tokens: &'static [u8], lengths: &[u8]) -> Self {
        let mut starts = Vec::with_capacity(lengths.len() + 1);
        starts.push(0);
        let mut slots = vec![EMPTY; (lengths.len() * 2).next_power_of_two()];
        let mask = slots.len() - 1;
        let mut start = 0;
        for (rank, length) in (0..RANK_MASK).zip(lengths) {
            let end = start + u32::from(*length);
            starts.push(end);
            let hash = hash(&tokens[start as usize..end as usize]);
            let mut at = hash as usize & mask;
            while slots[at] != EMPTY {
                at = (at + 1) & mask;
            }
            slots[at] = tag(hash) | rank;
            start = end;
        }
        Self { tokens, starts: starts.into(), slots: slots.into() }
    }

    /// Returns the rank of a token, or `None` if the bytes are not one token.
    pub(super) fn rank(&self, bytes: &[u8]) -> Option<Rank> {
        let hash = hash(bytes);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return None;
            }
            if slot & !RANK_MASK == tag(hash) && self.token(slot & RANK_MASK) == bytes {
                return Some(slot & RANK_MASK);
            }
            at = (at + 1) & mask;
        }
    }

    fn token(&self, rank: Rank) -> &'static [u8] {
        &self.tokens[self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize]
    }
}

/// Returns the part of a hash that a slot holds, shifted above the rank.
fn tag(hash: u64) -> u32 {
    ((hash >> 32) as u32) << RANK_BITS
}

/// Hashes a token. Fast for short keys. The keys are fixed, so input cannot cause collisions.
fn hash(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        state = (state.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    let mut word = [0; 8];
    word[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    state = (state.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    // The high bits of a product depend on all input bits, the low ones do not. Fold them.
    state ^ (state >> 29)
}
