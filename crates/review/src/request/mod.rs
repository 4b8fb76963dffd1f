//! Recorded model requests: received, perhaps paused and edited, sent, answered.
//!
//! An agent sends its whole history with every request. Bodies are therefore stored as deduplicated chunks. Credentials
//! in bodies are masked, and credential headers are not recorded.

mod answer;
mod mode;
mod record;

use sayso_base::ContentHash;
use serde::{Deserialize, Serialize};

use crate::event::Origin;
use crate::redact::Redaction;

pub use answer::{RequestAnswer, TokenUsage, UpstreamRetry};
pub use mode::{ModeSet, OverridesSet, RequestMode, ViewEvent};
pub use record::{RequestRecord, RequestStatus};

/// Sequence number of a request, from 1 in each workspace.
pub type RequestId = u64;

/// Size of a chunk of a recorded body, in bytes.
pub const CHUNK_SIZE: usize = 64 << 10;

/// A step in the life of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEvent {
    pub request: RequestId,
    #[serde(flatten)]
    pub step: RequestStep,
}

/// The kinds of steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum RequestStep {
    /// The proxy received the request.
    Received(Box<RequestReceived>),
    /// It is held for a person.
    Paused {
        /// Reason for the pause.
        pause: PauseReason,
        /// Time at which the client is expected to give up, in milliseconds since 1970; `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<i64>,
        /// Earlier request whose edits were carried over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inherits: Option<RequestId>,
        /// State for the next engine, in case this one stops before the request ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handover: Option<Box<Handover>>,
    },
    /// A person edited it.
    Edited {
        /// Number of edits so far, undone edits included.
        version: u64,
        /// Edited path, such as `messages[3].content[1].text`.
        path: String,
        edit: EditKind,
        /// All edits since it was received, as a JSON Patch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<BodyRecord>,
    },
    Resumed {
        by: Resumer,
    },
    /// It was sent to the upstream.
    Sent {
        /// Body as sent; `None` if it equals the received body.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<BodyRecord>,
        /// Difference from the received body, as a JSON Patch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<BodyRecord>,
        /// Result of applying saved edits.
        #[serde(default, skip_serializing_if = "OverrideReport::is_empty")]
        overrides: OverrideReport,
    },
    /// The upstream was overloaded or unreachable, and the request will be retried.
    UpstreamRetry(UpstreamRetry),
    Answered(Box<RequestAnswer>),
    /// It ended without a response.
    Ended {
        /// Reason for the end.
        end: RequestEnd,
        /// Body with all edits, if it was edited and never sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<BodyRecord>,
    },
}

/// State with which another engine continues a held request when its client retries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// Hash of the request that ignores streaming options, so that a retry matches.
    pub identity: String,
    /// `true` if its edits are saved when it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub save_on_resume: bool,
    /// Edits so far, as a JSON Patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<BodyRecord>,
    /// Body after saved edits were applied, before manual edits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_overrides: Option<BodyRecord>,
    /// Result of applying saved edits.
    #[serde(default, skip_serializing_if = "OverrideReport::is_empty")]
    pub overrides: OverrideReport,
}

/// A request as received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestReceived {
    pub origin: Origin,
    /// Name of the upstream.
    pub upstream: String,
    pub method: String,
    /// Path and query, with credentials removed.
    pub path: String,
    /// Model API, such as `anthropic_messages`; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Subagent that sent the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SubagentMark>,
    pub body: BodyRecord,
    /// Content encoding of the body on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Earlier request that a person replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<RequestId>,
    /// URL of the upstream server, without user and password. Absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// Identity of a subagent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentMark {
    /// Id of the subagent, if the agent reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Id of the parent agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A recorded body, split into chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyRecord {
    /// Recorded size in bytes.
    pub size: u64,
    /// Hashes of the chunks, at most [`CHUNK_SIZE`] bytes each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<ContentHash>,
    /// `true` if the recorded body is incomplete: it was too large, or the connection was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Number of masked credentials. The forwarded body contained their values.
    #[serde(default, skip_serializing_if = "is_none")]
    pub redacted: u64,
    /// The first masked credentials, at most [`MAX_REDACTIONS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redactions: Vec<Redaction>,
}

/// Maximum number of masked credentials that a record lists.
pub const MAX_REDACTIONS: usize = 32;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl BodyRecord {
    /// Records a body without redactions.
    pub fn of(bytes: &[u8]) -> Self {
        let chunks = bytes.chunks(CHUNK_SIZE).map(ContentHash::of).collect();
        Self { size: bytes.len() as u64, chunks, ..Self::default() }
    }
}

/// The reason why a request is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum PauseReason {
    /// The mode pauses every turn.
    EveryTurn,
    /// The next turn was to be paused.
    NextTurn,
    /// The edits of the next turn are to be saved.
    Capture,
    /// A rule pauses it.
    Rule {
        /// Name of the rule.
        rule: String,
    },
    /// It retries a held request whose client disconnected.
    Retry,
}

/// The kinds of edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditKind {
    Set,
    Delete,
    /// Restored the received value.
    Restore,
    Append,
    /// Truncated a tool result in the middle.
    Shrink,
    /// Repaired an error that the upstream would reject.
    Repair,
    /// Applied a JSON Patch.
    Patch,
    /// Reordered the display only; the request is unchanged.
    Pin,
    /// Reverted the last edit.
    Undo,
    /// Applied an undone edit again.
    Redo,
    Reset,
}

/// The party that released a held request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumer {
    Person,
    /// The client, by retrying a request that a person had already released.
    Retry,
}

/// Result of applying saved edits to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverrideReport {
    /// Paths, as saved, of the applied edits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedEdit>,
    /// Edits of an earlier request of the same turn; `None` if no request of the turn was edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnEditReport>,
}

/// An edit that was not applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedEdit {
    /// Path as saved; empty if the reason concerns all saved edits.
    pub path: String,
    /// Cause, for a person; `None` if the content at the path has changed since the edit was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SkippedEdit {
    /// An edit that was skipped because the content at its path has changed.
    pub fn drifted(path: String) -> Self {
        Self { path, reason: None }
    }

    /// An edit that was skipped for another reason.
    pub fn failed(path: String, reason: impl Into<String>) -> Self {
        Self { path, reason: Some(reason.into()) }
    }

    fn rejected(path: String, problem: &str) -> Self {
        Self::failed(path, format!("the request would be rejected: {problem}"))
    }
}

/// Result of applying a person's edits of an earlier request of the same turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEditReport {
    pub from: RequestId,
    /// Paths, as in that request, of the applied edits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<String>,
    /// Edits dropped for the rest of the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<SkippedEdit>,
}

impl TurnEditReport {
    /// Moves all applied edits to `dropped`, because the upstream would reject the request with them.
    pub fn reject(&mut self, problem: &str) {
        self.dropped.extend(self.applied.drain(..).map(|path| SkippedEdit::rejected(path, problem)));
    }
}

impl OverrideReport {
    /// Moves all applied edits to `skipped`, because the upstream would reject the request with them.
    pub fn reject(&mut self, problem: &str) {
        self.skipped.extend(self.applied.drain(..).map(|path| SkippedEdit::rejected(path, problem)));
    }

    /// `true` if there were no edits to apply.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.skipped.is_empty() && self.turn.is_none()
    }
}

/// The reason why a request ended without a response. The first five serialized names come from the user's seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "camelCase")]
pub enum RequestEnd {
    /// A person cancelled it.
    Canceled,
    /// It retries a request that a person had cancelled.
    CanceledBefore,
    /// The session was switched to sending normally.
    ModeDisabled,
    SessionDisposed,
    /// The agent sent a newer version of it.
    Superseded {
        by: RequestId,
    },
    ClientGone,
    EngineStopped,
    /// A rule denied it.
    Denied {
        /// Name of the rule and its reason.
        message: String,
    },
    /// It could not be sent.
    Failed {
        message: String,
    },
}

impl RequestEnd {
    /// Returns the error message for the agent whose request was held.
    pub fn agent_message(&self) -> String {
        match self {
            Self::Superseded { by } => format!("Request canceled before sending: superseded by request {by}"),
            other => other.message(),
        }
    }

    /// Returns the message for people.
    pub fn message(&self) -> String {
        match self {
            Self::Canceled => "Request canceled before sending".to_owned(),
            Self::CanceledBefore => "Request canceled before sending; its agent had sent it again".to_owned(),
            Self::ModeDisabled => "Request canceled before sending: pausing was switched off".to_owned(),
            Self::SessionDisposed => "Context changed – request discarded".to_owned(),
            Self::Superseded { by } => format!("Superseded by request {by}"),
            Self::ClientGone => "The agent disconnected before the response".to_owned(),
            Self::EngineStopped => "sayso stopped before it was sent".to_owned(),
            Self::Denied { message } | Self::Failed { message } => message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_events_survive_serialization() {
        let event = crate::Event::RequestViewed(ViewEvent::Diff { request: 7, edits: 2 });
        let text = serde_json::to_string(&event).unwrap_or_default();
        assert_eq!(text, r#"{"event":"request_viewed","view":"diff","request":7,"edits":2}"#);
        assert_eq!(serde_json::from_str::<crate::Event>(&text).ok(), Some(event));
    }

    #[test]
    fn request_events_survive_serialization() {
        let step = RequestStep::Ended { end: RequestEnd::ModeDisabled, edited: None };
        let event = crate::Event::Request(RequestEvent { request: 7, step });
        let text = serde_json::to_string(&event).unwrap_or_default();
        assert_eq!(text, r#"{"event":"request","request":7,"step":"ended","end":{"reason":"modeDisabled"}}"#);
        assert_eq!(serde_json::from_str::<crate::Event>(&text).ok(), Some(event));
    }
}
