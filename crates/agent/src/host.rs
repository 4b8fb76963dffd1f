//! The interface between the agent and its engine.
//!
//! The agent touches files, commands, the network, surfaces and the journal through [`Host`] only. It holds no right to decide: an
//! action that needs a verdict is an intent that the host submits to the gate. The agent learns the outcome and the agent message.
//!
//! # Cancellation
//!
//! The agent drops a future to cancel it, for example when a person interrupts. The host then withdraws the pending intent, kills the
//! command, closes the connection or ends the request to the surface. A dropped future must leave no work behind.

mod action;
mod request;
mod surface;

use std::sync::Arc;

use futures::future::BoxFuture;
use sayso_tools::{CommandStep, Definition, Delegation, FileStep, SessionStep, Step, ToolError};
use serde_json::Value;

pub use action::{
    ActionOutcome, ActionResult, AgentMessage, CallOrigin, CommandEnd, CommandResult, DelegationPermit, FileText,
    OutputSink, ReadProblem, ToolRequest,
};
pub use request::{AgentRequest, AgentResponse, BodyStream, RequestReason, SendError};
pub use surface::{CommandDispatch, EditorText, SurfaceAnswer, SurfaceRequest};

use crate::event::LiveEvent;
use crate::log::LogEntry;

/// The engine behind the agent.
pub trait Host: Send + Sync + 'static {
    /// Returns the time in milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Completes at this time, in milliseconds since 1970.
    fn sleep_until(&self, time_ms: i64) -> BoxFuture<'_, ()>;

    /// Returns a number for jitter. Any distribution will do.
    fn random(&self) -> u64;

    /// Sends a request to a model through the engine's proxy, which adds credentials. Completes with the response head; a paused
    /// request completes after its release.
    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<AgentResponse, SendError>>;

    /// Returns the tools that the host offers: the built-in ones and those of MCP servers. The order must not change while a session
    /// runs, because it is part of the cached prompt. The agent selects the tools of the scenario.
    fn tools(&self) -> Vec<Definition>;

    /// Checks a call, and executes it if it only reads. See `sayso_tools::Registry::prepare`.
    fn prepare<'a>(&'a self, call: &'a CallOrigin, arguments: &'a Value) -> BoxFuture<'a, Result<Step, ToolError>>;

    /// Submits a change of files and completes with its outcome. A step that only proposes completes when the change is pending.
    fn change_files<'a>(&'a self, call: &'a CallOrigin, step: FileStep) -> BoxFuture<'a, ActionResult>;

    /// Submits a command, runs it inside the engine after approval, and passes its output on while it runs. For a command that runs in
    /// a terminal of the user the agent calls [`Host::permit_command`] instead.
    fn run_command<'a>(
        &'a self,
        call: &'a CallOrigin,
        step: CommandStep,
        output: OutputSink,
    ) -> BoxFuture<'a, CommandResult>;

    /// Continues or ends a background command of this session.
    fn continue_command<'a>(
        &'a self,
        call: &'a CallOrigin,
        step: SessionStep,
        output: OutputSink,
    ) -> BoxFuture<'a, CommandResult>;

    /// Submits a command that a terminal of the user will run, and completes with the decision. On approval the result has the
    /// outcome [`ActionOutcome::Permitted`] and the approved command as its message.
    fn permit_command<'a>(&'a self, call: &'a CallOrigin, step: CommandStep) -> BoxFuture<'a, ActionResult>;

    /// Reports the end of a permitted change that the host did not perform itself: a command in a terminal, or a delegation.
    fn report_end(&self, call: &CallOrigin, change: Option<u64>, end: &CommandEnd);

    /// Submits a call of a tool outside the engine, performs it after approval with the approved arguments, and returns its result as
    /// the message.
    fn call_tool<'a>(&'a self, call: &'a CallOrigin, request: ToolRequest) -> BoxFuture<'a, ActionResult>;

    /// Submits a delegation to a subagent and completes with the decision. The agent runs the subagent.
    fn permit_delegation<'a>(&'a self, call: &'a CallOrigin, delegation: Delegation)
    -> BoxFuture<'a, DelegationPermit>;

    /// Asks a surface. Completes with an answer, or with the reason why there is none.
    fn ask_surface<'a>(&'a self, session: &'a str, request: SurfaceRequest) -> BoxFuture<'a, SurfaceAnswer>;

    /// Reads a text file of the workspace for a prompt, including unsaved changes.
    fn read_file<'a>(&'a self, session: &'a str, path: &'a str) -> BoxFuture<'a, Result<FileText, ReadProblem>>;

    /// Appends an entry to the log of a session. The entry is durable when this returns. Called with a lock on the session, so it must
    /// not call the session.
    fn record(&self, session: &str, entry: &LogEntry) -> Result<u64, RecordError>;

    /// Publishes a live event. Must not block and must not call the session.
    fn emit(&self, session: &str, event: LiveEvent);

    /// Takes the messages that persons and rules left for the agent, such as the verdict on an earlier proposal.
    fn take_messages(&self, session: &str) -> Vec<AgentMessage>;
}

/// A shared host.
pub type SharedHost = Arc<dyn Host>;

/// An entry could not be stored. The invocation ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot record the session: {message}")]
pub struct RecordError {
    pub message: String,
    pub hint: String,
}
