//! `sayso undo` and `sayso redo`: shows the plan, then carries it out.

use std::process::ExitCode;

use sayso_api::client::{ChangeDetails, UndoPlan};
use sayso_api::diff::DiffSubject;
use sayso_present::change::{uncaptured_notes, undo_title};
use sayso_present::words::count;
use sayso_review::{ChangeStatus, ErrorKind, IfChanged, Problem, Target, WsPath};
use serde_json::json;

use crate::agents;
use crate::change_diff::{ChangeDiff, FileFacts};
use crate::cli::UndoArguments;
use crate::engine::EngineConnection;
use crate::error::{CliError, exit_code};
use crate::output::{Output, say};
use crate::session;
use crate::settings::report_configuration_problems;
use crate::terminal::Terminal;
use crate::workspace_location::WorkspaceLocation;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Undo,
    Redo,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }

    /// Returns the first words of the plan's heading.
    fn title_verb(self) -> &'static str {
        match self {
            Self::Undo => "Takes back",
            Self::Redo => "Makes again",
        }
    }

    fn success_text(self) -> &'static str {
        match self {
            Self::Undo => "Undone. `sayso redo` makes it again.",
            Self::Redo => "Done again. `sayso undo` takes it back.",
        }
    }
}

pub(crate) fn run(arguments: &UndoArguments, direction: Direction) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let mut target = target(arguments)?;
    let if_changed = if arguments.merge { IfChanged::Merge } else { IfChanged::Refuse };
    // Checked before an engine starts, which would create a journal.
    if !location.has_history() {
        return Err(CliError::invalid_input(format!("there is nothing to {}", direction.name()))
            .hint("`sayso log` lists the changes of this workspace"));
    }
    agents::refuse(&location)?;
    report_configuration_problems(&location);
    location.announce();
    let engine = EngineConnection::open(&location)?;
    if let Target::Session { session } = &mut target
        && let Some(found) = session::find(&engine, session)?
    {
        *session = found;
    }
    let client = engine.client();
    let plan = engine.wait(async {
        match direction {
            Direction::Undo => client.plan_undo(target.clone(), if_changed).await,
            Direction::Redo => client.plan_redo(target.clone(), if_changed).await,
        }
    })?;
    let json = arguments.common.json;
    let mut output = Output::stdout();
    if !json {
        let terminal = Terminal::detect(arguments.common.color, arguments.common.theme);
        let title = undo_title(direction.title_verb(), &plan.changes);
        output.write(format!("{title}\n").as_bytes())?;
        let subject = match direction {
            Direction::Undo => DiffSubject::Undo { target: target.clone(), if_changed },
            Direction::Redo => DiffSubject::Redo { target: target.clone(), if_changed },
        };
        let diff = ChangeDiff::open(&engine, terminal, subject, Some(plan.hash))?;
        diff.draw(&mut output, |path| FileFacts::planned(&plan.preview, path))?;
        output.write(uncaptured_notes(&plan.uncaptured).as_bytes())?;
        output.flush()?;
    }
    let result = if let Some((path, problem)) = plan.preview.problems().next() {
        refused(path, problem, arguments.merge)
    } else if arguments.dry_run {
        UndoResult::new(ExitCode::SUCCESS, "planned", "Nothing was done: --dry-run.")
    } else {
        let details = engine.wait(async {
            match direction {
                Direction::Undo => client.undo(target, if_changed, Some(plan.hash)).await,
                Direction::Redo => client.redo(target, if_changed, Some(plan.hash)).await,
            }
        })?;
        carried_out(details, &plan, direction)
    };
    if json {
        let mut object =
            json!({ "outcome": result.outcome, "changes": plan.changes, "preview": plan.preview.object() });
        if !plan.uncaptured.is_empty() {
            object["uncaptured"] = json!(plan.uncaptured);
        }
        output.json(&object)?;
        output.finish()?;
    } else {
        output.finish()?;
        say(&result.text);
    }
    Ok(result.code)
}

struct UndoResult {
    code: ExitCode,
    /// Value of `outcome` in JSON.
    outcome: &'static str,
    text: String,
}

impl UndoResult {
    fn new(code: ExitCode, outcome: &'static str, text: impl Into<String>) -> Self {
        Self { code, outcome, text: text.into() }
    }
}

fn refused(path: &WsPath, problem: &Problem, is_merging: bool) -> UndoResult {
    let can_merge = !is_merging && matches!(problem, Problem::ChangedSince { .. });
    let hint =
        if can_merge { "\nHint: `--merge` keeps what was changed since, where the two do not overlap" } else { "" };
    let text = format!("Error: `{path}` cannot be put back: {problem}; nothing was written{hint}");
    UndoResult::new(exit_code(problem.kind()), "refused", text)
}

fn carried_out(details: ChangeDetails, plan: &UndoPlan, direction: Direction) -> UndoResult {
    match details.record.status {
        ChangeStatus::Applied if !plan.uncaptured.is_empty() => {
            let paths = count(plan.uncaptured.len() as u64, "path");
            let verb = if plan.uncaptured.len() == 1 { "was" } else { "were" };
            let text = format!(
                "Undone as far as it was captured; {paths} {verb} not, as noted above. Look there yourself. `sayso redo` makes it again."
            );
            UndoResult::new(exit_code(ErrorKind::Stale), "applied", text)
        }
        ChangeStatus::Applied => UndoResult::new(ExitCode::SUCCESS, "applied", direction.success_text()),
        ChangeStatus::Failed { reason } => {
            UndoResult::new(exit_code(ErrorKind::Unavailable), "failed", format!("Error: {reason}"))
        }
        _ => UndoResult::new(exit_code(ErrorKind::Stale), "stale", "Nothing was done."),
    }
}

/// Reads the changes to undo or redo.
fn target(arguments: &UndoArguments) -> Result<Target, CliError> {
    let number = arguments.target.as_deref().map(|text| text.parse::<u64>().map_err(|_| text));
    let not_a_number = |text: &str| CliError::invalid_input(format!("`{text}` is not the number of a change"));
    Ok(match (number, arguments.turn, &arguments.session) {
        (_, _, Some(session)) => Target::Session { session: session.clone() },
        (Some(Err(text)), true, None) => {
            return Err(
                not_a_number(text).hint("`sayso log` lists the changes; --turn takes the number of any of the turn's")
            );
        }
        (Some(Ok(change)), true, None) => Target::Turn { change: Some(change) },
        (None, true, None) => Target::Turn { change: None },
        (Some(Ok(change)), false, None) if !arguments.file.is_empty() => {
            let parse = |path: &String| {
                WsPath::parse(path).map_err(|error| {
                    CliError::invalid_input(error.to_string())
                        .hint("name files as `sayso show` does, from the root of the workspace")
                })
            };
            Target::Files { change, paths: arguments.file.iter().map(parse).collect::<Result<_, _>>()? }
        }
        (Some(Err(text)), false, None) if !arguments.file.is_empty() => {
            return Err(not_a_number(text).hint("--file takes the number of a change, as `sayso log` lists it"));
        }
        (Some(Ok(change)), false, None) => Target::Change { change },
        (Some(Err(call)), false, None) => Target::Call { call: call.to_owned() },
        (None, false, None) => Target::Last,
    })
}
