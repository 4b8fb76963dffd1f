//! What surfaces see of requests, sessions and saved edits.

use std::collections::BTreeSet;
use std::sync::Arc;

use sayso_gate::GateError;
use sayso_review::{Event, PauseReason, RequestId, RequestLook, RequestRecord, SavedEdits as SavedOutcome};
use sayso_wire::tokens::TokenCounter;
use sayso_wire::{Head, ModelRequest, Override, Scope};

use super::mode::Effective;
use super::monitor::SubagentRun;
use super::saved::SavedError;
use super::{Captures, Desk, Signed, Whose, lock};
use crate::log::Haste;

/// Requests that are looked through for the sessions that sent them.
const MOST_LOOKED_AT: usize = 1_000;

/// A request as somebody looks at it.
#[derive(Debug)]
pub struct Looked<'r> {
    /// The request with its edits.
    pub request: &'r ModelRequest,
    /// How it waits, if it does.
    pub waiting: Option<Waits>,
    /// What counts tokens.
    pub counter: &'r mut TokenCounter,
}

/// How a request waits.
#[derive(Clone, Debug)]
pub struct Waits {
    /// Whose it is.
    pub whose: Whose,
    /// Why.
    pub why: PauseReason,
    /// Since when, in milliseconds since 1970.
    pub since: i64,
    /// When its client will have given up.
    pub deadline: Option<i64>,
    /// How many edits there were, undone ones included.
    pub revision: u64,
    /// What became of saved edits.
    pub saved: SavedOutcome,
    /// Whether its edits are saved once it is resumed.
    pub captures: bool,
    /// Whether its body is signed.
    pub signed: Signed,
    /// Its upstream.
    pub upstream: String,
}

/// A session for a person to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub session: String,
    /// The agent.
    pub agent: Option<String>,
    /// The model that it last asked.
    pub model: Option<String>,
    /// When it last sent something, in milliseconds since 1970.
    pub last: i64,
    /// How many requests it sent.
    pub requests: u64,
    /// How many of them wait.
    pub waiting: usize,
    /// How its requests are treated.
    pub effective: Effective,
    /// How many saved edits count for it.
    pub saved: usize,
    /// Whether it has a mode of its own.
    pub own: bool,
}

/// A saved edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideView {
    /// The session that it is of, if it is one's.
    pub session: Option<String>,
    /// It.
    pub edit: Override,
}

impl Desk {
    /// The numbers of the requests that wait, the oldest first.
    pub fn waiting(&self) -> Vec<RequestId> {
        lock(&self.state).waiting.keys().copied().collect()
    }

    /// Looks at a request: one that waits with its edits, another as it was sent.
    pub fn look<T>(&self, request: RequestId, look: impl FnOnce(Looked<'_>) -> T) -> Result<T, GateError> {
        // Nobody else waits while somebody looks.
        let waiting = lock(&self.state).waiting.get(&request).map(|waiting| {
            let waits = Waits {
                whose: waiting.whose.clone(),
                why: waiting.why.clone(),
                since: waiting.since,
                deadline: waiting.came.deadline,
                revision: waiting.revision,
                saved: waiting.work.saved.clone(),
                captures: waiting.captures == Captures::Yes,
                signed: waiting.came.signed,
                upstream: waiting.came.upstream.clone(),
            };
            (waiting.current(), waits)
        });
        if let Some((current, waits)) = waiting {
            let parsed = current.sections();
            let counter = &mut lock(&self.counter);
            return Ok(look(Looked { request: &parsed, waiting: Some(waits), counter }));
        }
        let parsed = self.recorded(&self.record(request)?)?;
        Ok(look(Looked { request: &parsed, waiting: None, counter: &mut lock(&self.counter) }))
    }

    /// A request as it was sent: what came, with the edits that are known; else what was sent.
    fn recorded(&self, record: &RequestRecord) -> Result<ModelRequest, GateError> {
        let head = Head { path: record.seen.path.clone(), headers: record.seen.headers.clone() };
        let body = |body| self.gate.read(|history| history.body(body));
        let parse =
            |body: Vec<u8>| ModelRequest::new(record.request.to_string(), head.clone(), Arc::<[u8]>::from(body));
        let latest = body(record.latest())?;
        if let Some(patch) = record.patch.as_ref().filter(|_| record.is_edited())
            && let (Ok(came), Ok(patch)) = (body(&record.seen.body), body(patch))
        {
            let mut request = parse(came);
            if request.apply_patch(&patch).is_ok() && *request.to_bytes() == *latest {
                return Ok(request);
            }
        }
        Ok(parse(latest))
    }

    /// Looks at a request if it waits.
    pub fn look_if_waiting<T>(&self, request: RequestId, look: impl FnOnce(&ModelRequest) -> T) -> Option<T> {
        let current = lock(&self.state).waiting.get(&request).map(super::Waiting::current)?;
        Some(look(&current.sections()))
    }

    /// Whether a request that waits has edits, and what became of saved ones; `None` of one that does not wait. Cheaper than to look
    /// at it.
    pub fn edits(&self, request: RequestId) -> Option<(bool, SavedOutcome)> {
        let state = lock(&self.state);
        state.waiting.get(&request).map(|waiting| (waiting.work.is_edited(), waiting.work.saved.clone()))
    }

    /// What is recorded of a request.
    pub fn record(&self, request: RequestId) -> Result<RequestRecord, GateError> {
        self.log.flush();
        self.gate.read(|history| history.request(request))
    }

    /// What is recorded of requests, newest first.
    pub fn records(
        &self,
        session: Option<&str>,
        before: Option<RequestId>,
        limit: usize,
    ) -> Result<Vec<RequestRecord>, GateError> {
        self.log.flush();
        self.gate.read(|history| history.requests(session, before, limit))
    }

    /// How requests are treated, in a session or where there is none.
    pub fn effective(&self, session: Option<&str>) -> Effective {
        lock(&self.state).modes.effective(session)
    }

    /// Whether edits are to be captured in a session before any are applied.
    pub fn is_capturing(&self, session: &str) -> Result<bool, SavedError> {
        let effective = self.effective(Some(session));
        let none = self.saved.all(session, None)?.edits.is_empty();
        Ok(effective.capture_next || (effective.mode == sayso_review::RequestMode::AutoOverride && none))
    }

    /// The sessions that sent something, or that have a mode of their own, the latest first. Saved edits that cannot be read are not
    /// counted.
    pub fn sessions(&self) -> Vec<SessionView> {
        // Whose a request is may not have been looked at yet.
        self.log.flush();
        let state = lock(&self.state);
        let known: BTreeSet<String> = state.sessions.keys().chain(state.modes.sessions()).cloned().collect();
        let mut views: Vec<SessionView> = Vec::new();
        for name in known {
            let session = state.sessions.get(&name);
            views.push(SessionView {
                agent: session.and_then(|session| session.agent.clone()),
                model: session.and_then(|session| session.model.clone()),
                last: session.map_or(0, |session| session.last),
                requests: session.map_or(0, |session| session.requests),
                waiting: state.waiting.values().filter(|waiting| waiting.whose.session == name).count(),
                effective: state.modes.effective(Some(&name)),
                own: state.modes.has_own(&name),
                saved: 0,
                session: name,
            });
        }
        // Nobody waits for a disk.
        drop(state);
        let counted = |count: Result<usize, SavedError>| count.unwrap_or_default();
        let everywhere = counted(self.saved.everywhere());
        for view in &mut views {
            view.saved = everywhere + counted(self.saved.of_session(&view.session));
        }
        views.sort_by_key(|view| std::cmp::Reverse(view.last));
        views
    }

    /// The saved edits that count for a session, of all scopes; of those that are no session's, if none is named.
    pub fn saved(&self, session: Option<&str>) -> Result<Vec<OverrideView>, SavedError> {
        let scopes = [Scope::Global, Scope::Workspace].into_iter().chain(session.map(|_| Scope::Session));
        let mut saved = Vec::new();
        for scope in scopes {
            let session = session.filter(|_| scope == Scope::Session);
            let view = |edit| OverrideView { session: session.map(str::to_owned), edit };
            saved.extend(self.saved.of(scope, session.unwrap_or_default())?.into_iter().map(view));
        }
        Ok(saved)
    }

    /// The saved edits of all scopes, and of all sessions that are known.
    pub fn saved_anywhere(&self) -> Result<Vec<OverrideView>, SavedError> {
        let mut saved = self.saved(None)?;
        for session in self.known_sessions() {
            let view = |edit| OverrideView { session: Some(session.clone()), edit };
            saved.extend(self.saved.of(Scope::Session, &session)?.into_iter().map(view));
        }
        Ok(saved)
    }

    /// The sessions of this engine, and of the last requests that are recorded.
    fn known_sessions(&self) -> BTreeSet<String> {
        // Without the journal there is still what this engine has seen.
        let recorded = self.records(None, None, MOST_LOOKED_AT).unwrap_or_default();
        let recorded = recorded.into_iter().filter_map(|record| record.seen.origin.session);
        let state = lock(&self.state);
        state.sessions.keys().chain(state.modes.sessions()).cloned().chain(recorded).collect()
    }

    /// The last runs of subagents, the newest first.
    pub fn subagents(&self) -> Vec<SubagentRun> {
        lock(&self.state).monitor.runs().cloned().collect()
    }

    /// Takes note that a person is shown these runs of subagents. Who looks again at the same has not looked at anything new.
    pub fn viewed(&self, runs: &[&SubagentRun]) {
        let Some(through) = runs.iter().map(|run| run.request).max() else { return };
        if lock(&self.state).monitor.view(through) {
            self.log.event(Event::RequestLook(RequestLook::Monitor { through }), Haste::Soon);
        }
    }

    /// Takes note that a person is shown how a request differs from what came, unless that is what they saw last.
    pub fn compared(&self, request: RequestId, edits: u64) {
        let last = lock(&self.state).compared.replace((request, edits));
        if last != Some((request, edits)) {
            self.log.event(Event::RequestLook(RequestLook::Diff { request, edits }), Haste::Soon);
        }
    }
}
