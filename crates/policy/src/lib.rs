//! Policy: one pure function of rules and an act to allow, later, ask or deny, with the rule that decided.
//!
//! # How it is decided
//!
//! An act is taken apart: every file, every simple command of a script wherever it stands, every name. Each part is judged by
//! itself, and the strictest ruling counts. For one part:
//!
//! 1. A few denials nothing overrides: sayso's own files, git's internals.
//! 2. Any rule that denies wins, wherever it stands.
//! 3. A few things are always asked about, whatever rules say: `sayso.toml`, settings of agents, continuous integration.
//! 4. Else the rule with the narrowest scope wins (a session's before an agent's before everybody's), and among those the last
//!    one that was written. If there is none, the default counts; outside the workspace it is to ask.
//!
//! Rules about paths outside the workspace are absolute. Only the user can write them, and a pattern of the workspace, such as
//! `**`, never reaches there.
//!
//! # Milder and stricter rules read commands differently
//!
//! A rule that allows covers a command only to the letter: `git status` does not cover `./git status`, `FOO=1 git status` or,
//! unless `sudo` is allowed too, `sudo git status`. Words that follow those of the rule are read by the grammar of the program
//! (`grammars/*.toml`): they are covered if they only read. Paths that they write are judged as writes, commands that they run as
//! commands. Any other effect, and any word that the grammar does not know, is asked about. A program without a grammar is covered
//! with the very words of the rule. `options = "any"` covers whatever follows.
//!
//! A rule that asks or denies reaches further: it goes by the last name of the program, through wrappers and past options, and
//! where it cannot be sure it asks. A script that is not understood in whole is asked about at least.
//!
//! # Limits
//!
//! - Where a path leads is not known here; whoever makes the [`Act`] says what it appears to write.
//! - Programs do more than their words say: `cargo test` runs the project's code, and a rule that names it allows that.

mod act;
mod always;
mod builtins;
mod choose;
mod compile;
mod coverage;
mod effects;
mod environment;
mod from_now_on;
mod grammar;
mod index;
mod inner;
mod judge;
mod rule;
mod ruling;
mod starter;
mod words;

pub use act::{Act, Who};
pub use compile::{Ignored, Policy, PolicyError};
pub use effects::{Effect, Place, effects, git_subcommand};
pub use from_now_on::{FromNowOn, FromNowOnError, RuleScope};
pub use rule::{Defaults, Layer, Rule, RuleOptions, Standing};
pub use ruling::{Access, Lost, Part, RuleId, Ruled, Ruling, Why};
pub use starter::STARTER_RULES;
