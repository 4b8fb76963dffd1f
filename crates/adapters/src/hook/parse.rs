//! What an agent hands to a hook.

use sayso_review::ErrorKind;
use serde_json::{Map, Value};
use thiserror::Error;

use super::agent::Agent;

/// One call of a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookCall {
    /// Whose.
    pub agent: Agent,
    /// The agent's name for the conversation.
    pub session: String,
    /// The directory that relative paths and commands are about.
    pub cwd: String,
    /// The agent's name for what happens between two prompts, where it has one.
    pub turn: Option<String>,
    /// The subagent that does it, where it is one.
    pub subagent: Option<String>,
    /// What happens.
    pub event: HookEvent,
}

/// What a hook is told.
#[derive(Clone, Debug, PartialEq)]
pub enum HookEvent {
    /// A conversation starts or goes on.
    SessionStart {
        /// How: `startup`, `resume`, `clear`, `compact`.
        source: String,
    },
    /// A conversation ends.
    SessionEnd,
    /// The user said something.
    Prompt {
        /// What.
        prompt: String,
    },
    /// The agent is done with its turn.
    Stop(Stopped),
    /// A subagent is done.
    SubagentStop(Stopped),
    /// A tool is about to be used.
    Before {
        /// The call's name, the same before and after.
        call: Option<String>,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Value,
    },
    /// A tool was used.
    After {
        /// The call's name.
        call: Option<String>,
        /// The tool.
        tool: String,
        /// Its arguments as they were in the end.
        input: Value,
        /// What it gave.
        response: Value,
    },
    /// A tool failed; in Claude Code also a command that ends with another code than 0.
    Failed {
        /// The call's name.
        call: Option<String>,
        /// The tool.
        tool: String,
        /// Its arguments as they were in the end.
        input: Value,
        /// Why.
        error: String,
    },
    /// Something else.
    Other {
        /// What.
        name: String,
    },
}

/// How an agent came to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Whether it only went on because a hook held it back when it was done before. To hold it back again could go on forever.
    pub held_back: bool,
    /// What it said last.
    pub last_message: Option<String>,
}

/// Why a hook's input is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HookError {
    /// It is not JSON.
    #[error("what {agent} handed to the hook is not JSON: {reason}")]
    NotJson {
        /// The agent.
        agent: Agent,
        /// What is wrong.
        reason: String,
    },
    /// It is JSON, but no object.
    #[error("what {agent} handed to the hook is not a JSON object")]
    NotAnObject {
        /// The agent.
        agent: Agent,
    },
    /// A field that has to be there is not, or is no text.
    #[error("what {agent} handed to the hook for `{event}` has no text `{field}`")]
    NoText {
        /// The agent.
        agent: Agent,
        /// The event, as far as it is known.
        event: String,
        /// The field.
        field: &'static str,
    },
}

impl HookError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "`sayso hook` is started by the agent, which hands it the event on standard input; a version of the agent that says it \
         differently needs a newer sayso"
    }
}

impl HookCall {
    /// Reads what the agent handed to the hook.
    pub fn parse(agent: Agent, input: &[u8]) -> Result<Self, HookError> {
        let value: Value =
            serde_json::from_slice(input).map_err(|error| HookError::NotJson { agent, reason: error.to_string() })?;
        let Value::Object(object) = value else { return Err(HookError::NotAnObject { agent }) };
        let mut fields = Fields { agent, event: "an event without a name".to_owned(), object };
        let name = fields.text("hook_event_name")?;
        name.clone_into(&mut fields.event);
        let event = match name.as_str() {
            "SessionStart" => HookEvent::SessionStart { source: fields.optional("source").unwrap_or_default() },
            "SessionEnd" => HookEvent::SessionEnd,
            "UserPromptSubmit" => HookEvent::Prompt { prompt: fields.text("prompt")? },
            "Stop" => HookEvent::Stop(fields.stopped()),
            "SubagentStop" => HookEvent::SubagentStop(fields.stopped()),
            "PreToolUse" => {
                let (call, tool, input) = fields.tool()?;
                HookEvent::Before { call, tool, input }
            }
            "PostToolUse" => {
                let (call, tool, input) = fields.tool()?;
                HookEvent::After { call, tool, input, response: fields.take("tool_response") }
            }
            "PostToolUseFailure" => {
                let (call, tool, input) = fields.tool()?;
                HookEvent::Failed { call, tool, input, error: fields.optional("error").unwrap_or_default() }
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

/// The fields of an event, taken out one by one.
struct Fields {
    agent: Agent,
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
        self.optional(field).ok_or_else(|| HookError::NoText { agent: self.agent, event: self.event.clone(), field })
    }

    fn tool(&mut self) -> Result<(Option<String>, String, Value), HookError> {
        Ok((self.optional("tool_use_id"), self.text("tool_name")?, self.take("tool_input")))
    }

    fn stopped(&mut self) -> Stopped {
        let held_back = self.take("stop_hook_active") == Value::Bool(true);
        Stopped { held_back, last_message: self.optional("last_assistant_message") }
    }
}
