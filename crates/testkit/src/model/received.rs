//! What arrived, exactly, and what became of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use bytes::Bytes;
use sayso_wire::stream::Api;
use serde_json::Value;

use super::asked::Asked;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// The version of HTTP.
    pub version: http::Version,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub raw: Bytes,
    /// The body after its `content-encoding` was undone; as it came where that cannot be.
    pub decoded: Bytes,
    /// The body, if it was JSON; null otherwise.
    pub body: Value,
    pub(super) progress: Arc<Progress>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fate {
    /// Nothing yet: it waits.
    Waiting,
    /// A status was handed out, and the body is on its way.
    Answering,
    /// The whole answer was handed out.
    Answered,
    /// It was cut as scripted.
    Cut,
    /// Its client went away before the answer was over.
    ClientGone,
}

/// How far an answer is, for whoever watches.
#[derive(Debug, Default)]
pub(super) struct Progress {
    fate: AtomicU8,
    chunks: AtomicUsize,
}

impl Progress {
    pub(super) fn set(&self, fate: Fate) {
        self.fate.store(fate as u8, Ordering::SeqCst);
    }

    pub(super) fn fate(&self) -> Fate {
        let fate = self.fate.load(Ordering::SeqCst);
        let all = [Fate::Waiting, Fate::Answering, Fate::Answered, Fate::Cut, Fate::ClientGone];
        all.into_iter().find(|known| *known as u8 == fate).unwrap_or(Fate::Waiting)
    }

    pub(super) fn count_chunk(&self) {
        self.chunks.fetch_add(1, Ordering::SeqCst);
    }
}

/// What a tool gave, as the model is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call's id, or the tool's name where the API has no ids.
    pub call: String,
    /// The result as text; as JSON where it is not text.
    pub text: String,
}

impl Received {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The path without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// What became of it, as of now.
    pub fn fate(&self) -> Fate {
        self.progress.fate()
    }

    /// How many chunks of the answer were handed out, as of now. A slow reader holds this number back.
    pub fn chunks(&self) -> usize {
        self.progress.chunks.load(Ordering::SeqCst)
    }

    /// The API that is asked for an answer of the model; none for anything else.
    pub fn api(&self) -> Option<Api> {
        match Asked::of(self) {
            Asked::Answer(api) | Asked::Stream(api) => Some(api),
            _ => None,
        }
    }

    /// Whether it asks for a WebSocket.
    pub fn is_upgrade(&self) -> bool {
        Asked::of(self) == Asked::Upgrade
    }

    /// Whether it asks the model for a turn of the script: with tools, that is.
    pub fn asks_for_a_turn(&self) -> bool {
        self.api().is_some() && self.body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    }

    /// The names of the tools that the model may call.
    pub fn tools(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for tool in self.body["tools"].as_array().into_iter().flatten() {
            if tool["functionDeclarations"].is_array() {
                names.extend(items(&tool["functionDeclarations"]).filter_map(|declared| declared["name"].as_str()));
                continue;
            }
            let places = [&tool["name"], &tool["function"]["name"], &tool["custom"]["name"], &tool["type"]];
            names.extend(places.into_iter().find_map(Value::as_str));
        }
        names
    }

    /// The text of the user's last message that has some.
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

    /// All results of tools that it carries, in order.
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

/// The text of a content, which is text or a list of blocks, some of which have text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => items(content).filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}
