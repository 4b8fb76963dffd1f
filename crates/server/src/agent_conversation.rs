//! Conversations of the built-in agent, read from its log.
//!
//! Each entry of the log adds blocks of its own, once. Other agents' conversations are derived from their model traffic instead.

use sayso_agent::Entry;
use sayso_agent::log::{AssistantBlock, ImageData};
use sayso_wire::{ToolReference, TranscriptBlock, TranscriptBlockKind};

/// A block of an entry, and the request that it belongs to.
pub(crate) struct EntryBlock {
    pub(crate) block: TranscriptBlock,
    /// 0 if the entry names none.
    pub(crate) request: u64,
}

/// Returns the blocks that an entry adds to the conversation.
pub(crate) fn blocks(entry: &Entry) -> Vec<EntryBlock> {
    let block = |kind, text: &str, request: Option<u64>| EntryBlock {
        block: TranscriptBlock { kind, text: text.to_owned() },
        request: request.unwrap_or(0),
    };
    match entry {
        Entry::Prompt(prompt) => {
            let mut blocks = vec![block(TranscriptBlockKind::Prompt, &prompt.text, None)];
            blocks.extend(prompt.files.iter().map(|file| block(TranscriptBlockKind::Attachment, &file.path, None)));
            let image = |image: &ImageData| block(TranscriptBlockKind::Attachment, &image.media_type, None);
            blocks.extend(prompt.images.iter().map(image));
            blocks
        }
        Entry::Message { text, .. } => vec![block(TranscriptBlockKind::Context, text, None)],
        Entry::Assistant(message) => {
            let kind = |content: &AssistantBlock| match content {
                AssistantBlock::Text { text, .. } => (TranscriptBlockKind::AssistantText, text.clone()),
                AssistantBlock::Thinking { text, .. } => (TranscriptBlockKind::Thinking, text.clone()),
                AssistantBlock::ToolCall(call) => {
                    let tool = ToolReference { id: Some(call.id.clone()), name: Some(call.name.clone()) };
                    (TranscriptBlockKind::ToolCall(tool), call.arguments.clone())
                }
            };
            let contents = message.blocks.iter().map(kind);
            contents.map(|(kind, text)| block(kind, &text, message.request)).collect()
        }
        Entry::Result(result) => {
            let tool = ToolReference { id: Some(result.call.clone()), name: None };
            vec![block(TranscriptBlockKind::ToolResult(tool), &result.text, None)]
        }
        Entry::Compacted { summary, request, .. } => {
            vec![
                block(TranscriptBlockKind::Compaction, "", *request),
                block(TranscriptBlockKind::Context, summary, *request),
            ]
        }
        _ => Vec::new(),
    }
}

/// Counts the blocks of an entry.
pub(crate) fn block_count(entry: &Entry) -> u64 {
    match entry {
        Entry::Assistant(message) => message.blocks.len() as u64,
        Entry::Prompt(prompt) => 1 + (prompt.files.len() + prompt.images.len()) as u64,
        Entry::Message { .. } | Entry::Result(_) => 1,
        Entry::Compacted { .. } => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use sayso_agent::Prompt;
    use sayso_agent::log::{AttachedFile, RecordedResult};

    use super::*;

    #[test]
    fn block_count_equals_number_of_blocks() {
        let file = AttachedFile { path: "a".to_owned(), text: "b".to_owned() };
        let image = ImageData { media_type: "image/png".to_owned(), base64: String::new() };
        let prompt = Prompt { files: vec![file], images: vec![image], ..Prompt::text("hi") };
        let result = RecordedResult {
            call: "c".to_owned(),
            text: "t".to_owned(),
            is_error: false,
            images: Vec::new(),
            change: None,
        };
        let entries = [
            Entry::Prompt(prompt),
            Entry::Result(result),
            Entry::Message { text: "m".to_owned(), change: None },
            Entry::Compacted { summary: "s".to_owned(), kept: 0, request: Some(3) },
            Entry::Pruned { calls: Vec::new() },
        ];
        for entry in entries {
            assert_eq!(blocks(&entry).len() as u64, block_count(&entry), "{entry:?}");
        }
    }
}
