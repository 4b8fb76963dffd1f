//! Attribution of a request that is forwarded while it is received.
//!
//! The headers of most agents name a session. Otherwise the session follows from the first and last bytes of the body, which the
//! request tap feeds in while it forwards them. No request waits for its body to be complete.

use std::sync::{Arc, Mutex, OnceLock};

use sayso_wire::{PrefixScan, RequestHead};

use super::{AgentRun, Attribution};
use crate::lock;

/// The attribution of a request, known now or later.
#[derive(Clone)]
pub(crate) enum AttributionSource {
    Headers(Arc<Attribution>),
    /// Read from the body while it is forwarded.
    Body(Arc<BodyAttribution>),
}

impl AttributionSource {
    /// The attribution, if enough of the body was received.
    pub(crate) fn resolved(&self) -> Option<Arc<Attribution>> {
        match self {
            Self::Headers(attribution) => Some(Arc::clone(attribution)),
            Self::Body(body) => body.attribution.get().cloned(),
        }
    }

    /// The attribution by all bytes received so far; it no longer changes afterwards.
    pub(crate) fn resolve(&self) -> Arc<Attribution> {
        match self {
            Self::Headers(attribution) => Arc::clone(attribution),
            Self::Body(body) => body.finish(),
        }
    }

    /// `true` for a request of a subagent; headers alone decide.
    pub(crate) fn is_subagent(&self) -> bool {
        match self {
            Self::Headers(attribution) => attribution.subagent.is_some(),
            Self::Body(body) => body.head.subagent().is_some(),
        }
    }
}

/// Collects the first and last bytes of a body.
pub(crate) struct BodyAttribution {
    run: AgentRun,
    /// The headers that attribution uses.
    head: RequestHead,
    /// Hash of the API key.
    key: Option<String>,
    clues: Mutex<Clues>,
    attribution: OnceLock<Arc<Attribution>>,
}

#[derive(Default)]
struct Clues {
    prefix: Vec<u8>,
    /// Attribution by the prefix; `None` until the first user message was received.
    by_prefix: Option<Attribution>,
    /// Length of the prefix at which it is scanned next.
    next_scan: usize,
    tail: Vec<u8>,
}

/// Length of the prefix at the first scan. Each further scan is at four times the length, so all scans together cost little more than
/// the last one.
const FIRST_SCAN_BYTES: usize = 4 << 10;

impl BodyAttribution {
    pub(crate) fn new(run: AgentRun, head: RequestHead, key: Option<String>) -> Self {
        let clues = Clues { next_scan: FIRST_SCAN_BYTES, ..Clues::default() };
        Self { run, head, key, clues: Mutex::new(clues), attribution: OnceLock::new() }
    }

    /// Reads the next bytes of the body. `left` is the number of bytes after them, if known.
    pub(crate) fn feed(&self, data: &[u8], left: Option<u64>) {
        if self.attribution.get().is_some() {
            return;
        }
        let mut clues = lock(&self.clues);
        if clues.by_prefix.is_none() {
            self.scan_prefix(&mut clues, data);
        }
        if left.is_none_or(|left| left < PrefixScan::MAX_TAIL_BYTES as u64) {
            let end = &data[data.len().saturating_sub(PrefixScan::MAX_TAIL_BYTES)..];
            let surplus = (clues.tail.len() + end.len()).saturating_sub(PrefixScan::MAX_TAIL_BYTES);
            clues.tail.drain(..surplus);
            clues.tail.extend_from_slice(end);
        }
        drop(clues);
        if left == Some(0) {
            self.finish();
        }
    }

    fn scan_prefix(&self, clues: &mut Clues, data: &[u8]) {
        let attribute = |prefix: &[u8]| {
            let is_named = PrefixScan::for_session(prefix).first_user_message_hash.is_some();
            is_named.then(|| Attribution::from_body_ends(&self.run, &self.head, self.key.as_deref(), prefix, &[]))
        };
        if clues.prefix.is_empty() && data.len() >= clues.next_scan {
            // Most bodies contain their first user message in the first chunk, which is scanned without a copy.
            clues.by_prefix = attribute(data);
            if clues.by_prefix.is_some() {
                return;
            }
            clues.next_scan = data.len().saturating_mul(4);
        }
        let capacity = PrefixScan::MAX_PREFIX_BYTES.saturating_sub(clues.prefix.len());
        clues.prefix.extend_from_slice(&data[..data.len().min(capacity)]);
        if clues.prefix.len() >= clues.next_scan.min(PrefixScan::MAX_PREFIX_BYTES) {
            clues.next_scan = clues.prefix.len().saturating_mul(4);
            clues.by_prefix = attribute(&clues.prefix);
            if clues.prefix.len() == PrefixScan::MAX_PREFIX_BYTES {
                let unknown = || Attribution::from_body_ends(&self.run, &self.head, self.key.as_deref(), &[], &[]);
                clues.by_prefix.get_or_insert_with(unknown);
            }
        }
    }

    /// Fixes the attribution by all bytes received so far.
    pub(crate) fn finish(&self) -> Arc<Attribution> {
        let clues = lock(&self.clues);
        let attribution = self.attribution.get_or_init(|| {
            let key = self.key.as_deref();
            let by_prefix = clues
                .by_prefix
                .clone()
                .unwrap_or_else(|| Attribution::from_body_ends(&self.run, &self.head, key, &clues.prefix, &[]));
            Arc::new(by_prefix.or_session_in_tail(&self.head, &clues.tail))
        });
        Arc::clone(attribution)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn attribute(body: &str, chunk: usize, agent: &str) -> Attribution {
        let run = AgentRun { name: "run".to_owned(), agent: None };
        let head = RequestHead::new("/v1/messages").with("user-agent", agent);
        let attribution = BodyAttribution::new(run, head, Some("key".to_owned()));
        let mut left = body.len() as u64;
        for data in body.as_bytes().chunks(chunk) {
            left -= data.len() as u64;
            attribution.feed(data, chunk.is_multiple_of(2).then_some(left));
        }
        attribution.finish().as_ref().clone()
    }

    #[test]
    fn body_in_any_chunks_gets_same_session() {
        let long = "x".repeat(20_000);
        let bodies = [
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#.to_owned(),
            format!(r#"{{"system":"{long}","messages":[{{"role":"user","content":"{long}"}}],"model":"m"}}"#),
            format!(
                r#"{{"messages":[{{"role":"user","content":"{long}"}}],"metadata":{{"user_id":"user_session_s1"}}}}"#
            ),
            r#"{"messages":[{"role":"assistant""#.to_owned(),
            String::new(),
        ];
        for body in bodies {
            let run = AgentRun { name: "run".to_owned(), agent: None };
            let head = RequestHead::new("/v1/messages").with("user-agent", "a");
            let whole = Attribution::from_body_ends(&run, &head, Some("key"), body.as_bytes(), body.as_bytes());
            for chunk in [1, 7, 64, 4_096, 8_191, 50_000] {
                assert_eq!(attribute(&body, chunk, "a").session, whole.session, "{chunk} of {body:.60}");
            }
        }
    }

    #[test]
    fn session_in_tail_precedes_first_message() {
        let body = r#"{"messages":[{"role":"user","content":"hi"}],"metadata":{"user_id":"user_session_s1"}}"#;
        assert_eq!(attribute(body, 10, "claude-cli/1").session, "s1");
    }
}
