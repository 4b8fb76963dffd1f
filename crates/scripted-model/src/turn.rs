//! Turns of the model.

use sayso_wire::stream::{Api, FinishReason, ModelScript, ScriptBlock, ScriptEnding, ToolKind, Usage};
use serde_json::Value;

use crate::Received;

/// Length of the text of one event.
const EVENT_CHARS: usize = 24;

/// Content of an answer of the model, independent of the API.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn {
    thought: Option<(String, Option<String>)>,
    text: Option<String>,
    calls: Vec<ToolCall>,
    failure: Option<(u16, String)>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
}

/// Tool call by the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub name: String,
    /// Arguments. In the OpenAI APIs, a string is the input of a free-form tool such as `apply_patch`.
    pub input: Value,
}

impl Turn {
    /// A turn with a text. It ends the agent's turn unless calls are added.
    pub fn says(text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::default() }
    }

    /// A turn with a tool call.
    pub fn calls(name: &str, input: impl Into<Value>) -> Self {
        Self::default().and_calls(name, input)
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_calls(mut self, name: &str, input: impl Into<Value>) -> Self {
        self.calls.push(ToolCall { name: name.to_owned(), input: input.into() });
        self
    }

    /// Adds thinking before the text. `opaque` is the API's signature or encrypted form of it.
    #[must_use]
    pub fn after_thinking(mut self, thought: &str, opaque: Option<&str>) -> Self {
        self.thought = Some((thought.to_owned(), opaque.map(str::to_owned)));
        self
    }

    /// Ends the stream with an error. Without streaming, the whole answer is this error with its status.
    #[must_use]
    pub fn and_fails(mut self, status: u16, message: &str) -> Self {
        self.failure = Some((status, message.to_owned()));
        self
    }

    /// Reports these token counts in place of 10 and 10.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Ends with this reason. Without it, a turn with calls ends with tool use and any other turn is complete.
    #[must_use]
    pub fn finished_by(mut self, finish: FinishReason) -> Self {
        self.finish = Some(finish);
        self
    }

    /// Adds a text to a turn.
    #[must_use]
    pub fn and_says(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }

    /// Replaces the placeholders in the texts and in the strings of tool inputs.
    pub(crate) fn filled(mut self, received: &Received) -> Self {
        let last_result = || received.tool_results().pop().map(|result| result.text).unwrap_or_default();
        let fill = |text: &mut String| {
            if text.contains("{{") {
                *text = text
                    .replace("{{user}}", &received.last_user_text())
                    .replace("{{result}}", &last_result())
                    .replace("{{model}}", &received.model());
            }
        };
        self.text.iter_mut().for_each(fill);
        self.thought.iter_mut().for_each(|(text, _)| fill(text));
        self.calls.iter_mut().for_each(|call| for_each_string(&mut call.input, &fill));
        self
    }

    /// Returns the status and message of [`Self::and_fails`].
    pub(crate) fn failure(&self) -> Option<(u16, &str)> {
        self.failure.as_ref().map(|(status, message)| (*status, message.as_str()))
    }

    /// Renders the turn for an API. `id` makes the ids of messages and calls unique.
    pub(crate) fn script(&self, api: Api, id: &str, model: &str) -> ModelScript {
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
        let default = if self.calls.is_empty() { FinishReason::EndTurn } else { FinishReason::ToolUse };
        let finish = self.finish.unwrap_or(default);
        let ending = self.failure.as_ref().map_or(ScriptEnding::Finished(finish), |(status, message)| {
            ScriptEnding::Failed { status: *status, message: message.clone() }
        });
        ModelScript {
            id: format!("{prefix}_{id}"),
            model: model.to_owned(),
            blocks: thought.chain(text).chain(calls).collect(),
            usage: self.usage.unwrap_or(Usage { input: Some(10), output: Some(10), ..Usage::default() }),
            ending,
        }
    }
}

/// Splits a text into the pieces of one event each. Returns one empty piece for an empty text.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return vec![String::new()];
    }
    characters.chunks(EVENT_CHARS).map(|piece| piece.iter().collect()).collect()
}

/// Calls `change` with each string of a value.
fn for_each_string(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_string(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| for_each_string(field, change)),
        _ => {}
    }
}
