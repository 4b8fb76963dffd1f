//! `sayso config`: prints settings and rules with their origins.

mod request;

use std::process::ExitCode;
use std::time::Duration;

use sayso_review::{Access, IgnoredRule, LayerTrust, Policy, Rule, RuleId, Ruling};
use serde_json::{Value, json};

use super::{Config, FileTrust, ValueOrigin, Valued, WORKSPACE_FILE};
use crate::cli::ConfigArguments;
use crate::error::CliError;
use crate::output::Output;
use crate::workspace_location::WorkspaceLocation;
use sayso_present::escape::escape_unprintable;

pub(crate) fn run(arguments: &ConfigArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let config = Config::load(&location)?;
    let policy = config.policy()?;
    let mut output = Output::stdout();
    if arguments.common.json {
        output.json(&object(&config, &policy))?;
    } else {
        output.write(text(&config, &policy).as_bytes())?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// A setting for display.
struct ShownSetting {
    key: String,
    /// The value for a person.
    shown: String,
    value: Value,
    /// `None` for a default.
    origin: Option<String>,
}

fn settings(config: &Config, policy: &Policy) -> Vec<ShownSetting> {
    let mut settings = Vec::new();
    for access in Access::ALL {
        let (ruling, id) = policy.default_for(access);
        let origin = if let RuleId::Default { file, .. } = id { file.clone() } else { None };
        let key = format!("policy.{access}");
        settings.push(ShownSetting { key, shown: ruling.to_string(), value: json!(ruling), origin });
    }
    let mut add = |key: &str, shown: String, value: Value, origin: &ValueOrigin| {
        let origin = if let ValueOrigin::File(file) = origin { Some(file.clone()) } else { None };
        settings.push(ShownSetting { key: key.to_owned(), shown, value, origin });
    };
    for (key, Valued { value, origin }) in
        [("snapshot.max_file_size", &config.max_file_size), ("snapshot.quota", &config.quota)]
    {
        add(key, bytes(*value), json!(value), origin);
    }
    let Valued { value, origin } = &config.branch_prefix;
    add("branch.prefix", value.clone(), json!(value), origin);
    let Valued { value, origin } = &config.notify;
    add("notify.command", value.as_ref().map_or("none".to_owned(), |words| words.join(" ")), json!(value), origin);
    let Valued { value, origin } = &config.deadline;
    add("decide.deadline", value.map_or("none".to_owned(), span), json!(value.map(|span| span.as_secs())), origin);
    let Valued { value, origin } = &config.on_failure;
    add("hook.on_failure", value.name().to_owned(), json!(value.name()), origin);
    let agent = &config.agent;
    for (key, Valued { value, origin }) in [
        ("agent.model", &agent.model),
        ("agent.dialect", &agent.dialect),
        ("agent.upstream", &agent.upstream),
        ("agent.scenario", &agent.scenario),
    ] {
        add(key, value.clone().unwrap_or_else(|| "automatic".to_owned()), json!(value), origin);
    }
    let Valued { value, origin } = &agent.limits;
    for (key, limit) in [
        ("agent.max_turns", u64::from(value.turns)),
        ("agent.max_cost", value.cost_micro_usd),
        ("agent.max_time", value.time_ms),
    ] {
        let shown = match (key, limit) {
            (_, 0) => "none".to_owned(),
            ("agent.max_cost", micro) => format!("${}", micro as f64 / 1e6),
            ("agent.max_time", ms) => span(Duration::from_millis(ms)),
            (_, turns) => turns.to_string(),
        };
        add(key, shown, json!(limit), origin);
    }
    let Valued { value, origin } = &agent.show_thinking;
    add("agent.show_thinking", value.to_string(), json!(value), origin);
    for (name, Valued { value, origin }) in &agent.mcp_servers {
        let start = value.command.as_ref().or(value.url.as_ref()).cloned().unwrap_or_default();
        add(&format!("mcp_servers.{name}"), start.clone(), json!(start), origin);
    }
    request::settings(&config.requests, &mut add);
    settings
}

fn bytes(number: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("GiB", 1 << 30), ("MiB", 1 << 20), ("kB", 1_000), ("B", 1)];
    let fits = units.into_iter().find(|(_, unit)| number >= *unit && number.is_multiple_of(*unit));
    fits.map_or("0 B".to_owned(), |(name, unit)| format!("{} {name}", number / unit))
}

fn span(span: Duration) -> String {
    let milliseconds = span.as_millis();
    let units = [("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];
    let fits = units.into_iter().find(|(_, unit)| milliseconds.is_multiple_of(*unit));
    fits.map_or_else(String::new, |(name, unit)| format!("{} {name}", milliseconds / unit))
}

/// Summarises the actions that a rule matches.
pub(crate) fn rule_summary(rule: &Rule) -> String {
    let mut parts = Vec::new();
    for access in Access::ALL {
        let patterns = rule.patterns(access);
        if !patterns.is_empty() {
            parts.push(format!("{access} {}", patterns.join(", ")));
        }
    }
    parts.extend(rule.agent.as_ref().map(|agent| format!("by {agent}")));
    parts.extend(rule.session.as_ref().map(|session| format!("in session {session}")));
    parts.join("; ")
}

/// Describes the trust in the workspace's file. `None` without a file.
pub(crate) fn trust_text(trust: FileTrust) -> Option<String> {
    let file = format!("The workspace's {WORKSPACE_FILE}");
    Some(match trust {
        FileTrust::NoFile => return None,
        FileTrust::Trusted => format!("{file} is trusted as it is."),
        FileTrust::Untrusted => format!(
            "{file} is not trusted: it can only make things stricter. `sayso trust --show` lists what it would loosen."
        ),
        FileTrust::Changed => {
            format!(
                "{file} has changed since it was trusted: it can only make things stricter until you run `sayso trust` again."
            )
        }
    })
}

fn ignored_rule(ignored: &IgnoredRule) -> String {
    format!("{:<5}  {}", ignored.then.name(), ignored.rule)
}

fn text(config: &Config, policy: &Policy) -> String {
    let mut text = String::new();
    let settings = settings(config, policy);
    let key_width = settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    let width = settings.iter().map(|setting| setting.shown.chars().count()).max().unwrap_or(0);
    for ShownSetting { key, shown, origin, .. } in settings {
        text.push_str(&format!("{key:<key_width$}  {shown:<width$}  {}\n", origin.as_deref().unwrap_or("default")));
    }
    text.push_str("\nRules, the later before the earlier, a deny before all:\n");
    let mut has_rules = false;
    for layer in &config.layers {
        for (at, rule) in layer.rules.iter().enumerate() {
            if layer.trust == LayerTrust::TightenOnly && rule.loosens() {
                continue;
            }
            has_rules = true;
            let id = RuleId::Rule { file: layer.file.clone(), number: at + 1, name: rule.name.clone() };
            text.push_str(&format!("  {:<5}  {}\n         {id}\n", rule.then.name(), rule_summary(rule)));
        }
    }
    if !has_rules {
        text.push_str("  none\n");
    }
    text.push_str(&request::rules_text(&config.requests));
    if !policy.ignored_rules().is_empty() || !config.ignored.is_empty() {
        text.push_str(&format!("\nIgnored in the workspace's {WORKSPACE_FILE}:\n"));
        for ignored in policy.ignored_rules() {
            text.push_str(&format!("  {}\n", ignored_rule(ignored)));
        }
        for ignored in &config.ignored {
            text.push_str(&format!("  {}: {}\n", ignored.key, ignored.reason));
        }
    }
    if let Some(sentence) = trust_text(config.trust) {
        text.push_str(&format!("\n{sentence}\n"));
    }
    text.lines().map(|line| format!("{}\n", escape_unprintable(line))).collect()
}

fn object(config: &Config, policy: &Policy) -> Value {
    let settings: serde_json::Map<String, Value> = settings(config, policy)
        .into_iter()
        .map(|setting| (setting.key, json!({ "value": setting.value, "origin": setting.origin })))
        .collect();
    let mut rules = Vec::new();
    for layer in &config.layers {
        for (at, rule) in layer.rules.iter().enumerate() {
            let counts = layer.trust == LayerTrust::Trusted || rule.then >= Ruling::Ask;
            rules.push(json!({ "rule": rule, "file": layer.file, "number": at + 1, "counts": counts }));
        }
    }
    let ignored: Vec<Value> =
        config.ignored.iter().map(|ignored| json!({ "key": ignored.key, "reason": ignored.reason })).collect();
    json!({
        "settings": settings,
        "rules": rules,
        "request_rules": request::rules_object(&config.requests),
        "ignored_rules": policy.ignored_rules(),
        "ignored_settings": ignored,
        "workspace_file": config.trust,
    })
}
