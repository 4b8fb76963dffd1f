//! Requests and runs of subagents in one line each.

use sayso_api::request::{ListedRun, RequestSummary};
use sayso_review::TokenUsage;

use super::cost::cost_text;
use super::status::{deadline_text, pause_reason_text, retry_text};
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{count, format_time_of_day, times};

/// Describes a request in a list: size, edits, reason, retries, tokens, end. `now` is in milliseconds since 1970.
pub fn request_details(request: &RequestSummary, now: i64) -> String {
    let record = &request.record;
    // The forwarded body is recorded only if it differs from the received one.
    let body = record.sent.as_ref().unwrap_or(&record.received.body);
    let mut parts = vec![format!("{} kB", body.size.div_ceil(1000))];
    if let Some(replayed) = record.received.replay_of {
        parts.push(format!("replay of {replayed}"));
    }
    if request.edited {
        let inherited = record.inherits.map(|earlier| format!("edited, as request {earlier}"));
        parts.push(inherited.unwrap_or_else(|| "edited".to_owned()));
    }
    if let Some(reason) = record.paused.as_ref().filter(|_| request.held) {
        parts.push(pause_reason_text(reason));
    }
    if let Some(deadline) = record.deadline.filter(|_| request.held) {
        parts.push(deadline_text(deadline, now));
    }
    if let Some(retry) = &record.upstream_retry {
        let rejected = || format!("rejected {}", times(retry.attempts));
        parts.push(if request.is_retrying() { retry_text(retry, now) } else { rejected() });
    }
    if let Some(answer) = &record.answer {
        let number = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
        let TokenUsage { input, output, .. } = answer.usage;
        parts.push(format!("{} tokens in, {} out", number(input), number(output)));
    }
    parts.extend(request.cost.as_ref().map(cost_text).filter(|cost| !cost.is_empty()));
    if let Some(problem) = record.answer.as_ref().and_then(|answer| answer.problem.as_ref().or(answer.error.as_ref())) {
        parts.push(escape_unprintable(problem).into_owned());
    }
    if let Some(end) = &record.ended {
        parts.push(escape_unprintable(&end.message()).into_owned());
    }
    parts.join(", ")
}

/// Renders one line about a run of a subagent.
pub fn run_heading(run: &ListedRun) -> StyledText {
    let mut text = StyledText::new();
    text.push(Style::Title, run.request.to_string());
    let model = escape_unprintable(run.model.as_deref().unwrap_or("unknown model"));
    let (name, started) = (escape_unprintable(&run.conversation), format_time_of_day(run.started));
    let (requests, tokens) = (count(run.requests, "request"), run.tokens);
    text.plain(format!("  {name} · {started}  {model}, {requests}, {tokens} tokens\n"));
    text
}
