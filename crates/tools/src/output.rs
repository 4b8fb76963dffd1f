//! Results of tool calls, as the model receives them.

use std::borrow::Cow;

/// Result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    pub is_error: bool,
    pub images: Vec<ToolImage>,
}

/// An image in a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolImage {
    /// Such as `image/png`.
    pub media_type: String,
    pub data: Vec<u8>,
}

impl ToolOutput {
    /// Returns a successful result.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: false, images: Vec::new() }
    }

    /// Returns a failed result.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, images: Vec::new() }
    }
}

impl From<crate::ToolError> for ToolOutput {
    /// Formats the message with its hint.
    fn from(error: crate::ToolError) -> Self {
        match error.hint {
            Some(hint) => Self::error(format!("{}\nHint: {hint}", error.message)),
            None => Self::error(error.message),
        }
    }
}

/// Returns at most `max` characters of a line, with a mark in place of the rest.
pub(crate) fn cut(line: &str, max: usize) -> Cow<'_, str> {
    match line.char_indices().nth(max) {
        Some((end, _)) => format!("{}… [{} more bytes]", &line[..end], line.len() - end).into(),
        None => line.into(),
    }
}
