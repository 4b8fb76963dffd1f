//! What the commands for other agents take.

use clap::Args;

use super::Place;

/// Runs another agent under the gate: claude, codex, gemini, copilot or opencode.
///
/// Starts the engine of this workspace, or uses the one that runs. The agent's requests to its model come through sayso, where
/// `sayso request` shows, pauses and edits them; Claude Code and Codex get hooks, too, so that what they write and run is asked about.
/// All this is for this run only; none of the user's files is changed. The terminal is the agent's. What waits is decided
/// elsewhere: `sayso review --follow` in another terminal.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// The agent and its arguments, such as `claude` or `codex exec 'fix the tests'`.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Prints the settings that send an agent's requests to its model through sayso.
///
/// For agents that `sayso run` does not start. They are variables for a shell, for instance `eval "$(sayso env claude)"`, and stay
/// the same as long as `sayso serve` has the same port. Whoever knows the address can send requests with their own key, and no more.
#[derive(Args)]
pub(crate) struct EnvArguments {
    /// The agent: claude, codex, gemini, copilot or opencode.
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Called by another agent's hook: its JSON on standard input, the verdict on standard output.
///
/// `sayso run` installs it. To install it by hand, make it the command of the agent's hooks with `"matcher": "*"`, and give
/// --timeout somewhat less than the time-out that the agent has for it. Without an engine, with input that is not understood, or if
/// the engine goes away, what is about to happen is denied, or whatever `on_failure` under `[hook]` in the configuration says.
#[derive(Args, Clone)]
pub(crate) struct HookArguments {
    /// Whose hook: claude or codex.
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    /// How many seconds a person has to decide. The agents let through what a hook takes longer for, so that this is to be less.
    #[arg(long, value_name = "SECONDS", default_value_t = 55)]
    pub(crate) timeout: u64,
}
