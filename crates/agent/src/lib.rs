//! The built-in agent.
//!
//! [`AgentSession`] runs the loop: prompt, request, streamed answer, tool calls, results, next request. All effects go through
//! [`Host`], which the engine implements: a change of files, a command or a delegation is an intent that waits for a verdict like
//! that of any other agent, and a model request passes the proxy, where it can be paused and edited.
//!
//! # Design
//!
//! - The conversation is an append-only log ([`log`]). [`History`] is its fold; a request body is a function of the history, the
//!   settings and the tools ([`dialect`]), so the same log gives the same bytes on every machine. Each turn appends to the body of
//!   the last turn. That keeps the prompt caches of the APIs valid.
//! - A tool call without a result, after a kill or an interrupt, is answered "cancelled" when a request is built. So every prefix of
//!   a log gives a valid request.
//! - When the context window is nearly full, old tool results are removed first ([`Entry::Pruned`]); if that is not enough, a visible
//!   request to the model summarises the conversation ([`Entry::Compacted`]).
//! - Nothing in this crate reads the clock, a file or a socket.
//!
//! # Limits
//!
//! Server-side state of the APIs (`previous_response_id`, stored responses) is not used. Images are passed on, never created.

pub mod catalog;
pub mod dialect;
pub mod event;
pub mod host;
pub mod log;
mod model;
mod proposed;
pub mod scenario;
mod session;
pub mod settings;
mod system_prompt;
mod todo;

pub use catalog::{Catalog, ModelChoice, UpstreamChoice};
pub use event::{FinishedReason, InvocationUsage, LiveEvent, LiveEventKind, StatusEvent, StepState};
pub use host::{Host, RecordError, SharedHost};
pub use log::{Entry, EntryBody, History, LogEntry, Prompt};
pub use proposed::{ProposedFile, ProposedSet};
pub use scenario::{Scenario, ScenarioError, Scenarios};
pub use session::{
    AgentSession, ClearQueue, Invoked, SessionIdentity, SessionState, SetSettingsError, UserPrompt, WriteTodosError,
};
pub use settings::{Limits, Settings, SettingsError, SettingsPatch};
pub use todo::{MAX_TODOS, Todo, TodoChange, TodoError, TodoItems, TodoWriter};
