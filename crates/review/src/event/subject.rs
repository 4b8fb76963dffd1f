//! What a change is about, where that is more than files.

use sayso_base::{ContentHash, OutsidePath, WsPath};
use sayso_policy::Ruling;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::{CommandPreview, ToolPreview};

/// What a change is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "subject", rename_all = "snake_case")]
pub enum Subject {
    /// The files that it lists, and nothing else.
    #[default]
    Files,
    /// A command. The files are those that it changed while it ran.
    Command {
        /// As the shell gets it.
        command: String,
        /// Where it runs.
        directory: WsPath,
        /// What the agent says it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// What it appears to do.
        preview: Box<CommandPreview>,
    },
    /// A call of a tool. The files are those that its arguments seem to be about.
    Tool {
        /// The tool's name.
        name: String,
        /// Its arguments.
        arguments: Value,
        /// What it appears to do.
        preview: Box<ToolPreview>,
    },
}

impl Subject {
    /// Whether it is a command.
    pub fn is_command(&self) -> bool {
        matches!(self, Self::Command { .. })
    }

    /// Whether it is about files only.
    pub fn is_files(&self) -> bool {
        *self == Self::Files
    }

    /// The same with another command.
    #[must_use]
    pub fn with_command(&self, instead: &str) -> Self {
        let mut edited = self.clone();
        if let Self::Command { command, .. } = &mut edited {
            instead.clone_into(command);
        }
        edited
    }

    /// The same with other arguments.
    #[must_use]
    pub fn with_arguments(&self, instead: &Value) -> Self {
        let mut edited = self.clone();
        if let Self::Tool { arguments, .. } = &mut edited {
            arguments.clone_from(instead);
        }
        edited
    }

    /// What a verdict is bound to, given what it is bound to of the files.
    pub fn bind(&self, files: ContentHash) -> ContentHash {
        if self.is_files() {
            return files;
        }
        // Of data that always serialises; were it not to, nothing would match, which is safe.
        let mut bound = serde_json::to_vec(self).unwrap_or_default();
        bound.extend_from_slice(files.as_bytes());
        ContentHash::of(&bound)
    }
}

/// What policy said to an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulingRecord {
    /// How strict it is.
    pub ruling: Ruling,
    /// The rule that decided.
    pub rule: String,
    /// Why, if the rule says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The paths outside the workspace that are written and that a rule of the user names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsidePath>,
}

/// A file outside the workspace, before somebody was let write it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideFile {
    /// Where.
    pub path: OutsidePath,
    /// Its content; missing, if there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
}

/// Who carries out what was approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Performer {
    /// We do.
    #[default]
    Gate,
    /// The agent does, by itself. What it did is looked at afterwards.
    Agent,
}

impl Performer {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
    pub(super) fn is_gate(&self) -> bool {
        *self == Self::Gate
    }
}

/// Why a preview was made anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Refresh {
    /// Files changed underneath.
    FilesChanged,
    /// A change of the same files that came before it was carried out.
    Applied {
        /// It.
        before: u64,
    },
    /// A change of the same files that came before it did not happen.
    Without {
        /// It.
        before: u64,
    },
}

/// Something that a command may have changed, and that cannot be put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncaptured {
    /// Where; as text, since its name may be why.
    pub path: String,
    /// Why.
    pub reason: String,
}
