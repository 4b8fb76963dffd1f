//! Events of requests in one line each.

use sayso_review::{
    EditKind, ModeSet, OverrideReport, OverridesSet, RequestEvent, RequestMode, RequestStep, Resumer, ViewEvent,
};

use super::status::{format_retry, format_skipped};
use crate::escape::escape_unprintable;

/// Describes a step of a request. `now` is in milliseconds since 1970.
pub fn describe_step(event: &RequestEvent, now: i64) -> String {
    match &event.step {
        RequestStep::Received(received) => {
            let agent = received.origin.agent.as_deref().unwrap_or("an agent");
            let to = received.model.as_deref().unwrap_or(&received.upstream);
            let (agent, to) = (escape_unprintable(agent), escape_unprintable(to));
            format!("by {agent} to {to}: {} bytes", received.body.size)
        }
        RequestStep::Paused { .. } => format!("waits: `sayso request show {}`", event.request),
        RequestStep::Edited { path, edit, .. } => {
            // An edit of the whole request has no path.
            let path = if path.is_empty() { String::new() } else { format!(": {}", escape_unprintable(path)) };
            format!("{}{path}", edit_word(*edit))
        }
        RequestStep::Resumed { by: Resumer::Retry } => "goes on, as before".to_owned(),
        RequestStep::Resumed { by: Resumer::Person } => "goes on".to_owned(),
        RequestStep::Sent { body, overrides, .. } => {
            let sent = if body.is_some() { "sent with edits" } else { "sent as it came" };
            format!("{sent}{}", override_report(overrides))
        }
        RequestStep::UpstreamRetry(retry) => {
            format!("rejected; retrying: {}", format_retry(&retry.message, retry.attempts, retry.next_attempt_ms - now))
        }
        RequestStep::Answered(answer) => {
            let problem = answer.problem.as_deref().or(answer.error.as_deref());
            let problem = problem.map(|problem| format!(": {}", escape_unprintable(problem))).unwrap_or_default();
            format!("answered with {} after {} ms{problem}", answer.status, answer.total_ms)
        }
        RequestStep::Ended { end, .. } => format!("ended: {}", escape_unprintable(&end.message())),
    }
}

fn edit_word(edit: EditKind) -> &'static str {
    match edit {
        EditKind::Set | EditKind::Patch => "edited",
        EditKind::Delete => "a part deleted",
        EditKind::Restore => "restored",
        EditKind::Append => "has another message",
        EditKind::Shrink => "shrunk",
        EditKind::Repair => "repaired",
        EditKind::Pin => "pinned or unpinned",
        EditKind::Undo => "the last edit taken back",
        EditKind::Redo => "an edit made again",
        EditKind::Reset => "is as it came",
    }
}

/// Counts saved edits that were applied or skipped, and edits of an earlier request of the turn.
fn override_report(report: &OverrideReport) -> String {
    let mut text = String::new();
    if !report.applied.is_empty() {
        text.push_str(&format!(", {} of them saved ones", report.applied.len()));
    }
    if let Some(turn) = &report.turn {
        if !turn.applied.is_empty() {
            text.push_str(&format!(", those of request {}", turn.from));
        }
        for edit in &turn.dropped {
            let dropped = format_skipped(&edit.path, edit.reason.as_deref());
            text.push_str(&format!("; edit of request {} dropped: {dropped}", turn.from));
        }
    }
    if !report.skipped.is_empty() {
        text.push_str(&format!(", {} saved ones did not fit", report.skipped.len()));
    }
    text
}

/// Describes a change of the request mode.
pub fn describe_mode_set(set: &ModeSet) -> String {
    let session = set.session.as_deref();
    let sessions = session.map_or("all sessions".to_owned(), |id| format!("session {}", escape_unprintable(id)));
    let label = set.mode.map_or("no mode of its own", RequestMode::label);
    let next = match (set.pause_next, set.capture_next) {
        (_, true) => ", captures the next turn",
        (true, false) => ", pauses the next turn",
        (false, false) => "",
    };
    format!("requests of {sessions}: {label}{next}")
}

/// Describes a change of saved edits.
pub fn describe_overrides_set(set: &OverridesSet) -> String {
    let session = set.session.as_deref().map(|id| format!(" {}", escape_unprintable(id))).unwrap_or_default();
    format!("saved edits of the {}{session}: {}", escape_unprintable(&set.scope), set.count)
}

/// Describes a use of the request views.
pub fn describe_view(view: &ViewEvent) -> String {
    match view {
        ViewEvent::Diff { request, .. } => format!("the diff of request {request} was shown"),
        ViewEvent::Monitor { through } => format!("the subagent monitor was shown, up to request {through}"),
        ViewEvent::Trimmed { runs: 1 } => "1 earlier run of a subagent left the monitor".to_owned(),
        ViewEvent::Trimmed { runs } => format!("{runs} earlier runs of subagents left the monitor"),
    }
}
