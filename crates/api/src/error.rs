//! Mapping between errors of sayso and of RPC calls.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use buffa::Message as _;
use connectrpc::{ConnectError, ErrorCode, ErrorDetail};
use sayso_review::ErrorKind;
use thiserror::Error;

use crate::convert::BadMessage;
use crate::convert::field::{enumeration, unspecified};
use crate::proto;
use crate::proto::error_detail::{AmbiguousSession, InvalidField, PathNotFound};
use crate::proto::oneof::error_detail::Data;

/// Name of the message among the details of every error of a service.
pub const DETAIL: &str = "sayso.v1.ErrorDetail";

/// Error that an engine returned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct RemoteError {
    pub kind: ErrorKind,
    pub code: ErrorCode,
    /// Failure and cause, for a person.
    pub message: String,
    /// Imperative, for a person.
    pub hint: Option<String>,
    /// The failure as data, for a program.
    pub data: Option<ErrorData>,
}

/// A failure as data, where a client can act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorData {
    /// A path of a model request that does not exist.
    PathNotFound {
        /// As the client sent it.
        path: String,
        /// Existing paths that resemble it, best match first.
        similar: Vec<String>,
    },
    /// A field of the request message that the engine does not understand.
    InvalidField {
        /// From the top of the message down.
        field: String,
        reason: String,
    },
    /// A part of a session id that does not name exactly one session.
    AmbiguousSession {
        /// As the client sent it.
        given: String,
        /// The first matching ids in alphabetical order; empty if no session matches.
        matches: Vec<String>,
        /// Number of all matches.
        count: u64,
    },
}

impl RemoteError {
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// Builds the RPC error of a failed call.
pub fn to_connect(kind: ErrorKind, message: String, hint: Option<String>) -> ConnectError {
    detailed(code(kind), kind, message, hint, None)
}

/// Builds the RPC error of a failed call, with the failure as data.
pub fn to_connect_with(kind: ErrorKind, message: String, hint: Option<String>, data: ErrorData) -> ConnectError {
    detailed(code(kind), kind, message, hint, Some(data))
}

/// Builds the RPC error of a call that was rejected before it reached a service, with a code that no [`ErrorKind`] maps to.
pub fn with_code(code: ErrorCode, message: String, hint: Option<String>) -> ConnectError {
    detailed(code, kind(code), message, hint, None)
}

fn detailed(
    code: ErrorCode,
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    data: Option<ErrorData>,
) -> ConnectError {
    let detail = proto::ErrorDetail {
        kind: proto::ErrorKind::from(kind).into(),
        message: message.clone(),
        hint,
        data: data.map(Data::from),
        ..Default::default()
    };
    ConnectError::new(code, message).with_detail(ErrorDetail::from_message(DETAIL, &detail))
}

/// RPC code of a kind, as in the table of `error.proto`.
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

/// Kind of an error without a detail: rejected before the service, or a failure of the RPC library or the connection.
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
        if let Some((kind, detail)) = error.details.iter().find_map(decode) {
            let data = detail.data.map(ErrorData::from);
            return Self { kind, code, message: detail.message, hint: detail.hint, data };
        }
        let message = error.message.filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| format!("the call failed: {}", code.as_str()));
        Self { kind: kind(code), code, message, hint: None, data: None }
    }
}

/// Decodes an [`ErrorDetail`] of sayso. Returns `None` for other details, and for a kind that this version does not know.
fn decode(detail: &ErrorDetail) -> Option<(ErrorKind, proto::ErrorDetail)> {
    // gRPC prefixes the name with the address of a type registry.
    if detail.type_url.rsplit('/').next() != Some(DETAIL) {
        return None;
    }
    let text = detail.value.as_deref()?;
    let bytes = STANDARD_NO_PAD.decode(text).or_else(|_| STANDARD.decode(text)).ok()?;
    let detail = proto::ErrorDetail::decode_from_slice(&bytes).ok()?;
    Some((enumeration(detail.kind, "kind").ok()?, detail))
}

impl From<ErrorData> for Data {
    fn from(data: ErrorData) -> Self {
        match data {
            ErrorData::PathNotFound { path, similar } => PathNotFound { path, similar, ..Default::default() }.into(),
            ErrorData::InvalidField { field, reason } => InvalidField { field, reason, ..Default::default() }.into(),
            ErrorData::AmbiguousSession { given, matches, count } => {
                AmbiguousSession { given, matches, count, ..Default::default() }.into()
            }
        }
    }
}

impl From<Data> for ErrorData {
    fn from(data: Data) -> Self {
        match data {
            Data::PathNotFound(data) => Self::PathNotFound { path: data.path, similar: data.similar },
            Data::InvalidField(data) => Self::InvalidField { field: data.field, reason: data.reason },
            Data::AmbiguousSession(data) => {
                Self::AmbiguousSession { given: data.given, matches: data.matches, count: data.count }
            }
        }
    }
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
            proto::ErrorKind::Unspecified => Err(unspecified()),
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

/// Lets a service reject an unreadable message with `?`.
impl From<BadMessage> for ConnectError {
    fn from(error: BadMessage) -> Self {
        let (kind, message, hint) = (error.kind(), error.to_string(), error.hint().to_owned());
        let data = ErrorData::InvalidField { field: error.field, reason: error.reason };
        to_connect_with(kind, message, Some(hint), data)
    }
}
