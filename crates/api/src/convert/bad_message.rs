//! What is wrong with a message.

use std::convert::Infallible;

use sayso_review::ErrorKind;
use thiserror::Error;

/// A message that says something which this version does not understand.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{field}` of the message is not understood: {reason}")]
pub struct BadMessage {
    /// Which field, from the message down: `verdict.answer.files[src/a.rs].hunks[1]`.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl BadMessage {
    /// Of a field of the message at hand.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// The same, seen from the message that holds the one at hand in this field.
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        self.field = if self.field.is_empty() { field.to_owned() } else { format!("{field}.{}", self.field) };
        self
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "the fields are described in proto/sayso/v1; client and engine should be of the same version"
    }
}

/// So that what cannot fail is read like everything else.
impl From<Infallible> for BadMessage {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
