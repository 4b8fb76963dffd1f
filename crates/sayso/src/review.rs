//! `sayso review`: what waits, and what happened at once.

mod follow;

use std::path::Path;
use std::process::ExitCode;

use sayso_api::client::{Extent, View};
use sayso_gate::GateError;
use sayso_review::{Answer, Placement};
use serde_json::json;

use crate::agents;
use crate::cli::ReviewArguments;
use crate::engine::Connected;
use crate::exec::Verdict;
use crate::exec::decide::Asking;
use crate::exec::show;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::pending::{Pending, settled};
use crate::propose::ask::Questions;
use crate::propose::{Deciding, preview};
use crate::session;
use crate::state::{DENIED, State};
use crate::terminal::Terminal;
use crate::visible::visible;

pub(crate) fn run(arguments: &ReviewArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    agents::refuse(&state)?;
    if arguments.follow {
        return follow::run(&state, arguments);
    }
    if !state.has_history() {
        say("Nothing waits. `sayso propose` and `sayso exec` bring something up.");
        return Ok(ExitCode::SUCCESS);
    }
    state.tell_where();
    let connected = Connected::to(&state)?;
    agents::tell_what_still_runs(&state);
    let session = session::meant_or_given(&connected, arguments.session.as_deref())?;
    let session = session.as_deref();
    let changes = match arguments.change {
        Some(change) => {
            let pending = Pending::get(&connected, change)?;
            if !pending.waits() {
                let status = pending.record.status.to_string();
                return Err(GateError::WrongStatus { change, verb: "decided", status }.into());
            }
            vec![change]
        }
        None => waiting(&connected, session)?,
    };
    if arguments.place.json && arguments.answers.approve.is_none() && arguments.answers.deny.is_none() {
        let mut changes = changes;
        for (session, turn) in turns(&connected, session)? {
            let review = connected.block(connected.client().review_turn(&session, &turn, View::Nothing))?;
            changes.extend(review.map(|review| review.record.change));
        }
        changes.sort_unstable();
        changes.dedup();
        return list(&connected, &changes);
    }
    let mut reviewing = Reviewing::new(&state, &connected, arguments);
    for change in changes {
        reviewing.one(change, None)?;
    }
    if arguments.change.is_none() {
        // One after the other: what is taken back of one turn may be what another is about.
        for (session, turn) in turns(&connected, session)? {
            let review = connected.block(connected.client().review_turn(&session, &turn, View::Nothing))?;
            if let Some(review) = review {
                reviewing.one(review.record.change, None)?;
            }
        }
    }
    let requests = connected.block(connected.client().status(Extent::Counts))?.requests_waiting;
    name_requests(requests);
    if requests == 0 && !reviewing.any {
        say("Nothing waits.");
    }
    Ok(reviewing.code)
}

/// Says where requests to models are decided about, if any wait: they are looked at and edited elsewhere.
fn name_requests(waiting: u64) {
    let waits = match waiting {
        0 => return,
        1 => "1 request waits".to_owned(),
        waiting => format!("{waiting} requests wait"),
    };
    say(&format!("{waits}: `sayso request list --waiting`"));
}

/// The turns in which something happened at once that nobody has looked at.
fn turns(connected: &Connected, session: Option<&str>) -> Result<Vec<(String, String)>, Failure> {
    let mut turns = connected.block(connected.client().status(Extent::Counts))?.turns_to_review;
    turns.retain(|(of, _)| session.is_none_or(|session| session == of));
    Ok(turns)
}

/// What waits, less reviews, which come with their turns.
fn waiting(connected: &Connected, session: Option<&str>) -> Result<Vec<u64>, Failure> {
    let pending = connected.block(connected.client().list_pending(session, View::Nothing))?;
    let records = pending.into_iter().map(|progress| progress.record);
    Ok(records.filter(|record| !record.is_review()).map(|record| record.change).collect())
}

fn list(connected: &Connected, changes: &[u64]) -> Result<ExitCode, Failure> {
    let mut objects = Vec::new();
    for &change in changes {
        let Pending { record, preview } = Pending::get(connected, change)?;
        objects.push(json!({ "change": change, "subject": record.subject, "preview": preview.object() }));
    }
    let mut output = Output::stdout();
    output.json(&json!(objects))?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Somebody who decides one thing after the other.
struct Reviewing<'a> {
    state: &'a State,
    connected: &'a Connected,
    arguments: &'a ReviewArguments,
    terminal: Terminal,
    code: ExitCode,
    any: bool,
}

impl<'a> Reviewing<'a> {
    fn new(state: &'a State, connected: &'a Connected, arguments: &'a ReviewArguments) -> Self {
        let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
        Self { state, connected, arguments, terminal, code: ExitCode::SUCCESS, any: false }
    }

    /// Shows a change and takes the verdict.
    fn one(&mut self, change: u64, questions: Option<&mut Questions>) -> Result<(), Failure> {
        // Somebody may have decided meanwhile, or it ended with another.
        let pending = Pending::get(self.connected, change)?;
        if !pending.waits() {
            let status = settled(self.connected, change)?.status;
            say(&format!("Change {change} is {status} by now."));
            return Ok(());
        }
        self.any = true;
        let ended = self.decide(pending, questions)?;
        if ended != ExitCode::SUCCESS {
            self.code = ended;
        }
        Ok(())
    }

    fn decide(&self, pending: Pending, questions: Option<&mut Questions>) -> Result<ExitCode, Failure> {
        let Self { connected, arguments, terminal, .. } = *self;
        let mut output = Output::stdout();
        if !arguments.place.json {
            output.write(title(&pending).as_bytes())?;
        }
        if pending.record.subject.is_files() {
            let deciding = Deciding::new(connected, &arguments.answers, &arguments.place, Path::new(""), output);
            return match questions {
                Some(questions) => deciding.asking(questions).review(pending),
                None => { deciding }.review(pending),
            };
        }
        output.write(show::text(&pending.record.subject, terminal).as_bytes())?;
        output.write(preview::text(&pending.preview, terminal).as_bytes())?;
        let answer = match (&arguments.answers.approve, &arguments.answers.deny) {
            (_, Some(reason)) => Answer::Deny { reason: Some(reason.clone()).filter(|reason| !reason.is_empty()) },
            (Some(what), None) if what == "none" => Answer::Deny { reason: None },
            (Some(_), None) => Answer::Approve,
            (None, None) => {
                let mut own;
                let questions = if let Some(questions) = questions {
                    questions
                } else {
                    own = Questions::open(Path::new(""), terminal)?;
                    &mut own
                };
                return self.ask(&pending, questions, output);
            }
        };
        output.finish()?;
        let denied = matches!(answer, Answer::Deny { .. });
        let verdict = pending.verdict(answer, Vec::new());
        connected.block(connected.client().decide(pending.change(), verdict, None, View::Nothing))?;
        say(&format!("Change {} {}.", pending.change(), if denied { "is denied" } else { "may go ahead" }));
        Ok(if denied { ExitCode::from(DENIED) } else { ExitCode::SUCCESS })
    }

    /// Asks about a command or a call of a tool.
    fn ask(&self, pending: &Pending, questions: &mut Questions, mut output: Output) -> Result<ExitCode, Failure> {
        let root = self.state.root.to_string_lossy();
        let mut asking = Asking { connected: self.connected, root: &root, questions, terminal: self.terminal };
        let verdict = asking.decide(pending, &mut output)?;
        output.finish()?;
        let change = pending.change();
        say(&match verdict {
            Verdict::Permitted(_) => format!("Change {change} may go ahead."),
            Verdict::Denied(told) => format!("Denied. The agent is told: {told}"),
            Verdict::Undecided => "Nothing was decided.".to_owned(),
            Verdict::Over(status) => format!("Change {change} is {status}."),
        });
        Ok(ExitCode::SUCCESS)
    }
}

fn title(pending: &Pending) -> String {
    let record = &pending.record;
    let who = match (&record.origin.agent, &record.origin.session) {
        (Some(agent), Some(session)) => format!(" by {} in session {}", visible(agent), visible(session)),
        (Some(agent), None) => format!(" by {}", visible(agent)),
        (None, Some(session)) => format!(" in session {}", visible(session)),
        (None, None) => String::new(),
    };
    let mut text = match pending.preview.placement() {
        Placement::InPlace if record.subject.is_files() => {
            format!("Change {}: what happened at once{who}. What you refuse is taken back.\n", record.change)
        }
        _ => format!("Change {}{who} waits:\n", record.change),
    };
    for before in &record.without {
        text.push_str(&format!("note: {}\n", sayso_review::told_without(*before)));
    }
    text
}
