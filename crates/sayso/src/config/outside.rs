//! Rules about paths outside the workspace. The workspace's own file may have none.

use std::path::{Path, PathBuf};

use sayso_adapters::Agent;
use sayso_review::{OutsidePath, Rule, Ruling};
use toml_edit::{Document, Item};

use super::{WORKSPACE_FILE, absolute};
use crate::error::CliError;

/// Replaces `~` in the paths of rules by the user's home.
pub(super) fn expand_home(rules: &mut [Rule], name: &str) -> Result<(), CliError> {
    for pattern in rules.iter_mut().flat_map(|rule| rule.read.iter_mut().chain(&mut rule.write)) {
        let Some(rest) = pattern.strip_prefix('~') else { continue };
        if !rest.is_empty() && !rest.starts_with('/') {
            return Err(CliError::invalid_input(format!("{name}: cannot read the pattern `{pattern}`"))
                .because("`~` stands for your own home only")
                .hint("write `~/…`, or an absolute path"));
        }
        let home = absolute("HOME").and_then(|home| home.to_str().map(globset_escape)).ok_or_else(|| {
            CliError::invalid_input(format!("{name}: the pattern `{pattern}` needs your home"))
                .because("HOME is not set to an absolute path")
                .hint("set HOME, or write an absolute path")
        })?;
        *pattern = format!("{}{rest}", home.trim_end_matches('/'));
    }
    Ok(())
}

/// Escapes a path, so that it matches itself as a glob.
fn globset_escape(home: &str) -> String {
    let mut pattern = String::new();
    for character in home.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}') {
            pattern.push_str(&format!("[{character}]"));
        } else {
            pattern.push(character);
        }
    }
    pattern
}

/// Rejects paths outside the workspace in the workspace's file, which is not the user's own.
pub(super) fn refuse_in_workspace(bytes: &[u8]) -> Result<(), CliError> {
    let Some(text) = std::str::from_utf8(bytes).ok() else { return Ok(()) };
    // Invalid TOML is reported elsewhere.
    let Ok(document) = Document::parse(text) else { return Ok(()) };
    let rules: Vec<&dyn toml_edit::TableLike> = match document.get("rule") {
        Some(Item::ArrayOfTables(tables)) => tables.iter().map(|table| table as &dyn toml_edit::TableLike).collect(),
        Some(Item::Value(toml_edit::Value::Array(list))) => {
            list.iter().filter_map(toml_edit::Value::as_inline_table).map(|table| table as _).collect()
        }
        _ => Vec::new(),
    };
    for rule in rules {
        for key in ["read", "write"] {
            let Some(item) = rule.get(key).and_then(Item::as_value) else { continue };
            let single = std::iter::once(item).filter(|value| value.is_str());
            for value in single.chain(item.as_array().into_iter().flatten()) {
                let pattern = value.as_str().unwrap_or_default();
                if pattern.starts_with('/') || pattern == "~" || pattern.starts_with("~/") {
                    let line = value.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
                    let message =
                        format!("{WORKSPACE_FILE}, line {line}: `{key} = \"{pattern}\"` is outside the workspace");
                    return Err(CliError::invalid_input(message)
                        .because("a workspace's file cannot name such a path")
                        .hint("move the rule to your own configuration, ~/.config/sayso/config.toml"));
                }
            }
        }
    }
    Ok(())
}

/// Returns the default rules for the agents' own folders, which they may read, and where they may write plans.
pub(super) fn own_folders() -> Vec<Rule> {
    let rule = |agent: Agent| {
        let folders = agent.own_folders()?;
        let home = absolute(folders.variable)
            .or_else(|| absolute("HOME").map(|home| home.join(folders.below_home)))
            .and_then(|home| home.to_str().map(globset_escape))?;
        let below = |names: &[&str]| names.iter().map(|name| format!("{home}/{name}/**")).collect();
        Some(Rule {
            name: Some(format!("{}'s own folders", agent.name())),
            read: below(folders.read),
            write: below(folders.write),
            agent: Some(agent.name().to_owned()),
            ..Rule::new(Ruling::Allow)
        })
    };
    Agent::WITH_HOOKS.into_iter().filter_map(rule).collect()
}

/// Returns sayso's own folders, as configured and with symbolic links resolved.
pub(super) fn protected(ours: &[&Path]) -> Vec<OutsidePath> {
    let forms = |path: &&Path| [Some(PathBuf::from(path)), path.canonicalize().ok()];
    let paths = ours.iter().flat_map(forms).flatten();
    let mut protected: Vec<OutsidePath> =
        paths.filter_map(|path| path.to_str().and_then(|path| OutsidePath::parse(path).ok())).collect();
    protected.dedup();
    protected
}
