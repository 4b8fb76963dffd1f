//! What policy answers, and by which rule.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is to become of an act, from the mildest to the strictest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It happens.
    Allow,
    /// It happens, and the turn's net change is put up for review at the end of the turn.
    Later,
    /// Somebody decides first.
    Ask,
    /// It does not happen.
    Deny,
}

impl Ruling {
    /// The word in a rule.
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

/// What is done with what a part names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// A file is read.
    Read,
    /// A file is written, made, renamed or removed.
    Write,
    /// A program is run.
    Run,
    /// A tool is called.
    Tool,
    /// Work is handed to another agent.
    Delegate,
    /// A request is sent to a model.
    Send,
}

impl Access {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Run, Self::Tool, Self::Delegate, Self::Send];

    /// The key in a rule and among the defaults.
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

    /// What happens where nobody said anything else.
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

/// The rule that decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RuleId {
    /// One that no configuration changes.
    BuiltIn {
        /// Its name.
        name: String,
    },
    /// No rule matched: what is done with all such things.
    Default {
        /// With which things.
        access: Access,
        /// The file that says so; `None` if none does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// One that somebody wrote.
    Rule {
        /// The file, or the session, that it stands in.
        file: String,
        /// Which one of that file, from 1.
        number: usize,
        /// Its name, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
}

impl RuleId {
    /// What an agent is told: the name that somebody gave it, without where it stands.
    pub fn short(&self) -> String {
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

/// What policy says to an act: the strictest ruling among its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruled {
    /// What is to become of it.
    pub ruling: Ruling,
    /// The rule that decided: that of the first of the strictest parts.
    pub by: RuleId,
    /// What to tell the agent, if the rule says anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Each thing that was judged, in the order of the act.
    pub parts: Vec<Part>,
}

/// One thing that an act does: one file, one simple command, one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What is done.
    pub access: Access,
    /// With what: a path, the words of a command, a name.
    pub what: String,
    /// What is to become of it.
    pub ruling: Ruling,
    /// The rule that decided.
    pub by: RuleId,
    /// What the rule says why; of something that is asked about, the word that hinders a rule, in one clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Other rules about this, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Lost>,
}

/// A rule that is about a part and did not decide it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The rule.
    pub rule: RuleId,
    /// What it would have said.
    pub then: Ruling,
    /// Why it did not.
    pub why: Why,
}

/// Why a rule did not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No rule has a say in this.
    BuiltIn,
    /// A deny counts more than anything else.
    DenyWins,
    /// This is always asked about.
    AlwaysAsks,
    /// Another is about fewer: a session, or an agent.
    Narrower,
    /// Another was written later.
    Later,
    /// Another asks, which is stricter.
    Stricter,
    /// The workspace's file is not trusted, so that it can only tighten.
    Untrusted,
    /// It would have matched, were no variable set before the command.
    Assignment,
    /// It would have matched, were the program named as in the rule, without a directory.
    OtherProgram,
    /// It would have matched, were the command not run by another program.
    Wrapped,
    /// It would have matched, were all words of the command known.
    UnknownWords,
    /// It covers its very words only: sayso does not know the options of the program.
    FurtherWords,
    /// A further word of the command does more than the rule says.
    FurtherEffect,
    /// A further word of the command is not understood.
    Unclear,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "no rule has a say in this",
            Self::DenyWins => "a deny counts more than any other rule",
            Self::AlwaysAsks => "this is always asked about",
            Self::Narrower => "the deciding rule is about fewer agents or sessions",
            Self::Later => "the deciding rule was written later",
            Self::Stricter => "the deciding rule is stricter",
            Self::Untrusted => "the workspace's file is not trusted, so it can only tighten",
            Self::Assignment => "it does not cover a command with a variable set before it",
            Self::OtherProgram => "it names the program without a directory, the command names one",
            Self::Wrapped => "it does not cover a command that another program runs",
            Self::UnknownWords => "it needs words that are known before the command runs",
            Self::FurtherWords => {
                "sayso does not know this program's options, so it covers its very words only; `options = \"any\"` widens it"
            }
            Self::FurtherEffect => "a further word of the command does more than it says",
            Self::Unclear => "a further word of the command is not understood",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_from_mild_to_strict() {
        assert!(Ruling::Allow < Ruling::Later && Ruling::Later < Ruling::Ask && Ruling::Ask < Ruling::Deny);
    }
}
