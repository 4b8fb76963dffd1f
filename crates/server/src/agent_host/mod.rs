//! The engine as the host of the built-in agent: each of its actions becomes an intent of the gate, as for any other agent.
//!
//! - `change.rs`: submits an intent, waits for its verdict and withdraws it if the agent is interrupted.
//! - `command.rs`, `process.rs`: permitted commands, run by `sayso call` under the kernel's marks.
//! - `model_request.rs`: requests to models, through the engine's own proxy.
//! - `tool_call.rs`: reads, fetches, calls of MCP servers and delegations.
//! - `surface.rs`: questions to attached surfaces.
//! - `record.rs`: the log of a session, its turns and its blocks.
//!
//! # What must not happen
//!
//! - Nothing is written, run or fetched without a verdict.
//! - No credential reaches the agent, the journal or an event.

mod change;
mod command;
mod model_request;
mod process;
mod record;
mod surface;
mod tool_call;

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use sayso_agent::host::{
    ActionOutcome, ActionResult, AgentMessage, AgentRequest, AgentResponse, CallOrigin, CommandEnd, CommandResult,
    DelegationPermit, FileText, OutputSink, ReadProblem, SendError, SurfaceAnswer, SurfaceRequest, ToolRequest,
};
use sayso_agent::{LiveEvent, LogEntry, RecordError};
use sayso_tools::{CommandStep, Definition, Delegation, FileStep, SessionStep, Step, ToolError};
use serde_json::Value;

use crate::agent_sessions::LiveSession;
use crate::failure::Failure;
use crate::host::{Host, now};

pub(crate) use change::follow_proposals;
pub(crate) use command::CommandSessions;

/// The host of all sessions of the built-in agent in one engine.
#[derive(Clone, Debug)]
pub(crate) struct AgentHost {
    /// Weak, because the engine owns the sessions, and each session owns its host.
    host: Weak<Host>,
}

/// An engine and one of its sessions.
#[derive(Clone, Debug)]
pub(crate) struct SessionHost {
    pub(crate) host: Arc<Host>,
    pub(crate) live: Arc<LiveSession>,
}

impl AgentHost {
    pub(crate) fn new(host: &Arc<Host>) -> Self {
        Self { host: Arc::downgrade(host) }
    }

    /// Returns the engine and a session. Fails once the engine has stopped.
    fn session(&self, session: &str) -> Result<SessionHost, Failure> {
        let host = self.host.upgrade().ok_or_else(stopping)?;
        let live = host.agent_sessions.live(session);
        Ok(SessionHost { host, live })
    }
}

fn stopping() -> Failure {
    Failure::new(sayso_review::ErrorKind::Unavailable, "the engine is stopping")
        .hint("start it again; the session resumes")
}

/// The result of an action that became no change.
fn failed(failure: &Failure) -> ActionResult {
    let hint = failure.hint.as_ref().map(|hint| format!("\nHint: {hint}")).unwrap_or_default();
    ActionResult { change: None, outcome: ActionOutcome::Failed, message: format!("{}{hint}", failure.message) }
}

fn failed_command(failure: &Failure) -> CommandResult {
    CommandResult { action: failed(failure), end: None, output: String::new(), omitted_bytes: 0 }
}

impl sayso_agent::Host for AgentHost {
    fn now_ms(&self) -> i64 {
        now()
    }

    fn sleep_until(&self, time_ms: i64) -> BoxFuture<'_, ()> {
        let left = u64::try_from(time_ms.saturating_sub(now())).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(left)).boxed()
    }

    fn random(&self) -> u64 {
        let mut bytes = [0_u8; 8];
        // On failure the jitter is constant, which is harmless.
        let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        u64::from_le_bytes(bytes)
    }

    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<AgentResponse, SendError>> {
        async move {
            let host = self.host.upgrade().ok_or_else(|| SendError::Connection { message: stopping().message })?;
            model_request::send(&host, request).await
        }
        .boxed()
    }

    fn tools(&self) -> Vec<Definition> {
        self.host.upgrade().map(|host| host.agent_sessions.registry().definitions()).unwrap_or_default()
    }

    fn prepare<'a>(&'a self, call: &'a CallOrigin, arguments: &'a Value) -> BoxFuture<'a, Result<Step, ToolError>> {
        async move {
            let host = self.session(&call.session).map_err(|failure| tool_call::tool_error(&failure))?;
            tool_call::prepare(&host, call, arguments).await
        }
        .boxed()
    }

    fn change_files<'a>(&'a self, call: &'a CallOrigin, step: FileStep) -> BoxFuture<'a, ActionResult> {
        async move {
            match self.session(&call.session) {
                Ok(host) => change::change_files(&host, call, step).await,
                Err(failure) => failed(&failure),
            }
        }
        .boxed()
    }

    fn run_command<'a>(
        &'a self,
        call: &'a CallOrigin,
        step: CommandStep,
        output: OutputSink,
    ) -> BoxFuture<'a, CommandResult> {
        async move {
            match self.session(&call.session) {
                Ok(host) => command::run(&host, call, step, output).await,
                Err(failure) => failed_command(&failure),
            }
        }
        .boxed()
    }

    fn continue_command<'a>(
        &'a self,
        call: &'a CallOrigin,
        step: SessionStep,
        output: OutputSink,
    ) -> BoxFuture<'a, CommandResult> {
        async move {
            match self.session(&call.session) {
                Ok(host) => command::continue_session(&host, step, output).await,
                Err(failure) => failed_command(&failure),
            }
        }
        .boxed()
    }

    fn permit_command<'a>(&'a self, call: &'a CallOrigin, step: CommandStep) -> BoxFuture<'a, ActionResult> {
        async move {
            match self.session(&call.session) {
                Ok(host) => command::permit(&host, call, &step).await,
                Err(failure) => failed(&failure),
            }
        }
        .boxed()
    }

    fn report_end(&self, call: &CallOrigin, change: Option<u64>, end: &CommandEnd) {
        if let Ok(host) = self.session(&call.session) {
            command::report_end(&host, call, change, end);
        }
    }

    fn call_tool<'a>(&'a self, call: &'a CallOrigin, request: ToolRequest) -> BoxFuture<'a, ActionResult> {
        async move {
            match self.session(&call.session) {
                Ok(host) => tool_call::call(&host, call, request).await,
                Err(failure) => failed(&failure),
            }
        }
        .boxed()
    }

    fn permit_delegation<'a>(
        &'a self,
        call: &'a CallOrigin,
        delegation: Delegation,
    ) -> BoxFuture<'a, DelegationPermit> {
        async move {
            match self.session(&call.session) {
                Ok(host) => tool_call::permit_delegation(&host, call, delegation).await,
                Err(failure) => DelegationPermit::Refused(failed(&failure)),
            }
        }
        .boxed()
    }

    fn ask_surface<'a>(&'a self, session: &'a str, request: SurfaceRequest) -> BoxFuture<'a, SurfaceAnswer> {
        async move {
            match self.session(session) {
                Ok(host) => surface::ask(&host, request).await,
                Err(_) => SurfaceAnswer::NoSurface,
            }
        }
        .boxed()
    }

    fn read_file<'a>(&'a self, session: &'a str, path: &'a str) -> BoxFuture<'a, Result<FileText, ReadProblem>> {
        async move {
            let host = self.session(session).map_err(|failure| ReadProblem::Unreadable { message: failure.message })?;
            tool_call::read_file(&host, path).await
        }
        .boxed()
    }

    fn record(&self, session: &str, entry: &LogEntry) -> Result<u64, RecordError> {
        let recorded = self.session(session).and_then(|host| record::record(&host, entry));
        recorded.map_err(|failure| RecordError { message: failure.message, hint: failure.hint.unwrap_or_default() })
    }

    fn emit(&self, session: &str, event: LiveEvent) {
        if let Ok(host) = self.session(session) {
            host.live.emit(event);
        }
    }

    fn take_messages(&self, session: &str) -> Vec<AgentMessage> {
        self.session(session).map(|host| record::take_messages(&host)).unwrap_or_default()
    }
}
