//! Input that a surface cannot act on.

use sayso_review::ErrorKind;
use thiserror::Error;

/// Input of a person that does not fit, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct InputError {
    pub kind: ErrorKind,
    pub message: String,
    /// An imperative sentence that names a remedy.
    pub hint: Option<String>,
}

impl InputError {
    /// Creates an error about malformed or unknown input.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind: ErrorKind::InvalidArgs, message: message.into(), hint: Some(hint.into()) }
    }

    /// Returns the error with another kind.
    #[must_use]
    pub fn of_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }
}
