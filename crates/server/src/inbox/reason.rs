//! Reasons of agents for what waits: the text of their last response before it.
//!
//! A change that names its tool call has the text of the response with that call. Any other item has the last text of the main agent
//! before it.

use std::collections::HashMap;

use sayso_review::{ChangeRecord, RequestId, RequestRecord, RequestStatus, SubagentMark};
use sayso_wire::stream::collect::BlockContent;

use crate::conversation::{response, turn_request};
use crate::failure::Failure;
use crate::host::Host;

/// Sessions whose responses are in memory.
const MAX_SESSIONS: usize = 256;
/// Responses of a session that are searched.
const MAX_RESPONSES: usize = 50;
/// Longest reason, in bytes. A longer text keeps its end, which is closest to the call.
const MAX_REASON_BYTES: usize = 1_000;
/// Longest usual time between the forwarding of a request and its record. The time of a request is that of its record.
const RECORDING_DELAY_MS: i64 = 2_000;

/// The reason for a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AgentReason {
    pub(super) text: Option<String>,
    /// `true` if a response that is not recorded yet may have a later text.
    pub(super) is_provisional: bool,
}

/// The last responses of sessions.
#[derive(Debug, Default)]
pub(super) struct AgentReasons {
    sessions: HashMap<String, Vec<SpokenResponse>>,
}

/// A request with the texts of its response.
#[derive(Debug)]
struct SpokenResponse {
    request: RequestId,
    /// Time of the request, in milliseconds since 1970.
    time: i64,
    turn: Option<String>,
    subagent: Option<SubagentMark>,
    content: ResponseContent,
}

#[derive(Debug)]
enum ResponseContent {
    /// The response is not complete.
    Awaited,
    /// Recorded, and decoded when it is first searched.
    Recorded(Box<RequestRecord>),
    Decoded {
        /// The last text.
        text: Option<String>,
        /// Ids of the tool calls.
        calls: Vec<String>,
    },
}

impl SpokenResponse {
    fn new(record: RequestRecord) -> Self {
        let is_awaited = record.answer.is_none() && record.status != RequestStatus::Ended;
        Self {
            request: record.request,
            time: record.time,
            turn: record.received.origin.turn.clone(),
            subagent: record.received.subagent.clone(),
            content: if is_awaited { ResponseContent::Awaited } else { ResponseContent::Recorded(Box::new(record)) },
        }
    }

    /// `true` if the request may have been sent before a time, in milliseconds since 1970.
    fn may_precede(&self, time: i64) -> bool {
        self.time <= time.saturating_add(RECORDING_DELAY_MS)
    }

    /// Returns the last text and the calls.
    fn decoded(&mut self, host: &Host) -> (Option<&str>, &[String]) {
        if let ResponseContent::Recorded(record) = &self.content {
            let (mut text, mut calls) = (None, Vec::new());
            let answer = turn_request(host, record).and_then(|_| response(host, record));
            for block in answer.into_iter().flat_map(|response| response.blocks) {
                match block.content {
                    BlockContent::Text(content) if !content.trim().is_empty() => text = Some(shorten(content.trim())),
                    BlockContent::ToolCall { id, .. } => calls.push(id),
                    BlockContent::Text(_) | BlockContent::Thinking(_) => {}
                }
            }
            self.content = ResponseContent::Decoded { text, calls };
        }
        match &self.content {
            ResponseContent::Decoded { text, calls } => (text.as_deref(), calls),
            ResponseContent::Awaited | ResponseContent::Recorded(_) => (None, &[]),
        }
    }
}

impl AgentReasons {
    /// Forgets the responses of a session, because there is a new one.
    pub(super) fn forget(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Finds the reason for a change.
    pub(super) fn of_change(&mut self, host: &Host, record: &ChangeRecord) -> Result<AgentReason, Failure> {
        let Some(session) = record.origin.session.as_deref() else { return Ok(AgentReason::default()) };
        let responses = self.responses(host, session)?;
        if let Some(call) = &record.origin.call
            && let Some(index) = responses.iter_mut().position(|response| response.decoded(host).1.contains(call))
        {
            let speaker = responses[index].subagent.clone();
            let text = last_text(host, &mut responses[index..], |response| response.subagent == speaker);
            return Ok(AgentReason { text, is_provisional: false });
        }
        let earlier = |response: &SpokenResponse| response.may_precede(record.time);
        let is_awaited = |response: &&SpokenResponse| matches!(response.content, ResponseContent::Awaited);
        // Requests are recorded in order: only a later one shows that no earlier one is missing.
        let is_complete = responses.iter().any(|response| !earlier(response));
        let is_provisional = !is_complete || responses.iter().filter(is_awaited).any(earlier);
        let text = last_text(host, responses, |response| response.subagent.is_none() && earlier(response));
        Ok(AgentReason { text, is_provisional })
    }

    /// Finds the last text of a turn; without one, the last text before a time.
    pub(super) fn of_turn(
        &mut self,
        host: &Host,
        (session, turn): &(String, String),
        time: i64,
    ) -> Result<Option<String>, Failure> {
        let responses = self.responses(host, session)?;
        let is_main = |response: &SpokenResponse| response.subagent.is_none();
        let of_turn = |response: &SpokenResponse| is_main(response) && response.turn.as_ref() == Some(turn);
        let text = last_text(host, responses, of_turn);
        Ok(text.or_else(|| last_text(host, responses, |response| is_main(response) && response.may_precede(time))))
    }

    /// Finds the last text before a held request.
    pub(super) fn of_request(&mut self, host: &Host, record: &RequestRecord) -> Result<Option<String>, Failure> {
        let Some(session) = record.received.origin.session.as_deref() else { return Ok(None) };
        let responses = self.responses(host, session)?;
        let speaker = &record.received.subagent;
        let is_earlier = |response: &SpokenResponse| response.request < record.request && response.subagent == *speaker;
        Ok(last_text(host, responses, is_earlier))
    }

    /// Returns the last responses of a session, newest first.
    fn responses(&mut self, host: &Host, session: &str) -> Result<&mut Vec<SpokenResponse>, Failure> {
        if !self.sessions.contains_key(session) {
            if self.sessions.len() >= MAX_SESSIONS {
                self.sessions.clear();
            }
            let records = host.proxy.interceptor.records(Some(session), None, MAX_RESPONSES)?;
            self.sessions.insert(session.to_owned(), records.into_iter().map(SpokenResponse::new).collect());
        }
        Ok(self.sessions.entry(session.to_owned()).or_default())
    }
}

/// Returns the newest text of the selected responses.
fn last_text(
    host: &Host,
    responses: &mut [SpokenResponse],
    is_selected: impl Fn(&SpokenResponse) -> bool,
) -> Option<String> {
    let mut selected = responses.iter_mut().filter(|response| is_selected(response));
    selected.find_map(|response| response.decoded(host).0.map(str::to_owned))
}

/// Keeps the end of a long text, from the start of a line if possible.
fn shorten(text: &str) -> String {
    let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_REASON_BYTES));
    if start == 0 {
        return text.to_owned();
    }
    let rest = &text[start..];
    let line = rest.find('\n').map(|end| rest[end..].trim_start()).filter(|line| !line.is_empty());
    format!("… {}", line.unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_its_end() {
        assert_eq!(shorten("short"), "short");
        let lines = format!("{}\nThe last line.", "é".repeat(1_000));
        assert_eq!(shorten(&lines), "… The last line.");
        let one_line = "é".repeat(1_000);
        let shown = shorten(&one_line);
        assert!(shown.starts_with("… é") && shown.len() <= MAX_REASON_BYTES + "… ".len(), "{shown}");
    }
}
