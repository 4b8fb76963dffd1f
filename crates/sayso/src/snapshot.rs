//! `sayso snapshot`: lists, takes and restores snapshots of files.

use std::process::ExitCode;

use sayso_api::client::{ToolCall, UndoPlan};
use sayso_api::diff::DiffSubject;
use sayso_api::proto::capture_response::captured_file::State as CaptureState;
use sayso_present::escape::escape_unprintable;
use sayso_present::words::format_age;
use sayso_review::{ChangeStatus, ErrorKind, Fingerprint, SnapshotRecord, Tier};
use serde_json::json;

use crate::agents;
use crate::change_diff::{ChangeDiff, FileFacts};
use crate::cli::{SnapshotArguments, SnapshotCommand, TierChoice};
use crate::engine::EngineConnection;
use crate::error::{CliError, exit_code, no_such_snapshot};
use crate::output::{Output, say};
use crate::terminal::Terminal;
use crate::workspace_location::{WorkspaceLocation, now};

pub(crate) fn run(arguments: &SnapshotArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    match &arguments.command {
        None | Some(SnapshotCommand::List) => list(arguments, &location),
        Some(SnapshotCommand::Take { tool, arguments: text, tier, call, session }) => {
            let parsed = serde_json::from_str(text).map_err(|error| {
                CliError::invalid_input("cannot read the tool's arguments")
                    .caused_by(&error)
                    .hint("give one JSON object, such as {\"file_path\":\"a.txt\",\"content\":\"…\"}")
            })?;
            let tier = match tier {
                TierChoice::Answer => Tier::Answer,
                TierChoice::Hook => Tier::Hook,
                TierChoice::Start => Tier::Start,
            };
            let (session, call, tool) = (session.clone(), call.clone(), tool.clone());
            take(arguments, &location, ToolCall { tier, session, call, tool, arguments: parsed })
        }
        Some(SnapshotCommand::Restore { id, dry_run }) => restore(arguments, &location, id, *dry_run),
    }
}

fn list(arguments: &SnapshotArguments, location: &WorkspaceLocation) -> Result<ExitCode, CliError> {
    let records = if location.has_history() {
        let engine = EngineConnection::open(location)?;
        engine.block(engine.client().list_snapshots(None))?
    } else {
        Vec::new()
    };
    let kept: Vec<&SnapshotRecord> = records.iter().filter(|record| record.freed.is_none()).collect();
    let mut output = Output::stdout();
    if arguments.common.json {
        output.json(&json!(kept))?;
    } else if kept.is_empty() {
        say("No snapshots are kept. They are taken before tool calls change files.");
    } else {
        for record in kept {
            let call = match &record.correlated_call {
                Some(call) => format!("before call {}", escape_unprintable(call)),
                None => "its tool has not started".to_owned(),
            };
            let absent = if record.snapshot.state == Fingerprint::Absent { " (no file)" } else { "" };
            let age = format_age(now() - record.time);
            let path = escape_unprintable(record.snapshot.path.as_str());
            let line = format!("{:>4}  {age:>8}  {path}{absent}  {call}\n", record.snapshot.snapshot);
            output.write(line.as_bytes())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn take(arguments: &SnapshotArguments, location: &WorkspaceLocation, call: ToolCall) -> Result<ExitCode, CliError> {
    let engine = EngineConnection::open(location)?;
    let response = engine.block(engine.client().capture(call))?;
    let json = arguments.common.json;
    let mut output = Output::stdout();
    let mut objects = Vec::new();
    for file in &response.files {
        let number = file.snapshot.map(|id| id.to_string()).unwrap_or_default();
        let (word, text) = match file.state.as_known().unwrap_or_default() {
            CaptureState::Captured | CaptureState::Unspecified => ("now", format!("Kept as snapshot {number}")),
            CaptureState::CapturedEarlier => ("earlier", format!("Kept already, as snapshot {number}")),
            CaptureState::CapturedLate => {
                ("late", format!("Kept as snapshot {number}, though the tool may have changed it already"))
            }
            CaptureState::Deferred => ("later", "Kept when the call before it has run".to_owned()),
        };
        objects.push(json!({ "path": file.path, "captured": word, "snapshot": file.snapshot }));
        if !json {
            output.write(format!("{}: {text}\n", escape_unprintable(&file.path)).as_bytes())?;
        }
    }
    if json {
        let object = |entry: &sayso_api::proto::Uncaptured| json!({ "path": entry.path, "reason": entry.reason });
        let uncaptured: Vec<_> = response.uncaptured.iter().map(object).collect();
        output.json(&json!({ "files": objects, "uncaptured": uncaptured }))?;
    }
    output.finish()?;
    if !json {
        if response.files.is_empty() && response.uncaptured.is_empty() {
            say("Nothing was kept: these arguments do not look like a change of a file.");
        }
        for entry in &response.uncaptured {
            say(&format!("note: not captured: {}: {}", escape_unprintable(&entry.path), entry.reason));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn restore(
    arguments: &SnapshotArguments,
    location: &WorkspaceLocation,
    id: &str,
    dry_run: bool,
) -> Result<ExitCode, CliError> {
    agents::refuse(location)?;
    if !location.has_history() {
        return Err(no_such_snapshot(id));
    }
    let engine = EngineConnection::open(location)?;
    let snapshots = if let Ok(snapshot) = id.parse() {
        vec![snapshot]
    } else {
        let records = engine.block(engine.client().list_snapshots(Some(id)))?;
        records.iter().map(|record| record.snapshot.snapshot).collect()
    };
    if snapshots.is_empty() {
        return Err(no_such_snapshot(&format!("of `{id}`")));
    }
    let terminal = Terminal::detect(arguments.common.color, arguments.common.theme);
    let mut output = Output::stdout();
    let mut code = ExitCode::SUCCESS;
    let mut objects = Vec::new();
    for snapshot in snapshots {
        let plan = engine.block(engine.client().plan_restore(snapshot))?;
        if !arguments.common.json {
            let subject = DiffSubject::Restore(snapshot);
            let diff = ChangeDiff::open(&engine, terminal, subject, Some(plan.hash))?;
            diff.draw(&mut output, |path| FileFacts::planned(&plan.preview, path))?;
            output.flush()?;
        }
        let (restored, outcome, text) = restore_one(&engine, snapshot, &plan, dry_run)?;
        if restored != ExitCode::SUCCESS {
            code = restored;
        }
        objects.push(json!({ "snapshot": snapshot, "outcome": outcome, "preview": plan.preview.object() }));
        if !arguments.common.json {
            say(&text);
        }
    }
    if arguments.common.json {
        output.json(&json!(objects))?;
    }
    output.finish()?;
    Ok(code)
}

/// Carries out a plan. Returns the exit code, the `outcome` for JSON, and a sentence.
fn restore_one(
    engine: &EngineConnection,
    snapshot: u64,
    plan: &UndoPlan,
    dry_run: bool,
) -> Result<(ExitCode, &'static str, String), CliError> {
    if let Some((path, problem)) = plan.preview.problems().next() {
        let text = format!("Error: `{path}` cannot be put back: {problem}; nothing was written");
        return Ok((exit_code(problem.kind()), "refused", text));
    }
    if plan.preview.is_unchanged() {
        return Ok((ExitCode::SUCCESS, "unchanged", "It is as it was; nothing was written.".to_owned()));
    }
    if dry_run {
        return Ok((ExitCode::SUCCESS, "planned", "Nothing was done: --dry-run.".to_owned()));
    }
    Ok(match engine.block(engine.client().restore(snapshot, Some(plan.hash)))?.record.status {
        ChangeStatus::Applied => (ExitCode::SUCCESS, "applied", "Put back. `sayso undo` takes that back.".to_owned()),
        ChangeStatus::Failed { reason } => (exit_code(ErrorKind::Unavailable), "failed", format!("Error: {reason}")),
        _ => (exit_code(ErrorKind::Stale), "stale", "Nothing was done.".to_owned()),
    })
}
