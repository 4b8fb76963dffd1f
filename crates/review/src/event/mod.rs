//! The entries of the stream, which the engine, the protocol and every surface share.
//!
//! Events are written as JSON with a version beside them. What a later version adds is ignored, an event of an unknown kind
//! stays readable as data, and nothing that was recorded ever changes its meaning.

mod file_record;
mod origin;
mod snapshot;
mod subject;

use serde::{Deserialize, Serialize};

pub use file_record::{FileRecord, Outcome};
pub use origin::{Cause, Origin};
pub use snapshot::{Freed, Snapshot, SnapshotId, SnapshotRecord, Tier};
pub use subject::{OutsideFile, Performer, Refresh, RulingRecord, Subject, Uncaptured};

use sayso_base::{ContentHash, WsPath};
use sayso_policy::Rule;

use crate::plan::{ApplyRecord, RecordedStep};
use crate::request::{ModeSet, OverridesSet, RequestEvent, RequestId, RequestLook};
use crate::verdict::Verdict;

/// The version of events that this program writes.
pub const EVENT_VERSION: u32 = 1;

/// The number of a change: 1 for the first in a workspace. Whatever an agent wants to do gets one, with its preview, its verdict
/// and its outcome: a change of files, a command, a call of a tool.
pub type ChangeId = u64;

/// One entry of the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a proposal is the most frequent one")]
pub enum Event {
    /// A change was previewed.
    Proposed {
        /// Its number.
        change: ChangeId,
        /// Where it comes from.
        origin: Origin,
        /// Why there is one.
        cause: Cause,
        /// What it is about.
        files: Vec<FileRecord>,
        /// What a verdict on it is bound to.
        preview: ContentHash,
        /// What it is about besides files.
        #[serde(default, skip_serializing_if = "Subject::is_files")]
        subject: Subject,
        /// What policy said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ruled: Option<RulingRecord>,
        /// Who carries it out.
        #[serde(default, skip_serializing_if = "Performer::is_gate")]
        performer: Performer,
        /// The intent as it came, from which the preview can be made anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<ContentHash>,
        /// When it is denied if nobody has decided, in milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<i64>,
        /// Changes of the same files that were waiting when it came.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        after: Vec<ChangeId>,
    },
    /// A preview was made anew. Verdicts on the earlier one no longer count.
    Refreshed {
        /// The change.
        change: ChangeId,
        /// What it is about now.
        files: Vec<FileRecord>,
        /// What a verdict on it is bound to now.
        preview: ContentHash,
        /// Why.
        #[serde(flatten)]
        why: Refresh,
    },
    /// Somebody decided.
    Decided {
        /// The change.
        change: ChangeId,
        /// What they said.
        verdict: Verdict,
        /// What the agent is told.
        told: String,
    },
    /// A plan is about to reach the tree. Without an outcome after it, it was interrupted.
    Applying {
        /// The change.
        change: ChangeId,
        /// What happens.
        record: ApplyRecord,
    },
    /// Somebody other than us was let go ahead; what they did is observed afterwards.
    Permitted {
        /// The change.
        change: ChangeId,
        /// What they are expected to do to files, if that is known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        expected: Vec<RecordedStep>,
        /// Files outside the workspace that they may write, as they were.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outside: Vec<OutsideFile>,
    },
    /// What became of files while a change was carried out by somebody else.
    Observed {
        /// The change.
        change: ChangeId,
        /// What was there and what is there now.
        record: ApplyRecord,
        /// Files that are not what was approved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        differs: Vec<WsPath>,
        /// What cannot be put back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        uncaptured: Vec<Uncaptured>,
    },
    /// A change that happened at once was reviewed at the end of its turn.
    Reviewed {
        /// It.
        change: ChangeId,
        /// The change that says what of it stays.
        by: ChangeId,
    },
    /// A change ended.
    Ended {
        /// The change.
        change: ChangeId,
        /// How.
        outcome: Outcome,
        /// What the agent is told, if that is not what was to be said had it gone as decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<String>,
    },
    /// A change that was applied was taken back.
    Undone {
        /// It.
        change: ChangeId,
        /// The change that did so.
        by: ChangeId,
        /// Only these files of it; all, if none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WsPath>,
    },
    /// A change that was taken back was made again.
    Redone {
        /// It.
        change: ChangeId,
        /// The change that did so.
        by: ChangeId,
        /// Only these files of it; all, if none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WsPath>,
    },
    /// A start found a plan that was interrupted, and finished it or took it back.
    Recovered {
        /// The change.
        change: ChangeId,
        /// What the start found and did.
        finished: bool,
        /// Files that were neither as before nor as planned, and were left alone.
        left_alone: Vec<WsPath>,
        /// Where somebody's work is that was displaced in the moment of the crash.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        saved: Vec<WsPath>,
    },
    /// A conversation began.
    SessionStarted {
        /// Its id.
        session: String,
        /// The agent's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Where it works, as it says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// The session that it is a part of, if it is a subagent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// A conversation went on.
    SessionResumed {
        /// Its id.
        session: String,
    },
    /// A conversation ended.
    SessionEnded {
        /// Its id.
        session: String,
    },
    /// A prompt came.
    TurnStarted {
        /// The session.
        session: String,
        /// The turn.
        turn: String,
    },
    /// The agent has done what the prompt asked for.
    TurnEnded {
        /// The session.
        session: String,
        /// The turn.
        turn: String,
    },
    /// A verdict was meant for what comes, too.
    RuleAdded {
        /// The session it is for.
        session: String,
        /// The rule.
        rule: Rule,
    },
    /// Something is to be told to an agent at its next opportunity.
    Message {
        /// The session.
        session: String,
        /// The change it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<ChangeId>,
        /// The tool call that it answers: its hook delivers the message, or a later prompt does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// What to say.
        text: String,
    },
    /// A message was handed to the agent.
    Told {
        /// The session.
        session: String,
        /// The change that the message is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<ChangeId>,
        /// The number of the event with the message.
        message: u64,
    },
    /// An agent was told all that there was to tell.
    Delivered {
        /// The session.
        session: String,
        /// The number of the last event that it knows of.
        through: u64,
    },
    /// What a file was before a tool call was kept.
    Captured(Snapshot),
    /// A tool started, and the snapshot is its from now on.
    Correlated {
        /// The snapshot.
        snapshot: SnapshotId,
        /// The call.
        call: String,
        /// The session that the call is of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// Snapshots are no longer kept.
    Freed {
        /// Those.
        snapshots: Vec<SnapshotId>,
        /// Why.
        because: Freed,
    },
    /// Something happened to a request.
    Request(RequestEvent),
    /// Requests are treated otherwise from now on.
    RequestMode(ModeSet),
    /// Edits were saved, or removed.
    Overrides(OverridesSet),
    /// Somebody looked at requests, or there is less to look at.
    RequestLook(RequestLook),
}

impl Event {
    /// The change it is about.
    pub fn change(&self) -> Option<ChangeId> {
        match self {
            Self::Proposed { change, .. }
            | Self::Refreshed { change, .. }
            | Self::Decided { change, .. }
            | Self::Applying { change, .. }
            | Self::Permitted { change, .. }
            | Self::Observed { change, .. }
            | Self::Reviewed { change, .. }
            | Self::Ended { change, .. }
            | Self::Undone { change, .. }
            | Self::Redone { change, .. }
            | Self::Recovered { change, .. } => Some(*change),
            Self::Message { change, .. } | Self::Told { change, .. } => *change,
            Self::SessionStarted { .. }
            | Self::SessionResumed { .. }
            | Self::SessionEnded { .. }
            | Self::TurnStarted { .. }
            | Self::TurnEnded { .. }
            | Self::RuleAdded { .. }
            | Self::Delivered { .. }
            | Self::Captured(_)
            | Self::Correlated { .. }
            | Self::Freed { .. }
            | Self::Request(_)
            | Self::RequestMode(_)
            | Self::Overrides(_)
            | Self::RequestLook(_) => None,
        }
    }

    /// The request it is about.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            Self::Request(event) => Some(event.request),
            _ => None,
        }
    }

    /// The snapshot it is about.
    pub fn snapshot(&self) -> Option<SnapshotId> {
        match self {
            Self::Captured(snapshot) => Some(snapshot.snapshot),
            Self::Correlated { snapshot, .. } => Some(*snapshot),
            _ => None,
        }
    }

    /// The session it is about, where that is not the change's.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Proposed { origin, .. } => origin.session.as_deref(),
            Self::Captured(snapshot) => snapshot.session.as_deref(),
            Self::SessionStarted { session, .. }
            | Self::SessionResumed { session }
            | Self::SessionEnded { session }
            | Self::TurnStarted { session, .. }
            | Self::TurnEnded { session, .. }
            | Self::RuleAdded { session, .. }
            | Self::Message { session, .. }
            | Self::Told { session, .. }
            | Self::Delivered { session, .. } => Some(session),
            _ => None,
        }
    }
}

/// An event with its number and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its number in the stream, from 1 without gaps.
    pub number: u64,
    /// When it was recorded, in milliseconds since 1970.
    pub time: i64,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// An event as far as this program understands it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "nearly every one is known")]
pub enum EventBody {
    /// One that it knows.
    Known(Event),
    /// One that a later version wrote.
    Unknown(serde_json::Value),
}

impl EventBody {
    /// Reads what was recorded. Nothing is lost: what is not understood is kept as data.
    pub fn decode(bytes: &[u8]) -> Self {
        if let Ok(event) = serde_json::from_slice(bytes) {
            return Self::Known(event);
        }
        // Always an object, so that it can be written out beside its number and time.
        let value = match serde_json::from_slice(bytes) {
            Ok(value @ serde_json::Value::Object(_)) => value,
            _ => serde_json::json!({ "unreadable": String::from_utf8_lossy(bytes) }),
        };
        Self::Unknown(value)
    }
}
