//! Why a change cannot be made as proposed.

use std::fmt;

use sayso_base::{ErrorKind, WsPath};
use serde::{Deserialize, Serialize};

use crate::seen::Obstacle;

/// Why a change to a file cannot be made as proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum Problem {
    /// Something about the file itself.
    Blocked(Obstacle),
    /// It is to be created and is there.
    Exists,
    /// It is to be changed and is not there.
    Missing,
    /// The text to replace is not in it.
    TextNotFound {
        /// The first line of that text.
        first_line: String,
        /// The line where it would be, if white space did not count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        but_for_spaces: Option<usize>,
    },
    /// The text to replace is in it more than once.
    TextNotUnique {
        /// The lines where it starts.
        lines: Vec<usize>,
    },
    /// There is nothing to replace.
    NoText,
    /// It has no text that could be edited.
    NotText,
    /// The patch does not fit.
    PatchRejected {
        /// What does not fit, hunk by hunk.
        reasons: Vec<String>,
    },
    /// It was changed in a way that does not go together with this change.
    Conflicts {
        /// The places, with both sides.
        clashes: Vec<Clash>,
    },
    /// It was changed since, and no one asked to merge.
    ChangedSince {
        /// The change after which it is not as it was left.
        change: u64,
    },
    /// What it held is no longer kept.
    ContentGone,
    /// Another change of the same set needs the name for a directory.
    IsAlsoADirectory {
        /// The file below it.
        below: WsPath,
    },
}

/// Two changes of one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clash {
    /// The line of the common base, from 1; 0 where it is about the file as a whole.
    pub line: usize,
    /// What both started from.
    pub base: String,
    /// What is in the file now.
    pub current: String,
    /// What was proposed.
    pub proposed: String,
}

impl Problem {
    /// What sort of failure it is.
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

/// Text from a proposal within a sentence of ours: it can neither end the line nor play tricks on it.
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
            Self::Conflicts { clashes } if clashes.iter().any(|clash| clash.line == 0) => {
                f.write_str("what was done to it meanwhile and this change do not go together")
            }
            Self::Conflicts { clashes } => {
                let lines: Vec<String> = clashes.iter().map(|clash| clash.line.to_string()).collect();
                let word = if lines.len() == 1 { "line" } else { "lines" };
                write!(f, "it was changed in the same place meanwhile: {word} {}", lines.join(", "))
            }
            Self::ChangedSince { change } => write!(f, "it is no longer as change {change} left it"),
            Self::ContentGone => f.write_str("what it held is no longer kept"),
            Self::IsAlsoADirectory { below } => write!(f, "`{below}` needs it to be a directory"),
        }
    }
}
