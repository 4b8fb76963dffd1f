//! Errors of tool calls.

use sayso_review::ErrorKind;
use sayso_workspace::{OpenError, ReadError, WsPathError};
use serde::Serialize;

/// Error of a tool call, shown to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolError {
    pub kind: ErrorKind,
    /// States the failure and names the input.
    pub message: String,
    /// Advice for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ToolError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<WsPathError> for ToolError {
    fn from(error: WsPathError) -> Self {
        let kind = match error {
            WsPathError::Empty | WsPathError::Nul(_) => ErrorKind::InvalidArgs,
            WsPathError::Absolute(_) | WsPathError::Parent(_) => ErrorKind::FsDenied,
        };
        Self::new(kind, error.to_string()).hint("name a file inside the workspace, relative to it or by its full path")
    }
}

impl From<OpenError> for ToolError {
    fn from(error: OpenError) -> Self {
        let message = error.to_string();
        match error {
            OpenError::Outside { .. } => Self::new(ErrorKind::FsDenied, message)
                .hint("name a file inside the workspace that is no link to the outside"),
            OpenError::NotFound(_) => {
                Self::new(ErrorKind::ToolFailed, message).hint("use List or Glob to see the files")
            }
            OpenError::NotADirectory(_) => {
                Self::new(ErrorKind::ToolFailed, message).hint("name a directory, or use Read for a file")
            }
            _ => Self::new(ErrorKind::ToolFailed, message),
        }
    }
}

impl From<ReadError> for ToolError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Open(error) => error.into(),
            ReadError::Directory(_) => {
                Self::new(ErrorKind::ToolFailed, error.to_string()).hint("name a file, or use List for a directory")
            }
            ReadError::TooLarge { .. } => {
                Self::new(ErrorKind::ToolFailed, error.to_string()).hint("name a file of at most 4 MB")
            }
            _ => Self::new(ErrorKind::ToolFailed, error.to_string()),
        }
    }
}
