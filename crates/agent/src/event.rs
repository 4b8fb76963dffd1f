//! Live events of an invocation, one to one with `InvokeEvent` of `agent_service.proto`.
//!
//! The host numbers them. It adds the events that only it knows: requests to surfaces, completed blocks, and the status
//! `Waiting` while a person has to decide.

use sayso_review::TokenUsage;
use serde::Serialize;

use crate::proposed::ProposedSet;
use crate::settings::Settings;
use crate::todo::Todo;

/// A live event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveEvent {
    /// Milliseconds since 1970.
    pub time_ms: i64,
    /// Id of the invocation. Empty outside of invocations.
    pub invocation: String,
    #[serde(flatten)]
    pub kind: LiveEventKind,
}

/// The content of a live event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum LiveEventKind {
    Status(StatusEvent),
    ThinkingDelta {
        text: String,
    },
    TextDelta {
        text: String,
    },
    /// A tool call whose arguments are complete.
    ToolCall {
        call: String,
        tool: String,
        arguments_json: String,
        /// One line for display: verb and target.
        summary: String,
    },
    ToolOutputDelta {
        call: String,
        text: String,
    },
    ToolResult {
        call: String,
        tool: String,
        /// As the model receives it.
        text: String,
        is_error: bool,
        change: Option<u64>,
        /// Waits for a person included.
        duration_ms: u64,
    },
    ProposedChanges {
        #[serde(flatten)]
        changes: ProposedSet,
        change: Option<u64>,
    },
    Todos {
        todos: Vec<Todo>,
    },
    Usage(InvocationUsage),
    Settings {
        settings: Settings,
    },
    Finished {
        reason: FinishedReason,
        /// The last text of the agent.
        text: String,
        usage: InvocationUsage,
    },
    Failed {
        message: String,
        /// Next step for the user. Empty if there is none.
        hint: String,
    },
}

/// A step of an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusEvent {
    pub state: StepState,
    /// One line for display.
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// Time of the next attempt, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<i64>,
}

/// The state of an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Behind other prompts.
    Queued,
    Requesting,
    Streaming,
    RunningTool,
    /// A person has to decide. The host reports it.
    Waiting,
    Retrying,
    Compacting,
    /// Old tool results were removed from the context.
    Pruned,
}

/// The end of an invocation that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishedReason {
    Completed,
    Interrupted,
    /// A limit was reached and not raised.
    Limit,
    /// A request was cancelled before it was sent.
    Cancelled,
}

/// Usage of an invocation so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InvocationUsage {
    pub tokens: TokenUsage,
    /// `None` if the price of a model is unknown.
    pub cost_micro_usd: Option<u64>,
    /// Share of the context window in percent.
    pub context_percent: Option<u32>,
    pub requests: u32,
}
