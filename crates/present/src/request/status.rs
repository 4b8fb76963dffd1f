//! Status, reasons and counts of a request.

use sayso_api::proto::pause_reason::Kind as PauseKind;
use sayso_api::proto::{OverrideScope, PauseReason, RequestStatus, RequestSummary, SkippedEdit, Tokens, UpstreamRetry};

use crate::escape::escape_unprintable;
use crate::words::{count, format_age, times};

/// `true` while sayso retries a request that its upstream rejected.
pub fn is_retrying(summary: &RequestSummary) -> bool {
    summary.upstream_retry.is_set() && summary.status.as_known() == Some(RequestStatus::Sent)
}

/// The status of a request in a word or two.
pub fn status_word(summary: &RequestSummary) -> String {
    match summary.status.as_known().unwrap_or_default() {
        RequestStatus::Unspecified => "unknown".to_owned(),
        RequestStatus::Received => "received".to_owned(),
        RequestStatus::Paused if summary.held => "paused".to_owned(),
        RequestStatus::Paused => "orphaned".to_owned(),
        RequestStatus::Sent if is_retrying(summary) => "retrying".to_owned(),
        RequestStatus::Sent => "sent".to_owned(),
        RequestStatus::Answered => {
            let status = summary.answer.as_option().map_or(0, |answer| answer.status);
            format!("answered {status}")
        }
        RequestStatus::Ended => "ended".to_owned(),
    }
}

/// The reason why a request is or was paused.
pub fn pause_reason_text(reason: &PauseReason) -> String {
    match reason.kind.as_known().unwrap_or_default() {
        PauseKind::EveryTurn => "every turn is paused".to_owned(),
        PauseKind::NextTurn => "the next turn was to be paused".to_owned(),
        PauseKind::Capture => "its edits are saved when it is resumed".to_owned(),
        PauseKind::Rule => {
            format!("the rule `{}` says so", escape_unprintable(reason.rule.as_deref().unwrap_or_default()))
        }
        PauseKind::Retry => "an earlier one waited, and the agent sent it again".to_owned(),
        PauseKind::Unspecified => "for a reason that this version does not know".to_owned(),
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

/// Formats a token count. An estimate is marked.
pub fn tokens_text(tokens: Option<&Tokens>) -> String {
    use sayso_wire::tokens;
    let Some(tokens) = tokens else { return "?".to_owned() };
    let counted =
        if tokens.exact { tokens::Tokens::exact(tokens.count) } else { tokens::Tokens::estimate(tokens.count) };
    counted.to_string()
}

/// The display name of a scope of saved edits.
pub fn scope_name(scope: Option<OverrideScope>) -> &'static str {
    match scope.unwrap_or_default() {
        OverrideScope::Session => "session",
        OverrideScope::Workspace => "workspace",
        OverrideScope::Global => "global",
        OverrideScope::Unspecified => "unknown scope",
    }
}
