//! `sayso branch`: a git branch for a task, with uncommitted work left as it is.

use std::process::ExitCode;

use sayso_api::proto::BranchTask;
use serde_json::Value;

use crate::cli::BranchArguments;
use crate::engine::Connected;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::state::State;
use crate::visible::visible;

pub(crate) fn run(arguments: &BranchArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    let connected = Connected::asking(&state)?;
    if arguments.task.is_empty() { show(&connected, arguments) } else { take_up(&state, &connected, arguments) }
}

fn object(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::of(sayso_review::ErrorKind::Internal, "the engine's answer was not understood").why(&error)
    })
}

/// Text of several lines, each made safe for a terminal.
fn lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", visible(line))).collect()
}

fn show(connected: &Connected, arguments: &BranchArguments) -> Result<ExitCode, Failure> {
    let found = connected.block(connected.client().get_branch(arguments.prefix.as_deref()))?;
    let mut output = Output::stdout();
    if arguments.place.json {
        output.json(&object(&found.details_json)?)?;
    } else {
        for line in &found.lines {
            output.write(format!("{:<12} {}\n", line.name, visible(&line.text)).as_bytes())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn take_up(state: &State, connected: &Connected, arguments: &BranchArguments) -> Result<ExitCode, Failure> {
    let task = BranchTask {
        task: arguments.task.join(" "),
        prefix: arguments.prefix.clone(),
        initialise: arguments.init,
        ..Default::default()
    };
    let client = connected.client();
    let mut output = Output::stdout();
    if arguments.dry_run {
        let plan = connected.block(client.plan_branch(task))?;
        state.tell_where();
        tell(&plan.notes);
        if arguments.place.json {
            output.json(&object(&plan.details_json)?)?;
        } else {
            output.write(format!("{}Nothing was done: --dry-run.\n", lines(&plan.text)).as_bytes())?;
        }
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let done = connected.block(client.take_up_branch(task))?;
    state.tell_where();
    if arguments.place.json {
        output.json(&object(&done.details_json)?)?;
    } else {
        output.write(lines(&done.text).as_bytes())?;
    }
    output.finish()?;
    tell(&done.notes);
    Ok(ExitCode::SUCCESS)
}

fn tell(notes: &[String]) {
    for note in notes {
        say(&format!("note: {note}"));
    }
}
