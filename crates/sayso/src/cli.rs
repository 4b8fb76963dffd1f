//! The command line, once: parsing, help and completions all come from here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::output::say;

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Nothing your coding agent does happens without your say-so.
///
/// sayso stands between a coding agent and what it touches. Every change is shown as a diff before it happens, byte for
/// byte, and you decide. This version compares files and directories and runs the built-in tools under grants; the gate
/// itself comes next.
#[derive(Parser)]
#[command(name = "sayso", version, styles = STYLES, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  sayso diff old.rs new.rs                 what changed, with words and syntax coloured
  sayso diff old.rs new.rs > change.patch  the same as a patch
  git show HEAD:a.rs | sayso diff - a.rs   one side from standard input
  sayso diff before/ after/ | git apply -  two directory trees, and what to do with them
  sayso diff a b --inline                  the ten lines that a card in the stream shows
  sayso tool list                          the built-in tools, their arguments and needs
  sayso tool Diff --grant Diff --read 'src/**' --args '{\"path_a\":\"src/a.rs\",\"path_b\":\"src/b.rs\"}'

Exit codes:
  0   done, or no difference
  1   a difference
  2   wrong usage or bad input
  3   refused: not granted
  4   stale or conflict
  70  a fault or a limit of sayso itself";

/// Gives a bare `--inline` its number, so that a file name may follow it.
pub(crate) fn with_inline_lines(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
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
    Diff(DiffArguments),
    Tool(ToolArguments),
    /// Prints the completion script for a shell, to be sourced or saved where the shell looks for it.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
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
    #[arg(short = 'U', long, value_name = "N", default_value_t = 3)]
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThemeChoice {
    Auto,
    Dark,
    Light,
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
