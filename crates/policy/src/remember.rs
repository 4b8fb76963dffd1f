//! Turns a verdict that is to be remembered into a rule.

use sayso_base::{ErrorKind, OutsidePath};
use sayso_shell::Script;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::builtin_rules::SINKS;
use crate::command_pattern::quote;
use crate::coverage::is_harmless_assignment;
use crate::decision::Ruling;
use crate::effects::PathTarget;
use crate::nested_commands::{EffectiveCommand, not_understood};
use crate::query::{PolicyQuery, Principal};
use crate::rule::Rule;

/// Request to keep a verdict as a rule for later actions of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberAs {
    pub scope: RuleScope,
    pub ruling: Ruling,
}

/// Lifetime of a remembered rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// Until the session ends.
    Session,
    /// Until the user removes it from the configuration.
    Always,
}

/// Reason why a verdict cannot become a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RememberError {
    /// The parser does not fully understand the script.
    #[error(
        "cannot make a rule: sayso does not fully understand the command, so the rule could allow more than was shown"
    )]
    NotUnderstood,
    /// A word depends on an expansion.
    #[error(
        "cannot make a rule: `{word}` is not known before the command runs, so the rule could allow more than was shown"
    )]
    UnknownWord { word: String },
    /// A variable assignment stands before a command.
    #[error("cannot make a rule: `{assignment}` can change what the command does, so no rule covers it")]
    Assignment { assignment: String },
    /// A path is unknown, or the root of a tree.
    #[error("cannot make a rule: `{path}` is unknown or too wide, so the rule could allow more than was shown")]
    UnknownPath { path: String },
    /// The action has no file, command or name to match, or a name that would match others.
    #[error("cannot make a rule: the action names no file, command or tool")]
    NoPattern,
    /// Another rule would still decide more strictly. The gate checks this after [`Rule::remember`].
    #[error("cannot make a rule: this is asked about in any case ({rule})")]
    AlwaysAsk { rule: String },
    /// The action belongs to no session.
    #[error("cannot make a rule for this session: the action belongs to no session")]
    NoSession,
}

impl RememberError {
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSession => "remember the decision always, or decide this time only",
            _ => "decide this time only, or write a rule into the configuration by hand",
        }
    }
}

impl Rule {
    /// Returns the rule for a remembered verdict.
    ///
    /// The rule is as narrow as possible: exactly these files, this tool, these words of each command. Only a denial also covers
    /// further words. The rule includes the files that the command appears to write and the outside files that it reads, because
    /// policy decides them separately.
    pub fn remember(
        query: &PolicyQuery<'_>,
        principal: &Principal<'_>,
        answer: RememberAs,
    ) -> Result<Self, RememberError> {
        let mut rule = Self::new(answer.ruling);
        match query {
            PolicyQuery::Read { targets } => rule.read = paths(targets)?,
            PolicyQuery::Write { targets } => rule.write = paths(targets)?,
            PolicyQuery::Run { script, reads, writes } => {
                rule.run = commands(script, answer.ruling)?;
                // A denial of the words suffices.
                if answer.ruling != Ruling::Deny {
                    rule.write = optional_paths(writes)?;
                    rule.read = optional_paths(reads)?;
                }
            }
            // Names become patterns, so a name with `*` is rejected: it would match other names.
            PolicyQuery::Tool { name, .. } => rule.tool = vec![plain_name(name)?],
            PolicyQuery::Delegate { agent, .. } => rule.delegate = vec![plain_name(agent)?],
            PolicyQuery::Send { upstream } => rule.send = vec![plain_name(upstream)?],
        }
        if answer.scope == RuleScope::Session {
            rule.session = Some(principal.session.ok_or(RememberError::NoSession)?.to_owned());
        }
        Ok(rule)
    }
}

/// Returns a name that matches only itself as a pattern.
fn plain_name(name: &str) -> Result<String, RememberError> {
    if name.trim().is_empty() || name.contains('*') { Err(RememberError::NoPattern) } else { Ok(name.to_owned()) }
}

/// Returns the patterns of paths, and none if all of them are devices that need no rule.
fn optional_paths(targets: &[PathTarget]) -> Result<Vec<String>, RememberError> {
    let is_sink = |place: &PathTarget| matches!(place, PathTarget::Outside(text) if SINKS.contains(&text.as_str()));
    if targets.iter().all(is_sink) { Ok(Vec::new()) } else { paths(targets) }
}

/// Returns the patterns that match exactly these paths. Leaves out devices that need no rule.
fn paths(targets: &[PathTarget]) -> Result<Vec<String>, RememberError> {
    let mut paths = Vec::new();
    for target in targets {
        match target {
            PathTarget::Inside(path) if !path.is_root() => paths.push(globset::escape(path.as_str())),
            PathTarget::Outside(text) if SINKS.contains(&text.as_str()) => {}
            PathTarget::Outside(text) => match OutsidePath::parse(text) {
                Ok(path) if path.as_str() != "/" => paths.push(globset::escape(path.as_str())),
                _ => return Err(RememberError::UnknownPath { path: target.text() }),
            },
            _ => return Err(RememberError::UnknownPath { path: target.text() }),
        }
    }
    deduplicated(paths)
}

/// Returns the patterns of all commands of a script that need a rule.
fn commands(script: &Script, ruling: Ruling) -> Result<Vec<String>, RememberError> {
    if not_understood(script).is_some() {
        return Err(RememberError::NotUnderstood);
    }
    let all = EffectiveCommand::all(script);
    if all.iter().any(|run| run.problem.is_some()) {
        return Err(RememberError::NotUnderstood);
    }
    // A built-in rule already allows a shell builtin without effect if the script has other commands.
    let needs_rule = |run: &&EffectiveCommand<'_>| {
        !run.command.words.is_empty()
            && (ruling == Ruling::Deny || !run.is_builtin() || !EffectiveCommand::has_others(&all))
    };
    let patterns: Result<Vec<_>, _> = all.iter().filter(needs_rule).map(|run| pattern(run, ruling)).collect();
    deduplicated(patterns?)
}

/// Returns the pattern of a command. A final `$` excludes further words, except in a denial.
fn pattern(run: &EffectiveCommand<'_>, ruling: Ruling) -> Result<String, RememberError> {
    if let Some(assignment) = run.command.assignments.iter().find(|word| !is_harmless_assignment(word)) {
        return Err(RememberError::Assignment { assignment: assignment.text.clone() });
    }
    let mut words: Vec<String> = run.command.wrappers.iter().map(|name| quote(name)).collect();
    for word in &run.words {
        let Some(text) = word.as_literal() else {
            return Err(RememberError::UnknownWord { word: word.text.clone() });
        };
        words.push(quote(text));
    }
    if ruling != Ruling::Deny {
        words.push("$".to_owned());
    }
    Ok(words.join(" "))
}

/// Removes duplicates. An empty list is an error, because a rule needs a pattern.
fn deduplicated(mut patterns: Vec<String>) -> Result<Vec<String>, RememberError> {
    let mut seen = std::collections::BTreeSet::new();
    patterns.retain(|pattern| seen.insert(pattern.clone()));
    if patterns.is_empty() { Err(RememberError::NoPattern) } else { Ok(patterns) }
}
