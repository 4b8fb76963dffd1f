//! Request bodies of the four model APIs, built from a history.
//!
//! The messages are the last member of a body, and settings and tools come before them. So the body of a turn starts with the
//! bytes of the turn before, without its closing brackets. The exceptions: cache breakpoints move (Anthropic), and a change of
//! settings, a pruning or a compaction changes the prefix. Nothing in a body depends on the time.

mod anthropic;
mod call_id;
mod chat;
mod gemini;
mod messages;
mod responses;
mod tools;

use bytes::Bytes;
use sayso_tools::Definition;
use sayso_wire::stream::Api;
use serde_json::{Map, Value};

pub(crate) use call_id::own_call_id;
pub use tools::{APPLY_PATCH_NAME, is_openai_model, select_tools};

use crate::log::History;
use crate::settings::Settings;

/// Text of the result of a call without a result.
pub const CANCELLED_RESULT: &str = "cancelled";

/// The parts of a request that are not in the history.
#[derive(Clone, Copy, Debug)]
pub struct RequestParts<'a> {
    pub settings: &'a Settings,
    /// System prompt.
    pub instructions: &'a str,
    pub tools: &'a [Definition],
    /// Maximum length of the answer in tokens, without thinking.
    pub max_output_tokens: u64,
    /// Key that is equal for all requests of a session, for the cache of OpenAI.
    pub cache_key: &'a str,
}

/// A request without the session's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltRequest {
    /// Path with query.
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// Builds the next request of a conversation.
pub fn build_request(history: &History, parts: &RequestParts<'_>) -> BuiltRequest {
    let dialect = parts.settings.dialect;
    let messages = messages::of_history(history, dialect, &parts.settings.model);
    let body = match dialect {
        Api::AnthropicMessages => anthropic::body(&messages, parts),
        Api::OpenAiChat => chat::body(&messages, parts),
        Api::OpenAiResponses => responses::body(&messages, parts),
        Api::Gemini => gemini::body(&messages, parts),
    };
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "text/event-stream".to_owned()),
    ];
    if dialect == Api::AnthropicMessages {
        headers.push(("anthropic-version".to_owned(), "2023-06-01".to_owned()));
    }
    BuiltRequest { path: path(dialect, &parts.settings.model), headers, body: body.into() }
}

fn path(dialect: Api, model: &str) -> String {
    match dialect {
        Api::AnthropicMessages => "/v1/messages".to_owned(),
        Api::OpenAiChat => "/v1/chat/completions".to_owned(),
        Api::OpenAiResponses => "/v1/responses".to_owned(),
        Api::Gemini => format!("/v1beta/models/{}:streamGenerateContent?alt=sse", percent_encoded(model)),
    }
}

/// Encodes all characters that have a meaning in a path.
fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Writes a body: the head's members, then a list of messages as the last member.
fn write_body(mut head: Value, list: &str, messages: Vec<Value>) -> Vec<u8> {
    head[list] = Value::Array(messages);
    head.to_string().into_bytes()
}

/// Returns a JSON object of the given members without the absent ones.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}
