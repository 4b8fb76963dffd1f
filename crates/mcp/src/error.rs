//! Errors of servers, as the model and the user read them.

use sayso_tools::ToolOutput;
use thiserror::Error;

use crate::config::BadServerConfig;

/// Error of a server or of a call. The message names the server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum McpError {
    #[error("no MCP server `{server}` is configured")]
    UnknownServer { server: String },
    #[error(transparent)]
    BadConfig(#[from] BadServerConfig),
    /// The server cannot be started or reached.
    #[error("the MCP server `{server}` does not start: {reason}")]
    Start { server: String, reason: String },
    /// The server ended or closed the connection during a call.
    #[error("the MCP server `{server}` ended during the call: {reason}; it starts again with the next call")]
    Ended { server: String, reason: String },
    /// The server ended too often in a row.
    #[error("the MCP server `{server}` ended {times} times in a row and is not started again: {reason}")]
    GivenUp { server: String, times: u32, reason: String },
    #[error("the MCP server `{server}` did not answer within {seconds} s; the call was cancelled")]
    Timeout { server: String, seconds: u64 },
    /// The server answered with an error.
    #[error("the MCP server `{server}` refused: {reason}")]
    Refused { server: String, reason: String },
}

impl McpError {
    /// Returns the next step for the user; empty if there is none.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::UnknownServer { .. } => "add it to the configuration under `[mcp_servers.NAME]`",
            Self::BadConfig(_) => "correct its table `[mcp_servers.NAME]` in the configuration",
            Self::Start { .. } | Self::GivenUp { .. } => "run its command in a terminal to see why it fails",
            Self::Timeout { .. } => "raise `call_timeout_ms` of the server if the call needs longer",
            Self::Ended { .. } | Self::Refused { .. } => "",
        }
    }
}

impl From<McpError> for ToolOutput {
    fn from(error: McpError) -> Self {
        Self::error(error.to_string())
    }
}
