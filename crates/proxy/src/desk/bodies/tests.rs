//! Bodies of conversations, cut one after the other.

#![allow(clippy::unwrap_used, reason = "tests panic to fail")]

use super::super::taken::Following;
use super::*;

/// Whether the pieces are what they say.
fn check(cut: &CutBody) {
    let mut at = 0;
    for piece in &cut.pieces {
        let bytes = cut.bytes.bytes(at..at + piece.size);
        assert_eq!(piece.hash, sayso_review::ContentHash::of(&bytes));
        assert!((1..=PIECE).contains(&piece.size));
        at += piece.size;
    }
    assert_eq!(at, cut.bytes.len());
}

fn fresh(cut: &CutBody) -> usize {
    cut.pieces.iter().filter(|piece| piece.stored == Stored::Unknown).map(|piece| piece.size).sum()
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

/// Cuts a body as those that record do.
fn cut_next(bodies: &mut Bodies, body: &Bytes) -> CutBody {
    let conversation = Conversation::default();
    let taken = match bodies.last(&conversation) {
        Some(last) => Taken::after(last, body),
        None => body.clone().into(),
    };
    let cut = bodies.take_in(conversation, taken).cut();
    assert_eq!(cut.bytes.whole(), body);
    cut
}

#[test]
fn of_a_history_that_grows_in_the_middle_little_is_stored_again() {
    let mut bodies = Bodies::default();
    let (mut history, tools) = (noise(1, 300_000), noise(2, 70_000));
    let mut stored = 0;
    for turn in 0..400 {
        history.extend(noise(turn + 3, 3_000));
        let body: Bytes = [&history[..], &tools].concat().into();
        let cut = cut_next(&mut bodies, &body);
        check(&cut);
        assert!(cut.bytes.parts().len() <= MOST_PARTS);
        assert!(cut.pieces.len() <= cut.bytes.len() / PIECE + 12, "{} pieces", cut.pieces.len());
        if turn > 1 {
            stored += fresh(&cut);
        }
    }
    // Each byte that is new is stored a few times, and not the rest of the body with it.
    assert!(stored < 400 * 3_000 * 8, "{stored} bytes");
}

#[test]
fn whatever_comes_after_whatever_is_cut_right() {
    let whole = noise(7, 5 * PIECE + 17);
    let mut bodies = Bodies::default();
    for seed in 0..400_u64 {
        let pick = |salt: u64, most: usize| {
            let bytes = noise(seed * 31 + salt, 8);
            usize::try_from(u64::from_le_bytes(bytes.try_into().unwrap()) % (most as u64 + 1)).unwrap()
        };
        let mut body = whole[..pick(1, whole.len())].to_vec();
        let at = pick(2, body.len());
        body.splice(at..(at + pick(3, 9_000)).min(body.len()), noise(seed, pick(4, 90_000)));
        check(&cut_next(&mut bodies, &body.into()));
    }
}

#[test]
fn bytes_in_common_at_the_end_are_counted() {
    for (one, other, back) in [("abc", "abd", 0), ("abc", "abc", 3), ("", "a", 0), ("xbc", "ybc", 2), ("bc", "abc", 2)]
    {
        for cut in 0..=one.len() {
            let mut rope = Rope::from(Bytes::from(&one[..cut]));
            rope.push(Bytes::from(&one[cut..]));
            assert_eq!(alike_at_end(&rope, other.as_bytes()), back);
        }
    }
    let long = noise(1, 3 * STEPS[0] + 333);
    assert_eq!(alike_at_end(&Rope::from(Bytes::from(long[1..].to_vec())), &long), long.len() - 1);
}

#[test]
fn a_body_goes_on_from_the_one_of_its_session_that_begins_like_it() {
    let whose =
        |session: &str, model: &str| Whose { session: session.into(), model: Some(model.into()), ..Whose::default() };
    let mut bodies = Bodies::default();
    for (session, model) in [("a", "large"), ("a", "small"), ("b", "large")] {
        let body = Bytes::from(format!("model {model}, session {session}"));
        bodies.take_in(whose(session, model).conversation(), body.into());
    }
    let found = |session: &str, beginning: &[u8]| {
        let unknown = Whose { model: None, ..whose(session, "") };
        bodies.before(&unknown, beginning).map(|body| String::from_utf8(body.bytes.whole().to_vec()).unwrap())
    };
    assert_eq!(found("a", b"model large, more").as_deref(), Some("model large, session a"));
    assert_eq!(found("a", b"model small").as_deref(), Some("model small, session a"));
    assert_eq!(found("b", b"model small").as_deref(), Some("model large, session b"));
    assert_eq!(found("c", b"model large"), None);
    assert_eq!(found("a", b"something else"), None);
}

#[test]
fn a_session_that_begins_like_another_goes_on_from_it() {
    let mut bodies = Bodies::default();
    let whose = |session: &str| Whose { session: session.into(), ..Whose::default() };
    let history = Bytes::from(noise(1, 4 * PIECE));
    let first = bodies.take_in(whose("a").conversation(), history.clone().into()).cut();
    assert_eq!(fresh(&first), history.len());
    let next = Bytes::from([&history[..], b", and go on"].concat());
    let mut following = Following::new(bodies.before(&whose("b"), &next).unwrap(), next.len());
    following.take(&next);
    let cut = bodies.take_in(whose("b").conversation(), following.end()).cut();
    check(&cut);
    assert_eq!((cut.bytes.whole(), fresh(&cut)), (next.clone(), next.len() - history.len()));
    // What only begins a little alike is of somebody else, and one's own comes first.
    assert!(bodies.before(&whose("c"), &next[..BEGINNING - 1]).is_none());
    let own = bodies.before(&whose("a"), &next).unwrap();
    assert_eq!(own.bytes.len(), history.len());
}

#[test]
fn a_small_body_does_not_hold_a_large_one_in_memory() {
    let mut bodies = Bodies::default();
    let large = Bytes::from(noise(1, 40 * PIECE));
    bodies.take_in(Conversation::default(), large.clone().into());
    let last = bodies.last(&Conversation::default()).unwrap();
    bodies.take_in(Conversation::default(), Taken::after(last, &large.slice(..50)));
    assert_eq!(bodies.size, 50);
    let small = bodies.last(&Conversation::default()).unwrap();
    assert_eq!(small.bytes.whole(), large[..50]);
    assert_ne!(small.bytes.parts()[0].as_ptr(), large.as_ptr(), "a part of the large one");
    // Nor does one that goes on from another for long hold much more than itself.
    for turn in 0..200 {
        let last = bodies.last(&Conversation::default()).unwrap();
        let body = [&last.bytes.whole()[..last.bytes.len() / 2], &noise(turn, 3_000)].concat();
        bodies.take_in(Conversation::default(), Taken::after(last, &body.clone().into()));
        assert!(bodies.size <= 2 * body.len() + PIECE + 3_000, "{} for {}", bodies.size, body.len());
    }
}

#[test]
fn one_after_another_that_was_never_cut_is_cut_anew() {
    let mut bodies = Bodies::default();
    let first = bodies.take_in(Conversation::default(), Bytes::from(noise(1, 3 * PIECE)).into());
    drop(first);
    let last = bodies.last(&Conversation::default()).unwrap();
    let cut = bodies.take_in(Conversation::default(), Taken::after(last, &noise(1, 4 * PIECE).into())).cut();
    check(&cut);
    assert_eq!(fresh(&cut), 4 * PIECE);
}

/// Bytes that look like a drawn token, other ones for each seed.
fn drawn(seed: u64, size: usize) -> String {
    let alphabet = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghjkmnpqrstuvwxyz23456789";
    noise(seed + 1, size).into_iter().map(|byte| char::from(alphabet[usize::from(byte) % alphabet.len()])).collect()
}

/// A conversation in which credentials come and go.
#[derive(Default)]
struct Talk {
    messages: Vec<serde_json::Value>,
    /// The token of a server, which comes after the messages.
    token: String,
    secrets: Vec<String>,
}

impl Talk {
    fn secret(&mut self, seed: u64, size: usize) -> String {
        let secret = drawn(seed, size);
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
    fn recorded_bodies_of_a_talk_mask_exactly_its_credentials(
        steps in proptest::collection::vec((0_u8..6, proptest::prelude::any::<u32>(), 1_usize..2_000), 1..14),
        chunk in 1_usize..90_000,
    ) {
        let (mut talk, mut bodies) = (Talk::default(), Bodies::default());
        let mut stored: std::collections::BTreeMap<String, Vec<u8>> = std::collections::BTreeMap::new();
        for (kind, seed, size) in steps {
            talk.step(kind, seed.into(), size);
            let body = Bytes::from(talk.body());
            let conversation = Conversation::default();
            let taken = match bodies.last(&conversation) {
                Some(last) => {
                    let mut following = Following::new(last, body.len());
                    body.chunks(chunk).for_each(|chunk| following.take(chunk));
                    following.end()
                }
                None => body.clone().into(),
            };
            let cut = bodies.take_in(conversation, taken).cut();
            check(&cut);
            let mut at = 0;
            for piece in &cut.pieces {
                if piece.stored == Stored::Unknown {
                    stored.insert(piece.hash.to_string(), cut.bytes.bytes(at..at + piece.size).into_owned());
                }
                at += piece.size;
            }
            let read: Vec<u8> = cut.pieces.iter().flat_map(|piece| stored[&piece.hash.to_string()].clone()).collect();
            proptest::prop_assert_eq!(String::from_utf8(read).unwrap(), talk.masked());
            for (redaction, value) in cut.redactions.iter().zip(&cut.values) {
                proptest::prop_assert_eq!(&body[redaction.range()], &value[..]);
            }
        }
        let leaks = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            talk.secrets.iter().any(|secret| text.contains(secret.as_str()))
        };
        proptest::prop_assert!(!stored.values().any(|piece| leaks(piece)));
    }
}
