//! Arguments of the commands about changes, history and files.

use std::path::PathBuf;

use clap::Args;

use super::{CommonOptions, OriginOptions, ThemeChoice, VerdictOptions, When, number};

/// Compare two files or two directories
///
/// On a terminal: line numbers, coloured words and syntax, visible control characters. Into a pipe or a file: a patch with the exact
/// bytes of the files; differences in encoding, line ending or final newline are noted on stderr.
///
/// `patch` accepts the diff of two files. `git apply` accepts the diff of two directories, including symbolic links and modes, and of
/// two files with one name: --label-a a/NAME --label-b b/NAME. UTF-16 is shown decoded, for reading. Binary files are named only,
/// unless --text is given.
///
/// Exit code 0 if there is no difference, 1 if there is one, 2 on failure.
#[derive(Args)]
pub(crate) struct DiffArguments {
    /// The old file or directory; `-` for stdin, `/dev/null` for none
    #[arg(value_name = "A", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) old: PathBuf,
    /// The new file or directory; `-` for stdin, `/dev/null` for none
    #[arg(value_name = "B", value_hint = clap::ValueHint::AnyPath)]
    pub(crate) new: PathBuf,
    /// Unchanged lines around each change
    #[arg(short = 'U', long, value_name = "N", default_value_t = 3, value_parser = number::count)]
    pub(crate) context: usize,
    /// Print one JSON value: the Diff tool's object, or with --inline the card's
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the short form of a card: at most N lines [default: 10], one line of context
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub(crate) inline: Option<usize>,
    /// Use colours; `auto` means on a terminal
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
    /// Colours for a dark or a light background; `auto` reads COLORFGBG, or takes dark
    #[arg(long, value_name = "THEME", default_value = "auto")]
    pub(crate) theme: ThemeChoice,
    /// Name to show for A
    #[arg(long, value_name = "LABEL")]
    pub(crate) label_a: Option<String>,
    /// Name to show for B
    #[arg(long, value_name = "LABEL")]
    pub(crate) label_b: Option<String>,
    /// Show lines of binary files, too
    #[arg(short = 'a', long)]
    pub(crate) text: bool,
}

/// Run a built-in tool as an agent would, or list the tools
///
/// Prints one JSON value: the result, or `{"error":{"kind","message","hint"}}`. Grants only what is named here.
#[derive(Args)]
pub(crate) struct ToolArguments {
    /// The tool, or `list`
    #[arg(value_name = "NAME|list")]
    pub(crate) name: String,
    /// Arguments as a JSON object; `-` reads them from stdin
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) args: String,
    /// Grant a tool by name; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) grant: Vec<String>,
    /// Grant reading matching files, `.` for the whole workspace; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) read: Vec<String>,
    /// Grant writing matching files; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) write: Vec<String>,
    /// The workspace; the tool cannot reach outside
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = clap::ValueHint::DirPath)]
    pub(crate) workspace: PathBuf,
}

/// Propose a change: preview it, ask, and apply what was approved
///
/// A proposal is a patch (unified, or from `*** Begin Patch` to `*** End Patch`) or JSON: {"changes":[{"path","operation",…}]} with the
/// operations create, update, write (new_content), edit (old_string, new_string, replace_all), patch (patch), delete, and rename (to).
/// Text is written in the encoding and with the line endings of the file.
///
/// The rules decide first (`sayso policy explain`): a denied change is not applied, an allowed one is applied without a question, and
/// a `later` one is applied now and reviewed at the end of the turn (`sayso review`).
///
/// All approved parts are applied, or none. If a file changes while you decide, sayso writes no file, merges both changes and asks
/// again. With --json and without an answer, it only prints the preview.
///
/// Exit code 0 if everything was applied, 1 if a part was denied, 4 if a file was stale or in conflict.
#[derive(Args)]
pub(crate) struct ProposeArguments {
    /// The proposal; `-` for stdin
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) proposal: PathBuf,
    #[command(flatten)]
    pub(crate) verdict: VerdictOptions,
    #[command(flatten)]
    pub(crate) origin: OriginOptions,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// List changes, newest first
#[derive(Args)]
pub(crate) struct LogArguments {
    /// Number of changes
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = number::count)]
    pub(crate) number: usize,
    /// Only this session; the start or end of its id is enough
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Show a change: its diff, its verdict and the message to the agent
#[derive(Args)]
pub(crate) struct ShowArguments {
    /// Number of the change, as `sayso log` lists it
    #[arg(value_name = "ID", value_parser = number::change)]
    pub(crate) change: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

// The help is on `Command::Undo` and `Command::Redo`, which share these arguments.
#[derive(Args)]
pub(crate) struct UndoArguments {
    /// Number of the change, or id of a tool call [default: the last change]
    #[arg(value_name = "ID")]
    pub(crate) target: Option<String>,
    /// All of the turn of the change
    #[arg(long, conflicts_with = "session")]
    pub(crate) turn: bool,
    /// All of this session; the start or end of its id is enough
    #[arg(long, value_name = "S", conflicts_with = "target")]
    pub(crate) session: Option<String>,
    /// Only this file of the change; may be given several times
    #[arg(long, value_name = "PATH", requires = "target", conflicts_with_all = ["turn", "session"])]
    pub(crate) file: Vec<String>,
    /// Keep later edits that do not overlap
    #[arg(long)]
    pub(crate) merge: bool,
    /// Show the plan only
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Show the workspace's state: pending changes, the last change, disk use
#[derive(Args)]
pub(crate) struct StatusArguments {
    /// Print only the counts of what is pending, for a shell prompt
    #[arg(long)]
    pub(crate) short: bool,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Create or switch to a git branch for a task, or show the git state
///
/// Creates the branch at the present commit, or switches to it if it exists. Uncommitted work stays: staged, unstaged, untracked and
/// ignored. If switching would overwrite some of it, git refuses. During a rebase or merge, sayso refuses. It never commits or
/// forces.
///
/// Exit code 0 if the branch is checked out, 2 if there is no repository, 4 if git refuses.
#[derive(Args)]
pub(crate) struct BranchArguments {
    /// The task in a few words, which name the branch [default: show the state only]
    #[arg(value_name = "TASK")]
    pub(crate) task: Vec<String>,
    /// Prefix of the branch name [default: `[branch] prefix` of the configuration, or sayso/]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,
    /// Create a git repository if there is none
    #[arg(long, requires = "task")]
    pub(crate) init: bool,
    /// Show the plan only
    #[arg(long, requires = "task")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Delete old stored contents, cancel orphaned changes, compact the journal
///
/// The list of changes stays.
#[derive(Args)]
pub(crate) struct GcArguments {
    /// Keep the contents of changes of the last DAYS days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = number::days)]
    pub(crate) older_than: u32,
    /// Keep at most this many megabytes, newest first
    #[arg(long, value_name = "MB", value_parser = number::megabytes)]
    pub(crate) most: Option<u64>,
    /// First save the readable part of a damaged journal, and keep the damaged file
    #[arg(long)]
    pub(crate) repair: bool,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}
