//! The inverse of decoding: what a scripted model says, in each dialect's bytes.

pub(super) mod anthropic;
pub(super) mod chat;
pub(super) mod gemini;
pub(super) mod responses;

use serde_json::Value;

use super::event::{Finish, ToolKind, Usage};
use super::reply::Refusal;
use super::{Api, StreamDialect};

/// What a scripted model says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The answer's id.
    pub id: String,
    /// The model's name.
    pub model: String,
    /// What it says.
    pub blocks: Vec<ScriptBlock>,
    /// What it says that it cost.
    pub usage: Usage,
    /// How it ends.
    pub ending: Ending,
}

/// A part of what a scripted model says. Each piece is an event of its own in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptBlock {
    /// Text.
    Text {
        /// Its pieces.
        pieces: Vec<String>,
    },
    /// What it thinks.
    Thinking {
        /// Its pieces.
        pieces: Vec<String>,
        /// The signature, or the encrypted content in Responses. Chat Completions has no place for it.
        opaque: Option<String>,
    },
    /// What it thinks and does not tell; for Anthropic Messages alone.
    Redacted {
        /// The encrypted content.
        data: String,
    },
    /// A tool call.
    ToolCall {
        /// The id that the result will name.
        id: String,
        /// The tool.
        name: String,
        /// What its arguments are. Only OpenAI's APIs have custom tools.
        kind: ToolKind,
        /// The arguments in pieces. Gemini gets them whole, and as they are if they are JSON.
        pieces: Vec<String>,
        /// A signature, for Gemini alone.
        opaque: Option<String>,
    },
}

/// How a scripted answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Finished(Finish),
    /// With an error of the API in the stream.
    Failed {
        /// The status that the API would have answered with.
        status: u16,
        /// Its words.
        message: String,
    },
    /// Not at all: the connection breaks.
    Cut,
}

impl Script {
    /// Why it finishes, if it does.
    pub(super) fn finish(&self) -> Option<Finish> {
        if let Ending::Finished(finish) = self.ending { Some(finish) } else { None }
    }

    /// The end of a stream that fails.
    pub(super) fn failure(&self, dialect: &dyn StreamDialect) -> Option<Vec<u8>> {
        let Ending::Failed { status, message } = &self.ending else { return None };
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        Some(dialect.break_off(&Refusal::Upstream { status: *status, body: body.as_bytes() }))
    }
}

impl Api {
    /// The server-sent events that say a script, each with its empty line.
    pub fn encode_events(self, script: &Script) -> Vec<Vec<u8>> {
        self.dialect().stream(script)
    }

    /// The bytes of a stream that says a script.
    pub fn encode(self, script: &Script) -> Vec<u8> {
        self.encode_events(script).concat()
    }

    /// The body that says a script without a stream.
    pub fn encode_body(self, script: &Script) -> Vec<u8> {
        self.dialect().body(script).to_string().into_bytes()
    }
}

/// An event with a name.
pub(super) fn named(name: &str, data: &Value) -> Vec<u8> {
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

/// An event without a name.
pub(super) fn unnamed(data: &Value) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// Arguments as JSON, or in a string where they are not.
fn arguments(pieces: &[String]) -> Value {
    let whole = pieces.concat();
    serde_json::from_str(&whole).unwrap_or(if whole.is_empty() { serde_json::json!({}) } else { Value::String(whole) })
}
