//! `sayso log`, `sayso show`, `sayso status`: what happened so far.

use std::process::ExitCode;

use sayso_api::client::{self, Shown, Status};
use sayso_gate::{GateError, History};
use sayso_journal::Reader;
use sayso_review::{Cause, ChangeRecord, ChangeStatus, Extent, FileRecord, Operation, Subject};
use serde_json::json;

use crate::cli::{LogArguments, Place, ShowArguments, StatusArguments};
use crate::diff::style::Styles;
use crate::engine::Connected;
use crate::exec;
use crate::failure::Failure;
use crate::output::{Output, say};
use crate::propose::preview;
use crate::records::Records;
use crate::session;
use crate::settings::{configuration_problem, tell_of_bad_configuration};
use crate::state::{State, now};
use crate::terminal::Terminal;
use crate::visible::visible;

/// Changes that `sayso status` names; `sayso review` shows all.
const MOST_WAITING: u32 = 5;
/// Sessions that `sayso status` looks at.
const MOST_SESSIONS: u32 = 20;

fn terminal(place: &Place) -> Terminal {
    Terminal::detect(place.color, place.theme)
}

pub(crate) fn log(arguments: &LogArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    tell_of_bad_configuration(&state);
    let mut output = Output::stdout();
    let (records, more) = changes(&state, arguments)?;
    let root = state.root.display();
    if arguments.place.json {
        output.json(&json!(records))?;
    } else if arguments.number == 0 {
        // None were asked for.
    } else if let (true, Some(session)) = (records.is_empty(), &arguments.session) {
        say(&format!(
            "There are no changes of session `{}` in {root}. `sayso log` lists those of all.",
            visible(session)
        ));
    } else if records.is_empty() {
        say(&format!("No changes yet in {root}. `sayso propose FILE` shows one and asks."));
    } else {
        let styles = Styles::of(terminal(&arguments.place));
        let width = records.iter().map(|record| status_text(record).len()).max().unwrap_or(0);
        let who_width = records.iter().map(|record| who(record).chars().count()).max().unwrap_or(0);
        let digits = records.first().map_or(1, |record| record.change.to_string().len());
        for record in &records {
            let mut line = String::new();
            styles.paint(&mut line, styles.title, &format!("{:>digits$}", record.change));
            let status = format!("  {:<width$}", status_text(record));
            styles.paint(&mut line, status_style(&styles, &record.status), &status);
            styles.paint(&mut line, styles.number, &format!("  {:>8}  ", ago(now() - record.time)));
            if who_width > 0 {
                styles.paint(&mut line, styles.number, &format!("{:<who_width$}  ", who(record)));
            }
            line.push_str(&summary(record));
            line.push('\n');
            output.write(line.as_bytes())?;
        }
        if more == More::There {
            output.flush()?;
            say(&format!("There are older ones: `sayso log -n {}` shows more.", arguments.number.saturating_mul(10)));
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Whether there are older changes than those that were asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum More {
    There,
    Not,
}

/// The changes that are asked for, in as many calls as it takes.
fn changes(state: &State, arguments: &LogArguments) -> Result<(Vec<ChangeRecord>, More), Failure> {
    let mut records: Vec<ChangeRecord> = Vec::new();
    if !state.has_history() {
        return Ok((records, More::Not));
    }
    let recorded = Records::open(state)?;
    let session = match &arguments.session {
        None => None,
        Some(given) => match recorded.session(given)? {
            None => return Ok((records, More::Not)),
            meant => meant,
        },
    };
    let session = session.as_deref();
    // One more than asked for tells whether there are more.
    let wanted = arguments.number.saturating_add(1);
    while records.len() < wanted {
        let most = u32::try_from(wanted - records.len()).unwrap_or(u32::MAX);
        let before = records.last().map(|record| record.change);
        let more = recorded.changes(most, before, session)?;
        if more.is_empty() {
            break;
        }
        records.extend(more);
    }
    let more = if records.len() > arguments.number { More::There } else { More::Not };
    records.truncate(arguments.number);
    Ok((records, more))
}

/// Whose change it is: the agent, and the beginning of the session's id.
fn who(record: &ChangeRecord) -> String {
    let agent = record.origin.agent.as_deref().map(|agent| visible(agent).into_owned());
    let session = record.origin.session.as_deref().map(session::short);
    [agent, session].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn status_style(styles: &Styles, status: &ChangeStatus) -> anstyle::Style {
    match status {
        ChangeStatus::Applied => styles.added.marker,
        ChangeStatus::Pending | ChangeStatus::Interrupted | ChangeStatus::Permitted => styles.note,
        ChangeStatus::Undone { .. } | ChangeStatus::Cancelled => styles.number,
        ChangeStatus::Denied | ChangeStatus::Stale | ChangeStatus::Failed { .. } => styles.removed.marker,
    }
}

fn status_text(record: &ChangeRecord) -> String {
    if !record.subject.is_files() && record.status == ChangeStatus::Applied {
        return "ran".to_owned();
    }
    let part = if record.in_part && record.status == ChangeStatus::Applied { " in part" } else { "" };
    format!("{}{part}", record.status)
}

/// What a change was about, in one line.
pub(crate) fn summary(record: &ChangeRecord) -> String {
    const MOST: usize = 3;
    let cause = match &record.cause {
        Cause::Proposal => String::new(),
        Cause::Undo { of, .. } => format!("undo of {}: ", numbers(of)),
        Cause::Redo { of, .. } => format!("redo of {}: ", numbers(of)),
        Cause::Rebase { of } => format!("merge of {of}: "),
        Cause::Review { of, .. } => format!("review of {}: ", numbers(of)),
        Cause::Restore { snapshot } => format!("snapshot {snapshot} put back: "),
    };
    let action = match &record.subject {
        Subject::Files => None,
        Subject::Command { .. } => {
            let Subject::Command { command, directory, .. } = record.approved() else { return cause };
            let place =
                if directory.is_root() { String::new() } else { format!(" in {}/", visible(directory.as_str())) };
            let code = record.code.map(|code| format!(" ended with {code}")).unwrap_or_default();
            Some(format!("`{}`{place}{code}", visible(command.lines().next().unwrap_or_default())))
        }
        Subject::Tool { name, .. } => Some(format!("call of {}", visible(name))),
    };
    if let Some(action) = action {
        let steps = record.applied.as_ref().map_or(&[][..], |applied| &applied.steps);
        let mut files: Vec<String> = steps.iter().take(MOST).map(|step| visible(step.path.as_str()).into()).collect();
        if steps.len() > MOST {
            files.push(format!("and {} more", steps.len() - MOST));
        }
        let changed = if files.is_empty() { String::new() } else { format!(", changed {}", files.join(", ")) };
        return format!("{cause}{action}{changed}");
    }
    let happened: Vec<&FileRecord> =
        record.files.iter().filter(|file| record.extent(file) != Extent::Nothing).collect();
    let mut files: Vec<String> = happened.iter().take(MOST).map(|file| file_summary(record, file)).collect();
    if happened.len() > MOST {
        files.push(format!("and {} more", happened.len() - MOST));
    }
    format!("{cause}{}", files.join(", "))
}

fn numbers(changes: &[u64]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn file_summary(record: &ChangeRecord, file: &FileRecord) -> String {
    let path = visible(file.path.as_str()).into_owned();
    let counts = format!("+{} -{}", file.added, file.removed);
    if record.extent(file) == Extent::Part {
        return format!("{path} (in part)");
    }
    match &file.operation {
        Operation::Create => format!("{path} (new, +{})", file.added),
        Operation::Delete => format!("{path} (deleted)"),
        Operation::Update => format!("{path} ({counts})"),
        Operation::Rename { from } => format!("{} → {path} ({counts})", visible(from.as_str())),
    }
}

/// How long ago, in the largest unit that fits.
pub(crate) fn ago(milliseconds: i64) -> String {
    let seconds = (milliseconds / 1000).max(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

pub(crate) fn show(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    tell_of_bad_configuration(&state);
    if !state.has_history() {
        return Err(GateError::NoSuchChange(arguments.change.to_string()).into());
    }
    let recorded = Records::open(&state)?;
    // A program gets what was proposed beside what was applied; a person sees what happened.
    let shown = if arguments.place.json { Shown::Proposed } else { Shown::Applied };
    let (record, preview) = recorded.change(arguments.change, shown)?;
    let mut output = Output::stdout();
    if arguments.place.json {
        let mut value = json!(record);
        value["preview"] = json!(preview.map(|preview| preview.object()));
        output.json(&value)?;
        output.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let styles = Styles::of(terminal(&arguments.place));
    let mut text = String::new();
    styles.paint(&mut text, styles.title, &format!("Change {}", record.change));
    styles.paint(&mut text, status_style(&styles, &record.status), &format!("  {}", status_text(&record)));
    styles.paint(&mut text, styles.number, &format!("  {} ago\n", ago(now() - record.time)));
    let origin = &record.origin;
    for (name, value) in
        [("agent", &origin.agent), ("session", &origin.session), ("turn", &origin.turn), ("call", &origin.call)]
    {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {}\n", visible(value)));
        }
    }
    match &record.cause {
        Cause::Proposal => {}
        Cause::Undo { of, .. } => text.push_str(&format!("takes back change {}\n", numbers(of))),
        Cause::Redo { of, .. } => text.push_str(&format!("makes change {} again\n", numbers(of))),
        Cause::Review { of, turn } => {
            let turn = if turn.is_empty() { String::new() } else { format!(" of turn {}", visible(turn)) };
            text.push_str(&format!("reviews change {}{turn}\n", numbers(of)));
        }
        Cause::Restore { snapshot } => text.push_str(&format!("puts back what snapshot {snapshot} kept\n")),
        Cause::Rebase { of } => text.push_str(&format!("merges change {of} with what was changed meanwhile\n")),
    }
    if let ChangeStatus::Failed { reason } = &record.status {
        text.push_str(&format!("why it failed: {}\n", visible(reason)));
    }
    for path in &record.left_alone {
        text.push_str(&format!("left alone, since somebody else had changed it: {}\n", visible(path.as_str())));
    }
    for path in &record.saved {
        text.push_str(&format!("somebody's work, displaced in that moment, is saved as: {}\n", visible(path.as_str())));
    }
    if let Some(ruled) = &record.ruled {
        text.push_str(&format!("policy: {}, by {}\n", ruled.ruling, visible(&ruled.rule)));
    }
    if let Some(by) = record.reviewed {
        text.push_str(&format!("reviewed at the end of its turn: change {by}\n"));
    }
    for before in &record.without {
        text.push_str(&format!("note: {}\n", sayso_review::told_without(*before)));
    }
    for (path, by) in &record.undone_files {
        text.push_str(&format!("taken back by change {by}: {}\n", visible(path.as_str())));
    }
    for path in &record.differs {
        text.push_str(&format!("not what was approved: {}\n", visible(path.as_str())));
    }
    for one in &record.uncaptured {
        text.push_str(&format!("cannot be put back: {}: {}\n", visible(&one.path), visible(&one.reason)));
    }
    text.push('\n');
    text.push_str(&exec::show::text(&record.approved(), terminal(&arguments.place)));
    if record.applied.is_some() && !record.subject.is_files() {
        text.push_str("\nChanged while it ran:\n");
    }
    if let Some(preview) = preview {
        text.push_str(&preview::text(&preview, terminal(&arguments.place)));
    } else {
        let files: Vec<String> = record.files.iter().map(|file| file_summary(&record, file)).collect();
        text.push_str(&format!("{}\n(what it held is no longer kept)\n", files.join("\n")));
    }
    let delivered = record.delivered().map(|told| ("The agent was told:", told));
    let message = delivered.or_else(|| record.undelivered().map(|told| ("The agent has not been told yet:", told)));
    if let Some((title, told)) = message {
        text.push('\n');
        styles.paint(&mut text, styles.title, title);
        for line in told.lines() {
            text.push_str(&format!("\n  {}", visible(line)));
        }
        text.push('\n');
    }
    output.write(text.as_bytes())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn status(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let state = State::find(&arguments.place)?;
    if !arguments.short {
        tell_of_bad_configuration(&state);
    }
    let connected = if state.has_history() { Some(Connected::to(&state)?) } else { None };
    let extent = if arguments.short && !arguments.place.json {
        client::Extent::Counts
    } else {
        client::Extent::Details { most_waiting: MOST_WAITING }
    };
    let status = match &connected {
        Some(connected) => Some(connected.block(connected.client().status(extent))?),
        None => None,
    };
    let turns = status.as_ref().map_or(0, |status| status.turns_to_review.len());
    let pending = status.as_ref().map_or(0, |status| status.pending);
    let requests = status.as_ref().map_or(0, |status| status.requests_waiting);
    let mut output = Output::stdout();
    if arguments.place.json {
        output.json(&json!({
            "workspace": state.root.to_string_lossy(),
            "journal": state.folder.to_string_lossy(),
            "changes": status.as_ref().map_or(0, |status| status.changes),
            "pending": pending,
            "turns_to_review": turns,
            "requests_waiting": requests,
            "configuration_problem": configuration_problem(&state),
            "contents": status.as_ref().map_or(0, |status| status.contents),
            "stored_bytes": status.as_ref().map_or(0, |status| status.stored_bytes),
        }))?;
    } else if arguments.short {
        let mut parts = Vec::new();
        if pending > 0 {
            parts.push(format!("{pending} pending"));
        }
        if turns > 0 {
            parts.push(format!("{turns} to review"));
        }
        match requests {
            0 => {}
            1 => parts.push("1 request".to_owned()),
            requests => parts.push(format!("{requests} requests")),
        }
        if configuration_problem(&state).is_some() {
            parts.push("configuration not understood".to_owned());
        }
        if !parts.is_empty() {
            output.write(format!("{}\n", parts.join(", ")).as_bytes())?;
        }
    } else {
        output.write(format!("Workspace  {}\n", visible(&state.root.to_string_lossy())).as_bytes())?;
        match connected.as_ref().zip(status) {
            Some((connected, status)) => output.write(standing(connected, &status)?.as_bytes())?,
            None => output.write(b"No changes yet. `sayso propose FILE` shows one and asks.\n")?,
        }
        for (nested, waits) in waiting_below(&state) {
            let nested = visible(&nested.root.to_string_lossy()).into_owned();
            output.write(format!("Below      {waits} in {nested}: `sayso review --everywhere`\n").as_bytes())?;
        }
        if connected.is_some() {
            output.write(format!("Journal    {}\n", visible(&state.folder.to_string_lossy())).as_bytes())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the nested workspaces with pending changes, and how many, such as `2 wait`. Reads their journals without starting an
/// engine. A journal that cannot be read is left out: it is not this workspace's.
pub(crate) fn waiting_below(state: &State) -> Vec<(State, String)> {
    let mut waiting = Vec::new();
    for nested in state.nested() {
        let Ok(reader) = Reader::open(&nested.folder) else { continue };
        match History::new(&reader).status().map_or(0, |status| status.pending) {
            0 => {}
            1 => waiting.push((nested, "1 waits".to_owned())),
            count => waiting.push((nested, format!("{count} wait"))),
        }
    }
    waiting
}

/// How a workspace stands, line by line.
fn standing(connected: &Connected, status: &Status) -> Result<String, Failure> {
    let waiting = if status.pending == 0 { String::new() } else { format!(", {} waiting", status.pending) };
    let mut text = format!("Changes    {}{waiting}\n", status.changes);
    match status.turns_to_review.len() {
        0 => {}
        1 => text.push_str("Review     1 turn in which changes happened at once: `sayso review`\n"),
        turns => {
            text.push_str(&format!("Review     {turns} turns in which changes happened at once: `sayso review`\n"));
        }
    }
    match status.requests_waiting {
        0 => {}
        1 => text.push_str("Requests   1 waits: `sayso request list --waiting`\n"),
        count => text.push_str(&format!("Requests   {count} wait: `sayso request list --waiting`\n")),
    }
    for record in &status.waiting {
        text.push_str(&format!("Waits      {} {}\n", record.change, summary(record)));
    }
    let sessions = connected.block(connected.client().list_sessions(MOST_SESSIONS))?;
    for session in sessions.iter().filter(|session| session.active) {
        let agent = session.agent.as_deref().unwrap_or("an agent");
        text.push_str(&format!("Session    {} of {}\n", visible(&session.session), visible(agent)));
    }
    if let Some(last) = &status.last {
        let age = ago(now() - last.time);
        text.push_str(&format!("Last       {} {} {age} ago: {}\n", last.change, last.status, summary(last)));
    }
    let kept = megabytes(status.stored_bytes);
    text.push_str(&format!("Kept       {} contents in {kept}\n", status.contents));
    Ok(text)
}

pub(crate) fn megabytes(bytes: u64) -> String {
    if bytes < 10_000_000 { format!("{} kB", bytes.div_ceil(1000)) } else { format!("{} MB", bytes / 1_000_000) }
}
