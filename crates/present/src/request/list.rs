//! Requests and runs of subagents in one line each.

use sayso_api::proto::RequestSummary;
use sayso_api::proto::list_subagents_response::Run;

use super::cost::cost_text;
use super::status::{deadline_text, is_retrying, pause_reason_text, retry_text, tokens_text};
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{count, format_time_of_day, times};

/// Describes a request in a list: size, edits, reason, retries, tokens, end. `now` is in milliseconds since 1970.
pub fn request_details(request: &RequestSummary, now: i64) -> String {
    let received = request.received.as_option();
    // The forwarded body is recorded only if it differs from the received one.
    let body = request.sent.as_option().or_else(|| received.and_then(|received| received.body.as_option()));
    let mut parts = vec![format!("{} kB", body.map_or(0, |body| body.size).div_ceil(1000))];
    if let Some(replayed) = received.and_then(|received| received.replay_of) {
        parts.push(format!("replay of {replayed}"));
    }
    if request.edited {
        let inherited = request.inherits.map(|earlier| format!("edited, as request {earlier}"));
        parts.push(inherited.unwrap_or_else(|| "edited".to_owned()));
    }
    if let Some(reason) = request.pause_reason.as_option().filter(|_| request.held) {
        parts.push(pause_reason_text(reason));
    }
    if let Some(deadline) = request.deadline_ms.filter(|_| request.held) {
        parts.push(deadline_text(deadline, now));
    }
    if let Some(retry) = request.upstream_retry.as_option() {
        let rejected = || format!("rejected {}", times(retry.attempts));
        parts.push(if is_retrying(request) { retry_text(retry, now) } else { rejected() });
    }
    let answer = request.answer.as_option();
    if let Some(usage) = answer.and_then(|answer| answer.usage.as_option()) {
        let number = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
        parts.push(format!("{} tokens in, {} out", number(usage.input), number(usage.output)));
    }
    parts.extend(request.cost.as_option().map(cost_text).filter(|cost| !cost.is_empty()));
    if let Some(problem) = answer.and_then(|answer| answer.problem.as_deref().or(answer.error.as_deref())) {
        parts.push(escape_unprintable(problem).into_owned());
    }
    if let Some(end) = request.ended.as_option() {
        parts.push(escape_unprintable(&end.message).into_owned());
    }
    parts.join(", ")
}

/// Renders one line about a run of a subagent.
pub fn run_heading(run: &Run) -> StyledText {
    let mut text = StyledText::new();
    text.push(Style::Title, run.request.to_string());
    let model = escape_unprintable(run.model.as_deref().unwrap_or("unknown model"));
    let (name, started) = (escape_unprintable(&run.conversation), format_time_of_day(run.started_ms));
    let (requests, tokens) = (count(run.requests, "request"), tokens_text(run.tokens.as_option()));
    text.plain(format!("  {name} · {started}  {model}, {requests}, {tokens} tokens\n"));
    text
}
