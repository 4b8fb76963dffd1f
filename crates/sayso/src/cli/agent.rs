//! What the commands for other agents take.

use clap::Args;

use super::Place;

/// Runs another agent under the gate: Claude Code or Codex.
///
/// Starts the engine of this workspace, or uses the one that runs, and gives the agent hooks for this run only; none of its user's
/// files is changed. The terminal is the agent's. What waits is decided elsewhere: `sayso review --follow` in another terminal.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// The agent and its arguments, such as `claude` or `codex exec 'fix the tests'`.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Called by another agent's hook: its JSON on standard input, the verdict on standard output.
///
/// `sayso run` installs it. To install it by hand, make it the command of the agent's hooks with `"matcher": "*"`, and give
/// --timeout somewhat less than the time-out that the agent has for it. Without an engine, with input that is not understood, or if
/// the engine goes away, what is about to happen is denied, or whatever `on_failure` under `[hook]` in the configuration says.
#[derive(Args)]
pub(crate) struct HookArguments {
    /// Whose hook: claude or codex.
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    /// How many seconds a person has to decide. The agents let through what a hook takes longer for, so that this is to be less.
    #[arg(long, value_name = "SECONDS", default_value_t = 55)]
    pub(crate) timeout: u64,
}
