//! Decides about a change of files: asks, sends the verdict, and asks again if the files changed meanwhile.

use std::path::Path;
use std::process::ExitCode;

use sayso_api::client::{ChangeDetails, ClientError, PreviewDetail};
use sayso_present::change::applied_text;
use sayso_present::command_prompt::deny;
use sayso_present::file_review::{ChangeAnswer, Leave, parse_approval, parse_comment};
use sayso_present::preview::render_preview;
use sayso_review::{
    ChangeRecord, ChangeStatus, Comment, ContentHash, ErrorKind, Placement, Preview, Ruling, VerdictError, WsPath,
};
use serde_json::{Value, json};

use super::prompt::{PromptAnswer, Prompter};
use crate::ansi::highlighting;
use crate::cli::{CommonOptions, VerdictOptions};
use crate::engine::EngineConnection;
use crate::error::{CliError, DENIED, REFUSED, exit_code};
use crate::output::{Output, say};
use crate::pending::{Pending, report_decided_elsewhere, withdraw};
use crate::signals::TerminationSignals;
use crate::terminal::Terminal;

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

    fn ask_and_decide(&mut self, pending: Pending) -> Result<Reviewed, CliError> {
        match self.answer(&pending.preview) {
            Ok(PromptAnswer::Answered(answer)) => self.decide(pending, answer),
            Ok(PromptAnswer::Left(leave)) => Ok(Reviewed::Left(leave)),
            Ok(PromptAnswer::NoInput) if self.on_abandon == OnAbandon::Withdraw => {
                let signals = TerminationSignals::new()?;
                self.output.flush()?;
                let record = signals.wait_for_verdict(self.engine, pending.change())?;
                self.report_decided(&record).map(Reviewed::Ended)
            }
            Ok(PromptAnswer::EndOfInput | PromptAnswer::NoInput) => {
                self.abandon(&pending);
                if self.on_abandon == OnAbandon::LeavePending {
                    let now = Pending::get(self.engine, pending.change())?;
                    if !now.is_pending() {
                        let record = report_decided_elsewhere(self.engine, pending.change())?;
                        return self.report_decided(&record).map(Reviewed::Ended);
                    }
                }
                Ok(Reviewed::Ended(report_undecided()))
            }
            Err(error) => {
                self.abandon(&pending);
                Err(error)
            }
        }
    }

    /// Returns the answer of the options, checked against a preview.
    pub(super) fn checked_answer(&mut self, shown: &Pending) -> Result<ChangeAnswer, CliError> {
        let PromptAnswer::Answered(answer) = self.answer(&shown.preview)? else {
            return Err(CliError::invalid_input("there is no answer").hint("give --approve or --deny"));
        };
        let verdict = shown.verdict(answer.answer.clone(), answer.comments.clone());
        shown.preview.decide(&verdict).map_err(|error| {
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
            let verdict = pending.verdict(answer.answer, answer.comments);
            let call = self.engine.client().decide(pending.change(), verdict, None, PreviewDetail::Omitted);
            let (next, message) = match self.engine.wait(call) {
                Ok(details) => {
                    let (ChangeStatus::Stale, Some(merged)) = (&details.record.status, details.merged_change) else {
                        let code = self.report(&pending, &details.record, &details.lost_attributes)?;
                        return Ok(Reviewed::Ended(code));
                    };
                    let merged = Pending::get(self.engine, merged)?;
                    let names = merged.preview.asked().map(|file| format!("`{}`", file.path)).collect::<Vec<_>>();
                    let names = names.join(", ");
                    let has_no_question = merged.preview.asked().next().is_none();
                    if self.verdict.approve.is_some() || has_no_question || merged.preview.problems().next().is_some() {
                        withdraw(self.engine, merged.change());
                        let message = details.record.agent_message.unwrap_or_default();
                        return self.report_stale(&pending, &merged, &names, &message).map(Reviewed::Ended);
                    }
                    let text =
                        format!("{names} changed while you decided; nothing was written. Both changes together:");
                    (merged, text)
                }
                Err(error) => match self.after_rejection(&pending, error)? {
                    Overtaken::Decided(record) => return self.report_decided(&record).map(Reviewed::Ended),
                    Overtaken::PreviewChanged(now) => (*now, "It shows something else by now:".to_owned()),
                },
            };
            match self.ask_again(next, &message)? {
                AskedAgain::Answered(next) => (pending, answer) = *next,
                AskedAgain::Ended(reviewed) => return Ok(reviewed),
            }
        }
    }

    fn ask_again(&mut self, next: Pending, message: &str) -> Result<AskedAgain, CliError> {
        self.output.flush()?;
        say(message);
        match self.answer(&next.preview) {
            Ok(PromptAnswer::Answered(answer)) => Ok(AskedAgain::Answered(Box::new((next, answer)))),
            Ok(PromptAnswer::Left(leave)) => Ok(AskedAgain::Ended(Reviewed::Left(leave))),
            Ok(PromptAnswer::EndOfInput | PromptAnswer::NoInput) => {
                self.abandon(&next);
                Ok(AskedAgain::Ended(Reviewed::Ended(report_undecided())))
            }
            Err(error) => {
                self.abandon(&next);
                Err(error)
            }
        }
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
    fn answer(&mut self, preview: &Preview) -> Result<PromptAnswer, CliError> {
        let comments = self.verdict.comment.iter().map(|text| parse_comment(text, preview));
        let comments = comments.collect::<Result<Vec<Comment>, _>>()?;
        let answer = match (&self.verdict.approve, &self.verdict.deny) {
            (Some(text), _) => parse_approval(text, preview)?,
            (None, Some(reason)) => deny(reason),
            (None, None) => {
                let mut answer = match &mut self.prompter {
                    Some(prompter) => prompter.ask(preview, &mut self.output)?,
                    None => Prompter::open(self.proposal, self.terminal).ask(preview, &mut self.output)?,
                };
                if let PromptAnswer::Answered(answer) = &mut answer {
                    answer.comments.splice(0..0, comments);
                }
                return Ok(answer);
            }
        };
        if !self.json {
            self.show(preview)?;
        }
        Ok(PromptAnswer::Answered(ChangeAnswer { answer, comments }))
    }

    fn show(&mut self, preview: &Preview) -> Result<(), CliError> {
        self.output.styled(&render_preview(preview, highlighting(self.terminal)), self.terminal)
    }

    /// Reports a proposal that policy decided.
    pub(super) fn report_policy_decision(&mut self, details: ChangeDetails) -> Result<ExitCode, CliError> {
        let is_later = details.record.ruling.as_ref().is_some_and(|ruling| ruling.ruling == Ruling::Later);
        let lost_attributes = details.lost_attributes.clone();
        let decided = Pending::from_details(details)?;
        let message = decided.record.agent_message.clone().unwrap_or_default();
        if !self.json {
            self.show(&decided.preview)?;
        }
        match &decided.record.status {
            ChangeStatus::Failed { .. } if decided.preview.problems().next().is_some() => {
                if self.json {
                    self.write_json(&decided, json!({ "outcome": "failed", "agent_message": message }))?;
                }
                self.output.flush()?;
                say(&format!("Error: {message}"));
                Ok(exit_code(ErrorKind::Conflict))
            }
            ChangeStatus::Denied => {
                if self.json {
                    self.write_json(&decided, json!({ "outcome": "denied", "agent_message": message }))?;
                }
                self.output.flush()?;
                if !self.json {
                    say(&format!("Refused; nothing was written. The agent is told: {message}"));
                }
                Ok(ExitCode::from(REFUSED))
            }
            _ => {
                let record = decided.record.clone();
                let code = self.report(&decided, &record, &lost_attributes)?;
                if is_later && !self.json {
                    say("It is reviewed at the end of the turn: `sayso review`.");
                }
                Ok(code)
            }
        }
    }

    /// Reports a change that others decided.
    pub(super) fn report_decided(&mut self, record: &ChangeRecord) -> Result<ExitCode, CliError> {
        let message = record.agent_message.clone().unwrap_or_default();
        if self.json {
            let value = json!({ "outcome": record.status, "change": record.change, "agent_message": message });
            self.output.json(&value)?;
        }
        self.output.flush()?;
        if !self.json {
            let told = if message.is_empty() { String::new() } else { format!(" The agent is told: {message}") };
            say(&format!("Change {} is {}.{told}", record.change, record.status));
        }
        Ok(match record.status {
            ChangeStatus::Applied if !record.partial => ExitCode::SUCCESS,
            ChangeStatus::Stale => exit_code(ErrorKind::Stale),
            _ => ExitCode::from(DENIED),
        })
    }

    fn report_stale(
        &mut self,
        pending: &Pending,
        merged: &Pending,
        names: &str,
        message: &str,
    ) -> Result<ExitCode, CliError> {
        if self.json {
            let merged = merged.preview.object();
            self.write_json(pending, json!({ "outcome": "stale", "agent_message": message, "merged": merged }))?;
        } else {
            self.show(&merged.preview)?;
            self.output.flush()?;
            say(&format!(
                "Error: {names} changed after it was shown; nothing was written\nHint: propose it again to decide about both changes together"
            ));
        }
        self.output.flush()?;
        Ok(exit_code(ErrorKind::Stale))
    }

    /// Reports the result of a verdict.
    fn report(
        &mut self,
        shown: &Pending,
        record: &ChangeRecord,
        lost_attributes: &[(WsPath, Vec<String>)],
    ) -> Result<ExitCode, CliError> {
        let message = record.agent_message.clone().unwrap_or_default();
        let (code, outcome, text) = match &record.status {
            ChangeStatus::Applied | ChangeStatus::Undone { .. } => {
                let decision = record.verdict.as_ref().and_then(|verdict| shown.preview.decide(verdict).ok());
                let (is_whole, mut text) = match &decision {
                    Some(decision) => applied_text(record.change, &shown.preview, decision),
                    None => (!record.partial, format!("Applied as change {}.", record.change)),
                };
                for (path, attributes) in lost_attributes {
                    text.push_str(&format!("\nnote: `{path}` could not keep its {}", attributes.join(" and ")));
                }
                let code = if is_whole { ExitCode::SUCCESS } else { ExitCode::from(DENIED) };
                (code, json!({ "outcome": "applied", "partial": !is_whole, "agent_message": message }), text)
            }
            ChangeStatus::Failed { reason } => {
                let outcome = json!({ "outcome": "failed", "reason": reason, "agent_message": message });
                (exit_code(ErrorKind::Unavailable), outcome, format!("Error: {reason}"))
            }
            ChangeStatus::Permitted => {
                (ExitCode::SUCCESS, json!({ "outcome": "permitted", "agent_message": message }), message)
            }
            ChangeStatus::Stale => (exit_code(ErrorKind::Stale), json!({ "outcome": "stale" }), String::new()),
            ChangeStatus::Denied | ChangeStatus::Pending | ChangeStatus::Cancelled | ChangeStatus::Interrupted => {
                let text = format!("Denied; nothing was written. The agent is told: {message}");
                (ExitCode::from(DENIED), json!({ "outcome": "denied", "agent_message": message }), text)
            }
        };
        if self.json {
            self.write_json(shown, outcome)?;
        }
        self.output.flush()?;
        if !self.json {
            say(&text);
            for message in self.queued_messages(shown)? {
                say(&format!("The agent is also told: {message}"));
            }
        }
        Ok(code)
    }

    fn write_json(&mut self, shown: &Pending, mut outcome: Value) -> Result<(), CliError> {
        outcome["change"] = json!(shown.change());
        outcome["preview"] = json!(shown.preview.object());
        let messages = self.queued_messages(shown)?;
        if !messages.is_empty() {
            outcome["messages"] = json!(messages);
        }
        self.output.json(&outcome)
    }

    /// Takes the queued messages of the proposing agent, which this output delivers.
    fn queued_messages(&self, shown: &Pending) -> Result<Vec<String>, CliError> {
        match shown.session().filter(|_| shown.preview.placement() == Placement::Proposed) {
            Some(session) => self.engine.block(self.engine.client().take_messages(session)),
            None => Ok(Vec::new()),
        }
    }
}

fn report_undecided() -> ExitCode {
    say("Nothing was decided, so nothing was done.");
    ExitCode::from(DENIED)
}
