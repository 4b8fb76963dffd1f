//! `sayso diff`: two files or two directories.

mod card;
pub(crate) mod draw;
mod highlight;
mod input;
mod patch;
pub(crate) mod style;
pub(crate) mod summary;
mod tree;

use std::process::ExitCode;

use sayso_diff::{Diff, Encoding, Side, one_line};
use sayso_tools::{BinaryContent, diff_object};

use crate::cli::DiffArguments;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::terminal::Terminal;
use crate::visible::visible;
use input::{Input, Inputs};

/// What to tell about a diff besides its lines.
pub(crate) fn notes(diff: &Diff<'_>) -> Vec<String> {
    diff.notes().iter().map(ToString::to_string).collect()
}

/// What to tell beside a patch, so that the patch stays one.
pub(crate) fn beside(diff: &Diff<'_>) -> Vec<String> {
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

pub(crate) fn say_all(notes: &[String]) {
    for note in notes {
        say(&format!("note: {note}"));
    }
}

/// How to show each file's diff.
pub(crate) struct Show {
    pub(crate) terminal: Terminal,
    pub(crate) context: usize,
    pub(crate) form: Form,
    /// Whether binary files are shown line by line too.
    pub(crate) binary_as_text: bool,
}

impl Show {
    /// Whether a diff is only named, since its content is not text.
    pub(crate) fn names_only(&self, diff: &Diff<'_>) -> bool {
        !self.binary_as_text && diff.is_binary()
    }

    pub(crate) fn binary(&self) -> BinaryContent {
        if self.binary_as_text { BinaryContent::AsText } else { BinaryContent::Named }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Unified,
    /// At most this many lines.
    Card(usize),
    Json,
    JsonCard(usize),
}

pub(crate) fn run(arguments: &DiffArguments) -> Result<ExitCode, Failure> {
    let show = Show {
        terminal: Terminal::detect(arguments.color, arguments.theme),
        context: arguments.context,
        form: match (arguments.inline, arguments.json) {
            (None, false) => Form::Unified,
            (None, true) => Form::Json,
            (Some(lines), false) => Form::Card(lines),
            (Some(lines), true) => Form::JsonCard(lines),
        },
        binary_as_text: arguments.text,
    };
    let different = match input::open(&arguments.old, &arguments.new)? {
        Inputs::Files(old, new) => {
            let label = |given: &Option<String>, input: &Input| given.clone().unwrap_or_else(|| input.name.clone());
            let labels = (label(&arguments.label_a, &old), label(&arguments.label_b, &new));
            files(&old, &new, &labels, &show)?
        }
        Inputs::Directories(old, new) => {
            if arguments.label_a.is_some() || arguments.label_b.is_some() {
                return Err(Failure::bad_input("labels cannot be given for directories")
                    .hint("files of two directories are named a/… and b/…, as git does"));
            }
            return tree::run(old.as_deref(), new.as_deref(), &show);
        }
    };
    Ok(ExitCode::from(u8::from(different)))
}

/// Shows two files and tells whether they differ.
fn files(old: &Input, new: &Input, (old_label, new_label): &(String, String), show: &Show) -> Result<bool, Failure> {
    let diff = Diff::new(old.content.as_deref(), new.content.as_deref());
    let mut output = Output::stdout();
    let binary = show.names_only(&diff);
    match show.form {
        Form::Json => output.json(&diff_object(&diff, old_label, new_label, show.context, show.binary()))?,
        Form::JsonCard(lines) => output.json(&card::value(&diff, lines, show.binary()))?,
        _ if diff.is_unchanged() => {}
        Form::Card(_) | Form::Unified if binary => {
            let name = |label: &str| if show.terminal.draws() { visible(label).into_owned() } else { one_line(label) };
            output.write(format!("Binary files {} and {} differ\n", name(old_label), name(new_label)).as_bytes())?;
        }
        Form::Card(lines) => {
            output.write(card::text(&diff, lines, show.terminal).as_bytes())?;
            say_all(&notes(&diff));
        }
        Form::Unified if show.terminal.draws() => {
            let name = if new.is_absent() { &old.name } else { &new.name };
            let title = draw::Title::Files { old: old_label, new: new_label };
            output.write(draw::diff(&diff, &title, name, show).as_bytes())?;
        }
        Form::Unified => {
            output.write(&patch::of_files(&diff, old_label, new_label, show.context))?;
            say_all(&beside(&diff));
        }
    }
    output.finish()?;
    Ok(!diff.is_unchanged())
}
