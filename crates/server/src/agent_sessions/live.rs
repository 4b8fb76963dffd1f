//! A session of the built-in agent in memory.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use sayso_agent::{AgentSession, LiveEvent};
use sayso_api::proto;
use sayso_api::proto::oneof::invoke_event::Event;
use sayso_review::{ChangeId, RequestId};
use sayso_tools::{ReadLog, ReadLogEntries};

use super::reads::{NewReads, added_reads};
use super::{EventRing, SurfaceRequests, lock};
use crate::agent_host::CommandSessions;
use crate::host::now;
use crate::service::agent::live_event;

/// A session in memory.
#[derive(Debug)]
pub(crate) struct LiveSession {
    pub(crate) id: String,
    pub(crate) ring: EventRing,
    pub(crate) requests: Arc<SurfaceRequests>,
    pub(crate) reads: ReadLog,
    /// Entries of `reads` that are in the journal.
    recorded_reads: Mutex<ReadLogEntries>,
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

impl LiveSession {
    /// Creates a session without an agent. `reads` are the file contents that the model saw.
    pub(super) fn new(id: String, reads: ReadLogEntries) -> Self {
        Self {
            id,
            ring: EventRing::default(),
            requests: Arc::default(),
            reads: ReadLog::restore(reads.clone()),
            recorded_reads: Mutex::new(reads),
            commands: CommandSessions::default(),
            agent: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// Stores the MCP servers that cannot be used. Returns those that were not stored before.
    pub(super) fn replace_mcp_problems(&self, problems: Vec<String>) -> Vec<String> {
        let mut state = self.state();
        let old = std::mem::replace(&mut state.mcp_problems, problems);
        state.mcp_problems.iter().filter(|problem| !old.contains(problem)).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        lock(&self.state)
    }

    /// Returns the agent's session; `None` for a subagent, which its parent runs.
    pub(crate) fn agent(&self) -> Option<&AgentSession> {
        self.agent.get()
    }

    /// Sets the agent of a session that has none.
    pub(super) fn set_agent(&self, agent: AgentSession) {
        // Fails only if it is set, and sessions start under a lock or with a new id.
        let _ = self.agent.set(agent);
    }

    /// Returns the reads that are not in the journal.
    pub(crate) fn new_reads(&self) -> NewReads {
        let reads = self.reads.entries();
        let added = added_reads(&lock(&self.recorded_reads), &reads);
        NewReads { reads, added }
    }

    /// Marks reads as recorded.
    pub(crate) fn set_recorded_reads(&self, new: NewReads) {
        *lock(&self.recorded_reads) = new.reads;
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
