//! Rules and defaults as they are written.

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::ruling::{Access, Ruling};

/// What is to become of some things, as somebody wrote it.
///
/// A rule is about everything that any of its patterns matches.
///
/// - `read` and `write`: paths, as in [`PathGlobs`](sayso_base::PathGlobs). `*` stays within a name, `**` crosses directories, a path
///   without wildcards stands for itself and all below it. A deny also matches names that differ in case only.
/// - `run`: the first words of a command. `*` is any one word; a `$` at the end means that nothing follows. Words with spaces,
///   and a `*` or `$` that mean themselves, are quoted as in a shell. A rule that allows covers further words only as far as the
///   grammar of the program says that they have no effect of their own; `options = "any"` covers all of them.
/// - `tool`, `delegate`, `send`: names, in which `*` is any text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What to call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Files that are read.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Files that are written.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Commands, by their first words.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    /// Tools, by name.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    /// Agents that work is handed to, by name.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub delegate: Vec<String>,
    /// Upstreams that requests are sent to, by name.
    #[serde(default, deserialize_with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub send: Vec<String>,
    /// Widens `run` of a rule that allows to all words that follow, whatever they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<RuleOptions>,
    /// Only for this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What is to become of it.
    pub then: Ruling,
    /// What the agent is told if it is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Options and operands that an allowed command may have beyond the words of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleOptions {
    /// All of them, known or not.
    Any,
}

impl Rule {
    /// A rule about nothing yet.
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

    /// Its patterns of one kind.
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

    /// Its patterns in one line, for a person: ``run `touch a $`, write `a` ``.
    pub fn about(&self) -> String {
        let mut parts = Vec::new();
        for access in [Access::Run, Access::Tool, Access::Delegate, Access::Send, Access::Read, Access::Write] {
            parts.extend(self.patterns(access).iter().map(|pattern| format!("{access} `{pattern}`")));
        }
        parts.join(", ")
    }

    /// Whether it makes anything milder than asking.
    pub fn loosens(&self) -> bool {
        self.then < Ruling::Ask
    }
}

/// What is to become of things that no rule is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Of reading; allowed if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Ruling>,
    /// Of writing; asked if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Ruling>,
    /// Of commands; asked if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Ruling>,
    /// Of tools; asked if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Ruling>,
    /// Of handing work to other agents; asked if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegate: Option<Ruling>,
    /// Of requests to models; allowed if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<Ruling>,
}

impl Defaults {
    /// What is said about one kind.
    pub fn of(&self, access: Access) -> Option<Ruling> {
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

/// Rules from one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The file, or what else to call the place.
    pub file: String,
    /// Whose it is.
    pub standing: Standing,
    /// What it says of things that no rule is about.
    pub defaults: Defaults,
    /// Its rules, in the order they are written.
    pub rules: Vec<Rule>,
}

/// What the rules of a layer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Anything: they are the user's, or the user trusts them.
    Full,
    /// Make things stricter: the user has not seen them.
    Tightens,
}

/// Reads one text or a list of them. None at all is a mistake: a rule that is about nothing protects nothing.
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
