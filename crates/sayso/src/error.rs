//! Failures of a command for a person: what failed, its causes, a remedy.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use sayso_present::error::InputError;
use sayso_review::ErrorKind;
use sayso_tools::ToolError;
use serde_json::json;

use crate::output::{Output, say};

/// Exit code of a process that SIGPIPE ended, as shells report it.
const BROKEN_PIPE_CODE: u8 = 141;

/// The failure of a command.
#[derive(Debug)]
pub(crate) enum CliError {
    Message {
        kind: ErrorKind,
        /// `cannot X Y`.
        message: String,
        /// Outermost first.
        causes: Vec<String>,
        /// An imperative sentence.
        hint: Option<String>,
    },
    /// The reader of standard output has closed it. Printed as an exit code only.
    BrokenPipe,
}

impl CliError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::Message { kind, message: message.into(), causes: Vec::new(), hint: None }
    }

    /// Creates an error about wrong usage or bad input. Exit code 2.
    pub(crate) fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgs, message)
    }

    /// Creates an error about a failed system call. Exit code 70.
    pub(crate) fn io(message: impl Into<String>, error: &io::Error) -> Self {
        Self::new(ErrorKind::Unavailable, message).caused_by(error)
    }

    /// Appends an error and its sources to the causes.
    pub(crate) fn caused_by(mut self, error: &(dyn Error + 'static)) -> Self {
        if let Self::Message { causes, .. } = &mut self {
            let mut next = Some(error);
            while let Some(error) = next {
                let cause = error.to_string();
                // Some errors repeat their source in their own text.
                if !causes.last().is_some_and(|last| last.ends_with(&cause)) {
                    causes.push(cause);
                }
                next = error.source();
            }
        }
        self
    }

    /// Appends a sentence to the causes.
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        if let Self::Message { causes, .. } = &mut self {
            causes.push(cause.into());
        }
        self
    }

    pub(crate) fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Message { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    pub(crate) fn optional_hint(self, text: Option<impl Into<String>>) -> Self {
        match text {
            Some(text) => self.hint(text),
            None => self,
        }
    }

    /// The message and its causes in one line.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Message { message, causes, .. } => {
                causes.iter().fold(message.clone(), |text, cause| format!("{text}: {cause}"))
            }
            Self::BrokenPipe => "standard output is closed".to_owned(),
        }
    }

    /// The message, its causes and the hint in one line.
    pub(crate) fn message_with_hint(&self) -> String {
        let hint = self.hint_text().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{hint}", self.message())
    }

    pub(crate) fn hint_text(&self) -> Option<&str> {
        match self {
            Self::Message { hint, .. } => hint.as_deref(),
            Self::BrokenPipe => None,
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Message { kind, .. } => *kind,
            Self::BrokenPipe => ErrorKind::Unavailable,
        }
    }

    /// The failure as a built-in tool reports it.
    pub(crate) fn into_tool_error(self) -> ToolError {
        ToolError { kind: self.kind(), message: self.message(), hint: self.hint_text().map(str::to_owned) }
    }

    /// Prints the failure as a JSON value and returns the exit code.
    pub(crate) fn report_json(self) -> ExitCode {
        if matches!(self, Self::BrokenPipe) {
            return self.report();
        }
        let code = exit_code(self.kind());
        let mut output = Output::stdout();
        match output.json(&json!({ "error": self.into_tool_error() })).and_then(|()| output.finish()) {
            Ok(()) => code,
            Err(error) => error.report(),
        }
    }

    /// Prints the failure on standard error and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::BrokenPipe => ExitCode::from(BROKEN_PIPE_CODE),
            Self::Message { kind, message, causes, hint } => {
                let mut text = format!("Error: {message}\n");
                for cause in causes {
                    let _ = writeln!(text, "Caused by: {cause}");
                }
                if let Some(hint) = hint {
                    let _ = writeln!(text, "Hint: {hint}");
                }
                say(text.trim_end());
                exit_code(*kind)
            }
        }
    }
}

impl From<InputError> for CliError {
    fn from(error: InputError) -> Self {
        Self::new(error.kind, error.message).optional_hint(error.hint)
    }
}

/// Creates the error about a change number that is not in the journal.
pub(crate) fn no_such_change(change: u64) -> CliError {
    CliError::invalid_input(format!("there is no change {change}"))
        .hint("`sayso log` lists the changes of this workspace")
}

/// Creates the error about a snapshot number or call id without a snapshot.
pub(crate) fn no_such_snapshot(given: &str) -> CliError {
    CliError::invalid_input(format!("there is no snapshot {given}")).hint("`sayso snapshot` lists what is kept")
}

/// Maps the kind of a failure to an exit code. `sayso --help` lists the codes.
pub(crate) fn exit_code(kind: ErrorKind) -> ExitCode {
    ExitCode::from(match kind {
        ErrorKind::InvalidArgs | ErrorKind::ToolFailed => 2,
        ErrorKind::ToolDenied | ErrorKind::FsDenied => 3,
        ErrorKind::Stale | ErrorKind::Conflict => 4,
        ErrorKind::Unavailable | ErrorKind::Internal => 70,
    })
}

/// Exit code after a person denied.
pub(crate) const DENIED: u8 = 1;
/// Exit code after a rule denied.
pub(crate) const REFUSED: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_error_keeps_its_sources() {
        let source = io::Error::other("disk failed");
        let error = io::Error::other(wrapped(source));
        let CliError::Message { kind, causes, .. } = CliError::io("cannot write the output", &error) else { return };
        assert_eq!((kind, causes), (ErrorKind::Unavailable, vec!["outer".to_owned(), "disk failed".to_owned()]));
    }

    /// Wraps an error under the text `outer`.
    fn wrapped(source: io::Error) -> impl Error + Send + Sync {
        #[derive(Debug)]
        struct Outer(io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("outer")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        Outer(source)
    }
}
