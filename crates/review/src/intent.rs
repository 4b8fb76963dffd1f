//! What an agent is about to do, as it says it. Nothing here has been checked against the workspace yet.

use sayso_base::{ContentHash, ErrorKind};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What an agent is about to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "intent", rename_all = "snake_case")]
pub enum Intent {
    /// Change files.
    ChangeFiles(Proposal),
    /// Run a command.
    RunCommand {
        /// As the shell would get it.
        command: String,
        /// Where, from the root of the workspace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
        /// What the agent says it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// Call a tool.
    CallTool {
        /// The tool's name.
        name: String,
        /// Its arguments.
        arguments: serde_json::Value,
    },
    /// Send a request to a model.
    SendRequest {
        /// The upstream's name.
        upstream: String,
        /// The path of the request.
        path: String,
        /// The hash of its body, which is kept as a blob.
        body: ContentHash,
    },
}

/// A set of changes to files that belong together: all of them happen or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// One after the other; a later one sees what an earlier one made.
    pub changes: Vec<FileIntent>,
}

/// A change to a file. Paths are as the agent wrote them: relative to the workspace, or absolute beneath its root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum FileIntent {
    /// Make a file that must not exist.
    Create(NewContent),
    /// Replace the content of a file that must exist.
    Update(NewContent),
    /// Make a file or replace its content.
    Write(NewContent),
    /// Replace a piece of text.
    Edit {
        /// The file.
        #[serde(alias = "file_path")]
        path: String,
        /// The text to replace. Line endings do not matter. If it is empty, the file must not exist or be empty.
        #[serde(alias = "old_str", alias = "old")]
        old_string: String,
        /// The text to put there.
        #[serde(alias = "new_str", alias = "new")]
        new_string: String,
        /// Whether to replace it wherever it occurs; else it must occur exactly once.
        #[serde(default, alias = "allow_multiple", skip_serializing_if = "std::ops::Not::not")]
        replace_all: bool,
    },
    /// Apply a patch, unified or of the `*** Begin Patch` form; it may name many files.
    Patch {
        /// The patch.
        patch: Bytes,
    },
    /// Remove a file, or a symbolic link itself.
    Delete {
        /// The file.
        #[serde(alias = "file_path")]
        path: String,
    },
    /// Give a file another name.
    Rename {
        /// The file.
        #[serde(alias = "from", alias = "file_path")]
        path: String,
        /// Its new name, which must be free.
        #[serde(alias = "new_path")]
        to: String,
    },
}

/// The whole content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewContent {
    /// The file.
    #[serde(alias = "file_path")]
    pub path: String,
    /// Its text. It is written in the encoding and with the line endings that the file has, unless `exact` is set.
    #[serde(alias = "content", alias = "file_text")]
    pub new_content: String,
    /// Whether to write the text's own bytes, whatever the file has now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// Whether the file can be run; as it is now, if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// What the author started from, if that is known: should the file differ from it, the two are merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_content: Option<String>,
}

/// Bytes that are most often text: a string where they are UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bytes {
    /// Text.
    Text(String),
    /// What is not UTF-8.
    Raw {
        /// The bytes.
        bytes: Vec<u8>,
    },
}

impl Bytes {
    /// Takes bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Raw { bytes: error.into_bytes() },
        }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Raw { bytes } => bytes,
        }
    }
}

/// Why a proposal cannot be previewed at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProposalError {
    /// It is no proposal.
    #[error("the proposal is not understood: {0}")]
    NotUnderstood(String),
    /// It changes nothing.
    #[error("the proposal has no changes")]
    Empty,
    /// A path that cannot be in the workspace.
    #[error("{change}: {reason}")]
    BadPath {
        /// Which change, for a person.
        change: String,
        /// What is wrong.
        reason: String,
    },
    /// A patch that says nothing, or not what it should.
    #[error("{change}: the patch is not understood: {reason}")]
    BadPatch {
        /// Which change, for a person.
        change: String,
        /// What is wrong.
        reason: String,
    },
}

impl ProposalError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotUnderstood(_) | Self::Empty | Self::BadPatch { .. } => ErrorKind::InvalidArgs,
            Self::BadPath { .. } => ErrorKind::FsDenied,
        }
    }

    /// The name of the built-in rule that refuses it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotUnderstood(_) | Self::Empty | Self::BadPatch { .. } => "a proposal that is not understood",
            Self::BadPath { .. } => "outside the workspace",
        }
    }

    /// What to do about it.
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
    /// Reads a proposal: JSON (an object with `changes`, a list of changes, or one change) or a patch.
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
    fn the_seeds_form_is_read() {
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
    fn agents_own_words_are_read() {
        let edit = parse(r#"{"operation":"edit","file_path":"/w/a","old_str":"x","new_str":"y"}"#);
        assert!(matches!(&edit.changes[0], FileIntent::Edit { replace_all: false, .. }));
        let rename = parse(r#"[{"operation":"rename","from":"a","to":"b"}]"#);
        assert_eq!(rename.changes[0], FileIntent::Rename { path: "a".to_owned(), to: "b".to_owned() });
        assert!(matches!(&parse("*** Begin Patch\n*** End Patch\n").changes[0], FileIntent::Patch { .. }));
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        let proposal = parse(r#"[{"operation":"write","path":"a","content":"x","executable":true}]"#);
        assert_eq!(parse(&serde_json::to_string(&proposal).unwrap()), proposal);
        let bytes = Proposal::parse(b"--- a\n+++ b\n@@ -1 +1 @@\n-\xFC\n+u\n").unwrap();
        assert_eq!(parse(&serde_json::to_string(&bytes).unwrap()), bytes);
    }

    #[test]
    fn errors_name_the_change() {
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
