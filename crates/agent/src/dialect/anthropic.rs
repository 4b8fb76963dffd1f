//! Requests of Anthropic Messages.

use serde_json::{Value, json};

use super::call_id::portable;
use super::messages::{HistoryMessage, ResultPart, SentMessage, UserPart};
use super::{RequestParts, object, tools, write_body};
use crate::log::{AssistantBlock, ImageData, SignatureKind, SignedData};

pub(super) fn body(messages: &[HistoryMessage<'_>], parts: &RequestParts<'_>) -> Vec<u8> {
    let thinking = thinking_tokens(messages, parts);
    let mut definitions = tools::definitions(parts.tools, parts.settings);
    if let Some(last) = definitions.as_mut().and_then(|tools| tools.last_mut()) {
        mark(last);
    }
    let system = (!parts.instructions.is_empty())
        .then(|| json!([{"type": "text", "text": parts.instructions, "cache_control": {"type": "ephemeral"}}]));
    let head = object([
        ("model", Some(parts.settings.model.clone().into())),
        ("max_tokens", Some((parts.max_output_tokens + thinking.unwrap_or(0)).into())),
        ("stream", Some(true.into())),
        ("thinking", thinking.map(|budget| json!({"type": "enabled", "budget_tokens": budget}))),
        ("tools", definitions.map(Value::Array)),
        ("system", system),
    ]);
    let mut list: Vec<Value> = Vec::new();
    for message in messages {
        let (role, content) = match message {
            HistoryMessage::User(parts) => ("user", parts.iter().map(user_part).collect::<Vec<_>>()),
            HistoryMessage::Results(results) => ("user", results.iter().map(result).collect()),
            HistoryMessage::Assistant(message) => ("assistant", assistant(message)),
        };
        match list.last_mut().filter(|last| last["role"] == role).and_then(|last| last["content"].as_array_mut()) {
            Some(last) => last.extend(content),
            None => list.push(json!({"role": role, "content": content})),
        }
    }
    // The last two user turns: the request before wrote the cache up to the older of them.
    for message in list.iter_mut().rev().filter(|message| message["role"] == "user").take(2) {
        if let Some(block) = message["content"].as_array_mut().and_then(|content| content.last_mut()) {
            mark(block);
        }
    }
    write_body(head, "messages", list)
}

/// Returns the budget of thinking. The API wants a turn that is under way to begin with thinking, which is missing after a switch of
/// the model or a compaction; such a turn ends without it.
fn thinking_tokens(messages: &[HistoryMessage<'_>], parts: &RequestParts<'_>) -> Option<u64> {
    let budget = u64::from(parts.settings.thinking_tokens);
    let turn = messages.iter().rposition(|message| matches!(message, HistoryMessage::User(_))).map_or(0, |at| at + 1);
    let first = messages[turn.min(messages.len())..].iter().find_map(|message| match message {
        HistoryMessage::Assistant(message) => message.blocks.first(),
        _ => None,
    });
    let can_think = first.is_none_or(|block| matches!(block, AssistantBlock::Thinking { .. }));
    (budget > 0 && can_think).then_some(budget)
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({"type": "ephemeral"});
}

fn user_part(part: &UserPart<'_>) -> Value {
    match part {
        UserPart::Text(text) => json!({"type": "text", "text": text}),
        UserPart::Image(image) => self::image(image),
    }
}

fn image(image: &ImageData) -> Value {
    let ImageData { media_type, base64 } = image;
    json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": base64}})
}

fn result(part: &ResultPart<'_>) -> Value {
    let content = if part.images.is_empty() {
        json!(part.text)
    } else {
        let mut blocks = vec![json!({"type": "text", "text": part.text})];
        blocks.extend(part.images.iter().map(image));
        Value::Array(blocks)
    };
    let id = portable(&part.call.id);
    object([
        ("type", Some("tool_result".into())),
        ("tool_use_id", Some(id.into())),
        ("content", Some(content)),
        ("is_error", part.is_error.then(|| true.into())),
    ])
}

fn assistant(message: &SentMessage<'_>) -> Vec<Value> {
    let mut content = Vec::new();
    for block in &message.blocks {
        match block {
            AssistantBlock::Text { text, .. } => content.push(json!({"type": "text", "text": text})),
            AssistantBlock::Thinking { text, signatures } => {
                content.extend(signatures.iter().map(|signature| thinking(text, signature)));
            }
            AssistantBlock::ToolCall(call) => content.push(json!({
                "type": "tool_use", "id": portable(&call.id), "name": call.name, "input": call.object(),
            })),
        }
    }
    content
}

fn thinking(text: &str, signature: &SignedData) -> Value {
    match signature.kind {
        SignatureKind::Redacted => json!({"type": "redacted_thinking", "data": signature.data}),
        SignatureKind::Signature | SignatureKind::Encrypted => {
            json!({"type": "thinking", "thinking": text, "signature": signature.data})
        }
    }
}
