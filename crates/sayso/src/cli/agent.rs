//! Arguments of the commands for agents.

use clap::Args;

use super::CommonOptions;

/// Run claude, codex, gemini, copilot or opencode under the gate
///
/// Starts the engine of the workspace, or uses the running one. The agent's requests to its model go through sayso: `sayso request`
/// shows, pauses and edits them. Claude Code and Codex also get hooks, so that sayso asks before they write or run anything.
///
/// The settings are for this run only. sayso never edits the agent's configuration files. The agent has the terminal; decide in
/// another one with `sayso review --follow`.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// The agent and its arguments, such as `claude` or `codex exec 'fix the tests'`
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Print the settings that route an agent's requests through sayso
///
/// For agents that `sayso run` does not start. Prints variables for a shell: `eval "$(sayso env claude)"`. They stay valid while
/// `sayso serve` keeps its port. A program that knows the address can send requests with its own key; it grants no other access.
#[derive(Args)]
pub(crate) struct EnvArguments {
    /// The agent: claude, codex, gemini, copilot or opencode
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Answer an agent's hook: its JSON on stdin, the verdict on stdout
///
/// `sayso run` installs it. To install it yourself, make it the command of the agent's hooks with `"matcher": "*"`, and give --timeout
/// a few seconds less than the agent's own time-out. If no engine runs or the input is not understood, the hook denies, unless
/// `on_failure` under `[hook]` in the configuration says otherwise.
#[derive(Args, Clone)]
pub(crate) struct HookArguments {
    /// The agent: claude or codex
    #[arg(value_name = "AGENT")]
    pub(crate) agent: String,
    /// Seconds for a person to decide; less than the agent's time-out, after which it goes on without a verdict
    #[arg(long, value_name = "SECONDS", default_value_t = 55)]
    pub(crate) timeout: u64,
}
