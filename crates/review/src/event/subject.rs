//! The subject of a change: files, a command or a tool call.

use sayso_base::{ContentHash, OutsidePath, WsPath};
use sayso_policy::Ruling;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::{CommandPreview, ToolPreview};

/// The subject of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "subject", rename_all = "snake_case")]
pub enum Subject {
    /// Edits of the listed files only.
    #[default]
    Files,
    /// A command. The listed files are the ones that it changed while it ran.
    Command {
        /// Script text for the shell.
        command: String,
        directory: WsPath,
        /// Purpose, as stated by the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        preview: Box<CommandPreview>,
    },
    /// A tool call. The listed files are inferred from its arguments.
    Tool { name: String, arguments: Value, preview: Box<ToolPreview> },
}

impl Subject {
    pub fn is_command(&self) -> bool {
        matches!(self, Self::Command { .. })
    }

    pub fn is_files(&self) -> bool {
        *self == Self::Files
    }

    /// Returns the subject with another command.
    #[must_use]
    pub fn with_command(&self, instead: &str) -> Self {
        let mut edited = self.clone();
        if let Self::Command { command, .. } = &mut edited {
            instead.clone_into(command);
        }
        edited
    }

    /// Returns the subject with other arguments.
    #[must_use]
    pub fn with_arguments(&self, instead: &Value) -> Self {
        let mut edited = self.clone();
        if let Self::Tool { arguments, .. } = &mut edited {
            arguments.clone_from(instead);
        }
        edited
    }

    /// Returns the hash that a verdict must carry, given the hash of the files. It covers the command or the tool call
    /// too.
    pub fn bind(&self, files: ContentHash) -> ContentHash {
        if self.is_files() {
            return files;
        }
        // Serializing this data cannot fail. If it did, no verdict would match, which is safe.
        let mut bound = serde_json::to_vec(self).unwrap_or_default();
        bound.extend_from_slice(files.as_bytes());
        ContentHash::of(&bound)
    }
}

/// The recorded decision of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulingRecord {
    pub ruling: Ruling,
    /// Name of the deciding rule.
    pub rule: String,
    /// Reason stated in the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Written paths outside the workspace that a rule of the user names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsidePath>,
}

/// A file outside the workspace, as captured before an approved write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideFile {
    pub path: OutsidePath,
    /// Content; `None` if the file did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ContentHash>,
}

/// The party that carries out an approved change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Performer {
    /// The engine applies it.
    #[default]
    Gate,
    /// The agent applies it with its own tool, and the engine observes the result.
    Agent,
}

impl Performer {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
    pub(super) fn is_gate(&self) -> bool {
        *self == Self::Gate
    }
}

/// The reason why a preview was recomputed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum RefreshReason {
    /// Files changed after the preview was made.
    FilesChanged,
    /// An earlier change of the same files was applied.
    PredecessorApplied { predecessor: u64 },
    /// An earlier change of the same files was dropped.
    PredecessorDropped { predecessor: u64 },
}

/// A path that may have changed and whose old content was not captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncaptured {
    /// Path as text, because it may not be valid as a [`WsPath`].
    pub path: String,
    /// Reason why the content was not captured.
    pub reason: String,
}
