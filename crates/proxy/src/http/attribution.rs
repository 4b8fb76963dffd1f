//! Attribution of a request that is forwarded while it comes.
//!
//! The headers of most agents name a session. For the others the session follows from the first and the last bytes of the
//! body, which the tap shows here while it forwards them. Nothing waits for the body to be complete.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sayso_wire::{Glance, Head};

use crate::desk::{Run, Whose};

/// The session of a request.
#[derive(Clone)]
pub(super) enum Attribution {
    /// Named by the headers.
    Headers(Arc<Whose>),
    /// Read from the body while it passes.
    Body(Arc<BodyAttribution>),
}

impl Attribution {
    /// The session if it is known by now.
    pub(super) fn known(&self) -> Option<Arc<Whose>> {
        match self {
            Self::Headers(whose) => Some(Arc::clone(whose)),
            Self::Body(body) => body.whose.get().cloned(),
        }
    }

    /// The session by all that has come of the body so far.
    pub(super) fn resolve(&self) -> Arc<Whose> {
        match self {
            Self::Headers(whose) => Arc::clone(whose),
            Self::Body(body) => body.finish(),
        }
    }

    /// `true` for a request of a subagent, which headers alone tell.
    pub(super) fn is_subagent(&self) -> bool {
        match self {
            Self::Headers(whose) => whose.subagent.is_some(),
            Self::Body(body) => body.head.subagent().is_some(),
        }
    }
}

/// Reads the first and the last bytes of a body.
pub(super) struct BodyAttribution {
    run: Run,
    /// The headers that attribution looks at.
    head: Head,
    /// Hash of the API key.
    key: Option<String>,
    clues: Mutex<Clues>,
    whose: OnceLock<Arc<Whose>>,
}

#[derive(Default)]
struct Clues {
    prefix: Vec<u8>,
    /// The session by the prefix; `None` until the first user message is there.
    by_prefix: Option<Whose>,
    /// Length of the prefix at which the next look at it pays off.
    next_look: usize,
    tail: Vec<u8>,
}

/// The first look at a prefix. Each further one is at four times as many bytes, so that all of them cost little more than the last.
const FIRST_LOOK: usize = 4 << 10;

impl BodyAttribution {
    pub(super) fn new(run: Run, head: Head, key: Option<String>) -> Self {
        let clues = Clues { next_look: FIRST_LOOK, ..Clues::default() };
        Self { run, head, key, clues: Mutex::new(clues), whose: OnceLock::new() }
    }

    /// Reads the next bytes. `left` is how many come after them, if that is known.
    pub(super) fn feed(&self, data: &[u8], left: Option<u64>) {
        if self.whose.get().is_some() {
            return;
        }
        let mut clues = self.clues.lock().unwrap_or_else(PoisonError::into_inner);
        if clues.by_prefix.is_none() {
            self.look(&mut clues, data);
        }
        if left.is_none_or(|left| left < Glance::TAIL as u64) {
            let end = &data[data.len().saturating_sub(Glance::TAIL)..];
            let surplus = (clues.tail.len() + end.len()).saturating_sub(Glance::TAIL);
            clues.tail.drain(..surplus);
            clues.tail.extend_from_slice(end);
        }
        drop(clues);
        if left == Some(0) {
            self.finish();
        }
    }

    fn look(&self, clues: &mut Clues, data: &[u8]) {
        let found = |prefix: &[u8]| {
            let found = Glance::for_session(prefix).first_words.is_some();
            found.then(|| Whose::from_clues(&self.run, &self.head, self.key.as_deref(), prefix, &[]))
        };
        if clues.prefix.is_empty() && data.len() >= clues.next_look {
            // Most bodies name their first user message in the first chunk, which need not be copied.
            clues.by_prefix = found(data);
            if clues.by_prefix.is_some() {
                return;
            }
            clues.next_look = data.len().saturating_mul(4);
        }
        let room = Glance::MOST.saturating_sub(clues.prefix.len());
        clues.prefix.extend_from_slice(&data[..data.len().min(room)]);
        if clues.prefix.len() >= clues.next_look.min(Glance::MOST) {
            clues.next_look = clues.prefix.len().saturating_mul(4);
            clues.by_prefix = found(&clues.prefix);
            if clues.prefix.len() == Glance::MOST {
                let unknown = || Whose::from_clues(&self.run, &self.head, self.key.as_deref(), &[], &[]);
                clues.by_prefix.get_or_insert_with(unknown);
            }
        }
    }

    /// The session by what has come so far, for good.
    pub(super) fn finish(&self) -> Arc<Whose> {
        let clues = self.clues.lock().unwrap_or_else(PoisonError::into_inner);
        let whose = self.whose.get_or_init(|| {
            let key = self.key.as_deref();
            let by_prefix = clues
                .by_prefix
                .clone()
                .unwrap_or_else(|| Whose::from_clues(&self.run, &self.head, key, &clues.prefix, &[]));
            Arc::new(by_prefix.or_named_in(&self.head, &clues.tail))
        });
        Arc::clone(whose)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn attribute(body: &str, chunk: usize, agent: &str) -> Whose {
        let run = Run { name: "run".to_owned(), agent: None };
        let head = Head::new("/v1/messages").with("user-agent", agent);
        let attribution = BodyAttribution::new(run, head, Some("key".to_owned()));
        let mut left = body.len() as u64;
        for data in body.as_bytes().chunks(chunk) {
            left -= data.len() as u64;
            attribution.feed(data, chunk.is_multiple_of(2).then_some(left));
        }
        attribution.finish().as_ref().clone()
    }

    #[test]
    fn body_in_any_chunks_is_attributed_as_the_whole_body() {
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
            let run = Run { name: "run".to_owned(), agent: None };
            let head = Head::new("/v1/messages").with("user-agent", "a");
            let whole = Whose::from_clues(&run, &head, Some("key"), body.as_bytes(), body.as_bytes());
            for chunk in [1, 7, 64, 4_096, 8_191, 50_000] {
                assert_eq!(attribute(&body, chunk, "a").session, whole.session, "{chunk} of {body:.60}");
            }
        }
    }

    #[test]
    fn session_in_tail_precedes_first_words() {
        let body = r#"{"messages":[{"role":"user","content":"hi"}],"metadata":{"user_id":"user_session_s1"}}"#;
        assert_eq!(attribute(body, 10, "claude-cli/1").session, "s1");
    }
}
