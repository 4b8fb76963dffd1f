//! A conversation as blocks, read from the requests and responses of an agent.
//!
//! A request to a model repeats the whole conversation. [`Transcript`] emits each block once: it counts equal blocks, and emits
//! those of a request beyond the number that it has emitted before. So a prompt that is repeated word for word appears as often as
//! it was written, a response appears when it arrives and not again in the next request, and a retry adds nothing.
//!
//! After a compaction the history is shorter, and its counts start over: blocks that survived it stay emitted, the summary is new.
//!
//! # Limits
//!
//! - Reasoning appears with its response only: requests carry it signed or encrypted.
//! - One transcript is one conversation. The caller separates sessions and subagents, and leaves out requests that are no turn of
//!   a conversation, such as titles and token counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::conversation::hash;
use crate::json::text;
use crate::request::ModelRequest;
use crate::section::{ContentKind, NodeType, Section, SectionKind};
use crate::stream::ModelResponse;
use crate::stream::collect::BlockContent;

/// A block of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptBlock {
    pub kind: TranscriptBlockKind,
    /// Text, tool arguments or tool output. Empty for [`TranscriptBlockKind::Compaction`].
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TranscriptBlockKind {
    /// Text that the user wrote.
    Prompt,
    /// Text that the agent added to the user's messages.
    Context,
    AssistantText,
    Thinking,
    ToolCall(ToolReference),
    ToolResult(ToolReference),
    /// An image or a document of the user. The text is its label.
    Attachment,
    /// The agent replaced its history. A summary usually follows as a prompt or context.
    Compaction,
}

/// The tool call that a block belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReference {
    /// Tool call id. Gemini has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl TranscriptBlock {
    /// Returns the key by which equal blocks are counted.
    fn key(&self) -> String {
        let text = hash(self.text.trim().as_bytes());
        let tool = |kind: &str, tool: &ToolReference| match &tool.id {
            Some(id) => format!("{kind}:{id}"),
            None => format!("{kind}:{}:{text}", tool.name.as_deref().unwrap_or_default()),
        };
        match &self.kind {
            TranscriptBlockKind::ToolCall(reference) => tool("call", reference),
            TranscriptBlockKind::ToolResult(reference) => tool("result", reference),
            TranscriptBlockKind::Prompt => format!("prompt:{text}"),
            TranscriptBlockKind::Context => format!("context:{text}"),
            TranscriptBlockKind::AssistantText => format!("assistant:{text}"),
            TranscriptBlockKind::Thinking => format!("thinking:{text}"),
            TranscriptBlockKind::Attachment => format!("attachment:{text}"),
            TranscriptBlockKind::Compaction => "compaction".to_owned(),
        }
    }
}

/// The fold over the requests and responses of one conversation.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// Number of emitted blocks per key.
    emitted: BTreeMap<String, usize>,
    /// Messages of the last request. See [`ModelRequest::message_hashes`].
    last_messages: Vec<String>,
}

impl Transcript {
    /// Starts the transcript of a subagent whose first request may repeat the conversation of its parent. What the parent has emitted is
    /// not repeated.
    #[must_use]
    pub fn of_subagent(&self, first: &ModelRequest) -> Self {
        let is_inherited = |block: &TranscriptBlock| match block.kind {
            TranscriptBlockKind::AssistantText | TranscriptBlockKind::ToolCall(_) => {
                self.emitted.contains_key(&block.key())
            }
            _ => false,
        };
        if !request_blocks(first).iter().any(is_inherited) {
            return Self::default();
        }
        let mut emitted = self.emitted.clone();
        // The parent shows the results of its calls. A subagent gets placeholders for those that are not there yet.
        for call in self.emitted.keys().filter_map(|key| key.strip_prefix("call:")) {
            emitted.entry(format!("result:{call}")).or_insert(1);
        }
        Self { emitted, last_messages: Vec::new() }
    }

    /// Returns the blocks that a request adds to the conversation.
    pub fn push_request(&mut self, request: &ModelRequest) -> Vec<TranscriptBlock> {
        let blocks = request_blocks(request);
        if has_remote_history(request) {
            for block in &blocks {
                *self.emitted.entry(block.key()).or_default() += 1;
            }
            return blocks;
        }
        let messages = request.message_hashes();
        let mut new = Vec::new();
        if messages.len() < self.last_messages.len() && !self.last_messages.starts_with(&messages) {
            new.push(TranscriptBlock { kind: TranscriptBlockKind::Compaction, text: String::new() });
            let present = count_keys(&blocks);
            let kept = |key: &String, count: &mut usize| {
                *count = (*count).min(present.get(key).copied().unwrap_or(0));
                *count > 0
            };
            self.emitted.retain(kept);
        }
        self.last_messages = messages;
        let mut present: BTreeMap<String, usize> = BTreeMap::new();
        for block in blocks {
            let key = block.key();
            let occurrence = present.entry(key.clone()).or_default();
            *occurrence += 1;
            let emitted = self.emitted.entry(key).or_default();
            if *occurrence > *emitted {
                *emitted = *occurrence;
                new.push(block);
            }
        }
        new
    }

    /// Returns the blocks of a response.
    pub fn push_response(&mut self, response: &ModelResponse) -> Vec<TranscriptBlock> {
        let blocks: Vec<TranscriptBlock> =
            response.blocks.iter().filter_map(|block| response_block(&block.content)).collect();
        for block in &blocks {
            *self.emitted.entry(block.key()).or_default() += 1;
        }
        blocks
    }
}

fn count_keys(blocks: &[TranscriptBlock]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for block in blocks {
        *counts.entry(block.key()).or_default() += 1;
    }
    counts
}

/// `true` if the server holds the earlier messages, and the request has the new ones only.
fn has_remote_history(request: &ModelRequest) -> bool {
    let body = request.document();
    body.is_some_and(|body| body.member(body.root(), "previous_response_id").is_some_and(|id| body.text(id).is_some()))
}

fn response_block(content: &BlockContent) -> Option<TranscriptBlock> {
    let some = |text: &String| (!text.trim().is_empty()).then(|| text.clone());
    let non_empty = |text: &String| (!text.is_empty()).then(|| text.clone());
    Some(match content {
        BlockContent::Text(text) => TranscriptBlock { kind: TranscriptBlockKind::AssistantText, text: some(text)? },
        BlockContent::Thinking(text) => TranscriptBlock { kind: TranscriptBlockKind::Thinking, text: some(text)? },
        BlockContent::ToolCall { id, name, arguments, .. } => TranscriptBlock {
            kind: TranscriptBlockKind::ToolCall(ToolReference { id: non_empty(id), name: non_empty(name) }),
            text: arguments.clone(),
        },
    })
}

/// Returns the blocks of all messages of a request, in order.
fn request_blocks(request: &ModelRequest) -> Vec<TranscriptBlock> {
    let sections: Vec<&Section> = request.sections().filter(|section| !section.deleted).collect();
    let mut blocks = Vec::new();
    let mut index = 0;
    while index < sections.len() {
        let section = sections[index];
        index += 1;
        if section.content == ContentKind::Opaque && section.tool.is_none() {
            // Parts of sealed reasoning, such as its summary, appeared with the response.
            index = end_of_section(&sections, index, section);
            continue;
        }
        let is_part = matches!(section.node, NodeType::Message | NodeType::ContentPart | NodeType::ToolCall);
        if !is_part || section.message_index.is_none() {
            continue;
        }
        let reference =
            section.tool.as_ref().map(|tool| ToolReference { id: tool.id.clone(), name: tool.name.clone() });
        let text = || request.content(section).into_owned();
        let block = match (section.node, section.kind, reference) {
            (NodeType::ToolCall, _, Some(reference)) => {
                Some(TranscriptBlock { kind: TranscriptBlockKind::ToolCall(reference), text: text() })
            }
            (_, SectionKind::Tool, Some(reference)) => {
                let end = end_of_section(&sections, index, section);
                let text = result_text(request, section, &sections[index..end]);
                index = end;
                Some(TranscriptBlock { kind: TranscriptBlockKind::ToolResult(reference), text })
            }
            (_, kind, None) if section.content == ContentKind::Image && kind == SectionKind::User => {
                Some(TranscriptBlock { kind: TranscriptBlockKind::Attachment, text: section.label.clone() })
            }
            (_, kind, None) if section.content == ContentKind::Text && section.leaf.is_some() => {
                if kind == SectionKind::User {
                    let end = end_of_section(&sections, index, section);
                    blocks.extend(user_blocks(request, section, &sections[index..end]));
                    index = end;
                    continue;
                }
                let kind = match kind {
                    SectionKind::Context => Some(TranscriptBlockKind::Context),
                    SectionKind::Assistant => Some(TranscriptBlockKind::AssistantText),
                    _ => None,
                };
                kind.map(|kind| TranscriptBlock { kind, text: text() }).filter(|block| !block.text.trim().is_empty())
            }
            _ => None,
        };
        blocks.extend(block);
    }
    blocks
}

/// Returns the blocks of a user's text: context that the agent put between tags, and what the user wrote around it.
fn user_blocks(request: &ModelRequest, section: &Section, descendants: &[&Section]) -> Vec<TranscriptBlock> {
    let whole = || TranscriptBlock { kind: TranscriptBlockKind::Prompt, text: request.content(section).into_owned() };
    let body = request.document();
    let raw = body.zip(section.leaf).map(|(body, leaf)| body.raw(leaf)).filter(|raw| raw.starts_with(b"\""));
    let Some(raw) = raw.and_then(|raw| raw.get(1..raw.len() - 1)) else { return vec![whole()] };
    let is_context = |tag: &&&Section| tag.parent == Some(section.id) && tag.kind == SectionKind::Context;
    let (mut blocks, mut written, mut position) = (Vec::new(), Vec::new(), 0);
    for tag in descendants.iter().filter(is_context) {
        // The label is the opening tag. The closing one has a slash more.
        let Some(inner) = &tag.range else { continue };
        let tags = inner.start.saturating_sub(tag.label.len())..inner.end + tag.label.len() + 1;
        let (Some(before), Some(context)) = (raw.get(position..tags.start), raw.get(tags.clone())) else { continue };
        written.extend_from_slice(before);
        position = tags.end;
        let text = text::decode(context).into_owned();
        blocks.push(TranscriptBlock { kind: TranscriptBlockKind::Context, text });
    }
    if blocks.is_empty() {
        return Some(whole()).filter(|block| !block.text.trim().is_empty()).into_iter().collect();
    }
    written.extend_from_slice(raw.get(position..).unwrap_or_default());
    let text = text::decode(&written).trim().to_owned();
    if !text.is_empty() {
        blocks.push(TranscriptBlock { kind: TranscriptBlockKind::Prompt, text });
    }
    blocks
}

/// Returns the index behind the descendants of a section. They follow it directly.
fn end_of_section(sections: &[&Section], from: usize, section: &Section) -> usize {
    let mut inside = vec![section.id];
    let mut end = from;
    while let Some(next) = sections.get(end).filter(|next| next.parent.is_some_and(|parent| inside.contains(&parent))) {
        inside.push(next.id);
        end += 1;
    }
    end
}

/// Returns the text of a tool result: its own, or that of its parts.
fn result_text(request: &ModelRequest, section: &Section, descendants: &[&Section]) -> String {
    if section.leaf.is_some() {
        return request.content(section).into_owned();
    }
    let parts = descendants.iter().filter(|part| part.node == NodeType::ContentPart && part.leaf.is_some());
    let texts: Vec<String> = parts.map(|part| request.content(part).into_owned()).collect();
    if texts.is_empty() { request.content(section).into_owned() } else { texts.join("\n") }
}
