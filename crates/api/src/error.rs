//! stub until the helper's is merged
use connectrpc::{ConnectError, ErrorCode};
use sayso_review::ErrorKind;
/// What an engine says went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RemoteError {
    /// Kind.
    pub kind: ErrorKind,
    /// Code.
    pub code: ErrorCode,
    /// Message.
    pub message: String,
    /// Hint.
    pub hint: Option<String>,
}
impl From<ConnectError> for RemoteError {
    fn from(e: ConnectError) -> Self {
        Self { kind: ErrorKind::Internal, code: e.code, message: e.message.clone().unwrap_or_default(), hint: None }
    }
}
