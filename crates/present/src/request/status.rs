//! Status, reasons and counts of a request.

use sayso_api::request::RequestSummary;
use sayso_review::{PauseReason, RequestStatus, SkippedEdit, UpstreamRetry};
use sayso_wire::Scope;

use crate::escape::escape_unprintable;
use crate::words::{count, format_age, times};

/// The status of a request in a word or two.
pub fn status_word(summary: &RequestSummary) -> String {
    match summary.record.status {
        RequestStatus::Received => "received".to_owned(),
        RequestStatus::Paused if summary.held => "paused".to_owned(),
        RequestStatus::Paused => "orphaned".to_owned(),
        RequestStatus::Sent if summary.is_retrying() => "retrying".to_owned(),
        RequestStatus::Sent => "sent".to_owned(),
        RequestStatus::Answered => {
            let status = summary.record.answer.as_ref().map_or(0, |answer| answer.status);
            format!("answered {status}")
        }
        RequestStatus::Ended => "ended".to_owned(),
    }
}

/// The reason why a request is or was paused.
pub fn pause_reason_text(reason: &PauseReason) -> String {
    match reason {
        PauseReason::EveryTurn => "every turn is paused".to_owned(),
        PauseReason::NextTurn => "the next turn was to be paused".to_owned(),
        PauseReason::Capture => "its edits are saved when it is resumed".to_owned(),
        PauseReason::Rule { rule } => format!("the rule `{}` says so", escape_unprintable(rule)),
        PauseReason::Retry => "an earlier one waited, and the agent sent it again".to_owned(),
    }
}

/// The upstream's latest rejection, the number of attempts and the time until the next one. `now` is in milliseconds since 1970.
pub fn retry_text(retry: &UpstreamRetry, now: i64) -> String {
    format_retry(&retry.message, retry.attempts, retry.next_attempt_ms - now)
}

pub(super) fn format_retry(message: &str, attempts: u32, milliseconds_left: i64) -> String {
    // Rounded up, so that the last second is not shown as 0 s.
    let next = if milliseconds_left > 0 {
        format!("again in {}", format_age(milliseconds_left + 999))
    } else {
        "and being tried again".to_owned()
    };
    format!("{}; tried {}, {next}", escape_unprintable(message), times(attempts))
}

/// The time until the agent of a held request gives up. `now` is in milliseconds since 1970.
pub fn deadline_text(deadline: i64, now: i64) -> String {
    match deadline - now {
        left @ 0.. => format!("its agent gives up in {}", format_age(left)),
        over => format!("its agent should have given up {} ago", format_age(-over)),
    }
}

/// The path of an edit that was not applied, and the reason.
pub fn skipped_edit_text(edit: &SkippedEdit) -> String {
    format_skipped(&edit.path, edit.reason.as_deref())
}

pub(super) fn format_skipped(path: &str, reason: Option<&str>) -> String {
    let reason = escape_unprintable(reason.unwrap_or("the content at this path has changed"));
    if path.is_empty() { reason.into_owned() } else { format!("{}: {reason}", escape_unprintable(path)) }
}

/// Lists the paths of masked credentials. `None` without masked values.
pub fn redacted_text(paths: &[String]) -> Option<String> {
    if paths.is_empty() {
        return None;
    }
    let list: Vec<String> = paths.iter().map(|path| escape_unprintable(path).into_owned()).collect();
    Some(format!("{}: {}", count(paths.len() as u64, "value"), list.join(", ")))
}

/// The display name of a scope of saved edits.
pub fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Session => "session",
        Scope::Workspace => "workspace",
        Scope::Global => "global",
    }
}
