//! The loop: the same task over all dialects, todos, delegation, queued prompts, limits and repetitions.

use sayso_agent::host::{AgentMessage, SurfaceAnswer, SurfaceRequest};
use sayso_agent::{
    Entry, FinishedReason, Invoked, Limits, LiveEventKind, SettingsPatch, TodoChange, TodoWriter, UserPrompt,
};
use sayso_scripted_model::{Answer, Latch, Turn};
use sayso_tools::{TodoState, TodoWrite};
use sayso_wire::stream::{Api, Usage};
use serde_json::json;

use super::fake_host::Decision;
use super::scene::{SESSION, Scene, name, settings};

const FILE: &str = "fn main() {\n    println!(\"one\");\n}\n";

fn task() -> Vec<Turn> {
    vec![
        Turn::calls("Read", json!({"path": "src/main.rs"})),
        Turn::calls("Edit", json!({"path": "src/main.rs", "old_string": "\"one\"", "new_string": "\"two\""}))
            .and_says("Changing the text."),
        Turn::calls("Edit", json!({"path": "src/main.rs", "old_string": "\"two\"", "new_string": "\"three\""})),
        Turn::calls("Exec", json!({"command": "cargo check"})),
        Turn::calls("TodoWrite", json!({"todos": [{"text": "check it", "state": "done"}]})),
        Turn::calls("Delegate", json!({"description": "look around", "prompt": "List the files.", "tools": ["List"]})),
        // The subagent.
        Turn::calls("List", json!({"path": "."})),
        Turn::says("There is src."),
        Turn::says("Done: two files looked at."),
    ]
}

#[tokio::test]
async fn same_task_completes_over_all_dialects() {
    for api in Api::ALL {
        let mut turns = task();
        if api == Api::OpenAiResponses {
            let patch = |old: &str, new: &str| {
                format!(
                    "*** Begin Patch\n*** Update File: src/main.rs\n@@\n-    println!(\"{old}\");\n+    println!(\"{new}\");\n*** End Patch\n"
                )
            };
            turns[1] = Turn::calls("ApplyPatch", json!({"input": patch("one", "two")})).and_says("Changing the text.");
            turns[2] = Turn::calls("ApplyPatch", json!({"input": patch("two", "three")}));
        }
        let scene = Scene::new(settings(api, "CODE"), &[("src/main.rs", FILE)], turns);
        scene.host.decisions.lock().unwrap().extend([Decision::Approve, Decision::Deny("three is too many")]);
        let text = scene.complete("Change one to two.").await;
        assert_eq!(text, "Done: two files looked at.", "{}", name(api));
        assert_eq!(scene.host.read("src/main.rs"), FILE.replace("one", "two"), "{}", name(api));
        assert_eq!(*scene.host.commands.lock().unwrap(), ["cargo check"]);
        let results = scene.last_results();
        assert_eq!(results.len(), 6, "{}: {results:?}", name(api));
        for (result, expected) in results.iter().zip([
            "println!(\\\"one\\\")",
            "applied as proposed",
            "user denied this tool call: three is too many",
            "Exit code: 0",
            "[x] 1: check it",
            "There is src.",
        ]) {
            let plain = expected.replace('\\', "");
            assert!(result.contains(expected) || result.contains(&plain), "{}: {result} lacks {expected}", name(api));
        }
        assert_eq!(scene.session.todos()[0].writer, TodoWriter::Agent);
        assert_eq!(scene.model.turns_left(), 0);
        // The subagent has only the tools that it was given, and its own session.
        let received = scene.turns();
        let nested = received.iter().find(|request| request.tools() == ["List"]).unwrap();
        assert_eq!(nested.header("x-session-id"), Some("s1.6"));
        assert_eq!(nested.header("x-parent-session-id"), Some(SESSION));
        assert!(!scene.host.log("s1.6").is_empty());
    }
}

#[tokio::test]
async fn edit_tool_fits_the_vendor() {
    for (model, api, expected, withheld) in [
        ("gpt-5.1", Api::OpenAiResponses, "apply_patch", "Edit"),
        ("gpt-4.1", Api::OpenAiChat, "ApplyPatch", "Write"),
        ("claude-sonnet-4-5", Api::AnthropicMessages, "Edit", "ApplyPatch"),
        ("openai/gpt-5.1", Api::OpenAiChat, "ApplyPatch", "Edit"),
    ] {
        let mut chosen = settings(api, "CODE");
        chosen.model = model.to_owned();
        let scene = Scene::new(chosen, &[], [Turn::says("hello")]);
        scene.complete("hi").await;
        let received = scene.turns();
        assert!(received[0].tools().contains(&expected), "{model}: {:?}", received[0].tools());
        assert!(!received[0].tools().contains(&withheld), "{model}");
    }
}

#[tokio::test]
async fn custom_patch_call_round_trips() {
    let mut chosen = settings(Api::OpenAiResponses, "CODE");
    chosen.model = "gpt-5.1".to_owned();
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n";
    let scene = Scene::new(chosen, &[], [Turn::calls("apply_patch", patch), Turn::says("added")]);
    assert_eq!(scene.complete("add it").await, "added");
    assert_eq!(scene.host.read("new.txt"), "hello\n");
    let input = &scene.turns()[1].body["input"];
    assert_eq!(input[1]["type"], "custom_tool_call");
    assert_eq!(input[1]["input"], patch);
    assert_eq!(input[2]["type"], "custom_tool_call_output");
}

#[tokio::test]
async fn todos_of_user_and_agent_both_survive() {
    let scene = Scene::new(
        settings(Api::OpenAiChat, "CODE"),
        &[],
        [
            Turn::calls("TodoWrite", json!({"todos": [{"text": "first"}, {"text": "second"}]})),
            Turn::calls("TodoWrite", json!({"todos": [{"id": "1", "state": "done"}, {"id": "9", "state": "done"}]})),
            Turn::calls("TodoRead", json!({})),
            Turn::says("ok"),
        ],
    );
    let put = TodoWrite::Put { id: Some("u".to_owned()), text: Some("mine".to_owned()), state: None };
    let order = vec!["u".to_owned()];
    scene.session.write_todos(TodoChange { writes: vec![put], order }).unwrap();
    scene.complete("plan").await;
    let results = scene.last_results();
    assert!(results[1].contains("there is no todo item `9`"), "{}", results[1]);
    assert_eq!(results[2], "[ ] u: mine\n[ ] 1: first\n[ ] 2: second");
    let write = TodoWrite::Put { id: Some("2".to_owned()), text: None, state: Some(TodoState::Done) };
    scene.session.write_todos(TodoChange { writes: vec![write], order: Vec::new() }).unwrap();
    let todos = scene.resume(&scene.log()).todos();
    assert_eq!(todos.len(), 3);
    assert_eq!((todos[2].state, todos[2].writer), (TodoState::Done, TodoWriter::User));
}

#[tokio::test]
async fn queued_prompt_joins_the_next_request() {
    let latch = Latch::closed();
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "CODE"),
        &[("a.txt", "A\n")],
        [Answer::from(Turn::calls("Read", json!({"path": "a.txt"}))).held_by(&latch), Turn::says("understood").into()],
    );
    let running = tokio::spawn({
        let session = scene.session.clone();
        async move { session.invoke(UserPrompt::text("start")).await }
    });
    scene.host.wait_until(|host| !host.sent.lock().unwrap().is_empty()).await;
    assert_eq!(scene.say("yes, and read b").await, Invoked::Queued);
    assert_eq!(scene.session.queued(), 1);
    latch.open();
    assert!(matches!(running.await.unwrap(), Invoked::Finished { .. }));
    let last = scene.turns().pop().unwrap();
    assert_eq!(last.last_user_text(), "yes, and read b");
    // The result of the call comes first, as the API wants it.
    assert_eq!(last.body["messages"][2]["content"][0]["type"], "tool_result");
    assert!(scene.states().contains(&"queued".to_owned()));
}

#[tokio::test]
async fn prompt_queued_at_the_end_is_answered() {
    let latch = Latch::closed();
    let scene = Scene::new(
        settings(Api::Gemini, "ASK"),
        &[],
        [Answer::from(Turn::says("first")).held_by(&latch), Turn::says("second").into()],
    );
    let running = tokio::spawn({
        let session = scene.session.clone();
        async move { session.invoke(UserPrompt::text("one")).await }
    });
    scene.host.wait_until(|host| !host.sent.lock().unwrap().is_empty()).await;
    assert_eq!(scene.say("two").await, Invoked::Queued);
    latch.open();
    let Invoked::Finished { text, .. } = running.await.unwrap() else { panic!("it failed") };
    assert_eq!(text, "second");
}

#[tokio::test]
async fn empty_prompt_sends_no_request() {
    let scene = Scene::new(settings(Api::OpenAiChat, "ASK"), &[], [Turn::says("hello")]);
    assert_eq!(scene.complete(" \n").await, "");
    assert!(scene.turns().is_empty());
    scene.complete("hi").await;
    assert_eq!(scene.complete("").await, "hello");
    assert_eq!(scene.turns().len(), 1);
}

#[tokio::test]
async fn review_messages_join_the_next_request() {
    let scene = Scene::new(settings(Api::OpenAiChat, "ASK"), &[], [Turn::says("noted")]);
    let text = "change 4 was denied: too broad".to_owned();
    scene.host.messages.lock().unwrap().push_back(AgentMessage { change: Some(4), text });
    scene.complete("go on").await;
    let body = scene.turns()[0].body.to_string();
    assert!(body.contains("Message from the review of an earlier change:\\nchange 4 was denied: too broad"), "{body}");
}

#[tokio::test]
async fn limits_ask_and_end_with_limit() {
    let limits = |turns, cost_micro_usd, time_ms| Limits { turns, cost_micro_usd, time_ms };
    for (limits, words) in [
        (limits(2, 0, 0), "2 requests to the model"),
        (limits(0, 15, 0), "limit of $0.00"),
        (limits(0, 0, 1), "limit of 0 seconds"),
    ] {
        let mut chosen = settings(Api::AnthropicMessages, "CODE");
        chosen.limits = limits;
        let usage = Usage { input: Some(9), output: Some(1), ..Usage::default() };
        let reads = (0..4).map(|line| Turn::calls("Read", json!({"path": "a", "offset": line + 1})).with_usage(usage));
        let scene = Scene::new(chosen, &[("a", "1\n2\n3\n4\n5\n")], reads);
        scene.host.answers.lock().unwrap().push_back(SurfaceAnswer::Text("Stop".to_owned()));
        scene.model.when(|_| false, Turn::says("never"));
        if limits.time_ms > 0 {
            let host = scene.host.clone();
            let watch = tokio::spawn(async move {
                host.wait_until(|host| !host.sent.lock().unwrap().is_empty()).await;
                host.advance_ms(10);
            });
            let end = scene.say("go").await;
            watch.await.unwrap();
            assert!(matches!(end, Invoked::Finished { reason: FinishedReason::Limit, .. }), "{end:?}");
        } else {
            let end = scene.say("go").await;
            assert!(matches!(end, Invoked::Finished { reason: FinishedReason::Limit, .. }), "{end:?}");
            assert_eq!(scene.turns().len(), 2);
        }
        let SurfaceRequest::Question { question, options } = scene.host.asked.lock().unwrap()[0].clone() else {
            panic!("no question")
        };
        assert!(question.contains(words), "{question}");
        assert_eq!(options, ["Continue", "Stop"]);
    }
}

#[tokio::test]
async fn raised_limit_allows_as_much_again() {
    let mut chosen = settings(Api::AnthropicMessages, "CODE");
    chosen.limits.turns = 2;
    let turns = (1..=5).map(|line| Turn::calls("Read", json!({"path": "a", "offset": line})));
    let scene = Scene::new(chosen, &[("a", "1\n2\n3\n4\n5\n")], turns);
    scene.host.answers.lock().unwrap().push_back(SurfaceAnswer::Text("continue".to_owned()));
    let end = scene.say("go").await;
    assert!(matches!(end, Invoked::Finished { reason: FinishedReason::Limit, .. }), "{end:?}");
    assert_eq!(scene.turns().len(), 4);
    assert!(scene.has_entry(|entry| matches!(entry, Entry::LimitRaised { .. })));
}

#[tokio::test]
async fn third_equal_call_asks() {
    let same = || Turn::calls("Read", json!({"path": "a"}));
    let scene = Scene::new(
        settings(Api::OpenAiResponses, "ASK"),
        &[("a", "1\n")],
        [same(), same(), same(), Turn::says("sorry")],
    );
    scene.host.answers.lock().unwrap().push_back(SurfaceAnswer::Text("look at b".to_owned()));
    scene.complete("go").await;
    assert_eq!(scene.last_results()[2], "The user stopped this repeated call: look at b");
    assert_eq!(scene.host.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn repeated_calls_without_surface_end_the_invocation() {
    let same = (0..10).map(|_| Turn::calls("Read", json!({"path": "a"})));
    let scene = Scene::new(settings(Api::OpenAiResponses, "ASK"), &[("a", "1\n")], same);
    let Invoked::Failed { message, .. } = scene.say("go").await else { panic!("it did not fail") };
    assert_eq!(message, "the model repeats the same call of Read");
    assert_eq!(scene.turns().len(), 6);
}

#[tokio::test]
async fn unknown_tool_and_broken_arguments_are_told() {
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "ASK"),
        &[],
        [
            Turn::calls("Write", json!({"path": "a", "content": "x"})),
            Turn::calls("Read", json!({"file": "a"})),
            Turn::calls("Read", json!({"path": "absent"})),
            Turn::says("ok"),
        ],
    );
    scene.complete("go").await;
    let results = scene.last_results();
    assert!(results[0].starts_with("there is no tool `Write`. Use one of Read,"), "{}", results[0]);
    assert!(results[1].contains("unknown field `file`"), "{}", results[1]);
    assert!(results[2].contains("absent"), "{}", results[2]);
}

#[tokio::test]
async fn outside_tools_wait_for_their_verdict() {
    let fetch = || Turn::calls("Fetch", json!({"url": "https://example.com/a"}));
    let scene = Scene::new(settings(Api::AnthropicMessages, "ASK"), &[], [fetch(), fetch(), Turn::says("ok")]);
    scene.host.decisions.lock().unwrap().extend([Decision::Approve, Decision::Deny("stay offline")]);
    scene.complete("go").await;
    let results = scene.last_results();
    assert!(results[0].starts_with("Fetch(FetchStep") && results[0].contains("example.com"), "{}", results[0]);
    assert_eq!(results[1], "user denied this tool call: stay offline");
}

#[tokio::test]
async fn delegation_cannot_widen_the_tools() {
    let delegate = |arguments: serde_json::Value| Turn::calls("Delegate", arguments);
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "CODE"),
        &[],
        [
            delegate(json!({"description": "x", "prompt": "p", "tools": ["ProposeChanges"]})),
            delegate(json!({"description": "x", "prompt": "p", "scenario": "PLAN"})),
            delegate(json!({"description": "x", "prompt": "p", "scenario": "ASK"})),
            Turn::says("nested"),
            delegate(json!({"description": "x", "prompt": "q"})),
            Turn::says("ok"),
        ],
    );
    let decisions = [Decision::Approve, Decision::Approve, Decision::Approve, Decision::Deny("do it yourself")];
    scene.host.decisions.lock().unwrap().extend(decisions);
    scene.complete("go").await;
    let results = scene.last_results();
    assert!(results[0].contains("the tool `ProposeChanges` cannot be delegated"), "{}", results[0]);
    assert!(results[1].contains("no such scenario"), "{}", results[1]);
    assert_eq!(results[2], "nested");
    assert!(results[3].contains("do it yourself"), "{}", results[3]);
    let received = scene.turns();
    let nested = received.iter().find(|request| request.header("x-parent-session-id").is_some()).unwrap();
    assert!(!nested.tools().contains(&"Edit") && !nested.tools().contains(&"Delegate"), "{:?}", nested.tools());
}

#[tokio::test]
async fn question_is_answered_or_decided_alone() {
    let ask = || Turn::calls("Ask", json!({"question": "Which name?", "options": ["a", "b"]}));
    let scene = Scene::new(settings(Api::Gemini, "CODE"), &[], [ask(), ask(), Turn::says("ok")]);
    scene.host.answers.lock().unwrap().push_back(SurfaceAnswer::Text("b".to_owned()));
    scene.complete("go").await;
    let results = scene.last_results();
    assert!(results[0].contains("The user answers: b"), "{}", results[0]);
    assert!(results[1].contains("No user is attached"), "{}", results[1]);
}

#[tokio::test]
async fn model_switch_keeps_history_without_foreign_thinking() {
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "ASK"),
        &[("a", "1\n")],
        [
            Turn::calls("Read", json!({"path": "a"})).after_thinking("let me see", Some("sig-1")),
            Turn::says("it is one"),
            Turn::says("as before"),
            Turn::says("and back"),
        ],
    );
    scene.complete("read a").await;
    assert!(scene.turns()[1].body.to_string().contains("sig-1"));
    let patch = SettingsPatch { model: Some("gemini-2.5-test".to_owned()), ..SettingsPatch::default() };
    assert_eq!(scene.session.set_settings(&patch).unwrap().dialect, Api::Gemini);
    scene.complete("again").await;
    let body = scene.turns()[2].body.to_string();
    assert!(body.contains("it is one") && body.contains("read a") && !body.contains("sig-1"), "{body}");
    let patch = SettingsPatch { model: Some("claude-test".to_owned()), ..SettingsPatch::default() };
    scene.session.set_settings(&patch).unwrap();
    scene.complete("back").await;
    assert!(scene.turns()[3].body.to_string().contains("sig-1"));
    let changed = scene.host.events_of(SESSION);
    assert_eq!(changed.iter().filter(|event| matches!(event, LiveEventKind::Settings { .. })).count(), 2);
}

#[tokio::test]
async fn project_instructions_join_the_system_prompt() {
    let files = [("AGENTS.md", "Use tabs.\n"), ("CLAUDE.md", "Use tabs.\n")];
    for api in Api::ALL {
        let scene = Scene::new(settings(api, "ASK"), &files, [Turn::says("one"), Turn::says("two")]);
        scene.complete("go").await;
        std::fs::write(scene.host.folder.path().join("AGENTS.md"), "Use spaces.\n").unwrap();
        scene.complete("go").await;
        let requests = scene.turns();
        let system = requests[0].system_text();
        assert!(system.contains("Instructions of the project, from AGENTS.md:\n\nUse tabs."), "{system}");
        assert!(!system.contains("CLAUDE.md"), "{system}");
        // A change of the file does not change the prompt of a running conversation.
        assert_eq!(requests[1].system_text(), system);
    }
}

#[tokio::test]
async fn attached_files_and_images_are_sent() {
    for api in Api::ALL {
        let scene = Scene::new(settings(api, "ASK"), &[("a.txt", "content of a\n")], [Turn::says("seen")]);
        let image = sayso_agent::log::ImageData { media_type: "image/png".to_owned(), base64: "aW1n".to_owned() };
        let prompt = UserPrompt {
            text: "look".to_owned(),
            files: vec!["a.txt".to_owned(), "gone.txt".to_owned()],
            images: vec![image],
        };
        scene.session.invoke(prompt).await;
        let body = scene.turns()[0].body.to_string();
        assert!(body.contains("<file path=\\\"a.txt\\\">\\ncontent of a"), "{}: {body}", name(api));
        assert!(body.contains("[cannot be read: `gone.txt` does not exist]"), "{}", name(api));
        assert!(body.contains("aW1n") && body.contains("image/png"), "{}", name(api));
    }
}
