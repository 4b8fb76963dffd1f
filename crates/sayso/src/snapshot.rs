//! `sayso snapshot`: what files were before tool calls.

use std::process::ExitCode;

use sayso_api::client::ToolCall;
use sayso_api::proto::capture_response::kept::When;
use sayso_gate::GateError;
use sayso_review::{ChangeStatus, Fingerprint, SnapshotRecord, Tier};
use serde_json::json;

use crate::agents;
use crate::cli::{SnapshotArguments, SnapshotCommand, TierChoice};
use crate::engine::Connected;
use crate::failure::{Failure, exit_code};
use crate::history::ago;
use crate::output::{Output, say};
use crate::propose::preview;
use crate::state::{FAILED, STALE, State, now};
use crate::terminal::Terminal;
use crate::visible::visible;

pub(crate) fn run(arguments: &SnapshotArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    match &arguments.command {
        None | Some(SnapshotCommand::List) => list(arguments, &state),
        Some(SnapshotCommand::Take { tool, arguments: text, tier, call, session }) => {
            let parsed = serde_json::from_str(text).map_err(|error| {
                Failure::bad_input("the tool's arguments are not understood")
                    .why(&error)
                    .hint("give one JSON object, such as {\"file_path\":\"a.txt\",\"content\":\"…\"}")
            })?;
            let tier = match tier {
                TierChoice::Answer => Tier::Answer,
                TierChoice::Hook => Tier::Hook,
                TierChoice::Start => Tier::Start,
            };
            let (session, call, tool) = (session.clone(), call.clone(), tool.clone());
            take(arguments, &state, ToolCall { tier, session, call, tool, arguments: parsed })
        }
        Some(SnapshotCommand::Restore { which, dry_run }) => restore(arguments, &state, which, *dry_run),
    }
}

fn list(arguments: &SnapshotArguments, state: &State) -> Result<ExitCode, Failure> {
    let records = if state.has_history() {
        let connected = Connected::to(state)?;
        connected.block(connected.client().list_snapshots(None))?
    } else {
        Vec::new()
    };
    let kept: Vec<&SnapshotRecord> = records.iter().filter(|record| record.freed.is_none()).collect();
    let mut output = Output::stdout();
    if arguments.place.json {
        output.json(&json!(kept))?;
    } else if kept.is_empty() {
        say("No snapshots are kept. They are taken before tool calls change files.");
    } else {
        for record in kept {
            let of = match &record.of_call {
                Some(call) => format!("before call {}", visible(call)),
                None => "its tool has not started".to_owned(),
            };
            let what = if record.snapshot.state == Fingerprint::Absent { " (no file)" } else { "" };
            let age = ago(now() - record.time);
            let path = visible(record.snapshot.path.as_str());
            let line = format!("{:>4}  {age:>8}  {path}{what}  {of}\n", record.snapshot.snapshot);
            output.write(line.as_bytes())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn take(arguments: &SnapshotArguments, state: &State, call: ToolCall) -> Result<ExitCode, Failure> {
    let connected = Connected::to(state)?;
    let capture = connected.block(connected.client().capture(call))?;
    let mut output = Output::stdout();
    let mut objects = Vec::new();
    for kept in &capture.files {
        let (path, id) = (&kept.path, kept.snapshot);
        let number = id.map(|id| id.to_string()).unwrap_or_default();
        let (word, text) = match kept.when.as_known().unwrap_or_default() {
            When::WHEN_NOW | When::WHEN_UNSPECIFIED => ("now", format!("Kept as snapshot {number}")),
            When::WHEN_EARLIER => ("earlier", format!("Kept already, as snapshot {number}")),
            When::WHEN_LATE => {
                ("late", format!("Kept as snapshot {number}, though the tool may have changed it already"))
            }
            When::WHEN_AFTER_THE_OTHER => ("later", "Kept when the call before it has run".to_owned()),
        };
        objects.push(json!({ "path": path, "kept": word, "snapshot": id }));
        if !arguments.place.json {
            output.write(format!("{}: {text}\n", visible(path)).as_bytes())?;
        }
    }
    if arguments.place.json {
        let not_captured: Vec<_> =
            capture.uncaptured.iter().map(|one| json!({ "path": one.path, "reason": one.reason })).collect();
        output.json(&json!({ "files": objects, "not_captured": not_captured }))?;
    }
    output.finish()?;
    if capture.files.is_empty() && capture.uncaptured.is_empty() && !arguments.place.json {
        say("Nothing was kept: these arguments do not look like a change of a file.");
    }
    for one in capture.uncaptured.iter().filter(|_| !arguments.place.json) {
        say(&format!("note: not captured: {}: {}", visible(&one.path), one.reason));
    }
    Ok(ExitCode::SUCCESS)
}

fn restore(arguments: &SnapshotArguments, state: &State, which: &str, dry_run: bool) -> Result<ExitCode, Failure> {
    agents::refuse(state)?;
    if !state.has_history() {
        return Err(GateError::NoSuchSnapshot(which.to_owned()).into());
    }
    let connected = Connected::to(state)?;
    let client = connected.client();
    let snapshots = if let Ok(snapshot) = which.parse() {
        vec![snapshot]
    } else {
        let records = connected.block(client.list_snapshots(Some(which)))?;
        records.iter().map(|record| record.snapshot.snapshot).collect()
    };
    if snapshots.is_empty() {
        return Err(GateError::NoSuchSnapshot(format!("of `{which}`")).into());
    }
    let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
    let mut output = Output::stdout();
    let mut code = ExitCode::SUCCESS;
    let mut outcomes = Vec::new();
    for snapshot in snapshots {
        let plan = connected.block(client.plan_restore(snapshot))?;
        let object = plan.preview.object();
        if !arguments.place.json {
            output.write(preview::text(&plan.preview, terminal).as_bytes())?;
            output.flush()?;
        }
        let problem = plan.preview.problems().next().map(|(path, problem)| (path.clone(), problem.clone()));
        let (outcome, text) = if let Some((path, problem)) = problem {
            code = exit_code(problem.kind());
            ("refused", format!("Error: `{path}` cannot be put back: {problem}; nothing was written"))
        } else if plan.preview.is_unchanged() {
            ("unchanged", "It is as it was; nothing was written.".to_owned())
        } else if dry_run {
            ("planned", "Nothing was done: --dry-run.".to_owned())
        } else {
            match connected.block(client.restore(snapshot, Some(plan.hash)))?.record.status {
                ChangeStatus::Applied => ("applied", "Put back. `sayso undo` takes that back.".to_owned()),
                ChangeStatus::Failed { reason } => {
                    code = exit_code(FAILED);
                    ("failed", format!("Error: {reason}"))
                }
                _ => {
                    code = exit_code(STALE);
                    ("stale", "Nothing was done.".to_owned())
                }
            }
        };
        outcomes.push(json!({ "snapshot": snapshot, "outcome": outcome, "preview": object }));
        if !arguments.place.json {
            say(&text);
        }
    }
    if arguments.place.json {
        output.json(&json!(outcomes))?;
    }
    output.finish()?;
    Ok(code)
}
