//! Errors of scripts, with their place and a remedy.

use std::fmt;

use serde_saphyr::Location;

/// An error in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    file: String,
    /// Line and column, from 1.
    place: Option<(u64, u64)>,
    message: String,
    hint: String,
}

impl ScriptError {
    pub(super) fn new(file: &str, location: Option<Location>, message: String, hint: &str) -> Self {
        let place = location.map(|location| (location.line(), location.column())).filter(|(line, _)| *line > 0);
        Self { file: file.to_owned(), place, message, hint: hint.to_owned() }
    }

    /// Converts an error of the YAML parser.
    pub(super) fn of_yaml(file: &str, error: &serde_saphyr::Error) -> Self {
        let location = error.location();
        // The first line has the message, and the rest shows the source.
        let text = error.without_snippet().to_string();
        let text = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let message = text.split(" at line ").next().unwrap_or(text).to_owned();
        let hint = if message.contains("unknown field") {
            "check the spelling of the key; docs/scripted-model.md lists all keys"
        } else if message.contains("missing field") {
            "add the missing key; docs/scripted-model.md shows an example"
        } else {
            "correct the YAML here; docs/scripted-model.md shows the format"
        };
        Self::new(file, location, message, hint)
    }

    /// Remedy, as an imperative sentence.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ScriptError {}
