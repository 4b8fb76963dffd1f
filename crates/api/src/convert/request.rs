//! What is known of a request to a model.

use buffa::MessageField;
use sayso_review::redact::Redaction;
use sayso_review::{
    BodyRecord, EditKind, PauseReason, RequestAnswer, RequestEnd, RequestMode, RequestRecord, RequestSeen,
    RequestStatus, Resumer, SavedEdits, SubagentMark, TokenUsage, TurnEditsOutcome, TurnedAway,
};

use super::BadMessage;
use super::field::{not_said, optional, required};
use crate::proto;

/// How much of a session's id is shown: enough to tell apart those that chance has made.
const TAIL: usize = 8;

/// What people call a conversation: its agent, a name, and the end of its session's id.
pub fn conversation(agent: Option<&str>, name: Option<&str>, session: &str) -> String {
    let tail: Vec<char> = session.chars().rev().take(TAIL).collect();
    let tail: String = tail.into_iter().rev().collect();
    let cut = if tail.len() < session.len() { "…" } else { "" };
    let tail = format!("{cut}{tail}");
    [Some(agent.unwrap_or("agent")), name, Some(&tail)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The name of a subagent, or of the model, for [`conversation`].
fn name(seen: &RequestSeen) -> Option<&str> {
    let subagent = seen.subagent.as_ref().map(|mark| mark.id.as_deref().unwrap_or("subagent"));
    subagent.or(seen.model.as_deref())
}

impl From<&RequestRecord> for proto::RequestSummary {
    /// Whether it waits, and whether it has edits that are not sent yet, is for the engine to add.
    fn from(record: &RequestRecord) -> Self {
        let seen = &record.seen;
        let session = seen.origin.session.as_deref().unwrap_or_default();
        Self {
            request: record.request,
            time_ms: record.time,
            status: proto::RequestStatus::from(record.status).into(),
            seen: MessageField::some(seen.into()),
            conversation: conversation(seen.origin.agent.as_deref(), name(seen), session),
            paused: record.paused.as_ref().map(proto::PauseReason::from).into(),
            deadline_ms: record.deadline,
            revision: record.edits,
            edited: record.is_edited(),
            resumed_by: record.resumed.map(proto::Resumer::from).unwrap_or_default().into(),
            sent: record.sent.as_ref().map(proto::BodySize::from).into(),
            saved: saved(&record.saved).into(),
            inherits: record.inherits,
            turned_away: record.turned_away.as_ref().map(proto::RequestTurnedAway::from).into(),
            answer: record.answer.as_ref().map(proto::RequestAnswer::from).into(),
            ended: record.ended.as_ref().map(|why| ended(why, record.edited.as_ref())).into(),
            ..Default::default()
        }
    }
}

/// Why a request ended, and what it had been edited to.
pub(super) fn ended(why: &RequestEnd, edited: Option<&BodyRecord>) -> proto::RequestEnd {
    proto::RequestEnd { edited: edited.map(proto::BodySize::from).into(), ..why.into() }
}

/// What became of saved edits, if there were any.
pub(super) fn saved(saved: &SavedEdits) -> Option<proto::SavedEditsOutcome> {
    (!saved.is_empty()).then(|| saved.into())
}

impl From<RequestStatus> for proto::RequestStatus {
    fn from(status: RequestStatus) -> Self {
        match status {
            RequestStatus::Seen => Self::Seen,
            RequestStatus::Paused => Self::Paused,
            RequestStatus::Sent => Self::Sent,
            RequestStatus::Answered => Self::Answered,
            RequestStatus::Ended => Self::Ended,
        }
    }
}

impl From<&RequestSeen> for proto::RequestSeen {
    fn from(seen: &RequestSeen) -> Self {
        let header = |(name, value): &(String, String)| proto::RequestHeader {
            name: name.clone(),
            value: value.clone(),
            ..Default::default()
        };
        Self {
            origin: MessageField::some((&seen.origin).into()),
            upstream: seen.upstream.clone(),
            method: seen.method.clone(),
            path: seen.path.clone(),
            api: seen.api.clone(),
            model: seen.model.clone(),
            subagent: seen.subagent.as_ref().map(proto::Subagent::from).into(),
            body: MessageField::some((&seen.body).into()),
            encoding: seen.encoding.clone(),
            headers: seen.headers.iter().map(header).collect(),
            replay_of: seen.replay_of,
            server: seen.server.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RequestSeen> for RequestSeen {
    type Error = BadMessage;

    fn try_from(seen: proto::RequestSeen) -> Result<Self, BadMessage> {
        Ok(Self {
            origin: required(seen.origin, "origin")?,
            upstream: seen.upstream,
            method: seen.method,
            path: seen.path,
            api: seen.api,
            model: seen.model,
            subagent: optional(seen.subagent, "subagent")?,
            body: required(seen.body, "body")?,
            encoding: seen.encoding,
            headers: seen.headers.into_iter().map(|header| (header.name, header.value)).collect(),
            replay_of: seen.replay_of,
            server: seen.server,
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

impl From<&BodyRecord> for proto::BodySize {
    /// Which pieces it is kept in is the engine's own.
    fn from(body: &BodyRecord) -> Self {
        let redactions = body.redactions.iter().map(|one| proto::Redaction {
            start: one.start as u64,
            size: one.size as u64,
            name: one.name.clone(),
            ..Default::default()
        });
        let (redacted, redactions) = (body.redacted, redactions.collect());
        Self { size: body.size, cut: body.cut, redacted, redactions, ..Default::default() }
    }
}

impl From<proto::BodySize> for BodyRecord {
    fn from(body: proto::BodySize) -> Self {
        let redactions = body.redactions.into_iter().map(|one| Redaction {
            start: usize::try_from(one.start).unwrap_or(usize::MAX),
            size: usize::try_from(one.size).unwrap_or(usize::MAX),
            name: one.name,
        });
        let (redacted, redactions) = (body.redacted, redactions.collect());
        Self { size: body.size, pieces: Vec::new(), cut: body.cut, redacted, redactions }
    }
}

impl From<&PauseReason> for proto::PauseReason {
    fn from(why: &PauseReason) -> Self {
        use proto::pause_reason::Kind;
        let (kind, rule) = match why {
            PauseReason::EveryTurn => (Kind::EveryTurn, None),
            PauseReason::NextTurn => (Kind::NextTurn, None),
            PauseReason::Capture => (Kind::Capture, None),
            PauseReason::Rule { rule } => (Kind::Rule, Some(rule.clone())),
            PauseReason::Retry => (Kind::Retry, None),
        };
        Self { kind: kind.into(), rule, ..Default::default() }
    }
}

impl TryFrom<proto::PauseReason> for PauseReason {
    type Error = BadMessage;

    fn try_from(why: proto::PauseReason) -> Result<Self, BadMessage> {
        use proto::pause_reason::Kind;
        Ok(match super::field::enumeration::<_, Kind>(why.kind, "kind")? {
            Kind::Unspecified => return Err(not_said().within("kind")),
            Kind::EveryTurn => Self::EveryTurn,
            Kind::NextTurn => Self::NextTurn,
            Kind::Capture => Self::Capture,
            Kind::Rule => Self::Rule { rule: why.rule.ok_or_else(|| BadMessage::new("rule", "it is missing"))? },
            Kind::Retry => Self::Retry,
        })
    }
}

impl From<Resumer> for proto::Resumer {
    fn from(by: Resumer) -> Self {
        match by {
            Resumer::Person => Self::Person,
            Resumer::Retry => Self::Retry,
        }
    }
}

impl TryFrom<proto::Resumer> for Resumer {
    type Error = BadMessage;

    fn try_from(by: proto::Resumer) -> Result<Self, BadMessage> {
        match by {
            proto::Resumer::Unspecified => Err(not_said()),
            proto::Resumer::Person => Ok(Self::Person),
            proto::Resumer::Retry => Ok(Self::Retry),
        }
    }
}

impl From<&SavedEdits> for proto::SavedEditsOutcome {
    fn from(saved: &SavedEdits) -> Self {
        let turn = saved.turn.as_ref().map(|turn| proto::TurnEditsOutcome {
            from: turn.from,
            applied: turn.applied.clone(),
            dropped: turn.dropped.clone(),
            ..Default::default()
        });
        Self { applied: saved.applied.clone(), drifted: saved.drifted.clone(), turn: turn.into(), ..Default::default() }
    }
}

impl From<proto::SavedEditsOutcome> for SavedEdits {
    fn from(saved: proto::SavedEditsOutcome) -> Self {
        let turn = saved.turn.into_option().map(|turn| TurnEditsOutcome {
            from: turn.from,
            applied: turn.applied,
            dropped: turn.dropped,
        });
        Self { applied: saved.applied, drifted: saved.drifted, turn }
    }
}

impl From<&TurnedAway> for proto::RequestTurnedAway {
    fn from(by: &TurnedAway) -> Self {
        let TurnedAway { tried, status, message, again } = by;
        let (status, message) = (status.map(u32::from), message.clone());
        Self { tried: *tried, status, message, again_ms: *again, ..Default::default() }
    }
}

impl TryFrom<proto::RequestTurnedAway> for TurnedAway {
    type Error = BadMessage;

    fn try_from(by: proto::RequestTurnedAway) -> Result<Self, BadMessage> {
        let status = by.status.map(http_status).transpose()?;
        Ok(Self { tried: by.tried, status, message: by.message, again: by.again_ms })
    }
}

fn http_status(status: u32) -> Result<u16, BadMessage> {
    u16::try_from(status).map_err(|_| BadMessage::new("status", format!("{status} is no HTTP status")))
}

impl From<&RequestAnswer> for proto::RequestAnswer {
    fn from(answer: &RequestAnswer) -> Self {
        let TokenUsage { input, output, cache_read, cache_written, reasoning } = answer.usage;
        let usage = proto::TokenUsage { input, output, cache_read, cache_written, reasoning, ..Default::default() };
        Self {
            status: answer.status.into(),
            body: MessageField::some((&answer.body).into()),
            content_type: answer.content_type.clone(),
            usage: MessageField::some(usage),
            finish: answer.finish.clone(),
            problem: answer.problem.clone(),
            error: answer.error.clone(),
            first_byte_ms: answer.first_byte_ms,
            total_ms: answer.total_ms,
            retries: answer.retries,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RequestAnswer> for RequestAnswer {
    type Error = BadMessage;

    fn try_from(answer: proto::RequestAnswer) -> Result<Self, BadMessage> {
        let usage = answer.usage.into_option().unwrap_or_default();
        Ok(Self {
            status: http_status(answer.status)?,
            body: required(answer.body, "body")?,
            content_type: answer.content_type,
            usage: TokenUsage {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_written: usage.cache_written,
                reasoning: usage.reasoning,
            },
            finish: answer.finish,
            problem: answer.problem,
            error: answer.error,
            first_byte_ms: answer.first_byte_ms,
            total_ms: answer.total_ms,
            retries: answer.retries,
        })
    }
}

impl From<&RequestEnd> for proto::RequestEnd {
    fn from(end: &RequestEnd) -> Self {
        use proto::request_end::Kind;
        let kind = match end {
            RequestEnd::Canceled => Kind::Canceled,
            RequestEnd::CanceledBefore => Kind::CanceledBefore,
            RequestEnd::ModeDisabled => Kind::ModeDisabled,
            RequestEnd::SessionDisposed => Kind::SessionDisposed,
            RequestEnd::Superseded { .. } => Kind::Superseded,
            RequestEnd::ClientGone => Kind::ClientGone,
            RequestEnd::EngineStopped => Kind::EngineStopped,
            RequestEnd::Failed { .. } => Kind::Failed,
            RequestEnd::Denied { .. } => Kind::Denied,
        };
        let superseded_by = if let RequestEnd::Superseded { by } = end { Some(*by) } else { None };
        Self { kind: kind.into(), message: end.message(), superseded_by, ..Default::default() }
    }
}

impl TryFrom<proto::RequestEnd> for RequestEnd {
    type Error = BadMessage;

    fn try_from(end: proto::RequestEnd) -> Result<Self, BadMessage> {
        use proto::request_end::Kind;
        Ok(match super::field::enumeration::<_, Kind>(end.kind, "kind")? {
            Kind::Unspecified => return Err(not_said().within("kind")),
            Kind::Canceled => Self::Canceled,
            Kind::CanceledBefore => Self::CanceledBefore,
            Kind::ModeDisabled => Self::ModeDisabled,
            Kind::SessionDisposed => Self::SessionDisposed,
            Kind::Superseded => Self::Superseded {
                by: end.superseded_by.ok_or_else(|| BadMessage::new("superseded_by", "it is missing"))?,
            },
            Kind::ClientGone => Self::ClientGone,
            Kind::EngineStopped => Self::EngineStopped,
            Kind::Failed => Self::Failed { message: end.message },
            Kind::Denied => Self::Denied { message: end.message },
        })
    }
}

impl From<EditKind> for proto::RequestEditKind {
    fn from(kind: EditKind) -> Self {
        match kind {
            EditKind::Set => Self::Set,
            EditKind::Delete => Self::Delete,
            EditKind::Restore => Self::Restore,
            EditKind::Append => Self::Append,
            EditKind::Shrink => Self::Shrink,
            EditKind::Repair => Self::Repair,
            EditKind::Patch => Self::Patch,
            EditKind::Pin => Self::Pin,
            EditKind::Undo => Self::Undo,
            EditKind::Redo => Self::Redo,
            EditKind::Reset => Self::Reset,
        }
    }
}

impl TryFrom<proto::RequestEditKind> for EditKind {
    type Error = BadMessage;

    fn try_from(kind: proto::RequestEditKind) -> Result<Self, BadMessage> {
        use proto::RequestEditKind as Kind;
        Ok(match kind {
            Kind::Unspecified => return Err(not_said()),
            Kind::Set => Self::Set,
            Kind::Delete => Self::Delete,
            Kind::Restore => Self::Restore,
            Kind::Append => Self::Append,
            Kind::Shrink => Self::Shrink,
            Kind::Repair => Self::Repair,
            Kind::Patch => Self::Patch,
            Kind::Pin => Self::Pin,
            Kind::Undo => Self::Undo,
            Kind::Redo => Self::Redo,
            Kind::Reset => Self::Reset,
        })
    }
}

impl From<RequestMode> for proto::RequestMode {
    fn from(mode: RequestMode) -> Self {
        match mode {
            RequestMode::Off => Self::Off,
            RequestMode::InterceptAlways => Self::InterceptAlways,
            RequestMode::AutoOverride => Self::AutoOverride,
        }
    }
}

impl From<proto::RequestMode> for Option<RequestMode> {
    fn from(mode: proto::RequestMode) -> Self {
        match mode {
            proto::RequestMode::Unspecified => None,
            proto::RequestMode::Off => Some(RequestMode::Off),
            proto::RequestMode::InterceptAlways => Some(RequestMode::InterceptAlways),
            proto::RequestMode::AutoOverride => Some(RequestMode::AutoOverride),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_known_by_its_agent_a_name_and_the_end_of_its_id() {
        assert_eq!(conversation(Some("claude"), Some("opus"), "0000-11112222"), "claude · opus · …11112222");
        assert_eq!(conversation(None, None, "short"), "agent · short");
        assert_eq!(conversation(None, None, "größeres-é"), "agent · …ößeres-é");
    }
}
