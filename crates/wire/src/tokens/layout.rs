//! The layout of the vocabulary tables, shared by the build script that writes them and by the code that reads them.
//!
//! A table is open-addressed with linear probing and a power-of-two number of slots. A slot is a little-endian `u32`: the
//! token's rank in the low 18 bits, and 14 bits of its hash above, which tell most other tokens apart without reading them.

/// Size of one slot in the table's bytes.
pub(super) const SLOT_BYTES: usize = 4;

/// A slot without a token. No token has this rank.
pub(super) const EMPTY: u32 = u32::MAX;

/// Number of low bits of a slot that hold the rank.
pub(super) const RANK_BITS: u32 = 18;

/// The part of a hash that a slot holds, in its place above the rank.
pub(super) fn tag(hash: u64) -> u32 {
    ((hash >> 32) as u32) << RANK_BITS
}

/// Hashes a token. Fast for the few bytes that tokens have; not for input that an attacker chooses, which only ever is looked up.
pub(super) fn hash(bytes: &[u8]) -> u64 {
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
    // The high bits of a product depend on all input bits, the low ones do not: fold them.
    state ^ (state >> 29)
}
