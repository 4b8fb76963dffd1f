//! The preview of a command.

use sayso_base::{ContentHash, Severity, WsPath};
use sayso_policy::Effect;
use sayso_shell::{Script, UncertainSpan, Uncertainty};
use serde::{Deserialize, Serialize};

use super::dry_run::DryRun;

/// The expected effects of a command, derived from its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPreview {
    pub script: String,
    pub directory: WsPath,
    /// Purpose, as stated by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Programs that the script would run.
    pub commands: Vec<ShownCommand>,
    /// Effects of these programs, most severe first.
    pub effects: Vec<Effect>,
    /// Parts of the script whose effects are unknown.
    pub uncertainties: Vec<Uncertainty>,
    /// Parts of the script that cause an uncertainty, for highlighting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncertain_spans: Vec<UncertainSpan>,
    /// Command that shows the effects without causing them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRun>,
    /// Result of the shell's syntax check.
    pub syntax: Syntax,
}

/// A simple command as displayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCommand {
    pub text: String,
    /// Wrapper programs such as `sudo` or `xargs`, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrappers: Vec<String>,
}

/// The result of the shell's own syntax check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "syntax", rename_all = "snake_case")]
pub enum Syntax {
    Valid,
    Invalid {
        /// Error message of the shell.
        message: String,
        /// Line of the error, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
    },
    /// The check was not run.
    Unchecked {
        reason: String,
    },
}

impl CommandPreview {
    /// Analyzes a script. `root` is the absolute path of the workspace.
    pub fn of(script: &str, directory: &WsPath, root: &str) -> Self {
        Self::of_parsed(script, Self::read(script), directory, root)
    }

    /// Analyzes a script that was parsed with [`Self::read`].
    pub fn of_parsed(script: &str, mut parsed: Script, directory: &WsPath, root: &str) -> Self {
        let mut effects = sayso_policy::analyze_effects(&mut parsed, root, directory);
        effects.sort_by_key(|effect| std::cmp::Reverse(effect.severity()));
        let dry_run = DryRun::of(&parsed);
        let shown = parsed.commands.iter();
        Self {
            script: script.to_owned(),
            directory: directory.clone(),
            description: None,
            commands: shown
                .map(|command| ShownCommand { text: command.to_string(), wrappers: command.wrappers.clone() })
                .collect(),
            effects,
            uncertainties: parsed.uncertainties,
            uncertain_spans: parsed.uncertain_spans,
            dry_run,
            syntax: Syntax::Unchecked { reason: "it was not asked for".to_owned() },
        }
    }

    /// Parses a script strictly. If its syntax is unsupported, the tolerant parser lists its programs and an
    /// uncertainty names the unsupported part.
    pub fn read(script: &str) -> Script {
        Script::read(script)
    }

    /// Sets the purpose stated by the agent.
    #[must_use]
    pub fn described(mut self, description: Option<String>) -> Self {
        self.description = description;
        self
    }

    /// Returns the hash that a verdict must carry. It covers the script, its directory and its description.
    pub fn hash(&self) -> ContentHash {
        let parts = [Some(&self.script), Some(&self.directory.to_string()), self.description.as_ref()]
            .map(|part| part.map(|text| (text.len(), text.clone())));
        ContentHash::of(format!("command {parts:?}").as_bytes())
    }

    /// Returns the severity of the worst effect. An uncertainty counts as a warning.
    pub fn severity(&self) -> Severity {
        let uncertainty = if self.uncertainties.is_empty() { Severity::Info } else { Severity::Warning };
        self.effects.iter().map(Effect::severity).max().unwrap_or(Severity::Info).max(uncertainty)
    }
}
