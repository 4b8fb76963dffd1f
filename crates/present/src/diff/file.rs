//! Headings of the files of a change.

use sayso_api::diff::{DiffFile, NoDiffReason};
use sayso_review::{Conflict, Note, Operation, Problem, Severity};

use super::render::{DiffTitle, render_title};
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};

/// The facts that are shown above the rows of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileHeading<'f> {
    pub file: &'f DiffFile,
    /// Most severe first.
    pub notes: &'f [Note],
    /// `true` if the file was approved before.
    pub is_settled: bool,
}

impl FileHeading<'_> {
    /// Renders the file's name, its operation, its problem and its notes.
    pub fn render(&self) -> StyledText {
        let file = self.file;
        let event = match &file.operation {
            _ if self.is_settled => "approved before".to_owned(),
            Operation::Create => "new file".to_owned(),
            Operation::Update if file.problem.is_none() && file.is_unchanged() => "no changes".to_owned(),
            Operation::Update => String::new(),
            Operation::Delete => "deleted".to_owned(),
            Operation::Rename { from } => format!("renamed from {}", escape_unprintable(from.as_str())),
        };
        let mut text = render_title(&DiffTitle::Tree { path: &file.path, event: &event }, file.counts);
        if let Some(problem) = &file.problem {
            line(&mut text, Style::Removed, &format!("cannot be done: {problem}"));
            if let Problem::Conflicts { conflicts } = problem {
                for conflict in conflicts {
                    render_conflict(&mut text, conflict);
                }
            }
        }
        for note in self.notes {
            line(&mut text, note_style(note), &format!("{}: {note}", severity_word(note.severity())));
        }
        text
    }
}

/// Explains why a file has no rows. `None` if its heading tells.
pub fn no_rows_text(reason: NoDiffReason) -> Option<&'static str> {
    match reason {
        NoDiffReason::ContentGone => Some("(its content is no longer stored)"),
        NoDiffReason::Withheld => Some("(policy does not let this process read it)"),
        NoDiffReason::Unchanged | NoDiffReason::Binary | NoDiffReason::NotCompared => None,
    }
}

fn render_conflict(text: &mut StyledText, conflict: &Conflict) {
    for (title, lines, style) in
        [("now in the file", &conflict.current, Style::Removed), ("proposed", &conflict.proposed, Style::Added)]
    {
        line(text, Style::Accent, &format!("  {title}:"));
        for shown in lines.lines() {
            line(text, style, &format!("    {shown}"));
        }
    }
}

fn line(text: &mut StyledText, style: Style, line: &str) {
    text.line(style, escape_unprintable(line));
}

fn note_style(note: &Note) -> Style {
    if note.severity() == Severity::Critical { Style::Critical } else { Style::Note }
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "attention",
        Severity::Warning => "note",
        Severity::Info => "info",
    }
}
