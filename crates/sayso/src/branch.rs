//! `sayso branch`: creates or switches to a git branch for a task. Uncommitted work stays as it is.

use std::process::ExitCode;

use sayso_api::proto::BranchTask;
use serde_json::Value;

use crate::cli::BranchArguments;
use crate::engine::EngineConnection;
use crate::error::CliError;
use crate::output::{Output, say};
use crate::workspace_location::WorkspaceLocation;
use sayso_present::escape::escape_unprintable;

pub(crate) fn run(arguments: &BranchArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    let engine = EngineConnection::read_only(&location)?;
    if arguments.task.is_empty() { show(&engine, arguments) } else { check_out(&location, &engine, arguments) }
}

fn object(text: &str) -> Result<Value, CliError> {
    serde_json::from_str(text).map_err(|error| {
        CliError::new(sayso_review::ErrorKind::Internal, "cannot read the engine's response").caused_by(&error)
    })
}

/// Escapes a text of several lines.
fn lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", escape_unprintable(line))).collect()
}

fn show(engine: &EngineConnection, arguments: &BranchArguments) -> Result<ExitCode, CliError> {
    let found = engine.block(engine.client().get_branch(arguments.prefix.as_deref()))?;
    let mut output = Output::stdout();
    if arguments.common.json {
        output.json(&object(&found.details_json)?)?;
    } else {
        for line in &found.lines {
            output.write(format!("{:<12} {}\n", line.name, escape_unprintable(&line.text)).as_bytes())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn check_out(
    location: &WorkspaceLocation,
    engine: &EngineConnection,
    arguments: &BranchArguments,
) -> Result<ExitCode, CliError> {
    let task = BranchTask {
        task: arguments.task.join(" "),
        prefix: arguments.prefix.clone(),
        initialise: arguments.init,
        ..Default::default()
    };
    let client = engine.client();
    let mut output = Output::stdout();
    if arguments.dry_run {
        let plan = engine.block(client.plan_branch(task))?;
        location.announce();
        say_notes(&plan.notes);
        if arguments.common.json {
            output.json(&object(&plan.details_json)?)?;
        } else {
            output.write(format!("{}Nothing was done: --dry-run.\n", lines(&plan.text)).as_bytes())?;
        }
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let done = engine.block(client.check_out_branch(task))?;
    location.announce();
    if arguments.common.json {
        output.json(&object(&done.details_json)?)?;
    } else {
        output.write(lines(&done.text).as_bytes())?;
    }
    output.finish()?;
    say_notes(&done.notes);
    Ok(ExitCode::SUCCESS)
}

fn say_notes(notes: &[String]) {
    for note in notes {
        say(&format!("note: {note}"));
    }
}
