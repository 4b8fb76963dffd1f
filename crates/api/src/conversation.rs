//! Conversations of agents as typed blocks.

use sayso_review::{ChangeId, RequestId, SubagentMark};

/// The type of a block, with the call that a tool block is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Text that the user wrote.
    Prompt,
    /// Text that the agent added to the user's messages.
    Context,
    AssistantText,
    Thinking,
    /// The text has the arguments as written by the model.
    ToolCall(ToolBlock),
    ToolResult(ToolBlock),
    /// An image or a document. The text is its label.
    Attachment,
    /// The agent replaced its history by a summary. The text is empty.
    Compaction,
}

/// The call of a tool block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolBlock {
    /// Tool call id. `None` if the API has none.
    pub call: Option<String>,
    /// Tool name. `None` if unknown.
    pub tool: Option<String>,
    /// The change that the call became. `None` if there is none.
    pub change: Option<ChangeId>,
}

/// A block of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationBlock {
    /// From 1 without gaps, in the session.
    pub number: u64,
    pub kind: BlockKind,
    /// Escaped for display. Shortened if `text_size` is larger.
    pub text: String,
    /// Size of the whole text in bytes.
    pub text_size: u64,
    /// The request that the block is from.
    pub request: RequestId,
    /// `None` for blocks of the main agent.
    pub subagent: Option<SubagentMark>,
    /// Arrival of the request or response, in milliseconds since 1970.
    pub time: i64,
}

/// Consecutive blocks of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationPage {
    pub blocks: Vec<ConversationBlock>,
    /// Number of the session's last block.
    pub last: u64,
}
