//! Steps of plans and of applied changes.

use buffa::MessageField;
use sayso_review::{ApplyRecord, PlanStep, RecordedStep, Uncaptured};

use super::field::{list, path, paths, required};
use super::{BadMessage, messages, texts};
use crate::proto;

impl From<&RecordedStep> for proto::RecordedStep {
    fn from(step: &RecordedStep) -> Self {
        Self {
            path: step.path.to_string(),
            before: MessageField::some((&step.before).into()),
            after: MessageField::some((&step.after).into()),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::RecordedStep> for RecordedStep {
    type Error = BadMessage;

    fn try_from(step: proto::RecordedStep) -> Result<Self, BadMessage> {
        Ok(Self {
            path: path(&step.path, "path")?,
            before: required(step.before, "before")?,
            after: required(step.after, "after")?,
        })
    }
}

impl From<&PlanStep> for proto::PlanStep {
    fn from(step: &PlanStep) -> Self {
        Self {
            path: step.path.to_string(),
            before: MessageField::some((&step.before).into()),
            after: MessageField::some((&step.after).into()),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::PlanStep> for PlanStep {
    type Error = BadMessage;

    fn try_from(step: proto::PlanStep) -> Result<Self, BadMessage> {
        Ok(Self {
            path: path(&step.path, "path")?,
            before: required(step.before, "before")?,
            after: required(step.after, "after")?,
        })
    }
}

impl From<&ApplyRecord> for proto::ApplyRecord {
    fn from(record: &ApplyRecord) -> Self {
        Self {
            steps: messages(&record.steps),
            directories: texts(&record.directories),
            emptied: texts(&record.emptied),
            token: record.token.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::ApplyRecord> for ApplyRecord {
    type Error = BadMessage;

    fn try_from(record: proto::ApplyRecord) -> Result<Self, BadMessage> {
        Ok(Self {
            token: record.token,
            steps: list(record.steps, "steps")?,
            directories: paths(&record.directories, "directories")?,
            emptied: paths(&record.emptied, "emptied")?,
        })
    }
}

impl From<&Uncaptured> for proto::Uncaptured {
    fn from(uncaptured: &Uncaptured) -> Self {
        Self { path: uncaptured.path.clone(), reason: uncaptured.reason.clone(), ..Default::default() }
    }
}

impl From<proto::Uncaptured> for Uncaptured {
    fn from(uncaptured: proto::Uncaptured) -> Self {
        Self { path: uncaptured.path, reason: uncaptured.reason }
    }
}
