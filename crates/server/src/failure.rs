//! Why a call failed, on its way to the client.

use connectrpc::ConnectError;
use sayso_api::convert::BadMessage;
use sayso_gate::GateError;
use sayso_journal::ReadJournalError;
use sayso_proxy::ReplayError;
use sayso_proxy::desk::{EditRequestError, EndError, SavedError};
use sayso_review::{ErrorKind, PolicyError, ProposalError, WsPathError};
use sayso_tools::ToolError;
use sayso_workspace::OpenError;
use sayso_workspace::git::{BranchNameError, GitError};

/// Why a call failed. Becomes an RPC error in one place.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What sort of failure it is.
    pub kind: ErrorKind,
    /// What happened and why, for a person.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Work that panicked, which is a fault of ours and nobody's input.
    pub(crate) fn panicked(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "a call panicked");
        Self::new(ErrorKind::Internal, "a fault of sayso ended this call")
            .hint("what was recorded is whole; the engine's log says more")
    }
}

impl From<Failure> for ConnectError {
    fn from(failure: Failure) -> Self {
        // Here every call comes by that fails, within the span that names it.
        let Failure { kind, message: reason, .. } = &failure;
        match kind {
            ErrorKind::Internal => tracing::error!(%kind, %reason, "a call failed"),
            ErrorKind::Unavailable => tracing::warn!(%kind, %reason, "a call failed"),
            _ => tracing::info!(%kind, %reason, "a call failed"),
        }
        sayso_api::error::to_connect(failure.kind, failure.message, failure.hint)
    }
}

/// Errors that know their kind and their hint.
macro_rules! from_errors {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let hint: Option<String> = MaybeHint::maybe(error.hint());
                Self { kind: error.kind(), message: error.to_string(), hint }
            }
        }
    )*};
}

/// What there is to do about an error, in whatever form the error says so.
trait MaybeHint {
    fn maybe(self) -> Option<String>;
}

impl MaybeHint for Option<String> {
    fn maybe(self) -> Option<String> {
        self
    }
}

impl MaybeHint for String {
    fn maybe(self) -> Option<String> {
        Some(self)
    }
}

impl MaybeHint for Option<&str> {
    fn maybe(self) -> Option<String> {
        self.map(str::to_owned)
    }
}

impl MaybeHint for &str {
    fn maybe(self) -> Option<String> {
        Some(self.to_owned())
    }
}

from_errors!(BadMessage, BranchNameError, GateError, GitError, PolicyError, ProposalError, ReadJournalError);
from_errors!(EditRequestError, EndError, ReplayError, SavedError);

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self { kind: error.kind, message: error.message, hint: error.hint }
    }
}

impl From<WsPathError> for Failure {
    fn from(error: WsPathError) -> Self {
        Self::new(ErrorKind::FsDenied, error.to_string())
            .hint("paths are relative to the workspace, or absolute beneath its root")
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        ToolError::from(error).into()
    }
}
