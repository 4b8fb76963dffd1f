//! Encoding: scripted responses in the format of each dialect.

pub(super) mod anthropic;
pub(super) mod chat;
pub(super) mod gemini;
pub(super) mod responses;

use serde_json::Value;

use super::event::{FinishReason, ToolKind, Usage};
use super::reply::ReplyError;
use super::{Api, StreamDialect};

/// A scripted response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelScript {
    pub id: String,
    /// Name of the model.
    pub model: String,
    pub blocks: Vec<ScriptBlock>,
    pub usage: Usage,
    pub ending: ScriptEnding,
}

/// A block of a scripted response. In a stream each piece is a separate event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptBlock {
    Text {
        pieces: Vec<String>,
    },
    Thinking {
        pieces: Vec<String>,
        /// Signature, or encrypted content for Responses. Chat Completions has neither.
        opaque: Option<String>,
    },
    /// Redacted reasoning, for Anthropic Messages only.
    Redacted {
        data: String,
    },
    ToolCall {
        /// Id, which the result refers to.
        id: String,
        /// Name of the tool.
        name: String,
        /// Kind of the arguments. Only OpenAI's APIs have custom tools.
        kind: ToolKind,
        /// Pieces of the arguments. Gemini gets them in one part.
        pieces: Vec<String>,
        /// Signature, for Gemini only.
        opaque: Option<String>,
    },
}

/// The end of a scripted response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptEnding {
    /// The response is complete.
    Finished(FinishReason),
    /// The API reports an error in the stream.
    Failed {
        /// HTTP status of the error.
        status: u16,
        message: String,
    },
    /// The connection is lost before the end.
    ConnectionLost,
}

impl ModelScript {
    /// Returns the finish reason of a complete response.
    pub(super) fn finish(&self) -> Option<FinishReason> {
        if let ScriptEnding::Finished(finish) = self.ending { Some(finish) } else { None }
    }

    /// Returns the error at the end of a failing stream.
    pub(super) fn failure(&self, dialect: &dyn StreamDialect) -> Option<Vec<u8>> {
        let ScriptEnding::Failed { status, message } = &self.ending else { return None };
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        Some(dialect.retryable_end(&ReplyError::Upstream { status: *status, body: body.as_bytes() }))
    }
}

impl Api {
    /// Encodes a script as server-sent events, each with its empty line.
    pub fn encode_events(self, script: &ModelScript) -> Vec<Vec<u8>> {
        self.dialect().stream(script)
    }

    /// Encodes a script as the bytes of a stream.
    pub fn encode(self, script: &ModelScript) -> Vec<u8> {
        self.encode_events(script).concat()
    }

    /// Encodes a script as a body.
    pub fn encode_body(self, script: &ModelScript) -> Vec<u8> {
        self.dialect().body(script).to_string().into_bytes()
    }
}

/// Formats an event with a name.
pub(super) fn named(name: &str, data: &Value) -> Vec<u8> {
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

/// Formats an event without a name.
pub(super) fn unnamed(data: &Value) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// Returns the arguments as JSON, or as a string if they are not valid JSON.
fn arguments(pieces: &[String]) -> Value {
    let whole = pieces.concat();
    serde_json::from_str(&whole).unwrap_or(if whole.is_empty() { serde_json::json!({}) } else { Value::String(whole) })
}
