//! Decides about a change of files: asks, sends the verdict, and asks again if the files changed meanwhile.

mod report;

use std::path::Path;
use std::process::ExitCode;

use sayso_api::client::{ClientError, PreviewDetail};
use sayso_present::command_prompt::deny;
use sayso_present::file_review::{ChangeAnswer, Leave, asked, parse_approval, parse_comment};
use sayso_review::{ChangeRecord, ChangeStatus, Comment, ContentHash, ErrorKind, FileRecord, Verdict, VerdictError};

use super::prompt::{PromptAnswer, Prompter};
use crate::change_diff::{ChangeDiff, FileFacts};
use crate::cli::{CommonOptions, VerdictOptions};
use crate::engine::EngineConnection;
use crate::error::{CliError, DENIED};
use crate::output::{Output, say};
use crate::pending::{Pending, report_decided_elsewhere, withdraw};
use crate::signals::TerminationSignals;
use crate::terminal::Terminal;

/// Shown before a change is asked about again.
const SHOWS_OTHER: &str = "It shows something else by now:";

/// The fate of a change that this process does not decide.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnAbandon {
    /// For a change of this process.
    Withdraw,
    /// For a change of another process.
    LeavePending,
}

/// The review of changes of files by one person.
pub(crate) struct FileReview<'a> {
    engine: &'a EngineConnection,
    verdict: &'a VerdictOptions,
    /// File of the proposal. `-` takes standard input, so that answers come from elsewhere.
    proposal: &'a Path,
    json: bool,
    terminal: Terminal,
    output: Output,
    /// `None` to create one for each question.
    prompter: Option<&'a mut Prompter>,
    on_abandon: OnAbandon,
}

/// The end of a review.
pub(crate) enum Reviewed {
    Ended(ExitCode),
    /// Still pending.
    Left(Leave),
}

/// The result of asking again.
enum AskedAgain {
    Answered(Box<(Pending, ChangeAnswer)>),
    Ended(Reviewed),
}

/// The state of a change after a verdict on it was rejected.
enum Overtaken {
    Decided(Box<ChangeRecord>),
    /// Still pending, with another preview.
    PreviewChanged(Box<Pending>),
}

impl<'a> FileReview<'a> {
    pub(crate) fn new(
        engine: &'a EngineConnection,
        verdict: &'a VerdictOptions,
        common: &CommonOptions,
        proposal: &'a Path,
        output: Output,
    ) -> Self {
        let terminal = Terminal::detect(common.color, common.theme);
        let (json, on_abandon) = (common.json, OnAbandon::Withdraw);
        Self { engine, verdict, proposal, json, terminal, output, prompter: None, on_abandon }
    }

    /// Takes answers from a prompter that asks about several changes.
    pub(crate) fn with_prompter(self, prompter: &'a mut Prompter) -> Self {
        Self { prompter: Some(prompter), ..self }
    }

    /// Asks about another process's change, and carries the answer out.
    pub(crate) fn review(&mut self, pending: Pending) -> Result<Reviewed, CliError> {
        self.on_abandon = OnAbandon::LeavePending;
        self.ask_and_decide(pending)
    }

    /// Asks about this process's change, and carries the answer out. A person who leaves it leaves it pending.
    pub(super) fn ask(&mut self, pending: Pending) -> Result<ExitCode, CliError> {
        let change = pending.change();
        match self.ask_and_decide(pending)? {
            Reviewed::Ended(code) => Ok(code),
            Reviewed::Left(_) => {
                say(&format!("Nothing was decided. Change {change} waits: `sayso review {change}`."));
                Ok(ExitCode::from(DENIED))
            }
        }
    }

    fn ask_and_decide(&mut self, mut pending: Pending) -> Result<Reviewed, CliError> {
        loop {
            match self.answer(&pending) {
                Ok(PromptAnswer::Answered(answer)) => return self.decide(pending, answer),
                Ok(PromptAnswer::Left(leave)) => return Ok(Reviewed::Left(leave)),
                Ok(PromptAnswer::PreviewChanged) => match self.current(pending.change())? {
                    Overtaken::Decided(record) => return self.report_decided(&record).map(Reviewed::Ended),
                    Overtaken::PreviewChanged(now) => {
                        self.output.flush()?;
                        say(SHOWS_OTHER);
                        pending = *now;
                    }
                },
                Ok(PromptAnswer::NoInput) if self.on_abandon == OnAbandon::Withdraw => {
                    let signals = TerminationSignals::new()?;
                    self.output.flush()?;
                    let record = signals.wait_for_verdict(self.engine, pending.change())?;
                    return self.report_decided(&record).map(Reviewed::Ended);
                }
                Ok(PromptAnswer::EndOfInput | PromptAnswer::NoInput) => return self.after_end_of_input(&pending),
                Err(error) => {
                    self.abandon(&pending);
                    return Err(error);
                }
            }
        }
    }

    fn after_end_of_input(&mut self, pending: &Pending) -> Result<Reviewed, CliError> {
        self.abandon(pending);
        if self.on_abandon == OnAbandon::LeavePending {
            let now = Pending::get(self.engine, pending.change())?;
            if !now.is_pending() {
                let record = report_decided_elsewhere(self.engine, pending.change())?;
                return self.report_decided(&record).map(Reviewed::Ended);
            }
        }
        Ok(Reviewed::Ended(report_undecided()))
    }

    /// Returns the answer of the options, checked against a proposal that is not recorded.
    pub(super) fn checked_answer(&mut self, shown: &Pending) -> Result<ChangeAnswer, CliError> {
        let Some(answer) = self.given_answer(&shown.record.files)? else {
            return Err(CliError::invalid_input("there is no answer").hint("give --approve or --deny"));
        };
        let verdict = shown.verdict(answer.answer.clone(), answer.comments.clone());
        shown.preview(self.engine)?.decide(&verdict).map_err(|error| {
            let names_unknown = matches!(error, VerdictError::UnknownFile(_) | VerdictError::UnknownHunk { .. });
            let hint = names_unknown.then_some("name hunks as the preview numbers them: 1,3 or path:1,path:3");
            CliError::new(error.kind(), error.to_string()).optional_hint(hint)
        })?;
        Ok(answer)
    }

    /// Carries out the answer of the options if the pending change still has the preview that was checked.
    pub(super) fn decide_checked(
        &mut self,
        pending: Pending,
        checked: ContentHash,
        answer: ChangeAnswer,
    ) -> Result<ExitCode, CliError> {
        if pending.record.preview == checked {
            if !self.json
                && let Err(error) = self.show(&pending)
            {
                self.abandon(&pending);
                return Err(error);
            }
            return match self.decide(pending, answer)? {
                Reviewed::Ended(code) => Ok(code),
                Reviewed::Left(_) => Ok(report_undecided()),
            };
        }
        self.abandon(&pending);
        Err(CliError::new(ErrorKind::Stale, "the files changed after they were shown; nothing was written")
            .hint("propose it again to decide about both changes together"))
    }

    fn abandon(&self, pending: &Pending) {
        if self.on_abandon == OnAbandon::Withdraw {
            withdraw(self.engine, pending.change());
        }
    }

    /// Sends a verdict. If the files changed meanwhile, asks about both changes together, as often as it takes.
    fn decide(&mut self, mut pending: Pending, mut answer: ChangeAnswer) -> Result<Reviewed, CliError> {
        loop {
            let message = self.verdict.message.clone();
            let verdict = Verdict { message, ..pending.verdict(answer.answer, answer.comments) };
            let call = self.engine.client().decide(pending.change(), verdict, None, PreviewDetail::Omitted);
            let (next, message) = match self.engine.wait(call) {
                Ok(details) => {
                    let (ChangeStatus::Stale, Some(merged)) = (&details.record.status, details.merged_change) else {
                        let code = self.report(&pending, &details.record, &details.lost_attributes)?;
                        return Ok(Reviewed::Ended(code));
                    };
                    let merged = Pending::get(self.engine, merged)?;
                    let files = &merged.record.files;
                    let names = asked(files).map(|file| format!("`{}`", file.path)).collect::<Vec<_>>();
                    let names = names.join(", ");
                    let (has_no_question, has_problem) = (asked(files).next().is_none(), has_problem(files));
                    if self.verdict.approve.is_some() || has_no_question || has_problem {
                        let message = details.record.agent_message.unwrap_or_default();
                        let reported = self.report_stale(&pending, &merged, &names, &message);
                        withdraw(self.engine, merged.change());
                        return reported.map(Reviewed::Ended);
                    }
                    let text =
                        format!("{names} changed while you decided; nothing was written. Both changes together:");
                    (merged, text)
                }
                Err(error) => match self.after_rejection(&pending, error)? {
                    Overtaken::Decided(record) => return self.report_decided(&record).map(Reviewed::Ended),
                    Overtaken::PreviewChanged(now) => (*now, SHOWS_OTHER.to_owned()),
                },
            };
            match self.ask_again(next, &message)? {
                AskedAgain::Answered(next) => (pending, answer) = *next,
                AskedAgain::Ended(reviewed) => return Ok(reviewed),
            }
        }
    }

    fn ask_again(&mut self, mut next: Pending, message: &str) -> Result<AskedAgain, CliError> {
        self.output.flush()?;
        say(message);
        loop {
            match self.answer(&next) {
                Ok(PromptAnswer::Answered(answer)) => return Ok(AskedAgain::Answered(Box::new((next, answer)))),
                Ok(PromptAnswer::Left(leave)) => return Ok(AskedAgain::Ended(Reviewed::Left(leave))),
                Ok(PromptAnswer::PreviewChanged) => match self.current(next.change())? {
                    Overtaken::Decided(record) => {
                        return self.report_decided(&record).map(|code| AskedAgain::Ended(Reviewed::Ended(code)));
                    }
                    Overtaken::PreviewChanged(now) => {
                        self.output.flush()?;
                        say(SHOWS_OTHER);
                        next = *now;
                    }
                },
                Ok(PromptAnswer::EndOfInput | PromptAnswer::NoInput) => {
                    self.abandon(&next);
                    return Ok(AskedAgain::Ended(Reviewed::Ended(report_undecided())));
                }
                Err(error) => {
                    self.abandon(&next);
                    return Err(error);
                }
            }
        }
    }

    /// Returns the present state of a change that was previewed again.
    fn current(&self, change: u64) -> Result<Overtaken, CliError> {
        let now = Pending::get(self.engine, change)?;
        if now.is_pending() {
            return Ok(Overtaken::PreviewChanged(Box::new(now)));
        }
        Ok(Overtaken::Decided(Box::new(report_decided_elsewhere(self.engine, change)?)))
    }

    /// Explains a rejected verdict: others decided, or the preview changed. Any other cause is an error.
    fn after_rejection(&self, pending: &Pending, error: ClientError) -> Result<Overtaken, CliError> {
        let ClientError::Remote(_) = &error else { return Err(error.into()) };
        let now = Pending::get(self.engine, pending.change())?;
        if !now.is_pending() {
            let record = report_decided_elsewhere(self.engine, pending.change())?;
            return Ok(Overtaken::Decided(Box::new(record)));
        }
        let is_given = self.verdict.approve.is_some() || self.verdict.deny.is_some();
        if now.record.preview != pending.record.preview && !is_given {
            return Ok(Overtaken::PreviewChanged(Box::new(now)));
        }
        self.abandon(pending);
        Err(error.into())
    }

    /// Returns the answer of the options, or asks.
    fn answer(&mut self, pending: &Pending) -> Result<PromptAnswer, CliError> {
        if let Some(answer) = self.given_answer(&pending.record.files)? {
            if !self.json {
                self.show(pending)?;
            }
            return Ok(PromptAnswer::Answered(answer));
        }
        let comments = self.given_comments(&pending.record.files)?;
        let diff = match ChangeDiff::of_pending(self.engine, self.terminal, pending) {
            Ok(diff) => diff,
            Err(error) if error.kind() == ErrorKind::Stale => return Ok(PromptAnswer::PreviewChanged),
            Err(error) => return Err(error.into()),
        };
        let mut answer = match &mut self.prompter {
            Some(prompter) => prompter.ask(pending, &diff, &mut self.output)?,
            None => Prompter::open(self.proposal, self.terminal).ask(pending, &diff, &mut self.output)?,
        };
        if let PromptAnswer::Answered(answer) = &mut answer {
            answer.comments.splice(0..0, comments);
        }
        Ok(answer)
    }

    /// Returns the answer of the options. `None` without one.
    fn given_answer(&self, files: &[FileRecord]) -> Result<Option<ChangeAnswer>, CliError> {
        let answer = match (&self.verdict.approve, &self.verdict.deny) {
            (Some(text), _) => parse_approval(text, files)?,
            (None, Some(reason)) => deny(reason),
            (None, None) => return Ok(None),
        };
        Ok(Some(ChangeAnswer { answer, comments: self.given_comments(files)? }))
    }

    fn given_comments(&self, files: &[FileRecord]) -> Result<Vec<Comment>, CliError> {
        let comments = self.verdict.comment.iter().map(|text| parse_comment(text, files));
        Ok(comments.collect::<Result<_, _>>()?)
    }

    fn show(&mut self, shown: &Pending) -> Result<(), CliError> {
        let diff = ChangeDiff::of_pending(self.engine, self.terminal, shown)?;
        diff.draw(&mut self.output, |path| FileFacts::recorded(&shown.record.files, path))
    }
}

/// `true` if a file cannot be changed as proposed.
fn has_problem(files: &[FileRecord]) -> bool {
    files.iter().any(|file| file.problem.is_some())
}

fn report_undecided() -> ExitCode {
    say("Nothing was decided, so nothing was done.");
    ExitCode::from(DENIED)
}
