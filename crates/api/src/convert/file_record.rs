//! What a change was about in one file, as it is recorded.

use buffa::MessageField;
use sayso_review::{Extent, FileRecord};

use super::described::known_notes;
use super::field::{count, optional, path, required};
use super::file_state::{operation, renamed_from};
use super::{BadMessage, messages};
use crate::proto;

/// Without saying how much of it happened, which only the whole change tells.
impl From<&FileRecord> for proto::FileRecord {
    fn from(file: &FileRecord) -> Self {
        Self {
            path: file.path.to_string(),
            location: file.location.to_string(),
            operation: proto::Operation::from(&file.operation).into(),
            renamed_from: renamed_from(&file.operation),
            before: MessageField::some((&file.before).into()),
            after: MessageField::some((&file.after).into()),
            added: file.added as u64,
            removed: file.removed as u64,
            notes: messages(&file.notes),
            problem: file.problem.as_ref().map(|problem| MessageField::some(problem.into())).unwrap_or_default(),
            settled: file.settled,
            ..Default::default()
        }
    }
}

/// Notes that this version does not know are left out.
impl TryFrom<proto::FileRecord> for FileRecord {
    type Error = BadMessage;

    fn try_from(file: proto::FileRecord) -> Result<Self, BadMessage> {
        Ok(Self {
            path: path(&file.path, "path")?,
            location: path(&file.location, "location")?,
            operation: operation(file.operation, file.renamed_from.as_ref())?,
            before: required(file.before, "before")?,
            after: required(file.after, "after")?,
            added: count(file.added, "added")?,
            removed: count(file.removed, "removed")?,
            notes: known_notes(file.notes),
            problem: optional(file.problem, "problem")?,
            settled: file.settled,
        })
    }
}

impl From<Extent> for proto::file_record::Extent {
    fn from(extent: Extent) -> Self {
        match extent {
            Extent::All => Self::All,
            Extent::Part => Self::Part,
            Extent::Nothing => Self::Nothing,
        }
    }
}

impl TryFrom<proto::file_record::Extent> for Extent {
    type Error = BadMessage;

    fn try_from(extent: proto::file_record::Extent) -> Result<Self, BadMessage> {
        match extent {
            proto::file_record::Extent::Unspecified => Err(super::field::not_said()),
            proto::file_record::Extent::All => Ok(Self::All),
            proto::file_record::Extent::Part => Ok(Self::Part),
            proto::file_record::Extent::Nothing => Ok(Self::Nothing),
        }
    }
}
