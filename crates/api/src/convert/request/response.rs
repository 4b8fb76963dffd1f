//! The end of a request: upstream retries, the model's response, or an end without one.

use buffa::MessageField;
use sayso_review::{BodyRecord, RequestAnswer, RequestEnd, TokenUsage, UpstreamRetry};

use crate::convert::BadMessage;
use crate::convert::field::{enumeration, missing, required, unspecified};
use crate::proto;

/// The message of an end, with the edited body that was not sent.
pub(super) fn ended(end: &RequestEnd, edited: Option<&BodyRecord>) -> proto::RequestEnd {
    proto::RequestEnd { edited: edited.map(proto::BodySize::from).into(), ..end.into() }
}

pub(super) fn http_status(status: u32) -> Result<u16, BadMessage> {
    u16::try_from(status).map_err(|_| BadMessage::new("status", format!("{status} is no HTTP status")))
}

impl From<&UpstreamRetry> for proto::UpstreamRetry {
    fn from(retry: &UpstreamRetry) -> Self {
        Self {
            attempts: retry.attempts,
            status: retry.status.map(u32::from),
            message: retry.message.clone(),
            next_attempt_ms: retry.next_attempt_ms,
            ..Default::default()
        }
    }
}

impl TryFrom<proto::UpstreamRetry> for UpstreamRetry {
    type Error = BadMessage;

    fn try_from(retry: proto::UpstreamRetry) -> Result<Self, BadMessage> {
        let status = retry.status.map(http_status).transpose()?;
        let (attempts, next_attempt_ms) = (retry.attempts, retry.next_attempt_ms);
        Ok(Self { attempts, status, message: retry.message, next_attempt_ms })
    }
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
        Ok(match enumeration::<_, Kind>(end.kind, "kind")? {
            Kind::Unspecified => return Err(unspecified().within("kind")),
            Kind::Canceled => Self::Canceled,
            Kind::CanceledBefore => Self::CanceledBefore,
            Kind::ModeDisabled => Self::ModeDisabled,
            Kind::SessionDisposed => Self::SessionDisposed,
            Kind::Superseded => Self::Superseded { by: end.superseded_by.ok_or_else(|| missing("superseded_by"))? },
            Kind::ClientGone => Self::ClientGone,
            Kind::EngineStopped => Self::EngineStopped,
            Kind::Failed => Self::Failed { message: end.message },
            Kind::Denied => Self::Denied { message: end.message },
        })
    }
}
