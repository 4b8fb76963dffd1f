//! Arguments of `-p` and `sessions`.

use clap::Args;

use super::{CommonOptions, number};

/// Give the built-in agent a task, without a terminal surface
///
/// Prints the agent's text as it arrives, and what it does on stderr. Its changes, commands and model requests are under the gate: rules
/// decide, or a person in another terminal (`sayso review --follow`), or they are denied at their deadline. Ctrl-C interrupts.
///
/// Without a prompt, --resume continues an interrupted task. Keys come from ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or from
/// a file; docs/agent.md has the details.
///
/// Exit code 0 if the agent finished, 1 if it was interrupted, cancelled or stopped at a limit, 70 if it failed.
#[derive(Args)]
pub(crate) struct PromptArguments {
    /// The task
    #[arg(value_name = "PROMPT", required_unless_present = "resume")]
    pub(crate) prompt: Option<String>,
    /// Scenario: CODE, EDITOR_CODE, ASK, or one of your own
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Option<String>,
    /// Model, such as claude-sonnet-4-5
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Model API: anthropic-messages, openai-chat, openai-responses or gemini
    #[arg(long, value_name = "DIALECT")]
    pub(crate) dialect: Option<String>,
    /// Upstream in the configuration, such as anthropic
    #[arg(long, value_name = "NAME")]
    pub(crate) upstream: Option<String>,
    /// Add a file of the workspace to the prompt; may be given several times
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// Continue a session; the start of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Continue the conversation of a recorded request in a new session
    #[arg(long, value_name = "NUMBER", value_parser = number::request, conflicts_with = "resume")]
    pub(crate) from_request: Option<u64>,
    /// Work on a git branch for the task: changes are applied at once and reviewed at the end
    #[arg(long, value_name = "TASK", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    pub(crate) branch: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// List the sessions of the built-in agent, and how to resume them
#[derive(Args)]
pub(crate) struct SessionsArguments {
    /// Number of sessions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = number::count)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}
