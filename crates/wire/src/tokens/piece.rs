//! Counting one text, however long or odd.

use super::{Encoding, Exactness, Tokenizer, Tokens};

/// The longest run without a natural break that is counted as a whole, in bytes.
///
/// An encoding cuts text into words and then merges the bytes of each word; the second step keeps a state for the whole
/// word. Real words are short. What is longer is a run of one letter or a blob, which is counted part by part: the sum may be off
/// by a token at each cut, one in thousands.
pub(super) const LONGEST_RUN: usize = 16 << 10;

/// Counts the tokens of a text, from scratch.
///
/// Marks such as `<|endoftext|>` count as the characters they are, since in a message that is what they are.
pub fn count(tokenizer: Tokenizer, text: &str) -> Tokens {
    by(tokenizer.encoding, text) + Tokens { count: 0, exactness: tokenizer.exactness }
}

/// Counts by an encoding, whoever's it is.
pub(super) fn by(encoding: Encoding, text: &str) -> Tokens {
    let table = encoding.table();
    let mut tokens = Tokens::ZERO;
    for run in table.split(text) {
        if run.len() <= LONGEST_RUN {
            tokens.count += table.bpe.count(run.as_bytes()) as u64;
        } else {
            tokens.exactness = Exactness::About;
            let parts = run.as_bytes().chunks(LONGEST_RUN);
            tokens.count += parts.map(|part| table.bpe.count(part) as u64).sum::<u64>();
        }
    }
    tokens
}
