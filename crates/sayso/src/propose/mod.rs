//! `sayso propose`: shows, asks, does.

mod approve;
pub(crate) mod ask;
mod edit;
pub(crate) mod preview;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use sayso_gate::{ChangeRecord, ChangeStatus, Decided, Engine, GateError, Judged, Proposed, Submission, Submitted};
use sayso_review::{
    Answer, Comment, Decider, ErrorKind, FileDecision, Intent, Placement, Preview, Proposal, Ruling, Taken, Verdict,
};
use serde_json::{Value, json};

use crate::cli::{Answers, Place, ProposeArguments};
use crate::config::Config;
use crate::failure::{Failure, exit_code};
use crate::output::{Output, say};
use crate::state::{DENIED, REFUSED, STALE, State, now};
use crate::terminal::Terminal;
use crate::{agents, wait};
use ask::{Asked, Questions};

/// Larger proposals are mistakes.
const LIMIT: u64 = 256 << 20;

pub(crate) fn run(arguments: &ProposeArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let proposal = Proposal::parse(&read(&arguments.proposal)?)
        .map_err(|error| Failure::of(error.kind(), error.to_string()).hint(error.hint()))?;
    let answered = arguments.answers.approve.is_some() || arguments.answers.deny.is_some();
    let mut output = Output::stdout();
    if arguments.place.json && !answered {
        let preview = sayso_gate::preview(&state.workspace()?, &proposal)?;
        output.json(&json!(preview.object()))?;
        output.finish()?;
        let conflict = preview.problems().next().is_some();
        return Ok(if conflict { exit_code(ErrorKind::Conflict) } else { ExitCode::SUCCESS });
    }
    let config = Config::load(&state)?;
    let mut rules = config.rules()?;
    // What was interrupted is settled before anything is looked at, and a journal that cannot be used says so before anybody answers.
    let mut engine = state.engine()?;
    state.tell_where();
    let submission = Submission {
        deadline: config.deadline_from(now()),
        ..Submission::new(Intent::ChangeFiles(proposal), arguments.source.origin())
    };
    let judged = engine.judge(&submission, &mut rules)?;
    let mut deciding = Deciding::new(&state, &arguments.answers, &arguments.place, &arguments.proposal, output);
    let ruling = judged.ruled.ruling;
    deciding.later = ruling == Ruling::Later;
    if ruling == Ruling::Deny || (ruling != Ruling::Ask && !answered) {
        let submitted = engine.submit(submission, &mut rules, now())?;
        drop(engine);
        return deciding.ruled(submitted);
    }
    if agents::speaks_for_one(&state) {
        if answered {
            agents::refuse(&state)?;
        }
        let patience = wait::Patience::new();
        let submitted = engine.submit(submission, &mut rules, now())?;
        drop(engine);
        let Submitted::Waiting(proposed) = submitted else { return deciding.ruled(submitted) };
        // Known from now on, so that it does not wait for ever should this process be killed.
        let registered = agents::register(&state, proposed.change)?;
        let record = wait::for_verdict(&state, &config, &patience, proposed.change)?;
        registered.finished();
        return deciding.ended(&record);
    }
    drop(engine);
    deciding.run(submission, judged)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::bad_input(format!("the proposal `{}` cannot be read", path.display()))
            .why(&error)
            .hint("name a file, or `-` for standard input")
    };
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes)).map_err(failed)?;
    }
    if bytes.len() as u64 > LIMIT {
        return Err(Failure::bad_input(format!("the proposal is larger than {} MB", LIMIT >> 20)));
    }
    Ok(bytes)
}

fn undecided() -> ExitCode {
    say("Nothing was decided, so nothing was done.");
    ExitCode::from(DENIED)
}

/// What became of what had happened at once.
fn reviewed(number: u64, decision: &sayso_review::Decision) -> String {
    if decision.plan.is_empty() {
        return "Kept all of it.".to_owned();
    }
    let files = decision.plan.steps().len();
    let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    format!(
        "Took back what you refused, as change {number}: {files}. The agent is told; `sayso undo {number}` takes that back."
    )
}

/// Deciding about a change of files.
pub(crate) struct Deciding<'a> {
    state: &'a State,
    answers: &'a Answers,
    /// Where the proposal came from: if that is standard input, answers come from elsewhere.
    proposal: &'a Path,
    json: bool,
    /// Whether what happens is put up for review afterwards.
    later: bool,
    terminal: Terminal,
    output: Output,
}

impl<'a> Deciding<'a> {
    pub(crate) fn new(
        state: &'a State,
        answers: &'a Answers,
        place: &Place,
        proposal: &'a Path,
        output: Output,
    ) -> Self {
        let terminal = Terminal::detect(place.color, place.theme);
        Self { state, answers, proposal, json: place.json, later: false, terminal, output }
    }

    /// Says what policy made of a proposal.
    fn ruled(&mut self, submitted: Submitted) -> Result<ExitCode, Failure> {
        let (proposed, decided) = match submitted {
            Submitted::Decided { proposed, decided } => (proposed, decided),
            Submitted::Impossible { proposed, told } => {
                if self.json {
                    self.json(&proposed, json!({ "outcome": "failed", "told": told }))?;
                } else {
                    self.output.write(preview::text(&proposed.preview, self.terminal).as_bytes())?;
                }
                self.output.flush()?;
                say(&format!("Error: {told}"));
                return Ok(exit_code(ErrorKind::Conflict));
            }
            Submitted::Waiting(proposed) => {
                say(&format!("Change {} waits for another of the same file: `sayso review`.", proposed.change));
                return Ok(ExitCode::from(DENIED));
            }
        };
        if !self.json {
            self.output.write(preview::text(&proposed.preview, self.terminal).as_bytes())?;
        }
        if let Decided::Denied { told } = &decided {
            if self.json {
                self.json(&proposed, json!({ "outcome": "denied", "told": told }))?;
            }
            self.output.flush()?;
            if !self.json {
                say(&format!("Refused; nothing was written. The agent is told: {told}"));
            }
            return Ok(ExitCode::from(REFUSED));
        }
        let code = self.report(&proposed, &decided)?;
        if self.later && !self.json {
            say("It is reviewed at the end of the turn: `sayso review`.");
        }
        Ok(code)
    }

    /// Says what became of a change that somebody else decided.
    fn ended(&mut self, record: &ChangeRecord) -> Result<ExitCode, Failure> {
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

    /// Asks about a change that waits, and does.
    pub(crate) fn review(&mut self, proposed: Proposed) -> Result<ExitCode, Failure> {
        let Some(asked) = self.answer(&proposed.preview)? else { return Ok(undecided()) };
        let engine = self.state.engine()?;
        let mut rules = Config::load(self.state)?.rules()?;
        engine.check_rules(&proposed, &asked.answer, &mut rules)?;
        self.decide(engine, proposed, asked)
    }

    /// Asks, and does. Nothing is recorded and no lock is held while a person decides, so that they can take their time, or leave.
    fn run(&mut self, submission: Submission, judged: Judged) -> Result<ExitCode, Failure> {
        let preview = &judged.preview;
        let Some(asked) = self.answer(preview)? else { return Ok(undecided()) };
        // An answer that does not fit is nobody's decision, and not worth a record.
        let verdict = Verdict {
            preview: preview.hash(),
            answer: asked.answer.clone(),
            comments: asked.comments.clone(),
            by: Decider::Person,
        };
        preview.decide(&verdict).map_err(GateError::from)?;
        let mut engine = self.state.engine()?;
        let proposed = engine.record_judged(submission, judged, now())?;
        self.decide(engine, proposed, asked)
    }

    fn decide(&mut self, mut engine: Engine, mut proposed: Proposed, mut asked: Asked) -> Result<ExitCode, Failure> {
        loop {
            let mut verdict = proposed.verdict(asked.answer);
            verdict.comments = asked.comments;
            let decided = match engine.decide(&proposed, &verdict, now()) {
                Ok(decided) => decided,
                Err(error) => {
                    // It ends here if it still waits; what went wrong first is what is told.
                    let _ = engine.cancel(proposed.change, now());
                    return Err(error.into());
                }
            };
            let Decided::Stale { next, files, told } = decided else {
                drop(engine);
                return self.report(&proposed, &decided);
            };
            let names = files.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
            let nothing_to_ask = next.preview.asked().next().is_none();
            if self.answers.approve.is_some() || nothing_to_ask || next.preview.problems().next().is_some() {
                engine.cancel(next.change, now())?;
                return self.stale(&proposed, &next, &names, &told);
            }
            // Let go of while the person decides again.
            drop(engine);
            self.output.flush()?;
            say(&format!("{names} changed while you decided; nothing was written. Both changes together:"));
            let answer = self.answer(&next.preview);
            engine = self.state.engine()?;
            asked = match answer {
                Ok(Some(asked)) => asked,
                other => {
                    engine.cancel(next.change, now())?;
                    other?;
                    return Ok(undecided());
                }
            };
            proposed = *next;
        }
    }

    fn answer(&mut self, preview: &Preview) -> Result<Option<Asked>, Failure> {
        let comments = self.answers.comment.iter().map(|text| approve::comment(text, preview));
        let comments = comments.collect::<Result<Vec<Comment>, Failure>>()?;
        let answer = match (&self.answers.approve, &self.answers.deny) {
            (Some(text), _) => approve::answer(text, preview)?,
            (None, Some(reason)) => Answer::Deny { reason: Some(reason.clone()).filter(|reason| !reason.is_empty()) },
            (None, None) => {
                let mut questions = Questions::open(self.proposal, self.terminal)?;
                let asked = questions.ask(preview, &mut self.output)?;
                return Ok(asked.map(|mut asked| {
                    asked.comments.splice(0..0, comments);
                    asked
                }));
            }
        };
        if !self.json {
            self.output.write(preview::text(preview, self.terminal).as_bytes())?;
        }
        Ok(Some(Asked { answer, comments }))
    }

    fn stale(&mut self, proposed: &Proposed, next: &Proposed, names: &str, told: &str) -> Result<ExitCode, Failure> {
        if self.json {
            let outcome = json!({ "outcome": "stale", "told": told, "merged": next.preview.object() });
            self.json(proposed, outcome)?;
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

    fn report(&mut self, proposed: &Proposed, decided: &Decided) -> Result<ExitCode, Failure> {
        let (code, outcome, text) = match decided {
            Decided::Applied { told, decision, lost } => {
                let whole = decision.files.iter().all(|file| file.taken == Taken::All);
                let changed = |file: &FileDecision| !matches!(file.taken, Taken::Nothing { .. });
                let files = if decision.plan.is_empty() {
                    0
                } else {
                    decision.files.iter().filter(|file| changed(file)).count()
                };
                let number = proposed.change;
                let mut text = match files {
                    _ if proposed.preview.placement() == Placement::InPlace => reviewed(number, decision),
                    0 => "Nothing had to be changed.".to_owned(),
                    files => {
                        let part = if whole { "" } else { " in part" };
                        let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
                        format!("Applied{part} as change {number}: {files}. `sayso undo {number}` takes it back.")
                    }
                };
                for (path, what) in lost {
                    text.push_str(&format!("\nnote: `{path}` could not keep its {}", what.join(" and ")));
                }
                let code = if whole { ExitCode::SUCCESS } else { ExitCode::from(DENIED) };
                (code, json!({ "outcome": "applied", "in_part": !whole, "told": told }), text)
            }
            Decided::Denied { told, .. } => {
                let outcome = json!({ "outcome": "denied", "told": told });
                (ExitCode::from(DENIED), outcome, format!("Denied; nothing was written. The agent is told: {told}"))
            }
            Decided::Failed { error, told } => {
                let outcome = json!({ "outcome": "failed", "reason": error.to_string(), "told": told });
                (exit_code(error.kind()), outcome, format!("Error: {error}"))
            }
            Decided::Permitted { told, .. } => {
                (ExitCode::SUCCESS, json!({ "outcome": "permitted", "told": told }), told.clone())
            }
            Decided::Stale { .. } => (exit_code(STALE), json!({ "outcome": "stale" }), String::new()),
        };
        if self.json {
            self.json(proposed, outcome)?;
        }
        self.output.flush()?;
        if !self.json {
            say(&text);
            for message in self.messages(proposed)? {
                say(&format!("The agent is also told: {message}"));
            }
        }
        Ok(code)
    }

    fn json(&mut self, proposed: &Proposed, mut outcome: Value) -> Result<(), Failure> {
        outcome["change"] = json!(proposed.change);
        outcome["preview"] = json!(proposed.preview.object());
        let messages = self.messages(proposed)?;
        if !messages.is_empty() {
            outcome["messages"] = json!(messages);
        }
        self.output.json(&outcome)
    }

    /// What the agent is to be told besides, of which this is the opportunity.
    fn messages(&self, proposed: &Proposed) -> Result<Vec<String>, Failure> {
        match proposed.session().filter(|_| proposed.preview.placement() == Placement::Proposed) {
            Some(session) => Ok(self.state.engine()?.take_messages(session, now())?),
            None => Ok(Vec::new()),
        }
    }
}
