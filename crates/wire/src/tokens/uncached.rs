//! Counts a single text of any length.

use std::collections::HashMap;

use super::merge::Merger;
use super::{Exactness, TokenEncoding, Tokenizer, Tokens};

/// Maximum size in bytes of a run that is counted as a whole.
///
/// An encoding splits text into words and merges the bytes of each word, with a state for the whole word. Words are
/// short; longer runs are repeated characters or binary data. They are counted in pieces, so the count may be off by
/// one token per cut, one in several hundred.
const MAX_RUN_BYTES: usize = 4 << 10;

/// Minimum size in bytes of a run that is cached while a text is counted.
///
/// Such runs are usually rulers and indentation, which recur and need many merges.
const MIN_CACHED_RUN_BYTES: usize = 32;

/// Maximum number of cached runs per text.
const MAX_CACHED_RUNS: usize = 1 << 10;

/// Counts the tokens of a text without a cache.
///
/// Special tokens such as `<|endoftext|>` are counted as plain text, because messages are encoded that way.
pub fn count(tokenizer: Tokenizer, text: &str) -> Tokens {
    count_with(tokenizer.encoding, text) + Tokens { count: 0, exactness: tokenizer.exactness }
}

/// Counts with the given encoding.
pub(super) fn count_with(encoding: TokenEncoding, text: &str) -> Tokens {
    let ranks = encoding.ranks();
    let mut merger = Merger::default();
    let mut tokens = Tokens::ZERO;
    let mut long: HashMap<&[u8], u64> = HashMap::new();
    for run in encoding.splitter().split(text) {
        if run.len() <= MIN_CACHED_RUN_BYTES {
            tokens.count += merger.count(ranks, run.as_bytes()) as u64;
            continue;
        }
        if run.len() > MAX_RUN_BYTES {
            tokens.exactness = Exactness::Estimate;
        }
        for part in run.as_bytes().chunks(MAX_RUN_BYTES) {
            tokens.count += long.get(part).copied().unwrap_or_else(|| {
                let count = merger.count(ranks, part) as u64;
                if long.len() < MAX_CACHED_RUNS {
                    long.insert(part, count);
                }
                count
            });
        }
    }
    tokens
}
