//! Writes the vocabularies of the public encodings, in the layout that `src/tokens/ranks.rs` reads.
//!
//! `bpe-openai` brings the encodings' vocabularies and, for its own algorithm, 70 MB of automata. Only the vocabularies become
//! part of the program: 2.3 MB. Their hash tables are built at first use.

#![allow(clippy::disallowed_methods, reason = "cargo names the directory of the tables in the environment")]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use bpe_openai::byte_pair_encoding::BytePairEncoding;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let directory = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?);
    write_vocabulary(&directory, "o200k", &bpe_openai::o200k_base().bpe)?;
    write_vocabulary(&directory, "cl100k", &bpe_openai::cl100k_base().bpe)
}

/// Writes one encoding's tokens one after another, by rank, and the length of each as one byte.
fn write_vocabulary(directory: &Path, name: &str, vocabulary: &BytePairEncoding) -> io::Result<()> {
    let count = u32::try_from(vocabulary.num_tokens()).map_err(io::Error::other)?;
    let mut tokens = Vec::new();
    let mut lengths = Vec::new();
    for rank in 0..count {
        let token = vocabulary.token_bytes(rank);
        tokens.extend_from_slice(token);
        lengths.push(u8::try_from(token.len()).map_err(io::Error::other)?);
    }
    fs::write(directory.join(format!("{name}.tokens")), tokens)?;
    fs::write(directory.join(format!("{name}.lengths")), lengths)
}
