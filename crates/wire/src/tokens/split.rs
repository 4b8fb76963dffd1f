//! The first step of an encoding: splits a text into words, numbers, punctuation and white space, which are encoded
//! separately.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

/// Index of the pattern that emulates `\s+(?!\S)`. `regex-automata` has no look-ahead, so the pattern matches one more
/// white space character, which is given back.
const TRAILING_BLANKS: usize = 1;

/// The split patterns of an encoding.
pub(super) struct Splitter {
    regex: LazyLock<Regex>,
}

pub(super) static O200K: Splitter = Splitter {
    regex: LazyLock::new(|| {
        compile(concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+$",
        ))
    }),
};

pub(super) static CL100K: Splitter = Splitter {
    regex: LazyLock::new(|| {
        compile(concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+$",
        ))
    }),
};

#[allow(clippy::expect_used, reason = "the patterns are constants, and every test that counts compiles both")]
fn compile(pattern: &str) -> Regex {
    Regex::new_many(&[pattern, r"\s+\s", r"\s+"]).expect("the pattern of an encoding is valid")
}

impl Splitter {
    /// Splits a text into runs that are encoded separately. Joined, the runs are the text.
    pub(super) fn split<'text>(&'static self, text: &'text str) -> impl Iterator<Item = &'text str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let found = self.regex.find(Input::new(rest).anchored(Anchored::Yes))?;
            let mut end = found.end();
            if found.pattern().as_usize() == TRAILING_BLANKS {
                end -= rest[..end].chars().next_back().map_or(0, char::len_utf8);
            }
            let (run, after) = rest.split_at(end);
            rest = after;
            Some(run)
        })
    }
}
