//! Errors of scenario files, with their place and a remedy.

use std::fmt;

use serde_saphyr::Location;

/// An error in a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    file: String,
    /// Line and column, from 1.
    place: Option<(u64, u64)>,
    message: String,
    hint: String,
}

impl ScenarioError {
    pub(super) fn new(file: &str, location: Option<Location>, message: String, hint: String) -> Self {
        let place = location.map(|location| (location.line(), location.column())).filter(|(line, _)| *line > 0);
        Self { file: file.to_owned(), place, message, hint }
    }

    /// Converts an error of the YAML parser.
    pub(super) fn of_yaml(file: &str, error: &serde_saphyr::Error) -> Self {
        let location = error.location();
        // The first line has the message, and the rest shows the source.
        let text = error.without_snippet().to_string();
        let text = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let message = text.split(" at line ").next().unwrap_or(text).to_owned();
        if let Some(key) = message.strip_prefix("duplicate mapping key: ") {
            let key = key.split(',').next().unwrap_or(key);
            return Self::new(file, location, format!("the key `{key}` occurs twice"), "remove one of them".to_owned());
        }
        let hint = if message.contains("unknown field") {
            "use the keys name, description, prompt, tools, model and limits"
        } else if message.contains("missing field") {
            "add the key; name, description, prompt and tools are required"
        } else {
            "correct the YAML here"
        };
        Self::new(file, location, message, hint.to_owned())
    }

    /// Remedy, as an imperative sentence.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ScenarioError {}
