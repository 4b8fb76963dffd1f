//! Requests of OpenAI Chat Completions, which many other servers offer too.

use serde_json::{Value, json};

use super::call_id::portable;
use super::messages::{HistoryMessage, SentMessage, UserPart};
use super::{RequestParts, object, tools, write_body};
use crate::log::{AssistantBlock, CallKind, ToolCallBlock};

pub(super) fn body(messages: &[HistoryMessage<'_>], parts: &RequestParts<'_>) -> Vec<u8> {
    let head = object([
        ("model", Some(parts.settings.model.clone().into())),
        ("stream", Some(true.into())),
        ("stream_options", Some(json!({"include_usage": true}))),
        ("tools", tools::definitions(parts.tools, parts.settings).map(Value::Array)),
    ]);
    let mut list = Vec::new();
    if !parts.instructions.is_empty() {
        list.push(json!({"role": "system", "content": parts.instructions}));
    }
    for message in messages {
        match message {
            HistoryMessage::User(parts) => list.push(user(parts)),
            HistoryMessage::Assistant(message) => list.push(assistant(message)),
            HistoryMessage::Results(results) => list.extend(results.iter().map(|result| {
                let mut text = result.text.to_string();
                if !result.images.is_empty() {
                    text.push_str("\n(The result has images, which this API cannot pass on.)");
                }
                json!({"role": "tool", "tool_call_id": portable(&result.call.id), "content": text})
            })),
        }
    }
    write_body(head, "messages", list)
}

fn user(parts: &[UserPart<'_>]) -> Value {
    if let [UserPart::Text(text)] = parts {
        return json!({"role": "user", "content": text});
    }
    let part = |part: &UserPart<'_>| match part {
        UserPart::Text(text) => json!({"type": "text", "text": text}),
        UserPart::Image(image) => {
            let url = format!("data:{};base64,{}", image.media_type, image.base64);
            json!({"type": "image_url", "image_url": {"url": url}})
        }
    };
    json!({"role": "user", "content": parts.iter().map(part).collect::<Vec<_>>()})
}

fn assistant(message: &SentMessage<'_>) -> Value {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for block in &message.blocks {
        match block {
            AssistantBlock::Text { text: more, .. } => text.push_str(more),
            AssistantBlock::Thinking { .. } => {}
            AssistantBlock::ToolCall(call) => calls.push(json!({
                "id": portable(&call.id), "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            })),
        }
    }
    object([
        ("role", Some("assistant".into())),
        ("content", Some(if text.is_empty() { Value::Null } else { text.into() })),
        ("tool_calls", (!calls.is_empty()).then_some(Value::Array(calls))),
    ])
}

/// Returns the arguments as received, unless they are not a JSON object.
pub(super) fn arguments(call: &ToolCallBlock) -> String {
    let is_object = call.kind == CallKind::Function
        && serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
    if is_object { call.arguments.clone() } else { call.object().to_string() }
}
