//! Registration of hooks for one run of an agent. The user's configuration files stay unchanged.

use serde_json::{Value, json};

use crate::Agent;

/// Time that the agents wait for a hook that may ask a person. Afterwards both let the call through.
pub const TIMEOUT_SECONDS: u32 = 24 * 60 * 60;
/// Time that the agents wait for a hook that asks no person.
const SHORT_TIMEOUT_SECONDS: u32 = 60;

const CLAUDE_EVENTS: [&str; 8] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStop",
    "SessionEnd",
];
const CODEX_EVENTS: [&str; 7] =
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStop", "SessionEnd"];

/// `Stop` may block until the turn's changes are reviewed.
fn timeout_seconds(event: &str) -> u32 {
    if matches!(event, "PreToolUse" | "Stop" | "SubagentStop") { TIMEOUT_SECONDS } else { SHORT_TIMEOUT_SECONDS }
}

/// Returns the value of Claude Code's `--settings` option. Claude Code merges it with the user's settings and runs both sets of
/// hooks.
pub fn claude_settings(hook_command: &str) -> Value {
    claude_settings_with(json!({}), hook_command)
}

/// Adds the hooks to the settings of the user's own `--settings` option. Claude Code uses only the last of several such options.
pub fn claude_settings_with(mut settings: Value, hook_command: &str) -> Value {
    if !settings.is_object() {
        settings = json!({});
    }
    // Overrides the user's setting, which would silently disable the gate.
    settings["disableAllHooks"] = false.into();
    if !settings["hooks"].is_object() {
        settings["hooks"] = json!({});
    }
    for event in CLAUDE_EVENTS {
        let hook = json!({"type": "command", "command": hook_command, "timeout": timeout_seconds(event)});
        let entry = json!({"matcher": "*", "hooks": [hook]});
        match &mut settings["hooks"][event] {
            Value::Array(entries) => entries.push(entry),
            other => *other = json!([entry]),
        }
    }
    settings
}

/// Returns Codex's arguments that register the hooks, to insert directly after the program's name. The user's own hooks run as
/// well.
///
/// Codex remembers a trusted hook by a hash of its text, so the command must be the same in every run. Pass values of one run in
/// the environment.
pub fn codex_arguments(hook_command: &str) -> Vec<String> {
    let command = toml_text(hook_command);
    let argument = |event: &str| {
        let timeout = timeout_seconds(event);
        format!("hooks.{event}=[{{matcher=\"*\",hooks=[{{type=\"command\",command={command},timeout={timeout}}}]}}]")
    };
    CODEX_EVENTS.iter().flat_map(|event| ["-c".to_owned(), argument(event)]).collect()
}

/// Returns the keys under which Codex stores its trust in sayso's hooks: origin, event and position. The stored value is a hash
/// that only Codex computes.
pub fn codex_trust_keys() -> impl Iterator<Item = String> {
    CODEX_EVENTS.iter().map(|event| {
        let mut key = "/<session-flags>/config.toml:".to_owned();
        for (index, letter) in event.char_indices() {
            if letter.is_ascii_uppercase() && index > 0 {
                key.push('_');
            }
            key.push(letter.to_ascii_lowercase());
        }
        key + ":0:0"
    })
}

/// Quotes a text for TOML. JSON's escapes are valid in TOML, but JSON does not escape U+007F, which TOML forbids.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// Instructions for a user whose Codex does not trust sayso's hooks.
pub fn codex_trust_advice() -> &'static str {
    "Codex silently skips a hook until you trust it. Start `sayso run -- codex` once without a task: Codex shows that hooks \
     need review. Check that each runs `sayso hook codex` and trust them. Codex asks again only if the command changes. \
     `codex exec` never asks. sayso does not write this trust for you."
}

/// Returns the first argument that would disable sayso's hooks. Codex uses the last of several settings of one name, and the
/// user's arguments follow sayso's, so a setting that replaces sayso's counts as well.
pub fn disabling_argument(agent: Agent, arguments: &[String]) -> Option<&str> {
    let own = arguments.iter().map(String::as_str).take_while(|argument| *argument != "--");
    match agent {
        Agent::Gemini | Agent::Copilot | Agent::Opencode => None,
        Agent::Claude => own.into_iter().find(|argument| matches!(*argument, "--bare" | "--safe-mode")),
        Agent::Codex => {
            let own: Vec<&str> = own.collect();
            let is_off = |setting: &str| {
                // Codex accepts quotation marks and spaces anywhere in a dotted name.
                let plain = |character: &char| !character.is_whitespace() && !"\"'".contains(*character);
                let setting: String = setting.chars().filter(plain).collect();
                let (name, value) = setting.split_once('=').unwrap_or((&setting, ""));
                let event = name.strip_prefix("hooks.").map(|rest| rest.split('.').next().unwrap_or_default());
                match name {
                    "features.hooks" | "features.codex_hooks" => value != "true",
                    // An inline table replaces the whole `features` table.
                    "features" => value.contains("hooks") && !value.contains("hooks=true"),
                    "hooks" => true,
                    _ => event.is_some_and(|event| event == "state" || CODEX_EVENTS.contains(&event)),
                }
            };
            own.iter().enumerate().find_map(|(index, argument)| {
                let before = index.checked_sub(1).and_then(|before| own.get(before)).copied().unwrap_or_default();
                let (option, value) = argument.split_once('=').unwrap_or((before, argument));
                let off = match (option, before) {
                    ("--disable", _) => matches!(value, "hooks" | "codex_hooks"),
                    ("--config", _) => is_off(value),
                    (_, "-c" | "--config") => is_off(argument),
                    _ => argument.strip_prefix("-c").is_some_and(is_off),
                };
                off.then_some(*argument)
            })
        }
    }
}
