//! The editable request of the second seed. Each interface, table and list of the seed ("Components", "Hierarchical
//! view", "Editing Model") has a test of that name.

use std::collections::BTreeSet;

use sayso_wire::{
    ContentKind, EditError, EditTargetKind, Editable, ModelRequest, NodeType, RequestHead, Section, SectionKind,
};

use crate::corpus::{example, examples};

fn chat(body: &str) -> ModelRequest {
    ModelRequest::new("r1", RequestHead::new("/v1/chat/completions"), body.as_bytes())
}

/// Returns a request with every element that the seed mentions.
fn conversation() -> ModelRequest {
    chat(
        r#"{"model":"gpt-4o","temperature":0.70,"messages":[
  {"role":"system","content":"You help."},
  {"role":"user","name":"ann","content":[{"type":"text","text":"<context>\nfile.ts\n</context>"},{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"data:x"}}]},
  {"role":"assistant","content":"I will.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\": \"a\"}"}}]},
  {"role":"tool","tool_call_id":"c1","content":"text of a"}
 ],"prediction":{"type":"content","content":"maybe"}}"#,
    )
}

fn by_path<'r>(request: &'r ModelRequest, path: &str) -> &'r Section {
    let found = request.sections().find(|section| request.raw_path(section) == path);
    found.unwrap_or_else(|| panic!("nothing at {path}"))
}

#[test]
fn section_has_every_seed_field() {
    let request = conversation();
    let section = by_path(&request, "messages[1].content[1]");
    assert_eq!(section.id.to_string().parse(), Ok(section.id), "id");
    assert_eq!(section.kind, SectionKind::User, "kind");
    assert_eq!(section.label, "Content #2", "label");
    assert_eq!(request.content(section), "Look", "content");
    assert!(!section.collapsed, "collapsed");
    assert_eq!(section.editable, Editable::Yes, "editable");
    assert!(section.deletable, "deletable");
    assert_eq!(section.message_index, Some(1), "sourceMessageIndex");
    assert_eq!(section.parent, Some(by_path(&request, "messages[1]").id), "parentId");
    assert_eq!(section.node, NodeType::ContentPart, "nodeType");
    assert_eq!(section.content_index, Some(1), "contentIndex");
    let call = by_path(&request, "messages[2].tool_calls[0]");
    assert_eq!(call.tool_call_index, Some(0), "toolCallIndex");
    let mut counter = sayso_wire::tokens::TokenCounter::default();
    assert_eq!(request.tokens(&mut counter, section.leaf.unwrap()).count, 1, "tokenCount");
}

#[test]
fn seed_section_kinds_occur() {
    let mut kinds: BTreeSet<SectionKind> = BTreeSet::new();
    for example in examples() {
        kinds.extend(example.request().sections().map(|section| section.kind));
    }
    let all = [
        SectionKind::System,
        SectionKind::User,
        SectionKind::Assistant,
        SectionKind::Context,
        SectionKind::Tool,
        SectionKind::History,
        SectionKind::Prediction,
        SectionKind::Other,
    ];
    assert_eq!(kinds, BTreeSet::from(all));
}

#[test]
fn seed_node_types_occur() {
    let mut nodes: BTreeSet<NodeType> = BTreeSet::new();
    for example in examples() {
        nodes.extend(example.request().sections().map(|section| section.node));
    }
    for node in [NodeType::Message, NodeType::ContentPart, NodeType::ToolCall, NodeType::Metadata] {
        assert!(nodes.contains(&node), "{node:?}");
    }
}

#[test]
fn editable_request_keeps_original_body() {
    let mut request = conversation();
    let came = request.original().to_vec();
    assert_eq!(request.id(), "r1");
    assert_eq!(request.identity().model.as_deref(), Some("gpt-4o"));
    request.edit_path("messages[0].content", "You help a lot.").unwrap();
    assert_eq!(request.original().to_vec(), came);
    assert!(request.is_dirty());
    assert!(String::from_utf8_lossy(&request.to_bytes()).contains("You help a lot."));
}

#[test]
fn root_has_one_section_per_message() {
    let request = conversation();
    let roots = request.sections().filter(|section| section.parent.is_none() && section.message_index.is_some());
    let roots: Vec<_> = roots.map(|section| (section.message_index, section.kind)).collect();
    let kinds = [SectionKind::System, SectionKind::User, SectionKind::Assistant, SectionKind::Tool];
    assert_eq!(roots, kinds.into_iter().enumerate().map(|(index, kind)| (Some(index), kind)).collect::<Vec<_>>());
}

#[test]
fn content_parts_have_own_path_and_kind() {
    let request = conversation();
    let image = by_path(&request, "messages[1].content[2]");
    assert_eq!((image.node, image.content), (NodeType::ContentPart, ContentKind::Image));
    assert!(matches!(image.editable, Editable::No(_)));
    let text = by_path(&request, "messages[1].content[1]");
    assert_eq!((text.content, text.editable), (ContentKind::Text, Editable::Yes));
    let context = by_path(&request, "messages[1].content[0]");
    assert_eq!(context.kind, SectionKind::Context);
    let anthropic = example("anthropic/thinking-and-parallel-tools").request();
    let kinds: BTreeSet<_> = anthropic.sections().map(|section| section.content).collect();
    assert!(kinds.contains(&ContentKind::Opaque) && kinds.contains(&ContentKind::CacheBreakpoint));
}

#[test]
fn tool_calls_have_name_and_arguments() {
    let request = conversation();
    let call = by_path(&request, "messages[2].tool_calls[0]");
    assert_eq!((call.node, call.label.as_str()), (NodeType::ToolCall, "Tool call · read"));
    let tool = call.tool.as_ref().unwrap();
    assert_eq!((tool.id.as_deref(), tool.name.as_deref()), (Some("c1"), Some("read")));
    assert_eq!(request.document().unwrap().text(tool.arguments.unwrap()).unwrap(), r#"{"path": "a"}"#);
    // The result refers to its call.
    let result = by_path(&request, "messages[3]");
    assert_eq!(result.label, "Tool result · read");
    assert_eq!(result.tool.as_ref().unwrap().name.as_deref(), Some("read"));
}

#[test]
fn only_leaves_are_edited_by_type() {
    let mut request = conversation();
    let cases = [
        ("messages[1].content[1].text", "Look!", EditTargetKind::ContentText),
        ("messages[2].tool_calls[0].function.arguments", "{}", EditTargetKind::ToolArguments),
        ("messages[1].name", "bob", EditTargetKind::MessageField),
        ("messages[3].tool_call_id", "c1", EditTargetKind::MessageField),
        ("requestOptions.temperature", "0.5", EditTargetKind::RequestOption),
        ("temperature", "0.25", EditTargetKind::RequestOption),
    ];
    for (path, value, kind) in cases {
        let op = request.edit_path(path, value).unwrap_or_else(|error| panic!("{path}: {error}")).clone();
        assert_eq!(op.target_kind, kind, "{path}");
        assert_eq!(op.target_path, path.trim_start_matches("requestOptions."));
    }
    let refused = request.edit_path("messages[1].content", "all of it");
    assert!(matches!(refused, Err(EditError::NotJson { .. })), "{refused:?}");
    assert!(refused.unwrap_err().hint().is_some());
    let sent = String::from_utf8(request.to_bytes().into_owned()).unwrap();
    assert!(sent.contains(r#""temperature":0.25"#), "editing an option changes what is sent: {sent}");
}

#[test]
fn missing_setting_is_added() {
    let mut request = conversation();
    request.edit_path("requestOptions.top_p", "0.9").unwrap();
    let sent: serde_json::Value = serde_json::from_slice(&request.to_bytes()).unwrap();
    assert_eq!(sent["top_p"], 0.9);
    request.undo().unwrap();
    assert!(!request.is_dirty());
}

#[test]
fn edit_ops_have_request_and_version() {
    let mut request = conversation();
    let first = request.edit_path("messages[1].name", "bob").unwrap().id.clone();
    let second = request.edit_path("messages[1].name", "eve").unwrap().id.clone();
    assert_eq!((first.request.as_str(), second.request.as_str()), ("r1", "r1"));
    assert!(second.version > first.version);
    request.undo();
    let third = request.edit_path("messages[1].name", "kim").unwrap().id.clone();
    assert!(third.version > second.version, "a number is not used twice");
}

#[test]
fn edit_ops_have_old_and_new_value() {
    let mut request = conversation();
    let first = request.edit_path("temperature", "0.5").unwrap().clone();
    let second = request.edit_path("temperature", "1").unwrap().clone();
    let pair = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
    assert_eq!(request.values(&first), pair("0.70", "0.5"), "as they are written");
    assert_eq!(request.values(&second), pair("0.5", "1"));
    assert_eq!(request.values(&second.inverted()), pair("1", "0.5"));
    let appended = request.append("more").unwrap().clone();
    assert_eq!(request.values(&appended), None);
}

#[test]
fn double_inversion_is_identity() {
    let mut request = conversation();
    let op = request.edit_path("messages[1].name", "bob").unwrap().clone();
    assert_ne!(op.inverted(), op);
    assert_eq!(op.inverted().inverted(), op);
    assert_eq!(op.inverted().id, op.id);
}

#[test]
fn history_holds_all_edit_kinds() {
    let mut request = conversation();
    let came = request.to_bytes().into_owned();
    let part = by_path(&request, "messages[1].content[1]").id;
    let message = by_path(&request, "messages[2]").id;
    let mut states = vec![came.clone()];
    let mut note = |request: &ModelRequest| states.push(request.to_bytes().into_owned());
    request.edit_section(part, "See").unwrap();
    note(&request);
    request.delete(message).unwrap();
    note(&request);
    request.append("And one more thing.").unwrap();
    note(&request);
    request.pin(part, None).unwrap();
    note(&request);
    request.edit_path("temperature", "1").unwrap();
    note(&request);
    request.restore(message).unwrap();
    note(&request);
    request.reset().unwrap();
    note(&request);
    assert_eq!(states.last(), Some(&came));
    for state in states.iter().rev().skip(1) {
        assert!(request.undo().is_some());
        assert_eq!(request.to_bytes(), state.as_slice());
    }
    assert!(request.undo().is_none());
    for state in &states[1..] {
        assert!(request.redo().is_some());
        assert_eq!(request.to_bytes(), state.as_slice());
    }
    assert!(request.redo().is_none());
}

#[test]
fn new_edit_clears_redo() {
    let mut request = conversation();
    request.edit_path("messages[1].name", "bob").unwrap();
    request.undo();
    assert_eq!(request.history().redo.len(), 1);
    request.edit_path("messages[1].name", "eve").unwrap();
    assert!(request.history().redo.is_empty() && request.redo().is_none());
}

#[test]
fn paths_follow_payload_targets_are_stable() {
    let mut request = conversation();
    let tool = by_path(&request, "messages[3]").id;
    let leaf = by_path(&request, "messages[3].content").leaf.unwrap();
    request.delete(by_path(&request, "messages[0]").id).unwrap();
    assert_eq!(request.raw_path(request.section(tool).unwrap()), "messages[2]");
    assert_eq!(request.section(tool).unwrap().message_index, Some(2));
    // The target is the same, although its path has changed.
    request.edit(leaf, "other").unwrap();
    assert_eq!(request.content(by_path(&request, "messages[2].content")), "other");
    let sent: serde_json::Value = serde_json::from_slice(&request.to_bytes()).unwrap();
    assert_eq!(sent["messages"][2]["content"], "other");
    request.undo();
    request.undo();
    assert_eq!(request.raw_path(request.section(tool).unwrap()), "messages[3]");
}

#[test]
fn restore_after_delete_returns_original_bytes() {
    let mut request = conversation();
    let came = request.to_bytes().into_owned();
    let id = by_path(&request, "messages[1].content[1]").id;
    request.delete(id).unwrap();
    assert!(request.section(id).unwrap().deleted);
    assert!(!String::from_utf8_lossy(&request.to_bytes()).contains("Look"));
    assert!(matches!(request.delete(id), Err(EditError::Already { .. })));
    request.restore(id).unwrap();
    assert_eq!(request.to_bytes(), came);
    assert!(matches!(request.restore(id), Err(EditError::Already { .. })));
    assert!(!request.is_dirty(), "nothing is left to be told from what came");
}

#[test]
fn reset_restores_original_and_is_undoable() {
    let mut request = conversation();
    assert!(request.reset().is_none(), "there is nothing to reset");
    request.edit_path("messages[0].content", "x").unwrap();
    request.append("y").unwrap();
    let edited = request.to_bytes().into_owned();
    request.reset().unwrap();
    assert!(!request.is_dirty());
    request.undo().unwrap();
    assert_eq!(request.to_bytes(), edited);
}

#[test]
fn pinning_changes_display_order_only() {
    let mut request = conversation();
    let came = request.to_bytes().into_owned();
    let [first, second, third] = ["messages[0]", "messages[2]", "messages[3]"].map(|path| by_path(&request, path).id);
    for id in [first, second, third] {
        request.pin(id, None).unwrap();
    }
    request.pin(third, Some(first)).unwrap();
    assert_eq!(request.pinned().map(|section| section.id).collect::<Vec<_>>(), [third, first, second]);
    request.unpin(first).unwrap();
    assert!(request.is_pinned(second) && !request.is_pinned(first));
    request.undo();
    assert_eq!(request.pinned().count(), 3);
    assert_eq!(request.to_bytes(), came);
    assert!(!request.is_dirty());
}

#[test]
fn tools_and_settings_start_collapsed() {
    let request = example("anthropic/first-request").request();
    let is_collapsed =
        |node| request.sections().filter(move |section| section.node == node).all(|section| section.collapsed);
    assert!(is_collapsed(NodeType::ToolSchema));
    assert!(is_collapsed(NodeType::RequestOption));
}

#[test]
fn tags_are_sections_edited_alone() {
    let mut request = conversation();
    let came = String::from_utf8(request.to_bytes().into_owned()).unwrap();
    let tag = by_path(&request, "messages[1].content[0]<context>").id;
    request.edit_section(tag, "\nother.ts\n").unwrap();
    let sent = String::from_utf8(request.to_bytes().into_owned()).unwrap();
    assert_eq!(sent, came.replace("file.ts", "other.ts"));
    request.delete(tag).unwrap();
    let sent = String::from_utf8(request.to_bytes().into_owned()).unwrap();
    assert_eq!(sent, came.replace(r"<context>\nfile.ts\n</context>", ""));
}

#[test]
fn unknown_format_has_one_raw_section() {
    for name in ["other/broken-json", "other/invalid-utf8", "other/empty-body", "other/unknown-api"] {
        let example = example(name);
        let mut request = example.request();
        let sections: Vec<_> = request.sections().cloned().collect();
        assert_eq!(sections.len(), 1, "{name}");
        assert_eq!((sections[0].label.as_str(), sections[0].node), ("Raw prompt", NodeType::Raw));
        assert_eq!(request.to_bytes(), example.body, "{name}: still forwardable");
        assert!(request.unknown_format_reason().is_some());
        assert!(request.blocking_problems().is_empty());
        if name == "other/broken-json" {
            request.edit_section(sections[0].id, "{}").unwrap();
            assert_eq!(request.to_bytes(), &b"{}"[..]);
            request.undo();
            assert_eq!(request.to_bytes(), example.body);
        }
        if name == "other/invalid-utf8" {
            assert!(matches!(request.edit_section(sections[0].id, "{}"), Err(EditError::ReadOnly { .. })));
        }
    }
}

#[test]
fn remote_content_is_read_only() {
    let mut request = example("openai-responses/previous-response").request();
    let remote = request.sections().find(|section| section.node == NodeType::Remote).unwrap().clone();
    assert_eq!(remote.kind, SectionKind::History);
    assert!(matches!(request.edit_section(remote.id, "x"), Err(EditError::ReadOnly { .. })));
    assert!(matches!(request.edit_path("previous_response_id", "x"), Err(EditError::ReadOnly { .. })));
}

#[test]
fn attribution_block_is_read_only() {
    let mut request = example("anthropic/first-request").request();
    let block = request.sections().find(|section| section.label == "Attribution").unwrap().clone();
    assert!(matches!(request.edit_section(block.id, "x"), Err(EditError::ReadOnly { .. })));
    assert!(matches!(request.edit_path("system[0].text", "x"), Err(EditError::ReadOnly { .. })));
    assert!(matches!(request.delete(block.id), Err(EditError::NotDeletable { .. })));
}

#[test]
fn diff_shows_sections_and_whole_request() {
    let mut request = conversation();
    assert!(request.diff().is_empty());
    request.edit_path("messages[1].content[1].text", "Look\nagain").unwrap();
    request.delete(by_path(&request, "messages[0]").id).unwrap();
    request.append("more").unwrap();
    insta::assert_snapshot!(request.unified_diff(3));
}

#[test]
fn shrink_keeps_head_and_tail() {
    let long: String = (1..=500).map(|number| format!("line {number}\\n")).collect();
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"read","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":"{long}"}}]}}"#
    );
    let mut request = chat(&body);
    let id = by_path(&request, "messages[2]").id;
    let op = request.shrink(id, sayso_wire::ShrinkLimits { head: 60, tail: 40 }).unwrap().clone();
    assert_eq!((op.target_kind, op.target_path.as_str()), (EditTargetKind::Shrinking, "messages[2].content"));
    insta::assert_snapshot!(request.content(by_path(&request, "messages[2].content")));
    let again = request.shrink(id, sayso_wire::ShrinkLimits::default());
    assert!(matches!(again, Err(EditError::Already { .. })), "{again:?}");
    let user = by_path(&request, "messages[0]").id;
    assert!(matches!(request.shrink(user, sayso_wire::ShrinkLimits::default()), Err(EditError::NotShrinkable { .. })));
    request.undo();
    assert_eq!(request.to_bytes(), body.as_bytes());
}

#[test]
fn edit_errors_name_path_and_cause() {
    let mut request = conversation();
    let errors: Vec<String> = ["messages[9].content", "messages[", "messages[0].nothing.there", "temperature"]
        .into_iter()
        .map(|path| {
            let error = request.edit_path(path, "not json").unwrap_err();
            format!("{error} ({})", error.hint().unwrap_or_default())
        })
        .collect();
    insta::assert_snapshot!(errors.join("\n"));
    assert!(!request.is_dirty());
}
