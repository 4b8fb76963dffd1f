//! Actions of the agent and their outcomes.

use std::fmt;
use std::sync::Arc;

use sayso_tools::{Delegation, FetchStep};
use serde_json::Value;

/// The tool call that an action belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOrigin {
    pub session: String,
    /// Session that delegated to this session.
    pub parent: Option<String>,
    pub invocation: String,
    /// Id of the call, unique in the session.
    pub call: String,
    pub tool: String,
    /// The agent's last sentence before the call, as the reason for a reviewer. Empty if there is none.
    pub reason: String,
    /// Scenario of the session. It restricts the tools.
    pub scenario: String,
}

/// The state of an action after its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionOutcome {
    /// Applied or executed as asked.
    Applied,
    /// A part was applied, or other content or another command than asked.
    Partial,
    /// Recorded and pending; nothing was applied.
    Proposed,
    /// Approved, to be performed by the agent or a surface.
    Permitted,
    Denied,
    /// The files changed meanwhile.
    Stale,
    Failed,
    Cancelled,
}

impl ActionOutcome {
    /// `true` if the model should treat the result as an error.
    pub fn is_error(self) -> bool {
        matches!(self, Self::Denied | Self::Stale | Self::Failed | Self::Cancelled)
    }
}

/// The outcome of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResult {
    /// Number of the change. `None` if the intent was refused before it became one.
    pub change: Option<u64>,
    pub outcome: ActionOutcome,
    /// Message for the model: the agent message of the verdict, or the result of a tool.
    pub message: String,
}

/// The end of a command or of other permitted work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    Exited {
        code: i32,
    },
    /// Killed by this signal.
    Signaled {
        signal: i32,
    },
    /// Killed at its time limit.
    TimedOut,
    /// It continues under this session id.
    Running {
        session: String,
    },
    /// Sent to a terminal; its result is unknown.
    Sent,
    /// It could not be started or broke off.
    Failed {
        message: String,
    },
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandResult {
    pub action: ActionResult,
    /// `None` if it did not start.
    pub end: Option<CommandEnd>,
    /// Standard output and standard error in order of arrival, as text. The host bounds it; the agent shortens it for the model.
    pub output: String,
    /// Number of bytes that the host removed from the middle of the output.
    pub omitted_bytes: u64,
}

/// A call of a tool outside the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolRequest {
    Fetch(FetchStep),
    Mcp { server: String, tool: String, arguments: Value },
}

/// The decision about a delegation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DelegationPermit {
    Permitted {
        change: Option<u64>,
        /// The delegation with the edits of the approving person.
        delegation: Delegation,
    },
    Refused(ActionResult),
}

/// A message to the agent about an earlier change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    pub change: Option<u64>,
    pub text: String,
}

/// The content of a text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// Path relative to the workspace.
    pub path: String,
    /// Decoded text with `\n` as line ending.
    pub text: String,
}

/// A file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadProblem {
    #[error("`{path}` does not exist")]
    Missing { path: String },
    #[error("{message}")]
    Unreadable { message: String },
}

/// Receives the output of a running command.
#[derive(Clone)]
pub struct OutputSink(Arc<dyn Fn(&str) + Send + Sync>);

impl OutputSink {
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    /// Passes a piece of output on. Must be called with complete characters.
    pub fn write(&self, text: &str) {
        (self.0)(text);
    }
}

impl fmt::Debug for OutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputSink")
    }
}
