//! Tests of the steps of `Exec`, `Fetch`, `TodoWrite`, `Ask` and `Delegate`.

use std::time::Duration;

use sayso_tools::{
    CommandMode, FetchResponse, FetchStep, SessionAction, SessionStep, Step, TerminalReason, TodoState, TodoWrite,
};
use serde_json::{Value, json};

use crate::Scene;

fn step(tool: &str, arguments: &Value) -> Step {
    Scene::agent(&[("web/x", b"")]).prepare(tool, arguments).unwrap()
}

fn invalid(tool: &str, arguments: &Value) -> String {
    let error = Scene::agent(&[("web/x", b"")]).error(tool, arguments);
    assert_eq!(error.kind.name(), "invalid_args", "{arguments}: {}", error.message);
    error.message
}

fn mode(arguments: &Value) -> CommandMode {
    match step("Exec", arguments) {
        Step::RunCommand(command) => command.mode,
        step => panic!("{step:?}"),
    }
}

#[test]
fn exec_chooses_place_of_command() {
    let Step::RunCommand(command) = step("Exec", &json!({ "command": "ls", "directory": "web", "timeout_ms": 5 }))
    else {
        panic!("no command");
    };
    assert_eq!((command.directory.as_str(), command.timeout), ("web", Duration::from_millis(5)));
    assert_eq!(command.mode, CommandMode::Foreground);
    let terminal = |reason| CommandMode::UserTerminal { reason };
    let heavy = |program: &str| TerminalReason::Heavy { program: program.to_owned() };
    let interactive = |program: &str| TerminalReason::Interactive { program: program.to_owned() };
    assert_eq!(mode(&json!({ "command": "npm install" })), terminal(heavy("npm install")));
    assert_eq!(mode(&json!({ "command": "vim x", "background": true })), terminal(interactive("vim")));
    assert_eq!(mode(&json!({ "command": "ls", "in_user_terminal": true })), terminal(TerminalReason::Requested));
    let wait = Duration::from_millis(9);
    assert_eq!(
        mode(&json!({ "command": "npm run dev", "background": true, "wait_ms": 9 })),
        CommandMode::Background { wait }
    );
}

#[test]
fn exec_session_is_continued() {
    let proceed = |arguments: Value| match step("Exec", &arguments) {
        Step::ContinueCommand(SessionStep { session, action }) => (session, action),
        step => panic!("{step:?}"),
    };
    let (session, wait) = ("7".to_owned(), Duration::from_secs(5));
    assert_eq!(proceed(json!({ "session": "7" })), (session.clone(), SessionAction::Poll { wait }));
    let input = "y\n".to_owned();
    let written = proceed(json!({ "session": "7", "input": "y\n" }));
    assert_eq!(written, (session.clone(), SessionAction::Write { input, wait }));
    assert_eq!(proceed(json!({ "session": "7", "kill": true })), (session, SessionAction::Kill));
}

#[test]
fn exec_rejects_bad_arguments() {
    for (arguments, word) in [
        (json!({}), "nothing to run"),
        (json!({ "command": " " }), "empty"),
        (json!({ "command": "a\0b" }), "NUL"),
        (json!({ "command": "a", "session": "1" }), "exclude"),
        (json!({ "command": "a", "input": "x" }), "need `session`"),
        (json!({ "command": "a", "timeout_ms": 0 }), "at least 1"),
        (json!({ "command": "a", "timeout_ms": 1_800_001 }), "1800000"),
        (json!({ "session": "1", "input": "x", "kill": true }), "exclude"),
        (json!({ "session": "1", "background": true }), "`background` has no effect"),
    ] {
        let message = invalid("Exec", &arguments);
        assert!(message.contains(word), "{arguments}: {message}");
    }
    let scene = Scene::agent(&[("web/x", b"")]);
    for directory in ["absent", "web/x"] {
        let error = scene.error("Exec", &json!({ "command": "ls", "directory": directory }));
        assert_eq!(error.kind.name(), "tool_failed", "{directory}");
    }
}

fn fetch(url: &str) -> FetchStep {
    match step("Fetch", &json!({ "url": url })) {
        Step::Fetch(step) => step,
        step => panic!("{step:?}"),
    }
}

#[test]
fn fetch_accepts_web_urls_only() {
    let accepted = fetch(" https://Example.org/a?b#c ");
    assert_eq!((accepted.url.as_str(), accepted.host.as_str()), ("https://example.org/a?b", "example.org"));
    for url in
        ["file:///etc/passwd", "ftp://example.org", "https://u:p@example.org", "example.org", "https://", "data:,x"]
    {
        invalid("Fetch", &json!({ "url": url }));
    }
}

#[test]
fn fetch_redirect_stays_on_host() {
    let first = fetch("http://example.org/a/b");
    let next = first.redirect("../c?d").unwrap();
    assert_eq!((next.url.as_str(), next.max_redirects), ("http://example.org/c?d", first.max_redirects - 1));
    let secure = first.redirect("https://example.org/").unwrap();
    assert_eq!(secure.redirect("http://example.org/").unwrap_err().kind.name(), "tool_failed");
    for elsewhere in ["https://evil.example/", "//127.0.0.1/", "http://example.org:8080/", "file:///etc/passwd"] {
        let error = first.redirect(elsewhere).unwrap_err();
        assert!(error.message.contains("another origin"), "{elsewhere}: {}", error.message);
    }
    assert!(first.redirect("http://u@example.org/").is_err());
    let mut step = first;
    for _ in 0..5 {
        step = step.redirect("/").unwrap();
    }
    assert!(step.redirect("/").unwrap_err().message.contains("more than 5 times"));
}

#[test]
fn fetch_output_is_text_and_bounded() {
    let step = fetch("https://example.org");
    let response = |status, content_type: &str, body: &[u8]| FetchResponse {
        status,
        content_type: content_type.to_owned(),
        body: body.to_vec(),
        is_truncated: false,
    };
    let html = step.output(&response(200, "text/html; charset=utf-8", b"<p>a<script>x</script>"));
    assert_eq!((html.text.as_str(), html.is_error), ("200 text/html\n\na\n", false));
    let failed = step.output(&response(404, "application/json", b"{}"));
    assert!(failed.is_error && failed.text.ends_with("\n\n{}"));
    assert!(step.output(&response(200, "image/png", b"\x89PNG\0")).text.contains("[binary content, 5 bytes]"));
    let long = step.output(&response(200, "text/plain", "é".repeat(100_000).as_bytes()));
    assert!(long.text.len() < 70_000 && long.text.ends_with("more bytes of text are not shown]"));
}

#[test]
fn todo_write_creates_changes_and_removes() {
    let arguments = json!({
        "todos": [{ "text": "a\n b" }, { "id": "1", "state": "in_progress" }],
        "remove": ["2"],
    });
    let put = |id: Option<&str>, text: Option<&str>, state| TodoWrite::Put {
        id: id.map(str::to_owned),
        text: text.map(str::to_owned),
        state,
    };
    let expected = vec![
        put(None, Some("a b"), None),
        put(Some("1"), None, Some(TodoState::InProgress)),
        TodoWrite::Remove { id: "2".to_owned() },
    ];
    assert_eq!(step("TodoWrite", &arguments), Step::WriteTodos(expected));
    assert_eq!(step("TodoRead", &json!({})), Step::ReadTodos);
    for arguments in [
        json!({}),
        json!({ "todos": [{}] }),
        json!({ "todos": [{ "id": "", "text": "a" }] }),
        json!({ "todos": [{ "id": "1", "text": " " }] }),
        json!({ "todos": [{ "text": "a", "state": "maybe" }] }),
    ] {
        invalid("TodoWrite", &arguments);
    }
}

#[test]
fn ask_and_delegate_check_arguments() {
    assert!(
        matches!(step("Ask", &json!({ "question": "a?", "options": ["b"] })), Step::Ask(ask) if ask.options == ["b"])
    );
    invalid("Ask", &json!({ "question": " " }));
    invalid("Ask", &json!({ "question": "a?", "options": vec!["x"; 11] }));
    let delegated =
        step("Delegate", &json!({ "description": "a", "prompt": "b", "tools": ["Read"], "scenario": "ASK" }));
    assert!(matches!(delegated, Step::Delegate(delegation) if delegation.scenario.as_deref() == Some("ASK")));
    invalid("Delegate", &json!({ "description": "a", "prompt": "" }));
    invalid("Delegate", &json!({ "description": "a", "prompt": "b", "tools": [] }));
}
