//! Conversions of requests to models: summaries and arrivals, without the bytes of bodies.

mod body;
mod cost;
mod details;
mod edit;
mod event;
mod hold;
mod mode;
mod response;
mod section;
mod wire;

use buffa::MessageField;
use sayso_review::{RequestReceived, RequestRecord, RequestStatus, SubagentMark};

use super::BadMessage;
use super::field::{enumeration, optional, required, unspecified};
use crate::proto;

/// Characters of a session id that a conversation name shows. Enough to tell random ids apart.
const SESSION_SUFFIX_CHARS: usize = 8;

/// Display name of a conversation: the agent, a model or subagent, and the end of the session id.
pub fn conversation(agent: Option<&str>, name: Option<&str>, session: &str) -> String {
    let suffix_start = session.char_indices().rev().take(SESSION_SUFFIX_CHARS).last().map_or(0, |(start, _)| start);
    let ellipsis = if suffix_start > 0 { "…" } else { "" };
    let suffix = format!("{ellipsis}{}", &session[suffix_start..]);
    [Some(agent.unwrap_or("agent")), name, Some(&suffix)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The middle part of a [`conversation`] name: the subagent, or else the model.
fn name(received: &RequestReceived) -> Option<&str> {
    let subagent = received.subagent.as_ref().map(|mark| mark.id.as_deref().unwrap_or("subagent"));
    subagent.or(received.model.as_deref())
}

impl From<&RequestRecord> for proto::RequestSummary {
    /// Leaves `held` unset, and `edited` is about the recorded body only: the engine adds both for a held request.
    fn from(record: &RequestRecord) -> Self {
        let received = &record.received;
        let session = received.origin.session.as_deref().unwrap_or_default();
        Self {
            request: record.request,
            time_ms: record.time,
            status: proto::RequestStatus::from(record.status).into(),
            received: MessageField::some(received.into()),
            conversation: conversation(received.origin.agent.as_deref(), name(received), session),
            pause_reason: record.paused.as_ref().map(proto::PauseReason::from).into(),
            deadline_ms: record.deadline,
            revision: record.edits,
            edited: record.is_edited(),
            resumed_by: record.resumed.map(proto::Resumer::from).unwrap_or_default().into(),
            sent: record.sent.as_ref().map(proto::BodySize::from).into(),
            overrides: hold::overrides(&record.overrides).into(),
            inherits: record.inherits,
            upstream_retry: record.upstream_retry.as_ref().map(proto::UpstreamRetry::from).into(),
            answer: record.answer.as_ref().map(proto::RequestAnswer::from).into(),
            ended: record.ended.as_ref().map(|end| response::ended(end, record.edited.as_ref())).into(),
            ..Default::default()
        }
    }
}

/// Leaves out the recorded patch and the handover, and takes the time of arrival as the time of the last step. The protocol carries none
/// of the three.
impl TryFrom<proto::RequestSummary> for RequestRecord {
    type Error = BadMessage;

    fn try_from(mut summary: proto::RequestSummary) -> Result<Self, BadMessage> {
        let edited = match summary.ended.as_option_mut() {
            Some(end) => optional(std::mem::take(&mut end.edited), "ended.edited")?,
            None => None,
        };
        let resumed = match summary.resumed_by.as_known() {
            Some(proto::Resumer::Unspecified) => None,
            _ => Some(enumeration(summary.resumed_by, "resumed_by")?),
        };
        Ok(Self {
            request: summary.request,
            time: summary.time_ms,
            last: summary.time_ms,
            status: enumeration(summary.status, "status")?,
            received: required(summary.received, "received")?,
            paused: optional(summary.pause_reason, "pause_reason")?,
            deadline: summary.deadline_ms,
            edits: summary.revision,
            resumed,
            sent: optional(summary.sent, "sent")?,
            edited,
            patch: None,
            inherits: summary.inherits,
            handover: None,
            overrides: optional(summary.overrides, "overrides")?.unwrap_or_default(),
            upstream_retry: optional(summary.upstream_retry, "upstream_retry")?,
            answer: optional(summary.answer, "answer")?,
            ended: optional(summary.ended, "ended")?,
        })
    }
}

impl From<RequestStatus> for proto::RequestStatus {
    fn from(status: RequestStatus) -> Self {
        match status {
            RequestStatus::Received => Self::Received,
            RequestStatus::Paused => Self::Paused,
            RequestStatus::Sent => Self::Sent,
            RequestStatus::Answered => Self::Answered,
            RequestStatus::Ended => Self::Ended,
        }
    }
}

impl TryFrom<proto::RequestStatus> for RequestStatus {
    type Error = BadMessage;

    fn try_from(status: proto::RequestStatus) -> Result<Self, BadMessage> {
        Ok(match status {
            proto::RequestStatus::Unspecified => return Err(unspecified()),
            proto::RequestStatus::Received => Self::Received,
            proto::RequestStatus::Paused => Self::Paused,
            proto::RequestStatus::Sent => Self::Sent,
            proto::RequestStatus::Answered => Self::Answered,
            proto::RequestStatus::Ended => Self::Ended,
        })
    }
}

impl From<&RequestReceived> for proto::RequestReceived {
    fn from(received: &RequestReceived) -> Self {
        let header = |(name, value): &(String, String)| proto::RequestHeader {
            name: name.clone(),
            value: value.clone(),
            ..Default::default()
        };
        Self {
            origin: MessageField::some((&received.origin).into()),
            upstream: received.upstream.clone(),
            method: received.method.clone(),
            path: received.path.clone(),
            api: received.api.clone(),
            model: received.model.clone(),
            subagent: received.subagent.as_ref().map(proto::Subagent::from).into(),
            body: MessageField::some((&received.body).into()),
            encoding: received.encoding.clone(),
            headers: received.headers.iter().map(header).collect(),
            replay_of: received.replay_of,
            server: received.server.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RequestReceived> for RequestReceived {
    type Error = BadMessage;

    fn try_from(received: proto::RequestReceived) -> Result<Self, BadMessage> {
        Ok(Self {
            origin: required(received.origin, "origin")?,
            upstream: received.upstream,
            method: received.method,
            path: received.path,
            api: received.api,
            model: received.model,
            subagent: optional(received.subagent, "subagent")?,
            body: required(received.body, "body")?,
            encoding: received.encoding,
            headers: received.headers.into_iter().map(|header| (header.name, header.value)).collect(),
            replay_of: received.replay_of,
            server: received.server,
        })
    }
}

impl From<&SubagentMark> for proto::Subagent {
    fn from(mark: &SubagentMark) -> Self {
        Self { id: mark.id.clone(), parent: mark.parent.clone(), ..Default::default() }
    }
}

impl From<proto::Subagent> for SubagentMark {
    fn from(subagent: proto::Subagent) -> Self {
        Self { id: subagent.id, parent: subagent.parent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversation_name_ends_with_session_suffix() {
        assert_eq!(conversation(Some("claude"), Some("opus"), "0000-11112222"), "claude · opus · …11112222");
        assert_eq!(conversation(None, None, "short"), "agent · short");
        assert_eq!(conversation(None, None, ""), "agent · ");
        assert_eq!(conversation(None, None, "größeres-é"), "agent · …ößeres-é");
    }
}
