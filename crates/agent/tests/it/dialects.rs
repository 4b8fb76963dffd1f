//! Request bodies: byte-stable prefixes, cache breakpoints, thinking, ids, forks.

use sayso_agent::log::entries_from_request;
use sayso_agent::{AgentSession, Invoked, SessionIdentity, SharedHost, UserPrompt};
use sayso_scripted_model::{ModelServer, Turn};
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use super::scene::{Scene, name, settings};

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

#[tokio::test]
async fn prefixes_are_byte_stable_over_ten_turns() {
    for api in Api::ALL {
        let turns = (1..=9)
            .map(|line| {
                Turn::calls("Read", json!({"path": "a", "offset": line}))
                    .and_says("Reading.")
                    .after_thinking("hm", Some("sig"))
            })
            .chain([Turn::says("the end"), Turn::says("bye")]);
        let scene = Scene::new(
            settings(api, "CODE"),
            &[("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"), ("AGENTS.md", "Be brief.\n")],
            turns,
        );
        scene.complete("go").await;
        scene.host.advance_ms(86_400_000);
        scene.complete("thanks").await;
        let bodies: Vec<String> =
            scene.turns().iter().map(|request| String::from_utf8(request.raw.to_vec()).unwrap()).collect();
        assert_eq!(bodies.len(), 11);
        for pair in bodies.windows(2) {
            let plain = |body: &str| body.replace(MARK, "");
            let (before, after) = (plain(&pair[0]), plain(&pair[1]));
            let prefix = before.strip_suffix("]}").unwrap();
            assert!(after.starts_with(prefix), "{}:\n{before}\n{after}", name(api));
        }
    }
}

#[tokio::test]
async fn breakpoints_mark_tools_system_and_two_user_turns() {
    let turns =
        (1..=4).map(|line| Turn::calls("Read", json!({"path": "a", "offset": line}))).chain([Turn::says("end")]);
    let scene = Scene::new(settings(Api::AnthropicMessages, "ASK"), &[("a", "1\n2\n3\n4\n")], turns);
    scene.complete("go").await;
    for (index, request) in scene.turns().iter().enumerate() {
        let marked = |value: &Value| !value["cache_control"].is_null();
        assert!(marked(request.body["tools"].as_array().unwrap().last().unwrap()));
        assert!(marked(&request.body["system"][0]));
        let messages = request.body["messages"].as_array().unwrap();
        let places: Vec<usize> =
            (0..messages.len()).filter(|at| messages[*at]["content"].as_array().unwrap().iter().any(marked)).collect();
        let last = messages.len() - 1;
        assert_eq!(places, if index == 0 { vec![0] } else { vec![last - 2, last] });
        let text = String::from_utf8_lossy(&request.raw).into_owned();
        assert!(text.matches("cache_control").count() <= 4);
    }
}

#[tokio::test]
async fn thinking_returns_with_its_signature() {
    for (api, place) in [
        (Api::AnthropicMessages, "/messages/1/content/0/signature"),
        (Api::OpenAiResponses, "/input/1/encrypted_content"),
        (Api::Gemini, "/contents/1/parts/0/thoughtSignature"),
    ] {
        let scene = Scene::new(
            settings(api, "ASK"),
            &[("a", "1\n")],
            [Turn::calls("Read", json!({"path": "a"})).after_thinking("deep thought", Some("c2ln")), Turn::says("end")],
        );
        scene.complete("go").await;
        let body = scene.turns()[1].body.clone();
        assert_eq!(body.pointer(place), Some(&json!("c2ln")), "{}: {body}", name(api));
        assert!(body.to_string().contains("deep thought"));
    }
}

#[tokio::test]
async fn thinking_budget_is_asked_for() {
    for (api, place) in [
        (Api::AnthropicMessages, "/thinking/budget_tokens"),
        (Api::Gemini, "/generationConfig/thinkingConfig/thinkingBudget"),
    ] {
        let mut chosen = settings(api, "ASK");
        chosen.thinking_tokens = 2_048;
        let scene = Scene::new(chosen, &[], [Turn::says("hi")]);
        scene.complete("go").await;
        assert_eq!(scene.turns()[0].body.pointer(place), Some(&json!(2_048)), "{}", name(api));
    }
}

#[tokio::test]
async fn requests_have_no_problems_for_the_proxy() {
    for api in Api::ALL {
        let calls = Turn::calls("Read", json!({"path": "a"})).and_calls("List", json!({"path": "."}));
        let scene = Scene::new(settings(api, "CODE"), &[("a", "1\n")], [calls, Turn::says("end")]);
        scene.complete("go").await;
        for request in scene.host.sent.lock().unwrap().iter() {
            super::log_laws::check_request(api, &request.body);
        }
        let received = scene.turns();
        assert_eq!(received[0].header("x-session-id"), Some("s1"));
        assert_eq!(received[0].model(), super::scene::model_of(api));
    }
}

#[tokio::test]
async fn recorded_request_continues_in_a_fork() {
    for from in Api::ALL {
        let calls = Turn::calls("Read", json!({"path": "a"})).after_thinking("hm", Some("sig")).and_says("Reading.");
        let scene = Scene::new(settings(from, "ASK"), &[("a", "content\n")], [calls, Turn::says("it says content")]);
        scene.complete("what does a say?").await;
        let recorded = scene.turns().pop().unwrap();
        let entries = entries_from_request(&recorded.target, &recorded.raw).unwrap();
        for to in Api::ALL {
            let model = ModelServer::bind(([127, 0, 0, 1], 0).into(), [Turn::says("forked")]).unwrap();
            let host = std::sync::Arc::new(super::fake_host::FakeHost::new(model.address(), &[]));
            let shared: SharedHost = host.clone();
            let identity = SessionIdentity { session: "f".to_owned(), fork_of: Some(7), ..SessionIdentity::default() };
            let fork =
                AgentSession::fork(identity, settings(to, "ASK"), scene.catalog.clone(), shared, entries.clone())
                    .unwrap();
            assert_eq!(fork.title(), "what does a say?");
            let end = fork.invoke(UserPrompt::text("and now?")).await;
            assert!(matches!(end, Invoked::Finished { .. }), "{end:?}");
            let sent = host.sent.lock().unwrap();
            super::log_laws::check_request(to, &sent[0].body);
            let body = String::from_utf8_lossy(&sent[0].body);
            for part in ["what does a say?", "Reading.", "content", "and now?"] {
                assert!(body.contains(part), "{} → {}: no `{part}` in {body}", name(from), name(to));
            }
            // Signed thinking only returns to its own model.
            let has_thinking = from == to && from != Api::OpenAiChat;
            assert_eq!(body.contains("\"sig\""), has_thinking, "{} → {}: {body}", name(from), name(to));
        }
    }
}

#[tokio::test]
async fn foreign_call_ids_fit_each_dialect() {
    let long = "x".repeat(90);
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": "{\"path\":\"a\"}"}});
    let answer = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "1"});
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [call("functions.Read:0"), call(&long)]},
        answer("functions.Read:0"), answer(&long),
    ]});
    let entries = entries_from_request("/v1/chat/completions", body.to_string().as_bytes()).unwrap();
    for api in Api::ALL {
        let mut chosen = settings(api, "ASK");
        chosen.model = chosen.model.replace("gemini-2.5", "gemini-3");
        let scene = Scene::new(chosen.clone(), &[], [Turn::says("ok")]);
        let identity = SessionIdentity { session: "f".to_owned(), ..SessionIdentity::default() };
        let shared: SharedHost = scene.host.clone();
        let fork = AgentSession::fork(identity, chosen, scene.catalog.clone(), shared, entries.clone()).unwrap();
        fork.invoke(UserPrompt::text("and?")).await;
        let sent = scene.host.sent.lock().unwrap();
        super::log_laws::check_request(api, &sent[0].body);
        let text = String::from_utf8_lossy(&sent[0].body).into_owned();
        if api == Api::Gemini {
            // Gemini 3 rejects the calls of another model without this signature.
            assert_eq!(text.matches("skip_thought_signature_validator").count(), 1);
        } else {
            assert!(!text.contains("functions.Read:0") && !text.contains(&long), "{}: {text}", name(api));
        }
    }
}

#[test]
fn unreadable_request_is_refused() {
    let remote = json!({"model": "m", "previous_response_id": "resp_1", "input": "hi"}).to_string();
    let error = entries_from_request("/v1/responses", remote.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "the request refers to a conversation on the server, which is not part of it");
    assert!(entries_from_request("/v1/messages", b"not json").is_err());
    assert!(entries_from_request("/v1/other", b"{}").is_err());
}
