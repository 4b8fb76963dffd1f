//! Problems that prevent a proposed file change.

use std::fmt;

use sayso_base::{ErrorKind, WsPath};
use serde::{Deserialize, Serialize};

use crate::observed::Obstacle;

/// The reason why a file cannot be changed as proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum Problem {
    /// The path cannot be changed at all.
    Blocked(Obstacle),
    /// A file to be created already exists.
    Exists,
    /// A file to be changed does not exist.
    Missing,
    /// The text to replace was not found.
    TextNotFound {
        /// First line of that text.
        first_line: String,
        /// Line at which the text would match if white space were ignored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        but_for_spaces: Option<usize>,
    },
    /// The text to replace occurs more than once.
    TextNotUnique {
        /// First lines of the occurrences.
        lines: Vec<usize>,
    },
    /// The text to replace is empty, and the file is not.
    NoText,
    /// The file is binary, so its text cannot be edited.
    NotText,
    /// The patch does not apply.
    PatchRejected {
        /// Reasons, hunk by hunk.
        reasons: Vec<String>,
    },
    /// Later edits of the file conflict with the change.
    Conflicts {
        /// Conflicting lines of both sides.
        conflicts: Vec<Conflict>,
    },
    /// The file changed since, and merging was not requested.
    ChangedSince {
        /// The change whose result the file no longer has.
        change: u64,
    },
    /// A needed content is no longer stored.
    ContentGone,
    /// Another file of the proposal requires a directory at this path.
    IsAlsoADirectory {
        /// The file below this path.
        below: WsPath,
    },
}

/// Two edits of the same lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// Line in the common base, from 1; 0 if the whole file conflicts.
    pub line: usize,
    pub base: String,
    /// Text in the current file.
    pub current: String,
    pub proposed: String,
}

impl Problem {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Blocked(Obstacle::Outside { .. } | Obstacle::ReadOnly { .. } | Obstacle::Protected) => {
                ErrorKind::FsDenied
            }
            Self::Blocked(_) | Self::NotText => ErrorKind::ToolFailed,
            Self::ChangedSince { .. } | Self::ContentGone => ErrorKind::Stale,
            Self::Exists
            | Self::Missing
            | Self::TextNotFound { .. }
            | Self::TextNotUnique { .. }
            | Self::NoText
            | Self::PatchRejected { .. }
            | Self::Conflicts { .. }
            | Self::IsAlsoADirectory { .. } => ErrorKind::Conflict,
        }
    }
}

/// Escapes text from a proposal for use within a sentence; quotes stay readable.
fn visible(text: &str) -> String {
    let shown = |character: char| match character {
        '"' | '\'' | '\\' => character.to_string(),
        character => character.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked(obstacle) => obstacle.fmt(f),
            Self::Exists => f.write_str("it exists already"),
            Self::Missing => f.write_str("it does not exist"),
            Self::TextNotFound { but_for_spaces: Some(line), .. } => {
                write!(
                    f,
                    "the text to replace is not in the file; what is at line {line} differs from it only in white space"
                )
            }
            Self::TextNotFound { first_line, .. } => {
                write!(f, "the text to replace is not in the file; it begins with `{}`", visible(first_line))
            }
            Self::TextNotUnique { lines } => {
                let shown: Vec<String> = lines.iter().take(5).map(ToString::to_string).collect();
                let more = if lines.len() > 5 { " …" } else { "" };
                write!(
                    f,
                    "the text to replace is in the file {} times, at lines {}{more}; give more of the lines around it, or replace all",
                    lines.len(),
                    shown.join(", ")
                )
            }
            Self::NoText => f.write_str("there is no text to replace, and the file is not empty"),
            Self::NotText => f.write_str("it is not text, so text in it cannot be replaced"),
            Self::PatchRejected { reasons } => write!(f, "the patch does not fit: {}", reasons.join("; ")),
            Self::Conflicts { conflicts } if conflicts.iter().any(|conflict| conflict.line == 0) => {
                f.write_str("it changed in the meantime, and the whole file conflicts with this change")
            }
            Self::Conflicts { conflicts } => {
                let lines: Vec<String> = conflicts.iter().map(|conflict| conflict.line.to_string()).collect();
                let word = if lines.len() == 1 { "line" } else { "lines" };
                write!(f, "it was changed in the same place meanwhile: {word} {}", lines.join(", "))
            }
            Self::ChangedSince { change } => write!(f, "it is no longer as change {change} left it"),
            Self::ContentGone => f.write_str("its content is no longer stored"),
            Self::IsAlsoADirectory { below } => write!(f, "`{below}` needs it to be a directory"),
        }
    }
}
