//! File states and operations.

use buffa::EnumValue;
use sayso_review::{FileMode, FileState, Fingerprint, Operation};

use super::BadMessage;
use super::field::{enumeration, hash, missing, oneof, path, unspecified};
use crate::proto;
use crate::proto::oneof as choice;

impl From<&Fingerprint> for proto::Fingerprint {
    fn from(fingerprint: &Fingerprint) -> Self {
        use proto::fingerprint::{Absent, File, Link};
        let state = match fingerprint {
            Fingerprint::Absent => Absent::default().into(),
            Fingerprint::File { hash, size, mode } => {
                File { hash: hash.to_string(), size: *size, mode: mode.bits(), ..Default::default() }.into()
            }
            Fingerprint::Link { target } => Link { target: target.clone(), ..Default::default() }.into(),
        };
        Self { state, ..Default::default() }
    }
}

impl TryFrom<proto::Fingerprint> for Fingerprint {
    type Error = BadMessage;

    fn try_from(fingerprint: proto::Fingerprint) -> Result<Self, BadMessage> {
        use choice::fingerprint::State;
        Ok(match oneof(fingerprint.state, "state")? {
            State::Absent(_) => Self::Absent,
            State::File(file) => Self::File {
                hash: hash(&file.hash, "file.hash")?,
                size: file.size,
                mode: mode(file.mode, "file.mode")?,
            },
            State::Link(link) => Self::Link { target: link.target },
        })
    }
}

impl From<&FileState> for proto::FileState {
    fn from(state: &FileState) -> Self {
        use proto::file_state::{Absent, File, Link};
        let state = match state {
            FileState::Absent => Absent::default().into(),
            FileState::File { content, mode } => {
                File { content: content.bytes().to_vec(), mode: mode.bits(), ..Default::default() }.into()
            }
            FileState::Link { target } => Link { target: target.clone(), ..Default::default() }.into(),
        };
        Self { state, ..Default::default() }
    }
}

impl TryFrom<proto::FileState> for FileState {
    type Error = BadMessage;

    fn try_from(state: proto::FileState) -> Result<Self, BadMessage> {
        use choice::file_state::State;
        Ok(match oneof(state.state, "state")? {
            State::Absent(_) => Self::Absent,
            State::File(file) => Self::file(file.content, mode(file.mode, "file.mode")?),
            State::Link(link) => Self::Link { target: link.target },
        })
    }
}

/// Reads permission bits. Rejects other bits: dropping them would make two different modes equal.
fn mode(bits: u32, name: &str) -> Result<FileMode, BadMessage> {
    let mode = FileMode::new(bits);
    if mode.bits() == bits {
        Ok(mode)
    } else {
        Err(BadMessage::new(name, format!("{bits:o} has bits other than permissions")))
    }
}

impl From<&Operation> for proto::Operation {
    fn from(operation: &Operation) -> Self {
        match operation {
            Operation::Create => Self::Create,
            Operation::Update => Self::Update,
            Operation::Delete => Self::Delete,
            Operation::Rename { .. } => Self::Rename,
        }
    }
}

/// The old path of a rename.
pub(super) fn renamed_from(operation: &Operation) -> Option<String> {
    if let Operation::Rename { from } = operation { Some(from.to_string()) } else { None }
}

/// Combines the two fields that encode an operation.
pub(super) fn operation(
    operation: EnumValue<proto::Operation>,
    renamed_from: Option<&String>,
) -> Result<Operation, BadMessage> {
    Ok(match enumeration::<_, proto::Operation>(operation, "operation")? {
        proto::Operation::Unspecified => return Err(unspecified().within("operation")),
        proto::Operation::Create => Operation::Create,
        proto::Operation::Update => Operation::Update,
        proto::Operation::Delete => Operation::Delete,
        proto::Operation::Rename => {
            let from = renamed_from.ok_or_else(|| missing("renamed_from"))?;
            Operation::Rename { from: path(from, "renamed_from")? }
        }
    })
}
