//! Regressions found by an independent review.

use sayso_wire::tokens::TokenCounter;
use sayso_wire::{EditError, ModelRequest, NodeType, Overrides, RequestHead, RequestProblemKind, Scope, ShrinkLimits};
use serde_json::{Value, json};

use crate::corpus::example;

fn anthropic(body: &Value) -> ModelRequest {
    ModelRequest::new("r1", RequestHead::new("/v1/messages"), body.to_string().into_bytes())
}

fn gemini(body: &Value) -> ModelRequest {
    ModelRequest::new("r1", RequestHead::new("/v1beta/models/m:generateContent"), body.to_string().into_bytes())
}

fn chat(body: &Value) -> ModelRequest {
    ModelRequest::new("r1", RequestHead::new("/v1/chat/completions"), body.to_string().into_bytes())
}

fn sent(request: &ModelRequest) -> Value {
    serde_json::from_slice(&request.to_bytes()).unwrap()
}

fn kinds(request: &ModelRequest) -> Vec<RequestProblemKind> {
    request.problems().iter().map(|problem| problem.kind).collect()
}

#[test]
fn inner_edit_is_in_diff_and_saved() {
    let body = json!({
        "contents": [{ "role": "user", "parts": [{ "text": "x" }] }],
        "generationConfig": { "temperature": 1, "topP": 0.5 },
        "tools": [{ "functionDeclarations": [{ "name": "f", "parameters": { "type": "object" } }] }],
    });
    let mut request = gemini(&body);
    request.edit_path("generationConfig.temperature", "0.25").unwrap();
    request.edit_path("tools[0].functionDeclarations[0].parameters.type", "string").unwrap();
    request.edit_path("contents[0].role", "model").unwrap();
    let mut paths: Vec<String> = request.diff().into_iter().map(|difference| difference.path).collect();
    paths.sort();
    let expected =
        ["contents[0].role", "generationConfig.temperature", "tools[0].functionDeclarations[0].parameters.type"];
    assert_eq!(paths, expected);
    let mut overrides = Overrides::default();
    assert_eq!(overrides.capture(&request, Scope::Session, 1), 3);
    let mut next = gemini(&body);
    let outcome = overrides.apply(&mut next);
    assert_eq!((outcome.applied.len(), outcome.drifted.len()), (3, 0), "{outcome:?}");
    assert_eq!(sent(&next), sent(&request));
    let mut other = body.clone();
    other["generationConfig"]["temperature"] = json!(2);
    let mut drifted = gemini(&other);
    assert_eq!(overrides.apply(&mut drifted).drifted.len(), 1);
    assert_eq!(sent(&drifted)["generationConfig"]["temperature"], 2);
}

#[test]
fn replaced_container_is_in_diff() {
    let mut request =
        anthropic(&json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "old" }] }] }));
    request.edit_path("messages[0].content", r#"[{"type":"text","text":"new"}]"#).unwrap();
    let differences = request.diff();
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert!(differences[0].old.contains("old") && differences[0].new.contains("new"));
}

#[test]
fn original_replaces_inner_edits() {
    let body = json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }] });
    let mut request = anthropic(&body);
    let came = request.document().unwrap().resolve("messages[0].content").unwrap();
    let original = String::from_utf8(request.document().unwrap().original_raw(came).to_vec()).unwrap();
    request.edit_path("messages[0].content[0].text", "edited").unwrap();
    let second = request.resolve("messages[0].content[1]").unwrap();
    request.delete(second.into()).unwrap();
    request.edit_path("messages[0].content", &original).unwrap();
    assert_eq!(sent(&request), body);
    request.undo();
    assert_eq!(sent(&request)["messages"][0]["content"], json!([{ "type": "text", "text": "edited" }]));
}

#[test]
fn gemini_calls_are_paired_by_turn() {
    let call = json!({ "role": "model", "parts": [{ "functionCall": { "name": "read", "args": {} } }] });
    let answer = json!({ "role": "user", "parts": [{ "functionResponse": { "name": "read", "response": {} } }] });
    let ask = json!({ "role": "user", "parts": [{ "text": "go" }] });
    let mut request = gemini(&json!({ "contents": [ask, call, answer, call, answer] }));
    assert_eq!(kinds(&request), []);
    let first = request.resolve("contents[2]").unwrap();
    request.delete(first.into()).unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::OrphanCall]);
    let twice = json!({ "role": "model", "parts": [call["parts"][0], call["parts"][0]] });
    let request = gemini(&json!({ "contents": [ask, twice, answer] }));
    assert_eq!(kinds(&request), [RequestProblemKind::OrphanCall], "one of two parallel calls has no answer");
}

#[test]
fn container_of_read_only_value_is_read_only() {
    let mut request = example("anthropic/thinking-and-parallel-tools").request();
    assert!(matches!(request.edit_path("system", "[]"), Err(EditError::ReadOnly { .. })));
    assert!(matches!(request.edit_path("messages[1].content", "[]"), Err(EditError::ReadOnly { .. })));
    for patch in
        [r#"[{"op":"remove","path":"/system/0"}]"#, r#"[{"op":"replace","path":"/system/0/text","value":"x"}]"#]
    {
        assert!(matches!(request.apply_patch(patch.as_bytes()), Err(EditError::Patch { .. })), "{patch}");
    }
    assert!(!request.is_dirty());
}

#[test]
fn impact_begins_at_edit() {
    let mut counter = TokenCounter::default();
    let body = json!({ "model": "claude-x", "messages": [
        { "role": "user", "content": [
            { "type": "text", "text": "A", "cache_control": { "type": "ephemeral" } },
            { "type": "text", "text": "B" },
        ] },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "t", "signature": "s" },
            { "type": "tool_use", "id": "c", "name": "Read", "input": { "file_path": "a" } },
        ] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c", "content": "x" }] },
    ] });
    let mut request = anthropic(&body);
    request.edit_path("messages[0].content[1].text", "b").unwrap();
    let costs = request.edit_impact(&mut counter).unwrap();
    assert!(costs.breakpoints_lost.is_empty(), "what is kept ends before the edit");
    assert_eq!(costs.sealed_after.len(), 1);
    request.reset();
    request.edit_path("messages[1].content[1].input.file_path", "b").unwrap();
    let costs = request.edit_impact(&mut counter).unwrap();
    assert!(costs.sealed_after.is_empty(), "the thinking comes before the edit");
}

#[test]
fn snake_case_instructions_are_read_first() {
    let mut counter = TokenCounter::default();
    let mut request = example("gemini/snake-case-and-string-instruction").request();
    request.edit_path("system_instruction.parts.text", "Be brief.").unwrap();
    assert!(request.edit_impact(&mut counter).unwrap().reread.count > 0);
}

#[test]
fn occurrence_counts_sections_of_same_type() {
    let body = json!({ "system": [{ "type": "text", "text": "x" }], "messages": [
        { "role": "user", "content": [{ "type": "text", "text": "x" }, { "type": "text", "text": "x" }] },
    ] });
    let mut request = anthropic(&body);
    request.edit_path("messages[0].content[0].text", "edited").unwrap();
    let mut overrides = Overrides::default();
    overrides.capture(&request, Scope::Session, 1);
    let mut next = anthropic(&body);
    overrides.apply(&mut next);
    assert_eq!(sent(&next), sent(&request));
    // After the history was shortened, an equal text is another section.
    let mut request = anthropic(&body);
    request.edit_path("messages[0].content[1].text", "edited").unwrap();
    let mut overrides = Overrides::default();
    overrides.capture(&request, Scope::Global, 1);
    let mut shorter =
        anthropic(&json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "x" }] }] }));
    let outcome = overrides.apply(&mut shorter);
    assert_eq!((outcome.applied.len(), outcome.drifted.len()), (0, 1));
    assert!(!shorter.is_dirty());
}

#[test]
fn saved_edit_keeps_value_type() {
    let body =
        json!({ "tool_choice": "auto", "reasoning_effort": null, "messages": [{ "role": "user", "content": "x" }] });
    let mut request = chat(&body);
    let choice = request.resolve("tool_choice").unwrap();
    request.edit_json(choice, r#"{"type":"none"}"#).unwrap();
    let effort = request.resolve("reasoning_effort").unwrap();
    request.edit_json(effort, r#""high""#).unwrap();
    let mut overrides = Overrides::default();
    assert_eq!(overrides.capture(&request, Scope::Session, 1), 2);
    let mut next = chat(&body);
    let outcome = overrides.apply(&mut next);
    assert_eq!(outcome.drifted, []);
    assert_eq!(sent(&next), sent(&request));
}

#[test]
fn saved_deletion_ignores_moved_breakpoint() {
    let said = |text: &str, kept: bool| {
        let mut part = json!({ "type": "text", "text": text });
        if kept {
            part["cache_control"] = json!({ "type": "ephemeral" });
        }
        json!({ "role": "user", "content": [part] })
    };
    let mut request = anthropic(&json!({ "messages": [said("one", false), said("two", true)] }));
    let last = request.resolve("messages[1]").unwrap();
    request.delete(last.into()).unwrap();
    let mut overrides = Overrides::default();
    overrides.capture(&request, Scope::Session, 1);
    let mut next = anthropic(&json!({ "messages": [said("one", false), said("two", false), said("three", true)] }));
    assert_eq!(overrides.apply(&mut next).applied.len(), 1);
    assert_eq!(sent(&next)["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn shrink_applies_to_selected_part() {
    let (first, second) = ("1\n".repeat(2_500), "2\n".repeat(4_500));
    let result = json!({ "type": "tool_result", "tool_use_id": "c", "content": [
        { "type": "text", "text": first }, { "type": "text", "text": second },
    ] });
    let call = json!({ "type": "tool_use", "id": "c", "name": "Read", "input": {} });
    let messages = json!([{ "role": "user", "content": "go" }, { "role": "assistant", "content": [call] }, { "role": "user", "content": [result] }]);
    let mut request = anthropic(&json!({ "messages": messages }));
    let part = request.resolve("messages[2].content[0].content[0]").unwrap();
    request.shrink(part.into(), ShrinkLimits { head: 100, tail: 100 }).unwrap();
    let content = &sent(&request)["messages"][2]["content"][0]["content"];
    assert!(content[0]["text"].as_str().unwrap().len() < 400);
    assert_eq!(content[1]["text"], second.as_str());
}

#[test]
fn unknown_target_is_rejected() {
    let mut request = chat(&json!({ "messages": [{ "role": "user", "content": "x" }] }));
    for name in ["7:0", "0:999", "0:4294967295"] {
        let target: sayso_wire::json::Target = name.parse().unwrap();
        assert!(matches!(request.edit(target, "x"), Err(EditError::NoSuchSection(_))), "{name}");
        assert!(matches!(request.edit_json(target, "1"), Err(EditError::NoSuchSection(_))), "{name}");
        assert!(matches!(request.delete(target.into()), Err(EditError::NoSuchSection(_))), "{name}");
        assert!(
            matches!(request.repair(sayso_wire::Repair::Delete(target)), Err(EditError::NoSuchSection(_))),
            "{name}"
        );
        assert_eq!(request.tokens(&mut TokenCounter::default(), target).count, 0);
        assert!(!request.is_edited(target));
    }
}

#[test]
fn object_setting_is_edited_by_value() {
    let mut request = chat(&json!({ "messages": [] }));
    assert!(matches!(request.edit_path("top_p", r#"1,"x":2"#), Err(EditError::NotJson { .. })));
    let mut list = ModelRequest::new("r", RequestHead::new("/v1/messages"), &b"[1,2]"[..]);
    assert!(list.edit_path("x", "1").is_err());
    assert!(!list.is_dirty() && !request.is_dirty());
    let mut real = chat(&json!({ "messages": [], "requestOptions": { "temperature": 1 }, "temperature": 1 }));
    real.edit_path("requestOptions.temperature", "2").unwrap();
    assert_eq!((&sent(&real)["requestOptions"]["temperature"], &sent(&real)["temperature"]), (&json!(2), &json!(1)));
}

#[test]
fn call_indexes_skip_deleted_calls() {
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "" } });
    let mut request =
        chat(&json!({ "messages": [{ "role": "assistant", "content": "x", "tool_calls": [call("a"), call("b")] }] }));
    assert!(!kinds(&request).contains(&RequestProblemKind::BrokenArguments), "no arguments at all are none");
    let first = request.resolve("messages[0].tool_calls[0]").unwrap();
    request.delete(first.into()).unwrap();
    let second = request.sections().find(|section| section.node == NodeType::ToolCall && !section.deleted).unwrap();
    assert_eq!(second.tool_call_index, Some(0));
    assert_eq!(request.raw_path(second), "messages[0].tool_calls[0]");
}

#[test]
fn message_between_call_and_result_is_rejected() {
    let call = json!({ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let asked = json!({ "role": "user", "content": "go" });
    let called = json!({ "role": "assistant", "content": "x", "tool_calls": [call] });
    let answered = json!({ "role": "tool", "tool_call_id": "a", "content": "y" });
    let request = chat(&json!({ "messages": [asked, called, answered, asked] }));
    assert_eq!(kinds(&request), []);
    let request = chat(&json!({ "messages": [asked, called, asked, answered] }));
    assert_eq!(kinds(&request), [RequestProblemKind::RoleOrder]);
}

#[test]
fn interleaved_call_is_not_complete_early() {
    let chunk = |index: u32, id: &str, name: &str, piece: &str| {
        let id = if id.is_empty() { json!({}) } else { json!({ "id": id, "type": "function" }) };
        let mut call = json!({ "index": index, "function": { "name": name, "arguments": piece } });
        call.as_object_mut().unwrap().extend(id.as_object().unwrap().clone());
        format!("data: {}\n\n", json!({ "id": "x", "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }))
    };
    let end = format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({ "id": "x", "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] })
    );
    let stream = [chunk(0, "a", "f", "{\"x\":"), chunk(1, "b", "g", "{}"), chunk(0, "", "", "1}"), end].concat();
    let answer = sayso_wire::stream::collect::from_stream(sayso_wire::stream::Api::OpenAiChat, stream.as_bytes());
    let text = format!("{answer:?}");
    assert!(text.contains(r#"{\"x\":1}"#), "{text}");
    assert!(!text.contains("LateArguments"), "{text}");
}

#[test]
fn repair_leaves_no_empty_list() {
    let call = json!({ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let mut request = chat(&json!({ "messages": [
        { "role": "user", "content": "go" }, { "role": "assistant", "content": "x", "tool_calls": [call] },
    ] }));
    let repair = request.problems()[0].repairs[0];
    request.repair(repair).unwrap();
    assert_eq!(sent(&request)["messages"][1], json!({ "role": "assistant", "content": "x" }));
}

#[test]
fn nested_edits_are_limited() {
    let deep = format!("{}null{}", "[".repeat(600), "]".repeat(600));
    let mut request = chat(&json!({ "messages": [], "x": null }));
    request.edit_path("x", &deep).unwrap();
    let inner = format!("x{}", "[0]".repeat(600));
    assert!(matches!(request.edit_path(&inner, &deep), Err(EditError::NotJson { .. })));
}

#[test]
fn part_is_restored_with_deleted_section() {
    let mut request = chat(&json!({ "messages": [{ "role": "user", "content": "x" }] }));
    let message = request.resolve("messages[0]").unwrap();
    let part = request.resolve("messages[0].content").unwrap();
    request.delete(message.into()).unwrap();
    assert!(matches!(request.restore(part.into()), Err(EditError::ReadOnly { .. })));
    request.restore(message.into()).unwrap();
    assert!(!request.is_dirty());
}

#[test]
fn diff_shows_call_name_and_arguments() {
    let schema = json!({ "type": "object" });
    let mut request = anthropic(&json!({
        "model": "m", "max_tokens": 9,
        "tools": [{ "name": "Read", "description": "reads", "input_schema": schema }],
        "messages": [{ "role": "user", "content": "go" }, { "role": "assistant", "content": [
            { "type": "text", "text": "so" }, { "type": "tool_use", "id": "t1", "name": "Read", "input": { "path": "a" } },
        ] }],
    }));
    let edits = [
        ("messages[1].content[1].input.path", "harmless"),
        ("messages[1].content[1].name", "Bash"),
        ("messages[1].content[1].id", "t2"),
        ("tools[0].description", "runs"),
        ("tools[0].name", "Bash"),
    ];
    for (path, value) in edits {
        request.edit_path(path, value).unwrap();
    }
    let unified = request.unified_diff(0);
    for (_, value) in edits {
        let told = unified.lines().filter(|line| line.starts_with('+') && line.contains(value)).count();
        assert!(told > 0, "{value} is not in:\n{unified}");
    }
    // Edits within a section are not repeated with the whole section.
    assert_eq!(request.diff().len(), edits.len(), "{unified}");
}
