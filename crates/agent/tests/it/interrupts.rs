//! Interrupts, kills and resumes.

use sayso_agent::{
    AgentSession, ClearQueue, Entry, FinishedReason, Invoked, LiveEventKind, LogEntry, SessionState, UserPrompt,
};
use sayso_scripted_model::{Answer, Delivery, Latch, Turn};
use sayso_wire::stream::Api;
use serde_json::json;
use tokio::task::JoinHandle;

use super::fake_host::Decision;
use super::scene::{SESSION, Scene, name, settings};

fn start(session: &AgentSession, text: &str) -> JoinHandle<Invoked> {
    let (session, prompt) = (session.clone(), UserPrompt::text(text));
    tokio::spawn(async move { session.invoke(prompt).await })
}

fn is_interrupted(end: &Invoked) -> bool {
    matches!(end, Invoked::Finished { reason: FinishedReason::Interrupted, .. })
}

#[tokio::test]
async fn interrupt_in_text_keeps_the_partial_text() {
    for api in Api::ALL {
        let latch = Latch::closed();
        let long = "word ".repeat(60);
        let scene = Scene::new(
            settings(api, "ASK"),
            &[],
            [Answer::from(Turn::says(&long)).paced_by(&latch), Turn::says("after").into()],
        );
        let running = start(&scene.session, "write");
        latch.release(6);
        let is_delta = |event: &LiveEventKind| matches!(event, LiveEventKind::TextDelta { .. });
        scene.host.wait_until(|host| host.events_of(SESSION).iter().any(is_delta)).await;
        assert!(scene.session.interrupt(ClearQueue::No));
        let end = running.await.unwrap();
        assert!(is_interrupted(&end), "{}: {end:?}", name(api));
        assert_eq!(scene.session.state(), SessionState::Idle);
        let limit = std::time::Duration::from_secs(20);
        scene.model.wait_async(|all| all[0].delivery() == Delivery::ClientGone, limit).await.unwrap();
        scene.complete("go on").await;
        let body = scene.turns()[1].body.to_string();
        assert!(body.contains("word") && body.contains("go on"), "{}: {body}", name(api));
    }
}

#[tokio::test]
async fn interrupt_in_a_tool_call_answers_it_cancelled() {
    for api in Api::ALL {
        let scene = Scene::new(
            settings(api, "CODE"),
            &[],
            [
                Turn::calls("Exec", json!({"command": "one"})).and_calls("Exec", json!({"command": "two"})),
                Turn::says("after"),
            ],
        );
        scene.host.decisions.lock().unwrap().push_back(Decision::Wait);
        let running = start(&scene.session, "run");
        scene.host.wait_until(|host| !host.commands.lock().unwrap().is_empty()).await;
        assert!(scene.session.interrupt(ClearQueue::No));
        assert!(is_interrupted(&running.await.unwrap()), "{}", name(api));
        scene.complete("go on").await;
        let results = scene.last_results();
        assert_eq!(results.len(), 2, "{}", name(api));
        assert!(results.iter().all(|result| result.contains("cancelled")), "{results:?}");
        assert_eq!(*scene.host.commands.lock().unwrap(), ["one"]);
    }
}

#[tokio::test]
async fn interrupt_in_half_a_call_drops_it() {
    for api in [Api::AnthropicMessages, Api::OpenAiChat, Api::OpenAiResponses] {
        let latch = Latch::closed();
        let call = Turn::calls("Exec", json!({"command": "echo ".repeat(40)}));
        let scene =
            Scene::new(settings(api, "CODE"), &[], [Answer::from(call).paced_by(&latch), Turn::says("after").into()]);
        let running = start(&scene.session, "run");
        latch.release(6);
        let is_streaming =
            |event: &LiveEventKind| serde_json::to_value(event).is_ok_and(|event| event["state"] == "streaming");
        scene.host.wait_until(|host| host.events_of(SESSION).iter().any(is_streaming)).await;
        scene.session.interrupt(ClearQueue::No);
        assert!(is_interrupted(&running.await.unwrap()));
        scene.complete("go on").await;
        assert!(scene.last_results().is_empty(), "{}", name(api));
    }
}

#[tokio::test]
async fn interrupt_at_any_event_leaves_a_valid_log() {
    for api in Api::ALL {
        for events in 0..16 {
            let latch = Latch::closed();
            let turn = Turn::calls("Read", json!({"path": "a"}))
                .and_calls("List", json!({"path": "."}))
                .and_says("some text in two pieces")
                .after_thinking("a thought", Some("sig"));
            let scene = Scene::new(
                settings(api, "ASK"),
                &[("a", "1\n")],
                [Answer::from(turn).paced_by(&latch), Turn::says("after").into(), Turn::says("after").into()],
            );
            let running = start(&scene.session, "run");
            latch.release(events);
            let limit = std::time::Duration::from_secs(20);
            let has_arrived = |all: &[sayso_scripted_model::Received]| {
                all.first().is_some_and(|first| first.chunks() >= events || first.delivery() == Delivery::Complete)
            };
            scene.model.wait_async(has_arrived, limit).await.unwrap();
            scene.session.interrupt(ClearQueue::No);
            running.await.unwrap();
            let text = scene.complete("go on").await;
            assert_eq!(text, "after", "{} after {events}", name(api));
            for request in scene.host.sent.lock().unwrap().iter() {
                super::log_laws::check_request(api, &request.body);
            }
        }
    }
}

#[tokio::test]
async fn dropped_invocation_leaves_the_session_usable() {
    let scene = Scene::new(
        settings(Api::OpenAiChat, "CODE"),
        &[],
        [Turn::calls("Exec", json!({"command": "one"})), Turn::says("after")],
    );
    scene.host.decisions.lock().unwrap().push_back(Decision::Wait);
    let running = start(&scene.session, "run");
    scene.host.wait_until(|host| !host.commands.lock().unwrap().is_empty()).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(scene.session.state(), SessionState::Idle);
    assert_eq!(scene.complete("go on").await, "after");
    assert_eq!(scene.last_results(), ["cancelled"]);
}

#[tokio::test]
async fn interrupt_reaches_the_subagent() {
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "CODE"),
        &[],
        [
            Turn::calls("Delegate", json!({"description": "x", "prompt": "run", "tools": ["Exec"]})),
            Turn::calls("Exec", json!({"command": "nested"})),
            Turn::says("after"),
        ],
    );
    scene.host.decisions.lock().unwrap().extend([Decision::Approve, Decision::Wait]);
    let running = start(&scene.session, "delegate");
    scene.host.wait_until(|host| !host.commands.lock().unwrap().is_empty()).await;
    scene.session.interrupt(ClearQueue::Yes);
    assert!(is_interrupted(&running.await.unwrap()));
    let ended = |entry: &LogEntry| matches!(entry.known(), Some(Entry::InvocationEnded { reason, .. }) if *reason == Some(FinishedReason::Interrupted));
    assert!(ended(scene.host.log("s1.1").last().unwrap()));
    assert!(ended(scene.log().last().unwrap()));
    scene.complete("go on").await;
    assert_eq!(scene.last_results(), ["cancelled"]);
}

#[tokio::test]
async fn interrupt_runs_queued_prompts_next() {
    let scene = Scene::new(
        settings(Api::OpenAiChat, "CODE"),
        &[],
        [Turn::calls("Exec", json!({"command": "one"})), Turn::says("the other")],
    );
    scene.host.decisions.lock().unwrap().push_back(Decision::Wait);
    let running = start(&scene.session, "run");
    scene.host.wait_until(|host| !host.commands.lock().unwrap().is_empty()).await;
    assert_eq!(scene.say("do the other").await, Invoked::Queued);
    scene.session.interrupt(ClearQueue::No);
    let Invoked::Finished { reason: FinishedReason::Completed, text, .. } = running.await.unwrap() else {
        panic!("it did not complete")
    };
    assert_eq!(text, "the other");
}

#[tokio::test]
async fn resume_from_every_prefix_reaches_the_same_end() {
    for api in Api::ALL {
        let turns = || {
            [
                Turn::calls("Read", json!({"path": "a"})).after_thinking("hm", Some("sig")),
                Turn::calls("Exec", json!({"command": "one"})).and_calls("Exec", json!({"command": "two"})),
                Turn::calls("TodoWrite", json!({"todos": [{"text": "t"}]})),
                Turn::says("the end"),
            ]
        };
        let scene = Scene::new(settings(api, "CODE"), &[("a", "1\n")], turns());
        scene.complete("go").await;
        let log = scene.log();
        for length in 1..log.len() {
            let model =
                sayso_scripted_model::ModelServer::bind(([127, 0, 0, 1], 0).into(), [Turn::says("the end")]).unwrap();
            let scene = Scene {
                host: super::fake_host::FakeHost::new(model.address(), &[("a", "1\n")]).into(),
                model,
                ..scene_parts(&scene)
            };
            let session = scene.resume(&log[..length]);
            let has_prompt = log[..length].iter().any(|entry| matches!(entry.known(), Some(Entry::Prompt(_))));
            let end = if has_prompt {
                session.continue_conversation().await
            } else {
                session.invoke(UserPrompt::text("go")).await
            };
            let Invoked::Finished { reason: FinishedReason::Completed, text, .. } = &end else {
                panic!("{} at {length}: {end:?}", name(api))
            };
            assert_eq!(text, "the end");
            // After the last answer there is no work left.
            let sent = scene.host.sent.lock().unwrap();
            assert_eq!(sent.len(), usize::from(length < log.len() - 1), "{} at {length}", name(api));
            sent.iter().for_each(|request| super::log_laws::check_request(api, &request.body));
        }
    }
}

fn scene_parts(scene: &Scene) -> Scene {
    let model = sayso_scripted_model::ModelServer::bind(([127, 0, 0, 1], 0).into(), Vec::<Turn>::new()).unwrap();
    Scene { model, host: scene.host.clone(), catalog: scene.catalog.clone(), session: scene.session.clone() }
}

#[tokio::test]
async fn failed_record_ends_the_invocation() {
    let scene = Scene::new(settings(Api::OpenAiChat, "ASK"), &[], [Turn::says("hi")]);
    scene.host.room.store(2, std::sync::atomic::Ordering::SeqCst);
    let Invoked::Failed { message, hint, .. } = scene.say("go").await else { panic!("it did not fail") };
    assert_eq!(message, "cannot record the session: the disk is full");
    assert_eq!(hint, "free some space");
    assert_eq!(scene.session.state(), SessionState::Idle);
}
