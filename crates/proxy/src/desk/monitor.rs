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
    /// The newest request that somebody has looked at.
    viewed: RequestId,
}

impl Monitor {
    /// Takes in a request of a subagent, and drops the oldest runs beyond a number; how many.
    pub(crate) fn saw(
        &mut self,
        request: RequestId,
        whose: &Whose,
        head: Head,
        body: Bytes,
        most: usize,
        now: i64,
    ) -> usize {
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
        self.runs.drain(..surplus).count()
    }

    /// Takes note that somebody looks at the runs; whether any of these is newer than what was looked at before.
    pub(super) fn view(&mut self, through: RequestId) -> bool {
        let newer = through > self.viewed;
        self.viewed = self.viewed.max(through);
        newer
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

#[cfg(test)]
mod tests {
    use sayso_review::SubagentMark;

    use super::*;

    fn saw(monitor: &mut Monitor, request: RequestId, session: &str, id: Option<&str>, parent: Option<&str>) {
        let mark = SubagentMark { id: id.map(str::to_owned), parent: parent.map(str::to_owned) };
        let whose = Whose { session: session.to_owned(), subagent: Some(mark), ..Whose::default() };
        let _ = monitor.saw(request, &whose, Head::new("/v1/messages"), Bytes::new(), 10, 1);
    }

    fn seen(monitor: &Monitor) -> Vec<(RequestId, u64)> {
        monitor.runs().map(|run| (run.request, run.requests)).collect()
    }

    #[test]
    fn those_without_a_name_are_a_run_each() {
        let mut monitor = Monitor::default();
        for request in 1..=2 {
            saw(&mut monitor, request, "s", Some("a"), None);
            saw(&mut monitor, request + 10, "s", None, None);
        }
        assert_eq!(seen(&monitor), [(12, 1), (2, 2), (11, 1)]);
    }

    #[test]
    fn beyond_the_last_ten_runs_the_oldest_go() {
        let mut monitor = Monitor::default();
        for request in 1..=12 {
            saw(&mut monitor, request, "s", Some(&request.to_string()), None);
        }
        assert_eq!(seen(&monitor).len(), 10);
        assert_eq!(seen(&monitor)[9], (3, 1));
    }

    #[test]
    fn a_run_goes_with_its_own_session_and_with_that_of_its_agent() {
        let mut monitor = Monitor::default();
        saw(&mut monitor, 1, "child", Some("a"), Some("parent"));
        saw(&mut monitor, 2, "own", Some("b"), None);
        saw(&mut monitor, 3, "other", Some("c"), Some("another"));
        monitor.forget("parent");
        assert_eq!(seen(&monitor), [(3, 1), (2, 1)]);
        monitor.forget("own");
        assert_eq!(seen(&monitor), [(3, 1)]);
    }
}
