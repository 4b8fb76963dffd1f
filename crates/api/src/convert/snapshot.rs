//! What a file was before a tool call.

use buffa::{EnumValue, MessageField};
use sayso_review::{Freed, Snapshot, SnapshotRecord, Tier};

use super::BadMessage;
use super::field::{enumeration, not_said, path, required};
use crate::proto;
use crate::proto::FreedBecause;

impl From<Tier> for proto::Tier {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Answer => Self::Answer,
            Tier::Hook => Self::Hook,
            Tier::Start => Self::Start,
        }
    }
}

impl TryFrom<proto::Tier> for Tier {
    type Error = BadMessage;

    fn try_from(tier: proto::Tier) -> Result<Self, BadMessage> {
        match tier {
            proto::Tier::Unspecified => Err(not_said()),
            proto::Tier::Answer => Ok(Self::Answer),
            proto::Tier::Hook => Ok(Self::Hook),
            proto::Tier::Start => Ok(Self::Start),
        }
    }
}

impl From<Freed> for FreedBecause {
    fn from(freed: Freed) -> Self {
        match freed {
            Freed::Replaced => Self::Replaced,
            Freed::CallEnded => Self::CallEnded,
            Freed::SessionEnded => Self::SessionEnded,
            Freed::Restarted => Self::Restarted,
        }
    }
}

impl TryFrom<FreedBecause> for Freed {
    type Error = BadMessage;

    fn try_from(because: FreedBecause) -> Result<Self, BadMessage> {
        match because {
            FreedBecause::Unspecified => Err(not_said()),
            FreedBecause::Replaced => Ok(Self::Replaced),
            FreedBecause::CallEnded => Ok(Self::CallEnded),
            FreedBecause::SessionEnded => Ok(Self::SessionEnded),
            FreedBecause::Restarted => Ok(Self::Restarted),
        }
    }
}

impl From<&Snapshot> for proto::Captured {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            snapshot: snapshot.snapshot,
            path: snapshot.path.to_string(),
            location: snapshot.location.to_string(),
            state: MessageField::some((&snapshot.state).into()),
            tool: snapshot.tool.clone(),
            tier: proto::Tier::from(snapshot.tier).into(),
            call: snapshot.call.clone(),
            session: snapshot.session.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::Captured> for Snapshot {
    type Error = BadMessage;

    fn try_from(captured: proto::Captured) -> Result<Self, BadMessage> {
        Ok(Self {
            snapshot: captured.snapshot,
            path: path(&captured.path, "path")?,
            location: path(&captured.location, "location")?,
            state: required(captured.state, "state")?,
            tool: captured.tool,
            tier: enumeration(captured.tier, "tier")?,
            call: captured.call,
            session: captured.session,
        })
    }
}

impl From<&SnapshotRecord> for proto::SnapshotRecord {
    fn from(record: &SnapshotRecord) -> Self {
        Self {
            snapshot: MessageField::some((&record.snapshot).into()),
            time_ms: record.time,
            of_call: record.of_call.clone(),
            freed: record.freed.map_or(FreedBecause::Unspecified, FreedBecause::from).into(),
            ..Default::default()
        }
    }
}

/// Without the number of the event that keeps its content, which only the engine needs.
impl TryFrom<proto::SnapshotRecord> for SnapshotRecord {
    type Error = BadMessage;

    fn try_from(record: proto::SnapshotRecord) -> Result<Self, BadMessage> {
        let freed = match record.freed {
            EnumValue::Known(FreedBecause::Unspecified) => None,
            because => Some(enumeration(because, "freed")?),
        };
        Ok(Self {
            snapshot: required(record.snapshot, "snapshot")?,
            time: record.time_ms,
            of_call: record.of_call,
            freed,
            number: 0,
        })
    }
}
