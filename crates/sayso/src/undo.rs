//! `sayso undo`, `sayso redo`: shows its plan, and does it.

use std::process::ExitCode;

use sayso_api::client::UndoPlan;
use sayso_gate::GateError;
use sayso_review::{ChangeStatus, IfChanged, Problem, Target, WsPath};
use serde_json::json;

use crate::agents;
use crate::cli::UndoArguments;
use crate::engine::Connected;
use crate::failure::{Failure, exit_code};
use crate::output::{Output, say};
use crate::propose::preview;
use crate::session;
use crate::settings::tell_of_bad_configuration;
use crate::state::{FAILED, STALE, State};
use crate::terminal::Terminal;
use crate::visible::visible;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Undo,
    Redo,
}

pub(crate) fn run(arguments: &UndoArguments, direction: Direction) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let mut target = target(arguments)?;
    let if_changed = if arguments.merge { IfChanged::Merge } else { IfChanged::Refuse };
    // Asking for what never happened must not leave a trace.
    if !state.has_history() {
        let verb = if direction == Direction::Undo { "undo" } else { "redo" };
        return Err(GateError::NothingTo(verb).into());
    }
    agents::refuse(&state)?;
    tell_of_bad_configuration(&state);
    state.tell_where();
    let connected = Connected::to(&state)?;
    if let Target::Session { session } = &mut target
        && let Some(meant) = session::meant(&connected, session)?
    {
        *session = meant;
    }
    let client = connected.client();
    let plan = connected.wait(async {
        match direction {
            Direction::Undo => client.plan_undo(target.clone(), if_changed).await,
            Direction::Redo => client.plan_redo(target.clone(), if_changed).await,
        }
    })?;
    let json = arguments.place.json;
    let object = json.then(|| plan.preview.object());
    let mut output = Output::stdout();
    if !json {
        let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
        output.write(format!("{}\n", title(&plan, direction)).as_bytes())?;
        output.write(preview::text(&plan.preview, terminal).as_bytes())?;
        for one in &plan.uncaptured {
            let (path, reason) = (visible(&one.path), visible(&one.reason));
            output.write(format!("note: cannot be put back: {path}: {reason}\n").as_bytes())?;
        }
        output.flush()?;
    }
    let problem = plan.preview.problems().next().map(|(path, problem)| (path.clone(), problem.clone()));
    let (code, outcome, text) = if let Some((path, problem)) = problem {
        let merge = if arguments.merge || !matches!(problem, Problem::ChangedSince { .. }) {
            ""
        } else {
            "\nHint: `--merge` keeps what was changed since, where the two do not overlap"
        };
        let text = format!("Error: `{path}` cannot be put back: {problem}; nothing was written{merge}");
        (exit_code(problem.kind()), "refused", text)
    } else if arguments.dry_run {
        (ExitCode::SUCCESS, "planned", "Nothing was done: --dry-run.".to_owned())
    } else {
        let progress = connected.wait(async {
            match direction {
                Direction::Undo => client.undo(target, if_changed, Some(plan.hash)).await,
                Direction::Redo => client.redo(target, if_changed, Some(plan.hash)).await,
            }
        })?;
        match progress.record.status {
            ChangeStatus::Applied if !plan.uncaptured.is_empty() => {
                (exit_code(STALE), "applied", undone_in_part(plan.uncaptured.len()))
            }
            ChangeStatus::Applied => (ExitCode::SUCCESS, "applied", done(direction)),
            ChangeStatus::Failed { reason } => (exit_code(FAILED), "failed", format!("Error: {reason}")),
            _ => (exit_code(STALE), "stale", "Nothing was done.".to_owned()),
        }
    };
    if json {
        let mut object = json!({ "outcome": outcome, "of": plan.of, "preview": object });
        if !plan.uncaptured.is_empty() {
            object["not_put_back"] = json!(plan.uncaptured);
        }
        output.json(&object)?;
        output.finish()?;
    } else {
        output.finish()?;
        say(&text);
    }
    Ok(code)
}

fn done(direction: Direction) -> String {
    match direction {
        Direction::Undo => "Undone. `sayso redo` makes it again.".to_owned(),
        Direction::Redo => "Done again. `sayso undo` takes it back.".to_owned(),
    }
}

/// What is said if not all of it could be put back.
fn undone_in_part(count: usize) -> String {
    let what = if count == 1 { "1 thing was".to_owned() } else { format!("{count} things were") };
    format!(
        "Undone as far as it was captured; {what} not, as noted above. Look there yourself. `sayso redo` makes it again."
    )
}

fn title(plan: &UndoPlan, direction: Direction) -> String {
    let numbers: Vec<String> = plan.of.iter().map(ToString::to_string).collect();
    let noun = if numbers.len() == 1 { "change" } else { "changes" };
    let verb = match direction {
        Direction::Undo => "Takes back",
        Direction::Redo => "Makes again",
    };
    format!("{verb} {noun} {}:", numbers.join(", "))
}

fn target(arguments: &UndoArguments) -> Result<Target, Failure> {
    let number = arguments.target.as_deref().map(|text| text.parse::<u64>().map_err(|_| text));
    Ok(match (number, arguments.turn, &arguments.session) {
        (_, _, Some(session)) => Target::Session { session: session.clone() },
        (Some(Err(text)), true, None) => {
            return Err(Failure::bad_input(format!("`{text}` is not the number of a change"))
                .hint("`sayso log` lists the changes; --turn takes the number of any of the turn's"));
        }
        (Some(Ok(change)), true, None) => Target::Turn { change: Some(change) },
        (None, true, None) => Target::Turn { change: None },
        (Some(Ok(change)), false, None) if !arguments.file.is_empty() => {
            let parse = |path: &String| {
                WsPath::parse(path).map_err(|error| {
                    Failure::bad_input(error.to_string())
                        .hint("name files as `sayso show` does, from the root of the workspace")
                })
            };
            Target::Files { change, paths: arguments.file.iter().map(parse).collect::<Result<_, _>>()? }
        }
        (Some(Err(text)), false, None) if !arguments.file.is_empty() => {
            return Err(Failure::bad_input(format!("`{text}` is not the number of a change"))
                .hint("--file takes the number of a change, as `sayso log` lists it"));
        }
        (Some(Ok(change)), false, None) => Target::Change { change },
        (Some(Err(call)), false, None) => Target::Call { call: call.to_owned() },
        (None, false, None) => Target::Last,
    })
}
