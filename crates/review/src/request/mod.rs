//! Requests that agents send to models, as they are recorded: seen, perhaps paused and edited, sent, answered.
//!
//! A request has a number of its own. What was said in it and what was answered are kept as blobs, cut into pieces, since an agent
//! sends its whole history again with every request. No credential is in any of this: those in bodies are masked.

mod answer;
mod mode;
mod record;

use sayso_base::ContentHash;
use serde::{Deserialize, Serialize};

use crate::event::Origin;
use crate::redact::Redaction;

pub use answer::{RequestAnswer, TokenUsage, TurnedAway};
pub use mode::{ModeSet, OverridesSet, RequestLook, RequestMode};
pub use record::{RequestRecord, RequestStatus};

/// The number of a request: 1 for the first in a workspace.
pub type RequestId = u64;

/// How many bytes of a body are kept as one piece.
pub const PIECE: usize = 64 << 10;

/// Something that happened to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEvent {
    /// The request.
    pub request: RequestId,
    /// What happened.
    #[serde(flatten)]
    pub step: RequestStep,
}

/// What can happen to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum RequestStep {
    /// It came.
    Seen(Box<RequestSeen>),
    /// It waits for a person.
    Paused {
        /// Why.
        why: PauseReason,
        /// When its client will have given up, in milliseconds since 1970, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<i64>,
        /// The earlier one whose edits it goes on with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inherits: Option<RequestId>,
        /// What the next engine takes over, should this one end before the request does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handover: Option<Box<Handover>>,
    },
    /// Somebody edited it.
    Edited {
        /// How many edits there were, undone ones included.
        version: u64,
        /// Where, such as `messages[3].content[1].text`.
        path: String,
        /// What was done.
        edit: EditKind,
        /// All edits since it came, as a JSON Patch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<BodyRecord>,
    },
    /// It no longer waits.
    Resumed {
        /// Who said so.
        by: Resumer,
    },
    /// It went to the model.
    Sent {
        /// What was sent, if that is not what came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<BodyRecord>,
        /// What was edited, as a JSON Patch of what came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<BodyRecord>,
        /// Which saved edits were applied, and which were not.
        #[serde(default, skip_serializing_if = "SavedEdits::is_empty")]
        saved: SavedEdits,
    },
    /// The upstream has too much to do, or is not there, and is tried again.
    TurnedAway(TurnedAway),
    /// The model answered.
    Answered(Box<RequestAnswer>),
    /// It ended without an answer.
    Ended {
        /// Why.
        why: RequestEnd,
        /// What it had been edited to, if it had been and was not sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<BodyRecord>,
    },
}

/// What is needed to go on with a request that waits, once its client sends it to another engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    /// What it is, by its hash, but for how it is to be answered.
    pub identity: String,
    /// Whether its edits are saved once it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub captures: bool,
    /// What was edited by then, as a JSON Patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<BodyRecord>,
    /// What saved edits had made of it by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub laid: Option<BodyRecord>,
    /// What became of them.
    #[serde(default, skip_serializing_if = "SavedEdits::is_empty")]
    pub saved: SavedEdits,
}

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSeen {
    /// Whose it is.
    pub origin: Origin,
    /// The upstream's name.
    pub upstream: String,
    /// The method.
    pub method: String,
    /// The path with its query, without keys.
    pub path: String,
    /// The API, such as `anthropic_messages`, if it is a known one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The subagent whose request it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<SubagentMark>,
    /// The body, decoded.
    pub body: BodyRecord,
    /// How it was compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The headers that are no credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The earlier one that a person had sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<RequestId>,
    /// URL of the server that it went to, without a user and a password. Absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// A part of an agent that works on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentMark {
    /// Its name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whose part it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A body in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyRecord {
    /// Its size in bytes.
    pub size: u64,
    /// Its pieces, none of which is larger than [`PIECE`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<ContentHash>,
    /// Whether there is more that was not kept: it was too large, or the stream was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Number of credentials that are masked in the pieces. The body that was sent had their values.
    #[serde(default, skip_serializing_if = "is_none")]
    pub redacted: u64,
    /// The first of them, [`MAX_REDACTIONS`] at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redactions: Vec<Redaction>,
}

/// Masked credentials that a record names one by one.
pub const MAX_REDACTIONS: usize = 32;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl BodyRecord {
    /// A body in pieces of [`PIECE`] bytes, in which nothing is masked.
    pub fn of(bytes: &[u8]) -> Self {
        let pieces = bytes.chunks(PIECE).map(ContentHash::of).collect();
        Self { size: bytes.len() as u64, pieces, ..Self::default() }
    }
}

/// Why a request waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum PauseReason {
    /// Every turn is paused.
    EveryTurn,
    /// The next turn was to be paused.
    NextTurn,
    /// Edits are to be captured.
    Capture,
    /// A rule says so.
    Rule {
        /// Which.
        rule: String,
    },
    /// It goes on with a request that waited and whose client went away.
    Retry,
}

/// What an edit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditKind {
    /// It gave a value another content.
    Set,
    /// It left something out.
    Delete,
    /// It put something back.
    Restore,
    /// It added a message.
    Append,
    /// It kept the beginning and the end of a result.
    Shrink,
    /// It mended what would be refused.
    Repair,
    /// It applied a patch.
    Patch,
    /// It moved something for the person alone; nothing else is sent.
    Pin,
    /// It took the last edit back.
    Undo,
    /// It made an edit again.
    Redo,
    /// It took all edits back.
    Reset,
}

/// Who let a request go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumer {
    /// A person.
    Person,
    /// The client sent again what a person had let go on, and had no answer to.
    Retry,
}

/// What became of saved edits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedEdits {
    /// Where they were applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<String>,
    /// Where they were not, as something else is there by now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<String>,
    /// What became of the edits that stay for the rest of the turn, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnEditsOutcome>,
}

/// What became of edits that a person made in an earlier request of the same turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEditsOutcome {
    /// The request in which they were made.
    pub from: RequestId,
    /// Paths of those that were made again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<String>,
    /// Paths of those that were dropped for good, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

impl TurnEditsOutcome {
    /// Drops all of them: the upstream would reject the request with them.
    pub fn refuse(&mut self, why: &str) {
        self.dropped.extend(self.applied.drain(..).map(|path| format!("{path}: the request would be rejected: {why}")));
    }
}

impl SavedEdits {
    /// None of them was applied after all: with them, the request would have been refused.
    pub fn refuse(&mut self, why: &str) {
        self.drifted.extend(self.applied.drain(..).map(|path| format!("{path}: it would be refused: {why}")));
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.drifted.is_empty() && self.turn.is_none()
    }
}

/// Why a request ended without an answer. The names of the first ones are the seed's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "camelCase")]
pub enum RequestEnd {
    /// A person cancelled it.
    Canceled,
    /// It was sent again after a person had cancelled it.
    CanceledBefore,
    /// Its session sends normally from now on.
    ModeDisabled,
    /// Its session is over.
    SessionDisposed,
    /// Its agent has sent another one in its place.
    Superseded {
        /// That one.
        by: RequestId,
    },
    /// Its client went away.
    ClientGone,
    /// The engine stopped.
    EngineStopped,
    /// A rule denies it.
    Denied {
        /// Which, and why.
        message: String,
    },
    /// It could not be sent.
    Failed {
        /// Why.
        message: String,
    },
}

impl RequestEnd {
    /// What the agent is told whose request waited.
    pub fn told(&self) -> String {
        match self {
            Self::Superseded { by } => format!("Request canceled before sending: request {by} came in its place"),
            other => other.message(),
        }
    }

    /// What a person reads.
    pub fn message(&self) -> String {
        match self {
            Self::Canceled => "Request canceled before sending".to_owned(),
            Self::CanceledBefore => "Request canceled before sending; its agent had sent it again".to_owned(),
            Self::ModeDisabled => "Request canceled before sending: pausing was switched off".to_owned(),
            Self::SessionDisposed => "Context changed – request discarded".to_owned(),
            Self::Superseded { by } => format!("Request {by} came in its place"),
            Self::ClientGone => "The agent went away before there was an answer".to_owned(),
            Self::EngineStopped => "sayso stopped before it was sent".to_owned(),
            Self::Denied { message } | Self::Failed { message } => message.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_written_and_read() {
        let event = crate::Event::RequestLook(RequestLook::Diff { request: 7, edits: 2 });
        let text = serde_json::to_string(&event).unwrap_or_default();
        assert_eq!(text, r#"{"event":"request_look","looked":"diff","request":7,"edits":2}"#);
        assert_eq!(serde_json::from_str::<crate::Event>(&text).ok(), Some(event));
    }

    #[test]
    fn events_of_requests_are_written_and_read() {
        let step = RequestStep::Ended { why: RequestEnd::ModeDisabled, edited: None };
        let event = crate::Event::Request(RequestEvent { request: 7, step });
        let text = serde_json::to_string(&event).unwrap_or_default();
        assert_eq!(text, r#"{"event":"request","request":7,"step":"ended","why":{"reason":"modeDisabled"}}"#);
        assert_eq!(serde_json::from_str::<crate::Event>(&text).ok(), Some(event));
    }
}
