//! What the model says.

use sayso_wire::stream::{Api, Ending, Finish, Script, ScriptBlock, ToolKind, Usage};
use serde_json::Value;

/// How many characters of a text come in one event.
const PIECE: usize = 24;

/// What the model answers to one request, in any API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    thought: Option<(String, Option<String>)>,
    text: Option<String>,
    calls: Vec<ToolCall>,
    failure: Option<(u16, String)>,
}

/// A tool that the model calls.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// Its arguments. For OpenAI's APIs a string is the input of a free-form tool, such as `apply_patch`.
    pub input: Value,
}

impl Turn {
    /// Says something and, without calls, ends the agent's turn.
    pub fn says(text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::default() }
    }

    /// Calls a tool.
    pub fn calls(name: &str, input: impl Into<Value>) -> Self {
        Self::default().and_calls(name, input)
    }

    /// Calls another tool in the same answer.
    #[must_use]
    pub fn and_calls(mut self, name: &str, input: impl Into<Value>) -> Self {
        self.calls.push(ToolCall { name: name.to_owned(), input: input.into() });
        self
    }

    /// Thinks before it says anything, with what the API signs or encrypts of it.
    #[must_use]
    pub fn after_thinking(mut self, thought: &str, opaque: Option<&str>) -> Self {
        self.thought = Some((thought.to_owned(), opaque.map(str::to_owned)));
        self
    }

    /// Fails after all that, with the API's error in the stream. An answer that is not streamed is this error and its status alone.
    #[must_use]
    pub fn and_fails(mut self, status: u16, message: &str) -> Self {
        self.failure = Some((status, message.to_owned()));
        self
    }

    /// The status and the words that it fails with.
    pub(super) fn failure(&self) -> Option<(u16, &str)> {
        self.failure.as_ref().map(|(status, message)| (*status, message.as_str()))
    }

    /// It, for an API. `id` tells one answer from another.
    pub(super) fn script(&self, api: Api, id: &str, model: &str) -> Script {
        let thought = self
            .thought
            .iter()
            .map(|(text, opaque)| ScriptBlock::Thinking { pieces: pieces(text), opaque: opaque.clone() });
        let text = self.text.iter().map(|text| ScriptBlock::Text { pieces: pieces(text) });
        let calls = self.calls.iter().enumerate().map(|(index, call)| {
            let prefix = if api == Api::AnthropicMessages { "toolu" } else { "call" };
            let (kind, input) = match &call.input {
                Value::String(input) => (ToolKind::Custom, input.clone()),
                input => (ToolKind::Function, input.to_string()),
            };
            let id = format!("{prefix}_{id}_{index}");
            ScriptBlock::ToolCall { id, name: call.name.clone(), kind, pieces: pieces(&input), opaque: None }
        });
        let prefix = match api {
            Api::AnthropicMessages => "msg",
            Api::OpenAiChat => "chatcmpl",
            Api::OpenAiResponses => "resp",
            Api::Gemini => "answer",
        };
        let finish = if self.calls.is_empty() { Finish::EndTurn } else { Finish::ToolUse };
        let ending = self.failure.as_ref().map_or(Ending::Finished(finish), |(status, message)| Ending::Failed {
            status: *status,
            message: message.clone(),
        });
        Script {
            id: format!("{prefix}_{id}"),
            model: model.to_owned(),
            blocks: thought.chain(text).chain(calls).collect(),
            usage: Usage { input: Some(10), output: Some(10), ..Usage::default() },
            ending,
        }
    }
}

/// A text in pieces, as a model sends it; never none.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}
