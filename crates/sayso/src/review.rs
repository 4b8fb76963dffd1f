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
    let mut changes = match arguments.change {
        Some(change) => vec![engine.proposed(change)?.change],
        None => waiting(&mut engine, arguments)?,
    };
    if arguments.change.is_none() {
        for review in put_up(&mut engine, arguments)? {
            if !changes.contains(&review) {
                changes.push(review);
            }
        }
    }
    drop(engine);
    if arguments.place.json && arguments.answers.approve.is_none() && arguments.answers.deny.is_none() {
        return list(&state, &changes);
    }
    if changes.is_empty() {
        say("Nothing waits.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut code = ExitCode::SUCCESS;
    for change in changes {
        // Somebody may have decided meanwhile, or it ended with another.
        let proposed = match state.engine()?.proposed(change) {
            Ok(proposed) => proposed,
            Err(GateError::WrongStatus { status, .. }) => {
                say(&format!("Change {change} is {status} by now."));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let ended = one(&state, &config, arguments, proposed)?;
        if ended != ExitCode::SUCCESS {
            code = ended;
        }
    }
    Ok(code)
}

/// What waits.
fn waiting(engine: &mut Engine, arguments: &ReviewArguments) -> Result<Vec<u64>, Failure> {
    let mut changes = Vec::new();
    for change in engine.waiting()? {
        let record = engine.history().change(change)?;
        if arguments.session.is_none() || record.origin.session == arguments.session {
            changes.push(change);
        }
    }
    Ok(changes)
}

/// Puts up for review what happened at once and nobody has looked at.
fn put_up(engine: &mut Engine, arguments: &ReviewArguments) -> Result<Vec<u64>, Failure> {
    let mut changes = Vec::new();
    for (session, turn) in engine.unreviewed()? {
        if arguments.session.is_none() || arguments.session.as_deref() == Some(&session) {
            changes.extend(engine.end_turn(&session, &turn, now())?.map(|review| review.change));
        }
    }
    Ok(changes)
}

fn list(state: &State, changes: &[u64]) -> Result<ExitCode, Failure> {
    let engine = state.engine()?;
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
            let text = exec::review(state, config, &proposed, &mut questions, &mut output)?;
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
