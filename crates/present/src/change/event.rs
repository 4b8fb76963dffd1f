//! Events of the journal in one line each.

use sayso_review::{Decider, Event, EventBody, FileRecord, Outcome, Recorded, Subject, Surface, SurfaceKind};

use super::summary::{command_summary, file_summary, list_files, tool_summary};
use crate::escape::escape_unprintable;
use crate::request::{describe_mode_set, describe_overrides_set, describe_step, describe_view};
use crate::span::{Style, StyledText};
use crate::words::{count, format_time_of_day, join_numbers};

/// Renders an event: time of day, change number and description. `now` is in milliseconds since 1970.
pub fn render_event(recorded: &Recorded, now: i64) -> StyledText {
    let change = match &recorded.body {
        EventBody::Known(event) => event.change(),
        EventBody::Unknown(_) => None,
    };
    let number = change.map(|change| change.to_string()).unwrap_or_default();
    let mut text = StyledText::new();
    text.push(Style::Dim, format_time_of_day(recorded.time));
    text.push(Style::Title, format!("  {number:>4}  "));
    text.plain(describe_event(&recorded.body, now));
    text
}

/// Describes an event, without its change number. `now` is in milliseconds since 1970.
pub fn describe_event(body: &EventBody, now: i64) -> String {
    let event = match body {
        EventBody::Known(event) => event,
        EventBody::Unknown(_) => return "an event that this version does not know".to_owned(),
    };
    match event {
        Event::Proposed { origin, files, subject, .. } => {
            let action = match subject {
                Subject::Command { command, .. } => command_summary(command),
                Subject::Tool { name, .. } => tool_summary(name),
                Subject::Files => file_list(files),
            };
            let by = origin.agent.as_deref().map(|agent| format!(" by {}", escape_unprintable(agent)));
            format!("proposed{}: {action}", by.unwrap_or_default())
        }
        Event::Refreshed { files, .. } => format!("shows anew: {}", file_list(files)),
        Event::Decided { verdict, agent_message, .. } => {
            format!("decided{}: {}", decider_text(&verdict.by), first_line(agent_message))
        }
        Event::HunksSeen { path, hunks, .. } => {
            format!("{} of {} seen", count(hunks.len() as u64, "hunk"), escape_unprintable(path.as_str()))
        }
        Event::ReadThrough { through } => format!("events read up to {through}"),
        Event::Agent(entry) => format!("agent log of session {}", entry.session),
        Event::Applying { note: None, .. } => "is being applied".to_owned(),
        Event::Applying { note: Some(note), .. } => format!("is being applied: {}", first_line(note)),
        Event::Permitted { editor: None, .. } => "may go ahead".to_owned(),
        Event::Permitted { editor: Some(editor), .. } => format!("is applied by {}", escape_unprintable(editor)),
        Event::Observed { record, .. } => format!("changed {}", count(record.steps.len() as u64, "file")),
        Event::Reviewed { by, .. } => format!("reviewed by {by}"),
        Event::Ended { outcome, .. } => describe_outcome(outcome),
        Event::Undone { by, .. } => format!("undone by {by}"),
        Event::Redone { by, .. } => format!("made again by {by}"),
        Event::Recovered { finished, .. } => {
            format!("was interrupted, and {}", if *finished { "finished" } else { "taken back" })
        }
        Event::MessageQueued { text, .. } => format!("message for the agent: {}", first_line(text)),
        Event::MessageDelivered { .. } => "the message was delivered to the agent".to_owned(),
        Event::Request(event) => format!("request {} {}", event.request, describe_step(event, now)),
        Event::RequestMode(set) => describe_mode_set(set),
        Event::Overrides(set) => describe_overrides_set(set),
        Event::RequestViewed(view) => describe_view(view),
        other => describe_session_event(other),
    }
}

/// The surface or the rule that decided; empty for a person on an unnamed surface.
fn decider_text(by: &Decider) -> String {
    match by {
        Decider::Person { surface: None } => String::new(),
        Decider::Person { surface: Some(surface) } => format!(" in {}", surface_text(surface)),
        Decider::Policy { rule } => format!(" by the rule `{}`", escape_unprintable(rule)),
    }
}

/// Names a surface: its kind, and its name if it has one.
pub fn surface_text(surface: &Surface) -> String {
    let article = match surface.kind {
        SurfaceKind::Editor | SurfaceKind::Unknown => "an",
        SurfaceKind::Terminal | SurfaceKind::Browser => "a",
        SurfaceKind::CommandLine => "the",
    };
    let kind =
        if surface.kind == SurfaceKind::Unknown { "unnamed surface".to_owned() } else { surface.kind.to_string() };
    let name = escape_unprintable(&surface.name);
    if name.is_empty() { format!("{article} {kind}") } else { format!("{article} {kind} ({name})") }
}

fn describe_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied => "applied".to_owned(),
        Outcome::Sent => "sent".to_owned(),
        Outcome::Ran { exit_code, note } => {
            let code = exit_code.map(|code| format!(", ended with {code}")).unwrap_or_default();
            let note = note.as_deref().map(|note| format!(": {}", first_line(note))).unwrap_or_default();
            format!("ran{code}{note}")
        }
        Outcome::Denied => "denied".to_owned(),
        Outcome::Stale { .. } => "stale".to_owned(),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::Failed { reason } => format!("failed: {}", first_line(reason)),
    }
}

/// Describes events of sessions, turns and snapshots.
fn describe_session_event(event: &Event) -> String {
    let shown = |text: &str| escape_unprintable(text).into_owned();
    match event {
        Event::SessionStarted { session, agent, .. } => {
            format!("session {} of {} began", shown(session), shown(agent.as_deref().unwrap_or("an agent")))
        }
        Event::SessionResumed { session } => format!("session {} goes on", shown(session)),
        Event::SessionEnded { session } => format!("session {} ended", shown(session)),
        Event::TurnStarted { session, turn } => format!("turn {} of session {} began", shown(turn), shown(session)),
        Event::TurnEnded { session, turn } => format!("turn {} of session {} ended", shown(turn), shown(session)),
        Event::RuleAdded { session, rule } => {
            format!("a rule for session {}: {} {}", shown(session), rule.then, shown(&rule.summary()))
        }
        Event::Delivered { session, .. } => format!("all messages of session {} were delivered", shown(session)),
        Event::SnapshotCaptured(snapshot) => {
            format!("kept {} as snapshot {}", shown(snapshot.path.as_str()), snapshot.snapshot)
        }
        Event::SnapshotCorrelated { snapshot, call, .. } => format!("snapshot {snapshot} is of call {}", shown(call)),
        Event::SnapshotsFreed { snapshots, .. } => format!("no longer keeps snapshot {}", join_numbers(snapshots)),
        _ => "an event that this version does not know".to_owned(),
    }
}

fn file_list(files: &[FileRecord]) -> String {
    if files.is_empty() { "no file".to_owned() } else { list_files(files, file_summary) }
}

fn first_line(text: &str) -> String {
    escape_unprintable(text.lines().next().unwrap_or_default()).into_owned()
}
