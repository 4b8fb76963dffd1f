//! A change, from its intent to its outcome.

use std::collections::BTreeMap;

use buffa::{EnumValue, MessageField};
use sayso_review::{ChangeRecord, ChangeStatus, Delivery, Uncaptured, WsPath};

use super::field::{enumeration, hash, list, not_said, optional, path, paths, required};
use super::{BadMessage, messages, texts};
use crate::proto;
use crate::proto::change::Status;

impl From<&ChangeRecord> for proto::Change {
    fn from(record: &ChangeRecord) -> Self {
        let files = record.files.iter().map(|file| proto::FileRecord {
            extent: proto::file_record::Extent::from(record.extent(file)).into(),
            ..file.into()
        });
        let (failed_reason, undone_by) = match &record.status {
            ChangeStatus::Failed { reason } => (Some(reason.clone()), None),
            ChangeStatus::Undone { by } => (None, Some(*by)),
            _ => (None, None),
        };
        Self {
            change: record.change,
            time_ms: record.time,
            status: Status::from(&record.status).into(),
            failed_reason,
            undone_by,
            origin: MessageField::some((&record.origin).into()),
            cause: MessageField::some((&record.cause).into()),
            subject: MessageField::some((&record.subject).into()),
            files: files.collect(),
            preview_hash: record.preview.to_string(),
            ruled: record.ruled.as_ref().map(|ruled| MessageField::some(ruled.into())).unwrap_or_default(),
            verdict: record.verdict.as_ref().map(|verdict| MessageField::some(verdict.into())).unwrap_or_default(),
            told: record.told.clone(),
            delivery: proto::change::Delivery::from(record.delivery).into(),
            applied: record.applied.as_ref().map(|applied| MessageField::some(applied.into())).unwrap_or_default(),
            in_part: record.in_part,
            performer: proto::Performer::from(record.performer).into(),
            deadline_ms: record.deadline,
            after: record.after.clone(),
            without: record.without.clone(),
            differs: texts(&record.differs),
            uncaptured: messages(&record.uncaptured),
            reviewed_by: record.reviewed,
            code: record.code,
            run_note: record.run_note.clone(),
            undone_files: record.undone_files.iter().map(|(path, by)| (path.to_string(), *by)).collect(),
            left_alone: texts(&record.left_alone),
            saved: texts(&record.saved),
            ..Default::default()
        }
    }
}

/// Without what only the engine needs: the intent, what is expected of an agent, and the numbers of the events.
impl TryFrom<proto::Change> for ChangeRecord {
    type Error = BadMessage;

    fn try_from(change: proto::Change) -> Result<Self, BadMessage> {
        Ok(Self {
            change: change.change,
            time: change.time_ms,
            status: status(change.status, change.failed_reason, change.undone_by)?,
            origin: required(change.origin, "origin")?,
            cause: required(change.cause, "cause")?,
            files: list(change.files, "files")?,
            preview: hash(&change.preview_hash, "preview_hash")?,
            verdict: optional(change.verdict, "verdict")?,
            told: change.told,
            delivery: delivery(change.delivery)?,
            applied: optional(change.applied, "applied")?,
            left_alone: paths(&change.left_alone, "left_alone")?,
            saved: paths(&change.saved, "saved")?,
            in_part: change.in_part,
            subject: required(change.subject, "subject")?,
            ruled: optional(change.ruled, "ruled")?,
            performer: enumeration(change.performer, "performer")?,
            intent: None,
            deadline: change.deadline_ms,
            after: change.after,
            without: change.without,
            expected: Vec::new(),
            outside: Vec::new(),
            differs: paths(&change.differs, "differs")?,
            uncaptured: change.uncaptured.into_iter().map(Uncaptured::from).collect(),
            reviewed: change.reviewed_by,
            code: change.code,
            run_note: change.run_note,
            undone_files: undone_files(change.undone_files)?,
            permitted: 0,
            happened: 0,
            since: 0,
        })
    }
}

impl From<Delivery> for proto::change::Delivery {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::NotTracked => Self::Unspecified,
            Delivery::Waiting => Self::Waiting,
            Delivery::Delivered => Self::Delivered,
        }
    }
}

fn delivery(delivery: EnumValue<proto::change::Delivery>) -> Result<Delivery, BadMessage> {
    Ok(match enumeration::<_, proto::change::Delivery>(delivery, "delivery")? {
        proto::change::Delivery::Unspecified => Delivery::NotTracked,
        proto::change::Delivery::Waiting => Delivery::Waiting,
        proto::change::Delivery::Delivered => Delivery::Delivered,
    })
}

fn undone_files(files: impl IntoIterator<Item = (String, u64)>) -> Result<BTreeMap<WsPath, u64>, BadMessage> {
    files.into_iter().map(|(name, by)| Ok((path(&name, &format!("undone_files[{name}]"))?, by))).collect()
}

impl From<&ChangeStatus> for Status {
    fn from(status: &ChangeStatus) -> Self {
        match status {
            ChangeStatus::Pending => Self::Pending,
            ChangeStatus::Interrupted => Self::Interrupted,
            ChangeStatus::Permitted => Self::Permitted,
            ChangeStatus::Applied => Self::Applied,
            ChangeStatus::Undone { .. } => Self::Undone,
            ChangeStatus::Denied => Self::Denied,
            ChangeStatus::Stale => Self::Stale,
            ChangeStatus::Cancelled => Self::Cancelled,
            ChangeStatus::Failed { .. } => Self::Failed,
        }
    }
}

/// Reads how a change stands from the three fields that say so.
fn status(
    status: EnumValue<Status>,
    failed_reason: Option<String>,
    undone_by: Option<u64>,
) -> Result<ChangeStatus, BadMessage> {
    let missing = |name: &str| BadMessage::new(name, "it is missing");
    Ok(match enumeration::<_, Status>(status, "status")? {
        Status::Unspecified => return Err(not_said().within("status")),
        Status::Pending => ChangeStatus::Pending,
        Status::Interrupted => ChangeStatus::Interrupted,
        Status::Permitted => ChangeStatus::Permitted,
        Status::Applied => ChangeStatus::Applied,
        Status::Undone => ChangeStatus::Undone { by: undone_by.ok_or_else(|| missing("undone_by"))? },
        Status::Denied => ChangeStatus::Denied,
        Status::Stale => ChangeStatus::Stale,
        Status::Cancelled => ChangeStatus::Cancelled,
        Status::Failed => ChangeStatus::Failed { reason: failed_reason.ok_or_else(|| missing("failed_reason"))? },
    })
}
