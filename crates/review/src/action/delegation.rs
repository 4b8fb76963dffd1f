//! The preview of work delegated to a subagent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::infer_changes::{plain_key, words_of};

/// Work that a tool call hands to a subagent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationPreview {
    /// Name or type of the subagent, if the call names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Instructions to the subagent.
    pub prompt: String,
    /// Tools granted to the subagent; empty if the call does not list them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Purpose of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

const PROMPTS: &[&str] = &["prompt", "instructions", "objective", "task", "message", "query", "goal", "input"];
const AGENTS: &[&str] =
    &["subagenttype", "agenttype", "agentname", "agent", "subagent", "agentid", "role", "type", "name"];
const TOOLS: &[&str] = &["tools", "allowedtools", "toolnames"];

impl DelegationPreview {
    /// Recognizes a delegation by the tool's name and a prompt argument.
    pub(super) fn of(name: &str, arguments: &Value) -> Option<Self> {
        let arguments = arguments.as_object()?;
        let words = words_of(name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let delegates = match words.as_slice() {
            ["task" | "agent" | "subagent"] | ["codebase", "investigator"] => true,
            [first, ..] if matches!(*first, "delegate" | "handoff" | "subagent") => true,
            [first, .., last] => {
                matches!(
                    *first,
                    "spawn" | "dispatch" | "invoke" | "run" | "launch" | "start" | "call" | "new" | "create"
                ) && matches!(*last, "agent" | "subagent" | "task")
            }
            _ => false,
        };
        if !delegates {
            return None;
        }
        let prompt = text(arguments, PROMPTS)?;
        Some(Self {
            agent: text(arguments, AGENTS),
            prompt,
            tools: tools(arguments),
            description: text(arguments, &["description", "title", "summary"]),
        })
    }
}

/// Returns the first of these arguments that is a string.
fn text(arguments: &Map<String, Value>, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| {
        let (_, value) = arguments.iter().find(|(name, _)| plain_key(name) == *key)?;
        value.as_str().map(str::to_owned)
    })
}

fn tools(arguments: &Map<String, Value>) -> Vec<String> {
    let Some((_, value)) = arguments.iter().find(|(name, _)| TOOLS.contains(&plain_key(name).as_str())) else {
        return Vec::new();
    };
    match value {
        Value::String(names) => {
            names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
        Value::Array(names) => {
            let name = |tool: &Value| tool.as_str().or_else(|| tool.get("name")?.as_str()).map(str::to_owned);
            names.iter().filter_map(name).collect()
        }
        Value::Object(names) => {
            names.iter().filter(|(_, on)| **on != Value::Bool(false)).map(|(name, _)| name.clone()).collect()
        }
        _ => Vec::new(),
    }
}
