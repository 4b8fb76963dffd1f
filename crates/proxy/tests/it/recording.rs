//! Records, replays, and tool calls in responses.

use std::time::Duration;

use http_body_util::BodyExt as _;
use sayso_proxy::{Keep, ReplayError, ReplayForm, Settings};
use sayso_review::{RequestMode, Verdict};
use sayso_testkit::model::{Answer, ModelServer, Turn};
use sayso_wire::stream::Api;
use sayso_wire::stream::collect::{self, BlockContent, CallState, ResponseBlock};
use serde_json::{Value, json};

use crate::scene::{Scene, body, now, settings, text_path, turn};

const API: Api = Api::AnthropicMessages;

#[tokio::test(flavor = "multi_thread")]
async fn stalled_recorder_bounds_memory_without_blocking() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let (go, stopped) = std::sync::mpsc::channel::<()>();
    let (stops, stopping) = std::sync::mpsc::channel();
    let gate = scene.gate.clone();
    let stalled = std::thread::spawn(move || {
        gate.policy(None, |_| {
            stops.send(()).unwrap();
            let _ = stopped.recv();
        })
    });
    stopping.recv().unwrap();
    for number in 1..=10 {
        // Different bodies: a delta would need no budget.
        let large = number.to_string().repeat(8 << 20);
        let large = &large[..8 << 20];
        let request = scene.request_of(&format!("s{number}"), API, &turn(API, large));
        assert_eq!(scene.send(request).await.status(), 200);
    }
    drop(go);
    stalled.join().unwrap().unwrap();
    let bodies = [(); 10].iter().zip(1..).map(|((), number)| scene.interceptor.record(number).unwrap().received.body);
    let (kept, lost): (Vec<_>, Vec<_>) = bodies.partition(|body| !body.truncated);
    assert!(kept.len() <= 8 && kept.iter().all(|body| body.size > 8 << 20), "{kept:?}");
    assert!(kept.len() > 5 && lost.iter().all(|body| body.size == 0), "{lost:?}");
    // Afterwards requests are recorded again.
    assert_eq!(scene.send(scene.request(API, &turn(API, "hi"))).await.status(), 200);
    assert!(!scene.interceptor.record(11).unwrap().received.body.truncated);
}

#[tokio::test(flavor = "multi_thread")]
async fn growing_history_is_recorded_exactly() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    assert!(scene.interceptor.is_passthrough());
    let mut sent = Vec::new();
    let tools = json!([{"name": "read", "description": "Reads. ".repeat(20_000), "input_schema": {"type": "object"}}]);
    let mut messages = vec![json!({"role": "user", "content": "said first ".repeat(30_000)})];
    for turn in 0..40_usize {
        for message in [("assistant", format!("step {turn} ").repeat(turn * 40)), ("user", format!("go on {turn}"))] {
            messages.push(json!({"role": message.0, "content": message.1}));
        }
        if turn == 20 {
            // A compaction replaces the history.
            messages.drain(1..30);
        }
        // A request to another model, as for a title, with another order of members.
        let model = if turn % 7 == 3 { "small" } else { "large" };
        let request = json!({"model": model, "messages": messages, "system": "x", "tools": tools, "max_tokens": 9});
        assert_eq!(scene.send(scene.request(API, &request)).await.status(), 200);
        sent.push(request.to_string());
    }
    for (sent, number) in sent.iter().zip(1..) {
        let record = scene.interceptor.record(number).unwrap();
        let kept = scene.gate.read(|history| history.body(&record.received.body)).unwrap();
        assert!(kept == sent.as_bytes(), "request {number}");
        assert!(!record.received.body.truncated);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn record_has_usage_and_times_without_credentials() {
    for api in Api::ALL {
        for stream in [true, false] {
            let scene = Scene::new(settings(), ModelServer::start([Turn::says("hello")])).await;
            let mut request = turn(api, "hi");
            let path = match (api, stream) {
                (Api::Gemini, false) => "gemini/v1beta/models/gemini-2.5-pro:generateContent",
                _ => crate::scene::path(api),
            };
            if api != Api::Gemini {
                request["stream"] = Value::Bool(stream);
            }
            let mut sent = scene.request(api, &request);
            *sent.uri_mut() = scene.url(path).parse().unwrap();
            sent.headers_mut().insert("authorization", "Bearer sk-secret-2".parse().unwrap());
            let answer = body(scene.send(sent).await).await;
            let record = scene.interceptor.record(1).unwrap();
            let recorded = record.answer.clone().unwrap();
            let kept = |body| String::from_utf8(scene.gate.read(|history| history.body(body)).unwrap()).unwrap();
            assert_eq!(kept(&record.received.body), request.to_string());
            assert_eq!(kept(&recorded.body), answer, "{api:?} {stream}");
            assert_eq!(recorded.status, 200);
            assert!(recorded.usage.output.is_some(), "{api:?} {stream}");
            assert!(recorded.finish.is_some(), "{api:?} {stream}");
            assert!(recorded.total_ms >= recorded.first_byte_ms);
            assert!(record.received.model.is_some() && record.received.api.is_some());
            drop(record);
            let everything = scene.gate.read(|history| history.events(None, 0, 1_000)).unwrap();
            let everything = serde_json::to_string(&everything).unwrap();
            assert!(everything.contains("anthropic") || everything.contains("openai") || everything.contains("gemini"));
            assert!(!everything.contains("sk-secret"), "{everything}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keep_paused_records_only_held_requests() {
    let scene = Scene::new(Settings { keep: Keep::WhatPauses, ..settings() }, ModelServer::start([])).await;
    let _ = body(scene.send(scene.request(API, &turn(API, "hi"))).await).await;
    assert_eq!(scene.story(), [""; 0]);
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    assert_eq!(scene.story(), ["mode", "2 received", "2 paused", "2 resumed", "2 sent", "2 answered"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_compares_both_responses() {
    let scene = Scene::new(settings(), ModelServer::start([Turn::says("one\nsame"), Turn::says("two\nsame")])).await;
    scene.interceptor.set_mode(None, Some(RequestMode::InterceptAlways));
    let (id, sent) = scene.paused(scene.request(API, &turn(API, "hi"))).await;
    scene.set(id, text_path(API), "edited");
    scene.resume(id);
    let _ = body(sent.answer().await).await;
    let replayed = scene.proxy.replay(id, ReplayForm::AsSent).await.unwrap();
    assert_eq!((replayed.status, replayed.answer.as_str()), (200, "two\nsame\n"));
    assert_eq!(replayed.earlier.as_deref(), Some("one\nsame\n"));
    assert!(replayed.diff.contains("-one\n+two\n same\n"), "{}", replayed.diff);
    let received = scene.model.received();
    assert_eq!(received[0].raw, received[1].raw);
    assert_eq!(received[1].header("x-api-key"), Some("sk-secret-1"));
    let _ = scene.proxy.replay(id, ReplayForm::AsReceived).await.unwrap();
    assert_eq!(scene.model.received()[2].raw, turn(API, "hi").to_string().as_bytes());
    // After a restart the key is unknown.
    let scene = scene.again(settings()).await;
    let error = scene.proxy.replay(id, ReplayForm::AsSent).await.unwrap_err();
    assert!(matches!(error, ReplayError::NoCredentials(_)), "{error}");
    assert!(error.hint().unwrap().contains("key_variable"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_call_is_captured_before_its_end() {
    for api in Api::ALL {
        for stream in [true, false] {
            let call = Turn::calls("Write", json!({"file_path": "a.txt", "content": "new"}));
            let scene = Scene::new(settings(), ModelServer::start([call])).await;
            std::fs::write(scene.root.path().join("a.txt"), "old").unwrap();
            let mut request = turn(api, "hi");
            if api != Api::Gemini {
                request["stream"] = Value::Bool(stream);
            }
            let mut answer = scene.send(scene.request(api, &request)).await;
            let mut seen = Vec::new();
            while let Some(frame) = answer.frame().await {
                seen.extend_from_slice(frame.unwrap().data_ref().unwrap_or(&bytes::Bytes::new()));
                // Acts as soon as the call is complete, as an agent might.
                let whole = collect::from_body(api, &seen).is_ok();
                let read = collect::from_stream(api, &seen);
                let complete = |block: &ResponseBlock| {
                    matches!(block.content, BlockContent::ToolCall { state: CallState::Complete, .. })
                };
                if whole || read.blocks.iter().any(complete) {
                    std::fs::write(scene.root.path().join("a.txt"), "new").unwrap();
                }
            }
            let events = scene.gate.read(|history| history.events(None, 0, 1_000)).unwrap();
            let captured = events.iter().find_map(|recorded| match &recorded.body {
                sayso_review::EventBody::Known(sayso_review::Event::SnapshotCaptured(snapshot)) => {
                    Some(snapshot.clone())
                }
                _ => None,
            });
            let captured = captured.unwrap_or_else(|| panic!("{api:?} {stream}: nothing was kept"));
            let old = sayso_review::ContentHash::of(b"old");
            assert_eq!((captured.path.to_string().as_str(), captured.state.hash()), ("a.txt", Some(old)));
            assert_eq!(captured.session.as_deref(), Some("s1"));
        }
    }
}

fn verdict(preview: sayso_review::ContentHash, answer: sayso_review::Answer) -> Verdict {
    Verdict { preview, answer, by: sayso_review::Decider::PERSON, comments: Vec::new(), message: None }
}

/// A scene that holds calls of `Write`, and a sent request.
async fn held() -> (Scene, tokio::task::JoinHandle<String>) {
    let settings =
        Settings { hold_tools: vec!["Write".to_owned()], keep_alive: Duration::from_millis(5), ..settings() };
    let model = ModelServer::start([]);
    model.then(Answer::from(Turn::calls("Write", json!({"file_path": "a.txt", "content": "new"}))));
    let scene = Scene::new(settings, model).await;
    let (client, request) = (scene.client.clone(), scene.request(API, &turn(API, "hi")));
    let answer = tokio::spawn(async move { body(client.request(request).await.unwrap()).await });
    scene.until("a call waits", || !scene.gate.pending_changes().unwrap().is_empty()).await;
    (scene, answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn approved_tool_call_is_forwarded() {
    let (scene, answer) = held().await;
    let proposed = scene.gate.pending_change(1).unwrap();
    let verdict = verdict(proposed.hash(), sayso_review::Answer::Approve);
    scene.gate.decide(1, &verdict, None, now()).unwrap();
    let text = answer.await.unwrap();
    assert!(text.contains("message_stop") && !text.contains("error"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_tool_call_ends_response_with_reason() {
    let (scene, answer) = held().await;
    let proposed = scene.gate.pending_change(1).unwrap();
    let verdict = verdict(proposed.hash(), sayso_review::Answer::Deny { reason: Some("not that file".to_owned()) });
    scene.gate.decide(1, &verdict, None, now()).unwrap();
    let text = answer.await.unwrap();
    assert!(text.contains("not that file") && !text.contains("message_stop"), "{text}");
    assert!(!text.contains("content_block_stop\",\"index\":0") || text.find("error") > text.find("content_block_stop"));
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_tool_call_is_absent_from_replacement() {
    for size in [50, 10_000] {
        let model = ModelServer::start([]);
        let answer = || Answer::from(Turn::calls("Write", json!({"file_path": "a.txt", "content": "new"})));
        model.then(answer().in_chunks_of(size));
        let scene = Scene::new(Settings { hold_tools: vec!["*".to_owned()], ..settings() }, model).await;
        let mut request = turn(API, "hi");
        request["stream"] = false.into();
        let mut answer = scene.send(scene.request(API, &request)).await;
        scene.until("a call waits", || !scene.gate.pending_changes().unwrap().is_empty()).await;
        let deny = sayso_review::Answer::Deny { reason: Some("not that file".to_owned()) };
        let verdict = verdict(scene.gate.pending_change(1).unwrap().hash(), deny);
        scene.gate.decide(1, &verdict, None, now()).unwrap();
        let mut said = Vec::new();
        while let Some(frame) = answer.frame().await {
            said.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        let text = String::from_utf8(said).unwrap();
        assert!(text.contains("not that file") && !text.contains("tool_use"), "{text}");
        let recorded = scene.interceptor.record(1).unwrap().answer.unwrap();
        assert_eq!(recorded.problem.as_deref(), Some("a tool call was denied"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn held_tool_call_sends_keep_alives_between_events() {
    for size in [1, 7, 50, 10_000] {
        let settings =
            Settings { hold_tools: vec!["*".to_owned()], keep_alive: Duration::from_millis(2), ..settings() };
        let model = ModelServer::start([]);
        let answer = || Answer::from(Turn::calls("Write", json!({"file_path": "a.txt", "content": "new"})));
        model.then(answer().in_chunks_of(size));
        let scene = Scene::new(settings, model).await;
        let mut answer = scene.send(scene.request(API, &turn(API, "hi"))).await;
        let mut text = Vec::new();
        let ping = API.keep_alive();
        while !text.windows(ping.len()).any(|window| window == ping) {
            text.extend_from_slice(&answer.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        scene.until("a call waits", || !scene.gate.pending_changes().unwrap().is_empty()).await;
        let verdict = verdict(scene.gate.pending_change(1).unwrap().hash(), sayso_review::Answer::Approve);
        scene.gate.decide(1, &verdict, None, now()).unwrap();
        text.extend_from_slice(body(answer).await.as_bytes());
        let text = String::from_utf8(text).unwrap();
        let said = text.replace(std::str::from_utf8(ping).unwrap(), "");
        assert!(text.len() > said.len());
        let recorded = scene.interceptor.record(1).unwrap().answer.unwrap().body;
        let recorded = scene.gate.read(|history| history.body(&recorded)).unwrap();
        assert_eq!(said.as_bytes(), recorded, "between the signs is what the upstream said, in frames of {size}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_disconnect_withdraws_held_tool_call() {
    let (scene, answer) = held().await;
    answer.abort();
    scene.until("it was withdrawn", || scene.gate.pending_changes().unwrap().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replay_never_sends_credentials_to_another_server() {
    let scene = Scene::new(settings(), ModelServer::start([])).await;
    let other = ModelServer::start([]);
    let gateway = [("anthropic".to_owned(), other.url())].into();
    let theirs = scene.proxy.endpoints.open(None, gateway).unwrap();
    assert_eq!(scene.send(scene.request_of("ours", API, &turn(API, "ours"))).await.status(), 200);
    let mut request = scene.request_of("theirs", API, &turn(API, "theirs"));
    let uri = request.uri().to_string().replace(&scene.endpoint.capability, &theirs.capability);
    *request.uri_mut() = uri.parse().unwrap();
    request.headers_mut().insert("x-api-key", "sk-other".parse().unwrap());
    assert_eq!(scene.send(request).await.status(), 200);
    scene.interceptor.flush();
    for (request, said) in [(1, "ours"), (2, "theirs")] {
        scene.proxy.replay(request, ReplayForm::AsSent).await.unwrap();
        let (at, key) = if said == "ours" { (&scene.model, "sk-secret-1") } else { (&other, "sk-other") };
        let received = at.received();
        assert_eq!(received.len(), 2, "{said}");
        assert_eq!((received[1].raw.clone(), received[1].header("x-api-key")), (received[0].raw.clone(), Some(key)));
    }
    // For an unknown run, no server is guessed.
    scene.interceptor.end_session("ours");
    let error = scene.proxy.replay(1, ReplayForm::AsSent).await.unwrap_err();
    assert!(error.to_string().contains("names several"), "{error}");
    assert_eq!((scene.model.received().len(), other.received().len()), (2, 2));
}
