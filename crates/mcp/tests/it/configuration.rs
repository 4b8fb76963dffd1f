//! Tests of the configuration.

use sayso_mcp::{ServerConfig, ServerTransport};
use serde_json::{Value, json};

fn parse(value: Value) -> ServerConfig {
    serde_json::from_value(value).unwrap()
}

#[test]
fn transport_follows_fields() {
    let local = parse(json!({ "command": "npx", "args": ["-y", "x"], "env": { "KEY": "secret" } }));
    assert_eq!(local.transport("a"), Ok(ServerTransport::Process { command: "npx" }));
    assert!(!format!("{local:?}").contains("secret"));
    let remote = parse(json!({ "url": "https://e.org/mcp", "headers": { "authorization": "Bearer secret" } }));
    assert_eq!(remote.transport("a"), Ok(ServerTransport::Http { url: "https://e.org/mcp" }));
    assert!(!format!("{remote:?}").contains("secret"));
    assert_eq!(serde_json::from_value::<ServerConfig>(json!(remote)).unwrap(), remote);
}

#[test]
fn contradicting_fields_are_named() {
    for (config, word) in [
        (json!({}), "neither"),
        (json!({ "command": "a", "url": "http://b" }), "both"),
        (json!({ "command": " " }), "`command` is empty"),
        (json!({ "url": "ftp://b" }), "http://"),
        (json!({ "url": "http://b", "args": ["x"] }), "`args`"),
        (json!({ "command": "a", "headers": { "x": "y" } }), "`headers`"),
        (json!({ "command": "a", "call_timeout_ms": 0 }), "time limit"),
    ] {
        let error = parse(config.clone()).transport("files").unwrap_err().to_string();
        assert!(error.contains("`files`") && error.contains(word), "{config}: {error}");
    }
    assert!(parse(json!({ "command": "a" })).transport("a__b").is_err());
    assert!(
        serde_json::from_value::<ServerConfig>(json!({ "comand": "a" })).unwrap_err().to_string().contains("comand")
    );
}
