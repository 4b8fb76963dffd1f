//! Events of the journal, shared by the engine, the protocol and every surface.
//!
//! An event is stored as JSON with a version number. Unknown fields are ignored, and an event of an unknown kind stays
//! readable as data. The meaning of a recorded event never changes.

mod agent;
mod card;
mod file_record;
mod origin;
mod snapshot;
mod subject;

use serde::{Deserialize, Serialize};

pub use agent::{AgentEntry, AgentEntryKind, BUILT_IN_AGENT};
pub use card::{CardLine, CardLineKind, InlineCard};
pub use file_record::{FileRecord, Outcome};
pub use origin::{Cause, Origin};
pub use snapshot::{FreeReason, Snapshot, SnapshotId, SnapshotRecord, Tier};
pub use subject::{OutsideFile, Performer, RefreshReason, RulingRecord, Subject, Uncaptured};

use sayso_base::{ContentHash, WsPath};
use sayso_policy::Rule;

use crate::plan::{ApplyRecord, RecordedStep};
use crate::request::{ModeSet, OverridesSet, RequestEvent, RequestId, ViewEvent};
use crate::verdict::Verdict;

/// Version of the events that this program writes.
pub const EVENT_VERSION: u32 = 1;

/// Sequence number of a change, from 1 in each workspace. Every file change, command and tool call that an agent
/// submits gets one.
pub type ChangeId = u64;

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a proposal is the most frequent one")]
pub enum Event {
    /// A change was previewed.
    Proposed {
        change: ChangeId,
        origin: Origin,
        /// Reason why the change exists.
        cause: Cause,
        files: Vec<FileRecord>,
        /// Hash of the preview; a verdict must carry it.
        preview: ContentHash,
        /// The command or tool call, if the change is more than file edits.
        #[serde(default, skip_serializing_if = "Subject::is_files")]
        subject: Subject,
        /// Decision of the policy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ruling: Option<RulingRecord>,
        /// Party that carries out the change once it is approved.
        #[serde(default, skip_serializing_if = "Performer::is_gate")]
        performer: Performer,
        /// Blob with the submitted intent; refreshing the preview reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<ContentHash>,
        /// Time at which an undecided change is denied, in milliseconds since 1970.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<i64>,
        /// Pending changes of the same files at the time of submission.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        predecessors: Vec<ChangeId>,
    },
    /// The preview was recomputed, which invalidates verdicts on the previous one.
    Refreshed {
        change: ChangeId,
        files: Vec<FileRecord>,
        /// Hash of the new preview; a verdict must carry it.
        preview: ContentHash,
        #[serde(flatten)]
        reason: RefreshReason,
    },
    /// A person or a rule decided.
    Decided {
        change: ChangeId,
        verdict: Verdict,
        /// Message to the agent.
        agent_message: String,
    },
    /// A plan is about to be applied. If no outcome follows, a crash interrupted it.
    Applying {
        change: ChangeId,
        record: ApplyRecord,
        /// Reason why the engine writes files that an editor was to write.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// An approved change was handed to its performer; the engine observes the files afterwards.
    Permitted {
        change: ChangeId,
        /// Expected effect on files; empty if it is unknown.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        expected: Vec<RecordedStep>,
        /// Files outside the workspace that the performer may write, with their previous content.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outside: Vec<OutsideFile>,
        /// Name of the editor that applies the change for the engine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        editor: Option<String>,
    },
    /// Changes to files that were observed while the agent or a command ran.
    Observed {
        change: ChangeId,
        /// Observed states before and after.
        record: ApplyRecord,
        /// Files whose content differs from the approved content.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        differing_files: Vec<WsPath>,
        /// Changed paths that cannot be undone, because their old content was not captured.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        uncaptured: Vec<Uncaptured>,
    },
    /// A change that was applied without a prior decision was reviewed at the end of its turn.
    Reviewed {
        change: ChangeId,
        by: ChangeId,
    },
    Ended {
        change: ChangeId,
        outcome: Outcome,
        /// Message to the agent, if it differs from the one in [`Event::Decided`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_message: Option<String>,
    },
    /// An applied change was undone.
    Undone {
        change: ChangeId,
        /// The change that reverted it.
        by: ChangeId,
        /// Undone files; empty if all files were undone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WsPath>,
    },
    /// An undone change was redone.
    Redone {
        change: ChangeId,
        /// The change that applied it again.
        by: ChangeId,
        /// Redone files; empty if all files were redone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<WsPath>,
    },
    /// Crash recovery completed an interrupted plan or rolled it back.
    Recovered {
        change: ChangeId,
        /// `true` if the plan was completed, `false` if it was rolled back.
        finished: bool,
        /// Files left untouched, because they equal neither the old nor the new content.
        skipped_files: Vec<WsPath>,
        /// Rescue copies of edits by others that the interrupted plan had displaced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rescued_files: Vec<WsPath>,
    },
    SessionStarted {
        session: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Working directory, as reported by the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// Parent session of a subagent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// An ended session was resumed.
    SessionResumed {
        session: String,
    },
    SessionEnded {
        session: String,
    },
    /// A prompt started a turn.
    TurnStarted {
        session: String,
        turn: String,
    },
    /// The agent finished its turn.
    TurnEnded {
        session: String,
        turn: String,
    },
    /// A verdict was remembered as a rule of the session.
    RuleAdded {
        session: String,
        rule: Rule,
    },
    /// A message to the agent was queued until the agent can receive it.
    MessageQueued {
        session: String,
        /// Change that the message is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<ChangeId>,
        /// Tool call that the message answers. The hook of that call delivers it; otherwise the next prompt does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        text: String,
    },
    /// A queued message was delivered to the agent.
    MessageDelivered {
        session: String,
        /// Change that the message is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<ChangeId>,
        /// Event number of the queued message.
        message: u64,
    },
    /// All queued messages up to an event were delivered. Only earlier versions record this event.
    Delivered {
        session: String,
        /// Number of the last delivered event.
        through: u64,
    },
    /// The content of a file was captured before a tool call.
    SnapshotCaptured(Snapshot),
    /// A snapshot was assigned to the tool call that started.
    SnapshotCorrelated {
        snapshot: SnapshotId,
        /// Id of the tool call.
        call: String,
        /// Session of the tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    SnapshotsFreed {
        snapshots: Vec<SnapshotId>,
        reason: FreeReason,
    },
    /// A step in the life of a request.
    Request(RequestEvent),
    /// The request mode was changed.
    RequestMode(ModeSet),
    /// Saved edits were added or removed.
    Overrides(OverridesSet),
    /// A person viewed requests, or old subagent runs were trimmed.
    RequestViewed(ViewEvent),
    /// Hunks of a pending change were on screen.
    HunksSeen {
        change: ChangeId,
        /// Path as previewed.
        path: WsPath,
        /// Hash of the previewed effect on the file, see [`FileRecord::preview_hash`].
        file: ContentHash,
        /// Numbers of the hunks, from 1.
        hunks: Vec<usize>,
    },
    /// A person has read all events up to a number.
    ReadThrough {
        /// Number of the last event that was read.
        through: u64,
    },
    /// The built-in agent recorded a step of its conversation.
    Agent(AgentEntry),
}

impl Event {
    /// Returns the change that the event is about.
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
            | Self::Recovered { change, .. }
            | Self::HunksSeen { change, .. } => Some(*change),
            Self::MessageQueued { change, .. } | Self::MessageDelivered { change, .. } => *change,
            Self::SessionStarted { .. }
            | Self::SessionResumed { .. }
            | Self::SessionEnded { .. }
            | Self::TurnStarted { .. }
            | Self::TurnEnded { .. }
            | Self::RuleAdded { .. }
            | Self::Delivered { .. }
            | Self::SnapshotCaptured(_)
            | Self::SnapshotCorrelated { .. }
            | Self::SnapshotsFreed { .. }
            | Self::Request(_)
            | Self::RequestMode(_)
            | Self::Overrides(_)
            | Self::RequestViewed(_)
            | Self::ReadThrough { .. }
            | Self::Agent(_) => None,
        }
    }

    /// Returns the request that the event is about.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            Self::Request(event) => Some(event.request),
            _ => None,
        }
    }

    /// Returns the snapshot that the event is about.
    pub fn snapshot(&self) -> Option<SnapshotId> {
        match self {
            Self::SnapshotCaptured(snapshot) => Some(snapshot.snapshot),
            Self::SnapshotCorrelated { snapshot, .. } => Some(*snapshot),
            _ => None,
        }
    }

    /// Returns the session named by the event itself; the session of a change is in its proposal only.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Proposed { origin, .. } => origin.session.as_deref(),
            Self::SnapshotCaptured(snapshot) => snapshot.session.as_deref(),
            Self::Agent(entry) => Some(&entry.session),
            Self::SessionStarted { session, .. }
            | Self::SessionResumed { session }
            | Self::SessionEnded { session }
            | Self::TurnStarted { session, .. }
            | Self::TurnEnded { session, .. }
            | Self::RuleAdded { session, .. }
            | Self::MessageQueued { session, .. }
            | Self::MessageDelivered { session, .. }
            | Self::Delivered { session, .. } => Some(session),
            _ => None,
        }
    }
}

/// A journal event with its number and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Sequence number in the journal, from 1 without gaps.
    pub number: u64,
    /// Recording time in milliseconds since 1970.
    pub time: i64,
    #[serde(flatten)]
    pub body: EventBody,
}

/// A decoded event, or the raw data of an event of an unknown kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "nearly every one is known")]
pub enum EventBody {
    Known(Event),
    /// An event that a later version wrote.
    Unknown(serde_json::Value),
}

impl EventBody {
    /// Decodes a recorded event. Data that cannot be decoded is kept as it is.
    pub fn decode(bytes: &[u8]) -> Self {
        if let Ok(event) = serde_json::from_slice(bytes) {
            return Self::Known(event);
        }
        // Wrap other data in an object, because number and time are serialized beside its fields.
        let value = match serde_json::from_slice(bytes) {
            Ok(value @ serde_json::Value::Object(_)) => value,
            _ => serde_json::json!({ "unreadable": String::from_utf8_lossy(bytes) }),
        };
        Self::Unknown(value)
    }
}
