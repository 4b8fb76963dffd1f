//! A request as its events tell it.

use serde::Serialize;

use super::{
    BodyRecord, Handover, PauseReason, RequestAnswer, RequestEnd, RequestEvent, RequestId, RequestSeen, RequestStep,
    Resumer, SavedEdits, TurnedAway,
};
use crate::event::{Event, EventBody, Recorded};

/// How a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// It came.
    Seen,
    /// It waits for a person.
    Paused,
    /// It is on its way, or its answer is.
    Sent,
    /// The model answered, whatever it said.
    Answered,
    /// It ended without an answer.
    Ended,
}

impl std::fmt::Display for RequestStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Seen => "seen",
            Self::Paused => "paused",
            Self::Sent => "sent",
            Self::Answered => "answered",
            Self::Ended => "ended",
        })
    }
}

/// A request as its events tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// Its number.
    pub request: RequestId,
    /// When it came, in milliseconds since 1970.
    pub time: i64,
    /// When something last happened to it.
    pub last: i64,
    /// How it stands.
    pub status: RequestStatus,
    /// As it came.
    pub seen: RequestSeen,
    /// Why it waited, if it did.
    pub paused: Option<PauseReason>,
    /// When its client will have given up.
    pub deadline: Option<i64>,
    /// How many edits there were.
    pub edits: u64,
    /// Who let it go on.
    pub resumed: Option<Resumer>,
    /// What was sent, if that is not what came.
    pub sent: Option<BodyRecord>,
    /// What it had been edited to when it ended without being sent.
    pub edited: Option<BodyRecord>,
    /// What was edited, as a JSON Patch of what came, as far as that is known.
    pub patch: Option<BodyRecord>,
    /// The earlier one whose edits it went on with.
    pub inherits: Option<RequestId>,
    /// What the next engine takes over, if it ended with this one.
    pub handover: Option<Handover>,
    /// What became of saved edits.
    pub saved: SavedEdits,
    /// How the upstream turned it away the last time, if it did.
    pub turned_away: Option<TurnedAway>,
    /// What the model answered.
    pub answer: Option<RequestAnswer>,
    /// Why there is no answer.
    pub ended: Option<RequestEnd>,
}

impl RequestRecord {
    /// Its body with the edits that were made, whether it was sent or not.
    pub fn latest(&self) -> &BodyRecord {
        self.sent.as_ref().or(self.edited.as_ref()).unwrap_or(&self.seen.body)
    }

    /// Whether that is not what came.
    pub fn is_edited(&self) -> bool {
        self.sent.is_some() || self.edited.is_some()
    }

    /// What events say of one request; nothing, if they do not say that it came.
    pub fn fold(events: impl IntoIterator<Item = Recorded>) -> Option<Self> {
        let (mut record, mut early) = (None, Vec::new());
        for Recorded { time, body, .. } in events {
            let EventBody::Known(Event::Request(RequestEvent { request, step })) = body else { continue };
            match (&mut record, step) {
                (None, RequestStep::Seen(seen)) => record = Some(Self::new(request, time, *seen)),
                (Some(record), step) => {
                    record.last = time;
                    record.play(step);
                }
                // An upstream can answer what it has not read to the end, which is known when it is.
                (None, step) => early.push(step),
            }
        }
        let mut record = record?;
        for step in early {
            record.play(step);
        }
        Some(record)
    }

    fn new(request: RequestId, time: i64, seen: RequestSeen) -> Self {
        Self {
            request,
            time,
            last: time,
            status: RequestStatus::Seen,
            seen,
            paused: None,
            deadline: None,
            edits: 0,
            resumed: None,
            sent: None,
            edited: None,
            patch: None,
            inherits: None,
            handover: None,
            saved: SavedEdits::default(),
            turned_away: None,
            answer: None,
            ended: None,
        }
    }

    fn play(&mut self, step: RequestStep) {
        match step {
            RequestStep::Seen(_) => {}
            RequestStep::Paused { why, deadline, inherits, handover } => {
                (self.paused, self.deadline, self.status) = (Some(why), deadline, RequestStatus::Paused);
                self.patch = handover.as_ref().and_then(|handover| handover.patch.clone());
                (self.inherits, self.handover) = (inherits, handover.map(|handover| *handover));
            }
            RequestStep::Edited { version, patch, .. } => (self.edits, self.patch) = (version, patch),
            RequestStep::Resumed { by } => self.resumed = Some(by),
            RequestStep::Sent { body, patch, saved } => {
                (self.sent, self.saved, self.status) = (body, saved, RequestStatus::Sent);
                self.patch = patch;
            }
            RequestStep::TurnedAway(by) => self.turned_away = Some(by),
            RequestStep::Answered(answer) => {
                (self.answer, self.status) = (Some(*answer), RequestStatus::Answered);
            }
            RequestStep::Ended { why, edited } => {
                // It may end twice: its agent goes away, and then its session is over.
                self.edited = edited.or(self.edited.take());
                (self.ended, self.status) = (Some(why), RequestStatus::Ended);
            }
        }
    }
}
