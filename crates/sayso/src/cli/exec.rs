//! Arguments of `exec`, `review` and `snapshot`.

use clap::{Args, Subcommand};

use super::{CommonOptions, OriginOptions, VerdictOptions, number};

/// Run a command under the gate, and record the files that it changes
///
/// The rules decide first. If they ask, sayso shows the command with its probable effects and asks on the terminal. Without a terminal
/// the command waits for `sayso review`. Changes in the workspace are recorded file by file, except files that git ignores: `sayso undo
/// ID` undoes them, with --file in part.
///
/// The command runs marked: the kernel keeps a mark on it and on all that it starts, so that none of them can decide (docs/marks.md).
/// A marked command cannot gain privileges: `sudo` does not work. --unmarked runs it without marks, and is recorded.
///
/// Options go before the command. Standard output belongs to the command; sayso writes to standard error, with --json too.
///
/// Exit code of the command; 1 if it was denied, 3 if a rule denied it.
#[derive(Args)]
pub(crate) struct ExecArguments {
    /// The command: one argument for a shell, or a program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    /// Approve it without a question, unless a rule denies it
    #[arg(long, conflicts_with = "deny")]
    pub(crate) approve: bool,
    /// Deny it, and tell the agent why
    #[arg(long, value_name = "REASON")]
    pub(crate) deny: Option<String>,
    /// Run it without marks, for example with sudo; always asks, because it could then decide in your name
    #[arg(long)]
    pub(crate) unmarked: bool,
    /// Purpose of the command, for display
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Directory for the command [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<String>,
    #[command(flatten)]
    pub(crate) origin: OriginOptions,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Decide pending changes, and review what rules applied at once
///
/// Shows each pending change, command and tool call, then the net change of each turn in which rules applied changes at once. Parts
/// of a turn that you deny are reverted, and the agent is told.
///
/// With --approve or --deny sayso does not ask. A command or tool call takes `--approve all` or `--approve none`. If an answer does not
/// fit, or if several changes are pending and none is named, all changes stay pending.
#[derive(Args)]
pub(crate) struct ReviewArguments {
    /// Only these changes; required with --approve or --deny if several are pending
    #[arg(value_name = "ID", value_parser = number::change)]
    pub(crate) changes: Vec<u64>,
    /// Only this session; the start or end of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Stay, and show each change when it arrives
    #[arg(long, conflicts_with_all = ["changes", "approve", "deny", "comment", "json"])]
    pub(crate) follow: bool,
    /// Include workspaces below this one
    #[arg(long, conflicts_with_all = ["changes", "follow", "session", "json"])]
    pub(crate) everywhere: bool,
    #[command(flatten)]
    pub(crate) verdict: VerdictOptions,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// List, take or restore snapshots of files before tool calls
#[derive(Args)]
pub(crate) struct SnapshotArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SnapshotCommand>,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

#[derive(Subcommand)]
pub(crate) enum SnapshotCommand {
    /// List stored snapshots; the default
    List,
    /// Take snapshots of the files that a tool call names
    Take {
        /// Name of the tool
        tool: String,
        /// Arguments of the tool as a JSON object, from which sayso infers the files
        #[arg(value_name = "JSON")]
        arguments: String,
        /// Stage of the tool call
        #[arg(long, value_enum, default_value = "hook")]
        tier: TierChoice,
        /// Id of the tool call
        #[arg(long, value_name = "ID")]
        call: Option<String>,
        /// Session of the tool call
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Restore a file from a snapshot; `sayso undo` undoes it
    Restore {
        /// Number of the snapshot, or id of the tool call
        #[arg(value_name = "ID")]
        id: String,
        /// Show the plan only
        #[arg(long)]
        dry_run: bool,
    },
}

/// The stage of a tool call at which a snapshot is taken.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum TierChoice {
    /// The call is in the model's response, which the agent has not received to its end
    Answer,
    /// The agent's hook asks for permission
    Hook,
    /// The tool has started and may have changed the file
    Start,
}
