//! Output of policy: rulings, and the rules that made them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Decision about an action, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    Allow,
    /// Permit it, and queue the turn's net change for review at the end of the turn.
    Later,
    /// Hold it until a person decides.
    Ask,
    Deny,
}

impl Ruling {
    /// Returns the keyword of the configuration file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Later => "later",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Kind of action, which is also the key of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    /// Creates, changes, renames or removes a file.
    Write,
    Run,
    Tool,
    /// Delegates work to another agent.
    Delegate,
    /// Sends a request to a model provider.
    Send,
}

impl Access {
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Run, Self::Tool, Self::Delegate, Self::Send];

    /// Returns the key in a rule and in `[defaults]`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Run => "run",
            Self::Tool => "tool",
            Self::Delegate => "delegate",
            Self::Send => "send",
        }
    }

    /// Returns the ruling if no configuration sets a default.
    pub fn built_in_default(self) -> Ruling {
        match self {
            Self::Read | Self::Send => Ruling::Allow,
            Self::Write | Self::Run | Self::Tool | Self::Delegate => Ruling::Ask,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Identity of a rule, for display and for the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RuleId {
    /// A rule that no configuration changes.
    BuiltIn { name: String },
    /// The default for a kind of action, because no rule matched.
    Default {
        access: Access,
        /// The file that sets the default; `None` for the built-in default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// A rule of a configuration file or of a session.
    Rule {
        /// Path of the file, or name of the session.
        file: String,
        /// Position in the file, from 1.
        number: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

impl RuleId {
    /// Returns the name without the file, for messages to the agent.
    pub fn short_name(&self) -> String {
        match self {
            Self::BuiltIn { name } | Self::Rule { name: Some(name), .. } => name.clone(),
            Self::Default { access, .. } => format!("the default for `{access}`"),
            Self::Rule { number, name: None, .. } => format!("rule {number}"),
        }
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn { name } => write!(f, "built-in rule: {name}"),
            Self::Default { access, file: None } => write!(f, "the default for `{access}`"),
            Self::Default { access, file: Some(file) } => write!(f, "the default for `{access}` in {file}"),
            Self::Rule { file, number, name: None } => write!(f, "rule {number} of {file}"),
            Self::Rule { file, number, name: Some(name) } => write!(f, "\"{name}\", rule {number} of {file}"),
        }
    }
}

/// Decision about a query: the strictest ruling among its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDecision {
    pub ruling: Ruling,
    /// The rule that decided the first of the strictest parts.
    pub rule: RuleId,
    /// Reason of that part. The agent sees it if the action is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Decisions about all parts, in the order of the query.
    pub parts: Vec<PartDecision>,
}

/// Decision about one part of a query: a file, a simple command or a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartDecision {
    pub access: Access,
    /// A path, the words of a command, or a name.
    pub target: String,
    pub ruling: Ruling,
    pub rule: RuleId,
    /// The rule's own reason. For [`Ruling::Ask`] without one: a clause that names the word which no rule covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Other matching rules; filled by `Policy::explain` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<OverriddenRule>,
}

/// A rule that matches a part and did not decide it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverriddenRule {
    pub rule: RuleId,
    /// Ruling of this rule.
    pub then: Ruling,
    pub reason: OverrideReason,
}

/// Reason why a matching rule did not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverrideReason {
    /// A built-in rule decided.
    BuiltIn,
    /// A deny rule matched.
    DenyWins,
    /// A built-in rule always asks.
    AlwaysAsk,
    /// The deciding rule is limited to a session or an agent.
    Narrower,
    /// The deciding rule was written later.
    Later,
    /// The deciding rule asks, which is stricter.
    Stricter,
    /// The workspace's file is not trusted, so it can only tighten.
    Untrusted,
    /// The command has a variable assignment in front.
    Assignment,
    /// The command names the program with a directory, the rule without.
    OtherProgram,
    /// Another program runs the command.
    Wrapped,
    /// A word of the command depends on an expansion.
    UnknownWords,
    /// The program has no grammar, so the rule covers only its own words.
    FurtherWords,
    /// A word after the rule's own words has an effect.
    FurtherEffect,
    /// The grammar does not know a word after the rule's own words.
    Unclear,
}

impl fmt::Display for OverrideReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "a built-in rule decides this",
            Self::DenyWins => "a deny overrides all other rules",
            Self::AlwaysAsk => "this is always asked about",
            Self::Narrower => "the deciding rule is limited to fewer agents or sessions",
            Self::Later => "the deciding rule was written later",
            Self::Stricter => "the deciding rule is stricter",
            Self::Untrusted => "the workspace's file is not trusted, so it can only tighten",
            Self::Assignment => "it does not cover a command with a variable assignment",
            Self::OtherProgram => "it names the program without a directory, but the command has one",
            Self::Wrapped => "it does not cover a command that another program runs",
            Self::UnknownWords => "it covers only words that are known before the command runs",
            Self::FurtherWords => {
                "sayso has no grammar for this program, so it covers its own words only; `options = \"any\"` widens it"
            }
            Self::FurtherEffect => "another word of the command has an effect that it does not cover",
            Self::Unclear => "sayso does not know another word of the command",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rulings_order_from_mild_to_strict() {
        assert!(Ruling::Allow < Ruling::Later && Ruling::Later < Ruling::Ask && Ruling::Ask < Ruling::Deny);
    }
}
