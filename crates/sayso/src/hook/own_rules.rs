//! The agent's own rules about commands.

use std::path::{Path, PathBuf};

use sayso_adapters::Agent;
use sayso_adapters::hook::{HookCall, HookEvent, OwnRules};
use serde_json::{Value, json};

/// Variable with the rules of the agent's command line, a JSON array of settings objects and lists of denied tools. `sayso run` sets it.
pub(crate) const VARIABLE: &str = "SAYSO_AGENT_RULES";

/// Returns the rules of Claude Code's command line for [`VARIABLE`].
pub(crate) fn of_arguments(words: &[String]) -> String {
    const DENIED_TOOLS: [&str; 2] = ["--disallowedTools", "--disallowed-tools"];
    let mut entries: Vec<Value> = Vec::new();
    let mut words = words.iter().map(String::as_str).take_while(|word| *word != "--").peekable();
    while let Some(word) = words.next() {
        if word == "--settings" {
            let settings = words.next().and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
            entries.push(json!({ "permissions": settings["permissions"] }));
        } else if let Some((option, tools)) = word.split_once('=')
            && DENIED_TOOLS.contains(&option)
        {
            entries.push(tools.into());
        } else if DENIED_TOOLS.contains(&word) {
            // The option takes every word up to the next option.
            while let Some(tools) = words.next_if(|next| !next.starts_with('-')) {
                entries.push(tools.into());
            }
        }
    }
    Value::from(entries).to_string()
}

/// Reads the agent's own rules before a command. An unreadable file has no rules; the agent reports it itself.
pub(super) fn read(call: &HookCall, root: &Path) -> OwnRules {
    let mut rules = OwnRules::default();
    if !matches!(&call.event, HookEvent::PreToolUse { tool, .. } if tool == "Bash") {
        return rules;
    }
    match call.agent {
        Agent::Claude => read_claude(&mut rules, Path::new(&call.cwd), root),
        Agent::Codex => read_codex(&mut rules, root),
        Agent::Gemini | Agent::Copilot | Agent::Opencode => {}
    }
    rules
}

fn read_claude(rules: &mut OwnRules, cwd: &Path, root: &Path) {
    let mut folders: Vec<PathBuf> =
        cwd.ancestors().take_while(|folder| folder.starts_with(root)).map(Path::to_owned).collect();
    if folders.is_empty() {
        folders = vec![root.to_owned(), cwd.to_owned()];
    }
    let project = folders
        .iter()
        .flat_map(|folder| ["settings.json", "settings.local.json"].map(|name| folder.join(".claude").join(name)));
    let user = agent_home(Agent::Claude).map(|home| home.join("settings.json"));
    let managed =
        ["/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json"];
    for path in project.chain(user).chain(managed.map(PathBuf::from)) {
        if let Some(settings) = std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
            rules.add_claude(&settings);
        }
    }
    let given = std::env::var(VARIABLE).ok().and_then(|text| serde_json::from_str::<Vec<Value>>(&text).ok());
    for entry in given.unwrap_or_default() {
        match entry.as_str() {
            Some(tools) => rules.add_claude_denied_tools(tools),
            None => rules.add_claude(&entry),
        }
    }
}

fn read_codex(rules: &mut OwnRules, root: &Path) {
    let folders = [agent_home(Agent::Codex), Some(PathBuf::from("/etc/codex")), Some(root.join(".codex"))];
    for folder in folders.into_iter().flatten() {
        for file in std::fs::read_dir(folder.join("rules")).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|extension| extension == "rules")
                && let Ok(text) = std::fs::read_to_string(file.path())
            {
                rules.add_codex(&text);
            }
        }
    }
}

/// Returns the folder of an agent's own files.
fn agent_home(agent: Agent) -> Option<PathBuf> {
    let own = agent.own_folders()?;
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable(own.variable).or_else(|| Some(variable("HOME")?.join(own.below_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_rules_reach_the_hook() {
        let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let settings = r#"{"permissions":{"deny":["Bash(ls)"]},"hooks":{}}"#;
        let line =
            words(&["--settings", settings, "--disallowedTools", "Bash(rm:*)", "Edit", "-p", "--", "--settings"]);
        let expected = json!([{ "permissions": { "deny": ["Bash(ls)"] } }, "Bash(rm:*)", "Edit"]);
        assert_eq!(of_arguments(&line), expected.to_string());
    }
}
