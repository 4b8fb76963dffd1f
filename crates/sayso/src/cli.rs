//! The command line, once: parsing, help and completions all come from here.

mod agent;
mod exec;
mod number;
mod place;
mod policy;
mod request;
mod serve;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};
use clap::{Args, Parser, Subcommand};

use crate::output::say;

pub(crate) use agent::{EnvArguments, HookArguments, RunArguments};
pub(crate) use exec::{ExecArguments, ReviewArguments, SnapshotArguments, SnapshotCommand, TierChoice};
pub(crate) use place::{Answers, Place, Source, ThemeChoice, When};
pub(crate) use policy::{Asked, ConfigArguments, Explain, PolicyArguments, PolicyCommand, TrustArguments};
pub(crate) use request::{
    At, ExportFormat, Later, ModeChoice, OverridesAction, RequestArguments, RequestCommand, ScopeChoice, WaitingChoice,
};
pub(crate) use serve::{DoctorArguments, LogFormat, LoginArguments, ServeArguments};
pub(crate) use watch::WatchArguments;

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Nothing your coding agent does happens without your say-so.
///
/// sayso stands between a coding agent and what it touches. Every change is shown as a diff before it happens, byte for
/// byte, and you decide, hunk by hunk; what was applied can be undone, with or without git. The agent's requests to its model
/// can wait for you, too, to be read and edited before they are sent. Claude Code, Codex, Gemini CLI, Copilot CLI and opencode run
/// under it; proposals and commands come from files, pipes and terminals as well; editors and browsers come next.
#[derive(Parser)]
#[command(name = "sayso", version, styles = STYLES, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What runs at every call of a tool and at every prompt of a shell. Read without the rest of the command line, whose description alone
/// takes half of such a command's time.
#[derive(Parser)]
#[command(name = "sayso", version, styles = STYLES, max_term_width = 100)]
struct Often {
    #[command(subcommand)]
    command: OftenCommand,
}

#[derive(Subcommand)]
enum OftenCommand {
    Hook(HookArguments),
    Status(StatusArguments),
}

/// Reads the command line.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, clap::Error> {
    let arguments = with_inline_lines(arguments);
    if !arguments.get(1).is_some_and(|name| name == "hook" || name == "status") {
        return Cli::try_parse_from(arguments).map(|cli| cli.command);
    }
    Often::try_parse_from(arguments).map(|often| match often.command {
        OftenCommand::Hook(arguments) => Command::Hook(arguments),
        OftenCommand::Status(arguments) => Command::Status(arguments),
    })
}

const EXAMPLES: &str = "\
Examples:
  sayso propose change.patch               decide hunk by hunk, as with `git add -p`
  sayso propose change.json --approve 1,3  take two hunks and refuse the rest
  sayso exec 'make fmt'                    run a command under the gate, and find what it changed
  sayso run -- claude                      run claude, codex, gemini, copilot or opencode
  sayso review                             decide about what waits, and about what happened at once
  sayso review --follow                    stay, and decide about each change as it comes
  sayso serve                              serve this workspace's engine; prints its address
  sayso request mode pause-next            have an agent's next request wait, to edit it
  sayso policy explain run 'rm -rf build'  what the rules make of it, and which one decides
  sayso log                                what was proposed and what became of it
  sayso undo                               take the last change back, whoever made it
  sayso diff old.rs new.rs                 what changed, with words and syntax coloured
  sayso diff old.rs new.rs > change.patch  the same as a patch
  git show HEAD:a.rs | sayso diff - a.rs   one side from standard input
  sayso diff before/ after/ | git apply -  two directory trees, and what to do with them
  sayso diff a b --inline                  the ten lines that a card in the stream shows
  sayso tool list                          the built-in tools, their arguments and needs
  sayso tool Diff --grant Diff --read 'src/**' --args '{\"path_a\":\"src/a.rs\",\"path_b\":\"src/b.rs\"}'

Exit codes:
  0   done, or no difference
  1   a difference, or something was denied
  2   wrong usage or bad input
  3   refused: not granted, or denied by a rule
  4   stale or conflict
  70  a fault or a limit of sayso itself";

/// Gives a bare `--inline` its number, so that a file name may follow it.
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

/// Prints help, or what is wrong with the command line; that names arguments, which may hold anything.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let plain = error.render().to_string();
    if plain.chars().any(|character| character.is_control() && character != '\n') {
        say(&plain);
    } else {
        // Coloured where the terminal has colours. Nobody is left to tell if it fails.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Propose(ProposeArguments),
    Exec(ExecArguments),
    Review(ReviewArguments),
    Watch(WatchArguments),
    Log(LogArguments),
    Show(ShowArguments),
    /// Takes changes back: the last one, one by its number, all of a tool call, a turn or a session.
    ///
    /// Restores recorded contents of recorded paths and touches nothing else; needs no git. If a file is no longer as the change left it,
    /// nothing happens, unless --merge is given and the two can be merged. It is a change itself: `sayso redo` and `sayso undo ID` take
    /// it back.
    ///
    /// Exit code 0 if all was taken back, 4 if a file was changed since, or if something was not captured and so could not be put back.
    Undo(UndoArguments),
    /// Makes changes again that were taken back: those of the last undo, one by its number, all of a tool call, a turn or a session.
    ///
    /// Writes what was recorded when they were first made. If a file is no longer as the undo left it, nothing happens, unless --merge is
    /// given and the two can be merged. It is a change itself: `sayso undo` takes it back.
    Redo(UndoArguments),
    Status(StatusArguments),
    Snapshot(SnapshotArguments),
    Request(RequestArguments),
    Branch(BranchArguments),
    Gc(GcArguments),
    Serve(ServeArguments),
    Login(LoginArguments),
    Doctor(DoctorArguments),
    Run(RunArguments),
    Env(EnvArguments),
    Hook(HookArguments),
    Diff(DiffArguments),
    Tool(ToolArguments),
    Policy(PolicyArguments),
    Trust(TrustArguments),
    Config(ConfigArguments),
    /// Prints the completion script for a shell, to be sourced or saved where the shell looks for it.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Whether even a failure is to be told as JSON.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Propose(arguments) => arguments.place.json,
            Self::Exec(arguments) => arguments.place.json,
            Self::Review(arguments) => arguments.place.json,
            Self::Watch(arguments) => arguments.place.json,
            Self::Snapshot(arguments) => arguments.place.json,
            Self::Request(arguments) => arguments.place.json,
            Self::Log(arguments) => arguments.place.json,
            Self::Show(arguments) => arguments.place.json,
            Self::Undo(arguments) | Self::Redo(arguments) => arguments.place.json,
            Self::Status(arguments) => arguments.place.json,
            Self::Branch(arguments) => arguments.place.json,
            Self::Gc(arguments) => arguments.place.json,
            Self::Serve(arguments) => arguments.place.json,
            Self::Login(arguments) => arguments.place.json,
            Self::Doctor(arguments) => arguments.place.json,
            Self::Diff(arguments) => arguments.json,
            Self::Policy(arguments) => arguments.wants_json(),
            Self::Trust(arguments) => arguments.place.json,
            Self::Config(arguments) => arguments.place.json,
            Self::Env(arguments) => arguments.place.json,
            Self::Run(_) | Self::Hook(_) | Self::Tool(_) | Self::Completions { .. } => false,
        }
    }
}

/// Shows what differs between two files, or two directories.
///
/// On a terminal: line numbers, changed words and syntax coloured, control characters made visible. Into a pipe or a file: a
/// patch with exactly the files' bytes; differences in encoding, line ending or final newline are noted on standard error.
///
/// `patch` takes the diff of two files. `git apply` takes that of two directories, symbolic links and modes included, and that of
/// two files if they have one name: --label-a a/NAME --label-b b/NAME. UTF-16 is shown decoded, to be read. Binary files are only named, unless with --text.
///
/// Exit code 0 if there is no difference, 1 if there is one, 2 if something went wrong.
#[derive(Args)]
pub(crate) struct DiffArguments {
    /// The old file or directory; `-` for standard input, `/dev/null` for none.
    #[arg(value_name = "A", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) old: PathBuf,
    /// The new file or directory; `-` for standard input, `/dev/null` for none.
    #[arg(value_name = "B", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) new: PathBuf,
    /// Unchanged lines to show around each change.
    #[arg(short = 'U', long, value_name = "N", default_value_t = 3, value_parser = number::count)]
    pub(crate) context: usize,
    /// Print one JSON value: the Diff tool's object, or with --inline the card's.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the short form of a card: at most N lines (10 if not said), one line of context.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub(crate) inline: Option<usize>,
    /// When to use colours; `auto` means on a terminal.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Colours for a dark or a light background; `auto` asks COLORFGBG and else takes dark.
    #[arg(long, value_name = "THEME", default_value = "auto")]
    pub(crate) theme: ThemeChoice,
    /// The name to show for A.
    #[arg(long, value_name = "LABEL")]
    pub(crate) label_a: Option<String>,
    /// The name to show for B.
    #[arg(long, value_name = "LABEL")]
    pub(crate) label_b: Option<String>,
    /// Show lines even of binary files.
    #[arg(short = 'a', long)]
    pub(crate) text: bool,
}

/// Runs a built-in tool as an agent would, or lists the tools.
///
/// Prints one JSON value: the result, or `{"error":{"kind","message","hint"}}`. Nothing is granted unless it is named here.
#[derive(Args)]
pub(crate) struct ToolArguments {
    /// The tool, or `list`.
    #[arg(value_name = "NAME|list")]
    pub(crate) name: String,
    /// The arguments as a JSON object; `-` reads them from standard input.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) args: String,
    /// Grants a tool by name; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) grant: Vec<String>,
    /// Grants reading the files that match; may be given several times. `.` grants the whole workspace.
    #[arg(long, value_name = "GLOB")]
    pub(crate) read: Vec<String>,
    /// Grants writing the files that match; may be given several times.
    #[arg(long, value_name = "GLOB")]
    pub(crate) write: Vec<String>,
    /// The workspace; nothing outside it can be reached.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
}

/// Shows what a proposal would change, asks, and does exactly what was approved.
///
/// A proposal is a patch (unified, or from `*** Begin Patch` to `*** End Patch`) or JSON: {"changes":[{"path","operation",…}]} with the
/// operations create, update, write (new_content), edit (old_string, new_string, replace_all), patch (patch), delete, and rename (to).
/// Text is written in the encoding and with the line endings that the file has.
///
/// The rules decide first (`sayso policy explain`): what they deny is not done, what they allow is not asked about, and what they put off
/// happens at once and is reviewed at the end of the turn (`sayso review`).
///
/// All of what is approved happens, or nothing. If a file changes while you decide, nothing is written: both changes are merged and asked
/// about again. With --json and no answer, nothing is recorded or written: the preview is printed.
///
/// Exit code 0 if all was applied, 1 if something was denied, 4 if a file was stale or in conflict.
#[derive(Args)]
pub(crate) struct ProposeArguments {
    /// The proposal; `-` for standard input.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) proposal: PathBuf,
    #[command(flatten)]
    pub(crate) answers: Answers,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Lists the changes of the workspace, newest first.
#[derive(Args)]
pub(crate) struct LogArguments {
    /// How many to list.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = number::count)]
    pub(crate) number: usize,
    /// Only those of this session; the beginning of its id will do.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Shows a change: what it was about, what was decided, what the agent was told.
#[derive(Args)]
pub(crate) struct ShowArguments {
    /// The number of the change, as `sayso log` lists it.
    #[arg(value_name = "ID", value_parser = number::change)]
    pub(crate) change: u64,
    #[command(flatten)]
    pub(crate) place: Place,
}

// No text of its own: what it does depends on the command.
#[derive(Args)]
pub(crate) struct UndoArguments {
    /// The number of the change, as `sayso log` lists it, or the id of a tool call; the last one if not given.
    #[arg(value_name = "ID")]
    pub(crate) target: Option<String>,
    /// All of the turn that the change belongs to.
    #[arg(long, conflicts_with = "session")]
    pub(crate) turn: bool,
    /// All of this session; the beginning of its id will do.
    #[arg(long, value_name = "S", conflicts_with = "target")]
    pub(crate) session: Option<String>,
    /// Only this file of the change; may be given several times.
    #[arg(long, value_name = "PATH", requires = "target", conflicts_with_all = ["turn", "session"])]
    pub(crate) file: Vec<String>,
    /// Merge with what was changed since, where the two do not overlap.
    #[arg(long)]
    pub(crate) merge: bool,
    /// Show what would happen and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Shows how the workspace stands: what waits, what was last done, how much is kept.
#[derive(Args)]
pub(crate) struct StatusArguments {
    /// Print only how many changes wait, and nothing if none does: for a shell prompt.
    #[arg(long)]
    pub(crate) short: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Takes up a git branch for a task, or shows how the repository stands.
///
/// Makes the branch where the repository is now, or switches to it if it exists. Uncommitted work stays as it is: staged, unstaged, untracked
/// and ignored. Where switching would overwrite some, git refuses and nothing changes. While a rebase, a merge or the like is in progress,
/// nothing happens either. No commit is made, and nothing is ever forced.
///
/// Exit code 0 if the branch is checked out, 2 if there is no repository, 4 if something is in the way.
#[derive(Args)]
pub(crate) struct BranchArguments {
    /// What is to be done, in a few words: the branch is named after it. Without, only the state is shown.
    #[arg(value_name = "TASK")]
    pub(crate) task: Vec<String>,
    /// What the branch's name begins with; `[branch] prefix` of the configuration, or `sayso/`, if not given.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,
    /// Make a git repository first, should there be none.
    #[arg(long, requires = "task")]
    pub(crate) init: bool,
    /// Say what would happen and do nothing.
    #[arg(long, requires = "task")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Drops contents that are old, ends changes that nobody is left to decide, and makes the journal smaller. The list of changes stays.
#[derive(Args)]
pub(crate) struct GcArguments {
    /// Keep the contents of changes younger than this many days.
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = number::days)]
    pub(crate) older_than: u32,
    /// Keep at most this many megabytes, the newest.
    #[arg(long, value_name = "MB", value_parser = number::megabytes)]
    pub(crate) most: Option<u64>,
    /// Save what can be saved of a damaged journal first; the damaged file is kept beside it.
    #[arg(long)]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn what_runs_often_is_read_as_it_would_be_with_all_the_rest() {
        let (mut all, mut often) = (Cli::command(), Often::command());
        all.build();
        often.build();
        for command in often.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let same = all.find_subcommand_mut(command.get_name()).unwrap();
            assert_eq!(command.render_long_help().to_string(), same.render_long_help().to_string());
        }
        let parsed = |words: &str| parse(words.split(' ').map(OsString::from));
        assert!(matches!(parsed("sayso status --short"), Ok(Command::Status(StatusArguments { short: true, .. }))));
        assert!(matches!(parsed("sayso hook codex --timeout 7"), Ok(Command::Hook(HookArguments { timeout: 7, .. }))));
        assert!(parsed("sayso hook").is_err());
    }
}
