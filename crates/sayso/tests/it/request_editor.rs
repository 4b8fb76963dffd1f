//! A value of a request in a person's editor, while others go on.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::{Value, json};

use crate::request_agent::{SESSION, Stage, request};

/// A stage on which a request waits.
fn waiting() -> Stage {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let mut body = request("Fix the build.", "fn main() {}\n");
    let tool = json!({"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}});
    body["tools"].as_array_mut().unwrap().push(tool);
    // The test does not wait for its response.
    drop(stage.send(&body));
    assert_eq!(stage.waiting(1), ["1"]);
    stage
}

/// Runs a command with an editor that does this, in which `$1` is the file and `sayso` is at hand.
fn with_editor(stage: &Stage, script: &str, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_sayso");
    let folder = tempfile::tempdir().unwrap();
    let editor = folder.path().join("editor.sh");
    std::fs::write(&editor, format!("#!/bin/sh\nset -e\nsayso() {{ \"{program}\" \"$@\" >/dev/null; }}\n{script}\n"))
        .unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let environment = stage.scene.environment();
    let own = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let environment: Vec<(&str, &str)> =
        own.into_iter().filter(|(name, _)| *name != "EDITOR").chain([("EDITOR", editor.to_str().unwrap())]).collect();
    crate::programs::run_with(&stage.scene.path(""), program, arguments, &environment, b"")
}

fn body(stage: &Stage) -> Value {
    serde_json::from_slice(&stage.scene.run(&["request", "export", "1", "--format", "body"], b"").stdout).unwrap()
}

/// Returns the saved text by the path in the message.
fn kept(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let path = said
        .lines()
        .find_map(|line| line.strip_prefix("note: what you wrote is kept in "))
        .unwrap_or_else(|| panic!("{said}"));
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::remove_file(path).unwrap();
    text
}

#[test]
fn editor_value_goes_to_its_own_path() {
    let stage = waiting();
    let first = body(&stage);
    let script = "sayso request delete 1 'tools[0]'\necho mine >\"$1\"";
    let output = with_editor(&stage, script, &["request", "edit", "1", "tools[0].description"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert_eq!(kept(&output), "mine");
    assert_eq!(body(&stage)["tools"][0], first["tools"][1]);
}

#[test]
fn editor_value_with_old_revision_is_rejected() {
    let stage = waiting();
    let script = "sayso request edit 1 max_tokens=5 'messages[0].content[0].text=theirs'\necho mine >\"$1\"";
    let output = with_editor(&stage, script, &["request", "edit", "1", "messages[0].content[0].text"]);
    assert_eq!((output.status.code(), kept(&output).as_str()), (Some(4), "mine"));
    assert_eq!(body(&stage)["messages"][0]["content"][0]["text"], "theirs");
    // Without concurrent edits, several values are edited one after the other.
    let output = with_editor(
        &stage,
        "echo \"$(cat \"$1\") and mine\" >\"$1\"",
        &["request", "edit", "1", "messages[0].content[0].text", "system[0].text"],
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(body(&stage)["messages"][0]["content"][0]["text"], "theirs and mine");
    assert!(body(&stage)["system"][0]["text"].as_str().unwrap().ends_with(" and mine"));
}

#[test]
fn rejected_editor_text_is_saved() {
    let stage = waiting();
    let first = body(&stage);
    let output = with_editor(&stage, "echo '{ broken' >\"$1\"", &["request", "edit", "1", "tools[0].input_schema"]);
    assert_eq!((output.status.code(), kept(&output).as_str()), (Some(2), "{ broken"), "{output:?}");
    let output = with_editor(&stage, "echo more >>\"$1\"\nexit 3", &["request", "edit", "1", "system[0].text"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("exit status: 3"), "{output:?}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // Left as it was is no failure, and JSON for programs all the same.
    let output = with_editor(&stage, "true", &["request", "edit", "1", "system[0].text", "--json"]);
    assert!(output.status.success());
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), json!({}));
    assert_eq!(body(&stage), first);
}

#[test]
fn every_request_command_prints_json() {
    let stage = waiting();
    let commands = "list|show 1|edit 1 max_tokens=7|append 1 more|delete 1 messages[0]|restore 1 messages[0]|undo 1|redo 1\
        |pin 1 messages[0]|unpin 1 messages[0]|diff 1|export 1|export 1 --format body|export 1 --format curl\
        |export 1 --format patch|save 1 --scope workspace|reset 1|mode|mode pause-next|overrides\
        |overrides remove --scope workspace|monitor|resume 1|replay 1|cancel 2";
    for command in commands.split('|') {
        if command == "cancel 2" {
            // The replay has taken a number, so that the next request has the one after it.
            drop(stage.send(&request("Another.", "fn main() {}\n")));
            let waiting = stage.waiting(1).remove(0);
            let output = stage.scene.run(&["request", "cancel", &waiting, "--json"], b"");
            assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok(), "cancel: {output:?}");
            continue;
        }
        if command == "replay 1" {
            // Its agent gets the response first.
            stage.model.wait_until(|received| !received.is_empty());
        }
        let arguments: Vec<&str> = ["request"].into_iter().chain(command.split(' ')).chain(["--json"]).collect();
        let output = stage.scene.run(&arguments, b"");
        let said = serde_json::from_slice::<Value>(&output.stdout);
        assert!(said.is_ok() && matches!(output.status.code(), Some(0 | 1)), "{command}: {output:?}");
    }
}

#[test]
fn mode_names_sessions_with_own_mode() {
    let stage = waiting();
    stage.said(&["request", "edit", "1", "messages[0].content[0].text=always", "--from-now-on", "session"]);
    stage.said(&["request", "mode", "auto-apply", "--session", SESSION]);
    let said = stage.said(&["request", "mode", "normal"]);
    assert!(said.contains("All sessions: Send normally"), "{said}");
    assert!(said.contains("has a mode of its own: Auto-apply saved edits"), "{said}");
    let removed = stage.said(&["request", "overrides", "remove", "--scope", "session", "--session", SESSION]);
    assert!(removed.contains("Removed 1 saved edit") && removed.contains("note: the next turn waits"), "{removed}");
    stage.said(&["request", "mode", "inherit", "--session", SESSION]);
    assert!(!stage.said(&["request", "mode", "normal"]).contains("of its own"));
}

#[test]
fn review_names_held_requests() {
    let stage = waiting();
    let said = stage.said(&["review"]);
    assert!(said.contains("1 request waits: `sayso request list --waiting`") && !said.contains("Nothing"), "{said}");
}
