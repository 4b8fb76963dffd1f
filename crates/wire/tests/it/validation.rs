//! What would make a request invalid is said before it is sent: what, where, and what mends it.

use sayso_wire::{Head, ModelRequest, ProblemKind};

use crate::corpus::{example, examples};

fn anthropic(messages: &str) -> ModelRequest {
    let body = format!(r#"{{"model":"claude-x","max_tokens":10,"messages":[{messages}]}}"#);
    ModelRequest::new("r1", Head::new("/v1/messages"), body.into_bytes())
}

fn kinds(request: &ModelRequest) -> Vec<ProblemKind> {
    request.problems().iter().map(|problem| problem.kind).collect()
}

const ASKED: &str = r#"{"role":"user","content":"go"}"#;
const CALLED: &str =
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"a"}}]}"#;
const ANSWERED: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"text"}]}"#;

#[test]
fn what_agents_send_is_valid() {
    // One is there to be wrong.
    for example in examples().into_iter().filter(|example| !example.name.contains("errors")) {
        let problems = example.request().problems();
        assert!(problems.is_empty(), "{}: {problems:?}", example.name);
    }
}

#[test]
fn what_came_wrong_is_said_and_still_sent() {
    let mut request = example("openai-chat/errors-and-deprecated-functions").request();
    let found: std::collections::BTreeSet<ProblemKind> = kinds(&request).into_iter().collect();
    let expected = [ProblemKind::OrphanCall, ProblemKind::OrphanResult, ProblemKind::BrokenArguments];
    assert_eq!(found, expected.into());
    assert!(request.blocking().is_empty());
    request.append("go on").unwrap();
    assert!(request.blocking().is_empty(), "an edit elsewhere is not to blame");
}

#[test]
fn an_empty_request_is_refused() {
    let mut request = anthropic(ASKED);
    assert_eq!(kinds(&request), []);
    let message = request.sections().find(|section| section.message_index == Some(0)).unwrap().id;
    request.delete(message).unwrap();
    assert_eq!(kinds(&request), [ProblemKind::Empty]);
    let repair = request.blocking()[0].repairs[0];
    assert_eq!(repair.name(), "restore what it belongs to");
    request.repair(repair).unwrap();
    assert_eq!(kinds(&request), []);
    assert!(!request.is_dirty());
    request.edit_path("messages[0].content", "").unwrap();
    assert_eq!(kinds(&request), [ProblemKind::Empty]);
}

#[test]
fn a_call_without_a_result_is_an_orphan() {
    let mut request = anthropic(&[ASKED, CALLED, ANSWERED].join(","));
    assert_eq!(kinds(&request), []);
    let result = request.document().unwrap().at("messages[2]").unwrap();
    request.delete(result.into()).unwrap();
    let problems = request.blocking();
    assert_eq!(problems[0].kind, ProblemKind::OrphanCall);
    assert!(problems[0].message.contains("c1"));
    request.repair(problems[0].repairs[0]).unwrap();
    assert_eq!(kinds(&request), [], "a repair mends what it is for");
    request.undo();
    request.undo();
    assert!(!request.is_dirty());
}

#[test]
fn a_result_without_a_call_is_an_orphan() {
    let mut request = anthropic(&[ASKED, CALLED, ANSWERED].join(","));
    let call = request.document().unwrap().at("messages[1]").unwrap();
    request.delete(call.into()).unwrap();
    let problems = request.blocking();
    assert_eq!(problems[0].kind, ProblemKind::OrphanResult);
    request.repair(problems[0].repairs[0]).unwrap();
    assert_eq!(kinds(&request), []);
}

#[test]
fn what_the_server_keeps_may_hold_the_call() {
    let body = r#"{"model":"gpt-5","previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c9","output":"x"}]}"#;
    let request = ModelRequest::new("r", Head::new("/v1/responses"), body.as_bytes());
    assert_eq!(kinds(&request), []);
    let body = body.replace(r#""previous_response_id":"resp_1","#, "");
    let request = ModelRequest::new("r", Head::new("/v1/responses"), body.into_bytes());
    assert_eq!(kinds(&request), [ProblemKind::OrphanResult]);
}

#[test]
fn the_first_to_speak_is_the_user() {
    let assistant = r#"{"role":"assistant","content":"hello"}"#;
    let mut request = anthropic(&[ASKED, assistant].join(","));
    let first = request.document().unwrap().at("messages[0]").unwrap();
    request.delete(first.into()).unwrap();
    assert_eq!(kinds(&request), [ProblemKind::RoleOrder]);
}

#[test]
fn a_result_comes_right_after_its_call() {
    let request = anthropic(&[ASKED, CALLED, ASKED, ANSWERED].join(","));
    assert_eq!(kinds(&request), [ProblemKind::RoleOrder]);
}

#[test]
fn a_fifth_cache_breakpoint_is_one_too_many() {
    let part = |number: usize| format!(r#"{{"type":"text","text":"{number}","cache_control":{{"type":"ephemeral"}}}}"#);
    let parts: Vec<String> = (0..5).map(part).collect();
    let mut request = anthropic(&format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(",")));
    assert_eq!(kinds(&request), [ProblemKind::TooManyBreakpoints]);
    assert!(request.blocking().is_empty(), "what came so is for the server to judge");
    let repair = request.problems()[0].repairs[0];
    request.repair(repair).unwrap();
    assert_eq!(kinds(&request), []);
}

#[test]
fn arguments_that_are_no_json_are_refused() {
    let mut request = example("openai-chat/opencode-subagent-parallel").request();
    let call = request.sections().find(|section| section.tool_call_index == Some(0)).unwrap().id;
    request.edit_section(call, "{\"path\": ").unwrap();
    let problems = request.blocking();
    assert_eq!(problems[0].kind, ProblemKind::BrokenArguments);
    assert!(problems[0].message.contains("not JSON"), "{}", problems[0].message);
    request.reset();
    assert!(request.blocking().is_empty());
}

#[test]
fn an_attribution_block_that_moved_is_moved_back() {
    let mut request = example("anthropic/first-request").request();
    let patch = br#"[{"op":"add","path":"/system/0","value":{"type":"text","text":"first"}}]"#;
    request.apply_patch(patch).unwrap();
    let problems = request.blocking();
    assert_eq!(problems[0].kind, ProblemKind::AttributionMoved);
    request.repair(problems[0].repairs[0]).unwrap();
    assert_eq!(kinds(&request), []);
}

#[test]
fn a_client_gets_the_form_of_answer_that_it_waits_for() {
    let mut request = example("openai-chat/opencode-subagent-parallel").request();
    request.edit_path("stream", "false").unwrap();
    let problems = request.blocking();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::OtherAnswer);
    assert!(problems[0].message.contains("waits for a stream"), "{}", problems[0].message);
    request.undo();
    assert_eq!(request.blocking(), []);
}

#[test]
fn a_value_is_not_replaced_by_one_of_another_kind_unless_that_is_said() {
    let mut request = example("openai-chat/opencode-subagent-parallel").request();
    let error = request.edit_path("stream", "\"no\"").unwrap_err();
    assert_eq!(error.to_string(), "`stream` is a boolean, and `\"no\"` is none");
    assert!(!request.is_dirty());
    let target = request.at("stream").unwrap();
    assert!(request.edit_json(target, "\"no\"").is_ok());
}

#[test]
fn a_text_that_says_nothing_is_refused_where_the_api_does() {
    let parts = r#"{"role":"user","content":[{"type":"text","text":"go"},{"type":"text","text":"on"}]}"#;
    let mut request = anthropic(parts);
    request.edit_path("messages[0].content[1].text", " \n").unwrap();
    assert_eq!(kinds(&request), [ProblemKind::EmptyText]);
    let repair = request.blocking()[0].repairs[0];
    request.repair(repair).unwrap();
    assert_eq!(kinds(&request), []);
    assert!(request.to_bytes().ends_with(br#"[{"type":"text","text":"go"}]}]}"#));
    let mut appended = anthropic(ASKED);
    appended.append("").unwrap();
    assert_eq!(kinds(&appended), [ProblemKind::EmptyText]);
    // The model's own last message may be begun with nothing.
    assert_eq!(kinds(&anthropic(&[ASKED, r#"{"role":"assistant","content":""}"#].join(","))), []);
    // Others do not mind.
    let chat = r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"user","content":""}]}"#;
    assert_eq!(kinds(&ModelRequest::new("r", Head::new("/v1/chat/completions"), chat.as_bytes())), []);
}

#[test]
fn a_role_that_the_api_does_not_know_and_a_model_without_a_name_are_refused() {
    let mut request = anthropic(&[ASKED, CALLED, ANSWERED].join(","));
    request.edit_path("messages[2].role", "usr").unwrap();
    let problems = request.blocking();
    assert_eq!(problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::UnknownRole]);
    assert!(problems[0].message.contains("`usr`") && problems[0].message.contains("`user`"), "{}", problems[0].message);
    request.undo();
    request.edit_path("messages[0].role", "usr").unwrap();
    assert_eq!(kinds(&request), [ProblemKind::UnknownRole]);
    request.undo();
    request.edit_path("model", "").unwrap();
    assert_eq!(kinds(&request), [ProblemKind::NoModel]);
    let body = r#"{"model":"gpt-5","input":[{"role":"user","content":"go"},{"type":"item_reference","id":"i"}]}"#;
    let mut request = ModelRequest::new("r", Head::new("/v1/responses"), body.as_bytes());
    assert_eq!(kinds(&request), [], "what has no role is no message");
    request.edit_path("input[0].role", "me").unwrap();
    assert_eq!(kinds(&request), [ProblemKind::UnknownRole]);
}

#[test]
fn what_the_api_does_not_do_without_is_not_left_out() {
    let mut request = anthropic(ASKED);
    let at = |request: &ModelRequest, path: &str| request.document().unwrap().at(path).unwrap();
    for name in ["model", "max_tokens"] {
        let target = at(&request, name);
        request.delete(target.into()).unwrap();
        let problems = request.blocking();
        assert_eq!(problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::Missing], "{name}");
        request.repair(problems[0].repairs[0]).unwrap();
        assert!(!request.is_dirty());
    }
    let count =
        ModelRequest::new("r", Head::new("/v1/messages/count_tokens"), br#"{"model":"m","messages":[]}"#.to_vec());
    assert!(!kinds(&count).contains(&ProblemKind::Missing), "what never was there is for the server to judge");
    let body = r#"{"model":"m","max_tokens":1,"system":[{"type":"text","text":"be"},{"type":"text","text":"brief"}],"messages":[{"role":"user","content":"go"}]}"#;
    let mut request = ModelRequest::new("r", Head::new("/v1/messages"), body.as_bytes());
    request.edit_path("system[1].text", "").unwrap();
    assert_eq!(kinds(&request), [ProblemKind::EmptyText]);
    let repair = request.blocking()[0].repairs[0];
    request.repair(repair).unwrap();
    assert_eq!(kinds(&request), []);
}

#[test]
fn another_model_has_kept_nothing() {
    let part = r#"{"type":"text","text":"go","cache_control":{"type":"ephemeral"}}"#;
    let mut request = anthropic(&format!(r#"{{"role":"user","content":[{part}]}}"#));
    request.edit_path("model", "claude-y").unwrap();
    let found = request.consequences(&mut sayso_wire::tokens::TokenCounter::new(16)).unwrap();
    assert_eq!(found.breakpoints_lost.len(), 1);
    assert!(found.reread.count > 0);
}
