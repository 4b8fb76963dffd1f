//! Encodes scripted responses for Gemini.

use serde_json::{Value, json};

use super::super::gemini::GeminiStream;
use super::{ModelScript, ScriptBlock, arguments};
use crate::stream::event::{FinishReason, Usage};

/// Returns the events of a stream: one per piece of text and one per call, with Google's line ends.
pub(in crate::stream) fn stream(script: &ModelScript) -> Vec<Vec<u8>> {
    let mut parts: Vec<Value> = script.blocks.iter().flat_map(parts).collect();
    let last = script.finish().map(|finish| (parts.pop().unwrap_or_else(|| json!({"text": ""})), finish));
    let mut events: Vec<Vec<u8>> = parts
        .into_iter()
        .map(|part| event(&answer(script, &json!([part]), None, &json!({"promptTokenCount": script.usage.input}))))
        .collect();
    if let Some((part, finish)) = last {
        events.push(event(&answer(script, &json!([part]), Some(finish), &counts(script.usage))));
    }
    events.extend(script.failure(&GeminiStream));
    events
}

/// Returns the body of a response that is not streamed.
pub(in crate::stream) fn body(script: &ModelScript) -> Value {
    let parts: Vec<Value> = script.blocks.iter().filter_map(|block| parts(&joined(block)).into_iter().next()).collect();
    answer(script, &parts.into(), script.finish(), &counts(script.usage))
}

fn joined(block: &ScriptBlock) -> ScriptBlock {
    let mut block = block.clone();
    if let ScriptBlock::Text { pieces } | ScriptBlock::Thinking { pieces, .. } = &mut block {
        *pieces = vec![pieces.concat()];
    }
    block
}

fn event(data: &Value) -> Vec<u8> {
    format!("data: {data}\r\n\r\n").into_bytes()
}

fn answer(script: &ModelScript, parts: &Value, finish: Option<FinishReason>, usage: &Value) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = reason(finish).into();
    }
    let ModelScript { id, model, .. } = script;
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": id})
}

fn parts(block: &ScriptBlock) -> Vec<Value> {
    match block {
        ScriptBlock::Text { pieces } => pieces.iter().map(|piece| json!({"text": piece})).collect(),
        ScriptBlock::Thinking { pieces, opaque } => {
            let mut parts: Vec<Value> = pieces.iter().map(|piece| json!({"text": piece, "thought": true})).collect();
            if let (Some(last), Some(opaque)) = (parts.last_mut(), opaque) {
                last["thoughtSignature"] = opaque.clone().into();
            }
            parts
        }
        ScriptBlock::Redacted { .. } => Vec::new(),
        ScriptBlock::ToolCall { id, name, pieces, opaque, .. } => {
            let mut call = json!({"name": name, "args": arguments(pieces)});
            if !id.is_empty() {
                call["id"] = id.clone().into();
            }
            let mut part = json!({"functionCall": call});
            if let Some(opaque) = opaque {
                part["thoughtSignature"] = opaque.clone().into();
            }
            vec![part]
        }
    }
}

fn counts(usage: Usage) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    let mut counts = json!({"promptTokenCount": input, "candidatesTokenCount": output});
    if let Some(cached) = usage.cache_read {
        counts["cachedContentTokenCount"] = cached.into();
    }
    if let Some(thoughts) = usage.reasoning {
        counts["thoughtsTokenCount"] = thoughts.into();
    }
    let total = input.saturating_add(output).saturating_add(usage.reasoning.unwrap_or(0));
    counts["totalTokenCount"] = total.into();
    counts
}

fn reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::MaxTokens => "MAX_TOKENS",
        FinishReason::Refusal => "SAFETY",
        FinishReason::Failed => "MALFORMED_FUNCTION_CALL",
        FinishReason::EndTurn | FinishReason::ToolUse | FinishReason::StopSequence => "STOP",
        _ => "OTHER",
    }
}
