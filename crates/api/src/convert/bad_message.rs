//! The error of reading a message.

use std::convert::Infallible;

use sayso_review::ErrorKind;
use thiserror::Error;

/// A field of a message that this version does not understand.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot read field `{field}` of the message: {reason}")]
pub struct BadMessage {
    /// Path from the top of the message, such as `verdict.answer.files[src/a.rs].hunks[1]`.
    pub field: String,
    /// A clause without a full stop, such as `it is missing`.
    pub reason: String,
}

impl BadMessage {
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// Prefixes the path with the field that holds the message.
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        self.field = if self.field.is_empty() { field.to_owned() } else { format!("{field}.{}", self.field) };
        self
    }

    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    pub fn hint(&self) -> &'static str {
        "see proto/sayso/v1 for the fields; run the same version of client and engine"
    }
}

/// Lets generic readers treat `From` conversions like `TryFrom` ones.
impl From<Infallible> for BadMessage {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
