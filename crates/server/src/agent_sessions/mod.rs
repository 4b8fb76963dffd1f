//! The sessions of the built-in agent in one engine.
//!
//! A session is kept in memory from its first use on. Its truth is its log in the journal: a session that is not in memory is folded
//! from there, also after a crash.

mod catalog;
mod follow;
mod live;
mod mcp;
mod reads;
mod ring;
mod summary;
mod surface_requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sayso_agent::{AgentSession, Catalog, History, LogEntry, SessionIdentity, Settings, SettingsPatch, SharedHost};
use sayso_proxy::Proxy;
use sayso_review::{BUILT_IN_AGENT, ChangeId, ErrorKind, RequestId};
use sayso_tools::{ReadLogEntries, Registry};
use serde_json::Value;

use crate::agent_conversation::block_count;
use crate::agent_host::{AgentHost, follow_proposals};
use crate::failure::Failure;
use crate::host::{Host, now};
use crate::settings::AgentDefaults;

pub(crate) use catalog::invalid as invalid_settings;
pub(crate) use follow::follow;
pub(crate) use live::{LiveSession, WaitingFor, WaitingGuard};
use mcp::McpConnections;
pub(crate) use mcp::connect_servers;
pub(crate) use reads::READS_VERSION;
pub(crate) use ring::{EventRing, RingRead};
use summary::SummaryCache;
pub(crate) use summary::summary;
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
    summaries: SummaryCache,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            summaries: SummaryCache::default(),
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
        self.live_with(session, ReadLogEntries::default)
    }

    fn live_with(&self, session: &str, reads: impl FnOnce() -> ReadLogEntries) -> Arc<LiveSession> {
        let mut live = lock(&self.live);
        let new = || Arc::new(LiveSession::new(session.to_owned(), reads()));
        Arc::clone(live.entry(session.to_owned()).or_insert_with(new))
    }

    /// Returns a session in memory.
    pub(crate) fn find_live(&self, session: &str) -> Option<Arc<LiveSession>> {
        lock(&self.live).get(session).cloned()
    }

    /// Removes a session from memory.
    fn forget(&self, session: &str) {
        lock(&self.live).remove(session);
        self.summaries.remove(session);
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
    let reads = reads::recorded(host, session)?;
    let live = sessions.live_with(session, || reads);
    live.ring.continue_after(first_event_number());
    live.add_blocks(log.iter().filter_map(LogEntry::known).map(block_count).sum());
    withdraw_dangling(host, session, &log)?;
    let agent_host: SharedHost = Arc::new(AgentHost::new(host));
    let agent = AgentSession::resume(session, &log, settings, Arc::new(catalog), agent_host)
        .map_err(|error| Failure::new(ErrorKind::Unavailable, error.to_string()).hint(error.hint))?;
    live.set_agent(agent);
    follow_proposals(host, session, &log);
    Ok(live)
}

/// Returns a number that is higher than those of all events of earlier engines, none of which had a million events a second.
fn first_event_number() -> u64 {
    u64::try_from(now()).unwrap_or(0).saturating_mul(1_000)
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
            live.set_agent(agent);
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
    // Before the interrupt, which would end a paused request as abandoned by its client.
    host.proxy.interceptor.end_session(session);
    if let Some(agent) = live.agent() {
        agent.interrupt(sayso_agent::ClearQueue::Yes);
    }
    live.commands.kill_all();
    // Requests that the agent sent in between.
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
