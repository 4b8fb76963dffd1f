//! A turn in OpenAI's Responses.

use serde_json::{Value, json};

use super::{ToolCall, Turn, event, pieces};

/// The whole answer.
pub(super) fn response(id: &str, turn: &Turn) -> Value {
    let text = turn.text.iter().map(|text| {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        json!({"type": "message", "role": "assistant", "id": format!("msg_{id}"), "status": "completed", "content": content})
    });
    let calls = turn.calls.iter().enumerate().map(|(index, call)| tool_call(id, index, call));
    let output: Vec<Value> = text.chain(calls).collect();
    json!({
        "id": format!("resp_{id}"), "object": "response", "status": "completed", "output": output,
        "usage": {
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20,
        },
    })
}

fn tool_call(turn: &str, index: usize, call: &ToolCall) -> Value {
    let id = format!("call_{turn}_{index}");
    match &call.input {
        Value::String(input) => {
            json!({"type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": id, "name": call.name, "input": input})
        }
        input => {
            let arguments = input.to_string();
            json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": call.name, "arguments": arguments})
        }
    }
}

/// The answer as a stream.
pub(super) fn events(id: &str, turn: &Turn) -> Vec<Value> {
    let whole = response(id, turn);
    let mut start = whole.clone();
    start["output"] = json!([]);
    start["status"] = "in_progress".into();
    let mut events = vec![event(json!({"response": start}), "response.created")];
    for (index, item) in whole["output"].as_array().into_iter().flatten().enumerate() {
        let (key, kind) = match item["type"].as_str() {
            Some("custom_tool_call") => ("input", "response.custom_tool_call_input"),
            Some("function_call") => ("arguments", "response.function_call_arguments"),
            _ => ("text", "response.output_text"),
        };
        let is_text = key == "text";
        let text = if is_text { item["content"][0]["text"].as_str() } else { item[key].as_str() }.unwrap_or_default();
        let mut empty = item.clone();
        empty[if is_text { "content" } else { key }] = if is_text { json!([]) } else { "".into() };
        let place = |mut data: Value| {
            data["item_id"] = item["id"].clone();
            data["output_index"] = index.into();
            if is_text {
                data["content_index"] = 0.into();
            }
            data
        };
        events.push(event(json!({"output_index": index, "item": empty}), "response.output_item.added"));
        for piece in pieces(text) {
            events.push(event(place(json!({"delta": piece})), &format!("{kind}.delta")));
        }
        let mut done = place(json!({}));
        done[key] = text.into();
        events.push(event(done, &format!("{kind}.done")));
        events.push(event(json!({"output_index": index, "item": item}), "response.output_item.done"));
    }
    events.push(event(json!({"response": whole}), "response.completed"));
    events
}
