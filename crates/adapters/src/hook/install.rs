//! How an agent is told of our hooks for one run, without a change to its user's files.

use serde_json::{Value, json};

use super::agent::Agent;

/// How long the agents wait for a hook that asks a person. Both let the call through afterwards, so answer before.
pub const TIMEOUT_SECONDS: u32 = 24 * 60 * 60;
/// How long they wait for a hook that asks nobody.
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

/// Stop may hold up a turn until its changes are reviewed.
fn timeout(event: &str) -> u32 {
    if matches!(event, "PreToolUse" | "Stop" | "SubagentStop") { TIMEOUT_SECONDS } else { SHORT_TIMEOUT_SECONDS }
}

/// What Claude Code takes with `--settings` for one run. It is merged with the user's own settings, whose hooks run as well.
pub fn claude_settings(hook_command: &str) -> Value {
    claude_settings_with(json!({}), hook_command)
}

/// The same within settings that the user gives with `--settings`: Claude Code heeds the last of several only.
pub fn claude_settings_with(mut settings: Value, hook_command: &str) -> Value {
    if !settings.is_object() {
        settings = json!({});
    }
    // Wins over the user's own, which would switch the gate off unseen.
    settings["disableAllHooks"] = false.into();
    if !settings["hooks"].is_object() {
        settings["hooks"] = json!({});
    }
    for event in CLAUDE_EVENTS {
        let hook = json!({"type": "command", "command": hook_command, "timeout": timeout(event)});
        let ours = json!({"matcher": "*", "hooks": [hook]});
        match &mut settings["hooks"][event] {
            Value::Array(theirs) => theirs.push(ours),
            other => *other = json!([ours]),
        }
    }
    settings
}

/// What Codex takes on its command line for one run, directly after the program's name. The hooks of its user run as well.
///
/// Codex remembers that a hook is trusted by what it says, so the command must be the same every time: what differs from run to
/// run belongs into the environment.
pub fn codex_arguments(hook_command: &str) -> Vec<String> {
    let command = toml_text(hook_command);
    let argument = |event: &str| {
        let timeout = timeout(event);
        format!("hooks.{event}=[{{matcher=\"*\",hooks=[{{type=\"command\",command={command},timeout={timeout}}}]}}]")
    };
    CODEX_EVENTS.iter().flat_map(|event| ["-c".to_owned(), argument(event)]).collect()
}

/// The names under which Codex remembers that it may run our hooks: where they come from, the event, and their places there. What it
/// remembers beside each is a hash of its own of what the hook says, which is for Codex to compare.
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

/// A text as TOML writes it. JSON's escapes are TOML's, but for the one character that JSON leaves as it is and TOML forbids.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// What to tell a user whose Codex has not been told to trust our hooks.
pub fn codex_trust_advice() -> &'static str {
    "Codex runs a hook only after you have trusted it, and skips it without a word until then. Start `sayso run -- codex` once \
     without a task: Codex shows that hooks need review. Look at them (each runs `sayso hook codex`) and choose to trust them. It \
     asks again only if the command changes. `codex exec` never asks. sayso does not write this trust for you."
}

/// The argument or setting that would keep an agent from running our hooks, if there is one among its arguments. Of two settings of
/// one name Codex heeds the last, and the user's come after ours.
pub fn switches_hooks_off(agent: Agent, arguments: &[String]) -> Option<&str> {
    let own = arguments.iter().map(String::as_str).take_while(|argument| *argument != "--");
    match agent {
        Agent::Claude => own.into_iter().find(|argument| matches!(*argument, "--bare" | "--safe-mode")),
        Agent::Codex => {
            let own: Vec<&str> = own.collect();
            let is_off = |setting: &str| {
                // Names may be quoted, all of them or in part.
                let plain = |character: &char| !character.is_whitespace() && !"\"'".contains(*character);
                let setting: String = setting.chars().filter(plain).collect();
                let (name, value) = setting.split_once('=').unwrap_or((&setting, ""));
                let event = name.strip_prefix("hooks.").map(|rest| rest.split('.').next().unwrap_or_default());
                match name {
                    "features.hooks" | "features.codex_hooks" => value != "true",
                    // As a whole, it is what it says alone.
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
