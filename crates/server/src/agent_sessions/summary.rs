//! Descriptions of sessions that are not in memory, for the list of sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sayso_agent::{History, Settings};
use sayso_review::AgentEntryKind;

use super::{lock, read_log};
use crate::failure::Failure;
use crate::host::Host;

/// Number of cached descriptions.
const MAX_SUMMARIES: usize = 2_000;

/// The description of a session, from its log.
#[derive(Debug)]
pub(crate) struct SessionSummary {
    pub(crate) title: String,
    pub(crate) settings: Option<Settings>,
    pub(crate) completed_turns: u64,
    pub(crate) fork_of: Option<u64>,
    /// An invocation has no end in the log.
    pub(crate) is_running: bool,
    /// Time of the last entry, in milliseconds since 1970.
    pub(crate) active: i64,
}

/// State of a log: the numbers of its last entry and of the event that cleared it.
type LogState = (u64, u64);

/// Descriptions by session.
#[derive(Debug, Default)]
pub(super) struct SummaryCache(Mutex<BTreeMap<String, (LogState, Arc<SessionSummary>)>>);

impl SummaryCache {
    fn find(&self, session: &str, state: LogState) -> Option<Arc<SessionSummary>> {
        let cache = lock(&self.0);
        cache.get(session).filter(|(cached, _)| *cached == state).map(|(_, summary)| Arc::clone(summary))
    }

    fn insert(&self, session: &str, state: LogState, summary: Arc<SessionSummary>) {
        let mut cache = lock(&self.0);
        if cache.len() >= MAX_SUMMARIES {
            cache.clear();
        }
        cache.insert(session.to_owned(), (state, summary));
    }

    pub(super) fn remove(&self, session: &str) {
        lock(&self.0).remove(session);
    }
}

/// Describes a session by its log, which is folded again only if it has grown. `None` if its history was removed.
pub(crate) fn summary(host: &Host, session: &str) -> Result<Option<Arc<SessionSummary>>, Failure> {
    let (last, cleared) = host.gate.read(|history| {
        let last = history.last_agent_entry(session, AgentEntryKind::Log)?;
        Ok::<_, sayso_gate::GateError>((last, history.agent_log_start(session)?))
    })?;
    let Some(last) = last.filter(|last| last.number > cleared) else { return Ok(None) };
    let (cache, state) = (&host.agent_sessions.summaries, (last.number, cleared));
    if let Some(summary) = cache.find(session, state) {
        return Ok(Some(summary));
    }
    let log = read_log(host, session)?;
    if log.is_empty() {
        return Ok(None);
    }
    let history = History::fold(&log);
    let summary = Arc::new(SessionSummary {
        title: history.title().to_owned(),
        settings: history.settings().cloned(),
        completed_turns: history.completed_turns(),
        fork_of: history.fork_of(),
        is_running: history.running().is_some(),
        active: last.time,
    });
    cache.insert(session, state, Arc::clone(&summary));
    Ok(Some(summary))
}
