//! The one mapping between our errors and those of a call.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use buffa::Message as _;
use connectrpc::{ConnectError, ErrorCode, ErrorDetail};
use sayso_review::ErrorKind;
use thiserror::Error;

use crate::convert::BadMessage;
use crate::convert::field::enumeration;
use crate::proto;

/// The name of the message that every error of ours carries among its details.
pub const DETAIL: &str = "sayso.v1.ErrorDetail";

/// What a call failed with, as its caller learns it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct RemoteError {
    /// What sort of failure it is.
    pub kind: ErrorKind,
    /// The code of the call.
    pub code: ErrorCode,
    /// What happened and why, for a person.
    pub message: String,
    /// What to do about it, if there is something.
    pub hint: Option<String>,
}

impl RemoteError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// The error of a call that failed with one of ours.
pub fn to_connect(kind: ErrorKind, message: String, hint: Option<String>) -> ConnectError {
    detailed(code(kind), kind, message, hint)
}

/// The error of a call that did not reach its service, for which there is a code that says more than any of ours.
pub fn with_code(code: ErrorCode, message: String, hint: Option<String>) -> ConnectError {
    detailed(code, kind(code), message, hint)
}

fn detailed(code: ErrorCode, kind: ErrorKind, message: String, hint: Option<String>) -> ConnectError {
    let detail = proto::ErrorDetail {
        kind: proto::ErrorKind::from(kind).into(),
        message: message.clone(),
        hint,
        ..Default::default()
    };
    ConnectError::new(code, message).with_detail(ErrorDetail::from_message(DETAIL, &detail))
}

/// The code that stands for a kind; the table is in `error.proto`.
fn code(kind: ErrorKind) -> ErrorCode {
    match kind {
        ErrorKind::InvalidArgs => ErrorCode::InvalidArgument,
        ErrorKind::ToolDenied | ErrorKind::FsDenied => ErrorCode::PermissionDenied,
        ErrorKind::ToolFailed => ErrorCode::Unknown,
        ErrorKind::Stale => ErrorCode::Aborted,
        ErrorKind::Conflict => ErrorCode::FailedPrecondition,
        ErrorKind::Unavailable => ErrorCode::Unavailable,
        ErrorKind::Internal => ErrorCode::Internal,
    }
}

/// What an error is that comes from before a call reached its service, or from the connection.
fn kind(code: ErrorCode) -> ErrorKind {
    match code {
        ErrorCode::Unauthenticated | ErrorCode::PermissionDenied => ErrorKind::ToolDenied,
        ErrorCode::Unavailable | ErrorCode::Canceled | ErrorCode::DeadlineExceeded | ErrorCode::ResourceExhausted => {
            ErrorKind::Unavailable
        }
        ErrorCode::NotFound | ErrorCode::Unimplemented | ErrorCode::InvalidArgument => ErrorKind::InvalidArgs,
        _ => ErrorKind::Internal,
    }
}

impl From<ConnectError> for RemoteError {
    fn from(error: ConnectError) -> Self {
        let code = error.code;
        if let Some((kind, detail)) = error.details.iter().find_map(read) {
            return Self { kind, code, message: detail.message, hint: detail.hint };
        }
        let message = error.message.filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| format!("the call failed: {}", code.as_str()));
        Self { kind: kind(code), code, message, hint: None }
    }
}

/// Reads a detail if it is ours, and if this version knows what it says.
fn read(detail: &ErrorDetail) -> Option<(ErrorKind, proto::ErrorDetail)> {
    // Over gRPC the name has the address of a registry of types before it.
    if detail.type_url.rsplit('/').next() != Some(DETAIL) {
        return None;
    }
    let text = detail.value.as_deref()?;
    let bytes = STANDARD_NO_PAD.decode(text).or_else(|_| STANDARD.decode(text)).ok()?;
    let detail = proto::ErrorDetail::decode_from_slice(&bytes).ok()?;
    Some((enumeration(detail.kind, "kind").ok()?, detail))
}

impl From<ErrorKind> for proto::ErrorKind {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidArgs => Self::InvalidArgs,
            ErrorKind::ToolDenied => Self::ToolDenied,
            ErrorKind::FsDenied => Self::FsDenied,
            ErrorKind::ToolFailed => Self::ToolFailed,
            ErrorKind::Stale => Self::Stale,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::Internal => Self::Internal,
        }
    }
}

impl TryFrom<proto::ErrorKind> for ErrorKind {
    type Error = BadMessage;

    fn try_from(kind: proto::ErrorKind) -> Result<Self, BadMessage> {
        match kind {
            proto::ErrorKind::Unspecified => Err(BadMessage::new("", "it is not said")),
            proto::ErrorKind::InvalidArgs => Ok(Self::InvalidArgs),
            proto::ErrorKind::ToolDenied => Ok(Self::ToolDenied),
            proto::ErrorKind::FsDenied => Ok(Self::FsDenied),
            proto::ErrorKind::ToolFailed => Ok(Self::ToolFailed),
            proto::ErrorKind::Stale => Ok(Self::Stale),
            proto::ErrorKind::Conflict => Ok(Self::Conflict),
            proto::ErrorKind::Unavailable => Ok(Self::Unavailable),
            proto::ErrorKind::Internal => Ok(Self::Internal),
        }
    }
}

/// So that a service refuses a message that it does not understand with `?`.
impl From<BadMessage> for ConnectError {
    fn from(error: BadMessage) -> Self {
        to_connect(error.kind(), error.to_string(), Some(error.hint().to_owned()))
    }
}
