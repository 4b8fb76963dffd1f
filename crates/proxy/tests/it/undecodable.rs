//! Undecodable requests and responses: blocked while a person wants to inspect them.

use std::io::Write as _;

use http_body_util::{BodyExt as _, Full};
use sayso_proxy::Settings;
use sayso_review::{RequestEnd, RequestMode, Verdict};
use sayso_testkit::model::{Answer, ModelServer};
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use crate::scene::{Scene, body, now, settings, turn};

/// The part of a response that an agent receives while all tool calls are held.
async fn received_by_agent(api: Api, stream: bool, answer: Answer) -> (Scene, String) {
    let model = ModelServer::start([]);
    model.then(answer);
    let scene = Scene::new(Settings { hold_tools: vec!["*".to_owned()], ..settings() }, model).await;
    let mut request = turn(api, "hi");
    let mut path = crate::scene::path(api);
    if api == Api::Gemini {
        // Without `alt=sse`, Gemini streams a JSON array.
        path = "gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent";
    } else {
        request["stream"] = stream.into();
    }
    let mut request = scene.request(api, &request);
    *request.uri_mut() = scene.url(path).parse().unwrap();
    let answer = scene.send(request).await;
    let mut reading = Box::pin(answer.into_body().collect());
    let said = loop {
        tokio::select! {
            said = &mut reading => break said,
            () = scene.until("a call waits", || !scene.gate.pending_changes().unwrap().is_empty()) => {
                let deny = sayso_review::Answer::Deny { reason: Some("not that file".to_owned()) };
                let preview = scene.gate.pending_change(1).unwrap().hash();
                let verdict =
                    Verdict { preview, answer: deny, by: sayso_review::Decider::PERSON, comments: Vec::new(), message: None };
                scene.gate.decide(1, &verdict, None, now()).unwrap();
            }
        }
    };
    // A broken connection is a rejection, too.
    let said = said.map(|said| String::from_utf8_lossy(&said.to_bytes()).into_owned()).unwrap_or_default();
    (scene, said)
}

const CALL: &str = r#"{"name": "Write", "arguments": "{\"file_path\": \"a.txt\"}"}"#;

fn json_answer(text: impl Into<Vec<u8>>) -> Answer {
    Answer::status(200, text).header("content-type", "application/json")
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_call_is_held_in_every_format() {
    let chat = |choices: &str| format!(r#"{{"id": "x", "model": "m", "choices": [{choices}]}}"#);
    let said = r#"{"index": 0, "message": {"content": "hm"}, "finish_reason": "stop"}"#;
    let legacy = format!(r#"{{"index": 0, "message": {{"function_call": {CALL}}}, "finish_reason": "function_call"}}"#);
    let second = format!(
        r#"{said}, {{"index": 1, "message": {{"tool_calls": [{{"id": "c", "function": {CALL}}}]}}, "finish_reason": "tool_calls"}}"#
    );
    let part = r#"{"functionCall": {"name": "Write", "args": {"file_path": "a.txt"}}}"#;
    let candidate = format!(r#"{{"content": {{"parts": [{part}]}}, "finishReason": "STOP"}}"#);
    let array = format!(
        r#"[{{"candidates": [{{"content": {{"parts": [{{"text": "hm"}}]}}}}]}}, {{"candidates": [{candidate}]}}]"#
    );
    let other = format!(r#"{{"candidates": [{{"content": {{"parts": [{{"text": "hm"}}]}}}}, {candidate}]}}"#);
    let delta = |choice: u32, delta: &str, finish: &str| {
        format!("data: {}\n\n", chat(&format!(r#"{{"index": {choice}, "delta": {delta}, "finish_reason": {finish}}}"#)))
    };
    let legacy_stream = [
        delta(0, &format!(r#"{{"function_call": {CALL}}}"#), "null"),
        delta(0, "{}", r#""function_call""#),
        "data: [DONE]\n\n".to_owned(),
    ];
    let second_stream = [
        delta(0, r#"{"content": "hm"}"#, "null"),
        delta(1, &format!(r#"{{"tool_calls": [{{"index": 0, "id": "c", "function": {CALL}}}]}}"#), "null"),
        delta(0, "{}", r#""stop""#),
        delta(1, "{}", r#""tool_calls""#),
        "data: [DONE]\n\n".to_owned(),
    ];
    for (name, api, stream, answer) in [
        ("legacy", Api::OpenAiChat, false, json_answer(chat(&legacy))),
        ("legacy, streamed", Api::OpenAiChat, true, Answer::stream(legacy_stream)),
        ("in another choice", Api::OpenAiChat, false, json_answer(chat(&second))),
        ("in another choice, streamed", Api::OpenAiChat, true, Answer::stream(second_stream)),
        ("in an array", Api::Gemini, true, json_answer(array)),
        ("in another candidate", Api::Gemini, true, json_answer(other)),
    ] {
        let (scene, said) = received_by_agent(api, stream, answer).await;
        assert!(said.is_empty() || said.contains("not that file"), "{name}: {said}");
        assert!(!said.contains(r#"finish_reason": "tool_calls"#) && !said.contains("[DONE]"), "{name}: {said}");
        let recorded = scene.interceptor.record(1).unwrap().answer.unwrap();
        assert_eq!(recorded.problem.as_deref(), Some("a tool call was denied"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_response_is_blocked_while_holding_tools() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(CALL.as_bytes()).unwrap();
    let mut gzip = gzip.finish().unwrap();
    gzip.iter_mut().skip(12).for_each(|byte| *byte ^= 0x55);
    let broken_event = "data: {\"choices\": [{\"delta\": {\"tool_calls\": [\n\n";
    for (name, stream, answer) in [
        ("an unknown encoding", false, json_answer(CALL).header("content-encoding", "rot13")),
        ("a broken one", false, json_answer(gzip).header("content-encoding", "gzip")),
        ("broken JSON", false, json_answer(r#"{"choices": [{"message": {"tool_calls": ["#)),
        ("another form", false, json_answer(format!(r#"{{"result": {{"tool_calls": [{CALL}]}}}}"#))),
        ("a broken event", true, Answer::stream([broken_event, "data: [DONE]\n\n"])),
    ] {
        let (scene, said) = received_by_agent(Api::OpenAiChat, stream, answer).await;
        assert!(!said.contains("Write") && !said.contains("[DONE]"), "{name}: {said}");
        assert!(said.is_empty() || said.contains("sayso cannot read this answer"), "{name}: {said}");
        let recorded = scene.interceptor.record(1).unwrap().answer.unwrap();
        assert!(recorded.problem.unwrap().starts_with("it was not forwarded: "), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_error_response_is_forwarded() {
    for text in [r#"{"input_tokens": 12}"#, "no JSON", ""] {
        let (_, said) = received_by_agent(Api::AnthropicMessages, false, json_answer(text)).await;
        assert_eq!(said, text);
    }
}

/// A request with a broken body.
fn unreadable(scene: &Scene, session: &str) -> http::Request<Full<bytes::Bytes>> {
    let mut request = scene.request_of(session, Api::AnthropicMessages, &json!({}));
    request.headers_mut().insert("content-encoding", "rot13".parse().unwrap());
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_request_rejection_is_recorded() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    scene.interceptor.set_mode(Some("s1"), Some(RequestMode::InterceptAlways));
    let answer = scene.send(unreadable(&scene, "s1")).await;
    assert_eq!(answer.status(), 400);
    let text = body(answer).await;
    let said: Value = serde_json::from_str(&text).unwrap();
    assert!(said["error"]["message"].as_str().unwrap().contains("content-encoding `rot13`"), "{said}");
    assert!(text.contains("sayso request mode normal"), "{text}");
    assert!(matches!(scene.end(1), Some(RequestEnd::Denied { .. })));
    assert_eq!(scene.model.received().len(), 0);
    // Another session is not affected.
    let _ = scene.send(unreadable(&scene, "s2")).await;
    assert_eq!(scene.model.received().len(), 1, "the upstream reports the problem");
    assert!(scene.interceptor.record(2).unwrap().answer.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn undecodable_request_remedy_matches_cause() {
    let rule = sayso_proxy::PauseRule { name: "all".to_owned(), ..Default::default() };
    let scene = Scene::new(Settings { rules: vec![rule], ..settings() }, ModelServer::start([])).await;
    let text = body(scene.send(unreadable(&scene, "s1")).await).await;
    assert!(text.contains("remove the rules that pause from [request]"), "{text}");
}
