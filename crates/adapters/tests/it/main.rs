//! Tests of the adapters.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests panic to fail, run agents and say why they are skipped"
)]

mod dialect;
mod end_to_end;
mod install;
mod real_claude;
mod real_codex;
mod recorder;
mod rewriting;
mod tool_models;
