//! `sayso diff`: compares two files or two directories.

mod input;
mod patch;
mod tree;

use std::process::ExitCode;

use sayso_diff::{Diff, Encoding, Side, one_line};
use sayso_present::diff::{DiffTitle, Escaping, LocalDiff, LongLines, render_card, render_title};
use sayso_present::escape::escape_unprintable;
use sayso_present::span::{Style, StyledText};
use sayso_tools::{BinaryContent, diff_object};
use serde_json::{Value, json};

use crate::ansi::highlighting;
use crate::cli::DiffArguments;
use crate::error::CliError;
use crate::output::{Output, say};
use crate::terminal::Terminal;
use input::{DiffInput, Inputs};

/// Notes about a diff.
fn notes(diff: &Diff<'_>) -> Vec<String> {
    diff.notes().iter().map(ToString::to_string).collect()
}

/// Notes about a patch, for standard error: in the output they would break the patch.
fn patch_notes(diff: &Diff<'_>) -> Vec<String> {
    let is_wide = |side| match side {
        Side::Absent => false,
        Side::Present(bytes) => matches!(Encoding::of(bytes), Encoding::Utf16Le | Encoding::Utf16Be),
    };
    let mut notes = notes(diff);
    if is_wide(diff.old_side()) || is_wide(diff.new_side()) {
        notes.push("UTF-16 is shown decoded, to be read; it cannot be applied as a patch".to_owned());
    }
    notes
}

fn say_notes(notes: &[String]) {
    for note in notes {
        say(&format!("note: {note}"));
    }
}

/// Options for the diff of each file.
struct DiffOptions {
    terminal: Terminal,
    context: usize,
    format: DiffFormat,
    /// `true` to show lines of binary files.
    binary_as_text: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DiffFormat {
    Unified,
    /// At most this many lines.
    Card(usize),
    Json,
    JsonCard(usize),
}

impl DiffOptions {
    /// `true` if a diff is named only, because its content is binary.
    fn names_only(&self, diff: &Diff<'_>) -> bool {
        !self.binary_as_text && diff.is_binary()
    }

    fn binary(&self) -> BinaryContent {
        if self.binary_as_text { BinaryContent::AsText } else { BinaryContent::Named }
    }

    fn render(&self, diff: &Diff<'_>, title: &DiffTitle<'_>, name: &str) -> StyledText {
        let mut text = render_title(title, diff.counts());
        for note in notes(diff) {
            text.line(Style::Note, format!("note: {note}"));
        }
        let mut local = LocalDiff::new(diff, name, self.context, highlighting(self.terminal));
        text.append(local.render(LongLines::Shortened, |_| String::new()));
        text
    }

    fn render_card(&self, diff: &Diff<'_>, lines: usize) -> StyledText {
        let escaping = if self.terminal.draws() { Escaping::Escaped } else { Escaping::Exact };
        render_card(&diff.inline(lines), escaping)
    }

    fn card_value(&self, diff: &Diff<'_>, lines: usize) -> Value {
        let is_hidden = diff.is_binary() && self.binary() == BinaryContent::Named;
        let mut value = json!(diff.inline(if is_hidden { 0 } else { lines }));
        if diff.is_binary() {
            value["binary"] = json!(true);
        }
        let notes = notes(diff);
        if !notes.is_empty() {
            value["notes"] = json!(notes);
        }
        value
    }
}

pub(crate) fn run(arguments: &DiffArguments) -> Result<ExitCode, CliError> {
    let options = DiffOptions {
        terminal: Terminal::detect(arguments.color, arguments.theme),
        context: arguments.context,
        format: match (arguments.inline, arguments.json) {
            (None, false) => DiffFormat::Unified,
            (None, true) => DiffFormat::Json,
            (Some(lines), false) => DiffFormat::Card(lines),
            (Some(lines), true) => DiffFormat::JsonCard(lines),
        },
        binary_as_text: arguments.text,
    };
    let differs = match input::open(&arguments.old, &arguments.new)? {
        Inputs::Files(old, new) => {
            let label = |given: &Option<String>, input: &DiffInput| given.clone().unwrap_or_else(|| input.name.clone());
            let labels = (label(&arguments.label_a, &old), label(&arguments.label_b, &new));
            diff_files(&old, &new, &labels, &options)?
        }
        Inputs::Directories(old, new) => {
            if arguments.label_a.is_some() || arguments.label_b.is_some() {
                return Err(CliError::invalid_input("labels cannot be given for directories")
                    .hint("files of two directories are named a/… and b/…, as git does"));
            }
            return tree::run(old.as_deref(), new.as_deref(), &options);
        }
    };
    Ok(ExitCode::from(u8::from(differs)))
}

/// Prints the diff of two files. Returns `true` if they differ.
fn diff_files(
    old: &DiffInput,
    new: &DiffInput,
    (old_label, new_label): &(String, String),
    options: &DiffOptions,
) -> Result<bool, CliError> {
    let diff = Diff::new(old.content.as_deref(), new.content.as_deref());
    let mut output = Output::stdout();
    let terminal = options.terminal;
    match options.format {
        DiffFormat::Json => {
            output.json(&diff_object(&diff, old_label, new_label, options.context, options.binary()))?;
        }
        DiffFormat::JsonCard(lines) => output.json(&options.card_value(&diff, lines))?,
        _ if diff.is_unchanged() => {}
        DiffFormat::Card(_) | DiffFormat::Unified if options.names_only(&diff) => {
            let name = |label: &str| {
                if terminal.draws() { escape_unprintable(label).into_owned() } else { one_line(label) }
            };
            output.write(format!("Binary files {} and {} differ\n", name(old_label), name(new_label)).as_bytes())?;
        }
        DiffFormat::Card(lines) => {
            output.styled(&options.render_card(&diff, lines), terminal)?;
            say_notes(&notes(&diff));
        }
        DiffFormat::Unified if terminal.draws() => {
            let name = if new.is_absent() { &old.name } else { &new.name };
            let title = DiffTitle::Files { old: old_label, new: new_label };
            output.styled(&options.render(&diff, &title, name), terminal)?;
        }
        DiffFormat::Unified => {
            output.write(&patch::of_files(&diff, old_label, new_label, options.context))?;
            say_notes(&patch_notes(&diff));
        }
    }
    output.finish()?;
    Ok(!diff.is_unchanged())
}
