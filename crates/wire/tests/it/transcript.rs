//! Conversations as blocks, from requests and responses of the four APIs.

use std::fmt::Write as _;

use sayso_wire::stream::Api;
use sayso_wire::stream::collect::from_body;
use sayso_wire::{ModelRequest, RequestHead, Transcript, TranscriptBlock, TranscriptBlockKind};
use serde_json::{Value, json};

use crate::corpus::example;

/// Draws blocks as one line each.
fn draw(blocks: &[TranscriptBlock]) -> String {
    let mut text = String::new();
    for block in blocks {
        let kind = match &block.kind {
            TranscriptBlockKind::ToolCall(tool) => format!("call {}", tool.name.as_deref().unwrap_or("?")),
            TranscriptBlockKind::ToolResult(tool) => format!("result {}", tool.name.as_deref().unwrap_or("?")),
            other => format!("{other:?}").to_lowercase(),
        };
        let shown: String = block.text.replace('\n', "⏎").chars().take(48).collect();
        writeln!(text, "{kind}: {shown}").unwrap();
    }
    text
}

#[test]
fn corpus_request_is_read_in_order() {
    let anthropic = example("anthropic/thinking-and-parallel-tools").request();
    let blocks = Transcript::default().push_request(&anthropic);
    assert_eq!(
        draw(&blocks),
        "context: <system-reminder>⏎The files below belong to this\n\
         prompt: The build is broken on my branch. Find out why a\n\
         assistanttext: I will look at the error and at the sources toge\n\
         call Bash: {\"command\":\"cargo build 2>&1 | tail -n 30\",\"desc\n\
         call Read: {\"file_path\":\"/work/frequencies/src/lib.rs\"}\n\
         call Grep: {\"pattern\":\"fn total\",\"path\":\"/work/frequencies/\n\
         result Bash:    Compiling frequencies v0.1.0 (/work/frequenci\n\
         result Read:      1\tuse std::collections::BTreeMap;⏎     2\t⏎ \n\
         result Grep: src/report.rs:20:pub fn total(counts: &BTreeMap<\n\
         call Edit: {\"file_path\":\"/work/frequencies/src/report.rs\",\"\n\
         result Edit: The file /work/frequencies/src/report.rs has bee\n",
    );
}

fn ask(path: &str, body: &Value) -> ModelRequest {
    ModelRequest::new("1", RequestHead::new(path), serde_json::to_vec(body).unwrap())
}

/// One turn per API: the first request, its response, and the next request, which repeats both.
fn turns() -> Vec<(Api, &'static str, Value, Value, Value)> {
    vec![
        (
            Api::AnthropicMessages,
            "/v1/messages",
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Go"}]}),
            json!({"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
                "content": [{"type": "text", "text": "Reading."},
                    {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}],
                "usage": {"input_tokens": 1, "output_tokens": 1}}),
            json!({"model": "m", "max_tokens": 9, "messages": [
                {"role": "user", "content": "Go"},
                {"role": "assistant", "content": [{"type": "text", "text": "Reading."},
                    {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "12"},
                    {"type": "text", "text": "Go"}]}]}),
        ),
        (
            Api::OpenAiChat,
            "/v1/chat/completions",
            json!({"model": "m", "messages": [{"role": "user", "content": "Go"}]}),
            json!({"id": "1", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
                "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "Reading.",
                    "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "Read", "arguments": "{\"path\":\"a\"}"}}]}}]}),
            json!({"model": "m", "messages": [
                {"role": "user", "content": "Go"},
                {"role": "assistant", "content": "Reading.",
                    "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "Read", "arguments": "{\"path\":\"a\"}"}}]},
                {"role": "tool", "tool_call_id": "t1", "content": "12"},
                {"role": "user", "content": "Go"}]}),
        ),
        (
            Api::OpenAiResponses,
            "/v1/responses",
            json!({"model": "m", "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]}]}),
            json!({"id": "1", "object": "response", "status": "completed", "model": "m", "output": [
                {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Reading.", "annotations": []}]},
                {"type": "function_call", "id": "f1", "call_id": "t1", "name": "Read", "arguments": "{\"path\":\"a\"}"}]}),
            json!({"model": "m", "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Reading."}]},
                {"type": "function_call", "call_id": "t1", "name": "Read", "arguments": "{\"path\":\"a\"}"},
                {"type": "function_call_output", "call_id": "t1", "output": "12"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]}]}),
        ),
        (
            Api::Gemini,
            "/v1beta/models/gemini-2.5-pro:generateContent",
            json!({"contents": [{"role": "user", "parts": [{"text": "Go"}]}]}),
            json!({"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
                {"text": "Reading."}, {"functionCall": {"name": "Read", "args": {"path": "a"}}}]}}]}),
            json!({"contents": [
                {"role": "user", "parts": [{"text": "Go"}]},
                {"role": "model", "parts": [{"text": "Reading."}, {"functionCall": {"name": "Read", "args": {"path": "a"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "Read", "response": {"output": "12"}}}]},
                {"role": "user", "parts": [{"text": "Go"}]}]}),
        ),
    ]
}

#[test]
fn blocks_of_every_api_are_emitted_once() {
    for (api, path, first, response, second) in turns() {
        let response = from_body(api, &serde_json::to_vec(&response).unwrap()).unwrap();
        let (first, second) = (ask(path, &first), ask(path, &second));
        let mut transcript = Transcript::default();
        let mut blocks = transcript.push_request(&first);
        // A retry of the same request adds nothing.
        assert_eq!(transcript.push_request(&first), []);
        blocks.extend(transcript.push_response(&response));
        blocks.extend(transcript.push_request(&second));
        assert_eq!(transcript.push_request(&second), []);
        let drawn = draw(&blocks);
        let lines: Vec<&str> = drawn.lines().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(lines, ["prompt", "assistanttext", "call Read", "result Read", "prompt"], "{api:?}\n{drawn}");
        // Without the recorded response, the next request tells the same.
        let mut transcript = Transcript::default();
        let mut missed = transcript.push_request(&first);
        missed.extend(transcript.push_request(&second));
        assert_eq!(draw(&missed).lines().count(), 5, "{api:?}\n{}", draw(&missed));
    }
}

#[test]
fn compaction_is_marked_and_repeats_no_surviving_block() {
    let request = |messages: Value| ask("/v1/messages", &json!({"model": "m", "max_tokens": 9, "messages": messages}));
    let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
    let assistant = |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
    let mut transcript = Transcript::default();
    transcript.push_request(&request(json!([user("One"), assistant("1"), user("Two"), assistant("2"), user("Three")])));
    let blocks = transcript.push_request(&request(json!([user("Summary: counted to two."), user("Three")])));
    assert_eq!(draw(&blocks), "compaction: \nprompt: Summary: counted to two.\n");
    let blocks = transcript.push_request(&request(json!([
        user("Summary: counted to two."),
        user("Three"),
        assistant("3"),
        user("Two"),
    ])));
    assert_eq!(draw(&blocks), "assistanttext: 3\nprompt: Two\n");
}

#[test]
fn history_on_the_server_is_not_a_compaction() {
    let mut transcript = Transcript::default();
    let request = |body: Value| ask("/v1/responses", &body);
    let message =
        |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    transcript.push_request(&request(json!({"model": "m", "input": [message("One"), message("Two")]})));
    let next = json!({"model": "m", "previous_response_id": "r1", "input": [message("One")]});
    assert_eq!(draw(&transcript.push_request(&request(next))), "prompt: One\n");
}

/// A request of Anthropic's API with these messages.
fn messages(messages: &Value) -> ModelRequest {
    ask("/v1/messages", &json!({"model": "m", "max_tokens": 9, "messages": messages}))
}

#[test]
fn context_around_prompt_is_separate_block() {
    let text = "<current_datetime>2026-11-19</current_datetime>\n\nCount the “rows”.\n<system-reminder>\nBe brief.\n</system-reminder>\n\n";
    let request = messages(&json!([{"role": "user", "content": text}]));
    assert_eq!(
        draw(&Transcript::default().push_request(&request)),
        "context: <current_datetime>2026-11-19</current_datetime>\n\
         context: <system-reminder>⏎Be brief.⏎</system-reminder>\n\
         prompt: Count the “rows”.\n",
    );
    let only = messages(&json!([{"role": "user", "content": "<system-reminder>Be brief.</system-reminder>\n\n\t"}]));
    let blocks = Transcript::default().push_request(&only);
    assert_eq!(blocks.iter().map(|block| &block.kind).collect::<Vec<_>>(), [&TranscriptBlockKind::Context]);
    // Code in a prompt is no context.
    let code = "Why does <file>a</file> fail?";
    let blocks = Transcript::default().push_request(&messages(&json!([{"role": "user", "content": code}])));
    assert_eq!(draw(&blocks), format!("prompt: {code}\n"));
}

#[test]
fn forked_subagent_repeats_no_block_of_its_parent() {
    let call = json!({"type": "tool_use", "id": "t1", "name": "Spawn", "input": {"task": "search"}});
    let history = [
        json!({"role": "user", "content": "Go"}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "I delegate."}, call]}),
    ];
    let mut parent = Transcript::default();
    parent.push_request(&messages(&json!(history)));
    let result =
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "aborted"}]});
    let task = json!({"role": "user", "content": "Search."});
    let forked = messages(&json!([history[0], history[1], result, task]));
    let mut subagent = parent.of_subagent(&forked);
    assert_eq!(draw(&subagent.push_request(&forked)), "prompt: Search.\n");
    // A subagent with a history of its own may repeat a prompt of its parent.
    let fresh = messages(&json!([{"role": "user", "content": "Go"}]));
    assert_eq!(draw(&parent.of_subagent(&fresh).push_request(&fresh)), "prompt: Go\n");
}
