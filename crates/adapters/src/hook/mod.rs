//! The hooks of Claude Code and of Codex.
//!
//! Before it uses a tool, the agent starts a command of ours with a JSON object on standard input and waits for one on standard
//! output. [`HookCall::parse`] reads it, [`HookCall::intent`] says what the agent is about to do, [`rewrite()`] compiles what was
//! approved into an input with which the agent's own tool makes exactly that, and [`HookCall::answer`] is what to print.
//!
//! # Limits
//!
//! - Both agents let a call through when a hook fails, says nothing or takes too long. So whoever runs a hook must answer before
//!   [`TIMEOUT_SECONDS`] have passed, and must exit with code 2 and the reason on standard error where it cannot answer at
//!   all: that denies in both.
//! - Codex calls no hook for what is typed into a program that is already running.

mod agent;
mod answer;
mod call_text;
#[cfg(feature = "engine")]
mod flow;
mod folders;
mod here_document;
mod install;
mod intent;
mod own_rules;
mod parse;
mod rewrite;

pub use agent::{Agent, UnknownAgent};
pub use answer::Permission;
pub use call_text::{Folder, call_id, call_text};
#[cfg(feature = "engine")]
pub use flow::{Context, HookResponse, Pending};
pub use folders::OwnFolders;
pub use install::{
    TIMEOUT_SECONDS, claude_settings, claude_settings_with, codex_arguments, codex_trust_advice, codex_trust_keys,
    switches_hooks_off,
};
pub use own_rules::{OwnDecision, OwnRules};
pub use parse::{HookCall, HookError, HookEvent, Stopped};
pub use rewrite::{CannotRewrite, Rewrite, rewrite};
