//! Writes the tables of the public encodings, in the layout that `src/tokens/ranks.rs` reads in place.
//!
//! `bpe-openai` brings the encodings' vocabularies and, for its own algorithm, 70 MB of automata. Only the vocabularies are
//! wanted: as hash tables they are 6 MB, and nothing has to be loaded or built when the program starts.

#![allow(clippy::disallowed_methods, reason = "cargo names the directory of the tables in the environment")]

#[path = "src/tokens/layout.rs"]
mod layout;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use bpe_openai::byte_pair_encoding::BytePairEncoding;
use layout::{EMPTY, RANK_BITS, SLOT_BYTES, hash, tag};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tokens/layout.rs");
    let directory = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?);
    write_tables(&directory, "o200k", &bpe_openai::o200k_base().bpe)?;
    write_tables(&directory, "cl100k", &bpe_openai::cl100k_base().bpe)
}

/// Writes one encoding's tokens, the offsets at which they end, and the hash table over them.
fn write_tables(directory: &Path, name: &str, vocabulary: &BytePairEncoding) -> io::Result<()> {
    let count = u32::try_from(vocabulary.num_tokens()).map_err(io::Error::other)?;
    let mut tokens = Vec::new();
    let mut ends = Vec::new();
    let mut slots = vec![EMPTY; (count as usize * 2).next_power_of_two()];
    for rank in 0..count {
        let token = vocabulary.token_bytes(rank);
        tokens.extend_from_slice(token);
        ends.extend_from_slice(&u32::try_from(tokens.len()).map_err(io::Error::other)?.to_le_bytes());
        let hash = hash(token);
        let mut at = hash as usize & (slots.len() - 1);
        while slots[at] != EMPTY {
            at = (at + 1) & (slots.len() - 1);
        }
        slots[at] = slot(rank, hash);
    }
    let slots: Vec<u8> = slots.iter().flat_map(|slot| slot.to_le_bytes()).collect();
    assert_eq!(slots.len() % SLOT_BYTES, 0);
    fs::write(directory.join(format!("{name}.tokens")), tokens)?;
    fs::write(directory.join(format!("{name}.ends")), ends)?;
    fs::write(directory.join(format!("{name}.slots")), slots)
}

/// Packs a rank with the part of the hash that the slot's position does not tell.
fn slot(rank: u32, hash: u64) -> u32 {
    assert!(rank < (1 << RANK_BITS) - 1, "the vocabulary has more tokens than a slot can name");
    tag(hash) | rank
}
