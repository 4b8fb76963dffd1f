//! Requests of Gemini.

use serde_json::{Value, json};

use super::call_id::OWN_PREFIX;
use super::messages::{HistoryMessage, ResultPart, SentMessage, UserPart};
use super::{RequestParts, object, tools, write_body};
use crate::log::{AssistantBlock, ImageData, SignatureKind, SignedData, ToolCallBlock};

/// Signature that Gemini 3 accepts for calls that another model made.
const FOREIGN_CALL_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn body(messages: &[HistoryMessage<'_>], parts: &RequestParts<'_>) -> Vec<u8> {
    let settings = parts.settings;
    let declarations = tools::definitions(parts.tools, settings);
    let thinking = (settings.thinking_tokens > 0)
        .then(|| json!({"thinkingConfig": {"includeThoughts": true, "thinkingBudget": settings.thinking_tokens}}));
    let head = object([
        ("tools", declarations.map(|declarations| json!([{"functionDeclarations": declarations}]))),
        (
            "systemInstruction",
            (!parts.instructions.is_empty()).then(|| json!({"parts": [{"text": parts.instructions}]})),
        ),
        ("generationConfig", thinking),
    ]);
    let needs_signature = settings.model.contains("gemini-3");
    let mut list: Vec<Value> = Vec::new();
    for message in messages {
        let (role, content) = match message {
            HistoryMessage::User(parts) => ("user", parts.iter().map(user_part).collect::<Vec<_>>()),
            HistoryMessage::Results(results) => ("user", results.iter().flat_map(result).collect()),
            HistoryMessage::Assistant(message) => ("model", assistant(message, needs_signature)),
        };
        // Results of calls stay a message of their own: the API wants as many results as calls in it.
        let merges = matches!(message, HistoryMessage::Assistant(_));
        match list
            .last_mut()
            .filter(|last| merges && last["role"] == role)
            .and_then(|last| last["parts"].as_array_mut())
        {
            Some(last) => last.extend(content),
            None => list.push(json!({"role": role, "parts": content})),
        }
    }
    write_body(head, "contents", list)
}

fn user_part(part: &UserPart<'_>) -> Value {
    match part {
        UserPart::Text(text) => json!({"text": text}),
        UserPart::Image(image) => self::image(image),
    }
}

fn image(image: &ImageData) -> Value {
    json!({"inlineData": {"mimeType": image.media_type, "data": image.base64}})
}

/// Returns the id of a call if the API gave it.
fn given_id(call: &ToolCallBlock) -> Option<Value> {
    (!call.id.starts_with(OWN_PREFIX)).then(|| call.id.clone().into())
}

fn result(part: &ResultPart<'_>) -> Vec<Value> {
    let response = if part.is_error { json!({"error": part.text}) } else { json!({"output": part.text}) };
    let answer = object([
        ("id", given_id(part.call)),
        ("name", Some(part.call.name.clone().into())),
        ("response", Some(response)),
    ]);
    let mut parts = vec![json!({"functionResponse": answer})];
    parts.extend(part.images.iter().map(image));
    parts
}

fn assistant(message: &SentMessage<'_>, needs_signature: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut calls = 0;
    for block in &message.blocks {
        let (mut part, signatures) = match block {
            AssistantBlock::Text { text, signatures } => (json!({"text": text}), signatures),
            AssistantBlock::Thinking { text, signatures } => (json!({"text": text, "thought": true}), signatures),
            AssistantBlock::ToolCall(call) => {
                let called = object([
                    ("id", given_id(call)),
                    ("name", Some(call.name.clone().into())),
                    ("args", Some(call.object())),
                ]);
                calls += 1;
                (json!({"functionCall": called}), &call.signatures)
            }
        };
        let own = signatures.iter().find(|signature| signature.kind == SignatureKind::Signature);
        let own: Option<&SignedData> = own.filter(|_| message.keeps_signed);
        let is_first_call = calls == 1 && matches!(block, AssistantBlock::ToolCall(_));
        if let Some(signature) = own {
            part["thoughtSignature"] = signature.data.clone().into();
        } else if needs_signature && is_first_call {
            part["thoughtSignature"] = FOREIGN_CALL_SIGNATURE.into();
        }
        parts.push(part);
    }
    parts
}
