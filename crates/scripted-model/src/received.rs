//! Recorded requests and the state of their answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use bytes::Bytes;
use sayso_wire::stream::Api;
use serde_json::Value;

use crate::endpoint::Endpoint;

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: String,
    /// Path with query.
    pub target: String,
    pub version: http::Version,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// Body as received.
    pub raw: Bytes,
    /// Body after removing its `content-encoding`, or as received if it cannot be decoded.
    pub decoded: Bytes,
    /// Body as JSON, or null if it is not JSON.
    pub body: Value,
    pub(crate) progress: Arc<Progress>,
}

/// State of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Delivery {
    /// Held back; no status was sent.
    Pending,
    /// The status was sent, the body is incomplete.
    Sending,
    Complete,
    /// Broken off by the script.
    Cut,
    /// The client disconnected before the end of the answer.
    ClientGone,
}

/// Progress of an answer, shared with its connection.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    delivery: AtomicU8,
    chunks: AtomicUsize,
}

impl Progress {
    pub(crate) fn set(&self, delivery: Delivery) {
        self.delivery.store(delivery as u8, Ordering::SeqCst);
    }

    pub(crate) fn delivery(&self) -> Delivery {
        let delivery = self.delivery.load(Ordering::SeqCst);
        let all = [Delivery::Pending, Delivery::Sending, Delivery::Complete, Delivery::Cut, Delivery::ClientGone];
        all.into_iter().find(|known| *known as u8 == delivery).unwrap_or(Delivery::Pending)
    }

    pub(crate) fn count_chunk(&self) {
        self.chunks.fetch_add(1, Ordering::SeqCst);
    }
}

/// Result of a tool call in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// Id of the call, or the tool's name in an API without ids.
    pub call: String,
    /// The result as text, or as JSON if it is not text.
    pub text: String,
}

impl Received {
    /// Returns a header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns the current state of the answer.
    pub fn delivery(&self) -> Delivery {
        self.progress.delivery()
    }

    /// Returns the number of chunks sent so far. A slow reader delays them.
    pub fn chunks(&self) -> usize {
        self.progress.chunks.load(Ordering::SeqCst)
    }

    /// Returns the API of a request for an answer of the model, and `None` for other requests.
    pub fn api(&self) -> Option<Api> {
        match Endpoint::of(self) {
            Endpoint::Answer(api) | Endpoint::Stream(api) => Some(api),
            _ => None,
        }
    }

    /// `true` for a WebSocket request.
    pub fn is_upgrade(&self) -> bool {
        Endpoint::of(self) == Endpoint::Upgrade
    }

    /// `true` for a request with tools, which gets a turn of the script.
    pub fn asks_for_a_turn(&self) -> bool {
        self.api().is_some() && self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// Returns the names of the tools that the model may call.
    pub fn tools(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for tool in self.body["tools"].as_array().into_iter().flatten() {
            if tool["functionDeclarations"].is_array() {
                names.extend(items(&tool["functionDeclarations"]).filter_map(|declared| declared["name"].as_str()));
                continue;
            }
            let candidates = [&tool["name"], &tool["function"]["name"], &tool["custom"]["name"], &tool["type"]];
            names.extend(candidates.into_iter().find_map(Value::as_str));
        }
        names
    }

    /// Returns the requested model, from the body or, for Gemini, from the path.
    pub fn model(&self) -> String {
        let by_path = || {
            let (_, name) = self.path().rsplit_once("/models/")?;
            Some(name.split(':').next()?.to_owned())
        };
        self.body["model"].as_str().map(str::to_owned).or_else(by_path).unwrap_or_else(|| "scripted".to_owned())
    }

    /// Returns the text of the system prompt.
    pub fn system_text(&self) -> String {
        let body = &self.body;
        let parts = ["systemInstruction", "system_instruction"].map(|key| &body[key]["parts"]);
        let own = [&body["system"], &body["instructions"], parts[0], parts[1]].map(text);
        let is_system = |message: &&Value| message["role"] == "system" || message["role"] == "developer";
        let messages = ["messages", "input"].map(|key| &body[key]).into_iter().flat_map(items).filter(is_system);
        let messages = messages.map(|message| text(&message["content"]));
        own.into_iter().chain(messages).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Returns the text of the last user message that has text.
    pub fn last_user_text(&self) -> String {
        let messages = ["messages", "input", "contents"].map(|key| &self.body[key]);
        if let Some(text) = messages[1].as_str() {
            return text.to_owned();
        }
        let texts = messages
            .into_iter()
            .flat_map(items)
            .filter(|message| message["role"] == "user")
            .map(|message| text(if message["parts"].is_array() { &message["parts"] } else { &message["content"] }));
        texts.filter(|text| !text.is_empty()).last().unwrap_or_default()
    }

    /// Returns all tool results, in order.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let mut results = Vec::new();
        let mut add = |call: &Value, result: &Value| {
            let call = call.as_str().unwrap_or_default().to_owned();
            let text = if result.is_string() || result.is_array() { text(result) } else { result.to_string() };
            results.push(ToolResult { call, text });
        };
        for message in items(&self.body["messages"]) {
            if message["role"] == "tool" {
                add(&message["tool_call_id"], &message["content"]);
            }
            for block in items(&message["content"]).filter(|block| block["type"] == "tool_result") {
                add(&block["tool_use_id"], &block["content"]);
            }
        }
        for item in items(&self.body["input"]) {
            if item["type"].as_str().is_some_and(|kind| kind.ends_with("call_output")) {
                add(&item["call_id"], &item["output"]);
            }
        }
        for part in items(&self.body["contents"]).flat_map(|content| items(&content["parts"])) {
            let response = &part["functionResponse"];
            if response.is_object() {
                let call = if response["id"].is_string() { &response["id"] } else { &response["name"] };
                add(call, &response["response"]);
            }
        }
        results
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the text of a content: a string, or a list of blocks of which some have text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => items(content).filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}
