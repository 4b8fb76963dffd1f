//! `sayso snapshot`: what files were before tool calls.

use std::process::ExitCode;

use sayso_gate::{Decided, GateError, History, Kept, SnapshotRecord, ToolCall};
use sayso_review::{Fingerprint, Origin, Tier};
use serde_json::json;

use crate::agents;
use crate::cli::{SnapshotArguments, SnapshotCommand, TierChoice};
use crate::failure::{Failure, exit_code};
use crate::history::ago;
use crate::output::{Output, say};
use crate::propose::preview;
use crate::state::{STALE, State, now};
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
            let call = ToolCall { session: session.clone(), call: call.clone(), tool: tool.clone() };
            take(arguments, &state, tier, &call, &parsed)
        }
        Some(SnapshotCommand::Restore { which, dry_run }) => restore(arguments, &state, which, *dry_run),
    }
}

fn list(arguments: &SnapshotArguments, state: &State) -> Result<ExitCode, Failure> {
    let reader = state.reader()?;
    let records = match &reader {
        Some(reader) => History::new(reader).snapshots()?,
        None => Vec::new(),
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

fn take(
    arguments: &SnapshotArguments,
    state: &State,
    tier: Tier,
    call: &ToolCall,
    parsed: &serde_json::Value,
) -> Result<ExitCode, Failure> {
    let capture = state.engine()?.capture_call(tier, call, parsed, now())?;
    let mut output = Output::stdout();
    let mut objects = Vec::new();
    for (path, kept) in &capture.files {
        let (word, id, text) = match kept {
            Kept::Now(id) => ("now", Some(*id), format!("Kept as snapshot {id}")),
            Kept::Earlier(id) => ("earlier", Some(*id), format!("Kept already, as snapshot {id}")),
            Kept::Late(id) => {
                ("late", Some(*id), format!("Kept as snapshot {id}, though the tool may have changed it already"))
            }
            Kept::AfterTheOther => ("later", None, "Kept when the call before it has run".to_owned()),
        };
        objects.push(json!({ "path": path, "kept": word, "snapshot": id }));
        if !arguments.place.json {
            output.write(format!("{}: {text}\n", visible(path.as_str())).as_bytes())?;
        }
    }
    if arguments.place.json {
        output.json(&json!({ "files": objects, "not_captured": capture.uncaptured }))?;
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
    let mut engine = state.engine()?;
    let snapshots = match which.parse() {
        Ok(snapshot) => vec![snapshot],
        Err(_) => engine.history().snapshots_of(which)?.iter().map(|record| record.snapshot.snapshot).collect(),
    };
    if snapshots.is_empty() {
        return Err(GateError::NoSuchSnapshot(format!("of `{which}`")).into());
    }
    let terminal = Terminal::detect(arguments.place.color, arguments.place.theme);
    let mut output = Output::stdout();
    let mut code = ExitCode::SUCCESS;
    let mut outcomes = Vec::new();
    for snapshot in snapshots {
        let plan = engine.plan_restore(snapshot)?;
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
            match engine.perform(plan, Origin::default(), now())? {
                Decided::Applied { .. } => ("applied", "Put back. `sayso undo` takes that back.".to_owned()),
                Decided::Failed { error, .. } => {
                    code = exit_code(error.kind());
                    ("failed", format!("Error: {error}"))
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
