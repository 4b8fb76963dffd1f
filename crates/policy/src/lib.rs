//! Policy: a pure function from rules and a query to allow, later, ask or deny, with the rule that decided.
//!
//! # Evaluation
//!
//! [`Policy::evaluate`] splits a [`PolicyQuery`] into parts: each file, each simple command of a script at any depth, each name.
//! It decides every part on its own, and the strictest ruling counts. For one part:
//!
//! 1. Built-in denials win over every rule: sayso's own files, git's internals.
//! 2. Any rule that denies wins, in every layer.
//! 3. Sensitive files are always asked about: `sayso.toml`, settings of agents, continuous integration.
//! 4. Otherwise the most specific rule wins (session before agent before all), and among equals the last one written. Without a
//!    matching rule the default counts; outside the workspace the default is to ask.
//!
//! Rules about paths outside the workspace use absolute paths. Only the user can write them. A pattern of the workspace, such as
//! `**`, never matches outside it.
//!
//! # Allow rules are narrow, ask and deny rules are wide
//!
//! An allow rule covers a command only to the letter: `git status` does not cover `./git status`, `FOO=1 git status` or,
//! unless `sudo` is allowed too, `sudo git status`. The grammar of the program (`grammars/*.toml`) classifies the words after the
//! rule's own. Words that only read are covered. Paths that the words write are decided as writes, commands that they run as
//! commands. Any other effect, and any word that the grammar does not know, is asked about. If a program has no grammar, the rule
//! covers exactly its own words. `options = "any"` covers all further words.
//!
//! A rule that asks or denies compares the base name of the program, looks through wrappers and skips options. If the match is
//! uncertain, policy asks. It asks at least about every script that the parser does not fully understand.
//!
//! # Limits
//!
//! - Policy does not resolve paths. The caller of [`Policy::evaluate`] resolves symbolic links and lists what a command appears to
//!   write.
//! - Programs do more than their words say: `cargo test` runs the project's code, and a rule that names it allows that.

mod builtin_rules;
mod command_pattern;
mod compile;
mod coverage;
mod decision;
mod effects;
mod environment;
mod evaluate;
mod grammar;
mod index;
mod nested_commands;
mod precedence;
mod query;
mod remember;
mod rule;
mod shell_builtins;
mod starter;

pub use compile::{IgnoredRule, Policy, PolicyError};
pub use decision::{Access, OverriddenRule, OverrideReason, PartDecision, PolicyDecision, RuleId, Ruling};
pub use effects::{Effect, PathTarget, analyze_effects, git_subcommand};
pub use query::{PolicyQuery, Principal};
pub use remember::{RememberAs, RememberError, RuleScope};
pub use rule::{Defaults, Layer, LayerTrust, Rule, RuleOptions};
pub use starter::STARTER_RULES;
