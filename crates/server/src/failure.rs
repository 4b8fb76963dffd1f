//! Errors of calls.

use std::fmt;

use connectrpc::ConnectError;
use sayso_api::convert::BadMessage;
use sayso_api::error::{ErrorData, to_connect, to_connect_with};
use sayso_gate::GateError;
use sayso_journal::ReadJournalError;
use sayso_proxy::ReplayError;
use sayso_proxy::interceptor::{EditRequestError, ResumeError, StateFileError};
use sayso_review::{ErrorKind, PolicyError, ProposalError, WsPathError};
use sayso_tools::ToolError;
use sayso_workspace::OpenError;
use sayso_workspace::git::{BranchNameError, GitError};

/// Error of a call. All errors become RPC errors here.
#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: ErrorKind,
    /// Failure and cause, for a person.
    pub message: String,
    /// Imperative, for a person.
    pub hint: Option<String>,
    /// The failure as data, for a program.
    pub data: Option<ErrorData>,
}

impl Failure {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, data: None }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    #[must_use]
    pub(crate) fn data(self, data: ErrorData) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn panicked(error: &dyn fmt::Display) -> Self {
        tracing::error!(%error, "a call panicked");
        Self::new(ErrorKind::Internal, "internal error: the call panicked")
            .hint("check the engine's log; recorded data is intact")
    }
}

impl From<Failure> for ConnectError {
    fn from(failure: Failure) -> Self {
        // Every failed call passes here, inside the span with its request id.
        let Failure { kind, message: reason, .. } = &failure;
        match kind {
            ErrorKind::Internal => tracing::error!(%kind, %reason, "a call failed"),
            ErrorKind::Unavailable => tracing::warn!(%kind, %reason, "a call failed"),
            _ => tracing::info!(%kind, %reason, "a call failed"),
        }
        let Failure { kind, message, hint, data } = failure;
        match data {
            Some(data) => to_connect_with(kind, message, hint, data),
            None => to_connect(kind, message, hint),
        }
    }
}

/// Implements `From` for errors with a kind and a hint.
macro_rules! from_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let hint = error.hint().into_hint();
                Self { hint, ..Self::new(error.kind(), error.to_string()) }
            }
        }
    )*};
}

/// The forms in which errors return a hint.
trait IntoHint {
    fn into_hint(self) -> Option<String>;
}

impl IntoHint for Option<String> {
    fn into_hint(self) -> Option<String> {
        self
    }
}

impl IntoHint for String {
    fn into_hint(self) -> Option<String> {
        Some(self)
    }
}

impl IntoHint for Option<&str> {
    fn into_hint(self) -> Option<String> {
        self.map(str::to_owned)
    }
}

impl IntoHint for &str {
    fn into_hint(self) -> Option<String> {
        Some(self.to_owned())
    }
}

from_errors!(BranchNameError, GateError, GitError, PolicyError, ProposalError, ReadJournalError);
from_errors!(EditRequestError, ResumeError, ReplayError, StateFileError);

impl From<BadMessage> for Failure {
    fn from(error: BadMessage) -> Self {
        let failure = Self::new(error.kind(), error.to_string()).hint(error.hint());
        failure.data(ErrorData::InvalidField { field: error.field, reason: error.reason })
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self { hint: error.hint, ..Self::new(error.kind, error.message) }
    }
}

impl From<WsPathError> for Failure {
    fn from(error: WsPathError) -> Self {
        Self::new(ErrorKind::FsDenied, error.to_string())
            .hint("use a path relative to the workspace, or absolute below its root")
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        ToolError::from(error).into()
    }
}
