//! `sayso review`: what waits, and what happened at once.

use std::path::Path;
use std::process::ExitCode;

use sayso_gate::{Engine, GateError, Proposed};
use sayso_review::{Answer, Placement};
use serde_json::json;

use crate::agents;
use crate::cli::ReviewArguments;
use crate::config::Config;
use crate::exec;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::propose::ask::Questions;
use crate::propose::{Deciding, preview};
use crate::state::{DENIED, State, now};
use crate::terminal::Terminal;
use crate::visible::visible;

pub(crate) fn run(arguments: &ReviewArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    agents::refuse(&state)?;
    if !state.has_history() {
        say("Nothing waits. `sayso propose` and `sayso exec` bring something up.");
        return Ok(ExitCode::SUCCESS);
    }
    state.tell_where();
    let config = Config::load(&state)?;
    let mut engine = state.engine()?.keeping(config.snapshots());
    agents::settle(&state, &mut engine)?;
    engine.tick(now())?;
    let changes = match arguments.change {
        Some(change) => vec![engine.proposed(change)?.change],
        None => waiting(&mut engine, arguments)?,
    };
    if arguments.place.json && arguments.answers.approve.is_none() && arguments.answers.deny.is_none() {
        let mut changes = changes;
        for (session, turn) in turns(&engine, arguments)? {
            changes.extend(engine.end_turn(&session, &turn, now())?.map(|review| review.change));
        }
        changes.sort_unstable();
        changes.dedup();
        return list(&engine, &changes);
    }
    drop(engine);
    let mut reviewing = Reviewing { state: &state, config: &config, arguments, code: ExitCode::SUCCESS, any: false };
    for change in changes {
        reviewing.one(change)?;
    }
    if arguments.change.is_none() {
        // One after the other: what is taken back of one turn may be what another is about.
        let turns = turns(&state.engine()?, arguments)?;
        for (session, turn) in turns {
            let review = state.engine()?.end_turn(&session, &turn, now())?;
            if let Some(review) = review {
                reviewing.one(review.change)?;
            }
        }
    }
    if !reviewing.any {
        say("Nothing waits.");
    }
    Ok(reviewing.code)
}

/// The turns in which something happened at once that nobody has looked at.
fn turns(engine: &Engine, arguments: &ReviewArguments) -> Result<Vec<(String, String)>, Failure> {
    let mut turns = engine.unreviewed()?;
    turns.retain(|(session, _)| arguments.session.is_none() || arguments.session.as_ref() == Some(session));
    Ok(turns)
}

struct Reviewing<'a> {
    state: &'a State,
    config: &'a Config,
    arguments: &'a ReviewArguments,
    code: ExitCode,
    any: bool,
}

impl Reviewing<'_> {
    fn one(&mut self, change: u64) -> Result<(), Failure> {
        // Somebody may have decided meanwhile, or it ended with another.
        let proposed = match self.state.engine()?.proposed(change) {
            Ok(proposed) => proposed,
            Err(GateError::WrongStatus { status, .. }) => {
                say(&format!("Change {change} is {status} by now."));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.any = true;
        let ended = one(self.state, self.config, self.arguments, proposed)?;
        if ended != ExitCode::SUCCESS {
            self.code = ended;
        }
        Ok(())
    }
}

/// What waits, less reviews, which come with their turns.
fn waiting(engine: &mut Engine, arguments: &ReviewArguments) -> Result<Vec<u64>, Failure> {
    let mut changes = Vec::new();
    for change in engine.waiting()? {
        let record = engine.history().change(change)?;
        let asked = arguments.session.is_none() || record.origin.session == arguments.session;
        if asked && !record.is_review() {
            changes.push(change);
        }
    }
    Ok(changes)
}

fn list(engine: &Engine, changes: &[u64]) -> Result<ExitCode, Failure> {
    let mut objects = Vec::new();
    for &change in changes {
        let proposed = engine.proposed(change)?;
        objects.push(json!({ "change": change, "subject": proposed.subject, "preview": proposed.preview.object() }));
    }
    let mut output = Output::stdout();
    output.json(&json!(objects))?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn one(state: &State, config: &Config, arguments: &ReviewArguments, proposed: Proposed) -> Result<ExitCode, Failure> {
    let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
    let mut output = Output::stdout();
    if !arguments.place.json {
        output.write(title(state, &proposed)?.as_bytes())?;
    }
    if proposed.subject.is_files() {
        let mut deciding = Deciding::new(state, &arguments.answers, &arguments.place, Path::new(""), output);
        return deciding.review(proposed);
    }
    output.write(exec::show::text(&proposed.subject, terminal).as_bytes())?;
    output.write(preview::text(&proposed.preview, terminal).as_bytes())?;
    let answer = match (&arguments.answers.approve, &arguments.answers.deny) {
        (_, Some(reason)) => Answer::Deny { reason: Some(reason.clone()).filter(|reason| !reason.is_empty()) },
        (Some(what), None) if what == "none" => Answer::Deny { reason: None },
        (Some(_), None) => Answer::Approve,
        (None, None) => {
            let mut questions = Questions::open(Path::new(""), terminal)?;
            let text = exec::review(state, config, &proposed, (&mut questions, &mut output), terminal)?;
            output.finish()?;
            say(&text);
            return Ok(ExitCode::SUCCESS);
        }
    };
    output.finish()?;
    let denied = matches!(answer, Answer::Deny { .. });
    let mut engine = state.engine()?.keeping(config.snapshots());
    engine.check_rules(&proposed, &answer, &mut config.rules()?)?;
    engine.decide(&proposed, &proposed.verdict(answer), now())?;
    say(&format!("Change {} {}.", proposed.change, if denied { "is denied" } else { "may go ahead" }));
    Ok(if denied { ExitCode::from(DENIED) } else { ExitCode::SUCCESS })
}

fn title(state: &State, proposed: &Proposed) -> Result<String, Failure> {
    let record = state.engine()?.history().change(proposed.change)?;
    let who = match (&record.origin.agent, &record.origin.session) {
        (Some(agent), Some(session)) => format!(" by {} in session {}", visible(agent), visible(session)),
        (Some(agent), None) => format!(" by {}", visible(agent)),
        (None, Some(session)) => format!(" in session {}", visible(session)),
        (None, None) => String::new(),
    };
    let mut text = match proposed.preview.placement() {
        Placement::InPlace if proposed.subject.is_files() => {
            format!("Change {}: what happened at once{who}. What you refuse is taken back.\n", proposed.change)
        }
        _ => format!("Change {}{who} waits:\n", proposed.change),
    };
    for before in &record.without {
        text.push_str(&format!("note: {}\n", sayso_review::told_without(*before)));
    }
    Ok(text)
}
