//! What went wrong, for a person: what happened, why, what to do next.

use std::fmt::Write as _;
use std::process::ExitCode;

use sayso_review::ErrorKind;
use sayso_tools::ToolError;
use serde_json::json;

use crate::output::{Output, say};

/// Why a command could not be carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to tell.
    Told { kind: ErrorKind, what: String, why: Option<String>, hint: Option<String> },
    /// Whoever read our output has gone: no reason to make a noise.
    BrokenPipe,
}

impl Failure {
    pub(crate) fn bad_input(what: impl Into<String>) -> Self {
        Self::of(ErrorKind::InvalidArgs, what)
    }

    pub(crate) fn of(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self::Told { kind, what: what.into(), why: None, hint: None }
    }

    pub(crate) fn why(mut self, reason: &impl ToString) -> Self {
        if let Self::Told { why, .. } = &mut self {
            *why = Some(reason.to_string());
        }
        self
    }

    pub(crate) fn hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Told { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }

    /// What happened and why, in one line.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Told { what, why: Some(why), .. } => format!("{what}: {why}"),
            Self::Told { what, why: None, .. } => what.clone(),
            Self::BrokenPipe => "whoever read our output has gone".to_owned(),
        }
    }

    /// Prints it as a JSON value, for a program that asked for JSON, and gives the exit code.
    pub(crate) fn report_json(&self) -> ExitCode {
        let Self::Told { kind, hint, .. } = self else { return self.report() };
        let error = ToolError { kind: *kind, message: self.message(), hint: hint.clone() };
        let mut output = Output::stdout();
        match output.json(&json!({ "error": error })).and_then(|()| output.finish()) {
            Ok(()) => exit_code(*kind),
            Err(failure) => failure.report(),
        }
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            // As a shell reports a program that SIGPIPE has ended.
            Self::BrokenPipe => ExitCode::from(141),
            Self::Told { kind, what, why, hint } => {
                let mut text = format!("Error: {what}\n");
                if let Some(why) = why {
                    let _ = writeln!(text, "Caused by: {why}");
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

/// The one place where kinds become exit codes.
pub(crate) fn exit_code(kind: ErrorKind) -> ExitCode {
    ExitCode::from(match kind {
        ErrorKind::InvalidArgs | ErrorKind::ToolFailed => 2,
        ErrorKind::ToolDenied | ErrorKind::FsDenied => 3,
        ErrorKind::Stale | ErrorKind::Conflict => 4,
        ErrorKind::Unavailable | ErrorKind::Internal => 70,
    })
}
