//! All of a change as text.

use sayso_review::{Cause, ChangeRecord, ChangeStatus};

use super::summary::{applied_file_summary, status_style, status_text};
use crate::command::render_subject;
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{format_age, join_numbers};

/// Renders what comes above the diff of a change: status, origin, cause, notes and command. `now` is in milliseconds since 1970.
pub fn render_change_heading(record: &ChangeRecord, now: i64) -> StyledText {
    let mut text = StyledText::new();
    text.push(Style::Title, format!("Change {}", record.change));
    text.push(status_style(&record.status), format!("  {}", status_text(record)));
    text.push(Style::Dim, format!("  {} ago\n", format_age(now - record.time)));
    text.plain(origin_lines(record));
    text.plain(cause_line(record));
    text.plain(note_lines(record));
    text.plain("\n");
    text.append(render_subject(&record.approved()));
    if record.applied.is_some() && !record.subject.is_files() {
        text.plain("\nChanged while it ran:\n");
    }
    text
}

/// Summarises the files of a change whose contents are no longer stored.
pub fn content_gone_text(record: &ChangeRecord) -> String {
    let files: Vec<String> = record.files.iter().map(|file| applied_file_summary(record, file)).collect();
    format!("{}\n(its content is no longer stored)\n", files.join("\n"))
}

/// Renders the message to the agent about a change, for the place below its diff. Empty without one.
pub fn render_agent_message(record: &ChangeRecord) -> StyledText {
    let mut text = StyledText::new();
    let delivered = record.delivered().map(|message| ("The agent was told:", message));
    let pending = || record.undelivered().map(|message| ("The agent has not been told yet:", message));
    if let Some((title, message)) = delivered.or_else(pending) {
        text.plain("\n");
        text.push(Style::Title, title);
        for line in message.lines() {
            text.plain(format!("\n  {}", escape_unprintable(line)));
        }
        text.plain("\n");
    }
    text
}

fn origin_lines(record: &ChangeRecord) -> String {
    let origin = &record.origin;
    let fields =
        [("agent", &origin.agent), ("session", &origin.session), ("turn", &origin.turn), ("call", &origin.call)];
    let known = fields.iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    known.map(|(name, value)| format!("{name}: {}\n", escape_unprintable(value))).collect()
}

fn cause_line(record: &ChangeRecord) -> String {
    match &record.cause {
        Cause::Proposal => String::new(),
        Cause::Undo { changes, .. } => format!("takes back change {}\n", join_numbers(changes)),
        Cause::Redo { changes, .. } => format!("makes change {} again\n", join_numbers(changes)),
        Cause::Review { changes, turn } => {
            let turn = if turn.is_empty() { String::new() } else { format!(" of turn {}", escape_unprintable(turn)) };
            format!("reviews change {}{turn}\n", join_numbers(changes))
        }
        Cause::Restore { snapshot } => format!("puts back what snapshot {snapshot} kept\n"),
        Cause::Rebase { original } => format!("merges change {original} with what was changed meanwhile\n"),
    }
}

fn note_lines(record: &ChangeRecord) -> String {
    let mut text = String::new();
    if let ChangeStatus::Failed { reason } = &record.status {
        text.push_str(&format!("why it failed: {}\n", escape_unprintable(reason)));
    }
    for path in &record.skipped_files {
        text.push_str(&format!(
            "left alone, since somebody else had changed it: {}\n",
            escape_unprintable(path.as_str())
        ));
    }
    for path in &record.rescued_files {
        let path = escape_unprintable(path.as_str());
        text.push_str(&format!("somebody's work, displaced in that moment, is saved as: {path}\n"));
    }
    if let Some(ruled) = &record.ruling {
        text.push_str(&format!("policy: {}, by {}\n", ruled.ruling, escape_unprintable(&ruled.rule)));
    }
    if let Some(by) = record.reviewed {
        text.push_str(&format!("reviewed at the end of its turn: change {by}\n"));
    }
    text.push_str(&denied_dependency_notes(record));
    for (path, by) in &record.undone_files {
        text.push_str(&format!("taken back by change {by}: {}\n", escape_unprintable(path.as_str())));
    }
    for path in &record.differing_files {
        text.push_str(&format!("not what was approved: {}\n", escape_unprintable(path.as_str())));
    }
    for uncaptured in &record.uncaptured {
        let (path, reason) = (escape_unprintable(&uncaptured.path), escape_unprintable(&uncaptured.reason));
        text.push_str(&format!("cannot be put back: {path}: {reason}\n"));
    }
    text
}

/// A note for each change that this one builds on and that did not happen.
fn denied_dependency_notes(record: &ChangeRecord) -> String {
    record
        .dropped_predecessors
        .iter()
        .map(|before| format!("note: {}\n", sayso_review::dependency_denied(*before)))
        .collect()
}

/// The heading above a pending change in a review: its number, its origin and its notes.
pub fn review_heading(record: &ChangeRecord) -> String {
    let origin = match (&record.origin.agent, &record.origin.session) {
        (Some(agent), Some(session)) => {
            format!(" by {} in session {}", escape_unprintable(agent), escape_unprintable(session))
        }
        (Some(agent), None) => format!(" by {}", escape_unprintable(agent)),
        (None, Some(session)) => format!(" in session {}", escape_unprintable(session)),
        (None, None) => String::new(),
    };
    let mut text = if record.is_review() {
        format!("Change {}: what happened at once{origin}. What you refuse is taken back.\n", record.change)
    } else {
        format!("Change {}{origin} waits:\n", record.change)
    };
    text.push_str(&denied_dependency_notes(record));
    text
}
