//! What the person, or a policy, says to a preview.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use sayso_base::{ContentHash, WsPath};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::intent::Bytes;

/// The answer to a preview. It covers the bytes that were shown and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The preview it answers, by [`Preview::hash`](crate::Preview::hash).
    pub preview: ContentHash,
    /// Yes, no, or in part.
    pub answer: Answer,
    /// What to tell the agent about lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<Comment>,
    /// Who says so.
    pub by: Decider,
}

/// Yes, no, or in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// All of it.
    Approve,
    /// File by file. A file that is not named is denied, unless it was approved before.
    Files {
        /// By the path that was shown.
        files: BTreeMap<WsPath, FileAnswer>,
        /// Why the rest is denied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Another command instead.
    Command {
        /// As the shell gets it.
        command: String,
    },
    /// Other arguments of the tool instead.
    Arguments {
        /// All of them.
        arguments: serde_json::Value,
    },
    /// Nothing of it.
    Deny {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl Answer {
    /// What is said about all that is denied.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Deny { reason } | Self::Files { reason, .. } => reason.as_deref(),
            Self::Approve | Self::Command { .. } | Self::Arguments { .. } => None,
        }
    }
}

/// The answer about one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum FileAnswer {
    /// All of it.
    Approve,
    /// These hunks.
    Hunks {
        /// By their numbers as shown.
        hunks: BTreeSet<HunkId>,
    },
    /// Another text instead, in the file's own encoding and line endings.
    EditedText {
        /// The whole text.
        text: String,
    },
    /// Other bytes instead, exactly.
    EditedBytes {
        /// The whole content.
        bytes: Bytes,
    },
    /// Nothing of it.
    Deny {
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A hunk by its number, or a part of one by its own: `3`, `3.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HunkId {
    /// The hunk, from 1.
    pub hunk: usize,
    /// The part that splitting it gives, from 1; all of it if not said.
    pub part: Option<usize>,
}

/// A text that names no hunk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a hunk: hunks are numbered as shown, such as 3, or 3.2 for the second part of hunk 3")]
pub struct NotAHunk(String);

impl HunkId {
    /// A whole hunk.
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

/// A remark on a line, delivered to the model as in a code review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// The file.
    pub path: WsPath,
    /// The line, from 1.
    pub line: usize,
    /// Whether the line is one of the file as it is, or as proposed.
    #[serde(default)]
    pub side: CommentSide,
    /// What to say.
    pub text: String,
}

/// Which content a line is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommentSide {
    /// The file as it is.
    Current,
    /// The file as proposed.
    #[default]
    Proposed,
}

/// Who decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Decider {
    /// A person.
    Person,
    /// A rule.
    Policy {
        /// Its name.
        rule: String,
    },
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    #[test]
    fn hunks_are_read_as_they_are_shown() {
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
