//! Explanations of cache misses on pairs of requests, as agents send them.

use sayso_wire::price::BilledTokens;
use sayso_wire::tokens::TokenCounter;
use sayso_wire::{
    CACHE_TTL_MS, CacheMiss, CacheMissCause, ModelRequest, PromptVersions, RequestHead, explain_cache_miss,
};
use serde_json::{Value, json};

fn request(path: &str, body: &Value) -> ModelRequest {
    ModelRequest::new("1", RequestHead::new(path), serde_json::to_vec(body).unwrap())
}

fn anthropic(body: &Value) -> ModelRequest {
    request("/v1/messages", body)
}

fn conversation() -> Value {
    json!({
        "model": "claude-sonnet-4-5",
        "system": [{"type": "text", "text": "You are careful.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Count the rows."}]},
            {"role": "assistant", "content": [{"type": "text", "text": "There are 12."}]},
            {"role": "user", "content": [{"type": "text", "text": "Again.", "cache_control": {"type": "ephemeral"}}]},
        ],
        "max_tokens": 100,
    })
}

/// The next request of the conversation: two messages more, and the cache breakpoint on the newest one.
fn next() -> Value {
    let mut body = conversation();
    body["messages"][2]["content"][0].as_object_mut().unwrap().remove("cache_control");
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "Still 12."}]}));
    messages.push(json!({"role": "user", "content": [
        {"type": "text", "text": "Thanks.", "cache_control": {"type": "ephemeral"}},
    ]}));
    body
}

fn explain(previous: &ModelRequest, current: &ModelRequest) -> Option<CacheMiss> {
    let versions = |request| PromptVersions { received: request, sent: request };
    explain_cache_miss(versions(previous), versions(current), None, 0, &mut TokenCounter::default())
}

#[track_caller]
fn check(edit: impl FnOnce(&mut Value), cause: CacheMissCause, path: &str) -> CacheMiss {
    let mut body = next();
    edit(&mut body);
    let miss = explain(&anthropic(&conversation()), &anthropic(&body)).expect("a miss");
    let difference = miss.difference.as_ref().expect("a difference");
    assert_eq!((miss.cause, difference.path.as_str()), (cause, path), "{miss:?}");
    miss
}

#[test]
fn extended_conversation_has_no_miss() {
    assert_eq!(explain(&anthropic(&conversation()), &anthropic(&next())), None);
}

#[test]
fn changed_model_is_expected_and_loses_everything() {
    let previous = anthropic(&conversation());
    let miss = check(|body| body["model"] = json!("claude-opus-4-5"), CacheMissCause::ModelChanged, "model");
    assert!(miss.cause.is_expected());
    let lost = miss.difference.unwrap().tokens_lost.count;
    assert!(lost > 20, "{lost}");
    assert!(lost <= previous.total_tokens(&mut TokenCounter::default()).count);
}

#[test]
fn added_tool_is_expected() {
    let tool = json!({"name": "Write", "description": "Writes a file.", "input_schema": {"type": "object"}});
    check(|body| body["tools"].as_array_mut().unwrap().push(tool), CacheMissCause::ToolsChanged, "tools[1].name");
}

#[test]
fn date_in_the_system_prompt_is_an_unstable_prefix() {
    let with = |date: &str| {
        let mut body = conversation();
        body["system"][0]["text"] = json!(format!("You are careful. Today is {date}."));
        anthropic(&body)
    };
    let miss = explain(&with("2026-11-17"), &with("2026-11-18")).expect("a miss");
    let difference = miss.difference.unwrap();
    assert_eq!((miss.cause, difference.path.as_str()), (CacheMissCause::UnstablePrefix, "system[0].text"));
    assert!(difference.old.contains("2026-11-17") && difference.new.contains("2026-11-18"), "{difference:?}");
}

#[test]
fn rewritten_earlier_message_is_an_unstable_prefix() {
    check(
        |body| body["messages"][0]["content"][0]["text"] = json!("Count the lines."),
        CacheMissCause::UnstablePrefix,
        "messages[0].content[0]",
    );
}

#[test]
fn shorter_history_is_a_compaction() {
    let summary = json!([{"role": "user", "content": [{"type": "text", "text": "Summary: 12 rows."}]}]);
    let miss = check(|body| body["messages"] = summary, CacheMissCause::Compaction, "messages[0].content[0]");
    assert!(miss.cause.is_expected());
}

#[test]
fn edit_of_a_person_is_told_apart_from_the_agent() {
    let mut edited = next();
    edited["messages"][0]["content"][0]["text"] = json!("Count the columns.");
    let (previous, received, sent) = (anthropic(&conversation()), anthropic(&next()), anthropic(&edited));
    let miss = explain_cache_miss(
        PromptVersions { received: &previous, sent: &previous },
        PromptVersions { received: &received, sent: &sent },
        None,
        0,
        &mut TokenCounter::default(),
    );
    assert_eq!(miss.map(|miss| miss.cause), Some(CacheMissCause::Edited));
}

#[test]
fn same_prefix_without_cached_tokens_expired_after_five_minutes() {
    let (previous, current) = (anthropic(&conversation()), anthropic(&next()));
    let versions = |request| PromptVersions { received: request, sent: request };
    let usage = |cache_read| BilledTokens { input: 5_000 - cache_read, cache_read, ..BilledTokens::default() };
    for (cache_read, idle_ms, cause) in [
        (0, CACHE_TTL_MS, Some(CacheMissCause::Expired)),
        (0, 1_000, Some(CacheMissCause::Unexplained)),
        (4_000, CACHE_TTL_MS, None),
    ] {
        let usage = usage(cache_read);
        let counter = &mut TokenCounter::default();
        let miss = explain_cache_miss(versions(&previous), versions(&current), Some(&usage), idle_ms, counter);
        assert_eq!(miss.map(|miss| miss.cause), cause, "{cache_read} {idle_ms}");
    }
}

#[test]
fn every_dialect_finds_the_first_difference() {
    let cases = [
        (
            "/v1/chat/completions",
            json!({"model": "gpt-4.1", "messages": [
                {"role": "system", "content": "Careful."}, {"role": "user", "content": "Hello"},
            ]}),
            "messages[0].content",
            "/messages/0/content",
        ),
        (
            "/v1/responses",
            json!({"model": "gpt-5", "instructions": "Careful.", "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            ]}),
            "instructions",
            "/instructions",
        ),
        (
            "/v1beta/models/gemini-2.5-pro:generateContent",
            json!({"systemInstruction": {"parts": [{"text": "Careful."}]}, "contents": [
                {"role": "user", "parts": [{"text": "Hello"}]},
            ]}),
            "systemInstruction.parts[0]",
            "/systemInstruction/parts/0/text",
        ),
    ];
    for (path, body, expected, pointer) in cases {
        let mut changed = body.clone();
        *changed.pointer_mut(pointer).unwrap() = json!("Careful, on Tuesday.");
        let miss = explain(&request(path, &body), &request(path, &changed)).expect(path);
        assert_eq!(miss.cause, CacheMissCause::UnstablePrefix, "{path}");
        assert_eq!(miss.difference.unwrap().path, expected);
        assert_eq!(explain(&request(path, &body), &request(path, &body)), None, "{path}");
    }
}

#[test]
fn history_on_the_server_is_not_compared() {
    let first = json!({"model": "gpt-5", "input": [{"type": "message", "role": "user", "content": "One"}]});
    let second = json!({"model": "gpt-5", "previous_response_id": "resp_1",
        "input": [{"type": "message", "role": "user", "content": "Two"}]});
    assert_eq!(explain(&request("/v1/responses", &first), &request("/v1/responses", &second)), None);
}
