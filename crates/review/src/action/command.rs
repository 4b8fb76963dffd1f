//! The preview of a command.

use sayso_base::{ContentHash, Severity, WsPath};
use sayso_policy::Effect;
use sayso_shell::program::{Program, Unsupported, Variables};
use sayso_shell::{Doubt, Script};
use serde::{Deserialize, Serialize};

use super::dry_run::DryRun;

/// What a command would do, as far as its text tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPreview {
    /// The script, exactly.
    pub script: String,
    /// Where it would run.
    pub directory: WsPath,
    /// What the agent says that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Every program that it would run.
    pub commands: Vec<ShownCommand>,
    /// What they appear to do, most severe first.
    pub effects: Vec<Effect>,
    /// Why there may be more.
    pub doubts: Vec<Doubt>,
    /// How to try it without changing anything, if that is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRun>,
    /// Whether the shell can read it.
    pub syntax: Syntax,
}

/// A command as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCommand {
    /// Its words, quoted so that each can be told from the next.
    pub text: String,
    /// The programs through which it is run, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<String>,
}

/// Whether the shell can read a script, as the shell itself says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "syntax", rename_all = "snake_case")]
pub enum Syntax {
    /// It can.
    Fine,
    /// It cannot.
    Wrong {
        /// What the shell says.
        message: String,
        /// The line, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
    },
    /// Nobody has asked it.
    Unchecked {
        /// Why.
        reason: String,
    },
}

impl CommandPreview {
    /// Reads a script that would run in a directory of the workspace at `root`, an absolute path.
    pub fn of(script: &str, directory: &WsPath, root: &str) -> Self {
        Self::of_parsed(script, Self::read(script), directory, root)
    }

    /// The same for a script that was read before.
    pub fn of_parsed(script: &str, mut parsed: Script, directory: &WsPath, root: &str) -> Self {
        let mut effects = sayso_policy::effects(&mut parsed, root, directory);
        effects.sort_by_key(|effect| std::cmp::Reverse(effect.severity()));
        let dry_run = DryRun::of(&parsed);
        let shown = parsed.commands.iter();
        Self {
            script: script.to_owned(),
            directory: directory.clone(),
            description: None,
            commands: shown
                .map(|command| ShownCommand { text: command.to_string(), through: command.through.clone() })
                .collect(),
            effects,
            doubts: parsed.doubts,
            dry_run,
            syntax: Syntax::Unchecked { reason: "it was not asked for".to_owned() },
        }
    }

    /// Reads a script strictly. If sayso does not run it by itself, the loose reader lists its programs and a doubt names the part.
    pub fn read(script: &str) -> Script {
        match Program::parse(script) {
            Ok(program) => program.forecast(&Variables::default()),
            Err(Unsupported { span, reason }) => {
                let mut loose = Script::parse(script);
                let part = script.get(span).unwrap_or_default().to_owned();
                loose.doubts.insert(0, Doubt::Unsupported { part, reason });
                loose
            }
        }
    }

    /// Adds what the agent says that it is for.
    #[must_use]
    pub fn described(mut self, description: Option<String>) -> Self {
        self.description = description;
        self
    }

    /// The name of what would be run, to which a verdict is bound: the script, its directory and its description.
    pub fn hash(&self) -> ContentHash {
        let parts = [Some(&self.script), Some(&self.directory.to_string()), self.description.as_ref()]
            .map(|part| part.map(|text| (text.len(), text.clone())));
        ContentHash::of(format!("command {parts:?}").as_bytes())
    }

    /// How much the most severe effect matters. A doubt weighs as much as a warning.
    pub fn severity(&self) -> Severity {
        let doubt = if self.doubts.is_empty() { Severity::Info } else { Severity::Warning };
        self.effects.iter().map(Effect::severity).max().unwrap_or(Severity::Info).max(doubt)
    }
}
