//! The messages of a history, in a form that all dialects render.

use std::borrow::Cow;

use sayso_wire::stream::Api;

use super::CANCELLED_RESULT;
use crate::log::{
    AssistantBlock, AssistantMessage, History, HistoryItem, ImageData, Prompt, RecordedResult, ToolCallBlock,
    UserSource,
};

/// A message of a request.
#[derive(Debug)]
pub(crate) enum HistoryMessage<'h> {
    User(Vec<UserPart<'h>>),
    Assistant(SentMessage<'h>),
    /// The results of all calls of the message before it.
    Results(Vec<ResultPart<'h>>),
}

/// A message of the model with the blocks that the API accepts.
#[derive(Debug)]
pub(crate) struct SentMessage<'h> {
    pub(crate) blocks: Vec<&'h AssistantBlock>,
    /// The same model wrote it, and its context is unchanged: signed content is sent back.
    pub(crate) keeps_signed: bool,
}

#[derive(Debug)]
pub(crate) enum UserPart<'h> {
    Text(Cow<'h, str>),
    Image(&'h ImageData),
}

#[derive(Debug)]
pub(crate) struct ResultPart<'h> {
    pub(crate) call: &'h ToolCallBlock,
    pub(crate) text: Cow<'h, str>,
    pub(crate) is_error: bool,
    pub(crate) images: &'h [ImageData],
}

/// Returns the messages of a history for a dialect and a model.
pub(super) fn of_history<'h>(history: &'h History, dialect: Api, model: &str) -> Vec<HistoryMessage<'h>> {
    let mut messages = Vec::new();
    for (index, item) in history.items().iter().enumerate() {
        match item {
            HistoryItem::User(user) => {
                let parts = user_parts(user.source, &user.prompt);
                match messages.last_mut() {
                    Some(HistoryMessage::User(last)) => last.extend(parts),
                    _ if parts.is_empty() => {}
                    _ => messages.push(HistoryMessage::User(parts)),
                }
            }
            HistoryItem::Assistant { message, results } => {
                let keeps_signed = message.dialect == dialect && message.model == model && history.keeps_signed(index);
                let blocks = sent_blocks(message, keeps_signed);
                if blocks.is_empty() {
                    continue;
                }
                if messages.is_empty() {
                    // All APIs want the user to begin.
                    messages.push(HistoryMessage::User(vec![UserPart::Text("Continue.".into())]));
                }
                messages.push(HistoryMessage::Assistant(SentMessage { blocks, keeps_signed }));
                let parts: Vec<ResultPart<'h>> = message
                    .calls()
                    .zip(results)
                    .map(|(call, result)| result_part(history, call, result.as_ref()))
                    .collect();
                if !parts.is_empty() {
                    messages.push(HistoryMessage::Results(parts));
                }
            }
        }
    }
    messages
}

fn user_parts(source: UserSource, prompt: &Prompt) -> Vec<UserPart<'_>> {
    let mut parts = Vec::new();
    for file in &prompt.files {
        parts.push(UserPart::Text(format!("<file path=\"{}\">\n{}\n</file>", file.path, file.text).into()));
    }
    parts.extend(prompt.images.iter().map(UserPart::Image));
    if !prompt.text.trim().is_empty() {
        parts.push(UserPart::Text(match source {
            UserSource::Prompt | UserSource::Engine => Cow::Borrowed(prompt.text.as_str()),
            UserSource::Gate => format!("Message from the review of an earlier change:\n{}", prompt.text).into(),
            UserSource::Summary => {
                format!("Summary of the conversation so far, which was compacted:\n\n{}", prompt.text).into()
            }
        }));
    }
    parts
}

/// Returns the blocks that an API accepts: no white space alone, and thinking only with the model's own signature.
fn sent_blocks(message: &AssistantMessage, keeps_signed: bool) -> Vec<&AssistantBlock> {
    let is_sent = |block: &&AssistantBlock| match block {
        AssistantBlock::Text { text, signatures } => {
            !text.trim().is_empty() || (keeps_signed && !signatures.is_empty() && message.dialect == Api::Gemini)
        }
        AssistantBlock::Thinking { signatures, .. } => keeps_signed && !signatures.is_empty(),
        AssistantBlock::ToolCall(_) => true,
    };
    let blocks: Vec<&AssistantBlock> = message.blocks.iter().filter(is_sent).collect();
    // Thinking alone is no message.
    if blocks.iter().all(|block| matches!(block, AssistantBlock::Thinking { .. })) { Vec::new() } else { blocks }
}

fn result_part<'h>(history: &History, call: &'h ToolCallBlock, result: Option<&'h RecordedResult>) -> ResultPart<'h> {
    let Some(result) = result else {
        return ResultPart { call, text: CANCELLED_RESULT.into(), is_error: true, images: &[] };
    };
    if history.is_pruned(&call.id) {
        let text = format!(
            "[This result of {} bytes was removed to save context. Call the tool again if you need it.]",
            result.text.len()
        );
        return ResultPart { call, text: text.into(), is_error: result.is_error, images: &[] };
    }
    let text = if result.text.trim().is_empty() { "(no output)".into() } else { Cow::Borrowed(result.text.as_str()) };
    ResultPart { call, text, is_error: result.is_error, images: &result.images }
}
