//! Settings and rules for requests to models.

use sayso_proxy::{Keep, Pause, PauseRule};
use sayso_wire::Scope;
use serde_json::{Value, json};

use super::super::request::RequestSettings;
use super::super::{ValueOrigin, Valued};
use super::{bytes, span};

pub(super) fn settings(requests: &RequestSettings, add: &mut impl FnMut(&str, String, Value, &ValueOrigin)) {
    for (key, Valued { value, origin }) in
        [("request.grace", &requests.grace), ("request.keep_alive", &requests.keep_alive)]
    {
        add(key, span(*value), json!(value.as_secs_f64()), origin);
    }
    let Valued { value, origin } = &requests.keep;
    let name = if *value == Keep::All { "all" } else { "paused" };
    add("request.log", name.to_owned(), json!(name), origin);
    let Valued { value, origin } = &requests.monitor;
    add("request.monitor", value.to_string(), json!(value), origin);
    let Valued { value, origin } = &requests.max_body_size;
    add("request.max_body_size", bytes(*value as u64), json!(value), origin);
    let Valued { value, origin } = &requests.max_concurrent;
    add("request.max_concurrent", value.to_string(), json!(value), origin);
    let Valued { value, origin } = &requests.preview_limit;
    add("request.preview_limit", value.map_or("all".to_owned(), |limit| limit.to_string()), json!(value), origin);
    let Valued { value, origin } = &requests.scope;
    let name = match value {
        Scope::Session => "session",
        Scope::Workspace => "workspace",
        Scope::Global => "global",
    };
    add("request.scope", name.to_owned(), json!(name), origin);
    let held: Vec<&str> = requests.hold_tools.iter().map(|tool| tool.value.as_str()).collect();
    if let Some(Valued { origin, .. }) = requests.hold_tools.last() {
        add("request.hold_tools", held.join(", "), json!(held), origin);
    }
    for Valued { value, origin } in &requests.prices {
        let text = format!("${} in, ${} out per million tokens", value.input, value.output);
        add(&format!("request.price.{}", value.model), text, json!(value), origin);
    }
    for (name, Valued { value, origin }) in &requests.upstreams {
        let key = value.key_variable.as_ref().map(|key| format!(", key in {key}")).unwrap_or_default();
        let object = json!({ "url": value.url.to_string(), "key_variable": value.key_variable });
        add(&format!("upstream.{name}"), format!("{}{key}", value.url), object, origin);
    }
}

/// Summarises the requests that a rule matches.
fn rule_summary(rule: &PauseRule) -> String {
    let parts = [
        rule.agent.as_ref().map(|agent| format!("by {agent}")),
        rule.subagent.map(|subagent| if subagent { "by a subagent" } else { "by no subagent" }.to_owned()),
        rule.larger_than.map(|size| format!("larger than {}", bytes(size as u64))),
        rule.tool_result_tokens.map(|tokens| format!("a new tool result over {tokens} tokens")),
        rule.text.as_ref().map(|text| format!("with the text `{text}`")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "every request".to_owned() } else { parts.join(", ") }
}

/// Formats the rules line by line. Empty without rules.
pub(super) fn rules_text(requests: &RequestSettings) -> String {
    let mut text = String::new();
    if !requests.rules.is_empty() {
        text.push_str("\nRules that pause requests, or do not; the first match decides:\n");
    }
    for Valued { value, origin } in &requests.rules {
        let verb = if value.pause == Pause::Yes { "pause" } else { "send" };
        let file = if let ValueOrigin::File(file) = origin { file } else { "default" };
        text.push_str(&format!("  {verb:<5}  {}\n         {} in {file}\n", rule_summary(value), value.name));
    }
    text
}

/// Returns the rules for JSON.
pub(super) fn rules_object(requests: &RequestSettings) -> Vec<Value> {
    let rule = |Valued { value, origin }: &Valued<PauseRule>| {
        let file = if let ValueOrigin::File(file) = origin { Some(file) } else { None };
        json!({
            "name": value.name,
            "pause": value.pause == Pause::Yes,
            "agent": value.agent,
            "subagent": value.subagent,
            "larger_than": value.larger_than,
            "tool_result_tokens": value.tool_result_tokens,
            "text": value.text,
            "file": file,
        })
    };
    requests.rules.iter().map(rule).collect()
}
