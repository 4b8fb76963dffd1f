//! Values of variables, as far as they are known before a run.

use std::collections::BTreeMap;

use crate::program::{AndOr, Command, Construct, List, Pipeline};
use crate::{Certainty, Word};

/// Variables whose values are followed. Each command copies the table.
const MAX_VARIABLES: usize = 100;

/// Variables with their values at the start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Variables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self { values: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

/// Knowledge about the value of one variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Literal(String),
    /// A file name that matches this pattern.
    Pattern(String),
    Unknown,
}

impl Value {
    /// The value of a variable to which this word was assigned.
    pub(super) fn of(word: Word) -> Self {
        match word.certainty {
            Certainty::Literal => Self::Literal(word.text),
            Certainty::Pattern if !word.text.starts_with('~') => Self::Pattern(word.text),
            Certainty::Pattern | Certainty::Unknown => Self::Unknown,
        }
    }
}

/// Knowledge about all variables at one place of a program.
#[derive(Clone, Debug)]
pub(super) struct Values<'k> {
    known: &'k Variables,
    changed: BTreeMap<String, Value>,
}

impl<'k> Values<'k> {
    pub(super) fn new(known: &'k Variables) -> Self {
        Self { known, changed: BTreeMap::new() }
    }

    pub(super) fn get(&self, name: &str) -> Value {
        // `cd` changes these, and may fail.
        if matches!(name, "PWD" | "OLDPWD") {
            return Value::Unknown;
        }
        match (self.changed.get(name), self.known.get(name)) {
            (Some(value), _) => value.clone(),
            (None, Some(text)) => Value::Literal(text.to_owned()),
            (None, None) => Value::Unknown,
        }
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        let is_new = !self.changed.contains_key(name);
        match (is_new && self.changed.len() >= MAX_VARIABLES, self.known.get(name)) {
            // Variables that are not in the table are unknown.
            (true, None) => {}
            (true, Some(_)) => {
                self.changed.insert(name.to_owned(), Value::Unknown);
            }
            (false, _) => {
                self.changed.insert(name.to_owned(), value);
            }
        }
    }

    /// Keeps what holds on both of two ways to the same place.
    pub(super) fn merge(&mut self, other: &Self) {
        let names: Vec<String> = self.changed.keys().chain(other.changed.keys()).cloned().collect();
        for name in names {
            if self.get(&name) != other.get(&name) {
                self.set(&name, Value::Unknown);
            }
        }
    }

    /// Forgets the variables that a list may set.
    pub(super) fn forget_assigned(&mut self, list: &List) {
        for AndOr { first, rest } in &list.items {
            self.forget_in(first);
            for (_, pipeline) in rest {
                self.forget_in(pipeline);
            }
        }
    }

    fn forget_in(&mut self, pipeline: &Pipeline) {
        for stage in &pipeline.stages {
            match &stage.command {
                Command::Simple(invocation) => {
                    for assignment in &invocation.assignments {
                        self.set(&assignment.name, Value::Unknown);
                    }
                    for word in invocation.words.iter().skip(1) {
                        self.forget_declared(word);
                    }
                }
                Command::Compound(compound) => self.forget_in_construct(&compound.construct),
            }
        }
    }

    /// Forgets the variable that a word names, in case the command is `export` or `unset`.
    fn forget_declared(&mut self, word: &crate::program::UnexpandedWord) {
        let Some(crate::program::WordPart::Literal { text, .. }) = word.parts.first() else { return };
        let name = text.split('=').next().unwrap_or_default();
        if word.is_assignment || self.changed.contains_key(name) || self.known.get(name).is_some() {
            self.set(name, Value::Unknown);
        }
    }

    fn forget_in_construct(&mut self, construct: &Construct) {
        match construct {
            Construct::Subshell(body) | Construct::Group(body) => self.forget_assigned(body),
            Construct::For { variable, body, .. } | Construct::WhileRead { variable, body, .. } => {
                self.set(variable, Value::Unknown);
                self.forget_assigned(body);
            }
            Construct::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.forget_assigned(condition);
                    self.forget_assigned(body);
                }
                if let Some(body) = otherwise {
                    self.forget_assigned(body);
                }
            }
            Construct::Case { arms, .. } => {
                for (_, body) in arms {
                    self.forget_assigned(body);
                }
            }
            Construct::Condition(_) => {}
        }
    }
}
