//! Saved edits, and the impact of edits on the prompt cache.

use sayso_wire::tokens::TokenCounter;
use sayso_wire::{CaptureCounts, Drift, ModelRequest, NodeType, Overrides, RequestHead, Scope, SectionId};
use serde_json::{Value, json};

use crate::corpus::example;

fn turn(system: &str, messages: &[Value]) -> ModelRequest {
    let body = json!({ "model": "claude-x", "temperature": 1, "system": [{ "type": "text", "text": system }], "messages": messages });
    ModelRequest::new("r1", RequestHead::new("/v1/messages"), body.to_string().into_bytes())
}

fn said(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": [{ "type": "text", "text": text }] })
}

fn at(request: &ModelRequest, path: &str) -> SectionId {
    request.sections().find(|section| request.raw_path(section) == path).unwrap_or_else(|| panic!("{path}")).id
}

fn sent(request: &ModelRequest) -> Value {
    serde_json::from_slice(&request.to_bytes()).unwrap()
}

#[test]
fn saved_edit_applies_to_next_turn() {
    let mut first =
        turn("You help.", &[said("user", "look at a"), said("assistant", "long talk"), said("user", "go on")]);
    first.edit_section(at(&first, "messages[1].content[0]"), "short").unwrap();
    first.edit_section(at(&first, "system[0]"), "You help briefly.").unwrap();
    first.delete(at(&first, "messages[0]")).unwrap();
    let mut overrides = Overrides::default();
    assert_eq!(overrides.capture(&first, Scope::Session, 17), 3, "{:#?}", overrides.edits);
    assert!(overrides.edits.iter().all(|edit| edit.updated_at == 17 && edit.scope == Scope::Session));
    // The next turn has more messages, and a reminder before the edited section.
    let history = [
        said("user", "look at a"),
        said("user", "a reminder"),
        said("assistant", "long talk"),
        said("user", "go on"),
        said("assistant", "more"),
        said("user", "next"),
    ];
    let mut second = turn("You help.", &history);
    let outcome = overrides.apply(&mut second);
    assert_eq!((outcome.applied.len(), outcome.drifted.len()), (3, 0), "{outcome:?}");
    let body = sent(&second);
    assert_eq!(body["system"][0]["text"], "You help briefly.");
    assert_eq!(body["messages"][0], history[1], "what was deleted stays deleted");
    assert_eq!(body["messages"][1]["content"][0]["text"], "short");
    assert_eq!(second.diff().len(), 3, "each can be shown as what it is: edited");
}

#[test]
fn capture_since_saves_later_edits_only() {
    let history = [said("user", "one"), said("assistant", "two"), said("user", "three")];
    let mut request = turn("You help.", &history);
    let mut overrides = Overrides::default();
    request.edit_section(at(&request, "system[0]"), "saved before").unwrap();
    assert_eq!(overrides.capture(&request, Scope::Session, 1), 1);
    request.edit_section(at(&request, "messages[1].content[0]"), "for this one").unwrap();
    // The path has changed, but the edit is the same.
    let before = request.clone();
    request.delete(at(&request, "messages[0]")).unwrap();
    assert_eq!(
        overrides.capture_since(Some(&before), &request, &[], Scope::Session, 2),
        CaptureCounts { saved: 1, removed: 0 }
    );
    let saved = |overrides: &Overrides| -> Vec<_> { overrides.edits.iter().map(|edit| edit.content.clone()).collect() };
    assert_eq!(saved(&overrides), [Some("saved before".to_owned()), None]);
    // Without new edits nothing is saved. A restored section is removed from its scope.
    assert_eq!(overrides.capture_since(Some(&request), &request, &[], Scope::Session, 3), CaptureCounts::default());
    let mut back = before.clone();
    back.undo().unwrap();
    back.undo().unwrap();
    assert_eq!(overrides.capture_since(Some(&before), &back, &[], Scope::Global, 4), CaptureCounts::default());
    assert_eq!(
        overrides.capture_since(Some(&before), &back, &[], Scope::Session, 4),
        CaptureCounts { saved: 0, removed: 1 }
    );
    assert_eq!(saved(&overrides), [None]);
}

#[test]
fn capture_since_recognizes_moved_edits() {
    let tool = |name: &str| json!({ "name": name, "input_schema": { "type": "object", "title": name } });
    let body = json!({ "model": "claude-x", "tools": [tool("a"), tool("b")], "messages": [said("user", "hi")] });
    let mut request = ModelRequest::new("r1", RequestHead::new("/v1/messages"), body.to_string().into_bytes());
    request.edit_path("tools[1].input_schema.title", "for this request").unwrap();
    let before = request.clone();
    request.delete(at(&request, "tools[0]")).unwrap();
    let mut overrides = Overrides::default();
    assert_eq!(
        overrides.capture_since(Some(&before), &request, &[], Scope::Session, 1),
        CaptureCounts { saved: 1, removed: 0 }
    );
    assert_eq!(overrides.edits[0].content, None, "{:#?}", overrides.edits);
}

#[test]
fn changed_content_is_reported_as_drifted() {
    let mut first = turn("You help.", &[said("user", "one"), said("assistant", "two")]);
    first.edit_section(at(&first, "system[0]"), "other").unwrap();
    first.edit_section(at(&first, "messages[1].content[0]"), "other two").unwrap();
    let mut overrides = Overrides::default();
    overrides.capture(&first, Scope::Global, 1);
    let mut second = turn("You help, since today.", &[said("user", "one")]);
    let came = second.to_bytes().into_owned();
    let outcome = overrides.apply(&mut second);
    assert!(outcome.applied.is_empty());
    let drifts: Vec<&Drift> = outcome.drifted.iter().map(|(_, drift)| drift).collect();
    assert_eq!(drifts, [&Drift::Changed(at(&second, "system[0]")), &Drift::Missing]);
    assert_eq!(second.to_bytes(), came);
}

#[test]
fn narrower_scope_wins() {
    let request = || turn("You help.", &[said("user", "one")]);
    let mut overrides = Overrides::default();
    for (scope, text) in [(Scope::Session, "session"), (Scope::Global, "global"), (Scope::Workspace, "workspace")] {
        let mut edited = request();
        edited.edit_section(at(&edited, "system[0]"), text).unwrap();
        overrides.capture(&edited, scope, 1);
    }
    for (scope, expected) in [(Scope::Session, "session"), (Scope::Workspace, "workspace"), (Scope::Global, "global")] {
        let mut applied = request();
        overrides.apply(&mut applied);
        assert_eq!(sent(&applied)["system"][0]["text"], expected);
        overrides.remove(scope);
    }
    assert!(overrides.edits.is_empty());
}

#[test]
fn equal_texts_are_distinguished_by_index() {
    let messages = [said("user", "same"), said("assistant", "x"), said("user", "same"), said("assistant", "y")];
    let mut first = turn("s", &messages);
    first.edit_section(at(&first, "messages[2].content[0]"), "second").unwrap();
    let mut overrides = Overrides::default();
    overrides.capture(&first, Scope::Session, 1);
    let mut second = turn("s", &messages);
    overrides.apply(&mut second);
    assert_eq!(sent(&second)["messages"][0]["content"][0]["text"], "same");
    assert_eq!(sent(&second)["messages"][2]["content"][0]["text"], "second");
}

#[test]
fn setting_is_anchored_by_name() {
    let mut first = turn("s", &[said("user", "x")]);
    first.edit_path("temperature", "0.5").unwrap();
    let mut overrides = Overrides::default();
    overrides.capture(&first, Scope::Session, 1);
    assert_eq!(overrides.edits[0].anchor.node, NodeType::RequestOption);
    let mut second = turn("s", &[said("user", "y")]);
    assert_eq!(overrides.apply(&mut second).applied.len(), 1);
    assert_eq!(sent(&second)["temperature"], 0.5);
}

#[test]
fn preview_limit_bounds_captured_sections() {
    let mut request = turn("one", &[said("user", "two"), said("assistant", "three")]);
    request.edit_section(at(&request, "system[0]"), "1").unwrap();
    request.edit_section(at(&request, "messages[1].content[0]"), "3").unwrap();
    let mut overrides = Overrides { preview_limit: Some(2), ..Overrides::default() };
    assert_eq!(overrides.capture(&request, Scope::Session, 1), 1);
}

#[test]
fn recapture_replaces_saved_edits() {
    let mut overrides = Overrides::default();
    for text in ["first", "second"] {
        let mut request = turn("s", &[said("user", "x")]);
        request.edit_section(at(&request, "system[0]"), text).unwrap();
        overrides.capture(&request, Scope::Session, 1);
    }
    assert_eq!(overrides.edits.len(), 1);
    assert_eq!(overrides.edits[0].content.as_deref(), Some("second"));
}

#[test]
fn saved_edits_serialize() {
    let mut request = turn("s", &[said("user", "x")]);
    request.edit_section(at(&request, "system[0]"), "t").unwrap();
    request.delete(at(&request, "messages[0]")).unwrap();
    let mut overrides = Overrides { edits: Vec::new(), preview_limit: Some(10) };
    overrides.capture(&request, Scope::Workspace, 1_700_000_000_000);
    let text = serde_json::to_string_pretty(&overrides).unwrap();
    assert_eq!(serde_json::from_str::<Overrides>(&text).unwrap(), overrides);
    insta::assert_snapshot!(text);
}

#[test]
fn history_edit_loses_cache_and_seals() {
    let mut counter = TokenCounter::default();
    let mut request = example("anthropic/thinking-and-parallel-tools").request();
    assert_eq!(request.edit_impact(&mut counter), None, "without an edit there are none");
    let before = request.total_tokens(&mut counter);
    request.edit_section(at(&request, "messages[0].content[1]"), "Why is the build broken?").unwrap();
    let costs = request.edit_impact(&mut counter).unwrap();
    let span = request.document().unwrap().span(request.resolve("messages[0].content[1].text").unwrap()).unwrap();
    assert!(span.contains(&costs.first_changed.unwrap()));
    // The two breakpoints in the instructions are kept, the one in the last message is lost.
    let lost: Vec<String> =
        costs.breakpoints_lost.iter().map(|place| request.document().unwrap().path(*place)).collect();
    assert_eq!(lost, ["messages[4].content[0]"]);
    let sealed: Vec<String> = costs.sealed_after.iter().map(|place| request.document().unwrap().path(*place)).collect();
    assert_eq!(sealed, ["messages[1].content[0]", "messages[3].content[0]", "messages[3].content[1]"]);
    assert_eq!(costs.before, before);
    assert_eq!(costs.after, request.total_tokens(&mut counter));
    assert!(costs.reread.count > 0 && costs.reread.count < costs.after.count);
    assert!(costs.alternative().unwrap().contains("append"));
}

#[test]
fn appended_message_keeps_cache() {
    let mut counter = TokenCounter::default();
    let mut request = example("anthropic/thinking-and-parallel-tools").request();
    request.append("And run the tests.").unwrap();
    let costs = request.edit_impact(&mut counter).unwrap();
    assert!(costs.breakpoints_lost.is_empty() && costs.sealed_after.is_empty());
    assert_eq!((costs.reread.count, costs.alternative()), (0, None));
    assert!(costs.after.count > costs.before.count);
    assert!(request.blocking_problems().is_empty(), "{:?}", request.blocking_problems());
}

#[test]
fn tool_change_loses_later_cache() {
    let mut counter = TokenCounter::default();
    let mut request = example("anthropic/thinking-and-parallel-tools").request();
    request.delete(at(&request, "tools[0]")).unwrap();
    let costs = request.edit_impact(&mut counter).unwrap();
    // The server reads tools first, regardless of their position.
    let all = request
        .dialect()
        .unwrap()
        .breakpoints(example("anthropic/thinking-and-parallel-tools").request().document().unwrap());
    assert_eq!(costs.breakpoints_lost, all);
    assert_eq!(costs.sealed_after.len(), 3);
}
