//! Changes, with their state.

use std::collections::BTreeMap;

use buffa::{EnumValue, MessageField};
use sayso_review::{ChangeRecord, ChangeStatus, Delivery, Uncaptured, WsPath};

use super::field::{enumeration, hash, list, missing, optional, path, paths, required, unspecified};
use super::{BadMessage, messages, texts};
use crate::proto;
use crate::proto::change::Status;

impl From<&ChangeRecord> for proto::Change {
    fn from(record: &ChangeRecord) -> Self {
        let files = record.files.iter().map(|file| proto::FileRecord {
            applied_part: proto::file_record::AppliedPart::from(record.applied_part(file)).into(),
            card: MessageField::none(),
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
            ruling: record.ruling.as_ref().map(proto::RulingRecord::from).into(),
            verdict: record.verdict.as_ref().map(proto::Verdict::from).into(),
            agent_message: record.agent_message.clone(),
            delivery: proto::change::Delivery::from(record.delivery).into(),
            applied: record.applied.as_ref().map(proto::ApplyRecord::from).into(),
            partial: record.partial,
            performer: proto::Performer::from(record.performer).into(),
            deadline_ms: record.deadline,
            predecessors: record.predecessors.clone(),
            dropped_predecessors: record.dropped_predecessors.clone(),
            differing_files: texts(&record.differing_files),
            uncaptured: messages(&record.uncaptured),
            reviewed_by: record.reviewed,
            exit_code: record.exit_code,
            run_note: record.run_note.clone(),
            undone_files: record.undone_files.iter().map(|(path, by)| (path.to_string(), *by)).collect(),
            skipped_files: texts(&record.skipped_files),
            rescued_files: texts(&record.rescued_files),
            ..Default::default()
        }
    }
}

/// Leaves out the engine's own fields: the intent, expected steps and event numbers.
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
            agent_message: change.agent_message,
            delivery: delivery(change.delivery)?,
            applied: optional(change.applied, "applied")?,
            skipped_files: paths(&change.skipped_files, "skipped_files")?,
            rescued_files: paths(&change.rescued_files, "rescued_files")?,
            partial: change.partial,
            subject: required(change.subject, "subject")?,
            ruling: optional(change.ruling, "ruling")?,
            performer: enumeration(change.performer, "performer")?,
            intent: None,
            deadline: change.deadline_ms,
            predecessors: change.predecessors,
            dropped_predecessors: change.dropped_predecessors,
            expected: Vec::new(),
            outside: Vec::new(),
            differing_files: paths(&change.differing_files, "differing_files")?,
            uncaptured: change.uncaptured.into_iter().map(Uncaptured::from).collect(),
            reviewed: change.reviewed_by,
            exit_code: change.exit_code,
            run_note: change.run_note,
            undone_files: undone_files(change.undone_files)?,
            permitted_event: 0,
            applied_event: 0,
            status_event: 0,
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

/// Combines the three fields that encode a status.
fn status(
    status: EnumValue<Status>,
    failed_reason: Option<String>,
    undone_by: Option<u64>,
) -> Result<ChangeStatus, BadMessage> {
    Ok(match enumeration::<_, Status>(status, "status")? {
        Status::Unspecified => return Err(unspecified().within("status")),
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
