//! What subagents send: the last runs, for a person to look at. They never wait.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use sayso_review::RequestId;
use sayso_wire::{Head, ModelRequest};

use super::whose::Whose;

/// A run of a subagent: what it was last seen to send.
#[derive(Clone, Debug)]
pub struct SubagentRun {
    /// The last request.
    pub request: RequestId,
    /// Whose it is.
    pub whose: Whose,
    /// When it began, in milliseconds since 1970.
    pub started: i64,
    /// When it last sent something.
    pub last: i64,
    /// How many requests it sent.
    pub requests: u64,
    head: Head,
    body: Bytes,
}

impl SubagentRun {
    /// The last request, in sections.
    pub fn request(&self) -> ModelRequest {
        ModelRequest::new(self.request.to_string(), self.head.clone(), Arc::<[u8]>::from(&self.body[..]))
    }
}

/// The last runs, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    runs: VecDeque<SubagentRun>,
}

impl Monitor {
    /// Takes in a request of a subagent, and drops the oldest runs beyond a number.
    pub(crate) fn saw(&mut self, request: RequestId, whose: &Whose, head: Head, body: Bytes, most: usize, now: i64) {
        let same = |run: &SubagentRun| run.whose.session == whose.session && run.whose.subagent == whose.subagent;
        // Those that have no name cannot be told apart, and each request counts as a run.
        let named = whose.subagent.as_ref().is_some_and(|mark| mark.id.is_some() || mark.parent.is_some());
        let earlier = if named { self.runs.iter().position(same) } else { None };
        let earlier = earlier.and_then(|place| self.runs.remove(place));
        self.runs.push_back(SubagentRun {
            request,
            whose: whose.clone(),
            started: earlier.as_ref().map_or(now, |run| run.started),
            last: now,
            requests: earlier.map_or(0, |run| run.requests) + 1,
            head,
            body,
        });
        let surplus = self.runs.len().saturating_sub(most);
        self.runs.drain(..surplus);
    }

    /// The runs, the newest first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &SubagentRun> {
        self.runs.iter().rev()
    }

    /// Removes the runs of a session that is over.
    pub(crate) fn forget(&mut self, session: &str) {
        self.runs.retain(|run| !run.whose.is_of(session));
    }
}
