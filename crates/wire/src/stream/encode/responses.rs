//! Encodes scripted responses for OpenAI Responses.

use serde_json::{Map, Value, json};

use super::super::responses::ResponsesStream;
use super::{ModelScript, ScriptBlock, named};
use crate::stream::event::{FinishReason, ToolKind, Usage};

/// Events with their sequence numbers.
struct Events(Vec<Vec<u8>>);

impl Events {
    fn push(&mut self, kind: &str, fields: Value) {
        let mut event = Map::new();
        event.insert("type".to_owned(), kind.into());
        event.insert("sequence_number".to_owned(), self.0.len().into());
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.0.push(named(kind, &Value::Object(event)));
    }
}

/// Returns the events of a stream.
pub(in crate::stream) fn stream(script: &ModelScript) -> Vec<Vec<u8>> {
    let mut events = Events(Vec::new());
    for kind in ["response.created", "response.in_progress"] {
        events.push(kind, json!({"response": response(script, "in_progress", &json!([]), &Value::Null)}));
    }
    let blocks = script.blocks.iter().filter(|block| !matches!(block, ScriptBlock::Redacted { .. }));
    for (index, block) in blocks.enumerate() {
        events.push(
            "response.output_item.added",
            json!({"output_index": index, "item": item(index, block, ItemState::Added)}),
        );
        push_content_events(&mut events, index, block);
        events.push(
            "response.output_item.done",
            json!({"output_index": index, "item": item(index, block, ItemState::Done)}),
        );
    }
    if let Some(finish) = script.finish() {
        let (status, _) = status(finish);
        events.push(&format!("response.{status}"), json!({"response": body(script)}));
    }
    events.0.extend(script.failure(&ResponsesStream));
    events.0
}

/// Adds the events between the start and the end of an item.
fn push_content_events(events: &mut Events, index: usize, block: &ScriptBlock) {
    let place = |rest: Value| {
        let mut place = json!({"item_id": item_id(index, block), "output_index": index});
        if let (Some(place), Value::Object(rest)) = (place.as_object_mut(), rest) {
            place.extend(rest);
        }
        place
    };
    match block {
        ScriptBlock::Text { pieces } => {
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            let whole = pieces.concat();
            events.push("response.content_part.added", place(json!({"content_index": 0, "part": part("")})));
            for piece in pieces {
                let delta = place(json!({"content_index": 0, "delta": piece, "logprobs": []}));
                events.push("response.output_text.delta", delta);
            }
            let done = place(json!({"content_index": 0, "text": whole, "logprobs": []}));
            events.push("response.output_text.done", done);
            events.push("response.content_part.done", place(json!({"content_index": 0, "part": part(&whole)})));
        }
        ScriptBlock::Thinking { pieces, .. } => {
            let part = |text: &str| json!({"type": "summary_text", "text": text});
            let whole = pieces.concat();
            let kind = |end: &str| format!("response.reasoning_summary_{end}");
            events.push(&kind("part.added"), place(json!({"summary_index": 0, "part": part("")})));
            for piece in pieces {
                events.push(&kind("text.delta"), place(json!({"summary_index": 0, "delta": piece})));
            }
            events.push(&kind("text.done"), place(json!({"summary_index": 0, "text": whole})));
            events.push(&kind("part.done"), place(json!({"summary_index": 0, "part": part(&whole)})));
        }
        ScriptBlock::Redacted { .. } => {}
        ScriptBlock::ToolCall { kind, pieces, name, .. } => {
            let (event, key) = match kind {
                ToolKind::Function => ("response.function_call_arguments", "arguments"),
                ToolKind::Custom => ("response.custom_tool_call_input", "input"),
            };
            for piece in pieces {
                events.push(&format!("{event}.delta"), place(json!({"delta": piece})));
            }
            events.push(&format!("{event}.done"), place(json!({"name": name, key: pieces.concat()})));
        }
    }
}

/// Returns the body of a response that is not streamed.
pub(in crate::stream) fn body(script: &ModelScript) -> Value {
    let blocks = script.blocks.iter().filter(|block| !matches!(block, ScriptBlock::Redacted { .. }));
    let items: Vec<Value> = blocks.enumerate().map(|(index, block)| item(index, block, ItemState::Done)).collect();
    let (status, details) = script.finish().map_or(("in_progress", Value::Null), status);
    let mut response = response(script, status, &items.into(), &counts(script.usage));
    response["incomplete_details"] = details;
    response
}

fn response(script: &ModelScript, status: &str, output: &Value, usage: &Value) -> Value {
    let ModelScript { id, model, .. } = script;
    json!({
        "id": id, "object": "response", "created_at": 0, "status": status, "error": null, "incomplete_details": null,
        "instructions": null, "metadata": {}, "model": model, "output": output, "parallel_tool_calls": true,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": usage,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemState {
    Added,
    Done,
}

fn item_id(index: usize, block: &ScriptBlock) -> String {
    let prefix = match block {
        ScriptBlock::Text { .. } => "msg",
        ScriptBlock::Thinking { .. } | ScriptBlock::Redacted { .. } => "rs",
        ScriptBlock::ToolCall { kind: ToolKind::Function, .. } => "fc",
        ScriptBlock::ToolCall { kind: ToolKind::Custom, .. } => "ctc",
    };
    format!("{prefix}_{index}")
}

fn item(index: usize, block: &ScriptBlock, state: ItemState) -> Value {
    let id = item_id(index, block);
    let done = state == ItemState::Done;
    let status = if done { "completed" } else { "in_progress" };
    match block {
        ScriptBlock::Text { pieces } => {
            let content = json!([{"type": "output_text", "text": pieces.concat(), "annotations": [], "logprobs": []}]);
            let content = if done { content } else { json!([]) };
            json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
        }
        ScriptBlock::Thinking { pieces, opaque } => {
            let summary = json!([{"type": "summary_text", "text": pieces.concat()}]);
            let mut item = json!({"id": id, "type": "reasoning", "summary": if done { summary } else { json!([]) }});
            if let (true, Some(opaque)) = (done, opaque) {
                item["encrypted_content"] = opaque.clone().into();
            }
            item
        }
        ScriptBlock::Redacted { .. } => Value::Null,
        ScriptBlock::ToolCall { id: call_id, name, kind, pieces, .. } => {
            let (kind, key) = match kind {
                ToolKind::Function => ("function_call", "arguments"),
                ToolKind::Custom => ("custom_tool_call", "input"),
            };
            let whole = if done { pieces.concat() } else { String::new() };
            json!({"id": id, "type": kind, "status": status, "call_id": call_id, "name": name, key: whole})
        }
    }
}

fn counts(usage: Usage) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cache_read.unwrap_or(0)},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning.unwrap_or(0)},
        "total_tokens": input.saturating_add(output),
    })
}

/// Returns the status with the details of an incomplete response.
fn status(finish: FinishReason) -> (&'static str, Value) {
    match finish {
        FinishReason::MaxTokens => ("incomplete", json!({"reason": "max_output_tokens"})),
        FinishReason::Refusal => ("incomplete", json!({"reason": "content_filter"})),
        FinishReason::Cancelled => ("cancelled", Value::Null),
        FinishReason::Failed => ("failed", Value::Null),
        _ => ("completed", Value::Null),
    }
}
