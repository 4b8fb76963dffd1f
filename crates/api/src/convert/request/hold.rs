//! Holding a request: the reason, the release, and the saved edits that were applied.

use sayso_review::{OverrideReport, PauseReason, Resumer, SkippedEdit, TurnEditReport};

use crate::convert::BadMessage;
use crate::convert::field::{enumeration, missing, unspecified};
use crate::proto;

/// The message of a report; `None` for an empty one.
pub(super) fn overrides(report: &OverrideReport) -> Option<proto::OverrideReport> {
    (!report.is_empty()).then(|| report.into())
}

impl From<&PauseReason> for proto::PauseReason {
    fn from(reason: &PauseReason) -> Self {
        use proto::pause_reason::Kind;
        let (kind, rule) = match reason {
            PauseReason::EveryTurn => (Kind::EveryTurn, None),
            PauseReason::NextTurn => (Kind::NextTurn, None),
            PauseReason::Capture => (Kind::Capture, None),
            PauseReason::Rule { rule } => (Kind::Rule, Some(rule.clone())),
            PauseReason::Retry => (Kind::Retry, None),
        };
        Self { kind: kind.into(), rule, ..Default::default() }
    }
}

impl TryFrom<proto::PauseReason> for PauseReason {
    type Error = BadMessage;

    fn try_from(reason: proto::PauseReason) -> Result<Self, BadMessage> {
        use proto::pause_reason::Kind;
        Ok(match enumeration::<_, Kind>(reason.kind, "kind")? {
            Kind::Unspecified => return Err(unspecified().within("kind")),
            Kind::EveryTurn => Self::EveryTurn,
            Kind::NextTurn => Self::NextTurn,
            Kind::Capture => Self::Capture,
            Kind::Rule => Self::Rule { rule: reason.rule.ok_or_else(|| missing("rule"))? },
            Kind::Retry => Self::Retry,
        })
    }
}

impl From<Resumer> for proto::Resumer {
    fn from(by: Resumer) -> Self {
        match by {
            Resumer::Person => Self::Person,
            Resumer::Retry => Self::Retry,
        }
    }
}

impl TryFrom<proto::Resumer> for Resumer {
    type Error = BadMessage;

    fn try_from(by: proto::Resumer) -> Result<Self, BadMessage> {
        match by {
            proto::Resumer::Unspecified => Err(unspecified()),
            proto::Resumer::Person => Ok(Self::Person),
            proto::Resumer::Retry => Ok(Self::Retry),
        }
    }
}

impl From<&SkippedEdit> for proto::SkippedEdit {
    fn from(edit: &SkippedEdit) -> Self {
        Self { path: edit.path.clone(), reason: edit.reason.clone(), ..Default::default() }
    }
}

impl From<proto::SkippedEdit> for SkippedEdit {
    fn from(edit: proto::SkippedEdit) -> Self {
        Self { path: edit.path, reason: edit.reason }
    }
}

impl From<&OverrideReport> for proto::OverrideReport {
    fn from(report: &OverrideReport) -> Self {
        let turn = report.turn.as_ref().map(|turn| proto::TurnEditReport {
            from: turn.from,
            applied: turn.applied.clone(),
            dropped: turn.dropped.iter().map(Into::into).collect(),
            ..Default::default()
        });
        Self {
            applied: report.applied.clone(),
            skipped: report.skipped.iter().map(Into::into).collect(),
            turn: turn.into(),
            ..Default::default()
        }
    }
}

impl From<proto::OverrideReport> for OverrideReport {
    fn from(report: proto::OverrideReport) -> Self {
        let turn = report.turn.into_option().map(|turn| TurnEditReport {
            from: turn.from,
            applied: turn.applied,
            dropped: turn.dropped.into_iter().map(Into::into).collect(),
        });
        let skipped = report.skipped.into_iter().map(Into::into).collect();
        Self { applied: report.applied, skipped, turn }
    }
}
