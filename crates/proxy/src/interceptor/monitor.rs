//! The last runs of subagents, for display. Their requests are not held by modes.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use sayso_review::RequestId;
use sayso_wire::{ModelRequest, RequestHead};

use super::{Attribution, RequestEnvelope};

/// A run of a subagent, with its last request.
#[derive(Clone, Debug)]
pub struct SubagentRun {
    pub request: RequestId,
    pub attribution: Attribution,
    /// Time of the first request, in milliseconds since 1970.
    pub started: i64,
    /// Time of the last request, in milliseconds since 1970.
    pub last: i64,
    pub requests: u64,
    head: RequestHead,
    body: Bytes,
}

impl SubagentRun {
    /// Parses the last request.
    pub fn request(&self) -> ModelRequest {
        ModelRequest::new(self.request.to_string(), self.head.clone(), Arc::<[u8]>::from(&self.body[..]))
    }
}

/// The last runs, newest last.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    runs: VecDeque<SubagentRun>,
    /// The newest request that was displayed.
    viewed: RequestId,
}

impl Monitor {
    /// Adds a request of a subagent, and evicts the oldest runs beyond a limit. Returns the number of evicted runs.
    pub(super) fn observe(&mut self, envelope: &RequestEnvelope, body: Bytes, max_runs: usize, now: i64) -> usize {
        let RequestEnvelope { request, attribution, metadata, .. } = envelope;
        let is_same = |run: &SubagentRun| {
            run.attribution.session == attribution.session && run.attribution.subagent == attribution.subagent
        };
        // Unnamed subagents cannot be told apart, so each request counts as a run.
        let is_named = attribution.subagent.as_ref().is_some_and(|mark| mark.id.is_some() || mark.parent.is_some());
        let earlier = if is_named { self.runs.iter().position(is_same) } else { None };
        let earlier = earlier.and_then(|position| self.runs.remove(position));
        self.runs.push_back(SubagentRun {
            request: *request,
            attribution: attribution.clone(),
            started: earlier.as_ref().map_or(now, |run| run.started),
            last: now,
            requests: earlier.map_or(0, |run| run.requests) + 1,
            head: metadata.head.clone(),
            body,
        });
        let surplus = self.runs.len().saturating_sub(max_runs);
        self.runs.drain(..surplus).count()
    }

    /// Marks all requests up to this one as displayed. Returns `false` if they were already.
    pub(super) fn mark_viewed(&mut self, through: RequestId) -> bool {
        let newer = through > self.viewed;
        self.viewed = self.viewed.max(through);
        newer
    }

    /// The runs, newest first.
    pub(super) fn runs(&self) -> impl Iterator<Item = &SubagentRun> {
        self.runs.iter().rev()
    }

    pub(super) fn remove_session(&mut self, session: &str) {
        self.runs.retain(|run| !run.attribution.belongs_to(session));
    }
}

#[cfg(test)]
mod tests {
    use sayso_review::SubagentMark;

    use super::super::{AgentRun, BodySignature, RequestMetadata};
    use super::*;

    fn observe(monitor: &mut Monitor, request: RequestId, session: &str, id: Option<&str>, parent: Option<&str>) {
        let mark = SubagentMark { id: id.map(str::to_owned), parent: parent.map(str::to_owned) };
        let attribution = Attribution { session: session.to_owned(), subagent: Some(mark), ..Attribution::default() };
        let metadata = RequestMetadata {
            run: AgentRun { name: "run".to_owned(), agent: None },
            upstream: "anthropic".to_owned(),
            server: String::new(),
            method: "POST".to_owned(),
            head: RequestHead::new("/v1/messages"),
            encoding: None,
            key: None,
            signed: BodySignature::Unsigned,
            deadline: None,
            replay_of: None,
        };
        let envelope = RequestEnvelope::new(request, attribution, metadata);
        let _ = monitor.observe(&envelope, Bytes::new(), 10, 1);
    }

    fn runs(monitor: &Monitor) -> Vec<(RequestId, u64)> {
        monitor.runs().map(|run| (run.request, run.requests)).collect()
    }

    #[test]
    fn unnamed_subagent_request_is_new_run() {
        let mut monitor = Monitor::default();
        for request in 1..=2 {
            observe(&mut monitor, request, "s", Some("a"), None);
            observe(&mut monitor, request + 10, "s", None, None);
        }
        assert_eq!(runs(&monitor), [(12, 1), (2, 2), (11, 1)]);
    }

    #[test]
    fn runs_beyond_limit_evict_oldest() {
        let mut monitor = Monitor::default();
        for request in 1..=12 {
            observe(&mut monitor, request, "s", Some(&request.to_string()), None);
        }
        assert_eq!(runs(&monitor).len(), 10);
        assert_eq!(runs(&monitor)[9], (3, 1));
    }

    #[test]
    fn ended_session_removes_runs_of_subagents() {
        let mut monitor = Monitor::default();
        observe(&mut monitor, 1, "child", Some("a"), Some("parent"));
        observe(&mut monitor, 2, "own", Some("b"), None);
        observe(&mut monitor, 3, "other", Some("c"), Some("another"));
        monitor.remove_session("parent");
        assert_eq!(runs(&monitor), [(3, 1), (2, 1)]);
        monitor.remove_session("own");
        assert_eq!(runs(&monitor), [(3, 1)]);
    }
}
