//! What "from now on" means as a rule.

use sayso_base::{ErrorKind, OutsidePath};
use sayso_shell::Script;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::act::{Act, Who};
use crate::always::SINKS;
use crate::coverage::is_harmless_assignment;
use crate::effects::Place;
use crate::inner::{RunCommand, not_understood};
use crate::rule::Rule;
use crate::ruling::Ruling;
use crate::words::quote;

/// A verdict that is meant for later acts of the same kind as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromNowOn {
    /// Until when.
    pub scope: RuleScope,
    /// What is to become of them.
    pub ruling: Ruling,
}

/// How long a rule of a verdict lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// To the end of the session.
    Session,
    /// Until somebody removes it from the user's configuration.
    Always,
}

/// Why an act makes no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FromNowOnError {
    /// A script is not understood in whole.
    #[error("the command is not understood in whole, so that a rule could let through more than was shown")]
    Doubt,
    /// A word of a command is not known before it runs.
    #[error("`{word}` is not known before the command runs, so that a rule could let through more than was shown")]
    UnknownWord {
        /// The word.
        word: String,
    },
    /// A variable is set before a command.
    #[error("`{assignment}` changes what the command does, and no rule covers a command with that")]
    Assignment {
        /// The assignment.
        assignment: String,
    },
    /// A place is not known, or a whole tree.
    #[error("`{place}` is not known before, or too wide, so that a rule could let through more than was shown")]
    Place {
        /// The place.
        place: String,
    },
    /// There is nothing to make a rule about.
    #[error("there is nothing in it that a rule could be about")]
    Nothing,
    /// No rule changes that it is asked about.
    #[error("a rule would not help: {by}")]
    AlwaysAsks {
        /// The rule that asks all the same.
        by: String,
    },
    /// The session is not known.
    #[error("the session is not known, so that no rule can be bound to it")]
    NoSession,
}

impl FromNowOnError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSession => "decide for always, or about this one alone",
            _ => "decide about this one alone, or write a rule into the configuration by hand",
        }
    }
}

impl Rule {
    /// The rule that a "from now on" means.
    ///
    /// It is as narrow as it can be: these files, this tool, these very words of each command and nothing after them. Only a
    /// denial is about whatever follows the words. The files that a command appears to write, and those outside the workspace that it
    /// reads, are part of the rule: they are judged by themselves the next time.
    pub fn from_now_on(act: &Act<'_>, who: &Who<'_>, answer: FromNowOn) -> Result<Self, FromNowOnError> {
        let mut rule = Self::new(answer.ruling);
        match act {
            Act::Read { places } => rule.read = paths(places)?,
            Act::Write { places } => rule.write = paths(places)?,
            Act::Run { script, reads, writes } => {
                rule.run = commands(script, answer.ruling)?;
                // A denial of the words is enough.
                if answer.ruling != Ruling::Deny {
                    rule.write = optional_paths(writes)?;
                    rule.read = optional_paths(reads)?;
                }
            }
            // As a pattern, in which a `*` of a name would match more than the name.
            Act::Tool { name, .. } => rule.tool = vec![plain_name(name)?],
            Act::Delegate { agent, .. } => rule.delegate = vec![plain_name(agent)?],
            Act::Send { upstream } => rule.send = vec![plain_name(upstream)?],
        }
        if answer.scope == RuleScope::Session {
            rule.session = Some(who.session.ok_or(FromNowOnError::NoSession)?.to_owned());
        }
        Ok(rule)
    }
}

fn plain_name(name: &str) -> Result<String, FromNowOnError> {
    if name.trim().is_empty() || name.contains('*') { Err(FromNowOnError::Nothing) } else { Ok(name.to_owned()) }
}

fn optional_paths(places: &[Place]) -> Result<Vec<String>, FromNowOnError> {
    let is_sink = |place: &Place| matches!(place, Place::Outside(text) if SINKS.contains(&text.as_str()));
    if places.iter().all(is_sink) { Ok(Vec::new()) } else { paths(places) }
}

fn paths(places: &[Place]) -> Result<Vec<String>, FromNowOnError> {
    let mut paths = Vec::new();
    for place in places {
        match place {
            Place::Inside(path) if !path.is_root() => paths.push(globset::escape(path.as_str())),
            Place::Outside(text) if SINKS.contains(&text.as_str()) => {}
            Place::Outside(text) => match OutsidePath::parse(text) {
                Ok(path) if path.as_str() != "/" => paths.push(globset::escape(path.as_str())),
                _ => return Err(FromNowOnError::Place { place: place.name() }),
            },
            _ => return Err(FromNowOnError::Place { place: place.name() }),
        }
    }
    in_order(paths)
}

fn commands(script: &Script, ruling: Ruling) -> Result<Vec<String>, FromNowOnError> {
    if not_understood(script).is_some() {
        return Err(FromNowOnError::Doubt);
    }
    let all = RunCommand::all(script);
    if all.iter().any(|run| run.problem.is_some()) {
        return Err(FromNowOnError::Doubt);
    }
    // Builtins without effect need no rule beside other commands.
    let needs_rule = |run: &&RunCommand<'_>| {
        !run.command.words.is_empty() && (ruling == Ruling::Deny || !run.is_builtin() || !RunCommand::has_others(&all))
    };
    let patterns: Result<Vec<_>, _> = all.iter().filter(needs_rule).map(|run| pattern(run, ruling)).collect();
    in_order(patterns?)
}

fn pattern(run: &RunCommand<'_>, ruling: Ruling) -> Result<String, FromNowOnError> {
    if let Some(assignment) = run.command.assignments.iter().find(|word| !is_harmless_assignment(word)) {
        return Err(FromNowOnError::Assignment { assignment: assignment.text.clone() });
    }
    let mut words: Vec<String> = run.command.through.iter().map(|name| quote(name)).collect();
    for word in &run.words {
        let Some(text) = word.as_literal() else {
            return Err(FromNowOnError::UnknownWord { word: word.text.clone() });
        };
        words.push(quote(text));
    }
    if ruling != Ruling::Deny {
        words.push("$".to_owned());
    }
    Ok(words.join(" "))
}

/// Each once; none is a mistake.
fn in_order(mut patterns: Vec<String>) -> Result<Vec<String>, FromNowOnError> {
    let mut seen = std::collections::BTreeSet::new();
    patterns.retain(|pattern| seen.insert(pattern.clone()));
    if patterns.is_empty() { Err(FromNowOnError::Nothing) } else { Ok(patterns) }
}
