//! A turn in Anthropic's Messages.

use serde_json::{Value, json};

use super::{Turn, event, pieces};

/// The whole answer.
pub(super) fn message(id: &str, turn: &Turn) -> Value {
    let text = turn.text.iter().map(|text| json!({"type": "text", "text": text}));
    let calls = turn.calls.iter().enumerate().map(|(index, call)| {
        json!({"type": "tool_use", "id": format!("toolu_{id}_{index}"), "name": call.name, "input": call.input})
    });
    let content: Vec<Value> = text.chain(calls).collect();
    json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": "scripted", "content": content,
        "stop_reason": stop_reason(turn), "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 10},
    })
}

/// The answer as a stream.
pub(super) fn events(id: &str, turn: &Turn) -> Vec<Value> {
    let whole = message(id, turn);
    let mut start = whole.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut events = vec![event(json!({"message": start}), "message_start"), event(json!({}), "ping")];
    for (index, block) in whole["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let deltas: Vec<Value> = if block["type"] == "text" {
            empty["text"] = "".into();
            let text = block["text"].as_str().unwrap_or_default();
            pieces(text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        } else {
            empty["input"] = json!({});
            let input = block["input"].to_string();
            pieces(&input).into_iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        };
        events.push(event(json!({"index": index, "content_block": empty}), "content_block_start"));
        events.extend(
            deltas.into_iter().map(|delta| event(json!({"index": index, "delta": delta}), "content_block_delta")),
        );
        events.push(event(json!({"index": index}), "content_block_stop"));
    }
    let delta = json!({"stop_reason": stop_reason(turn), "stop_sequence": null});
    events.push(event(json!({"delta": delta, "usage": whole["usage"]}), "message_delta"));
    events.push(event(json!({}), "message_stop"));
    events
}

fn stop_reason(turn: &Turn) -> &'static str {
    if turn.calls.is_empty() { "end_turn" } else { "tool_use" }
}
