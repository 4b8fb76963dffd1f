//! Hooks of Claude Code and Codex.
//!
//! Before each tool call, the agent starts `sayso hook`, writes a JSON object to its standard input and reads another from its
//! standard output.
//!
//! 1. [`HookCall::parse`] reads the input.
//! 2. [`HookCall::intent`] translates the call into an intent, which an engine decides.
//! 3. [`rewrite()`] compiles the approved change into an input with which the agent's own tool makes exactly that change.
//! 4. [`HookCall::permission_output`] is the object to print.
//!
//! # Limits
//!
//! - Both agents let a call through if the hook fails, prints no output or exceeds [`TIMEOUT_SECONDS`]. A hook that cannot decide
//!   must therefore exit with code 2 and the reason on standard error, which denies the call in both.
//! - Codex calls no hook for input to a program that is already running.

mod call_text;
mod folders;
mod here_document;
mod install;
mod intent;
mod output;
mod own_rules;
mod parse;
#[cfg(feature = "engine")]
mod pre_tool_use;
#[cfg(feature = "engine")]
mod respond;
mod rewrite;

pub use call_text::{WorkingDirectory, call_id, call_text};
pub use folders::OwnFolders;
pub use install::{
    TIMEOUT_SECONDS, claude_settings, claude_settings_with, codex_arguments, codex_trust_advice, codex_trust_keys,
    disabling_argument,
};
pub use output::Permission;
pub use own_rules::{OwnDecision, OwnRules};
pub use parse::{HookCall, HookError, HookEvent, Stopped};
#[cfg(feature = "engine")]
pub use respond::{HookContext, HookResponse, PendingObserver};
pub use rewrite::{CannotRewrite, Rewrite, rewrite};
