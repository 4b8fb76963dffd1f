//! The last body of each conversation, and the split into chunks.

use std::collections::VecDeque;
use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use sayso_gate::{Chunk, ChunkPresence, ChunkedBody, Rope};
use sayso_review::CHUNK_SIZE;
use sayso_review::redact::{Redaction, SharedEnds, Spans};

use super::delta::{BaseOverlap, BodyDelta, COMPARE_STEPS, DeltaEncoder, common_prefix_len};
use crate::interceptor::{Attribution, ConversationKey};
use crate::lock;

/// Limits of the cache. The oldest bodies are evicted first.
const MAX_CONVERSATIONS: usize = 256;
const MAX_CACHED_BYTES: usize = 64 << 20;
/// Chunks beyond the minimum for a body's size. A body with more is split from scratch.
const MAX_EXTRA_CHUNKS: usize = 32;
/// Bytes that are compared to choose a base.
const PREFIX_BYTES: usize = 4 << 10;
/// Rope parts of a cached body. A body with more is copied into one part.
const MAX_ROPE_PARTS: usize = 24;

/// A body that later bodies are encoded against. Its bytes are exact, not redacted.
#[derive(Debug)]
pub(crate) struct CachedBody {
    pub(super) bytes: Rope,
    /// Bytes of memory that this body keeps alive. A part of the rope may belong to a larger allocation.
    retained: usize,
    /// Set when the recorder thread has split the body.
    recorded: OnceLock<RecordedForm>,
    /// Position of the model's name, if it was searched and found.
    pub(super) model: Option<Range<usize>>,
}

impl CachedBody {
    pub(super) fn new(bytes: Rope) -> Self {
        Self { retained: bytes.len(), bytes, recorded: OnceLock::new(), model: None }
    }
}

/// A body as the journal has it: chunks of the masked bytes, and the spans that are masked.
#[derive(Debug)]
struct RecordedForm {
    chunks: Vec<Chunk>,
    spans: Spans,
}

/// A body that the recorder thread has yet to redact and split.
#[derive(Debug)]
pub(crate) struct UnchunkedBody {
    body: Arc<CachedBody>,
    /// The base, and the lengths of the common prefix and suffix.
    base: Option<(Arc<CachedBody>, usize, usize)>,
    copied: usize,
}

impl UnchunkedBody {
    fn new(delta: BodyDelta) -> Self {
        let BodyDelta { base, added, model } = delta;
        let Some(BaseOverlap { base, prefix, suffix }) = base else {
            let copied = added.len();
            let body = CachedBody { model, ..CachedBody::new(added.into()) };
            return Self { body: Arc::new(body), base: None, copied };
        };
        let old = &base.bytes;
        let (added, suffix) = if let Some(suffix) = suffix {
            (added, suffix)
        } else {
            let suffix = common_suffix_len(&old.slice(prefix..old.len()), &added);
            // A copy of the few new bytes lets the allocation with the repeated suffix go.
            (Bytes::copy_from_slice(&added[..added.len() - suffix]), suffix)
        };
        let copied = added.len();
        let mut bytes = old.slice(0..prefix);
        bytes.push(added);
        bytes.append(old.slice(old.len() - suffix..old.len()));
        let retained = base.retained + copied;
        // A rope of many parts is slow to compare, and a small body must not keep a large base alive.
        let flatten = bytes.parts().len() > MAX_ROPE_PARTS || retained > 2 * bytes.len() + CHUNK_SIZE;
        let (body, copied) = if flatten {
            let bytes = Bytes::from(bytes.bytes(0..bytes.len()).into_owned());
            let copied = bytes.len();
            (CachedBody { model, ..CachedBody::new(bytes.into()) }, copied)
        } else {
            (CachedBody { bytes, retained, recorded: OnceLock::new(), model }, copied)
        };
        Self { body: Arc::new(body), base: Some((base, prefix, suffix)), copied }
    }

    /// Bytes that were copied for this body.
    pub(crate) fn copied_bytes(&self) -> usize {
        self.copied
    }

    /// Redacts the body and splits it into chunks. Bodies of a conversation must be split in the order in which they were inserted:
    /// a body reuses the spans and chunks of its base. If the base was never split, the whole body is scanned.
    pub(crate) fn chunk(self) -> ChunkedBody {
        let Self { body, base, .. } = self;
        let exact = &body.bytes;
        let base = base.as_ref().and_then(|(base, prefix, suffix)| {
            Some((base.recorded.get()?, base.bytes.len(), SharedEnds { front: *prefix, back: *suffix }))
        });
        let spans = match base {
            Some((base, len, shared)) => base.spans.after(len, exact.len(), shared, |range| exact.bytes(range)),
            None => Spans::of(&exact.bytes(0..exact.len())),
        };
        let redactions = spans.merged();
        let bytes = exact.masked(&redactions);
        let chunks = match base {
            Some((base, len, shared)) => {
                let shared = shared_after_redaction(&base.spans.merged(), &redactions, (len, exact.len()), shared);
                split_against_base(&base.chunks, &bytes, shared.front, shared.back)
            }
            None => split(&bytes),
        };
        let recorded = body.recorded.get_or_init(|| RecordedForm { chunks, spans });
        ChunkedBody { bytes, chunks: recorded.chunks.clone(), values: exact.copy_spans(&redactions), redactions }
    }
}

/// Shrinks the common prefix and suffix to the ranges in which both bodies are masked alike. The bytes may be equal where the masks
/// are not: a value counts as a credential because of its neighbours.
fn shared_after_redaction(
    old: &[Redaction],
    new: &[Redaction],
    (old_len, new_len): (usize, usize),
    shared: SharedEnds,
) -> SharedEnds {
    // From the front: the first span that only one of them has ends the common prefix.
    let same = old.iter().zip(new).take_while(|(old, new)| old.range() == new.range()).count();
    let first_difference = [old.get(same), new.get(same)].into_iter().flatten().map(|span| span.start).min();
    // From the back: likewise, with distances from the end.
    let from_end = |span: &Redaction, len: usize| (len - span.end(), span.size);
    let ends = old.iter().rev().zip(new.iter().rev());
    let same = ends.take_while(|(old, new)| from_end(old, old_len) == from_end(new, new_len)).count();
    let distance = |spans: &[Redaction], len: usize| spans.iter().rev().nth(same).map(|span| len - span.end());
    let last_difference = [distance(old, old_len), distance(new, new_len)].into_iter().flatten().min();
    SharedEnds {
        front: shared.front.min(first_difference.unwrap_or(usize::MAX)),
        back: shared.back.min(last_difference.unwrap_or(usize::MAX)),
    }
}

#[derive(Debug)]
struct CacheEntry {
    /// Hash of session and subagent. A lookup compares it first and skips most entries without comparing strings.
    thread_hash: u64,
    key: ConversationKey,
    body: Arc<CachedBody>,
}

/// The last body of each conversation.
#[derive(Debug, Default)]
pub(crate) struct BodyCache {
    entries: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    /// The newest at the end, where most lookups succeed.
    newest_last: VecDeque<CacheEntry>,
    /// Sum of the entries' retained bytes.
    retained: usize,
}

impl BodyCache {
    /// Starts a delta against the base for a body that is still being received. `size` is its expected length.
    pub(crate) fn encoder(&self, attribution: &Attribution, first_bytes: &[u8], size: usize) -> Option<DeltaEncoder> {
        let base = self.base(attribution, first_bytes)?;
        Some(DeltaEncoder::new(base, size))
    }

    /// Chooses a base by the first bytes of a body.
    fn base(&self, attribution: &Attribution, first_bytes: &[u8]) -> Option<Arc<CachedBody>> {
        let (session, subagent) = attribution.thread_key();
        let hash = thread_hash(session, subagent);
        let same_thread =
            |entry: &&CacheEntry| entry.thread_hash == hash && entry.key.thread_key() == (session, subagent);
        let first_bytes = &first_bytes[..first_bytes.len().min(PREFIX_BYTES)];
        let overlap = |entry: &CacheEntry| {
            entry.body.bytes.parts().first().map_or(0, |part| common_prefix_len(part, first_bytes))
        };
        let entries = lock(&self.entries);
        // `max_by_key` returns the last of equal entries, which is the newest.
        let own = entries.newest_last.iter().filter(same_thread).max_by_key(|entry| overlap(entry));
        let own = own.filter(|entry| overlap(entry) > 0);
        // A resumed or forked conversation has a new session id, and the prefix of the old one.
        let any = || entries.newest_last.iter().rev().find(|entry| overlap(entry) == PREFIX_BYTES);
        own.or_else(any).map(|entry| Arc::clone(&entry.body))
    }

    /// Makes a body the last of its conversation. The caller has the results split in the order of these calls.
    pub(crate) fn insert(&self, key: ConversationKey, delta: BodyDelta) -> UnchunkedBody {
        lock(&self.entries).insert(key, delta)
    }

    /// Encodes a complete body against the last one of its conversation, and splits it.
    pub(crate) fn chunk(&self, key: ConversationKey, body: BodyDelta) -> ChunkedBody {
        let body = match self.last(&key) {
            Some(last) => BodyDelta::against(last, &body.to_bytes()),
            None => body,
        };
        self.insert(key, body).chunk()
    }

    fn last(&self, key: &ConversationKey) -> Option<Arc<CachedBody>> {
        let entries = lock(&self.entries);
        entries.position(key).map(|position| Arc::clone(&entries.newest_last[position].body))
    }

    /// Removes the bodies of a session.
    pub(crate) fn remove_session(&self, session: &str) {
        let mut entries = lock(&self.entries);
        entries.newest_last.retain(|entry| entry.key.session() != session);
        entries.retained = entries.newest_last.iter().map(|entry| entry.body.retained).sum();
    }
}

impl CacheEntries {
    fn position(&self, key: &ConversationKey) -> Option<usize> {
        let (session, subagent) = key.thread_key();
        let hash = thread_hash(session, subagent);
        self.newest_last.iter().rposition(|entry| entry.thread_hash == hash && entry.key == *key)
    }

    fn insert(&mut self, key: ConversationKey, delta: BodyDelta) -> UnchunkedBody {
        let unchunked = UnchunkedBody::new(delta);
        if let Some(position) = self.position(&key) {
            self.remove(position);
        }
        self.retained += unchunked.body.retained;
        let (session, subagent) = key.thread_key();
        let thread_hash = thread_hash(session, subagent);
        self.newest_last.push_back(CacheEntry { thread_hash, key, body: Arc::clone(&unchunked.body) });
        while self.newest_last.len() > MAX_CONVERSATIONS || self.retained > MAX_CACHED_BYTES {
            self.remove(0);
        }
        unchunked
    }

    fn remove(&mut self, position: usize) {
        self.retained -= self.newest_last.remove(position).map_or(0, |entry| entry.body.retained);
    }
}

/// A hash for skipping entries; collisions are harmless, because the keys are compared as well.
fn thread_hash(session: &str, subagent: Option<&str>) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    (session, subagent).hash(&mut hasher);
    hasher.finish()
}

fn split(bytes: &Rope) -> Vec<Chunk> {
    bytes.bytes(0..bytes.len()).chunks(CHUNK_SIZE).map(Chunk::new).collect()
}

/// Splits a body that shares `prefix` and `suffix` bytes with its base, whose chunks are `old`. Chunks that lie inside the shared
/// ranges are taken over without hashing.
fn split_against_base(old: &[Chunk], new: &Rope, prefix: usize, suffix: usize) -> Vec<Chunk> {
    let known = |chunk: &Chunk| Chunk { presence: ChunkPresence::Known, ..*chunk };
    // `start..end` is the range that has to be split anew.
    let (mut start, mut end) = (0, new.len());
    let mut chunks = Vec::with_capacity(old.len() + 2);
    for chunk in old.iter().take_while(|chunk| advance(&mut start, chunk.size, prefix)) {
        chunks.push(known(chunk));
    }
    let mut from_end = 0;
    let last = old[chunks.len()..].iter().rev().take_while(|chunk| advance(&mut from_end, chunk.size, suffix));
    let mut last: Vec<Chunk> = last.map(known).collect();
    end -= from_end;
    // A history that grows turn by turn would leave a small chunk per turn. A small chunk is merged with the bytes after it once
    // these are at least as long, so each byte is rewritten a logarithmic number of times at most.
    while let Some(chunk) = chunks.pop_if(|chunk| chunk.size < CHUNK_SIZE && chunk.size <= end - start) {
        start -= chunk.size;
    }
    // A chunk border at the start of the common suffix lets the next body reuse the suffix.
    let boundary = (new.len() - suffix).clamp(start, end);
    for range in [start..boundary, boundary..end] {
        chunks.extend(new.bytes(range).chunks(CHUNK_SIZE).map(Chunk::new));
    }
    chunks.extend(last.drain(..).rev());
    if chunks.len() > new.len() / CHUNK_SIZE + MAX_EXTRA_CHUNKS { split(new) } else { chunks }
}

/// Moves `position` past a chunk, unless that goes beyond `limit`.
fn advance(position: &mut usize, size: usize, limit: usize) -> bool {
    let fits = *position + size <= limit;
    if fits {
        *position += size;
    }
    fits
}

fn common_suffix_len(rope: &Rope, bytes: &[u8]) -> usize {
    let mut same = 0;
    for part in rope.parts().iter().rev() {
        let here = common_suffix_len_of_slices(part, &bytes[..bytes.len() - same]);
        same += here;
        if here < part.len() {
            break;
        }
    }
    same
}

fn common_suffix_len_of_slices(one: &[u8], other: &[u8]) -> usize {
    let max = one.len().min(other.len());
    let (one, other) = (&one[one.len() - max..], &other[other.len() - max..]);
    COMPARE_STEPS.iter().fold(0, |same, step| {
        let (one, other) = (one[..max - same].rchunks_exact(*step), other[..max - same].rchunks_exact(*step));
        same + step * one.zip(other).take_while(|(one, other)| one == other).count()
    })
}

#[cfg(test)]
mod tests;
