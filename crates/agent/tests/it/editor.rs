//! `EDITOR_CODE`: proposals, reads through the editor, and commands in terminals of the user.

use sayso_agent::host::{CommandDispatch, CommandEnd, EditorText, SurfaceAnswer, SurfaceRequest};
use sayso_agent::{LiveEventKind, ProposedSet};
use sayso_scripted_model::{Answer, Turn};
use sayso_wire::stream::Api;
use serde_json::{Value, json};

use super::fake_host::Decision;
use super::scene::{SESSION, Scene, settings};

fn propose(path: &str) -> Turn {
    let changes = json!([{"path": path, "operation": "update", "new_content": "two\n"}]);
    Turn::calls("ProposeChanges", json!({"changes": changes}))
}

#[tokio::test]
async fn proposal_result_has_the_form_of_the_seed() {
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "EDITOR_CODE"),
        &[("a.txt", "one\n")],
        [propose("a.txt"), Turn::says("I propose to change a.txt.")],
    );
    assert_eq!(scene.complete("change it").await, "I propose to change a.txt.");
    let result = &scene.last_results()[0];
    insta::assert_snapshot!(result);
    let value: Value = serde_json::from_str(result).unwrap();
    assert_eq!(value["changes"][0]["operation"], "update");
    let typed: ProposedSet = serde_json::from_value(value).unwrap();
    let events = scene.host.events_of(SESSION);
    assert!(events.iter().any(|event| {
        matches!(event, LiveEventKind::ProposedChanges { changes, change: Some(1) } if *changes == typed)
    }));
    // Nothing is written.
    assert_eq!(scene.host.read("a.txt"), "one\n");
}

#[tokio::test]
async fn proposal_without_summary_asks_for_it() {
    let silent = json!({
        "id": "m", "type": "message", "role": "assistant", "model": "claude-test", "stop_reason": "end_turn",
        "content": [], "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "EDITOR_CODE"),
        &[("a.txt", "one\n")],
        [propose("a.txt").into(), Answer::status(200, silent.to_string()), Turn::says("One file changes.").into()],
    );
    assert_eq!(scene.complete("change it").await, "One file changes.");
    assert_eq!(scene.turns()[2].last_user_text(), "Conclude with a concise summary of the proposed changes.");
}

#[tokio::test]
async fn second_proposal_is_refused_until_the_next_prompt() {
    let scene = Scene::new(
        settings(Api::OpenAiChat, "EDITOR_CODE"),
        &[("a.txt", "one\n"), ("b.txt", "one\n")],
        [propose("a.txt"), propose("b.txt"), Turn::says("done"), propose("b.txt"), Turn::says("done again")],
    );
    scene.complete("change both").await;
    assert!(scene.last_results()[1].starts_with("ProposeChanges was called already"));
    scene.complete("now b").await;
    assert!(scene.last_results()[2].contains("\"path\": \"b.txt\""));
}

#[tokio::test]
async fn editor_scenario_has_no_acting_tool() {
    let scene = Scene::new(settings(Api::AnthropicMessages, "EDITOR_CODE"), &[], [Turn::says("hi")]);
    scene.complete("hi").await;
    let received = scene.turns();
    for tool in ["Write", "Edit", "ApplyPatch", "Exec", "Delegate"] {
        assert!(!received[0].tools().contains(&tool), "{tool}");
    }
    let scenario = scene.catalog.scenarios.find("EDITOR_CODE").unwrap();
    assert!(scenario.proposes_only() && !scenario.is_read_only());
}

#[tokio::test]
async fn read_asks_the_editor_first() {
    let read = || Turn::calls("Read", json!({"path": "a.txt", "offset": 1, "limit": 200}));
    let other = Turn::calls("Read", json!({"path": "a.txt", "offset": 1, "limit": 100}));
    let outside = Turn::calls("Read", json!({"path": "../secret"}));
    let scene = Scene::new(
        settings(Api::OpenAiResponses, "EDITOR_CODE"),
        &[("a.txt", "on disk\n")],
        [read(), other, outside, Turn::says("ok")],
    );
    let text = EditorText { content: "in the editor\nline two\n".to_owned(), unsaved: true };
    scene.host.answers.lock().unwrap().extend([SurfaceAnswer::FileText(text), SurfaceAnswer::TimedOut]);
    scene.complete("read").await;
    let results = scene.last_results();
    insta::assert_snapshot!(results.join("\n---\n"));
    let asked = scene.host.asked.lock().unwrap();
    // A path outside the workspace never reaches the editor.
    assert_eq!(asked.len(), 2);
    assert!(
        matches!(&asked[0], SurfaceRequest::FileRead { path, offset: Some(1), limit: Some(200), .. } if path == "a.txt")
    );
}

#[tokio::test]
async fn terminal_answers_have_defined_results() {
    let sent = CommandDispatch::Sent { terminal: Some("t1".to_owned()) };
    let ran = CommandDispatch::Ran { terminal: None, exit_code: Some(2), output: Some("no such file\n".to_owned()) };
    let failed = CommandDispatch::Failed { message: "the terminal was closed".to_owned() };
    let answers = [
        SurfaceAnswer::Command(sent),
        SurfaceAnswer::Command(ran),
        SurfaceAnswer::Command(failed),
        SurfaceAnswer::TimedOut,
        SurfaceAnswer::NoSurface,
    ];
    let call =
        |number: usize| Turn::calls("Exec", json!({"command": format!("step{number}"), "in_user_terminal": true}));
    let turns = (0..answers.len()).map(call).chain([Turn::says("ok")]);
    let scene = Scene::new(settings(Api::AnthropicMessages, "CODE"), &[], turns);
    scene.host.answers.lock().unwrap().extend(answers);
    scene.complete("go").await;
    insta::assert_snapshot!(scene.last_results().join("\n---\n"));
    let ends = scene.host.ends.lock().unwrap();
    assert_eq!(ends[..2], [CommandEnd::Sent, CommandEnd::Exited { code: 2 }]);
    assert!(scene.host.commands.lock().unwrap().is_empty());
}

#[tokio::test]
async fn heavy_command_runs_inside_without_terminal() {
    let call = |command: &str| Turn::calls("Exec", json!({"command": command}));
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "CODE"),
        &[],
        [call("npm install"), call("vim a.txt"), call("npm install left-pad"), Turn::says("ok")],
    );
    scene.host.decisions.lock().unwrap().extend([Decision::Approve, Decision::Approve, Decision::Approve]);
    scene.host.decisions.lock().unwrap().push_back(Decision::Deny("not now"));
    scene.complete("go").await;
    let results = scene.last_results();
    assert!(results[0].contains("Exit code: 0"), "{}", results[0]);
    assert!(results[1].contains("it needs a terminal of the user"), "{}", results[1]);
    assert!(results[2].contains("user denied this tool call: not now"), "{}", results[2]);
    assert_eq!(*scene.host.commands.lock().unwrap(), ["npm install"]);
}

#[tokio::test]
async fn long_output_keeps_head_and_tail() {
    let scene = Scene::new(
        settings(Api::AnthropicMessages, "CODE"),
        &[],
        [Turn::calls("Exec", json!({"command": "seq 1 20000"})), Turn::says("ok")],
    );
    let output: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    scene.host.outputs.lock().unwrap().push_back(output.clone());
    scene.complete("go").await;
    let result = &scene.last_results()[0];
    assert!(result.starts_with("1\n2\n") && result.ends_with("\n20000\nExit code: 0"), "{}", result.len());
    assert!(result.contains("bytes omitted") && result.len() < 31_000);
    let deltas = scene.host.events_of(SESSION);
    assert!(deltas.iter().any(|event| matches!(event, LiveEventKind::ToolOutputDelta { text, .. } if *text == output)));
}

#[tokio::test]
async fn partial_and_stale_outcomes_reach_the_model() {
    let write = |text: &str| Turn::calls("Write", json!({"path": "new.txt", "content": text}));
    let scene = Scene::new(settings(Api::Gemini, "CODE"), &[], [write("a\n"), write("b\n"), Turn::says("ok")]);
    scene.host.decisions.lock().unwrap().extend([
        Decision::Partial("new.txt: hunk 1 of 2 was applied"),
        Decision::Stale("nothing was written: new.txt changed"),
    ]);
    scene.complete("go").await;
    let results = scene.last_results();
    assert!(results[0].contains("hunk 1 of 2 was applied"), "{}", results[0]);
    assert!(results[1].contains("new.txt changed") && results[1].contains("error"), "{}", results[1]);
}
