//! Blocks of conversations.

use sayso_review::SubagentMark;

use super::BadMessage;
use super::field::{enumeration, unspecified};
use crate::conversation::{BlockKind, ConversationBlock, ToolBlock};
use crate::proto;
use crate::proto::conversation_block::Kind;

impl From<&ConversationBlock> for proto::ConversationBlock {
    fn from(block: &ConversationBlock) -> Self {
        let (kind, tool) = match &block.kind {
            BlockKind::Prompt => (Kind::Prompt, None),
            BlockKind::Context => (Kind::Context, None),
            BlockKind::AssistantText => (Kind::AssistantText, None),
            BlockKind::Thinking => (Kind::Thinking, None),
            BlockKind::ToolCall(tool) => (Kind::ToolCall, Some(tool.clone())),
            BlockKind::ToolResult(tool) => (Kind::ToolResult, Some(tool.clone())),
            BlockKind::Attachment => (Kind::Attachment, None),
            BlockKind::Compaction => (Kind::Compaction, None),
        };
        let ToolBlock { call, tool, change } = tool.unwrap_or_default();
        Self {
            number: block.number,
            kind: kind.into(),
            text: block.text.clone(),
            text_size: block.text_size,
            call,
            tool,
            request: block.request,
            change,
            subagent: block.subagent.as_ref().and_then(|mark| mark.id.clone()),
            from_subagent: block.subagent.is_some(),
            time_ms: block.time,
            ..Default::default()
        }
    }
}

/// The protocol carries no parent of a subagent.
impl TryFrom<proto::ConversationBlock> for ConversationBlock {
    type Error = BadMessage;

    fn try_from(block: proto::ConversationBlock) -> Result<Self, BadMessage> {
        let tool = ToolBlock { call: block.call, tool: block.tool, change: block.change };
        let kind = match enumeration::<_, Kind>(block.kind, "kind")? {
            Kind::Unspecified => return Err(unspecified().within("kind")),
            Kind::Prompt => BlockKind::Prompt,
            Kind::Context => BlockKind::Context,
            Kind::AssistantText => BlockKind::AssistantText,
            Kind::Thinking => BlockKind::Thinking,
            Kind::ToolCall => BlockKind::ToolCall(tool),
            Kind::ToolResult => BlockKind::ToolResult(tool),
            Kind::Attachment => BlockKind::Attachment,
            Kind::Compaction => BlockKind::Compaction,
        };
        Ok(Self {
            number: block.number,
            kind,
            text: block.text,
            text_size: block.text_size,
            request: block.request,
            subagent: block.from_subagent.then_some(SubagentMark { id: block.subagent, parent: None }),
            time: block.time_ms,
        })
    }
}
