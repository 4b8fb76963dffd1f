//! Diffs as the engine computes them, drawn page by page.

use sayso_api::client::{ClientError, DiffQuery, PreviewDetail, PreviewOf};
use sayso_api::diff::{DiffFile, DiffFiles, DiffSubject, NoDiffReason};
use sayso_diff::RowKind;
use sayso_present::diff::{DiffTitle, DiffTotals, FileHeading, LongLines, RowRenderer, no_rows_text, render_title};
use sayso_present::escape::escape_unprintable;
use sayso_present::file_review::FileDiff;
use sayso_present::span::{Style, StyledText};
use sayso_review::{ContentHash, FilePreview, FileRecord, Note, Preview};

use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::Output;
use crate::pending::Pending;
use crate::terminal::Terminal;

/// Facts about a file that its diff does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileFacts<'f> {
    notes: &'f [Note],
    is_settled: bool,
}

impl<'f> FileFacts<'f> {
    /// The facts of a recorded file. None for a file that is not recorded.
    pub(crate) fn recorded(files: &'f [FileRecord], path: &str) -> Self {
        let file = files.iter().find(|file| file.path.as_str() == path);
        file.map(|file| Self { notes: &file.notes, is_settled: file.settled }).unwrap_or_default()
    }

    /// The facts of a planned file.
    pub(crate) fn planned(preview: &'f Preview, path: &str) -> Self {
        let file = preview.files().iter().find(|file| file.path.as_str() == path);
        file.map(|file| Self { notes: &file.notes, is_settled: preview.is_settled(&file.path) }).unwrap_or_default()
    }
}

/// A diff of the engine.
pub(crate) struct ChangeDiff<'a> {
    engine: &'a EngineConnection,
    terminal: Terminal,
    subject: DiffSubject,
    context: Option<u32>,
    list: DiffFiles,
}

impl<'a> ChangeDiff<'a> {
    /// Lists the files of a diff. Fails with `Stale` if `expected` is not its hash.
    pub(crate) fn open(
        engine: &'a EngineConnection,
        terminal: Terminal,
        subject: DiffSubject,
        expected: Option<ContentHash>,
    ) -> Result<Self, ClientError> {
        Self::with_context(engine, terminal, subject, None, expected)
    }

    /// Lists the files of a diff with `context` unchanged lines around a change.
    pub(crate) fn with_context(
        engine: &'a EngineConnection,
        terminal: Terminal,
        subject: DiffSubject,
        context: Option<u32>,
        expected: Option<ContentHash>,
    ) -> Result<Self, ClientError> {
        let list = engine.wait(engine.client().diff_files(&subject, context, expected))?;
        Ok(Self { engine, terminal, subject, context, list })
    }

    /// Lists the files of a pending change as it was shown.
    pub(crate) fn of_pending(
        engine: &'a EngineConnection,
        terminal: Terminal,
        pending: &Pending,
    ) -> Result<Self, ClientError> {
        Self::open(engine, terminal, DiffSubject::Change(pending.change()), Some(pending.record.preview))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.files.is_empty()
    }

    pub(crate) fn file(&self, path: &str) -> Option<&DiffFile> {
        self.list.files.iter().find(|file| file.path == path)
    }

    /// `true` if no content of a file is stored any more.
    pub(crate) fn is_gone(&self) -> bool {
        let is_gone = |file: &DiffFile| file.no_diff == Some(NoDiffReason::ContentGone);
        !self.list.files.is_empty() && self.list.files.iter().all(is_gone)
    }

    /// Draws all files, every hunk with its number, and the totals.
    pub(crate) fn draw<'f>(&self, output: &mut Output, facts: impl Fn(&str) -> FileFacts<'f>) -> Result<(), CliError> {
        let mut totals = DiffTotals::default();
        for file in &self.list.files {
            let facts = facts(&file.path);
            self.draw_heading(output, file, facts)?;
            if file.problem.is_none() {
                self.draw_rows(output, file, |hunk| format!("hunk {hunk}"))?;
            }
            totals.add_file(file);
        }
        output.styled(&totals.render(), self.terminal)
    }

    /// Draws the name, the operation, the problem and the notes of a file.
    pub(crate) fn draw_heading(
        &self,
        output: &mut Output,
        file: &DiffFile,
        FileFacts { notes, is_settled }: FileFacts<'_>,
    ) -> Result<(), CliError> {
        output.styled(&FileHeading { file, notes, is_settled }.render(), self.terminal)
    }

    /// Draws the values of a request's edits.
    pub(crate) fn draw_values(&self, output: &mut Output) -> Result<(), CliError> {
        for file in &self.list.files {
            // The label of a parameter is its path. Other labels name tools, which the agent chose.
            let label = file.label.as_deref().filter(|label| *label != file.path);
            let event = label.map(escape_unprintable).unwrap_or_default();
            let title = DiffTitle::Tree { path: &file.path, event: &event };
            output.styled(&render_title(&title, file.counts), self.terminal)?;
            self.draw_rows(output, file, |_| String::new())?;
        }
        Ok(())
    }

    /// Draws the rows of a file, one page after the other. `name` returns the text behind a hunk's line numbers.
    fn draw_rows(&self, output: &mut Output, file: &DiffFile, name: impl Fn(usize) -> String) -> Result<(), CliError> {
        if let Some(reason) = file.no_diff
            && reason != NoDiffReason::NotCompared
        {
            if let Some(text) = no_rows_text(reason) {
                let mut line = StyledText::new();
                line.line(Style::Dim, text);
                output.styled(&line, self.terminal)?;
            }
            return Ok(());
        }
        let (mut from_row, mut last_hunk) = (0, 0);
        loop {
            let query = self.query(&file.path);
            let page = self.engine.block(self.engine.client().diff_page(&query, from_row))?;
            let renderer = RowRenderer::new(page.file.old_side, page.file.new_side, LongLines::Whole);
            for row in &page.rows {
                if let Some(hunk) = row.row.hunk.filter(|hunk| *hunk > last_hunk)
                    && let Some(place) = page.hunks.iter().find(|place| place.number == hunk)
                {
                    last_hunk = hunk;
                    let header = renderer.header(&place.old_lines, &place.new_lines, &name(hunk));
                    output.styled(&header, self.terminal)?;
                }
                if !matches!(row.row.kind, RowKind::Fold { .. }) {
                    output.styled(&renderer.rows(std::slice::from_ref(row)), self.terminal)?;
                }
            }
            from_row += page.rows.len();
            if !page.has_more || page.rows.is_empty() {
                return Ok(());
            }
        }
    }

    /// Fetches all hunks of a file of a pending change. Fails with `Stale` if the change was previewed again.
    pub(crate) fn hunks(&self, change: u64, path: &str) -> Result<FileDiff, ClientError> {
        let (file, hunks) = self.engine.wait(self.engine.client().diff_hunks(&self.query(path)))?;
        // Text of ASCII characters is the same in most encodings, which the contents tell.
        let changes_encoding =
            file.has_two_encodings() && self.contents(change, path)?.is_some_and(|file| file.changes_encoding());
        Ok(FileDiff { file, hunks, changes_encoding })
    }

    /// Fetches the contents of a file of a pending change. `None` if the change was previewed again.
    pub(crate) fn contents(&self, change: u64, path: &str) -> Result<Option<FilePreview>, ClientError> {
        let details = self.engine.client().get_change(change, PreviewDetail::Contents, PreviewOf::Proposed);
        let preview = self.engine.wait(details)?.preview.filter(|preview| preview.hash() == self.list.hash);
        Ok(preview.and_then(|preview| preview.files().iter().find(|file| file.path.as_str() == path).cloned()))
    }

    fn query<'q>(&'q self, path: &'q str) -> DiffQuery<'q> {
        DiffQuery { subject: &self.subject, path, context: self.context, expected: Some(self.list.hash) }
    }
}
