//! Snapshots of files before tool calls.

use buffa::{EnumValue, MessageField};
use sayso_review::{FreeReason, Snapshot, SnapshotRecord, Tier};

use super::BadMessage;
use super::field::{enumeration, path, required, unspecified};
use crate::proto;

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
            proto::Tier::Unspecified => Err(unspecified()),
            proto::Tier::Answer => Ok(Self::Answer),
            proto::Tier::Hook => Ok(Self::Hook),
            proto::Tier::Start => Ok(Self::Start),
        }
    }
}

impl From<FreeReason> for proto::FreeReason {
    fn from(freed: FreeReason) -> Self {
        match freed {
            FreeReason::Replaced => Self::Replaced,
            FreeReason::CallEnded => Self::CallEnded,
            FreeReason::SessionEnded => Self::SessionEnded,
            FreeReason::Restarted => Self::Restarted,
        }
    }
}

impl TryFrom<proto::FreeReason> for FreeReason {
    type Error = BadMessage;

    fn try_from(reason: proto::FreeReason) -> Result<Self, BadMessage> {
        match reason {
            proto::FreeReason::Unspecified => Err(unspecified()),
            proto::FreeReason::Replaced => Ok(Self::Replaced),
            proto::FreeReason::CallEnded => Ok(Self::CallEnded),
            proto::FreeReason::SessionEnded => Ok(Self::SessionEnded),
            proto::FreeReason::Restarted => Ok(Self::Restarted),
        }
    }
}

impl From<&Snapshot> for proto::Snapshot {
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

impl TryFrom<proto::Snapshot> for Snapshot {
    type Error = BadMessage;

    fn try_from(snapshot: proto::Snapshot) -> Result<Self, BadMessage> {
        Ok(Self {
            snapshot: snapshot.snapshot,
            path: path(&snapshot.path, "path")?,
            location: path(&snapshot.location, "location")?,
            state: required(snapshot.state, "state")?,
            tool: snapshot.tool,
            tier: enumeration(snapshot.tier, "tier")?,
            call: snapshot.call,
            session: snapshot.session,
        })
    }
}

impl From<&SnapshotRecord> for proto::SnapshotRecord {
    fn from(record: &SnapshotRecord) -> Self {
        Self {
            snapshot: MessageField::some((&record.snapshot).into()),
            time_ms: record.time,
            call: record.correlated_call.clone(),
            freed: record.freed.map_or(proto::FreeReason::Unspecified, proto::FreeReason::from).into(),
            ..Default::default()
        }
    }
}

/// Leaves out the event number: only the engine needs it.
impl TryFrom<proto::SnapshotRecord> for SnapshotRecord {
    type Error = BadMessage;

    fn try_from(record: proto::SnapshotRecord) -> Result<Self, BadMessage> {
        let freed = match record.freed {
            EnumValue::Known(proto::FreeReason::Unspecified) => None,
            reason => Some(enumeration(reason, "freed")?),
        };
        Ok(Self {
            snapshot: required(record.snapshot, "snapshot")?,
            time: record.time_ms,
            correlated_call: record.call,
            freed,
            number: 0,
        })
    }
}
