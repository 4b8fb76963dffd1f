//! Deciding about a change of files.

use std::path::Path;
use std::process::ExitCode;

use sayso_api::client::{ClientError, Progress, View};
use sayso_gate::GateError;
use sayso_review::{
    Answer, ChangeRecord, ChangeStatus, Comment, ContentHash, Decision, ErrorKind, FileDecision, Placement, Preview,
    Ruling, Taken,
};
use serde_json::{Value, json};

use super::ask::{Asked, Ended, Leaving, Questions};
use super::{approve, preview};
use crate::cli::{Answers, Place};
use crate::engine::Connected;
use crate::failure::{Failure, exit_code};
use crate::output::{Output, say};
use crate::pending::{Patience, Pending, overtaken, withdraw};
use crate::state::{DENIED, FAILED, REFUSED, STALE};
use crate::terminal::Terminal;

/// What becomes of a change that this process does not decide after all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Undecided {
    /// It is this process's own, and nobody is left who wants it.
    Withdrawn,
    /// It waits on.
    Waits,
}

/// Deciding about a change of files.
pub(crate) struct Deciding<'a> {
    connected: &'a Connected,
    answers: &'a Answers,
    /// Where the proposal came from: if that is standard input, answers come from elsewhere.
    proposal: &'a Path,
    json: bool,
    terminal: Terminal,
    output: Output,
    questions: Option<&'a mut Questions>,
    undecided: Undecided,
}

impl<'a> Deciding<'a> {
    pub(crate) fn new(
        connected: &'a Connected,
        answers: &'a Answers,
        place: &Place,
        proposal: &'a Path,
        output: Output,
    ) -> Self {
        let terminal = Terminal::detect(place.color, place.theme);
        let (json, undecided) = (place.json, Undecided::Withdrawn);
        Self { connected, answers, proposal, json, terminal, output, questions: None, undecided }
    }

    /// The same, with answers that come from somebody who is asked one thing after the other.
    pub(crate) fn asking(self, questions: &'a mut Questions) -> Self {
        Self { questions: Some(questions), ..self }
    }

    /// Says what policy made of a proposal.
    pub(super) fn ruled(&mut self, progress: Progress) -> Result<ExitCode, Failure> {
        let later = progress.record.ruled.as_ref().is_some_and(|ruled| ruled.ruling == Ruling::Later);
        let lost = progress.lost.clone();
        let ruled = Pending::of(progress)?;
        let told = ruled.record.told.clone().unwrap_or_default();
        if !self.json {
            self.output.write(preview::text(&ruled.preview, self.terminal).as_bytes())?;
        }
        match &ruled.record.status {
            ChangeStatus::Failed { .. } if ruled.preview.problems().next().is_some() => {
                if self.json {
                    self.json(&ruled, json!({ "outcome": "failed", "told": told }))?;
                }
                self.output.flush()?;
                say(&format!("Error: {told}"));
                Ok(exit_code(ErrorKind::Conflict))
            }
            ChangeStatus::Denied => {
                if self.json {
                    self.json(&ruled, json!({ "outcome": "denied", "told": told }))?;
                }
                self.output.flush()?;
                if !self.json {
                    say(&format!("Refused; nothing was written. The agent is told: {told}"));
                }
                Ok(ExitCode::from(REFUSED))
            }
            _ => {
                let record = ruled.record.clone();
                let code = self.report(&ruled, &record, &lost)?;
                if later && !self.json {
                    say("It is reviewed at the end of the turn: `sayso review`.");
                }
                Ok(code)
            }
        }
    }

    /// Says what became of a change that somebody else decided.
    pub(super) fn ended(&mut self, record: &ChangeRecord) -> Result<ExitCode, Failure> {
        let told = record.told.clone().unwrap_or_default();
        if self.json {
            self.output.json(&json!({ "outcome": record.status, "change": record.change, "told": told }))?;
        }
        self.output.flush()?;
        if !self.json {
            let told = if told.is_empty() { String::new() } else { format!(" The agent is told: {told}") };
            say(&format!("Change {} is {}.{told}", record.change, record.status));
        }
        Ok(match record.status {
            ChangeStatus::Applied if !record.in_part => ExitCode::SUCCESS,
            ChangeStatus::Stale => exit_code(STALE),
            _ => ExitCode::from(DENIED),
        })
    }

    /// Asks about a change that waits for somebody, and does.
    pub(crate) fn review(&mut self, pending: Pending) -> Result<Reviewed, Failure> {
        self.undecided = Undecided::Waits;
        self.ask_or_leave(pending)
    }

    /// Asks, and does. Who leaves without a decision leaves the change waiting.
    pub(super) fn ask(&mut self, pending: Pending) -> Result<ExitCode, Failure> {
        let change = pending.change();
        match self.ask_or_leave(pending)? {
            Reviewed::Ended(code) => Ok(code),
            Reviewed::Left(_) => {
                say(&format!("Nothing was decided. Change {change} waits: `sayso review {change}`."));
                Ok(ExitCode::from(DENIED))
            }
        }
    }

    /// Asks, and does. Others can decide meanwhile, so that a person can take their time, or leave.
    fn ask_or_leave(&mut self, pending: Pending) -> Result<Reviewed, Failure> {
        match self.answer(&pending.preview) {
            Ok(Ended::Answered(asked)) => self.decide(pending, asked),
            Ok(Ended::Left(leaving)) => Ok(Reviewed::Left(leaving)),
            Ok(Ended::Silence) if self.undecided == Undecided::Withdrawn => {
                let patience = Patience::new()?;
                self.output.flush()?;
                let record = patience.for_verdict(self.connected, pending.change())?;
                self.ended(&record).map(Reviewed::Ended)
            }
            Ok(Ended::Nobody | Ended::Silence) => {
                self.leave(&pending);
                if self.undecided == Undecided::Waits {
                    let now = Pending::get(self.connected, pending.change())?;
                    if !now.waits() {
                        let record = overtaken(self.connected, pending.change())?;
                        return self.ended(&record).map(Reviewed::Ended);
                    }
                }
                Ok(Reviewed::Ended(undecided()))
            }
            Err(failure) => {
                self.leave(&pending);
                Err(failure)
            }
        }
    }

    /// The answer that was given beforehand, if it fits what is shown.
    pub(super) fn answer_that_fits(&mut self, shown: &Pending) -> Result<Asked, Failure> {
        let Ended::Answered(asked) = self.answer(&shown.preview)? else {
            return Err(Failure::bad_input("there is no answer").hint("give --approve or --deny"));
        };
        let verdict = shown.verdict(asked.answer.clone(), asked.comments.clone());
        shown.preview.decide(&verdict).map_err(GateError::from)?;
        Ok(asked)
    }

    /// Decides as was answered beforehand, if what was shown is what waits.
    pub(super) fn answered(&mut self, pending: Pending, shown: ContentHash, asked: Asked) -> Result<ExitCode, Failure> {
        if pending.record.preview == shown {
            return match self.decide(pending, asked)? {
                Reviewed::Ended(code) => Ok(code),
                // Nobody is asked who could leave.
                Reviewed::Left(_) => Ok(undecided()),
            };
        }
        self.leave(&pending);
        Err(Failure::of(STALE, "the files changed after they were shown; nothing was written")
            .hint("propose it again to decide about both changes together"))
    }

    fn leave(&self, pending: &Pending) {
        if self.undecided == Undecided::Withdrawn {
            withdraw(self.connected, pending.change());
        }
    }

    fn decide(&mut self, mut pending: Pending, mut asked: Asked) -> Result<Reviewed, Failure> {
        loop {
            let verdict = pending.verdict(asked.answer, asked.comments);
            let client = self.connected.client();
            let progress = match self.connected.wait(client.decide(pending.change(), verdict, None, View::Nothing)) {
                Ok(progress) => progress,
                Err(error) => match self.overtaken(&pending, error)? {
                    Overtaken::Decided(record) => return self.ended(&record).map(Reviewed::Ended),
                    Overtaken::Shows(again) => {
                        match self.again(*again, "It shows something else by now:")? {
                            Again::Answered(next) => (pending, asked) = *next,
                            Again::Over(reviewed) => return Ok(reviewed),
                        }
                        continue;
                    }
                },
            };
            let next = match (&progress.record.status, progress.next) {
                (ChangeStatus::Stale, Some(next)) => Pending::get(self.connected, next)?,
                _ => return self.report(&pending, &progress.record, &progress.lost).map(Reviewed::Ended),
            };
            let names = next.preview.asked().map(|file| format!("`{}`", file.path)).collect::<Vec<_>>().join(", ");
            let nothing_to_ask = next.preview.asked().next().is_none();
            if self.answers.approve.is_some() || nothing_to_ask || next.preview.problems().next().is_some() {
                withdraw(self.connected, next.change());
                let told = progress.record.told.unwrap_or_default();
                return self.stale(&pending, &next, &names, &told).map(Reviewed::Ended);
            }
            let text = format!("{names} changed while you decided; nothing was written. Both changes together:");
            match self.again(next, &text)? {
                Again::Answered(next) => (pending, asked) = *next,
                Again::Over(reviewed) => return Ok(reviewed),
            }
        }
    }

    /// Asks about what waits in place of what was answered.
    fn again(&mut self, next: Pending, text: &str) -> Result<Again, Failure> {
        self.output.flush()?;
        say(text);
        match self.answer(&next.preview) {
            Ok(Ended::Answered(asked)) => Ok(Again::Answered(Box::new((next, asked)))),
            Ok(Ended::Left(leaving)) => Ok(Again::Over(Reviewed::Left(leaving))),
            Ok(Ended::Nobody | Ended::Silence) => {
                self.leave(&next);
                Ok(Again::Over(Reviewed::Ended(undecided())))
            }
            Err(failure) => {
                self.leave(&next);
                Err(failure)
            }
        }
    }

    /// What became of a change whose verdict was not taken, if that is because others were faster.
    fn overtaken(&self, pending: &Pending, error: ClientError) -> Result<Overtaken, Failure> {
        let ClientError::Remote(_) = &error else { return Err(error.into()) };
        let now = Pending::get(self.connected, pending.change())?;
        if !now.waits() {
            return Ok(Overtaken::Decided(Box::new(overtaken(self.connected, pending.change())?)));
        }
        let answered = self.answers.approve.is_some() || self.answers.deny.is_some();
        if now.record.preview != pending.record.preview && !answered {
            return Ok(Overtaken::Shows(Box::new(now)));
        }
        // It ends here if it is ours; what went wrong first is what is told.
        self.leave(pending);
        Err(error.into())
    }

    fn answer(&mut self, preview: &Preview) -> Result<Ended, Failure> {
        let comments = self.answers.comment.iter().map(|text| approve::comment(text, preview));
        let comments = comments.collect::<Result<Vec<Comment>, Failure>>()?;
        let answer = match (&self.answers.approve, &self.answers.deny) {
            (Some(text), _) => approve::answer(text, preview)?,
            (None, Some(reason)) => Answer::Deny { reason: Some(reason.clone()).filter(|reason| !reason.is_empty()) },
            (None, None) => {
                let mut ended = match &mut self.questions {
                    Some(questions) => questions.ask(preview, &mut self.output)?,
                    None => Questions::open(self.proposal, self.terminal).ask(preview, &mut self.output)?,
                };
                if let Ended::Answered(asked) = &mut ended {
                    asked.comments.splice(0..0, comments);
                }
                return Ok(ended);
            }
        };
        if !self.json {
            self.output.write(preview::text(preview, self.terminal).as_bytes())?;
        }
        Ok(Ended::Answered(Asked { answer, comments }))
    }

    fn stale(&mut self, pending: &Pending, next: &Pending, names: &str, told: &str) -> Result<ExitCode, Failure> {
        if self.json {
            let outcome = json!({ "outcome": "stale", "told": told, "merged": next.preview.object() });
            self.json(pending, outcome)?;
        } else {
            self.output.write(preview::text(&next.preview, self.terminal).as_bytes())?;
            self.output.flush()?;
            say(&format!(
                "Error: {names} changed after it was shown; nothing was written\nHint: propose it again to decide about both changes together"
            ));
        }
        self.output.flush()?;
        Ok(exit_code(STALE))
    }

    /// Says what became of what was shown.
    fn report(
        &mut self,
        shown: &Pending,
        record: &ChangeRecord,
        lost: &[(sayso_review::WsPath, Vec<String>)],
    ) -> Result<ExitCode, Failure> {
        let told = record.told.clone().unwrap_or_default();
        let (code, outcome, text) = match &record.status {
            ChangeStatus::Applied | ChangeStatus::Undone { .. } => {
                let verdict = record.verdict.as_ref().and_then(|verdict| shown.preview.decide(verdict).ok());
                let (whole, mut text) = match &verdict {
                    Some(decision) => applied(record.change, &shown.preview, decision),
                    None => (!record.in_part, format!("Applied as change {}.", record.change)),
                };
                for (path, what) in lost {
                    text.push_str(&format!("\nnote: `{path}` could not keep its {}", what.join(" and ")));
                }
                let code = if whole { ExitCode::SUCCESS } else { ExitCode::from(DENIED) };
                (code, json!({ "outcome": "applied", "in_part": !whole, "told": told }), text)
            }
            ChangeStatus::Failed { reason } => {
                let outcome = json!({ "outcome": "failed", "reason": reason, "told": told });
                (exit_code(FAILED), outcome, format!("Error: {reason}"))
            }
            ChangeStatus::Permitted => (ExitCode::SUCCESS, json!({ "outcome": "permitted", "told": told }), told),
            ChangeStatus::Stale => (exit_code(STALE), json!({ "outcome": "stale" }), String::new()),
            ChangeStatus::Denied | ChangeStatus::Pending | ChangeStatus::Cancelled | ChangeStatus::Interrupted => {
                let text = format!("Denied; nothing was written. The agent is told: {told}");
                (ExitCode::from(DENIED), json!({ "outcome": "denied", "told": told }), text)
            }
        };
        if self.json {
            self.json(shown, outcome)?;
        }
        self.output.flush()?;
        if !self.json {
            say(&text);
            for message in self.messages(shown)? {
                say(&format!("The agent is also told: {message}"));
            }
        }
        Ok(code)
    }

    fn json(&mut self, shown: &Pending, mut outcome: Value) -> Result<(), Failure> {
        outcome["change"] = json!(shown.change());
        outcome["preview"] = json!(shown.preview.object());
        let messages = self.messages(shown)?;
        if !messages.is_empty() {
            outcome["messages"] = json!(messages);
        }
        self.output.json(&outcome)
    }

    /// What the agent is to be told besides, of which this is the opportunity.
    fn messages(&self, shown: &Pending) -> Result<Vec<String>, Failure> {
        match shown.session().filter(|_| shown.preview.placement() == Placement::Proposed) {
            Some(session) => self.connected.block(self.connected.client().take_messages(session)),
            None => Ok(Vec::new()),
        }
    }
}

/// How the review of a change ended.
pub(crate) enum Reviewed {
    Ended(ExitCode),
    /// Nothing was decided; the change waits on.
    Left(Leaving),
}

/// What came of asking once more.
enum Again {
    Answered(Box<(Pending, Asked)>),
    Over(Reviewed),
}

/// How others were faster.
enum Overtaken {
    /// It is decided.
    Decided(Box<ChangeRecord>),
    /// It shows something else.
    Shows(Box<Pending>),
}

fn undecided() -> ExitCode {
    say("Nothing was decided, so nothing was done.");
    ExitCode::from(DENIED)
}

/// Whether all of it was approved, and what became of it for a person.
fn applied(number: u64, preview: &Preview, decision: &Decision) -> (bool, String) {
    let whole = decision.files.iter().all(|file| file.taken == Taken::All);
    let changed = |file: &&FileDecision| !matches!(file.taken, Taken::Nothing { .. });
    let files = if decision.plan.is_empty() { 0 } else { decision.files.iter().filter(changed).count() };
    let text = match files {
        _ if preview.placement() == Placement::InPlace => reviewed(number, decision),
        0 => "Nothing had to be changed.".to_owned(),
        files => {
            let part = if whole { "" } else { " in part" };
            let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
            format!("Applied{part} as change {number}: {files}. `sayso undo {number}` takes it back.")
        }
    };
    (whole, text)
}

/// What became of what had happened at once.
fn reviewed(number: u64, decision: &Decision) -> String {
    if decision.plan.is_empty() {
        return "Kept all of it.".to_owned();
    }
    let files = decision.plan.steps().len();
    let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    format!(
        "Took back what you refused, as change {number}: {files}. The agent is told; `sayso undo {number}` takes that back."
    )
}
