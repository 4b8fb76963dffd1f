//! The context window: pruning, compaction, and a long task with both.

use sayso_agent::host::RequestReason;
use sayso_agent::{Entry, FinishedReason, Invoked, UserPrompt};
use sayso_scripted_model::{Answer, Received, Turn};
use sayso_wire::stream::{Api, Usage};
use serde_json::json;

use super::fake_host::Decision;
use super::scene::{Scene, name, settings};

fn is_compaction(request: &Received) -> bool {
    request.system_text().starts_with("This request is a compaction")
}

fn overflow(api: Api) -> Answer {
    Answer::error(
        400,
        match api {
            Api::AnthropicMessages => "prompt is too long: 210000 tokens > 200000 maximum",
            Api::Gemini => "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
            _ => {
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."
            }
        },
    )
}

/// A turn whose API counts no tokens, so that the agent estimates them.
fn uncounted(turn: Turn) -> Turn {
    turn.with_usage(Usage::default())
}

fn read(line: usize) -> Turn {
    Turn::calls("Read", json!({"path": "big.txt", "offset": line, "limit": 40}))
}

fn big_file() -> String {
    (1..=4_000).map(|line| format!("line {line} with some words\n")).collect()
}

#[tokio::test]
async fn overflow_is_pruned_then_compacted() {
    for api in Api::ALL {
        let reads: Vec<Answer> = (1..=6).map(|line| read(line).into()).collect();
        let turns = reads.into_iter().chain([overflow(api), overflow(api), Turn::says("the end").into()]);
        let big = big_file();
        let scene = Scene::with_window(settings(api, "ASK"), &[("big.txt", &big)], turns, None);
        scene.model.when(is_compaction, Turn::says("Task: read it. Done: six reads."));
        assert_eq!(scene.complete("read it").await, "the end", "{}", name(api));
        assert!(scene.has_entry(|entry| matches!(entry, Entry::Pruned { calls } if calls.len() == 3)), "{}", name(api));
        assert!(
            scene.has_entry(|entry| matches!(entry, Entry::Compacted { summary, .. } if summary.contains("six reads")))
        );
        let states = scene.states();
        let place = |state: &str| states.iter().position(|known| known == state).unwrap();
        assert!(place("pruned") < place("compacting"), "{states:?}");
        // An overflow is never retried as it is.
        assert!(scene.host.delays.lock().unwrap().is_empty());
        let sent = scene.host.sent.lock().unwrap();
        assert_eq!(sent.iter().filter(|request| request.reason == RequestReason::Compaction).count(), 1);
        let last = String::from_utf8_lossy(&sent.last().unwrap().body);
        assert!(last.contains("Summary of the conversation so far") && last.contains("six reads"));
    }
}

#[tokio::test]
async fn overflow_without_remedy_fails_with_hint() {
    let scene = Scene::new(settings(Api::OpenAiChat, "ASK"), &[], [overflow(Api::OpenAiChat)]);
    let Invoked::Failed { message, hint, .. } = scene.say("go").await else { panic!("it did not fail") };
    assert!(message.contains("maximum context length"), "{message}");
    assert!(hint.contains("larger context window"), "{hint}");
}

#[tokio::test]
async fn compaction_that_overflows_is_shortened() {
    let turns = (1..=3)
        .map(|line| Answer::from(read(line)))
        .chain([overflow(Api::AnthropicMessages), Turn::says("the end").into()]);
    let big = big_file();
    let scene = Scene::with_window(settings(Api::AnthropicMessages, "ASK"), &[("big.txt", &big)], turns, None);
    scene.model.once(is_compaction, overflow(Api::AnthropicMessages));
    scene.model.when(is_compaction, Turn::says("a summary"));
    assert_eq!(scene.complete("read it").await, "the end");
    assert_eq!(scene.model.hits(is_compaction), 2);
}

#[tokio::test]
async fn full_window_is_pruned_before_the_request() {
    let read = |part: usize| Turn::calls("Read", json!({"path": "big.txt", "offset": part * 200 + 1, "limit": 200}));
    let turns = (0..12).map(|part| uncounted(read(part))).chain([Turn::says("the end")]);
    let big = big_file();
    let scene = Scene::with_window(settings(Api::OpenAiResponses, "ASK"), &[("big.txt", &big)], turns, Some(20_000));
    scene.model.when(is_compaction, Turn::says("a summary"));
    assert_eq!(scene.complete("read it").await, "the end");
    assert!(scene.has_entry(|entry| matches!(entry, Entry::Pruned { .. })));
    assert!(scene.turns().iter().any(|request| request.body.to_string().contains("was removed to save context")));
}

#[tokio::test]
async fn sixty_turn_task_survives_compaction_and_kill() {
    let body = |number: usize| format!("value = {number}\n");
    let mut turns = vec![
        Turn::calls("Read", json!({"path": "value.txt"})),
        // The text is not in the file; the agent reads it again and repairs the edit.
        Turn::calls("Edit", json!({"path": "value.txt", "old_string": "value: 0", "new_string": "value = 1"})),
        Turn::calls("Read", json!({"path": "value.txt", "offset": 1})),
        Turn::calls("Edit", json!({"path": "value.txt", "old_string": "value = 0", "new_string": "value = 1"})),
    ];
    for number in 1..=28 {
        turns.push(Turn::calls("Exec", json!({"command": format!("check {number}")})));
        turns.push(Turn::calls(
            "Edit",
            json!({"path": "value.txt", "old_string": format!("value = {number}"), "new_string": format!("value = {}", number + 1)}),
        ));
    }
    let count = turns.len();
    assert_eq!(count, 60);
    turns.push(Turn::says("value is 29"));
    let first = body(0);
    // Text of the agent cannot be pruned, so that pruning alone does not make room.
    let talk = "thinking aloud ".repeat(70);
    let last = turns.pop().unwrap();
    let turns = turns.into_iter().map(|turn| uncounted(turn.and_says(&talk))).chain([uncounted(last)]);
    let scene =
        Scene::with_window(settings(Api::AnthropicMessages, "CODE"), &[("value.txt", &first)], turns, Some(16_000));
    let noise: String = (0..400).map(|line| format!("output line {line}\n")).collect();
    scene.host.outputs.lock().unwrap().extend((0..28).map(|_| noise.clone()));
    let approvals = |count: usize| (0..count).map(|_| Decision::Approve);
    scene.host.decisions.lock().unwrap().extend(approvals(29).chain([Decision::Wait]));
    scene.model.when(is_compaction, Turn::says("Task: count value up to 29. Next: go on."));
    // Killed while a command waits for its verdict.
    let running = tokio::spawn({
        let session = scene.session.clone();
        async move { session.invoke(UserPrompt::text("Count value.txt up to 29.")).await }
    });
    scene.host.wait_until(|host| host.decisions.lock().unwrap().is_empty()).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let resumed = scene.resume(&scene.log());
    let Invoked::Finished { reason: FinishedReason::Completed, text, .. } = resumed.continue_conversation().await
    else {
        panic!("it did not complete")
    };
    assert_eq!(text, "value is 29");
    assert!(scene.has_entry(|entry| matches!(entry, Entry::Result(result) if result.text == "cancelled")));
    assert_eq!(scene.host.read("value.txt"), body(29));
    assert!(scene.has_entry(|entry| matches!(entry, Entry::Compacted { .. })));
    assert!(scene.has_entry(|entry| matches!(entry, Entry::Pruned { .. })));
    let is_repaired_edit = |entry: &Entry| matches!(entry, Entry::Result(result) if result.is_error);
    assert!(scene.has_entry(is_repaired_edit));
    assert_eq!(scene.turns().len(), 61);
    for request in scene.host.sent.lock().unwrap().iter() {
        super::log_laws::check_request(Api::AnthropicMessages, &request.body);
    }
}
