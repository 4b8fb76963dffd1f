//! The sessions of the built-in agent in one engine.
//!
//! A session is kept in memory from its first use on. Its truth is its log in the journal: a session that is not in memory is folded
//! from there, also after a crash.

mod catalog;
mod follow;
mod mcp;
mod ring;
mod surface_requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sayso_agent::{
    AgentSession, Catalog, History, LiveEvent, LogEntry, SessionIdentity, Settings, SettingsPatch, SharedHost,
};
use sayso_api::proto;
use sayso_api::proto::oneof::invoke_event::Event;
use sayso_proxy::Proxy;
use sayso_review::{BUILT_IN_AGENT, ChangeId, ErrorKind, RequestId};
use sayso_tools::{ReadLog, Registry};
use serde_json::Value;

use crate::agent_conversation::block_count;
use crate::agent_host::{AgentHost, CommandSessions};
use crate::failure::Failure;
use crate::host::{Host, now};
use crate::service::agent::live_event;
use crate::settings::AgentDefaults;

pub(crate) use catalog::invalid as invalid_settings;
pub(crate) use follow::follow;
use mcp::McpConnections;
pub(crate) use mcp::connect_servers;
pub(crate) use ring::{EventRing, RingRead};
pub use surface_requests::SurfaceTiming;
pub(crate) use surface_requests::{AttachedSurface, RequestKind, Submitted, SurfaceRequests};

/// Entries of a log that are read at a time.
const PAGE_SIZE: usize = 500;

/// The sessions of an engine.
#[derive(Debug)]
pub(crate) struct AgentSessions {
    /// MCP servers, and the tools of the agent.
    mcp: McpConnections,
    live: Mutex<BTreeMap<String, Arc<LiveSession>>>,
    /// Settings of new sessions, from the configuration.
    defaults: Mutex<AgentDefaults>,
    /// Settings of new sessions that a surface has set.
    chosen: Mutex<SettingsPatch>,
    /// Name of the endpoint for model requests.
    capability: OnceLock<String>,
    timing: Mutex<SurfaceTiming>,
    /// Changes whose commands this engine runs.
    running_changes: Mutex<BTreeSet<ChangeId>>,
    /// Serialises the start of sessions, so that none is resumed twice.
    opening: Mutex<()>,
}

/// A session in memory.
#[derive(Debug)]
pub(crate) struct LiveSession {
    pub(crate) id: String,
    pub(crate) ring: EventRing,
    pub(crate) requests: Arc<SurfaceRequests>,
    pub(crate) reads: ReadLog,
    pub(crate) commands: CommandSessions,
    agent: OnceLock<AgentSession>,
    state: Mutex<LiveState>,
}

#[derive(Debug, Default)]
struct LiveState {
    /// Id of the running or last invocation.
    invocation: String,
    /// Number of completed blocks of the conversation.
    blocks: u64,
    /// Review of the last turn.
    review: Option<ChangeId>,
    /// Decisions and answers that a person owes.
    waiting: usize,
    /// Time of the last event.
    active: i64,
    /// MCP servers that cannot be used, as the agent was told.
    mcp_problems: Vec<String>,
}

/// The subject of a wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitingFor {
    Change(ChangeId),
    Request(RequestId),
    /// An answer to a question, which has an event of its own.
    Answer,
}

/// A wait for a person, until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitingGuard(Arc<LiveSession>);

impl Drop for WaitingGuard {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveSession {
    fn new(id: String) -> Self {
        Self {
            id,
            ring: EventRing::default(),
            requests: Arc::default(),
            reads: ReadLog::default(),
            commands: CommandSessions::default(),
            agent: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        lock(&self.state)
    }

    /// Returns the agent's session; `None` for a subagent, which its parent runs.
    pub(crate) fn agent(&self) -> Option<&AgentSession> {
        self.agent.get()
    }

    /// Adds an event of the agent.
    pub(crate) fn emit(&self, event: LiveEvent) {
        let review = self.state().review;
        let LiveEvent { time_ms, invocation, kind } = event;
        self.state().active = time_ms;
        self.ring.push(time_ms, &invocation, live_event(kind, review));
    }

    /// Adds an event of the host.
    pub(crate) fn push(&self, invocation: &str, event: Event) {
        let time = now();
        self.state().active = time;
        self.ring.push(time, invocation, event);
    }

    pub(crate) fn invocation(&self) -> String {
        self.state().invocation.clone()
    }

    pub(crate) fn set_invocation(&self, invocation: &str) {
        let mut state = self.state();
        invocation.clone_into(&mut state.invocation);
        state.review = None;
    }

    pub(crate) fn set_review(&self, review: Option<ChangeId>) {
        self.state().review = review;
    }

    /// Counts completed blocks, and returns the number of the last one.
    pub(crate) fn add_blocks(&self, count: u64) -> u64 {
        let mut state = self.state();
        state.blocks += count;
        state.blocks
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.state().blocks
    }

    /// Time of the last event, in milliseconds since 1970; 0 if there was none.
    pub(crate) fn active(&self) -> i64 {
        self.state().active
    }

    /// `true` while a person has to decide or answer.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state().waiting > 0 || self.requests.is_asking()
    }

    /// Shows the session as waiting until the guard is dropped.
    pub(crate) fn wait_for(self: &Arc<Self>, invocation: &str, subject: WaitingFor) -> WaitingGuard {
        self.state().waiting += 1;
        let (text, request, change) = match subject {
            WaitingFor::Change(change) => (format!("change {change} waits for a decision"), None, Some(change)),
            WaitingFor::Request(request) => (format!("request {request} is paused"), Some(request), None),
            WaitingFor::Answer => ("a question waits for an answer".to_owned(), None, None),
        };
        let state = proto::invocation_status::State::Waiting.into();
        let status = proto::InvocationStatus { state, text, request, change, ..Default::default() };
        self.push(invocation, status.into());
        WaitingGuard(Arc::clone(self))
    }
}

impl Default for AgentSessions {
    fn default() -> Self {
        Self {
            mcp: McpConnections::default(),
            live: Mutex::default(),
            defaults: Mutex::default(),
            chosen: Mutex::default(),
            capability: OnceLock::new(),
            timing: Mutex::new(SurfaceTiming::DEFAULT),
            running_changes: Mutex::default(),
            opening: Mutex::default(),
        }
    }
}

impl AgentSessions {
    /// Returns the tools of the agent.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.mcp.registry()
    }

    pub(crate) fn configure(&self, defaults: AgentDefaults) {
        self.mcp.configure(&defaults.mcp_servers);
        *lock(&self.defaults) = defaults;
    }

    pub(crate) fn set_timing(&self, timing: SurfaceTiming) {
        *lock(&self.timing) = timing;
    }

    pub(crate) fn timing(&self) -> SurfaceTiming {
        *lock(&self.timing)
    }

    /// Variables that commands of the agent do not get.
    pub(crate) fn key_variables(&self) -> Vec<String> {
        lock(&self.defaults).key_variables.clone()
    }

    /// Returns the endpoint of the built-in agent, which is the same in all engines of the workspace.
    pub(crate) fn capability(&self, proxy: &Proxy) -> Result<String, Failure> {
        if let Some(known) = self.capability.get() {
            return Ok(known.clone());
        }
        let endpoint = proxy.endpoints.persistent(Some(BUILT_IN_AGENT.to_owned()), BTreeMap::new())?;
        Ok(self.capability.get_or_init(|| endpoint.capability).clone())
    }

    pub(crate) fn start_running(&self, change: ChangeId) {
        lock(&self.running_changes).insert(change);
    }

    pub(crate) fn stop_running(&self, change: ChangeId) {
        lock(&self.running_changes).remove(&change);
    }

    /// `true` while this engine runs the command of a change.
    pub(crate) fn is_running(&self, change: ChangeId) -> bool {
        lock(&self.running_changes).contains(&change)
    }

    /// Returns a session in memory, and adds an empty one if needed: a subagent's first sign of life is an entry or an event.
    pub(crate) fn live(&self, session: &str) -> Arc<LiveSession> {
        let mut live = lock(&self.live);
        let new = || Arc::new(LiveSession::new(session.to_owned()));
        Arc::clone(live.entry(session.to_owned()).or_insert_with(new))
    }

    /// Returns a session in memory.
    pub(crate) fn find_live(&self, session: &str) -> Option<Arc<LiveSession>> {
        lock(&self.live).get(session).cloned()
    }

    /// Removes a session from memory.
    fn forget(&self, session: &str) {
        lock(&self.live).remove(session);
    }

    /// Calls an MCP server with approved arguments.
    pub(crate) async fn call_mcp(
        &self,
        host: &Host,
        server: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<String, String> {
        self.mcp.call(host, server, tool, arguments).await
    }

    /// Ends the MCP servers, because the engine stops.
    pub(crate) async fn close_mcp(&self) {
        self.mcp.close().await;
    }

    /// Stops all sessions, because the engine stops. Their logs tell the next engine where they were.
    pub(crate) fn stop(&self) {
        for live in lock(&self.live).values() {
            live.commands.kill_all();
        }
    }
}

/// Returns a session, from memory or from its log. Call it on a blocking thread.
pub(crate) fn open(host: &Arc<Host>, session: &str) -> Result<Arc<LiveSession>, Failure> {
    let sessions = &host.agent_sessions;
    let live = sessions.find_live(session);
    if let Some(live) = live.filter(|live| live.agent().is_some()) {
        return Ok(live);
    }
    let _opening = lock(&sessions.opening);
    if let Some(live) = sessions.find_live(session).filter(|live| live.agent().is_some()) {
        return Ok(live);
    }
    let log = read_log(host, session)?;
    if log.is_empty() {
        return Err(no_session(session));
    }
    let catalog = current_catalog(host);
    // The first entry has the settings. A session can be read without a key.
    let started = log.iter().filter_map(LogEntry::known).find_map(|entry| match entry {
        sayso_agent::Entry::Started { settings, .. } => Some(settings.clone()),
        _ => None,
    });
    let settings = started.ok_or_else(|| no_session(session))?;
    let live = sessions.live(session);
    live.add_blocks(log.iter().filter_map(LogEntry::known).map(block_count).sum());
    withdraw_dangling(host, session, &log)?;
    let agent_host: SharedHost = Arc::new(AgentHost::new(host));
    let agent = AgentSession::resume(session, &log, settings, Arc::new(catalog), agent_host)
        .map_err(|error| Failure::new(ErrorKind::Unavailable, error.to_string()).hint(error.hint))?;
    // Cannot be set: opened under the lock.
    let _ = live.agent.set(agent);
    Ok(live)
}

/// Withdraws the pending changes of calls that the log answers "cancelled". Proposals, whose calls have ended, stay.
fn withdraw_dangling(host: &Host, session: &str, log: &[LogEntry]) -> Result<(), Failure> {
    let dangling: BTreeSet<String> = History::fold(log).dangling_calls().into_iter().map(|call| call.id).collect();
    if dangling.is_empty() {
        return Ok(());
    }
    for change in host.gate.pending_changes()? {
        let origin = host.gate.read(|history| history.change(change))?.origin;
        let is_own = origin.session.as_deref() == Some(session);
        if is_own && origin.call.is_some_and(|call| dangling.contains(&call)) {
            host.gate.withdraw(change, now())?;
        }
    }
    Ok(())
}

/// Starts a session. Call it on a blocking thread.
pub(crate) fn start(
    host: &Arc<Host>,
    patch: &SettingsPatch,
    fork_of: Option<RequestId>,
    conversation: Vec<sayso_agent::Entry>,
) -> Result<Arc<LiveSession>, Failure> {
    let (catalog, settings) = new_settings(host, patch)?;
    let session = new_id()?;
    let live = host.agent_sessions.live(&session);
    let identity = SessionIdentity { session: session.clone(), fork_of, ..SessionIdentity::default() };
    let agent_host: SharedHost = Arc::new(AgentHost::new(host));
    let started = AgentSession::fork(identity, settings, Arc::new(catalog), agent_host, conversation);
    match started {
        Ok(agent) => {
            // Cannot be set: the id is new.
            let _ = live.agent.set(agent);
            Ok(live)
        }
        Err(error) => {
            host.agent_sessions.forget(&session);
            Err(Failure::new(ErrorKind::Unavailable, error.to_string()).hint(error.hint))
        }
    }
}

/// Ends a session and removes its history. Files stay as they are. Call it on a blocking thread.
pub(crate) fn clear(host: &Arc<Host>, session: &str) -> Result<(), Failure> {
    let live = open(host, session)?;
    if let Some(agent) = live.agent() {
        agent.interrupt(sayso_agent::ClearQueue::Yes);
    }
    live.commands.kill_all();
    host.proxy.interceptor.end_session(session);
    let cleared = sayso_gate::NewAgentEntry {
        session,
        kind: sayso_review::AgentEntryKind::Cleared,
        version: 1,
        content: &Value::Null,
    };
    host.gate.record_agent_entries(&[cleared], now())?;
    host.gate.end_session(session, now())?;
    host.agent_sessions.forget(session);
    host.conversations.forget(session);
    Ok(())
}

/// Reads the log of a session.
pub(crate) fn read_log(host: &Host, session: &str) -> Result<Vec<LogEntry>, Failure> {
    let (mut entries, mut after) = (Vec::new(), 0);
    loop {
        let page = host.gate.read(|history| history.agent_log(session, after, PAGE_SIZE))?;
        let Some(last) = page.last() else { return Ok(entries) };
        after = last.number;
        // Content that retention deleted is left out: the conversation goes on with the rest.
        let known = page.iter().filter_map(|entry| LogEntry::from_json(&entry.content.as_ref()?.to_string()).ok());
        entries.extend(known);
    }
}

/// Returns the values that can be chosen now.
pub(crate) fn current_catalog(host: &Host) -> Catalog {
    let defaults = lock(&host.agent_sessions.defaults).clone();
    catalog::catalog(host, &defaults)
}

/// Returns the choices, and the settings of a new session.
pub(crate) fn new_settings(host: &Host, patch: &SettingsPatch) -> Result<(Catalog, Settings), Failure> {
    let defaults = lock(&host.agent_sessions.defaults).clone();
    let chosen = lock(&host.agent_sessions.chosen).clone();
    let catalog = catalog::catalog(host, &defaults);
    let settings = catalog::new_settings(&catalog, &defaults, &[&chosen, patch])?;
    Ok((catalog, settings))
}

/// Changes the settings of new sessions.
pub(crate) fn set_new_settings(host: &Host, patch: &SettingsPatch) -> Result<Settings, Failure> {
    let (_, settings) = new_settings(host, patch)?;
    let mut chosen = lock(&host.agent_sessions.chosen);
    let SettingsPatch { model, dialect, upstream, scenario, limits, show_thinking, thinking_tokens } = patch.clone();
    chosen.model = model.or(chosen.model.take());
    chosen.dialect = dialect.or(chosen.dialect.take());
    chosen.upstream = upstream.or(chosen.upstream.take());
    chosen.scenario = scenario.or(chosen.scenario.take());
    chosen.limits = limits.or(chosen.limits);
    chosen.show_thinking = show_thinking.or(chosen.show_thinking);
    chosen.thinking_tokens = thinking_tokens.or(chosen.thinking_tokens);
    Ok(settings)
}

pub(crate) fn no_session(session: &str) -> Failure {
    Failure::new(ErrorKind::InvalidArgs, format!("there is no session `{session}` of the built-in agent"))
        .hint("`sayso sessions` lists them")
}

fn new_id() -> Result<String, Failure> {
    let mut bytes = [0_u8; 6];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Failure::new(ErrorKind::Unavailable, format!("cannot choose the id of a session: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
