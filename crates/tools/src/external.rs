//! Tools of MCP servers, as the registry holds them.

use serde_json::Value;

use crate::arguments::invalid;
use crate::error::ToolError;
use crate::step::Step;

/// Start of the names of external tools: `mcp__SERVER__TOOL`.
pub const EXTERNAL_PREFIX: &str = "mcp__";

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalTool {
    /// Name for the model: `mcp__SERVER__TOOL`, unique, with characters that every model API accepts.
    pub name: String,
    /// Name of the server in the configuration.
    pub server: String,
    /// Name of the tool on the server.
    pub tool: String,
    pub description: String,
    /// JSON schema of the arguments.
    pub schema: Value,
}

impl ExternalTool {
    /// Returns the call. Its server checks the arguments.
    pub(crate) fn prepare(&self, arguments: &Value) -> Result<Step, ToolError> {
        if !arguments.is_object() {
            return Err(invalid(format!("the arguments of `{}` are not a JSON object", self.name)));
        }
        Ok(Step::CallMcp { server: self.server.clone(), tool: self.tool.clone(), arguments: arguments.clone() })
    }
}
