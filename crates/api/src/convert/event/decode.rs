//! Conversion of messages to events.

use sayso_review::{Event, Outcome, OutsideFile, OutsidePath, RefreshReason, Uncaptured};

use crate::convert::BadMessage;
use crate::convert::field::{
    count, enumeration, hash, json, list, missing, optional, path, paths, required, unspecified,
};
use crate::proto;
use crate::proto::oneof::event::Kind;
use crate::proto::preview_refreshed::Reason;

/// Reads an event of a known kind. Errors name the field from the message [`proto::Event`] down.
pub(super) fn event(kind: Kind) -> Result<Event, BadMessage> {
    let within = |name: &'static str| move |error: BadMessage| error.within(name);
    Ok(match kind {
        Kind::Proposed(message) => proposed(*message).map_err(within("proposed"))?,
        Kind::Refreshed(message) => refreshed(*message).map_err(within("refreshed"))?,
        Kind::Decided(message) => Event::Decided {
            change: message.change,
            verdict: required(message.verdict, "decided.verdict")?,
            agent_message: message.agent_message,
        },
        Kind::Applying(message) => {
            let record = required(message.record, "applying.record")?;
            Event::Applying { change: message.change, record, note: message.note }
        }
        Kind::Permitted(message) => permitted(*message).map_err(within("permitted"))?,
        Kind::Observed(message) => Event::Observed {
            change: message.change,
            record: required(message.record, "observed.record")?,
            differing_files: paths(&message.differing_files, "observed.differing_files")?,
            uncaptured: message.uncaptured.into_iter().map(Uncaptured::from).collect(),
        },
        Kind::Reviewed(message) => Event::Reviewed { change: message.change, by: message.by },
        Kind::Ended(message) => Event::Ended {
            change: message.change,
            outcome: required(message.outcome, "ended.outcome")?,
            agent_message: message.agent_message,
        },
        Kind::Undone(message) => {
            let paths = paths(&message.paths, "undone.paths")?;
            Event::Undone { change: message.change, by: message.by, paths }
        }
        Kind::Redone(message) => {
            let paths = paths(&message.paths, "redone.paths")?;
            Event::Redone { change: message.change, by: message.by, paths }
        }
        Kind::Recovered(message) => Event::Recovered {
            change: message.change,
            finished: message.completed,
            skipped_files: paths(&message.skipped_files, "recovered.skipped_files")?,
            rescued_files: paths(&message.rescued_files, "recovered.rescued_files")?,
        },
        Kind::SessionStarted(message) => {
            let proto::SessionStarted { session, agent, location, parent, .. } = *message;
            Event::SessionStarted { session, agent, location, parent }
        }
        Kind::SessionResumed(message) => Event::SessionResumed { session: message.session },
        Kind::SessionEnded(message) => Event::SessionEnded { session: message.session },
        Kind::TurnStarted(message) => Event::TurnStarted { session: message.session, turn: message.turn },
        Kind::TurnEnded(message) => Event::TurnEnded { session: message.session, turn: message.turn },
        Kind::RuleAdded(message) => {
            Event::RuleAdded { rule: json(&message.rule_json, "rule_added.rule_json")?, session: message.session }
        }
        Kind::MessageQueued(message) => {
            let proto::MessageQueued { session, change, text, call, .. } = *message;
            Event::MessageQueued { session, change, call, text }
        }
        Kind::MessageDelivered(message) => {
            let proto::MessageDelivered { session, change, message, .. } = *message;
            Event::MessageDelivered { session, change, message }
        }
        Kind::MessagesDelivered(message) => Event::Delivered { session: message.session, through: message.through },
        Kind::SnapshotCaptured(message) => {
            Event::SnapshotCaptured((*message).try_into().map_err(within("snapshot_captured"))?)
        }
        Kind::SnapshotCorrelated(message) => {
            let proto::SnapshotCorrelated { snapshot, call, session, .. } = *message;
            Event::SnapshotCorrelated { snapshot, call, session }
        }
        Kind::SnapshotsFreed(message) => Event::SnapshotsFreed {
            reason: enumeration(message.reason, "snapshots_freed.reason")?,
            snapshots: message.snapshots,
        },
        // Belongs to no event that this version knows; the caller has handled it.
        Kind::UnknownJson(_) => return Err(unspecified().within("kind")),
        Kind::Request(message) => Event::Request((*message).try_into().map_err(within("request"))?),
        Kind::RequestMode(message) => Event::RequestMode((*message).try_into().map_err(within("request_mode"))?),
        Kind::Overrides(message) => Event::Overrides((*message).into()),
        Kind::RequestViewed(message) => Event::RequestViewed((*message).try_into().map_err(within("request_viewed"))?),
        Kind::HunksSeen(message) => hunks_seen(&message).map_err(within("hunks_seen"))?,
        Kind::Agent(message) => Event::Agent((*message).try_into().map_err(within("agent"))?),
        Kind::ReadThrough(message) => Event::ReadThrough { through: message.through },
    })
}

fn hunks_seen(message: &proto::HunksSeen) -> Result<Event, BadMessage> {
    let hunks = message.hunks.iter().enumerate().map(|(index, hunk)| count(*hunk, &format!("hunks[{index}]")));
    Ok(Event::HunksSeen {
        change: message.change,
        path: path(&message.path, "path")?,
        file: hash(&message.file_hash, "file_hash")?,
        hunks: hunks.collect::<Result<_, _>>()?,
    })
}

fn proposed(message: proto::ChangeProposed) -> Result<Event, BadMessage> {
    Ok(Event::Proposed {
        change: message.change,
        origin: required(message.origin, "origin")?,
        cause: required(message.cause, "cause")?,
        files: list(message.files, "files")?,
        preview: hash(&message.preview_hash, "preview_hash")?,
        subject: required(message.subject, "subject")?,
        ruling: optional(message.ruling, "ruling")?,
        performer: enumeration(message.performer, "performer")?,
        intent: None,
        deadline: message.deadline_ms,
        predecessors: message.predecessors,
    })
}

fn refreshed(message: proto::PreviewRefreshed) -> Result<Event, BadMessage> {
    let predecessor = || message.predecessor.ok_or_else(|| missing("predecessor"));
    let reason = match enumeration::<_, Reason>(message.reason, "reason")? {
        Reason::Unspecified => return Err(unspecified().within("reason")),
        Reason::FilesChanged => RefreshReason::FilesChanged,
        Reason::PredecessorApplied => RefreshReason::PredecessorApplied { predecessor: predecessor()? },
        Reason::PredecessorDropped => RefreshReason::PredecessorDropped { predecessor: predecessor()? },
    };
    Ok(Event::Refreshed {
        change: message.change,
        files: list(message.files, "files")?,
        preview: hash(&message.preview_hash, "preview_hash")?,
        reason,
    })
}

fn permitted(message: proto::ChangePermitted) -> Result<Event, BadMessage> {
    let outside = list(message.outside, "outside")?;
    let (expected, editor) = (list(message.expected, "expected")?, message.editor);
    Ok(Event::Permitted { change: message.change, expected, outside, editor })
}

impl TryFrom<proto::OutsideFile> for OutsideFile {
    type Error = BadMessage;

    fn try_from(file: proto::OutsideFile) -> Result<Self, BadMessage> {
        Ok(Self {
            path: OutsidePath::parse(&file.path).map_err(|error| BadMessage::new("path", error.to_string()))?,
            before: file.before_hash.map(|text| hash(&text, "before_hash")).transpose()?,
        })
    }
}

impl TryFrom<proto::Outcome> for Outcome {
    type Error = BadMessage;

    fn try_from(outcome: proto::Outcome) -> Result<Self, BadMessage> {
        use proto::outcome::Kind;
        Ok(match enumeration::<_, Kind>(outcome.kind, "kind")? {
            Kind::Unspecified => return Err(unspecified().within("kind")),
            Kind::Applied => Self::Applied,
            Kind::Sent => Self::Sent,
            Kind::Ran => Self::Ran { exit_code: outcome.exit_code, note: outcome.reason },
            Kind::Denied => Self::Denied,
            Kind::Stale => Self::Stale { files: paths(&outcome.files, "files")? },
            Kind::Cancelled => Self::Cancelled,
            Kind::Failed => Self::Failed { reason: outcome.reason.ok_or_else(|| missing("reason"))? },
        })
    }
}
