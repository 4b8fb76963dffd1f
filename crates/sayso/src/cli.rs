//! The command line. Parsing, help and completions all come from these types.

mod agent;
mod change;
mod common;
mod exec;
mod help;
mod model;
mod number;
mod policy;
mod prompt;
mod request;
mod serve;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};

use crate::output::say;

pub(crate) use agent::{EnvArguments, HookArguments, RunArguments};
pub(crate) use change::{
    BranchArguments, DiffArguments, GcArguments, LogArguments, ProposeArguments, ShowArguments, StatusArguments,
    ToolArguments, UndoArguments,
};
pub(crate) use common::{CommonOptions, OriginOptions, ThemeChoice, VerdictOptions, When};
pub(crate) use exec::{ExecArguments, ReviewArguments, SnapshotArguments, SnapshotCommand, TierChoice};
pub(crate) use help::command;
pub(crate) use model::{DemoArguments, ServeModelArguments};
pub(crate) use policy::{
    ConfigArguments, ExplainArguments, ExplainedAction, PolicyArguments, PolicyCommand, TrustArguments,
};
pub(crate) use prompt::{PromptArguments, SessionsArguments};
pub(crate) use request::{
    ExportFormat, ModeChoice, OverridesAction, RequestArguments, RequestCommand, SaveOptions, ScopeChoice,
    WaitingChoice,
};
pub(crate) use serve::{DoctorArguments, LogFormat, LoginArguments, OpenArguments, ServeArguments};
pub(crate) use watch::WatchArguments;

/// Nothing your coding agent does happens without your say-so.
///
/// sayso stands between a coding agent and what it touches. It shows every change as a diff before it is applied, byte for byte, and you
/// decide hunk by hunk. Applied changes can be undone, with or without git. Requests to models can be paused, read and edited before
/// they are sent. Claude Code, Codex, Gemini CLI, Copilot CLI and opencode run under it.
#[derive(Parser)]
#[command(name = "sayso", version, styles = help::STYLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Commands that run at every tool call or shell prompt. Building the full command line takes half of their time.
#[derive(Parser)]
#[command(name = "sayso", version, styles = help::STYLES, max_term_width = 100)]
struct FastCli {
    #[command(subcommand)]
    command: FastCommand,
}

#[derive(Subcommand)]
enum FastCommand {
    Hook(HookArguments),
    Status(StatusArguments),
}

#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(short_flag = 'p', long_flag = "prompt")]
    Prompt(PromptArguments),
    Sessions(SessionsArguments),
    Demo(DemoArguments),
    Run(RunArguments),
    Exec(ExecArguments),
    Propose(ProposeArguments),
    Env(EnvArguments),
    Hook(HookArguments),
    Review(ReviewArguments),
    Policy(PolicyArguments),
    Trust(TrustArguments),
    Log(LogArguments),
    Show(ShowArguments),
    Status(StatusArguments),
    Watch(WatchArguments),
    /// Undo the last change, or the changes of a tool call, turn or session
    ///
    /// Restores recorded contents of recorded paths only; needs no git. If a file was edited since, the undo is refused, unless
    /// --merge is given and the edits do not overlap. An undo is a change itself: `sayso redo` and `sayso undo ID` undo it.
    ///
    /// Exit code 0 if everything was undone, 4 if a file was edited since or was not captured.
    Undo(UndoArguments),
    /// Redo undone changes: the last undo, or a call, turn or session
    ///
    /// Writes what was recorded when they were first applied. If a file was edited since, the redo is refused, unless --merge is given
    /// and the edits do not overlap. A redo is a change itself: `sayso undo` undoes it.
    Redo(UndoArguments),
    Snapshot(SnapshotArguments),
    Diff(DiffArguments),
    Request(RequestArguments),
    Serve(ServeArguments),
    ServeModel(ServeModelArguments),
    Open(OpenArguments),
    Login(LoginArguments),
    Doctor(DoctorArguments),
    Config(ConfigArguments),
    Branch(BranchArguments),
    Gc(GcArguments),
    Tool(ToolArguments),
    /// Print the completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Parses the command line.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, clap::Error> {
    let arguments = with_inline_lines(arguments);
    if !arguments.get(1).is_some_and(|name| name == "hook" || name == "status") {
        let matches = command().try_get_matches_from(arguments)?;
        return Cli::from_arg_matches(&matches).map(|cli| cli.command);
    }
    FastCli::try_parse_from(arguments).map(|fast| match fast.command {
        FastCommand::Hook(arguments) => Command::Hook(arguments),
        FastCommand::Status(arguments) => Command::Status(arguments),
    })
}

/// Adds the default number to a bare `--inline`, so that a file name may follow it.
fn with_inline_lines(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let is_number = |argument: &OsString| argument.to_str().is_some_and(|text| text.parse::<usize>().is_ok());
    for at in 0..arguments.len() {
        if arguments[at] == "--inline" && !arguments.get(at + 1).is_some_and(is_number) {
            arguments[at] = format!("--inline={}", sayso_diff::INLINE_LINES).into();
        }
    }
    arguments
}

/// Prints help or a usage error, and returns the exit code.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let plain = error.render().to_string();
    // An error quotes arguments, which may hold control characters.
    if plain.chars().any(|character| character.is_control() && character != '\n') {
        say(&plain);
    } else {
        // There is no other channel to report a failure of this one.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

impl Command {
    /// `true` if failures are printed as JSON, too.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Prompt(arguments) => arguments.common.json,
            Self::Sessions(arguments) => arguments.common.json,
            Self::Propose(arguments) => arguments.common.json,
            Self::Exec(arguments) => arguments.common.json,
            Self::Review(arguments) => arguments.common.json,
            Self::Watch(arguments) => arguments.common.json,
            Self::Snapshot(arguments) => arguments.common.json,
            Self::Request(arguments) => arguments.common.json,
            Self::Log(arguments) => arguments.common.json,
            Self::Show(arguments) => arguments.common.json,
            Self::Undo(arguments) | Self::Redo(arguments) => arguments.common.json,
            Self::Status(arguments) => arguments.common.json,
            Self::Branch(arguments) => arguments.common.json,
            Self::Gc(arguments) => arguments.common.json,
            Self::Serve(arguments) => arguments.common.json,
            Self::ServeModel(arguments) => arguments.json,
            Self::Open(arguments) => arguments.common.json,
            Self::Login(arguments) => arguments.common.json,
            Self::Doctor(arguments) => arguments.common.json,
            Self::Diff(arguments) => arguments.json,
            Self::Policy(arguments) => arguments.wants_json(),
            Self::Trust(arguments) => arguments.common.json,
            Self::Config(arguments) => arguments.common.json,
            Self::Env(arguments) => arguments.common.json,
            Self::Run(_) | Self::Demo(_) | Self::Hook(_) | Self::Tool(_) | Self::Completions { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn fast_commands_parse_like_all_others() {
        let (mut all, mut fast) = (command(), FastCli::command());
        all.build();
        fast.build();
        for command in fast.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let same = all.find_subcommand_mut(command.get_name()).unwrap();
            assert_eq!(command.render_long_help().to_string(), same.render_long_help().to_string());
        }
        let parsed = |words: &str| parse(words.split(' ').map(OsString::from));
        assert!(matches!(parsed("sayso status --short"), Ok(Command::Status(StatusArguments { short: true, .. }))));
        assert!(matches!(parsed("sayso hook codex --timeout 7"), Ok(Command::Hook(HookArguments { timeout: 7, .. }))));
        assert!(parsed("sayso hook").is_err());
    }
}
