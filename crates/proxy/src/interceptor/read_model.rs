//! Read access for surfaces: requests, sessions, overrides and subagent runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use sayso_gate::{Gate, GateError};
use sayso_review::{Event, OverrideReport, PauseReason, RequestId, RequestRecord, ViewEvent};
use sayso_wire::tokens::TokenCounter;
use sayso_wire::{ModelRequest, Override, RequestHead, Scope};

use super::held::SaveOnResume;
use super::{Attribution, BodySignature, EffectiveMode, HeldRequest, Interceptor, StateFileError, SubagentRun, lock};
use crate::recorder::{Flush, Recorder};

/// Recorded requests that are searched for the names of earlier sessions.
const SESSION_SEARCH_REQUESTS: usize = 1_000;

/// A parsed request, as passed to the closure of [`Interceptor::view`].
#[derive(Debug)]
pub struct RequestView<'r> {
    /// The request with its edits.
    pub request: &'r ModelRequest,
    /// `None` if the request is not held.
    pub hold: Option<HoldStatus>,
    pub counter: &'r mut TokenCounter,
}

/// State of a held request.
#[derive(Clone, Debug)]
pub struct HoldStatus {
    pub attribution: Attribution,
    pub reason: PauseReason,
    /// Start of the hold, in milliseconds since 1970.
    pub since: i64,
    /// Client timeout, in milliseconds since 1970.
    pub deadline: Option<i64>,
    /// Number of edits, including undone ones.
    pub revision: u64,
    pub overrides: OverrideReport,
    /// `true` if resuming the request saves its edits as overrides.
    pub save_on_resume: bool,
    pub signed: BodySignature,
    pub upstream: String,
}

impl HoldStatus {
    fn new(held: &HeldRequest) -> Self {
        Self {
            attribution: held.attribution.clone(),
            reason: held.reason.clone(),
            since: held.since,
            deadline: held.metadata.deadline,
            revision: held.revision,
            overrides: held.edits.overrides.clone(),
            save_on_resume: held.save_on_resume == SaveOnResume::Yes,
            signed: held.metadata.signed,
            upstream: held.metadata.upstream.clone(),
        }
    }
}

/// A session, for choosing one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    pub session: String,
    pub agent: Option<String>,
    pub model: Option<String>,
    /// Time of the last request, in milliseconds since 1970; 0 if there was none.
    pub last: i64,
    pub requests: u64,
    /// Number of held requests.
    pub held: usize,
    pub effective: EffectiveMode,
    /// Number of overrides that apply to the session.
    pub overrides: usize,
    pub has_own_mode: bool,
}

/// An override with its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverrideView {
    /// `None` unless the scope is [`Scope::Session`].
    pub session: Option<String>,
    pub edit: Override,
}

/// Recorded requests, and the counters and events of viewing them.
#[derive(Debug)]
pub(super) struct RequestReadModel {
    gate: Gate,
    recorder: Arc<Recorder>,
    counter: Mutex<TokenCounter>,
    /// The last diff that was displayed: the request, and its number of edits.
    last_diff: Mutex<Option<(RequestId, u64)>>,
}

impl RequestReadModel {
    pub(super) fn new(gate: Gate, recorder: Arc<Recorder>, counter: TokenCounter) -> Self {
        Self { gate, recorder, counter: Mutex::new(counter), last_diff: Mutex::default() }
    }

    pub(super) fn counter(&self) -> MutexGuard<'_, TokenCounter> {
        lock(&self.counter)
    }

    fn record(&self, request: RequestId) -> Result<RequestRecord, GateError> {
        self.recorder.flush();
        self.gate.read(|history| history.request(request))
    }

    fn records(
        &self,
        session: Option<&str>,
        before: Option<RequestId>,
        limit: usize,
    ) -> Result<Vec<RequestRecord>, GateError> {
        self.recorder.flush();
        self.gate.read(|history| history.requests(session, before, limit))
    }

    /// Parses a recorded request. If its patch reproduces the sent body, the result has the edits; otherwise it is the sent body alone.
    fn parse(&self, record: &RequestRecord) -> Result<ModelRequest, GateError> {
        let head = RequestHead { path: record.received.path.clone(), headers: record.received.headers.clone() };
        let body = |body| self.gate.read(|history| history.body(body));
        let parse =
            |body: Vec<u8>| ModelRequest::new(record.request.to_string(), head.clone(), Arc::<[u8]>::from(body));
        let latest = body(record.latest())?;
        if let Some(patch) = record.patch.as_ref().filter(|_| record.is_edited())
            && let (Ok(received), Ok(patch)) = (body(&record.received.body), body(patch))
        {
            let mut request = parse(received);
            if request.apply_patch(&patch).is_ok() && *request.to_bytes() == *latest {
                return Ok(request);
            }
        }
        Ok(parse(latest))
    }
}

impl Interceptor {
    /// Numbers of the held requests, oldest first.
    pub fn held(&self) -> Vec<RequestId> {
        lock(&self.state).held.keys().copied().collect()
    }

    /// Passes a request to a closure: a held request with its edits, any other as it was sent.
    pub fn view<T>(&self, request: RequestId, view: impl FnOnce(RequestView<'_>) -> T) -> Result<T, GateError> {
        let held = lock(&self.state).held.get(&request).map(|held| (held.snapshot(), HoldStatus::new(held)));
        let (parsed, hold) = match held {
            Some((snapshot, hold)) => (snapshot.parsed(), Some(hold)),
            None => (Arc::new(self.read_model.parse(&self.record(request)?)?), None),
        };
        Ok(view(RequestView { request: &parsed, hold, counter: &mut self.read_model.counter() }))
    }

    /// Passes a request to a closure; `None` if it is not held.
    pub fn view_if_held<T>(&self, request: RequestId, view: impl FnOnce(&ModelRequest) -> T) -> Option<T> {
        let snapshot = lock(&self.state).held.get(&request).map(HeldRequest::snapshot)?;
        Some(view(&snapshot.parsed()))
    }

    /// Tells whether a held request is edited, and reports its overrides; `None` if it is not held. Cheaper than [`Self::view`],
    /// because the request is not parsed.
    pub fn edit_status(&self, request: RequestId) -> Option<(bool, OverrideReport)> {
        let state = lock(&self.state);
        state.held.get(&request).map(|held| (held.edits.is_edited(), held.edits.overrides.clone()))
    }

    pub fn record(&self, request: RequestId) -> Result<RequestRecord, GateError> {
        self.read_model.record(request)
    }

    /// The recorded requests, newest first.
    pub fn records(
        &self,
        session: Option<&str>,
        before: Option<RequestId>,
        limit: usize,
    ) -> Result<Vec<RequestRecord>, GateError> {
        self.read_model.records(session, before, limit)
    }

    /// The mode of a session, or of sessions without their own.
    pub fn effective(&self, session: Option<&str>) -> EffectiveMode {
        lock(&self.state).registry.modes.effective(session)
    }

    /// The sessions that sent a request or have their own mode, newest first. Unreadable overrides count as none.
    pub fn sessions(&self) -> Vec<SessionView> {
        // A deferred request may belong to a new session.
        self.recorder.flush();
        let state = lock(&self.state);
        let view = |name: String| {
            let session = state.registry.get(&name);
            SessionView {
                agent: session.and_then(|session| session.agent.clone()),
                model: session.and_then(|session| session.model.clone()),
                last: session.map_or(0, |session| session.last),
                requests: session.map_or(0, |session| session.requests),
                held: state.held.values().filter(|held| held.attribution.session == name).count(),
                effective: state.registry.modes.effective(Some(&name)),
                has_own_mode: state.registry.modes.has_own(&name),
                overrides: 0,
                session: name,
            }
        };
        let mut views: Vec<SessionView> = state.registry.names().into_iter().map(view).collect();
        // The overrides are on disk.
        drop(state);
        let shared = self.overrides.count_shared().unwrap_or_default();
        for view in &mut views {
            view.overrides = shared + self.overrides.count_session(&view.session).unwrap_or_default();
        }
        views.sort_by_key(|view| std::cmp::Reverse(view.last));
        views
    }

    /// The overrides that apply to a session; without a session, the overrides of the wider scopes.
    pub fn overrides(&self, session: Option<&str>) -> Result<Vec<OverrideView>, StateFileError> {
        let scopes = [Scope::Global, Scope::Workspace].into_iter().chain(session.map(|_| Scope::Session));
        let mut views = Vec::new();
        for scope in scopes {
            let session = session.filter(|_| scope == Scope::Session);
            let view = |edit| OverrideView { session: session.map(str::to_owned), edit };
            views.extend(self.overrides.of(scope, session.unwrap_or_default())?.into_iter().map(view));
        }
        Ok(views)
    }

    /// The overrides of all scopes and all known sessions.
    pub fn all_overrides(&self) -> Result<Vec<OverrideView>, StateFileError> {
        let mut views = self.overrides(None)?;
        for session in self.known_sessions() {
            let view = |edit| OverrideView { session: Some(session.clone()), edit };
            views.extend(self.overrides.of(Scope::Session, &session)?.into_iter().map(view));
        }
        Ok(views)
    }

    /// The sessions of this engine and of the last recorded requests.
    fn known_sessions(&self) -> BTreeSet<String> {
        // If the journal cannot be read, the sessions of this engine are still known.
        let recorded = self.records(None, None, SESSION_SEARCH_REQUESTS).unwrap_or_default();
        let recorded = recorded.into_iter().filter_map(|record| record.received.origin.session);
        lock(&self.state).registry.names().into_iter().chain(recorded).collect()
    }

    /// The last runs of subagents, newest first.
    pub fn subagents(&self) -> Vec<SubagentRun> {
        lock(&self.state).registry.monitor.runs().cloned().collect()
    }

    /// Records that subagent runs were displayed, if one of them has a new request.
    pub fn record_runs_viewed(&self, runs: &[&SubagentRun]) {
        let Some(through) = runs.iter().map(|run| run.request).max() else { return };
        if lock(&self.state).registry.monitor.mark_viewed(through) {
            self.recorder.event(Event::RequestViewed(ViewEvent::Monitor { through }), Flush::Batched);
        }
    }

    /// Records that the diff of a request was displayed, unless it was the last one displayed.
    pub fn record_diff_viewed(&self, request: RequestId, edits: u64) {
        let last = lock(&self.read_model.last_diff).replace((request, edits));
        if last != Some((request, edits)) {
            self.recorder.event(Event::RequestViewed(ViewEvent::Diff { request, edits }), Flush::Batched);
        }
    }
}
