//! `sayso log`, `sayso show` and `sayso status`.

use std::process::ExitCode;

use sayso_api::client::{PreviewOf, Status, StatusDetail};
use sayso_api::diff::DiffSubject;
use sayso_present::change::{
    change_summary, content_gone_text, origin_label, render_agent_message, render_change_heading, status_style,
    status_text,
};
use sayso_present::escape::escape_unprintable;
use sayso_present::preview::render_preview;
use sayso_present::span::{Style, StyledText};
use sayso_present::words::{count, format_age, format_size};
use sayso_review::{ChangeRecord, Performer};
use serde_json::json;

use crate::ansi::highlighting;
use crate::change_diff::{ChangeDiff, FileFacts};
use crate::cli::{CommonOptions, LogArguments, ShowArguments, StatusArguments};
use crate::engine::EngineConnection;
use crate::error::{CliError, no_such_change};
use crate::output::{Output, say};
use crate::records::{Records, pending_in_nested};
use crate::settings::{configuration_problem, report_configuration_problems};
use crate::terminal::Terminal;
use crate::workspace_location::{WorkspaceLocation, now};

/// Pending changes that `sayso status` names.
const MAX_PENDING: u32 = 5;
/// Sessions that `sayso status` checks.
const MAX_SESSIONS: u32 = 20;

fn terminal(common: &CommonOptions) -> Terminal {
    Terminal::detect(common.color, common.theme)
}

pub(crate) fn log(arguments: &LogArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    report_configuration_problems(&location);
    let mut output = Output::stdout();
    let (records, has_more) = list_changes(&location, arguments)?;
    let root = location.root.display();
    if arguments.common.json {
        output.json(&json!(records))?;
    } else if arguments.number == 0 {
        // An empty list was requested.
    } else if let (true, Some(session)) = (records.is_empty(), &arguments.session) {
        say(&format!(
            "There are no changes of session `{}` in {root}. `sayso log` lists those of all.",
            escape_unprintable(session)
        ));
    } else if records.is_empty() {
        say(&format!("No changes yet in {root}. `sayso propose FILE` shows one and asks."));
    } else {
        output.styled(&log_lines(&records), terminal(&arguments.common))?;
        if has_more {
            output.flush()?;
            say(&format!("There are older ones: `sayso log -n {}` shows more.", arguments.number.saturating_mul(10)));
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// One aligned line for each change.
fn log_lines(records: &[ChangeRecord]) -> StyledText {
    let status_width = records.iter().map(|record| status_text(record).len()).max().unwrap_or(0);
    let origin_width = records.iter().map(|record| origin_label(record).chars().count()).max().unwrap_or(0);
    let digits = records.first().map_or(1, |record| record.change.to_string().len());
    let mut text = StyledText::new();
    for record in records {
        text.push(Style::Title, format!("{:>digits$}", record.change));
        text.push(status_style(&record.status), format!("  {:<status_width$}", status_text(record)));
        text.push(Style::Dim, format!("  {:>8}  ", format_age(now() - record.time)));
        if origin_width > 0 {
            text.push(Style::Dim, format!("{:<origin_width$}  ", origin_label(record)));
        }
        text.plain(format!("{}\n", change_summary(record)));
    }
    text
}

/// Lists the requested changes. The second value is `true` if there are older changes.
fn list_changes(location: &WorkspaceLocation, arguments: &LogArguments) -> Result<(Vec<ChangeRecord>, bool), CliError> {
    let mut changes: Vec<ChangeRecord> = Vec::new();
    if !location.has_history() {
        return Ok((changes, false));
    }
    let records = Records::open(location)?;
    let session = match &arguments.session {
        None => None,
        Some(given) => match records.session(given)? {
            None => return Ok((changes, false)),
            session => session,
        },
    };
    // One more than requested tells if there are older changes.
    let wanted = arguments.number.saturating_add(1);
    while changes.len() < wanted {
        let limit = u32::try_from(wanted - changes.len()).unwrap_or(u32::MAX);
        let before = changes.last().map(|record| record.change);
        let page = records.changes(limit, before, session.as_deref())?;
        if page.is_empty() {
            break;
        }
        changes.extend(page);
    }
    let has_more = changes.len() > arguments.number;
    changes.truncate(arguments.number);
    Ok((changes, has_more))
}

pub(crate) fn show(arguments: &ShowArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    report_configuration_problems(&location);
    if !location.has_history() {
        return Err(no_such_change(arguments.change));
    }
    let records = Records::open(&location)?;
    let mut output = Output::stdout();
    if arguments.common.json {
        // The record has the applied effect already.
        let (record, preview) = records.change_with_preview(arguments.change, PreviewOf::Proposed)?;
        let mut value = json!(record);
        value["preview"] = json!(preview.map(|preview| preview.object()));
        output.json(&value)?;
    } else {
        draw_change(&records, arguments, &mut output)?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Draws all of a change: its facts, what it did to files, and the message to the agent.
fn draw_change(records: &Records, arguments: &ShowArguments, output: &mut Output) -> Result<(), CliError> {
    let terminal = terminal(&arguments.common);
    let record = match records {
        Records::Engine(engine) => {
            let record = records.change(arguments.change)?;
            output.styled(&render_change_heading(&record, now()), terminal)?;
            let diff = ChangeDiff::open(engine, terminal, DiffSubject::AppliedChange(record.change), None)?;
            // Notes about the effects of a command or an agent come with the effects, not with the proposal.
            let is_observed =
                record.applied.is_some() && (record.performer == Performer::Agent || !record.subject.is_files());
            let observed = if is_observed && !diff.is_gone() {
                records.change_with_preview(arguments.change, PreviewOf::Applied)?.1
            } else {
                None
            };
            if diff.is_gone() {
                output.write(content_gone_text(&record).as_bytes())?;
            } else {
                diff.draw(output, |path| match &observed {
                    Some(observed) => FileFacts::planned(observed, path),
                    None => FileFacts::recorded(&record.files, path),
                })?;
            }
            record
        }
        Records::File(_) => {
            let (record, preview) = records.change_with_preview(arguments.change, PreviewOf::Applied)?;
            output.styled(&render_change_heading(&record, now()), terminal)?;
            match &preview {
                Some(preview) => output.styled(&render_preview(preview, highlighting(terminal)), terminal)?,
                None => output.write(content_gone_text(&record).as_bytes())?,
            }
            record
        }
    };
    output.styled(&render_agent_message(&record), terminal)
}

pub(crate) fn status(arguments: &StatusArguments) -> Result<ExitCode, CliError> {
    let location = WorkspaceLocation::find(&arguments.common)?;
    if !arguments.short {
        report_configuration_problems(&location);
    }
    let engine = if location.has_history() { Some(EngineConnection::open(&location)?) } else { None };
    let detail = if arguments.short && !arguments.common.json {
        StatusDetail::Counts
    } else {
        StatusDetail::Full { max_pending: MAX_PENDING }
    };
    let status = match &engine {
        Some(engine) => Some(engine.block(engine.client().status(detail))?),
        None => None,
    };
    let mut output = Output::stdout();
    if arguments.common.json {
        output.json(&status_object(&location, status.as_ref()))?;
    } else if arguments.short {
        let line = short_status(&location, status.as_ref());
        if !line.is_empty() {
            output.write(format!("{line}\n").as_bytes())?;
        }
    } else {
        let path = |path: &std::path::Path| escape_unprintable(&path.to_string_lossy()).into_owned();
        output.write(format!("Workspace  {}\n", path(&location.root)).as_bytes())?;
        match engine.as_ref().zip(status) {
            Some((engine, status)) => output.write(status_lines(engine, &status)?.as_bytes())?,
            None => output.write(b"No changes yet. `sayso propose FILE` shows one and asks.\n")?,
        }
        for (nested, pending) in pending_in_nested(&location) {
            let nested = path(&nested.root);
            output.write(format!("Below      {pending} in {nested}: `sayso review --everywhere`\n").as_bytes())?;
        }
        if engine.is_some() {
            output.write(format!("Journal    {}\n", path(&location.folder)).as_bytes())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn status_object(location: &WorkspaceLocation, status: Option<&Status>) -> serde_json::Value {
    json!({
        "workspace": location.root.to_string_lossy(),
        "journal": location.folder.to_string_lossy(),
        "changes": status.map_or(0, |status| status.changes),
        "pending": status.map_or(0, |status| status.pending),
        "turns_to_review": status.map_or(0, |status| status.turns_to_review.len()),
        "held_requests": status.map_or(0, |status| status.held_requests),
        "configuration_problem": configuration_problem(location),
        "contents": status.map_or(0, |status| status.contents),
        "stored_bytes": status.map_or(0, |status| status.stored_bytes),
    })
}

/// The counts for a shell prompt. Empty without pending decisions.
fn short_status(location: &WorkspaceLocation, status: Option<&Status>) -> String {
    let mut parts = Vec::new();
    if let Some(status) = status {
        if status.pending > 0 {
            parts.push(format!("{} pending", status.pending));
        }
        if !status.turns_to_review.is_empty() {
            parts.push(format!("{} to review", status.turns_to_review.len()));
        }
        if status.held_requests > 0 {
            parts.push(count(status.held_requests, "request"));
        }
    }
    if configuration_problem(location).is_some() {
        parts.push("configuration not understood".to_owned());
    }
    parts.join(", ")
}

/// The state of the workspace, line by line.
fn status_lines(engine: &EngineConnection, status: &Status) -> Result<String, CliError> {
    let pending = if status.pending == 0 { String::new() } else { format!(", {} waiting", status.pending) };
    let mut text = format!("Changes    {}{pending}\n", status.changes);
    let turns = status.turns_to_review.len();
    if turns > 0 {
        let turns = count(turns as u64, "turn");
        text.push_str(&format!("Review     {turns} in which changes happened at once: `sayso review`\n"));
    }
    match status.held_requests {
        0 => {}
        1 => text.push_str("Requests   1 waits: `sayso request list --waiting`\n"),
        held => text.push_str(&format!("Requests   {held} wait: `sayso request list --waiting`\n")),
    }
    for record in &status.pending_changes {
        text.push_str(&format!("Waits      {} {}\n", record.change, change_summary(record)));
    }
    let sessions = engine.block(engine.client().list_sessions(MAX_SESSIONS))?;
    for session in sessions.iter().filter(|session| session.active) {
        let agent = escape_unprintable(session.agent.as_deref().unwrap_or("an agent"));
        text.push_str(&format!("Session    {} of {agent}\n", escape_unprintable(&session.session)));
    }
    if let Some(last) = &status.last_change {
        let age = format_age(now() - last.time);
        text.push_str(&format!("Last       {} {} {age} ago: {}\n", last.change, last.status, change_summary(last)));
    }
    let size = format_size(status.stored_bytes);
    text.push_str(&format!("Kept       {} contents in {size}\n", status.contents));
    Ok(text)
}
