//! Counts remembered by content.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{Encoding, Exactness, Tokenizer, Tokens, piece};

/// How many counts a counter remembers unless told otherwise: the parts of some long sessions, in a few megabytes.
pub const DEFAULT_ENTRIES: usize = 1 << 16;

/// Shorter texts are counted at once: a hash and a place in the cache cost about as much.
const WORTH_REMEMBERING: usize = 16;

/// What a count is remembered by.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    /// The first half of a BLAKE3 hash. 128 bits: two contents that agree in them are not to be found.
    content: u128,
    encoding: Encoding,
    form: Form,
}

/// What was hashed, so that bytes as sent and the text that they stand for are never taken for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Encoded,
    Whole,
}

impl std::hash::Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // The content is a hash already; the rest hardly ever differs.
        hasher.write_u128(self.content);
    }
}

/// Takes the first bits of a hash for the hash.
#[derive(Default)]
struct Already(u64);

impl Hasher for Already {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, number: u128) {
        // Half of it is as random as all of it.
        #[allow(clippy::cast_possible_truncation, reason = "half is wanted")]
        let half = number as u64;
        self.0 = half;
    }
}

/// What is remembered of a text: its count by an encoding, whoever's that is.
type Generation = HashMap<Key, Tokens, BuildHasherDefault<Already>>;

/// Counts tokens, and remembers what it has counted.
///
/// It remembers in two generations. What is asked for moves to the young one; when that is full it becomes the old one, and
/// what was still in the old one is forgotten: what is in use stays, and there are never more entries than the bound.
pub struct TokenCounter {
    young: Generation,
    old: Generation,
    /// Entries of one generation, at least one.
    generation: usize,
}

impl TokenCounter {
    /// A counter that remembers at most so many counts, and at least two.
    pub fn new(entries: usize) -> Self {
        Self { young: Generation::default(), old: Generation::default(), generation: (entries / 2).max(1) }
    }

    /// Counts the tokens of a text.
    pub fn count(&mut self, tokenizer: Tokenizer, text: &str) -> Tokens {
        self.remembered(tokenizer, Form::Text, text.as_bytes(), || piece::by(tokenizer.encoding, text))
    }

    /// Counts the tokens of the text that `encoded` stands for, and asks for that text only if it must.
    ///
    /// `encoded` are bytes that always give the same text, such as a JSON string with its escapes, so that one which was
    /// counted before need not be decoded again.
    pub fn count_encoded<'text>(
        &mut self,
        tokenizer: Tokenizer,
        encoded: &[u8],
        decode: impl FnOnce() -> Cow<'text, str>,
    ) -> Tokens {
        self.remembered(tokenizer, Form::Encoded, encoded, || piece::by(tokenizer.encoding, &decode()))
    }

    /// Counts the tokens of bytes that should be UTF-8; what is not makes the count an estimate.
    pub fn count_bytes(&mut self, tokenizer: Tokenizer, bytes: &[u8]) -> Tokens {
        match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => self.count(tokenizer, text),
            Cow::Owned(repaired) => Tokens { exactness: Exactness::About, ..self.count(tokenizer, &repaired) },
        }
    }

    /// Counts the tokens of something that has several texts in it, such as a message, and asks for their sum only if it must.
    pub fn count_whole(&mut self, tokenizer: Tokenizer, bytes: &[u8], sum: impl FnOnce(&mut Self) -> Tokens) -> Tokens {
        let trust = Tokens { count: 0, exactness: tokenizer.exactness };
        let key = Key { content: hash(bytes), encoding: tokenizer.encoding, form: Form::Whole };
        if let Some(&counted) = self.young.get(&key) {
            return counted + trust;
        }
        let counted = match self.old.remove(&key) {
            Some(counted) => counted,
            None => sum(self),
        };
        self.insert(key, counted);
        counted + trust
    }

    /// How many counts are remembered.
    pub fn entries(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    fn remembered(
        &mut self,
        tokenizer: Tokenizer,
        form: Form,
        content: &[u8],
        count: impl FnOnce() -> Tokens,
    ) -> Tokens {
        // The same encoding may be a model's own, or a stand-in for another's: what is remembered is for both.
        let trust = Tokens { count: 0, exactness: tokenizer.exactness };
        if content.len() < WORTH_REMEMBERING {
            return count() + trust;
        }
        let key = Key { content: hash(content), encoding: tokenizer.encoding, form };
        if let Some(&counted) = self.young.get(&key) {
            return counted + trust;
        }
        let counted = self.old.remove(&key).unwrap_or_else(count);
        self.insert(key, counted);
        counted + trust
    }

    fn insert(&mut self, key: Key, counted: Tokens) {
        if self.young.len() >= self.generation {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, counted);
    }
}

impl Default for TokenCounter {
    fn default() -> Self {
        Self::new(DEFAULT_ENTRIES)
    }
}

impl std::fmt::Debug for TokenCounter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TokenCounter").field("entries", &self.entries()).finish_non_exhaustive()
    }
}

fn hash(content: &[u8]) -> u128 {
    let mut half = [0; 16];
    let hash = blake3::hash(content);
    half.copy_from_slice(&hash.as_bytes()[..16]);
    u128::from_le_bytes(half)
}
