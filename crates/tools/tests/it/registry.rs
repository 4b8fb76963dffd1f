//! Tests of the registry: subsets, tools of MCP servers, tools that need a session.

use sayso_tools::{ExternalTool, Registry, Step};
use serde_json::{Value, json};

use crate::Scene;

fn external(server: &str, tool: &str) -> ExternalTool {
    ExternalTool {
        name: format!("mcp__{server}__{tool}"),
        server: server.to_owned(),
        tool: tool.to_owned(),
        description: String::new(),
        schema: json!({ "type": "object" }),
    }
}

fn names(registry: &Registry) -> Vec<String> {
    registry.definitions().into_iter().map(|definition| definition.name).collect()
}

#[test]
fn subset_keeps_named_tools() {
    let mut subset = Registry::builtin().only(["Grep", "Read", "Grep", "mcp__files__*", "mcp__web__get"]).unwrap();
    subset.add_external([
        external("web", "put"),
        external("web", "get"),
        external("files", "write"),
        external("files", "read"),
    ]);
    assert_eq!(names(&subset), ["Grep", "Read", "mcp__files__read", "mcp__files__write", "mcp__web__get"]);
    let scene = Scene::agent(&[]);
    let denied = scene.with(|_, context| subset.prepare("Write", &json!({}), context)).unwrap_err();
    assert!(denied.kind.name() == "invalid_args" && denied.hint.unwrap().contains("mcp__files__read"));
    let error = Registry::builtin().only(["Read", "Raed"]).unwrap_err();
    assert!(error.message.contains("`Raed`") && error.hint.unwrap().contains("Read"));
    let narrower = subset.only(["Read", "mcp__web__get"]).unwrap();
    assert_eq!(names(&narrower), ["Read", "mcp__web__get"]);
    assert_eq!(names(&subset.only(["Read"]).unwrap()), ["Read"]);
    assert!(subset.only(["Write"]).is_err(), "a subset has no more than its origin");
}

#[test]
fn external_call_names_server() {
    let mut registry = Registry::builtin();
    registry.add_external([external("my files", "write file")]);
    let scene = Scene::agent(&[]);
    let call =
        |arguments: Value| scene.with(|_, context| registry.prepare("mcp__my files__write file", &arguments, context));
    let (server, tool) = ("my files".to_owned(), "write file".to_owned());
    assert_eq!(call(json!({ "a": 1 })).unwrap(), Step::CallMcp { server, tool, arguments: json!({ "a": 1 }) });
    assert_eq!(call(json!([])).unwrap_err().kind.name(), "invalid_args");
}

#[test]
fn definitions_are_stable_and_valid() {
    let registry = Registry::builtin();
    assert_eq!(registry.definitions(), registry.definitions());
    for definition in registry.definitions() {
        assert_eq!(definition.schema["type"], json!("object"), "{}", definition.name);
        assert!(definition.name.chars().all(|character| character.is_ascii_alphanumeric()));
        assert!(definition.description.len() < 400 && definition.description.ends_with('.'), "{}", definition.name);
    }
}

#[test]
fn prepare_needs_grant() {
    let scene = Scene::new(&[]).read(&["**"]);
    assert_eq!(scene.error("Read", &json!({ "path": "a" })).kind.name(), "tool_denied");
    assert_eq!(scene.text("Echo", &json!({ "text": "hi" })), "hi");
}

#[test]
fn run_without_gate_is_unavailable() {
    let scene = Scene::agent(&[("a", b"a\n")]);
    for (tool, arguments) in [
        ("Edit", json!({ "path": "a", "old_string": "a", "new_string": "b" })),
        ("ApplyPatch", json!({ "input": "*** Begin Patch\n*** Delete File: a\n*** End Patch\n" })),
        ("Exec", json!({ "command": "touch x" })),
        ("Fetch", json!({ "url": "https://example.org" })),
        ("TodoWrite", json!({ "todos": [{ "text": "x" }] })),
        ("TodoRead", json!({})),
        ("Ask", json!({ "question": "?" })),
        ("Delegate", json!({ "description": "a", "prompt": "b" })),
    ] {
        assert_eq!(scene.kind(tool, &arguments), "unavailable", "{tool}");
    }
    assert_eq!(std::fs::read(scene.directory.path().join("a")).unwrap(), b"a\n");
}
