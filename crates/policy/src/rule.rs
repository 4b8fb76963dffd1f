//! Rules and defaults as the configuration writes them.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::decision::{Access, Ruling};

/// A rule of the configuration. It matches an action if any of its patterns does.
///
/// - `read` and `write`: paths, as in [`PathGlobs`](sayso_base::PathGlobs). `*` stays within a name, `**` crosses directories, a path
///   without wildcards covers itself and everything below. A deny rule ignores case.
/// - `run`: the first words of a command. `*` is any one word; a final `$` excludes further words. Words with spaces, and a
///   literal `*` or `$`, are quoted as in a shell. An allow rule covers further words only if the grammar of the program
///   classifies them as free of effects; `options = "any"` covers all of them.
/// - `tool`, `delegate`, `send`: names in which `*` matches any text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Paths of files that are read.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Paths of files that are written.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// First words of commands.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// Names of tools.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    /// Names of agents that work is delegated to.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub delegate: Vec<String>,
    /// Names of upstreams that requests are sent to.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub send: Vec<String>,
    /// Extends `run` of an allow rule to all further words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<RuleOptions>,
    /// Limits the rule to this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Limits the rule to this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub then: Ruling,
    /// Sent to the agent with a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Extent of an allow rule beyond its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleOptions {
    /// All options and operands, known to the grammar or not.
    Any,
}

impl Rule {
    /// Creates a rule without patterns.
    pub fn new(then: Ruling) -> Self {
        Self {
            name: None,
            read: Vec::new(),
            write: Vec::new(),
            run: Vec::new(),
            tool: Vec::new(),
            delegate: Vec::new(),
            send: Vec::new(),
            options: None,
            agent: None,
            session: None,
            then,
            reason: None,
        }
    }

    /// Returns the patterns for one kind of action.
    pub fn patterns(&self, access: Access) -> &[String] {
        match access {
            Access::Read => &self.read,
            Access::Write => &self.write,
            Access::Run => &self.run,
            Access::Tool => &self.tool,
            Access::Delegate => &self.delegate,
            Access::Send => &self.send,
        }
    }

    /// Returns all patterns in one line for display: ``run `touch a $`, write `a` ``.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        for access in [Access::Run, Access::Tool, Access::Delegate, Access::Send, Access::Read, Access::Write] {
            parts.extend(self.patterns(access).iter().map(|pattern| format!("{access} `{pattern}`")));
        }
        parts.join(", ")
    }

    /// `true` for `allow` and `later`, which untrusted files may not use.
    pub fn loosens(&self) -> bool {
        self.then < Ruling::Ask
    }
}

/// Rulings for actions that no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Reading files; absent means allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Ruling>,
    /// Writing files; absent means ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Ruling>,
    /// Running commands; absent means ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Ruling>,
    /// Calling tools; absent means ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Ruling>,
    /// Delegating to other agents; absent means ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegate: Option<Ruling>,
    /// Sending requests to models; absent means allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Ruling>,
}

impl Defaults {
    /// Returns the default for one kind of action, if it is set.
    pub fn ruling_for(&self, access: Access) -> Option<Ruling> {
        match access {
            Access::Read => self.read,
            Access::Write => self.write,
            Access::Run => self.run,
            Access::Tool => self.tool,
            Access::Delegate => self.delegate,
            Access::Send => self.send,
        }
    }
}

/// Rules of one source: a configuration file or a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Path of the file, or a name for a source without file.
    pub file: String,
    pub trust: LayerTrust,
    pub defaults: Defaults,
    /// Rules in the order of the file.
    pub rules: Vec<Rule>,
}

/// Trust in the author of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerTrust {
    /// The user wrote or trusted the rules. They may loosen and tighten.
    Trusted,
    /// The user has not reviewed the rules. They may only tighten.
    TightenOnly,
}

/// Deserializes a string or a list of strings. An empty list is an error, because such a rule would never match.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Patterns;
    impl<'de> Visitor<'de> for Patterns {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a pattern or a list of patterns")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
            let mut patterns = Vec::new();
            while let Some(pattern) = sequence.next_element()? {
                patterns.push(pattern);
            }
            if patterns.is_empty() {
                return Err(serde::de::Error::custom("the list is empty, so the rule would match nothing"));
            }
            Ok(patterns)
        }
    }
    deserializer.deserialize_any(Patterns)
}
