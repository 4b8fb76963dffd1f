//! Counting one text, however long or odd.

use std::collections::HashMap;

use super::merge::Merger;
use super::{Encoding, Exactness, Tokenizer, Tokens};

/// The longest run without a natural break that is counted as a whole, in bytes.
///
/// An encoding cuts text into words and then merges the bytes of each word; the second step keeps a state for the whole
/// word. Real words are short. What is longer is a run of one character or a blob, which is counted part by part: the sum may
/// be off by a token at each cut, one in hundreds.
const LONGEST_RUN: usize = 4 << 10;

/// Runs longer than this are remembered while a text is counted.
///
/// They are nearly always rulers and indentation, which come again and again and take many merges.
const WORTH_REMEMBERING: usize = 32;

/// How many runs are remembered while a text is counted.
const MOST_REMEMBERED: usize = 1 << 10;

/// Counts the tokens of a text, from scratch.
///
/// Marks such as `<|endoftext|>` count as the characters they are, since in a message that is what they are.
pub fn count(tokenizer: Tokenizer, text: &str) -> Tokens {
    by(tokenizer.encoding, text) + Tokens { count: 0, exactness: tokenizer.exactness }
}

/// Counts by an encoding, whoever's it is.
pub(super) fn by(encoding: Encoding, text: &str) -> Tokens {
    let ranks = encoding.ranks();
    let mut merger = Merger::default();
    let mut tokens = Tokens::ZERO;
    let mut long: HashMap<&[u8], u64> = HashMap::new();
    for run in encoding.splitter().split(text) {
        if run.len() <= WORTH_REMEMBERING {
            tokens.count += merger.count(ranks, run.as_bytes()) as u64;
            continue;
        }
        if run.len() > LONGEST_RUN {
            tokens.exactness = Exactness::About;
        }
        for part in run.as_bytes().chunks(LONGEST_RUN) {
            tokens.count += long.get(part).copied().unwrap_or_else(|| {
                let count = merger.count(ranks, part) as u64;
                if long.len() < MOST_REMEMBERED {
                    long.insert(part, count);
                }
                count
            });
        }
    }
    tokens
}
