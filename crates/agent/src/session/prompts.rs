//! Prompts of the user and messages about earlier changes, on their way into the log.

use base64::Engine as _;

use super::UserPrompt;
use super::invocation::{InvocationEnd, InvocationRun};
use crate::log::{AttachedFile, Entry, ImageData, Prompt};

/// Maximum size of an attached file, in bytes.
const MAX_ATTACHED_BYTES: usize = 256 * 1024;
impl InvocationRun<'_> {
    /// Adds queued prompts, and messages about earlier changes.
    pub(super) async fn take_prompts(&mut self) -> Result<(), InvocationEnd> {
        for message in self.session.host().take_messages(self.session.id()) {
            self.session.append(Entry::Message { text: message.text, change: message.change })?;
        }
        loop {
            let Some(prompt) = self.session.lock().queue.pop_front() else { return Ok(()) };
            if prompt.text.trim().is_empty() && prompt.files.is_empty() && prompt.images.is_empty() {
                continue;
            }
            let prompt = self.read_attachments(prompt).await;
            self.session.append(Entry::Prompt(prompt))?;
        }
    }

    async fn read_attachments(&self, prompt: UserPrompt) -> Prompt {
        let mut files = Vec::new();
        for path in prompt.files {
            let read = self.session.host().read_file(self.session.id(), &path);
            files.push(match self.interrupt.or_interrupted(read).await {
                Some(Ok(file)) if file.text.len() > MAX_ATTACHED_BYTES => {
                    let text = &file.text[..file.text.floor_char_boundary(MAX_ATTACHED_BYTES)];
                    let text = format!("{text}\n[The file has {} bytes; read the rest with a tool.]", file.text.len());
                    AttachedFile { path: file.path, text }
                }
                Some(Ok(file)) => AttachedFile { path: file.path, text: file.text },
                Some(Err(problem)) => AttachedFile { text: format!("[cannot be read: {problem}]"), path },
                None => AttachedFile { text: "[not read: interrupted]".to_owned(), path },
            });
        }
        Prompt { text: prompt.text, files, images: prompt.images }
    }
}

/// Encodes images of a tool for the log.
pub(super) fn image_data(images: &[sayso_tools::ToolImage]) -> Vec<ImageData> {
    let encode = |image: &sayso_tools::ToolImage| ImageData {
        media_type: image.media_type.clone(),
        base64: base64::engine::general_purpose::STANDARD.encode(&image.data),
    };
    images.iter().map(encode).collect()
}
