//! The kinds that every error has.

use std::fmt;

use serde::Serialize;

/// What sort of failure an error is. Kinds map once to exit codes and once to RPC codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The arguments are wrong: types, ranges, unknown or missing fields.
    InvalidArgs,
    /// The tool was not granted.
    ToolDenied,
    /// The file was not granted, or lies outside the workspace.
    FsDenied,
    /// The tool was allowed and could not do it.
    ToolFailed,
    /// What was to be changed has changed since it was shown.
    Stale,
    /// Two changes cannot both be made.
    Conflict,
    /// What is needed is not running or not built in.
    Unavailable,
    /// A fault of ours.
    Internal,
}

impl ErrorKind {
    /// The name that programs see.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgs => "invalid_args",
            Self::ToolDenied => "tool_denied",
            Self::FsDenied => "fs_denied",
            Self::ToolFailed => "tool_failed",
            Self::Stale => "stale",
            Self::Conflict => "conflict",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
