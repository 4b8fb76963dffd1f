//! Intents: actions as the agent states them, not yet checked against the workspace.

use sayso_base::{ContentHash, ErrorKind};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An action that an agent is about to take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "intent", rename_all = "snake_case")]
pub enum Intent {
    ChangeFiles(Proposal),
    RunCommand {
        /// Script text for the shell.
        command: String,
        /// Working directory relative to the workspace root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
        /// Purpose, as stated by the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    CallTool {
        name: String,
        arguments: serde_json::Value,
    },
    SendRequest {
        /// Name of the upstream.
        upstream: String,
        /// Path of the request URL.
        path: String,
        /// Hash of the body, which is stored as a blob.
        body: ContentHash,
    },
}

/// A set of file changes, applied all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// Changes in order; each one applies to the result of the previous ones.
    pub changes: Vec<FileIntent>,
}

/// A change to a file. Paths are relative to the workspace, or absolute beneath its root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum FileIntent {
    /// Creates a file, which must not exist.
    Create(NewContent),
    /// Replaces the content of an existing file.
    Update(NewContent),
    /// Creates a file or replaces its content.
    Write(NewContent),
    /// Replaces a piece of text.
    Edit {
        #[serde(alias = "file_path")]
        path: String,
        /// Text to replace, compared without regard to line endings. If it is empty, the file must be absent or empty.
        #[serde(alias = "old_str", alias = "old")]
        old_string: String,
        #[serde(alias = "new_str", alias = "new")]
        new_string: String,
        /// Replaces every occurrence; if `false`, the text must occur exactly once.
        #[serde(default, alias = "allow_multiple", skip_serializing_if = "std::ops::Not::not")]
        replace_all: bool,
    },
    /// Applies a unified or `*** Begin Patch` patch, which may name many files.
    Patch { patch: Bytes },
    /// Deletes a file, or a symbolic link without its target.
    Delete {
        #[serde(alias = "file_path")]
        path: String,
    },
    Rename {
        #[serde(alias = "from", alias = "file_path")]
        path: String,
        /// New path, which must not exist.
        #[serde(alias = "new_path")]
        to: String,
    },
}

/// The whole content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewContent {
    #[serde(alias = "file_path")]
    pub path: String,
    /// Text of the file. Its encoding and line endings are adapted to the existing file, unless `exact` is set.
    #[serde(alias = "content", alias = "file_text")]
    pub new_content: String,
    /// `true` to write the text's own UTF-8 bytes without adaptation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// Executable bit; `None` keeps the current mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// Content that the author started from. If the file differs from it, both changes are merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_content: Option<String>,
}

/// Bytes that serialize as a string if they are valid UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bytes {
    Text(String),
    /// Bytes that are not valid UTF-8.
    Raw {
        bytes: Vec<u8>,
    },
}

impl Bytes {
    pub fn new(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Raw { bytes: error.into_bytes() },
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Raw { bytes } => bytes,
        }
    }
}

/// The reason why a proposal cannot be previewed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProposalError {
    /// The input is neither a valid proposal nor a patch.
    #[error("cannot parse the proposal: {0}")]
    NotUnderstood(String),
    #[error("the proposal has no changes")]
    Empty,
    /// A path is outside the workspace or invalid.
    #[error("{change}: {reason}")]
    BadPath {
        /// Position of the change, for a person.
        change: String,
        reason: String,
    },
    /// A patch cannot be parsed.
    #[error("{change}: cannot parse the patch: {reason}")]
    BadPatch {
        /// Position of the change, for a person.
        change: String,
        reason: String,
    },
}

impl ProposalError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotUnderstood(_) | Self::Empty | Self::BadPatch { .. } => ErrorKind::InvalidArgs,
            Self::BadPath { .. } => ErrorKind::FsDenied,
        }
    }

    /// Returns the name of the built-in rule that denies the proposal.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotUnderstood(_) | Self::Empty | Self::BadPatch { .. } => "a proposal that is not understood",
            Self::BadPath { .. } => "outside the workspace",
        }
    }

    /// Returns a hint on how to correct the proposal.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::BadPath { .. } => "paths are relative to the workspace, or absolute beneath its root",
            _ => {
                "give a patch (unified, or from `*** Begin Patch` to `*** End Patch`), or JSON such as \
                 {\"changes\":[{\"path\":\"a.txt\",\"operation\":\"update\",\"new_content\":\"…\"}]} with the operations create, \
                 update, write, edit, patch, delete, rename"
            }
        }
    }
}

impl Proposal {
    /// Parses a proposal: a patch, or JSON with `changes`, a list of changes, or a single change.
    pub fn parse(input: &[u8]) -> Result<Self, ProposalError> {
        let start = input.trim_ascii_start();
        if start.is_empty() {
            return Err(ProposalError::NotUnderstood("it is empty".to_owned()));
        }
        let proposal = match start[0] {
            b'{' | b'[' => Self::parse_json(input)?,
            _ => Self { changes: vec![FileIntent::Patch { patch: Bytes::new(input.to_vec()) }] },
        };
        if proposal.changes.is_empty() { Err(ProposalError::Empty) } else { Ok(proposal) }
    }

    fn parse_json(input: &[u8]) -> Result<Self, ProposalError> {
        let not_understood = |error: serde_json::Error| ProposalError::NotUnderstood(format!("as JSON: {error}"));
        let value: serde_json::Value = serde_json::from_slice(input).map_err(not_understood)?;
        let changes = match value {
            serde_json::Value::Array(changes) => changes,
            serde_json::Value::Object(mut object) => match object.remove("changes") {
                Some(serde_json::Value::Array(changes)) => changes,
                Some(_) => return Err(ProposalError::NotUnderstood("`changes` is not a list".to_owned())),
                None => vec![object.into()],
            },
            _ => return Err(ProposalError::NotUnderstood("it is neither an object nor a list".to_owned())),
        };
        let mut proposal = Self { changes: Vec::with_capacity(changes.len()) };
        for (index, change) in changes.into_iter().enumerate() {
            let change = serde_json::from_value(change)
                .map_err(|error| ProposalError::NotUnderstood(format!("change {}: {error}", index + 1)))?;
            proposal.changes.push(change);
        }
        Ok(proposal)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn parse(text: &str) -> Proposal {
        Proposal::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn seed_format_parses() {
        let proposal = parse(
            r#"{"changes":[{"path":"a","operation":"create","new_content":"x"},{"path":"b","operation":"delete","new_content":null}]}"#,
        );
        assert_eq!(proposal.changes.len(), 2);
        assert!(
            matches!(&proposal.changes[0], FileIntent::Create(NewContent { new_content, .. }) if new_content == "x")
        );
        assert_eq!(proposal.changes[1], FileIntent::Delete { path: "b".to_owned() });
    }

    #[test]
    fn agent_field_aliases_parse() {
        let edit = parse(r#"{"operation":"edit","file_path":"/w/a","old_str":"x","new_str":"y"}"#);
        assert!(matches!(&edit.changes[0], FileIntent::Edit { replace_all: false, .. }));
        let rename = parse(r#"[{"operation":"rename","from":"a","to":"b"}]"#);
        assert_eq!(rename.changes[0], FileIntent::Rename { path: "a".to_owned(), to: "b".to_owned() });
        assert!(matches!(&parse("*** Begin Patch\n*** End Patch\n").changes[0], FileIntent::Patch { .. }));
    }

    #[test]
    fn proposal_survives_serialization() {
        let proposal = parse(r#"[{"operation":"write","path":"a","content":"x","executable":true}]"#);
        assert_eq!(parse(&serde_json::to_string(&proposal).unwrap()), proposal);
        let bytes = Proposal::parse(b"--- a\n+++ b\n@@ -1 +1 @@\n-\xFC\n+u\n").unwrap();
        assert_eq!(parse(&serde_json::to_string(&bytes).unwrap()), bytes);
    }

    #[test]
    fn parse_errors_name_change() {
        let error = |text: &str| Proposal::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(
            error(r#"{"changes":[{"path":"a","operation":"chmod"}]}"#).contains("change 1: unknown variant `chmod`")
        );
        assert!(error(r#"[{"path":"a","operation":"delete"},{"path":"a","operation":"create"}]"#).contains("change 2"));
        assert!(error(r#"{"changes":7}"#).contains("`changes` is not a list"));
        assert!(error("{").contains("as JSON"));
        assert!(error("  ").contains("empty"));
        assert_eq!(error("[]"), "the proposal has no changes");
    }
}
