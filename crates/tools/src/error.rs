//! Why a tool call did not succeed, as an agent is told.

use sayso_review::ErrorKind;
use sayso_workspace::{OpenError, ReadError, WsPathError};
use serde::Serialize;

/// What an agent gets in place of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolError {
    /// What sort of failure.
    pub kind: ErrorKind,
    /// What happened, naming the input.
    pub message: String,
    /// What to do about it, where there is something.
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
                .hint("only files that lie inside the workspace themselves can be reached"),
            OpenError::NotFound(_) => Self::new(ErrorKind::ToolFailed, message).hint("List or Glob show what there is"),
            OpenError::NotADirectory(_) => {
                Self::new(ErrorKind::ToolFailed, message).hint("name a directory; Read shows a file")
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
                Self::new(ErrorKind::ToolFailed, error.to_string()).hint("name a file; List shows a directory")
            }
            ReadError::TooLarge { .. } => {
                Self::new(ErrorKind::ToolFailed, error.to_string()).hint("this tool reads files of at most 4 MB")
            }
            _ => Self::new(ErrorKind::ToolFailed, error.to_string()),
        }
    }
}
