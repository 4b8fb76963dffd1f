//! Encodes scripted responses for OpenAI Chat Completions.

use serde_json::{Value, json};

use super::super::chat::ChatStream;
use super::{ModelScript, ScriptBlock, unnamed};
use crate::stream::event::{FinishReason, ToolKind, Usage};

/// Returns the events of a stream. Usage is in a last chunk without choices, as with `include_usage`.
pub(in crate::stream) fn stream(script: &ModelScript) -> Vec<Vec<u8>> {
    let chunk = |choices: Value, usage: Value| {
        let ModelScript { id, model, .. } = script;
        let chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": 0, "model": model, "system_fingerprint": null,
            "choices": choices, "usage": usage,
        });
        unnamed(&chunk)
    };
    let choice = |delta: Value, reason: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]), Value::Null)
    };
    let mut events = vec![choice(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null)];
    let mut calls = 0;
    for block in &script.blocks {
        match block {
            ScriptBlock::Text { pieces } => {
                events.extend(pieces.iter().map(|piece| choice(json!({"content": piece}), Value::Null)));
            }
            ScriptBlock::Thinking { pieces, .. } => {
                events.extend(pieces.iter().map(|piece| choice(json!({"reasoning_content": piece}), Value::Null)));
            }
            ScriptBlock::Redacted { .. } => {}
            ScriptBlock::ToolCall { id, name, kind, pieces, .. } => {
                let (kind, key) = field_names(*kind);
                let start = json!({"index": calls, "id": id, "type": kind, kind: {"name": name, key: ""}});
                events.push(choice(json!({"tool_calls": [start]}), Value::Null));
                for piece in pieces {
                    let more = json!({"index": calls, kind: {key: piece}});
                    events.push(choice(json!({"tool_calls": [more]}), Value::Null));
                }
                calls += 1;
            }
        }
    }
    if let Some(finish) = script.finish() {
        events.push(choice(json!({}), reason(finish).into()));
        events.push(chunk(json!([]), counts(script.usage)));
        events.push(b"data: [DONE]\n\n".to_vec());
    }
    events.extend(script.failure(&ChatStream));
    events
}

/// Returns the body of a response that is not streamed.
pub(in crate::stream) fn body(script: &ModelScript) -> Value {
    let mut message = json!({"role": "assistant", "content": null, "refusal": null});
    let (mut text, mut thinking, mut calls) = (None, None, Vec::new());
    for block in &script.blocks {
        match block {
            ScriptBlock::Text { pieces } => text.get_or_insert_with(String::new).push_str(&pieces.concat()),
            ScriptBlock::Thinking { pieces, .. } => {
                thinking.get_or_insert_with(String::new).push_str(&pieces.concat());
            }
            ScriptBlock::Redacted { .. } => {}
            ScriptBlock::ToolCall { id, name, kind, pieces, .. } => {
                let (kind, key) = field_names(*kind);
                calls.push(json!({"id": id, "type": kind, kind: {"name": name, key: pieces.concat()}}));
            }
        }
    }
    message["content"] = text.into();
    if let Some(thinking) = thinking {
        message["reasoning_content"] = thinking.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let reason = script.finish().map_or(Value::Null, |finish| reason(finish).into());
    let ModelScript { id, model, usage, .. } = script;
    json!({
        "id": id, "object": "chat.completion", "created": 0, "model": model, "system_fingerprint": null,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": counts(*usage),
    })
}

fn field_names(kind: ToolKind) -> (&'static str, &'static str) {
    match kind {
        ToolKind::Function => ("function", "arguments"),
        ToolKind::Custom => ("custom", "input"),
    }
}

fn counts(usage: Usage) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    let mut counts =
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input.saturating_add(output)});
    if let Some(cached) = usage.cache_read {
        counts["prompt_tokens_details"] = json!({"cached_tokens": cached, "audio_tokens": 0});
    }
    if let Some(reasoning) = usage.reasoning {
        counts["completion_tokens_details"] = json!({"reasoning_tokens": reasoning, "audio_tokens": 0});
    }
    counts
}

fn reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::ToolUse => "tool_calls",
        FinishReason::MaxTokens => "length",
        FinishReason::Refusal => "content_filter",
        _ => "stop",
    }
}
