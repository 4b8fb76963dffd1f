//! Encodes scripted responses for Anthropic Messages.

use serde_json::{Value, json};

use super::super::anthropic::AnthropicStream;
use super::{ModelScript, ScriptBlock, arguments, named};
use crate::stream::event::{FinishReason, Usage};

/// Returns the events of a stream.
pub(in crate::stream) fn stream(script: &ModelScript) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    let mut push = |event: Value| {
        let name = event["type"].as_str().unwrap_or_default().to_owned();
        events.push(named(&name, &event));
    };
    let mut message = message(script, &json!([]), &Value::Null);
    message["usage"]["output_tokens"] = json!(0);
    push(json!({"type": "message_start", "message": message}));
    for (index, block) in script.blocks.iter().enumerate() {
        push(json!({"type": "content_block_start", "index": index, "content_block": start(block)}));
        for delta in deltas(block) {
            push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        push(json!({"type": "content_block_stop", "index": index}));
    }
    if let Some(finish) = script.finish() {
        let usage = json!({"output_tokens": script.usage.output.unwrap_or(0)});
        let delta = json!({"stop_reason": reason(finish), "stop_sequence": null});
        push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        push(json!({"type": "message_stop"}));
    }
    events.extend(script.failure(&AnthropicStream));
    events
}

/// Returns the body of a response that is not streamed.
pub(in crate::stream) fn body(script: &ModelScript) -> Value {
    let content: Vec<Value> = script.blocks.iter().map(whole).collect();
    message(script, &content.into(), &script.finish().map_or(Value::Null, |finish| reason(finish).into()))
}

fn message(script: &ModelScript, content: &Value, stop_reason: &Value) -> Value {
    let ModelScript { id, model, usage, .. } = script;
    json!({
        "id": id, "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_reason, "stop_sequence": null, "usage": counts(*usage),
    })
}

fn counts(usage: Usage) -> Value {
    let mut counts = json!({"input_tokens": usage.input.unwrap_or(0)});
    for (key, count) in
        [("cache_creation_input_tokens", usage.cache_written), ("cache_read_input_tokens", usage.cache_read)]
    {
        if let Some(count) = count {
            counts[key] = count.into();
        }
    }
    counts["output_tokens"] = usage.output.unwrap_or(0).into();
    counts
}

fn start(block: &ScriptBlock) -> Value {
    match block {
        ScriptBlock::Text { .. } => json!({"type": "text", "text": ""}),
        ScriptBlock::Thinking { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
        ScriptBlock::Redacted { data } => json!({"type": "redacted_thinking", "data": data}),
        ScriptBlock::ToolCall { id, name, .. } => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
    }
}

fn deltas(block: &ScriptBlock) -> Vec<Value> {
    let each = |pieces: &[String], kind: &str, key: &str| -> Vec<Value> {
        pieces.iter().map(|piece| json!({"type": kind, key: piece})).collect()
    };
    match block {
        ScriptBlock::Text { pieces } => each(pieces, "text_delta", "text"),
        ScriptBlock::Thinking { pieces, opaque } => {
            let mut deltas = each(pieces, "thinking_delta", "thinking");
            deltas.extend(opaque.iter().map(|opaque| json!({"type": "signature_delta", "signature": opaque})));
            deltas
        }
        ScriptBlock::Redacted { .. } => Vec::new(),
        ScriptBlock::ToolCall { pieces, .. } => each(pieces, "input_json_delta", "partial_json"),
    }
}

fn whole(block: &ScriptBlock) -> Value {
    let mut whole = start(block);
    match block {
        ScriptBlock::Text { pieces } => whole["text"] = pieces.concat().into(),
        ScriptBlock::Thinking { pieces, opaque } => {
            whole["thinking"] = pieces.concat().into();
            whole["signature"] = opaque.clone().unwrap_or_default().into();
        }
        ScriptBlock::Redacted { .. } => {}
        ScriptBlock::ToolCall { pieces, .. } => whole["input"] = arguments(pieces),
    }
    whole
}

fn reason(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::ToolUse => "tool_use",
        FinishReason::MaxTokens => "max_tokens",
        FinishReason::StopSequence => "stop_sequence",
        FinishReason::Refusal => "refusal",
        FinishReason::Paused => "pause_turn",
        _ => "end_turn",
    }
}
