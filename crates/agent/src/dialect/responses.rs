//! Requests of OpenAI Responses, with the whole history in each request.

use serde_json::{Value, json};

use super::call_id::portable;
use super::chat::arguments;
use super::messages::{HistoryMessage, ResultPart, SentMessage, UserPart};
use super::{RequestParts, is_openai_model, object, tools, write_body};
use crate::log::{AssistantBlock, CallKind, ImageData, SignatureKind};

pub(super) fn body(messages: &[HistoryMessage<'_>], parts: &RequestParts<'_>) -> Vec<u8> {
    let settings = parts.settings;
    let reasons = is_reasoning_model(&settings.model);
    let head = object([
        ("model", Some(settings.model.clone().into())),
        ("stream", Some(true.into())),
        ("store", Some(false.into())),
        ("include", reasons.then(|| json!(["reasoning.encrypted_content"]))),
        ("reasoning", (reasons && settings.thinking_tokens > 0).then(|| json!({"summary": "auto"}))),
        ("prompt_cache_key", (!parts.cache_key.is_empty()).then(|| parts.cache_key.into())),
        ("instructions", (!parts.instructions.is_empty()).then(|| parts.instructions.into())),
        ("tools", tools::definitions(parts.tools, settings).map(Value::Array)),
    ]);
    let mut list = Vec::new();
    for message in messages {
        match message {
            HistoryMessage::User(parts) => list.push(user(parts)),
            HistoryMessage::Assistant(message) => assistant(message, &mut list),
            HistoryMessage::Results(results) => list.extend(results.iter().map(result)),
        }
    }
    write_body(head, "input", list)
}

/// `true` if the model returns encrypted reasoning. Other models reject the request for it.
fn is_reasoning_model(model: &str) -> bool {
    let bare = model.rsplit('/').next().unwrap_or(model);
    is_openai_model(model) && !bare.starts_with("gpt-4") && !bare.starts_with("gpt-3")
}

fn user(parts: &[UserPart<'_>]) -> Value {
    let part = |part: &UserPart<'_>| match part {
        UserPart::Text(text) => json!({"type": "input_text", "text": text}),
        UserPart::Image(image) => self::image(image),
    };
    json!({"type": "message", "role": "user", "content": parts.iter().map(part).collect::<Vec<_>>()})
}

fn image(image: &ImageData) -> Value {
    json!({"type": "input_image", "image_url": format!("data:{};base64,{}", image.media_type, image.base64)})
}

fn assistant(message: &SentMessage<'_>, list: &mut Vec<Value>) {
    for block in &message.blocks {
        match block {
            AssistantBlock::Text { text, .. } => list.push(json!({
                "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}],
            })),
            AssistantBlock::Thinking { text, signatures } => {
                let summary: Vec<Value> =
                    if text.is_empty() { Vec::new() } else { vec![json!({"type": "summary_text", "text": text})] };
                let encrypted = signatures.iter().filter(|signature| signature.kind == SignatureKind::Encrypted);
                list.extend(encrypted.map(
                    |signature| json!({"type": "reasoning", "summary": summary, "encrypted_content": signature.data}),
                ));
            }
            AssistantBlock::ToolCall(call) => {
                let id = portable(&call.id);
                list.push(match call.kind {
                    CallKind::Function => json!({
                        "type": "function_call", "call_id": id, "name": call.name, "arguments": arguments(call),
                    }),
                    CallKind::Custom => json!({
                        "type": "custom_tool_call", "call_id": id, "name": call.name, "input": call.arguments,
                    }),
                });
            }
        }
    }
}

fn result(part: &ResultPart<'_>) -> Value {
    let kind = match part.call.kind {
        CallKind::Function => "function_call_output",
        CallKind::Custom => "custom_tool_call_output",
    };
    let output = if part.images.is_empty() {
        json!(part.text)
    } else {
        let mut items = vec![json!({"type": "input_text", "text": part.text})];
        items.extend(part.images.iter().map(image));
        Value::Array(items)
    };
    json!({"type": kind, "call_id": portable(&part.call.id), "output": output})
}
