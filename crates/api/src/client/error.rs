//! Errors of calls, and the failures of single attempts.

use connectrpc::{ConnectError, ErrorCode};
use sayso_review::ErrorKind;

use super::transport::TransportError;
use crate::error::{ErrorData, RemoteError};

/// Failure of a call, after all retries.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The engine returned an error.
    #[error("{0}")]
    Remote(#[from] RemoteError),
    /// No engine runs, or the connection to it was lost.
    #[error("cannot reach the engine: {cause}")]
    Unreachable { cause: String, side_effect: SideEffect },
    /// The engine violated the protocol.
    #[error("cannot read the engine's response: {cause}")]
    BadMessage { cause: String },
}

/// Possible effect of a call without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect {
    /// The call did not reach the engine, or has no effect.
    None,
    /// The engine may have carried it out.
    Unknown,
}

impl ClientError {
    #[expect(clippy::needless_pass_by_value, reason = "callers pass it to `map_err` by name")]
    pub(super) fn bad(cause: impl ToString) -> Self {
        Self::BadMessage { cause: cause.to_string() }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Remote(error) => error.kind,
            Self::Unreachable { .. } => ErrorKind::Unavailable,
            Self::BadMessage { .. } => ErrorKind::Internal,
        }
    }

    /// Imperative, for a person.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Remote(error) => error.hint.as_deref(),
            Self::Unreachable { side_effect: SideEffect::None, .. } => {
                Some("run it again; `sayso doctor` lists running engines")
            }
            Self::Unreachable { side_effect: SideEffect::Unknown, .. } => {
                Some("check `sayso log` before running it again: the engine may have carried it out")
            }
            Self::BadMessage { .. } => Some("run the same version of sayso on both sides"),
        }
    }

    /// The failure as data, if the engine sent it.
    pub fn data(&self) -> Option<&ErrorData> {
        match self {
            Self::Remote(error) => error.data.as_ref(),
            Self::Unreachable { .. } | Self::BadMessage { .. } => None,
        }
    }
}

/// Failure of one attempt.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// The engine did not read the request completely.
    NotSent(String),
    /// The request was sent and no response arrived.
    ConnectionLost(String),
    /// The engine responded with an error.
    Remote(ClientError),
}

impl From<ConnectError> for CallFailure {
    fn from(error: ConnectError) -> Self {
        match std::error::Error::source(&error).and_then(|source| source.downcast_ref::<TransportError>()) {
            Some(not_sent @ TransportError::NotSent(_)) => Self::NotSent(not_sent.to_string()),
            Some(lost @ TransportError::ConnectionLost(_)) => Self::ConnectionLost(lost.to_string()),
            None => Self::Remote(ClientError::Remote(error.into())),
        }
    }
}

impl CallFailure {
    /// Classifies the end of a stream. A lost connection and a stopping engine count as `NotSent`: reading a stream has no
    /// effect, so the caller opens it again.
    pub(super) fn of_stream(error: ConnectError) -> Self {
        let is_from_engine = !error.details.is_empty();
        match error.code {
            ErrorCode::Unavailable => Self::NotSent(error.to_string()),
            // The RPC library reports a truncated body with these codes and without details.
            ErrorCode::Internal | ErrorCode::Unknown | ErrorCode::Canceled if !is_from_engine => {
                Self::NotSent(error.to_string())
            }
            _ => error.into(),
        }
    }
}
