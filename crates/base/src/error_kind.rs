//! Error kinds shared by all crates.

use std::fmt;

use serde::Serialize;

/// The kind of an error. Each kind maps to one exit code and one RPC code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Wrong arguments: types, ranges, unknown or missing fields.
    InvalidArgs,
    /// The tool is not granted.
    ToolDenied,
    /// The file is not granted, or is outside the workspace.
    FsDenied,
    /// The tool was allowed and failed.
    ToolFailed,
    /// The target changed after it was previewed.
    Stale,
    /// Two changes exclude each other.
    Conflict,
    /// A required component is not running or not built in.
    Unavailable,
    /// A defect in sayso.
    Internal,
}

impl ErrorKind {
    /// Returns the name used in protocols and JSON.
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
