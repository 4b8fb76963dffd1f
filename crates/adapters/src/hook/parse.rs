//! Input of a hook.

use sayso_review::ErrorKind;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::Agent;

/// One call of a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookCall {
    pub agent: Agent,
    /// The agent's id of the conversation.
    pub session: String,
    /// Base of relative paths, and working directory of commands.
    pub cwd: String,
    /// The agent's id of the turn, if it has one.
    pub turn: Option<String>,
    /// Id of the subagent that caused the event.
    pub subagent: Option<String>,
    pub event: HookEvent,
}

/// Event of an agent, by the name that Claude Code and Codex share.
#[derive(Clone, Debug, PartialEq)]
pub enum HookEvent {
    SessionStart {
        /// `startup`, `resume`, `clear` or `compact`.
        source: String,
    },
    SessionEnd,
    UserPromptSubmit {
        prompt: String,
    },
    /// End of a turn.
    Stop(Stopped),
    /// End of a subagent's work.
    SubagentStop(Stopped),
    /// A tool call that has not started.
    PreToolUse {
        /// Id of the call, the same in the event after it.
        call: Option<String>,
        tool: String,
        input: Value,
    },
    /// A tool call that has succeeded.
    PostToolUse {
        call: Option<String>,
        tool: String,
        /// Arguments of the call as executed, after rewriting by hooks.
        input: Value,
        response: Value,
    },
    /// A tool call that has failed; in Claude Code also a command with an exit code other than 0.
    PostToolUseFailure {
        call: Option<String>,
        tool: String,
        /// Arguments of the call as executed, after rewriting by hooks.
        input: Value,
        error: String,
    },
    /// An event that sayso does not handle.
    Other {
        name: String,
    },
}

/// Fields of `Stop` and `SubagentStop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// `true` if the agent continued because a hook blocked its previous stop. Blocking again could loop forever.
    pub stop_hook_active: bool,
    pub last_message: Option<String>,
}

/// Rejection of a hook's input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HookError {
    #[error("cannot parse the hook input of {agent}: {reason}")]
    NotJson { agent: Agent, reason: String },
    #[error("cannot parse the hook input of {agent}: not a JSON object")]
    NotAnObject { agent: Agent },
    /// A required field is absent or not a string.
    #[error("cannot parse the hook input of {agent}: {event} has no text field `{field}`")]
    MissingText { agent: Agent, event: String, field: &'static str },
}

impl HookError {
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// Advice for the user.
    pub fn hint(&self) -> &'static str {
        "let the agent start `sayso hook` and write the event to its standard input; update sayso if the agent is newer"
    }
}

impl HookCall {
    /// Parses the JSON object that the agent writes to the hook's standard input.
    pub fn parse(agent: Agent, input: &[u8]) -> Result<Self, HookError> {
        let value: Value =
            serde_json::from_slice(input).map_err(|error| HookError::NotJson { agent, reason: error.to_string() })?;
        let Value::Object(object) = value else { return Err(HookError::NotAnObject { agent }) };
        let mut fields = Fields { agent, event: "the event".to_owned(), object };
        let name = fields.text("hook_event_name")?;
        fields.event = format!("`{name}`");
        let event = match name.as_str() {
            "SessionStart" => HookEvent::SessionStart { source: fields.optional("source").unwrap_or_default() },
            "SessionEnd" => HookEvent::SessionEnd,
            "UserPromptSubmit" => HookEvent::UserPromptSubmit { prompt: fields.text("prompt")? },
            "Stop" => HookEvent::Stop(fields.stopped()),
            "SubagentStop" => HookEvent::SubagentStop(fields.stopped()),
            "PreToolUse" => {
                let (call, tool, input) = fields.tool()?;
                HookEvent::PreToolUse { call, tool, input }
            }
            "PostToolUse" => {
                let (call, tool, input) = fields.tool()?;
                HookEvent::PostToolUse { call, tool, input, response: fields.take("tool_response") }
            }
            "PostToolUseFailure" => {
                let (call, tool, input) = fields.tool()?;
                HookEvent::PostToolUseFailure { call, tool, input, error: fields.optional("error").unwrap_or_default() }
            }
            _ => HookEvent::Other { name },
        };
        Ok(Self {
            agent,
            session: fields.text("session_id")?,
            cwd: fields.text("cwd")?,
            turn: fields.optional("prompt_id").or_else(|| fields.optional("turn_id")),
            subagent: fields.optional("agent_id"),
            event,
        })
    }
}

/// Remaining fields of an event; reading a field removes it.
struct Fields {
    agent: Agent,
    /// Describes the event in errors.
    event: String,
    object: Map<String, Value>,
}

impl Fields {
    fn take(&mut self, field: &str) -> Value {
        self.object.remove(field).unwrap_or_default()
    }

    fn optional(&mut self, field: &str) -> Option<String> {
        if let Value::String(text) = self.take(field) { Some(text) } else { None }
    }

    fn text(&mut self, field: &'static str) -> Result<String, HookError> {
        self.optional(field).ok_or_else(|| HookError::MissingText {
            agent: self.agent,
            event: self.event.clone(),
            field,
        })
    }

    fn tool(&mut self) -> Result<(Option<String>, String, Value), HookError> {
        Ok((self.optional("tool_use_id"), self.text("tool_name")?, self.take("tool_input")))
    }

    fn stopped(&mut self) -> Stopped {
        let stop_hook_active = self.take("stop_hook_active") == Value::Bool(true);
        Stopped { stop_hook_active, last_message: self.optional("last_assistant_message") }
    }
}
