//! Validation of requests before they are sent, with repairs.

use sayso_wire::{ModelRequest, RequestHead, RequestProblemKind};

use crate::corpus::{example, examples};

fn anthropic(messages: &str) -> ModelRequest {
    let body = format!(r#"{{"model":"claude-x","max_tokens":10,"messages":[{messages}]}}"#);
    ModelRequest::new("r1", RequestHead::new("/v1/messages"), body.into_bytes())
}

fn kinds(request: &ModelRequest) -> Vec<RequestProblemKind> {
    request.problems().iter().map(|problem| problem.kind).collect()
}

const ASKED: &str = r#"{"role":"user","content":"go"}"#;
const CALLED: &str =
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"a"}}]}"#;
const ANSWERED: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"text"}]}"#;

#[test]
fn corpus_requests_are_valid() {
    // This example is invalid on purpose.
    for example in examples().into_iter().filter(|example| !example.name.contains("errors")) {
        let problems = example.request().problems();
        assert!(problems.is_empty(), "{}: {problems:?}", example.name);
    }
}

#[test]
fn received_problems_do_not_block_sending() {
    let mut request = example("openai-chat/errors-and-deprecated-functions").request();
    let found: std::collections::BTreeSet<RequestProblemKind> = kinds(&request).into_iter().collect();
    let expected =
        [RequestProblemKind::OrphanCall, RequestProblemKind::OrphanResult, RequestProblemKind::BrokenArguments];
    assert_eq!(found, expected.into());
    assert!(request.blocking_problems().is_empty());
    request.append("go on").unwrap();
    assert!(request.blocking_problems().is_empty(), "an edit elsewhere is not to blame");
}

#[test]
fn empty_request_is_rejected() {
    let mut request = anthropic(ASKED);
    assert_eq!(kinds(&request), []);
    let message = request.sections().find(|section| section.message_index == Some(0)).unwrap().id;
    request.delete(message).unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::Empty]);
    let repair = request.blocking_problems()[0].repairs[0];
    assert_eq!(repair.label(), "restore what it belongs to");
    request.repair(repair).unwrap();
    assert_eq!(kinds(&request), []);
    assert!(!request.is_dirty());
    request.edit_path("messages[0].content", "").unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::Empty]);
}

#[test]
fn call_without_result_is_an_orphan() {
    let mut request = anthropic(&[ASKED, CALLED, ANSWERED].join(","));
    assert_eq!(kinds(&request), []);
    let result = request.document().unwrap().resolve("messages[2]").unwrap();
    request.delete(result.into()).unwrap();
    let problems = request.blocking_problems();
    assert_eq!(problems[0].kind, RequestProblemKind::OrphanCall);
    assert!(problems[0].message.contains("c1"));
    request.repair(problems[0].repairs[0]).unwrap();
    assert_eq!(kinds(&request), [], "a repair mends what it is for");
    request.undo();
    request.undo();
    assert!(!request.is_dirty());
}

#[test]
fn result_without_call_is_an_orphan() {
    let mut request = anthropic(&[ASKED, CALLED, ANSWERED].join(","));
    let call = request.document().unwrap().resolve("messages[1]").unwrap();
    request.delete(call.into()).unwrap();
    let problems = request.blocking_problems();
    assert_eq!(problems[0].kind, RequestProblemKind::OrphanResult);
    request.repair(problems[0].repairs[0]).unwrap();
    assert_eq!(kinds(&request), []);
}

#[test]
fn remote_history_may_contain_the_call() {
    let body = r#"{"model":"gpt-5","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c9","output":"x"}]}"#;
    let request = ModelRequest::new("r", RequestHead::new("/v1/responses"), body.as_bytes());
    assert_eq!(kinds(&request), []);
    let body = body.replace(r#""previous_response_id":"resp_1","#, "");
    let request = ModelRequest::new("r", RequestHead::new("/v1/responses"), body.into_bytes());
    assert_eq!(kinds(&request), [RequestProblemKind::OrphanResult]);
}

#[test]
fn first_message_must_be_the_users() {
    let assistant = r#"{"role":"assistant","content":"hello"}"#;
    let mut request = anthropic(&[ASKED, assistant].join(","));
    let first = request.document().unwrap().resolve("messages[0]").unwrap();
    request.delete(first.into()).unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::RoleOrder]);
}

#[test]
fn result_must_follow_its_call() {
    let request = anthropic(&[ASKED, CALLED, ASKED, ANSWERED].join(","));
    assert_eq!(kinds(&request), [RequestProblemKind::RoleOrder]);
}

#[test]
fn fifth_cache_breakpoint_is_rejected() {
    let part = |number: usize| format!(r#"{{"type":"text","text":"{number}","cache_control":{{"type":"ephemeral"}}}}"#);
    let parts: Vec<String> = (0..5).map(part).collect();
    let mut request = anthropic(&format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(",")));
    assert_eq!(kinds(&request), [RequestProblemKind::TooManyBreakpoints]);
    assert!(request.blocking_problems().is_empty(), "what came so is for the server to judge");
    let repair = request.problems()[0].repairs[0];
    request.repair(repair).unwrap();
    assert_eq!(kinds(&request), []);
}

#[test]
fn invalid_json_arguments_are_rejected() {
    let mut request = example("openai-chat/opencode-subagent-parallel").request();
    let call = request.sections().find(|section| section.tool_call_index == Some(0)).unwrap().id;
    request.edit_section(call, "{\"path\": ").unwrap();
    let problems = request.blocking_problems();
    assert_eq!(problems[0].kind, RequestProblemKind::BrokenArguments);
    assert!(problems[0].message.contains("not JSON"), "{}", problems[0].message);
    request.reset();
    assert!(request.blocking_problems().is_empty());
}

#[test]
fn moved_attribution_block_is_repaired() {
    let mut request = example("anthropic/first-request").request();
    let patch = br#"[{"op":"add","path":"/system/0","value":{"type":"text","text":"first"}}]"#;
    request.apply_patch(patch).unwrap();
    let problems = request.blocking_problems();
    assert_eq!(problems[0].kind, RequestProblemKind::AttributionMoved);
    request.repair(problems[0].repairs[0]).unwrap();
    assert_eq!(kinds(&request), []);
}

#[test]
fn changed_response_form_is_rejected() {
    let mut request = example("openai-chat/opencode-subagent-parallel").request();
    request.edit_path("stream", "false").unwrap();
    let problems = request.blocking_problems();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, RequestProblemKind::ResponseFormChanged);
    assert!(problems[0].message.contains("waits for a stream"), "{}", problems[0].message);
    request.undo();
    assert_eq!(request.blocking_problems(), []);
}

#[test]
fn type_change_needs_explicit_json() {
    let mut request = example("openai-chat/opencode-subagent-parallel").request();
    let error = request.edit_path("stream", "\"no\"").unwrap_err();
    assert_eq!(error.to_string(), "`stream` is a boolean, but `\"no\"` is not");
    assert!(!request.is_dirty());
    let target = request.resolve("stream").unwrap();
    assert!(request.edit_json(target, "\"no\"").is_ok());
}

#[test]
fn empty_text_is_rejected_per_api() {
    let parts = r#"{"role":"user","content":[{"type":"text","text":"go"},{"type":"text","text":"on"}]}"#;
    let mut request = anthropic(parts);
    request.edit_path("messages[0].content[1].text", " \n").unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::EmptyText]);
    let repair = request.blocking_problems()[0].repairs[0];
    request.repair(repair).unwrap();
    assert_eq!(kinds(&request), []);
    assert!(request.to_bytes().ends_with(br#"[{"type":"text","text":"go"}]}]}"#));
    let mut appended = anthropic(ASKED);
    appended.append("").unwrap();
    assert_eq!(kinds(&appended), [RequestProblemKind::EmptyText]);
    // The last message of the model may be empty.
    assert_eq!(kinds(&anthropic(&[ASKED, r#"{"role":"assistant","content":""}"#].join(","))), []);
    // Other APIs accept it.
    let chat = r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"user","content":""}]}"#;
    assert_eq!(kinds(&ModelRequest::new("r", RequestHead::new("/v1/chat/completions"), chat.as_bytes())), []);
}

#[test]
fn unknown_role_and_empty_model_are_rejected() {
    let mut request = anthropic(&[ASKED, CALLED, ANSWERED].join(","));
    request.edit_path("messages[2].role", "usr").unwrap();
    let problems = request.blocking_problems();
    assert_eq!(problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [RequestProblemKind::UnknownRole]);
    assert!(problems[0].message.contains("`usr`") && problems[0].message.contains("`user`"), "{}", problems[0].message);
    request.undo();
    request.edit_path("messages[0].role", "usr").unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::UnknownRole]);
    request.undo();
    request.edit_path("model", "").unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::NoModel]);
    let body = r#"{"model":"gpt-5","input":[{"role":"user","content":"go"},{"type":"item_reference","id":"i"}]}"#;
    let mut request = ModelRequest::new("r", RequestHead::new("/v1/responses"), body.as_bytes());
    assert_eq!(kinds(&request), [], "what has no role is no message");
    request.edit_path("input[0].role", "me").unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::UnknownRole]);
}

#[test]
fn deleted_required_setting_is_rejected() {
    let mut request = anthropic(ASKED);
    let at = |request: &ModelRequest, path: &str| request.document().unwrap().resolve(path).unwrap();
    for name in ["model", "max_tokens"] {
        let target = at(&request, name);
        request.delete(target.into()).unwrap();
        let problems = request.blocking_problems();
        assert_eq!(
            problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(),
            [RequestProblemKind::Missing],
            "{name}"
        );
        request.repair(problems[0].repairs[0]).unwrap();
        assert!(!request.is_dirty());
    }
    let count = ModelRequest::new(
        "r",
        RequestHead::new("/v1/messages/count_tokens"),
        br#"{"model":"m","messages":[]}"#.to_vec(),
    );
    assert!(!kinds(&count).contains(&RequestProblemKind::Missing), "what never was there is for the server to judge");
    let body = r#"{"model":"m","max_tokens":1,"system":[{"type":"text","text":"be"},{"type":"text","text":"brief"}],"messages":[{"role":"user","content":"go"}]}"#;
    let mut request = ModelRequest::new("r", RequestHead::new("/v1/messages"), body.as_bytes());
    request.edit_path("system[1].text", "").unwrap();
    assert_eq!(kinds(&request), [RequestProblemKind::EmptyText]);
    let repair = request.blocking_problems()[0].repairs[0];
    request.repair(repair).unwrap();
    assert_eq!(kinds(&request), []);
}

#[test]
fn model_change_loses_all_breakpoints() {
    let part = r#"{"type":"text","text":"go","cache_control":{"type":"ephemeral"}}"#;
    let mut request = anthropic(&format!(r#"{{"role":"user","content":[{part}]}}"#));
    request.edit_path("model", "claude-y").unwrap();
    let found = request.edit_impact(&mut sayso_wire::tokens::TokenCounter::new(16)).unwrap();
    assert_eq!(found.breakpoints_lost.len(), 1);
    assert!(found.reread.count > 0);
}
