//! The command line of commands that are run under the gate, of reviews and of snapshots.

use clap::{Args, Subcommand};

use super::{Answers, Place, Source, number};

/// Runs a command under the gate: shown, judged by the rules, asked about, run; what it changed is found and can be undone.
///
/// The rules decide first. Where they ask, the command is shown with what it appears to do. On a terminal you are asked; elsewhere it
/// waits until somebody decides with `sayso review`, and says so. What a command changes in the workspace while it runs is recorded file by
/// file, except what git ignores: `sayso undo ID` takes it back, and with --file only some of it.
///
/// The command runs marked: the kernel keeps a mark on it and on all that it starts, so that nothing of it decides about anything (see
/// docs/marks.md). A marked command cannot gain privileges: `sudo` does not work in it. --unmarked runs it without, and is recorded.
///
/// Ends with the command's own exit code; 1 if it was denied, 3 if a rule denied it. Standard output is the command's: what sayso has to say,
/// with --json too, goes to standard error. Options go before the command.
#[derive(Args)]
pub(crate) struct ExecArguments {
    /// The command: one argument as a shell reads it, or a program and its arguments.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    /// Approve it without being asked, if no rule denies it.
    #[arg(long, conflicts_with = "deny")]
    pub(crate) approve: bool,
    /// Deny it, and tell the agent why.
    #[arg(long, value_name = "REASON")]
    pub(crate) deny: Option<String>,
    /// Run it without marks, for instance with sudo. You are asked, whatever the rules say; it could then decide in your name.
    #[arg(long)]
    pub(crate) unmarked: bool,
    /// What it is for, to be shown.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Where to run it, from here; here, if not said.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<String>,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Decides about what waits, and reviews what happened at once.
///
/// Shows each change, command or tool call that waits for a verdict, and then, for each turn in which rules let changes happen at once,
/// what the turn changed in all: many edits of one file are one diff. What you refuse of that is taken back, and the agent is told.
///
/// With --approve or --deny nothing is asked. A command or a tool call takes `--approve all` or `--approve none`. If an answer does not fit
/// what waits, or several things wait and none is named, nothing is decided.
#[derive(Args)]
pub(crate) struct ReviewArguments {
    /// Only the changes with these numbers. To answer with --approve or --deny while several wait, name those that are meant.
    #[arg(value_name = "ID", value_parser = number::change)]
    pub(crate) changes: Vec<u64>,
    /// Only what this session did; the beginning of its id will do.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Stay, and show each change as it comes. Where somebody else decides first, it goes on with the next.
    #[arg(long, conflicts_with_all = ["changes", "approve", "deny", "comment", "json"])]
    pub(crate) follow: bool,
    /// Also what waits in workspaces below this one.
    #[arg(long, conflicts_with_all = ["changes", "follow", "session", "json"])]
    pub(crate) everywhere: bool,
    #[command(flatten)]
    pub(crate) answers: Answers,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Keeps what files are before a tool call changes them, lists what is kept, and puts it back.
#[derive(Args)]
pub(crate) struct SnapshotArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SnapshotCommand>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Lists what is kept, as does no subcommand.
    List,
    /// Keeps what the files are that a tool call is about.
    Take {
        /// The tool's name.
        tool: String,
        /// Its arguments as a JSON object: which files it is about is read from them.
        #[arg(value_name = "JSON")]
        arguments: String,
        /// Where in the call's life this is.
        #[arg(long, value_enum, default_value = "hook")]
        tier: TierChoice,
        /// The call's id.
        #[arg(long, value_name = "ID")]
        call: Option<String>,
        /// The session.
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Puts a file back to what a snapshot kept of it. It is a change like any other: `sayso undo` takes it back.
    Restore {
        /// The snapshot's number, or the id of a tool call.
        #[arg(value_name = "ID")]
        which: String,
        /// Show what would happen and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

/// When a snapshot is taken.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum TierChoice {
    /// The call is in the model's answer, which the agent has not received to its end.
    Answer,
    /// The agent asks whether it may.
    Hook,
    /// The tool has started; the file may have been changed already.
    Start,
}
