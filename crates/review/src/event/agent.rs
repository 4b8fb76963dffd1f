//! Log entries of the built-in agent.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use sayso_base::ContentHash;

/// Name of the built-in agent in origins and rules.
pub const BUILT_IN_AGENT: &str = "sayso";

/// An entry in the log of a session of the built-in agent.
///
/// The writer defines the format of the content and its version. The journal stores it unread, so that an engine keeps entries that a
/// later version wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEntry {
    pub session: String,
    pub kind: AgentEntryKind,
    /// Version of the content's format.
    pub version: u32,
    /// The content. Null if it is a blob.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub content: Value,
    /// Blob with a large content, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<ContentHash>,
}

/// Reader of an [`AgentEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEntryKind {
    /// A step of the conversation.
    Log,
    /// The choices of the session.
    Settings,
    /// The todo list.
    Todos,
    /// Hashes of file contents that the model saw, added since the last entry of this kind.
    Reads,
    /// The log was cleared. Earlier entries no longer count.
    Cleared,
}
