//! Bodies of a conversation, recorded in order.

#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

use super::super::delta::DeltaEncoder;
use super::*;

/// Checks the size and the hash of every chunk.
fn check(chunked: &ChunkedBody) {
    let mut at = 0;
    for chunk in &chunked.chunks {
        let bytes = chunked.bytes.bytes(at..at + chunk.size);
        assert_eq!(chunk.hash, sayso_review::ContentHash::of(&bytes));
        assert!((1..=CHUNK_SIZE).contains(&chunk.size));
        at += chunk.size;
    }
    assert_eq!(at, chunked.bytes.len());
}

fn new_bytes(chunked: &ChunkedBody) -> usize {
    chunked.chunks.iter().filter(|chunk| chunk.presence == ChunkPresence::Unknown).map(|chunk| chunk.size).sum()
}

fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(&mut next).take(size).collect()
}

/// Records a body as the recorder thread does.
fn chunk_next(bodies: &BodyCache, body: &Bytes) -> ChunkedBody {
    let key = ConversationKey::default();
    let delta = match bodies.last(&key) {
        Some(last) => BodyDelta::against(last, body),
        None => body.clone().into(),
    };
    let chunked = bodies.insert(key, delta).chunk();
    assert_eq!(chunked.bytes.to_bytes(), body);
    chunked
}

#[test]
fn growing_history_stores_mostly_new_bytes() {
    let bodies = BodyCache::default();
    let (mut history, tools) = (noise(1, 300_000), noise(2, 70_000));
    let mut stored = 0;
    for turn in 0..400 {
        history.extend(noise(turn + 3, 3_000));
        let body: Bytes = [&history[..], &tools].concat().into();
        let chunked = chunk_next(&bodies, &body);
        check(&chunked);
        assert!(chunked.bytes.parts().len() <= MAX_ROPE_PARTS);
        assert!(chunked.chunks.len() <= chunked.bytes.len() / CHUNK_SIZE + 12, "{} chunks", chunked.chunks.len());
        if turn > 1 {
            stored += new_bytes(&chunked);
        }
    }
    // A new byte is stored a few times when small chunks are merged; the rest of the body is not.
    assert!(stored < 400 * 3_000 * 8, "{stored} bytes");
}

#[test]
fn any_successor_is_chunked_correctly() {
    let whole = noise(7, 5 * CHUNK_SIZE + 17);
    let bodies = BodyCache::default();
    for seed in 0..400_u64 {
        let pick = |salt: u64, most: usize| {
            let bytes = noise(seed * 31 + salt, 8);
            usize::try_from(u64::from_le_bytes(bytes.try_into().unwrap()) % (most as u64 + 1)).unwrap()
        };
        let mut body = whole[..pick(1, whole.len())].to_vec();
        let at = pick(2, body.len());
        body.splice(at..(at + pick(3, 9_000)).min(body.len()), noise(seed, pick(4, 90_000)));
        check(&chunk_next(&bodies, &body.into()));
    }
}

#[test]
fn common_suffix_len_counts_equal_bytes() {
    for (one, other, back) in [("abc", "abd", 0), ("abc", "abc", 3), ("", "a", 0), ("xbc", "ybc", 2), ("bc", "abc", 2)]
    {
        for split in 0..=one.len() {
            let mut rope = Rope::from(Bytes::from(&one[..split]));
            rope.push(Bytes::from(&one[split..]));
            assert_eq!(common_suffix_len(&rope, other.as_bytes()), back);
        }
    }
    let long = noise(1, 3 * COMPARE_STEPS[0] + 333);
    assert_eq!(common_suffix_len(&Rope::from(Bytes::from(long[1..].to_vec())), &long), long.len() - 1);
}

#[test]
fn base_is_longest_prefix_of_same_session() {
    let attribution = |session: &str, model: &str| Attribution {
        session: session.into(),
        model: Some(model.into()),
        ..Attribution::default()
    };
    let bodies = BodyCache::default();
    for (session, model) in [("a", "large"), ("a", "small"), ("b", "large")] {
        let body = Bytes::from(format!("model {model}, session {session}"));
        bodies.insert(attribution(session, model).conversation_key(), body.into());
    }
    let found = |session: &str, first_bytes: &[u8]| {
        let unknown = Attribution { model: None, ..attribution(session, "") };
        bodies.base(&unknown, first_bytes).map(|body| String::from_utf8(body.bytes.to_bytes().to_vec()).unwrap())
    };
    assert_eq!(found("a", b"model large, more").as_deref(), Some("model large, session a"));
    assert_eq!(found("a", b"model small").as_deref(), Some("model small, session a"));
    assert_eq!(found("b", b"model small").as_deref(), Some("model large, session b"));
    assert_eq!(found("c", b"model large"), None);
    assert_eq!(found("a", b"something else"), None);
}

#[test]
fn session_with_same_prefix_shares_base() {
    let bodies = BodyCache::default();
    let attribution = |session: &str| Attribution { session: session.into(), ..Attribution::default() };
    let history = Bytes::from(noise(1, 4 * CHUNK_SIZE));
    let first = bodies.insert(attribution("a").conversation_key(), history.clone().into()).chunk();
    assert_eq!(new_bytes(&first), history.len());
    let next = Bytes::from([&history[..], b", and go on"].concat());
    let mut encoder = DeltaEncoder::new(bodies.base(&attribution("b"), &next).unwrap(), next.len());
    encoder.feed(&next);
    let chunked = bodies.insert(attribution("b").conversation_key(), encoder.finish()).chunk();
    check(&chunked);
    assert_eq!((chunked.bytes.to_bytes(), new_bytes(&chunked)), (next.clone(), next.len() - history.len()));
    // A shorter prefix is no base in another session, and the session's own body precedes others.
    assert!(bodies.base(&attribution("c"), &next[..PREFIX_BYTES - 1]).is_none());
    let own = bodies.base(&attribution("a"), &next).unwrap();
    assert_eq!(own.bytes.len(), history.len());
}

#[test]
fn small_body_does_not_retain_large_base() {
    let bodies = BodyCache::default();
    let large = Bytes::from(noise(1, 40 * CHUNK_SIZE));
    bodies.insert(ConversationKey::default(), large.clone().into());
    let last = bodies.last(&ConversationKey::default()).unwrap();
    bodies.insert(ConversationKey::default(), BodyDelta::against(last, &large.slice(..50)));
    assert_eq!(lock(&bodies.entries).retained, 50);
    let small = bodies.last(&ConversationKey::default()).unwrap();
    assert_eq!(small.bytes.to_bytes(), large[..50]);
    assert_ne!(small.bytes.parts()[0].as_ptr(), large.as_ptr(), "the small body shares the large allocation");
    // Nor does a chain of deltas retain much more than its last body.
    for turn in 0..200 {
        let last = bodies.last(&ConversationKey::default()).unwrap();
        let body = [&last.bytes.to_bytes()[..last.bytes.len() / 2], &noise(turn, 3_000)].concat();
        bodies.insert(ConversationKey::default(), BodyDelta::against(last, &body.clone().into()));
        assert!(
            lock(&bodies.entries).retained <= 2 * body.len() + CHUNK_SIZE + 3_000,
            "{} for {}",
            lock(&bodies.entries).retained,
            body.len()
        );
    }
}

#[test]
fn successor_of_unchunked_body_is_chunked_anew() {
    let bodies = BodyCache::default();
    let first = bodies.insert(ConversationKey::default(), Bytes::from(noise(1, 3 * CHUNK_SIZE)).into());
    drop(first);
    let last = bodies.last(&ConversationKey::default()).unwrap();
    let chunked =
        bodies.insert(ConversationKey::default(), BodyDelta::against(last, &noise(1, 4 * CHUNK_SIZE).into())).chunk();
    check(&chunked);
    assert_eq!(new_bytes(&chunked), 4 * CHUNK_SIZE);
}

/// A random token; each seed gives another one.
fn random_token(seed: u64, size: usize) -> String {
    let alphabet = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789";
    noise(seed + 1, size).into_iter().map(|byte| char::from(alphabet[usize::from(byte) % alphabet.len()])).collect()
}

/// A conversation whose credentials change.
#[derive(Default)]
struct GrowingConversation {
    messages: Vec<serde_json::Value>,
    /// The token of an MCP server, which follows the messages.
    token: String,
    secrets: Vec<String>,
}

impl GrowingConversation {
    fn secret(&mut self, seed: u64, size: usize) -> String {
        let secret = random_token(seed, size);
        self.secrets.push(secret.clone());
        secret
    }

    fn step(&mut self, kind: u8, seed: u64, size: usize) {
        let message = match kind {
            0 => serde_json::json!({"role": "user", "content": "words and \"quotes\" ".repeat(size)}),
            1 => serde_json::json!({"role": "user", "content": format!("use ghp_{} now", self.secret(seed, 40))}),
            2 => {
                let arguments = serde_json::json!({"db": {"password": self.secret(seed, 12)}, "path": "/tmp"});
                serde_json::json!({"role": "assistant", "tool_calls": [{"arguments": arguments.to_string()}]})
            }
            3 => {
                self.token = self.secret(seed, 64);
                return;
            }
            4 => {
                let keep = self.messages.len() / 2;
                return drop(self.messages.drain(..keep));
            }
            _ => serde_json::json!({"role": "tool", "headers": {"X-Api-Key": self.secret(seed, 20)}}),
        };
        self.messages.push(message);
    }

    fn body(&self) -> String {
        let servers = [serde_json::json!({"url": "https://x.example", "authorization_token": self.token})];
        let tools = "a description of a tool. ".repeat(200);
        serde_json::json!({"model": "m", "messages": self.messages, "mcp_servers": servers, "tools": tools}).to_string()
    }

    fn masked(&self) -> String {
        let mask = |body: String, secret: &String| body.replace(secret.as_str(), &"*".repeat(secret.len()));
        self.secrets.iter().fold(self.body(), mask)
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]

    #[test]
    fn recorded_bodies_mask_exactly_the_credentials(
        steps in proptest::collection::vec((0_u8..6, proptest::prelude::any::<u32>(), 1_usize..2_000), 1..14),
        chunk in 1_usize..90_000,
    ) {
        let (mut conversation, bodies) = (GrowingConversation::default(), BodyCache::default());
        let mut stored: std::collections::BTreeMap<String, Vec<u8>> = std::collections::BTreeMap::new();
        for (kind, seed, size) in steps {
            conversation.step(kind, seed.into(), size);
            let body = Bytes::from(conversation.body());
            let key = ConversationKey::default();
            let delta = match bodies.last(&key) {
                Some(last) => {
                    let mut encoder = DeltaEncoder::new(last, body.len());
                    body.chunks(chunk).for_each(|chunk| encoder.feed(chunk));
                    encoder.finish()
                }
                None => body.clone().into(),
            };
            let chunked = bodies.insert(key, delta).chunk();
            check(&chunked);
            let mut at = 0;
            for chunk in &chunked.chunks {
                if chunk.presence == ChunkPresence::Unknown {
                    stored.insert(chunk.hash.to_string(), chunked.bytes.bytes(at..at + chunk.size).into_owned());
                }
                at += chunk.size;
            }
            let read: Vec<u8> = chunked.chunks.iter().flat_map(|chunk| stored[&chunk.hash.to_string()].clone()).collect();
            proptest::prop_assert_eq!(String::from_utf8(read).unwrap(), conversation.masked());
            for (redaction, value) in chunked.redactions.iter().zip(&chunked.values) {
                proptest::prop_assert_eq!(&body[redaction.range()], &value[..]);
            }
        }
        let leaks = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            conversation.secrets.iter().any(|secret| text.contains(secret.as_str()))
        };
        proptest::prop_assert!(!stored.values().any(|chunk| leaks(chunk)));
    }
}
