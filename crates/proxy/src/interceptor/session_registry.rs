//! Known sessions, with their modes and the runs of their subagents.

use std::collections::{BTreeMap, BTreeSet};

use super::modes::Modes;
use super::monitor::Monitor;
use super::{AgentRun, Attribution};

/// Sessions that surfaces can choose from. The one that was idle longest is evicted.
const MAX_SESSIONS: usize = 200;

/// Sessions that have sent a request since the engine started.
#[derive(Debug)]
pub(super) struct SessionRegistry {
    sessions: BTreeMap<String, SessionActivity>,
    pub(super) modes: Modes,
    pub(super) monitor: Monitor,
}

#[derive(Debug)]
pub(super) struct SessionActivity {
    pub(super) agent: Option<String>,
    /// The last model of the session itself, not of its subagents.
    pub(super) model: Option<String>,
    pub(super) run: String,
    /// Time of the last request, in milliseconds since 1970.
    pub(super) last: i64,
    pub(super) requests: u64,
}

impl SessionActivity {
    fn touch(&mut self, attribution: &Attribution, now: i64) {
        self.last = now;
        self.requests += 1;
        if attribution.subagent.is_none() && attribution.model.is_some() && self.model != attribution.model {
            self.model.clone_from(&attribution.model);
        }
    }
}

impl SessionRegistry {
    pub(super) fn new(modes: Modes) -> Self {
        Self { sessions: BTreeMap::new(), modes, monitor: Monitor::default() }
    }

    /// Counts a request in its session.
    pub(super) fn touch(&mut self, attribution: &Attribution, run: &AgentRun, now: i64) {
        if let Some(session) = self.sessions.get_mut(&attribution.session) {
            return session.touch(attribution, now);
        }
        if self.sessions.len() >= MAX_SESSIONS {
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.last);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.map(|oldest| self.sessions.remove(&oldest));
        }
        let (agent, run) = (attribution.agent.clone(), run.name.clone());
        let mut session = SessionActivity { agent, model: None, run, last: now, requests: 0 };
        session.touch(attribution, now);
        self.sessions.insert(attribution.session.clone(), session);
    }

    pub(super) fn get(&self, session: &str) -> Option<&SessionActivity> {
        self.sessions.get(session)
    }

    /// Names of the sessions that sent a request or have a mode of their own.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.sessions.keys().chain(self.modes.sessions()).cloned().collect()
    }

    pub(super) fn sessions_of_run(&self, run: &str) -> Vec<String> {
        self.sessions.iter().filter(|(_, session)| session.run == run).map(|(name, _)| name.clone()).collect()
    }

    /// Removes a session and the runs of its subagents, but not its mode.
    pub(super) fn remove(&mut self, session: &str) {
        self.monitor.remove_session(session);
        self.sessions.remove(session);
    }
}
