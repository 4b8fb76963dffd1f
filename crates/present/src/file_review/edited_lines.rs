//! The new lines of a hunk as a text for an editor.

use sayso_diff::{Diff, Encoding};
use sayso_review::{CONTEXT, FilePreview, FileState};
use thiserror::Error;

use super::unit::{ChangedLines, bytes_of};
use crate::diff::{Highlighting, LocalDiff, LongLines};
use crate::span::StyledText;

/// The reason why the lines of a hunk cannot be edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotEditable {
    #[error("There are no lines to edit; take or leave it.")]
    NoLines,
    #[error("Only UTF-8 text can be edited here; take or leave it, or edit the file afterwards.")]
    NotUtf8,
}

/// The new lines of a hunk, with `\n` as line ending, because editors treat carriage returns in different ways.
#[derive(Debug)]
pub struct EditableLines<'f> {
    file: &'f FilePreview,
    old: &'f [u8],
    /// File name, from which an editor infers the language.
    pub name: &'f str,
    pub text: Vec<u8>,
    has_crlf: bool,
    /// `true` if the lines end the file without a line break.
    may_lack_newline: bool,
}

impl<'f> EditableLines<'f> {
    /// Extracts the new lines of a hunk.
    pub fn new(file: &'f FilePreview, changed: &ChangedLines) -> Result<Self, NotEditable> {
        let is_file = |state: &FileState| !matches!(state, FileState::Link { .. });
        let (true, true, Some(content)) = (is_file(&file.before), is_file(&file.after), file.after.bytes()) else {
            return Err(NotEditable::NoLines);
        };
        if !matches!(Encoding::of(content), Encoding::Utf8) {
            return Err(NotEditable::NotUtf8);
        }
        let old = file.before.bytes().unwrap_or_default();
        let (removed, added) = (bytes_of(old, &changed.old), bytes_of(content, &changed.new));
        let is_last = added.end == content.len();
        let lines = &content[added];
        let has_crlf = lines.windows(2).any(|pair| pair == b"\r\n");
        let text =
            if has_crlf { String::from_utf8_lossy(lines).replace("\r\n", "\n").into_bytes() } else { lines.to_vec() };
        Ok(Self {
            file,
            old: &old[removed],
            name: file.path.names().next_back().unwrap_or("lines"),
            text,
            has_crlf,
            may_lack_newline: is_last && !lines.ends_with(b"\n"),
        })
    }

    /// Returns the bytes for the file from an edited text.
    pub fn restore(&self, mut edited: Vec<u8>) -> Vec<u8> {
        // Without a line break, the following line would be joined to the last one.
        if !edited.ends_with(b"\n") && !self.may_lack_newline {
            edited.push(b'\n');
        }
        if self.has_crlf { with_crlf(&edited) } else { edited }
    }

    /// Renders a diff of the old lines and the edited lines, for confirmation.
    pub fn render(&self, restored: &[u8], highlighting: Highlighting) -> StyledText {
        let diff = Diff::new(self.old, restored);
        let mut local = LocalDiff::new(&diff, self.file.path.as_str(), CONTEXT, highlighting);
        local.render(LongLines::Whole, |_| "as edited, counted from the first changed line".to_owned())
    }
}

fn with_crlf(bytes: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(bytes.len() + bytes.len() / 32);
    for &byte in bytes {
        if byte == b'\n' && result.last() != Some(&b'\r') {
            result.push(b'\r');
        }
        result.push(byte);
    }
    result
}
