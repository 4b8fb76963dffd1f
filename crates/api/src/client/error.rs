//! Why a call did not succeed.

use connectrpc::{ConnectError, ErrorCode};
use sayso_review::ErrorKind;

use super::transport::TransportError;
use crate::error::RemoteError;

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The engine says no.
    #[error("{0}")]
    Remote(#[from] RemoteError),
    /// There is no engine, or it went away.
    #[error("the engine cannot be reached: {why}")]
    Unreachable {
        /// Why.
        why: String,
        /// What may have become of the call.
        fate: Fate,
    },
    /// The engine says something that cannot be.
    #[error("the engine's answer was not understood: {why}")]
    BadMessage {
        /// Why.
        why: String,
    },
}

/// What may have become of a call that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing: it never reached the engine, or does nothing.
    Nothing,
    /// The engine may have carried it out.
    Unknown,
}

impl ClientError {
    #[expect(clippy::needless_pass_by_value, reason = "errors are mapped with it")]
    pub(super) fn bad(why: impl ToString) -> Self {
        Self::BadMessage { why: why.to_string() }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Remote(error) => error.kind,
            Self::Unreachable { .. } => ErrorKind::Unavailable,
            Self::BadMessage { .. } => ErrorKind::Internal,
        }
    }

    /// What to do about it, if there is something.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Remote(error) => error.hint.as_deref(),
            Self::Unreachable { fate: Fate::Nothing, .. } => Some("run it again; `sayso doctor` shows what runs"),
            Self::Unreachable { fate: Fate::Unknown, .. } => {
                Some("it may have been done: look at `sayso log` before trying again")
            }
            Self::BadMessage { .. } => Some("use the same version of sayso on both sides"),
        }
    }
}

/// How a call ended that did not succeed.
#[derive(Debug)]
pub(super) enum Ended {
    /// It never reached the engine.
    Unsent(String),
    /// It was sent, and there is no answer.
    Cut(String),
    /// It was answered.
    Answered(ClientError),
}

impl From<ConnectError> for Ended {
    fn from(error: ConnectError) -> Self {
        match std::error::Error::source(&error).and_then(|source| source.downcast_ref::<TransportError>()) {
            Some(unsent @ TransportError::Unsent(_)) => Self::Unsent(unsent.to_string()),
            Some(cut @ TransportError::Cut(_)) => Self::Cut(cut.to_string()),
            None => Self::Answered(ClientError::Remote(error.into())),
        }
    }
}

impl Ended {
    /// How a stream ended. One that was cut, or whose engine stops, is gone on with elsewhere.
    pub(super) fn of_stream(error: ConnectError) -> Self {
        let says_something = !error.details.is_empty();
        match error.code {
            ErrorCode::Unavailable => Self::Unsent(error.to_string()),
            // What is said of a body that ended in the middle.
            ErrorCode::Internal | ErrorCode::Unknown | ErrorCode::Canceled if !says_something => {
                Self::Unsent(error.to_string())
            }
            _ => error.into(),
        }
    }
}
