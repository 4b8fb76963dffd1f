//! A preview drawn for a person.

use anstyle::Style;
use sayso_diff::{Diff, Hunk};
use sayso_review::{CONTEXT, FilePreview, Note, Operation, Preview, Severity};

use crate::diff::draw::{Drawing, LongLines, Title};
use crate::diff::style::Styles;
use crate::diff::summary::Summary;
use crate::terminal::Terminal;
use crate::visible::visible;

/// The whole preview, every hunk with its number.
pub(crate) fn text(preview: &Preview, terminal: Terminal) -> String {
    let mut text = String::new();
    let mut summary = Summary::default();
    for file in preview.files() {
        let diff = file.diff();
        let mut view = FileView::new(file, &diff, terminal);
        text.push_str(&view.head(preview.is_settled(&file.path)));
        text.push_str(&view.body());
        if file.problem.is_none() && !file.is_unchanged() {
            summary.add(diff.counts());
        }
    }
    if preview.files().len() > 1 && summary.files > 0 {
        text.push_str(&summary.text());
        text.push('\n');
    }
    text
}

/// One file of a preview.
pub(crate) struct FileView<'f, 'd> {
    file: &'f FilePreview,
    diff: &'d Diff<'f>,
    drawing: Drawing<'f>,
    /// How far down the file has been drawn: syntax is followed from the top, and only ever further down.
    drawn_to: usize,
    terminal: Terminal,
    styles: Styles,
}

impl<'f, 'd> FileView<'f, 'd> {
    pub(crate) fn new(file: &'f FilePreview, diff: &'d Diff<'f>, terminal: Terminal) -> Self {
        let drawing = Drawing::new(diff, file.path.as_str(), terminal, LongLines::Whole);
        Self { file, diff, drawing, drawn_to: 0, terminal, styles: Styles::of(terminal) }
    }

    /// The file's name, what happens to it, and what a reviewer wants to know first.
    pub(crate) fn head(&mut self, settled: bool) -> String {
        let file = self.file;
        let event = match &file.operation {
            _ if settled => "approved before".to_owned(),
            Operation::Create => "new file".to_owned(),
            Operation::Update if file.problem.is_none() && file.is_unchanged() => "no changes".to_owned(),
            Operation::Update => String::new(),
            Operation::Delete => "deleted".to_owned(),
            Operation::Rename { from } => format!("renamed from {}", visible(from.as_str())),
        };
        self.drawing.title(self.diff, &Title::Tree { path: file.path.as_str(), event: &event });
        let mut text = self.drawing.take();
        if let Some(problem) = &file.problem {
            self.line(&mut text, self.styles.removed.marker, &format!("cannot be done: {problem}"));
            if let sayso_review::Problem::Conflicts { clashes } = problem {
                for clash in clashes {
                    self.clash(&mut text, clash);
                }
            }
        }
        for note in &file.notes {
            self.line(&mut text, self.note_style(note), &format!("{}: {note}", word(note.severity())));
        }
        text
    }

    fn clash(&self, text: &mut String, clash: &sayso_review::Clash) {
        for (title, lines, style) in [
            ("now in the file", &clash.current, self.styles.removed.marker),
            ("proposed", &clash.proposed, self.styles.added.marker),
        ] {
            self.line(text, self.styles.hunk, &format!("  {title}:"));
            for line in lines.lines() {
                self.line(text, style, &format!("    {line}"));
            }
        }
    }

    fn note_style(&self, note: &Note) -> Style {
        if note.severity() == Severity::Critical { self.styles.removed.marker.bold() } else { self.styles.note }
    }

    fn line(&self, text: &mut String, style: Style, line: &str) {
        self.styles.paint(text, style, &visible(line));
        text.push('\n');
    }

    /// All hunks.
    pub(crate) fn body(&mut self) -> String {
        if self.file.problem.is_some() || !self.has_hunks() {
            return String::new();
        }
        for hunk in self.diff.hunks(CONTEXT) {
            self.drawing.hunk(&hunk, &format!("hunk {}", hunk.number));
        }
        self.drawing.take()
    }

    /// One hunk, under the name it can be approved by.
    pub(crate) fn hunk(&mut self, hunk: &Hunk<'_, '_>, name: &str) -> String {
        if hunk.old.start.line < self.drawn_to {
            self.drawing = Drawing::new(self.diff, self.file.path.as_str(), self.terminal, LongLines::Whole);
        }
        self.drawn_to = hunk.old.end.line;
        self.drawing.hunk(hunk, &format!("hunk {name}"));
        self.drawing.take()
    }

    /// Whether there are lines to decide about one by one.
    pub(crate) fn has_hunks(&self) -> bool {
        !self.diff.is_binary() && !self.diff.changes().is_empty()
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "attention",
        Severity::Warning => "note",
        Severity::Info => "info",
    }
}
