//! Verdicts: the answers of a person or a policy to a preview.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use sayso_base::{ContentHash, WsPath};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::intent::Bytes;
use crate::surface::Surface;

/// The answer to a preview. It covers exactly the previewed bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Hash of the answered preview, see [`Preview::hash`](crate::Preview::hash).
    pub preview: ContentHash,
    pub answer: Answer,
    /// Line comments, delivered to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
    /// Text for the agent about the whole change, beside the reasons of denied parts: "yes, and …".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub by: Decider,
}

impl Verdict {
    /// `true` if the agent is to read more than the decision itself.
    pub fn has_remarks(&self) -> bool {
        !self.comments.is_empty() || self.message.is_some()
    }
}

/// The decision on a whole change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    Approve,
    /// Decides file by file. An unnamed file is denied, unless it was approved earlier.
    Files {
        /// Answers by the previewed path.
        files: BTreeMap<WsPath, FileAnswer>,
        /// Reason for denying the rest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Approves another command instead.
    Command {
        /// Script text for the shell.
        command: String,
    },
    /// Approves the tool call with other arguments.
    Arguments {
        /// All arguments, as a JSON object.
        arguments: serde_json::Value,
    },
    Deny {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl Answer {
    /// Returns the reason that applies to every denied part.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Deny { reason } | Self::Files { reason, .. } => reason.as_deref(),
            Self::Approve | Self::Command { .. } | Self::Arguments { .. } => None,
        }
    }
}

/// The decision on one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum FileAnswer {
    Approve,
    /// Approves the listed hunks.
    Hunks {
        /// Hunk numbers, as previewed.
        hunks: BTreeSet<HunkId>,
    },
    /// Replaces the proposal with edited text, written in the file's encoding and line endings.
    EditedText {
        /// The whole file as text.
        text: String,
    },
    /// Replaces the proposal with exact bytes.
    EditedBytes {
        bytes: Bytes,
    },
    Deny {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// The number of a hunk, or of a part of a hunk: `3`, `3.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HunkId {
    /// Hunk number, from 1.
    pub hunk: usize,
    /// Number of the part after splitting the hunk, from 1; `None` for the whole hunk.
    pub part: Option<usize>,
}

/// An invalid hunk number.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a hunk: hunks are numbered as shown, such as 3, or 3.2 for the second part of hunk 3")]
pub struct NotAHunk(String);

impl HunkId {
    /// Returns the id of a whole hunk.
    pub fn whole(hunk: usize) -> Self {
        Self { hunk, part: None }
    }
}

impl fmt::Display for HunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            None => write!(f, "{}", self.hunk),
            Some(part) => write!(f, "{}.{part}", self.hunk),
        }
    }
}

impl FromStr for HunkId {
    type Err = NotAHunk;

    fn from_str(text: &str) -> Result<Self, NotAHunk> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let id = match text.split_once('.') {
            None => number(text).map(Self::whole),
            Some((hunk, part)) => number(hunk).zip(number(part)).map(|(hunk, part)| Self { hunk, part: Some(part) }),
        };
        id.ok_or_else(|| NotAHunk(text.to_owned()))
    }
}

impl Serialize for HunkId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HunkId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(usize),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(hunk) => Ok(Self::whole(hunk)),
            Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

/// A comment on a line, delivered to the agent as in a code review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub path: WsPath,
    /// Line number, from 1.
    pub line: usize,
    /// Content in which the line is counted.
    #[serde(default)]
    pub side: CommentSide,
    pub text: String,
}

/// The content in which a comment's line is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommentSide {
    Current,
    #[default]
    Proposed,
}

/// The author of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Decider {
    Person {
        /// Surface on which the person decided, if the surface named itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        surface: Option<Surface>,
    },
    /// A rule of the policy.
    Policy {
        /// Name of the rule.
        rule: String,
    },
}

impl Decider {
    /// A person on an unnamed surface.
    pub const PERSON: Self = Self::Person { surface: None };

    pub fn is_person(&self) -> bool {
        matches!(self, Self::Person { .. })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    #[test]
    fn hunk_id_parses_its_display() {
        for text in ["1", "12", "3.2"] {
            assert_eq!(text.parse::<HunkId>().unwrap().to_string(), text);
        }
        for text in ["", "0", "x", "1.", ".1", "1.0", "-1", "1.2.3"] {
            assert!(text.parse::<HunkId>().is_err(), "{text}");
        }
        assert_eq!(serde_json::from_str::<HunkId>("7").unwrap(), HunkId::whole(7));
        assert_eq!(serde_json::from_str::<HunkId>("\"3.2\"").unwrap(), HunkId { hunk: 3, part: Some(2) });
    }
}
