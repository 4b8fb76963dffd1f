//! Reads answers to the questions about a change of files.

use std::path::Path;

use sayso_present::command_prompt::REASON_QUESTION;
use sayso_present::diff::{LongLines, RowRenderer};
use sayso_present::file_review::{
    ChangeAnswer, ChangeReview, EditableLines, FileOutcome, HunkReview, Key, Leave, Prompt, Step,
};
use sayso_present::span::{Style, StyledText};
use sayso_review::{ErrorKind, FilePreview};

use super::editor;
use crate::ansi::{highlighting, paint};
use crate::change_diff::{ChangeDiff, FileFacts};
use crate::error::CliError;
use crate::output::{Output, say};
use crate::pending::Pending;
use crate::terminal::Terminal;
use crate::typing::{AnswerSource, NoAnswers, Typing};

/// The end of the questions about a change.
pub(crate) enum PromptAnswer {
    Answered(ChangeAnswer),
    /// The person left the change without a decision.
    Left(Leave),
    /// The files changed while the person was asked.
    PreviewChanged,
    /// Input ended before the last question.
    EndOfInput,
    /// Input ended before the first answer, and it is no terminal: no person is here.
    NoInput,
}

/// Asks questions and reads answers.
pub(crate) struct Prompter {
    answers: Box<dyn AnswerSource>,
    /// `true` if the terminal shows typed answers.
    is_echoed: bool,
    terminal: Terminal,
    answer_count: usize,
}

impl Prompter {
    /// Reads answers from standard input, or from the terminal if standard input is the proposal.
    pub(crate) fn open(proposal: &Path, terminal: Terminal) -> Self {
        let typing = if proposal == Path::new("-") {
            let Ok(typing) = Typing::terminal() else { return Self::new(Box::new(NoAnswers), false, terminal) };
            typing
        } else {
            Typing::stdin()
        };
        let is_echoed = typing.is_echoed();
        Self::new(Box::new(typing), is_echoed, terminal)
    }

    /// Reads answers from a source. `is_echoed` if a terminal shows them while they are typed.
    pub(crate) fn new(answers: Box<dyn AnswerSource>, is_echoed: bool, terminal: Terminal) -> Self {
        Self { answers, is_echoed, terminal, answer_count: 0 }
    }

    /// Asks about every file of a change.
    pub(crate) fn ask(
        &mut self,
        pending: &Pending,
        diff: &ChangeDiff<'_>,
        output: &mut Output,
    ) -> Result<PromptAnswer, CliError> {
        let files = &pending.record.files;
        let mut review = ChangeReview::new(files);
        while let Some(turn) = review.next_file() {
            let path = turn.file.path.as_str();
            let Some(file) = diff.file(path) else { return Ok(PromptAnswer::PreviewChanged) };
            diff.draw_heading(output, file, FileFacts::recorded(files, path))?;
            if !turn.needs_answer {
                continue;
            }
            let hunks = match diff.hunks(pending.change(), path) {
                Ok(hunks) => hunks,
                Err(error) if error.kind() == ErrorKind::Stale => return Ok(PromptAnswer::PreviewChanged),
                Err(error) => return Err(error.into()),
            };
            let renderer = RowRenderer::new(hunks.file.old_side, hunks.file.new_side, LongLines::Whole);
            let ended = match HunkReview::new(files, turn.file, pending.placement(), hunks) {
                Err(answer) => FileEnd::Outcome(FileOutcome::Answered(answer)),
                Ok(mut hunks) => {
                    let contents = || Ok(diff.contents(pending.change(), path)?);
                    self.ask_about_file(&mut review, &mut hunks, renderer, &contents, output)?
                }
            };
            let outcome = match ended {
                FileEnd::Outcome(outcome) => outcome,
                FileEnd::PreviewChanged => return Ok(PromptAnswer::PreviewChanged),
                FileEnd::EndOfInput => {
                    let is_silent = self.answer_count == 0 && !self.is_echoed;
                    return Ok(if is_silent { PromptAnswer::NoInput } else { PromptAnswer::EndOfInput });
                }
            };
            if let Some(leave) = review.finish_file(outcome) {
                return Ok(PromptAnswer::Left(leave));
            }
        }
        let mut reason = None;
        if review.denies() {
            let Some(line) = self.line(output, REASON_QUESTION)? else { return Ok(PromptAnswer::EndOfInput) };
            reason = Some(line).filter(|reason| !reason.is_empty());
        }
        Ok(PromptAnswer::Answered(review.finish(reason)))
    }

    /// Asks about the hunks of a file. `contents` fetches both sides for an editor.
    fn ask_about_file(
        &mut self,
        review: &mut ChangeReview<'_>,
        hunks: &mut HunkReview<'_>,
        renderer: RowRenderer,
        contents: &dyn Fn() -> Result<Option<FilePreview>, CliError>,
        output: &mut Output,
    ) -> Result<FileEnd, CliError> {
        loop {
            for unit in hunks.shown() {
                let header = renderer.header(&unit.old_lines, &unit.new_lines, &format!("hunk {}", unit.id));
                output.styled(&header, self.terminal)?;
                output.styled(&renderer.rows(&unit.rows), self.terminal)?;
            }
            let Some(key) = self.key(output, &hunks.prompt())? else { return Ok(FileEnd::EndOfInput) };
            let mut step = hunks.decide(key);
            if step == Step::EditLines {
                let Some(contents) = contents()? else { return Ok(FileEnd::PreviewChanged) };
                step = match self.edit_lines(hunks, &contents, output)? {
                    EditResult::Lines(lines) => hunks.replace(lines, contents),
                    EditResult::Unchanged => Step::Ask,
                    EditResult::EndOfInput => return Ok(FileEnd::EndOfInput),
                };
            }
            match step {
                Step::Finished(outcome) => return Ok(FileEnd::Outcome(outcome)),
                Step::Comment => {
                    let question = format!("Comment on line {} (or LINE: comment): ", hunks.comment_line());
                    let Some(line) = self.line(output, &question)? else { return Ok(FileEnd::EndOfInput) };
                    if let Some(comment) = hunks.parse_comment(&line) {
                        review.comment(comment);
                    }
                }
                Step::Ask | Step::EditLines => {}
            }
        }
    }

    /// Opens the lines of the current hunk in an editor, shows the result and asks for confirmation.
    fn edit_lines(
        &mut self,
        hunks: &HunkReview<'_>,
        contents: &FilePreview,
        output: &mut Output,
    ) -> Result<EditResult, CliError> {
        let Some(unit) = hunks.current() else { return Ok(EditResult::Unchanged) };
        let lines = match EditableLines::new(contents, &unit.changed) {
            Ok(lines) => lines,
            Err(reason) => {
                say(&reason.to_string());
                return Ok(EditResult::Unchanged);
            }
        };
        let Some(edited) = editor::edit(lines.name, &lines.text)? else { return Ok(EditResult::Unchanged) };
        let edited = lines.restore(edited);
        output.styled(&lines.render(&edited, highlighting(self.terminal)), self.terminal)?;
        Ok(match self.key(output, &Prompt::confirm_edit(hunks.placement()))? {
            Some(Key::Yes) => EditResult::Lines(edited),
            Some(_) => EditResult::Unchanged,
            None => EditResult::EndOfInput,
        })
    }

    /// Asks until a line is one of the prompt's keys. `None` at the end of input.
    fn key(&mut self, output: &mut Output, prompt: &Prompt) -> Result<Option<Key>, CliError> {
        loop {
            let Some(line) = self.line(output, &prompt.text)? else { return Ok(None) };
            match prompt.parse(&line) {
                Ok(key) => return Ok(Some(key)),
                Err(help) => output.write(help.as_bytes())?,
            }
        }
    }

    /// Asks for one line. `None` at the end of input.
    pub(crate) fn line(&mut self, output: &mut Output, question: &str) -> Result<Option<String>, CliError> {
        let mut text = StyledText::new();
        text.push(Style::Prompt, question);
        self.answers.discard();
        output.write(paint(&text, self.terminal).as_bytes())?;
        output.flush()?;
        let line = self.answers.line().map_err(|error| CliError::io("cannot read the answer", &error))?;
        // A transcript without a terminal shows the answers as well.
        if !self.is_echoed || line.is_none() {
            output.write(line.as_deref().unwrap_or_default().trim_end().as_bytes())?;
            output.write(b"\n")?;
        }
        self.answer_count += usize::from(line.is_some());
        Ok(line.map(|line| line.trim().to_owned()))
    }
}

/// The end of the questions about a file.
enum FileEnd {
    Outcome(FileOutcome),
    PreviewChanged,
    EndOfInput,
}

enum EditResult {
    Lines(Vec<u8>),
    /// The old lines stand; the hunk is asked about again.
    Unchanged,
    EndOfInput,
}
