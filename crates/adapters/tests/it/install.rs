//! Registration of hooks with agents.

use sayso_adapters::Agent;
use sayso_adapters::hook::{
    TIMEOUT_SECONDS, claude_settings, claude_settings_with, codex_arguments, codex_trust_advice, codex_trust_keys,
    disabling_argument,
};
use serde_json::json;

#[test]
fn claude_settings_register_events_and_enable_hooks() {
    let settings = claude_settings("/opt/sayso hook claude");
    assert_eq!(settings["disableAllHooks"], false);
    let hook = json!({"type": "command", "command": "/opt/sayso hook claude", "timeout": TIMEOUT_SECONDS});
    assert_eq!(settings["hooks"]["PreToolUse"], json!([{"matcher": "*", "hooks": [hook]}]));
    let events: Vec<&String> = settings["hooks"].as_object().unwrap().keys().collect();
    assert_eq!(
        events,
        [
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "SubagentStop",
            "SessionEnd"
        ]
    );
}

#[test]
fn claude_settings_keep_the_users_settings() {
    let theirs = json!({"matcher": "Write", "hooks": [{"type": "command", "command": "mine"}]});
    let user =
        json!({"model": "m", "disableAllHooks": true, "hooks": {"PreToolUse": [theirs], "Notification": [theirs]}});
    let settings = claude_settings_with(user, "sayso hook claude");
    assert_eq!((&settings["model"], &settings["disableAllHooks"]), (&json!("m"), &json!(false)));
    assert_eq!(settings["hooks"]["PreToolUse"][0], theirs);
    assert_eq!(settings["hooks"]["PreToolUse"][1]["hooks"][0]["command"], "sayso hook claude");
    assert_eq!(settings["hooks"]["Notification"], json!([theirs]));
    for odd in [json!(null), json!([1]), json!({"hooks": 7})] {
        assert_eq!(claude_settings_with(odd, "x")["hooks"], claude_settings("x")["hooks"]);
    }
}

#[test]
fn codex_arguments_are_constant_toml() {
    let arguments = codex_arguments("\"/opt/a b/sayso\" hook codex");
    assert_eq!(arguments, codex_arguments("\"/opt/a b/sayso\" hook codex"));
    assert_eq!(arguments.iter().filter(|argument| *argument == "-c").count() * 2, arguments.len());
    assert!(arguments.contains(&format!(
        r#"hooks.PreToolUse=[{{matcher="*",hooks=[{{type="command",command="\"/opt/a b/sayso\" hook codex",timeout={TIMEOUT_SECONDS}}}]}}]"#
    )));
    let advice = codex_trust_advice();
    assert!(advice.contains("sayso run -- codex") && advice.contains("does not write this trust"));
}

#[test]
fn codex_trust_keys_cover_each_event() {
    let keys: Vec<String> = codex_trust_keys().collect();
    let named = |event: &str| keys.contains(&format!("/<session-flags>/config.toml:{event}:0:0"));
    assert!(named("pre_tool_use") && named("stop") && named("user_prompt_submit"), "{keys:?}");
    assert_eq!(keys.len() * 2, codex_arguments("x").len());
}

#[test]
fn arguments_that_disable_hooks_are_found() {
    let off = |agent, line: &str| {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        disabling_argument(agent, &arguments).map(str::to_owned)
    };
    assert_eq!(off(Agent::Claude, "-p hello --bare"), Some("--bare".to_owned()));
    assert_eq!(off(Agent::Claude, "--safe-mode"), Some("--safe-mode".to_owned()));
    assert_eq!(off(Agent::Claude, "-p hello -- --bare"), None);
    for line in [
        "exec --disable hooks x",
        "--disable=hooks",
        "-c features.hooks=false",
        "--config features.hooks=false",
        "--config=features.hooks=false",
        "-cfeatures.hooks=false",
        "-c features.codex_hooks=false",
        "-c features={hooks=false}",
        "-c \"features\".hooks=false",
        // A later setting replaces sayso's.
        "-c hooks.PreToolUse=[]",
        "-chooks.PreToolUse=[]",
        "--config=hooks={}",
        "-c hooks.\"PreToolUse\"=[]",
        "exec -c hooks.state={} x",
    ] {
        assert!(off(Agent::Codex, line).is_some(), "{line}");
    }
    for line in [
        "exec hooks",
        "--disable other",
        "--enable hooks",
        "-c features.hooks=true",
        "-c model=x features.hooks=false",
        "-c model=hooks",
        "-c hooksmith=1",
        "-c hooks.Notification=[]",
        "-c features={web=true}",
    ] {
        assert_eq!(off(Agent::Codex, line), None, "{line}");
    }
}
