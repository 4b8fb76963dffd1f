//! The heading of a request: all facts about the request as a whole.

use sayso_api::request::{RequestDetails, RequestSummary};
use sayso_review::RequestMode;

use super::cost::{cache_miss_text, cost_text, cost_tokens_text};
use super::impact::{impact_text, problems_text};
use super::mode::mode_text;
use super::status::{deadline_text, pause_reason_text, redacted_text, retry_text, skipped_edit_text, status_word};
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{format_age, format_percent, ratio, times};

/// Renders the heading of a request. `now` is in milliseconds since 1970.
pub fn render_request_heading(shown: &RequestDetails, now: i64) -> StyledText {
    let mut text = StyledText::new();
    let summary = &shown.summary;
    text.push(Style::Title, format!("Request {}", summary.record.request));
    text.push(Style::Note, format!("  {}", status_word(summary)));
    text.push(Style::Dim, format!("  {} ago\n", format_age(now - summary.record.time)));
    text.plain(origin_lines(summary));
    text.plain(format!("tokens: {}\n", budget(shown)));
    if let Some(redacted) = redacted_text(&shown.redacted) {
        text.plain(format!("redacted: {redacted}\n"));
    }
    text.plain(hold_lines(shown, now));
    text.plain(history_lines(shown, now));
    if summary.held {
        text.plain(format!("mode: {}\n", mode_text(&shown.mode, None)));
    }
    for note in [&shown.parse_error, &shown.read_only_reason].into_iter().flatten() {
        text.push(Style::Note, format!("note: {}\n", escape_unprintable(note)));
    }
    text.plain(outcome_lines(summary));
    text.plain(cost_lines(shown));
    text.plain(impact_text(shown.impact.as_ref()));
    text.plain(problems_text(summary.record.request, &shown.problems));
    text
}

/// Conversation, endpoint, model and session.
fn origin_lines(summary: &RequestSummary) -> String {
    let received = &summary.record.received;
    let endpoint = format!("{} {} {}", received.upstream, received.method, received.path);
    let mut text = format!("{}  {}\n", escape_unprintable(&summary.conversation), escape_unprintable(&endpoint));
    for (name, value) in [("model", &received.model), ("session", &received.origin.session)] {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {}\n", escape_unprintable(value)));
        }
    }
    text
}

/// The reason and the deadline of a held request.
fn hold_lines(shown: &RequestDetails, now: i64) -> String {
    let summary = &shown.summary;
    if !summary.held {
        return String::new();
    }
    let mut text = String::new();
    if let Some(reason) = &summary.record.paused {
        text.push_str(&format!("waits: {}\n", pause_reason_text(reason)));
    }
    match summary.record.deadline {
        Some(deadline) => text.push_str(&format!("deadline: {}\n", deadline_text(deadline, now))),
        // Only a stream can be kept alive.
        None if !shown.streaming => {
            text.push_str("deadline: not known; its agent wants the answer in one piece, and may give up\n");
        }
        None => {}
    }
    text
}

/// Edits carried over, retries, replays and the revision.
fn history_lines(shown: &RequestDetails, now: i64) -> String {
    let (summary, record) = (&shown.summary, &shown.summary.record);
    let mut text = String::new();
    if let Some(turn) = &record.overrides.turn {
        for path in &turn.applied {
            text.push_str(&format!("edit of request {}, made again: {}\n", turn.from, escape_unprintable(path)));
        }
        for dropped in &turn.dropped {
            text.push_str(&format!("edit of request {}, dropped: {}\n", turn.from, skipped_edit_text(dropped)));
        }
    }
    if let Some(retry) = record.upstream_retry.as_ref().filter(|_| summary.is_retrying()) {
        let cancel = format!("`sayso request cancel {}` ends it", record.request);
        text.push_str(&format!("retrying: {}; {cancel}\n", retry_text(retry, now)));
    }
    if let Some(replayed) = record.received.replay_of {
        text.push_str(&format!("replay of: request {replayed}\n"));
    }
    if let Some(reason) = shown.exempt_reason.as_ref().filter(|_| shown.mode.mode != RequestMode::Off) {
        text.push_str(&format!("not paused: {}\n", escape_unprintable(reason)));
    }
    if let Some(earlier) = record.inherits {
        text.push_str(&format!("goes on with: your edits of request {earlier}\n"));
    }
    if summary.edited || record.edits > 0 {
        let word = if summary.edited { "edited" } else { "as it came" };
        text.push_str(&format!("revision: {} ({word})\n", record.edits));
    }
    text
}

/// Tokens, their share of the context window, and the output limit.
fn budget(shown: &RequestDetails) -> String {
    let window = shown.context_window.map(|window| {
        let share = ratio(shown.tokens.count, window);
        format!(" · {} of {}", format_percent(share), sayso_wire::tokens::Tokens::exact(window))
    });
    let output = shown.max_output_tokens.map(|limit| format!(" · at most {limit} in the answer"));
    format!("{}{}{}", shown.tokens, window.unwrap_or_default(), output.unwrap_or_default())
}

/// Price, cache share and the explanation of a cache miss.
fn cost_lines(shown: &RequestDetails) -> String {
    let mut text = String::new();
    if let Some(cost) = &shown.summary.cost {
        let price = cost_text(cost);
        let separator = if price.is_empty() { "" } else { " · " };
        text.push_str(&format!("cost: {price}{separator}{}\n", cost_tokens_text(cost)));
    }
    if let Some(miss) = &shown.cache_miss {
        text.push_str(&format!("cache miss: {}\n", cache_miss_text(miss)));
    }
    text
}

/// Saved edits and the response.
fn outcome_lines(summary: &RequestSummary) -> String {
    let record = &summary.record;
    let mut text = String::new();
    for path in &record.overrides.applied {
        text.push_str(&format!("saved edit applied: {}\n", escape_unprintable(path)));
    }
    for edit in &record.overrides.skipped {
        text.push_str(&format!("saved edit not applied: {}\n", skipped_edit_text(edit)));
    }
    if let Some(retry) = record.upstream_retry.as_ref().filter(|_| !summary.is_retrying()) {
        let message = escape_unprintable(&retry.message);
        text.push_str(&format!("rejected before: {}, the last time with {message}\n", times(retry.attempts)));
    }
    if let Some(answer) = &record.answer {
        let number = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
        let (input, output) = (number(answer.usage.input), number(answer.usage.output));
        text.push_str(&format!("answer: status {}, {input} tokens in, {output} out", answer.status));
        text.push_str(&format!(", first byte after {} ms, all after {} ms\n", answer.first_byte_ms, answer.total_ms));
        if let Some(error) = &answer.error {
            text.push_str(&format!("answer says: {}\n", escape_unprintable(error)));
        }
        if let Some(problem) = &answer.problem {
            text.push_str(&format!("answer's problem: {}\n", escape_unprintable(problem)));
        }
    }
    if let Some(end) = &record.ended {
        text.push_str(&format!("ended: {}\n", escape_unprintable(&end.message())));
    }
    text
}
