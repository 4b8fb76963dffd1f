//! Credentials in the body of a request: sent as they are, masked in all that a person or a file gets.

use std::path::Path;

use serde_json::{Value, json};

use crate::request_agent::{Stage, request};

const TOKEN: &str = "mcp-7f3kQ9-Lm2x";
const TOKEN_AT: &str = "mcp_servers[0].authorization_token";

/// A token with the shape of an issuer, put together here so that no scanner finds it in this file.
fn shaped() -> String {
    format!("ghp_{}", "Q7zK2mWxB4tNj5Rd8Yp3".repeat(2))
}

fn body() -> Value {
    let mut body = request(&format!("EDIT it with {}.", shaped()), r#"{"password": "hunter2-hunter2"}"#);
    body["mcp_servers"] = json!([{"type": "url", "url": "https://x.example", "authorization_token": TOKEN}]);
    body["api_key"] = json!("k-33-api-44");
    body
}

fn assert_masked(text: &str, place: &str) {
    for secret in [TOKEN, &shaped()["ghp_".len()..], "hunter2-hunter2", "k-33-api-44", "mcp-new-token-1"] {
        assert!(!text.contains(secret), "{place} has {secret}: {text}");
    }
}

/// Everything that shows a request, and everything that is stored.
fn assert_masked_everywhere(stage: &Stage) {
    for arguments in [
        &["request", "show", "1"][..],
        &["request", "show", "1", "--full"],
        &["request", "show", "1", "--json"],
        &["request", "show", "1", "--section", "mcp_servers"],
        &["request", "list", "--json"],
        &["request", "diff", "1"],
        &["request", "diff", "1", "--json"],
        &["request", "export", "1", "--format", "json"],
        &["request", "export", "1", "--format", "body"],
        &["request", "export", "1", "--format", "patch"],
        &["request", "export", "1", "--format", "curl"],
        &["log", "--json"],
    ] {
        let said = stage.said(arguments);
        assert!(!said.contains("Error"), "{said}");
        assert_masked(&said, &arguments.join(" "));
    }
    assert_masked_files(&stage.scene.state_path());
}

fn assert_masked_files(folder: &Path) {
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let kind = file.file_type().unwrap();
        if kind.is_dir() {
            assert_masked_files(&file.path());
        } else if kind.is_file() {
            let bytes = std::fs::read(file.path()).unwrap();
            assert_masked(&String::from_utf8_lossy(&bytes), &file.path().display().to_string());
        }
    }
}

#[test]
fn credentials_are_masked_wherever_a_request_is_shown() {
    let stage = Stage::new("");
    stage.said(&["request", "mode", "pause-every"]);
    let agent = stage.send(&body());
    stage.waiting(1);
    let shown = stage.said(&["request", "show", "1"]);
    let redacted =
        shown.lines().find(|line| line.starts_with("redacted: 4 values: ")).unwrap_or_else(|| panic!("{shown}"));
    for path in
        [TOKEN_AT, "messages[0].content[0].text (github_token)", "messages[2].content[0].content (password)", "api_key"]
    {
        assert!(redacted.contains(path), "{redacted}");
    }
    assert_masked_everywhere(&stage);
    // An editor has the values, and what it leaves alone is sent as it came.
    let edited = stage.said(&["request", "edit", "1", "messages[0].content[0]"]);
    assert!(edited.contains("Edited messages[0].content[0].text in request 1.\n"), "{edited}");
    let edited = stage.said(&["request", "edit", "1", "mcp_servers[0].authorization_token=mcp-new-token-1"]);
    assert!(edited.contains("Edited mcp_servers[0].authorization_token in request 1"), "{edited}");
    assert_masked_everywhere(&stage);
    stage.said(&["request", "resume", "1"]);
    assert_eq!(agent.join().unwrap().status, 200);
    let mut expected = body();
    expected["messages"][0]["content"][0]["text"] = json!(format!("edited it with {}.", shaped()));
    expected["mcp_servers"][0]["authorization_token"] = json!("mcp-new-token-1");
    assert_eq!(stage.model.received()[0].raw, expected.to_string().as_bytes());
    assert_masked_everywhere(&stage);
    let exported = stage.said(&["request", "export", "1", "--format", "curl"]);
    assert!(
        exported.contains("note: credentials are not exported; put them in before you send it: 4 values: "),
        "{exported}"
    );
    stage.end();
}

#[test]
fn replay_after_a_restart_names_the_redacted_values() {
    let stage = Stage::new("");
    assert_eq!(stage.send(&body()).join().unwrap().status, 200);
    let replayed = stage.said(&["request", "replay", "1"]);
    assert!(replayed.contains("Sent again as request 2: status 200."), "{replayed}");
    assert_eq!(stage.model.received()[1].raw, body().to_string().as_bytes());
    let stage = stage.again();
    let refused = stage.said(&["request", "replay", "1"]);
    assert!(
        refused.contains("Error: cannot replay request 1: its body has credentials that are not recorded: "),
        "{refused}"
    );
    assert!(refused.contains(TOKEN_AT) && refused.ends_with("--- exit 2\n"), "{refused}");
    assert_eq!(stage.model.received().len(), 2);
    assert_masked_everywhere(&stage);
    stage.end();
}
