//! `sayso review`: what waits, and what happened at once.

mod follow;

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;

use sayso_api::client::{Extent, Shown, View};
use sayso_gate::GateError;
use sayso_review::{Answer, ChangeStatus, Placement, Subject};
use serde_json::json;

use crate::agents;
use crate::cli::{Answers, ReviewArguments};
use crate::engine::Connected;
use crate::exec::Verdict;
use crate::exec::decide::Asking;
use crate::exec::show;
use crate::failure::Failure;
use crate::history;
use crate::output::{Output, say};
use crate::pending::{Pending, settled};
use crate::propose::ask::{Leaving, Questions};
use crate::propose::{Deciding, Reviewed, preview};
use crate::session;
use crate::settings::tell_of_unconfirmed_rules;
use crate::state::{DENIED, State};
use crate::terminal::Terminal;
use crate::visible::visible;

pub(crate) fn run(arguments: &ReviewArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    agents::refuse(&state)?;
    tell_of_unconfirmed_rules(&state);
    if arguments.follow {
        return follow::run(&state, arguments);
    }
    let mut code = here(&state, arguments)?;
    if arguments.changes.is_empty() && !arguments.place.json {
        for (nested, waits) in history::waiting_below(&state) {
            let root = nested.root.to_string_lossy();
            if !arguments.everywhere {
                say(&format!("{waits} in {}: `sayso review --everywhere`", visible(&root)));
                continue;
            }
            say(&format!("In {}:", visible(&root)));
            let ended = here(&nested, arguments)?;
            if ended != ExitCode::SUCCESS {
                code = ended;
            }
        }
    }
    Ok(code)
}

/// Reviews what waits in one workspace.
fn here(state: &State, arguments: &ReviewArguments) -> Result<ExitCode, Failure> {
    if !state.has_history() {
        say("Nothing waits. `sayso propose` and `sayso exec` bring something up.");
        return Ok(ExitCode::SUCCESS);
    }
    state.tell_where();
    let connected = Connected::to(state)?;
    agents::tell_what_still_runs(state);
    let session = session::meant_or_given(&connected, arguments.session.as_deref())?;
    let session = session.as_deref();
    let answered = arguments.answers.approve.is_some() || arguments.answers.deny.is_some();
    if let (Some(what), [_, _, ..]) = (&arguments.answers.approve, &arguments.changes[..])
        && what != "all"
        && what != "none"
    {
        return Err(Failure::bad_input(format!(
            "`--approve {what}` can only be about one change; nothing was decided"
        ))
        .hint("name one change, or give all or none"));
    }
    let changes =
        if arguments.changes.is_empty() { waiting(&connected, session)? } else { named(&connected, arguments)? };
    if arguments.place.json && !answered {
        let mut changes = changes;
        changes.extend(turn_reviews(&connected, session)?);
        changes.sort_unstable();
        changes.dedup();
        return list(&connected, &changes);
    }
    let mut reviewing = Reviewing::new(state, &connected, arguments);
    if answered {
        // Only what waited when the command was started is answered.
        let changes = if arguments.changes.is_empty() { the_only_one(&connected, changes, session)? } else { changes };
        let pending = changes.into_iter().map(|change| Pending::get(&connected, change));
        for pending in pending.collect::<Result<Vec<_>, _>>()? {
            reviewing.one(pending, None)?;
        }
    } else {
        let left = reviewing.all(changes.into())?;
        if arguments.changes.is_empty() && left != Some(Leaving::Quit) {
            reviewing.turns(session)?;
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

/// The changes that are named, all of which wait.
fn named(connected: &Connected, arguments: &ReviewArguments) -> Result<Vec<u64>, Failure> {
    for &change in &arguments.changes {
        let record = connected.block(connected.client().get_change(change, View::Nothing, Shown::Proposed))?.record;
        if record.status != ChangeStatus::Pending {
            let status = record.status.to_string();
            return Err(GateError::WrongStatus { change, verb: "decided", status }.into());
        }
    }
    Ok(arguments.changes.clone())
}

/// The reviews of the turns in which something happened at once.
fn turn_reviews(connected: &Connected, session: Option<&str>) -> Result<Vec<u64>, Failure> {
    let mut changes = Vec::new();
    for (session, turn) in turns(connected, session)? {
        let review = connected.block(connected.client().review_turn(&session, &turn, View::Nothing))?;
        changes.extend(review.map(|review| review.record.change));
    }
    Ok(changes)
}

/// What an answer without a number is about: refused if several things wait.
fn the_only_one(connected: &Connected, waiting: Vec<u64>, session: Option<&str>) -> Result<Vec<u64>, Failure> {
    let mut changes = waiting;
    changes.extend(turn_reviews(connected, session)?);
    if changes.len() < 2 {
        return Ok(changes);
    }
    let mut text = format!("{} things wait, and none is named; nothing was decided", changes.len());
    for &change in &changes {
        let record = connected.block(connected.client().get_change(change, View::Nothing, Shown::Proposed))?.record;
        text.push_str(&format!("\n  {change}  {}", history::summary(&record)));
    }
    let names = changes.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    Err(Failure::bad_input(text).hint(format!("name those that are meant: `sayso review {names} …`")))
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

    /// Asks about one change after the other. What is put off comes again after the others, until nothing else is left.
    fn all(&mut self, mut waiting: VecDeque<u64>) -> Result<Option<Leaving>, Failure> {
        let mut put_off = 0;
        while put_off < waiting.len()
            && let Some(change) = waiting.pop_front()
        {
            match self.one(Pending::get(self.connected, change)?, None)? {
                None => put_off = 0,
                Some(Leaving::Later) => {
                    waiting.push_back(change);
                    put_off += 1;
                }
                Some(Leaving::Back) => {
                    waiting.push_front(change);
                    // What was put off last is the one before that still can be decided.
                    match waiting.pop_back().filter(|_| put_off > 0) {
                        Some(before) => {
                            waiting.push_front(before);
                            put_off -= 1;
                        }
                        None => say("There is nothing before it that waits."),
                    }
                }
                Some(Leaving::Quit) => {
                    self.tell_what_waits(waiting.len() + 1);
                    return Ok(Some(Leaving::Quit));
                }
            }
        }
        if put_off > 0 {
            self.tell_what_waits(put_off);
            return Ok(Some(Leaving::Later));
        }
        Ok(None)
    }

    fn tell_what_waits(&mut self, count: usize) {
        self.code = ExitCode::from(DENIED);
        let wait = if count == 1 { "1 change still waits".to_owned() } else { format!("{count} changes still wait") };
        say(&format!("{wait}: `sayso review`."));
    }

    /// Reviews turn by turn what happened at once. One after the other: what is taken back of one turn may be what another is about.
    fn turns(&mut self, session: Option<&str>) -> Result<(), Failure> {
        let client = self.connected.client();
        for (session, turn) in turns(self.connected, session)? {
            let review = self.connected.block(client.review_turn(&session, &turn, View::Nothing))?;
            if let Some(review) = review
                && self.one(Pending::get(self.connected, review.record.change)?, None)? == Some(Leaving::Quit)
            {
                break;
            }
        }
        Ok(())
    }

    /// Shows a change and takes the verdict. Gives where the person goes who decides nothing.
    fn one(&mut self, pending: Pending, questions: Option<&mut Questions>) -> Result<Option<Leaving>, Failure> {
        // Somebody may have decided meanwhile, or it ended with another.
        if !pending.waits() {
            let change = pending.change();
            let status = settled(self.connected, change)?.status;
            say(&format!("Change {change} is {status} by now."));
            return Ok(None);
        }
        self.any = true;
        match self.decide(pending, questions)? {
            Reviewed::Left(leaving) => return Ok(Some(leaving)),
            Reviewed::Ended(ended) if ended != ExitCode::SUCCESS => self.code = ended,
            Reviewed::Ended(_) => {}
        }
        Ok(None)
    }

    fn decide(&self, pending: Pending, questions: Option<&mut Questions>) -> Result<Reviewed, Failure> {
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
        let answer = answer_to_action(&pending, &arguments.answers)?;
        output.write(show::text(&pending.record.subject, terminal).as_bytes())?;
        output.write(preview::text(&pending.preview, terminal).as_bytes())?;
        let Some(answer) = answer else {
            let mut own;
            let questions = if let Some(questions) = questions {
                questions
            } else {
                own = Questions::open(Path::new(""), terminal);
                &mut own
            };
            return self.ask(&pending, questions, output);
        };
        output.finish()?;
        let denied = matches!(answer, Answer::Deny { .. });
        let verdict = pending.verdict(answer, Vec::new());
        connected.block(connected.client().decide(pending.change(), verdict, None, View::Nothing))?;
        say(&format!("Change {} {}.", pending.change(), if denied { "is denied" } else { "may go ahead" }));
        Ok(Reviewed::Ended(if denied { ExitCode::from(DENIED) } else { ExitCode::SUCCESS }))
    }

    /// Asks about a command or a call of a tool.
    fn ask(&self, pending: &Pending, questions: &mut Questions, mut output: Output) -> Result<Reviewed, Failure> {
        let root = self.state.root.to_string_lossy();
        let mut asking = Asking { connected: self.connected, root: &root, questions, terminal: self.terminal };
        let verdict = asking.decide(pending, &mut output)?;
        output.finish()?;
        let change = pending.change();
        say(&match verdict {
            Verdict::Permitted(_) => format!("Change {change} may go ahead."),
            Verdict::Denied(told) => format!("Denied. The agent is told: {told}"),
            Verdict::Left(leaving) => return Ok(Reviewed::Left(leaving)),
            Verdict::Undecided => "Nothing was decided.".to_owned(),
            Verdict::Over(status) => format!("Change {change} is {status}."),
        });
        Ok(Reviewed::Ended(ExitCode::SUCCESS))
    }
}

/// The answer to a command or a tool call that the arguments give, if they give one.
fn answer_to_action(pending: &Pending, answers: &Answers) -> Result<Option<Answer>, Failure> {
    let change = pending.change();
    let what = if matches!(pending.record.subject, Subject::Command { .. }) { "a command" } else { "a tool call" };
    if !answers.comment.is_empty() {
        return Err(Failure::bad_input(format!("change {change} is {what}, which has no lines to comment on"))
            .hint("give a reason with --deny, or leave out --comment"));
    }
    Ok(match (answers.approve.as_deref(), &answers.deny) {
        (_, Some(reason)) => Some(Answer::Deny { reason: Some(reason.clone()).filter(|reason| !reason.is_empty()) }),
        (Some("all"), None) => Some(Answer::Approve),
        (Some("none"), None) => Some(Answer::Deny { reason: None }),
        (Some(other), None) => {
            let hint = format!("give `sayso review {change} --approve all`, or --deny with a reason");
            return Err(Failure::bad_input(format!(
                "`--approve {other}`: change {change} is {what}, which takes `all` or `none`; nothing was decided"
            ))
            .hint(hint));
        }
        (None, None) => None,
    })
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
