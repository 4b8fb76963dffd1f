//! Token counts cached by content hash.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{Exactness, TokenEncoding, Tokenizer, Tokens, uncached};

/// Default maximum number of cached counts: the parts of several long sessions, in a few megabytes.
pub const DEFAULT_ENTRIES: usize = 1 << 16;

/// Minimum size of a cached text, in bytes. Counting a shorter text costs about as much as a lookup.
const MIN_CACHED_BYTES: usize = 16;

/// The key of a cached count.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CountKey {
    /// First half of a BLAKE3 hash. Collisions of 128 bits are not expected.
    content: u128,
    encoding: TokenEncoding,
    kind: KeyKind,
}

/// The kind of hashed content. It separates encoded bytes from the text that they represent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Text,
    Encoded,
    Whole,
}

impl std::hash::Hash for CountKey {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // The content is already a hash, and the other fields hardly vary.
        hasher.write_u128(self.content);
    }
}

/// A hasher that uses the first bits of the key, which is already a hash.
#[derive(Default)]
struct PrehashedHasher(u64);

impl Hasher for PrehashedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, number: u128) {
        // Half of the hash is equally random.
        #[allow(clippy::cast_possible_truncation, reason = "half is wanted")]
        let half = number as u64;
        self.0 = half;
    }
}

/// Cached counts by content and encoding, shared by all models with that encoding.
type Generation = HashMap<CountKey, Tokens, BuildHasherDefault<PrehashedHasher>>;

/// Counts tokens and caches the counts.
///
/// The cache has two generations. A hit moves to the young one. When the young generation is full it becomes the old
/// one, and the previous old one is dropped. Counts in use therefore stay, and the number of entries is bounded.
pub struct TokenCounter {
    young: Generation,
    old: Generation,
    /// Maximum number of entries per generation, at least one.
    generation: usize,
}

impl TokenCounter {
    /// Creates a counter that caches at most `entries` counts, but at least two.
    pub fn new(entries: usize) -> Self {
        Self { young: Generation::default(), old: Generation::default(), generation: (entries / 2).max(1) }
    }

    /// Counts the tokens of a text.
    pub fn count(&mut self, tokenizer: Tokenizer, text: &str) -> Tokens {
        self.cached(tokenizer, KeyKind::Text, text.as_bytes(), || uncached::count_with(tokenizer.encoding, text))
    }

    /// Counts the tokens of the text that `encoded` represents, and decodes it only if necessary.
    ///
    /// `encoded` must always represent the same text, such as a JSON string with escapes.
    pub fn count_encoded<'text>(
        &mut self,
        tokenizer: Tokenizer,
        encoded: &[u8],
        decode: impl FnOnce() -> Cow<'text, str>,
    ) -> Tokens {
        self.cached(tokenizer, KeyKind::Encoded, encoded, || uncached::count_with(tokenizer.encoding, &decode()))
    }

    /// Counts the tokens of bytes. If they are not valid UTF-8, the count is an estimate.
    pub fn count_bytes(&mut self, tokenizer: Tokenizer, bytes: &[u8]) -> Tokens {
        match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => self.count(tokenizer, text),
            Cow::Owned(repaired) => Tokens { exactness: Exactness::Estimate, ..self.count(tokenizer, &repaired) },
        }
    }

    /// Counts the tokens of a value with several texts, such as a message, and calls `sum` only if it is not cached.
    pub fn count_whole(&mut self, tokenizer: Tokenizer, bytes: &[u8], sum: impl FnOnce(&mut Self) -> Tokens) -> Tokens {
        let exactness = Tokens { count: 0, exactness: tokenizer.exactness };
        let key = CountKey { content: hash(bytes), encoding: tokenizer.encoding, kind: KeyKind::Whole };
        if let Some(&count) = self.young.get(&key) {
            return count + exactness;
        }
        let count = match self.old.remove(&key) {
            Some(count) => count,
            None => sum(self),
        };
        self.insert(key, count);
        count + exactness
    }

    /// Returns the number of cached counts.
    pub fn entries(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    fn cached(
        &mut self,
        tokenizer: Tokenizer,
        kind: KeyKind,
        content: &[u8],
        count: impl FnOnce() -> Tokens,
    ) -> Tokens {
        // One encoding may be exact for one model and an estimate for another; the cached count serves both.
        let exactness = Tokens { count: 0, exactness: tokenizer.exactness };
        if content.len() < MIN_CACHED_BYTES {
            return count() + exactness;
        }
        let key = CountKey { content: hash(content), encoding: tokenizer.encoding, kind };
        if let Some(&count) = self.young.get(&key) {
            return count + exactness;
        }
        let count = self.old.remove(&key).unwrap_or_else(count);
        self.insert(key, count);
        count + exactness
    }

    fn insert(&mut self, key: CountKey, count: Tokens) {
        if self.young.len() >= self.generation {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, count);
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
