//! The preview of a change as styled text.

use sayso_diff::{Diff, Hunk};
use sayso_review::{CONTEXT, Conflict, FilePreview, Note, Operation, Preview, Problem, Severity};

use crate::diff::{DiffRenderer, DiffTitle, DiffTotals, Highlighting, LongLines};
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};

/// Renders a whole preview, every hunk with its number.
pub fn render_preview(preview: &Preview, highlighting: Highlighting) -> StyledText {
    let mut text = StyledText::new();
    let mut totals = DiffTotals::default();
    for file in preview.files() {
        let diff = file.diff();
        let mut renderer = FileRenderer::new(file, &diff, highlighting);
        text.append(renderer.heading(preview.is_settled(&file.path)));
        text.append(renderer.all_hunks());
        if file.problem.is_none() && !file.is_unchanged() {
            totals.add(diff.counts());
        }
    }
    if preview.files().len() > 1 && totals.files > 0 {
        text.plain(format!("{}\n", totals.text()));
    }
    text
}

/// Renders one file of a preview.
pub struct FileRenderer<'f, 'd> {
    file: &'f FilePreview,
    diff: &'d Diff<'f>,
    renderer: DiffRenderer<'f>,
    /// The old line up to which the file was rendered. An earlier hunk needs a new renderer, because syntax is parsed downwards.
    rendered_to: usize,
    highlighting: Highlighting,
}

impl<'f, 'd> FileRenderer<'f, 'd> {
    /// Prepares to render a file and its diff.
    pub fn new(file: &'f FilePreview, diff: &'d Diff<'f>, highlighting: Highlighting) -> Self {
        let renderer = DiffRenderer::new(diff, file.path.as_str(), highlighting, LongLines::Whole);
        Self { file, diff, renderer, rendered_to: 0, highlighting }
    }

    /// Renders the file's name, its operation, its problem and its notes. `is_settled` if it was approved before.
    pub fn heading(&mut self, is_settled: bool) -> StyledText {
        let file = self.file;
        let event = match &file.operation {
            _ if is_settled => "approved before".to_owned(),
            Operation::Create => "new file".to_owned(),
            Operation::Update if file.problem.is_none() && file.is_unchanged() => "no changes".to_owned(),
            Operation::Update => String::new(),
            Operation::Delete => "deleted".to_owned(),
            Operation::Rename { from } => format!("renamed from {}", escape_unprintable(from.as_str())),
        };
        self.renderer.title(self.diff, &DiffTitle::Tree { path: file.path.as_str(), event: &event });
        let mut text = self.renderer.take();
        if let Some(problem) = &file.problem {
            line(&mut text, Style::Removed, &format!("cannot be done: {problem}"));
            if let Problem::Conflicts { conflicts } = problem {
                for conflict in conflicts {
                    render_conflict(&mut text, conflict);
                }
            }
        }
        for note in &file.notes {
            line(&mut text, note_style(note), &format!("{}: {note}", severity_word(note.severity())));
        }
        text
    }

    /// Renders all hunks under their numbers.
    pub fn all_hunks(&mut self) -> StyledText {
        if self.file.problem.is_some() || !self.has_hunks() {
            return StyledText::new();
        }
        for hunk in self.diff.hunks(CONTEXT) {
            self.renderer.hunk(&hunk, &format!("hunk {}", hunk.number));
        }
        self.renderer.take()
    }

    /// Renders one hunk. `name` is its number in a selection.
    pub fn hunk(&mut self, hunk: &Hunk<'_, '_>, name: &str) -> StyledText {
        if hunk.old.start.line < self.rendered_to {
            self.renderer = DiffRenderer::new(self.diff, self.file.path.as_str(), self.highlighting, LongLines::Whole);
        }
        self.rendered_to = hunk.old.end.line;
        self.renderer.hunk(hunk, &format!("hunk {name}"));
        self.renderer.take()
    }

    fn has_hunks(&self) -> bool {
        has_hunks(self.diff)
    }
}

/// `true` if a diff has lines that can be decided hunk by hunk.
pub(crate) fn has_hunks(diff: &Diff<'_>) -> bool {
    !diff.is_binary() && !diff.changes().is_empty()
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
