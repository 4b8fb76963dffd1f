//! The state of a request, folded from its events.

use serde::Serialize;

use super::{
    BodyRecord, Handover, OverrideReport, PauseReason, RequestAnswer, RequestEnd, RequestEvent, RequestId,
    RequestReceived, RequestStep, Resumer, UpstreamRetry,
};
use crate::event::{Event, EventBody, Recorded};

/// The status of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    Received,
    /// It is held for a person.
    Paused,
    /// It was sent, and its response is not complete.
    Sent,
    /// The upstream responded, with success or an error.
    Answered,
    /// It ended without a response.
    Ended,
}

impl std::fmt::Display for RequestStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Received => "received",
            Self::Paused => "paused",
            Self::Sent => "sent",
            Self::Answered => "answered",
            Self::Ended => "ended",
        })
    }
}

/// The state of a request, computed from its events only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    pub request: RequestId,
    /// Time of receipt, in milliseconds since 1970.
    pub time: i64,
    /// Time of the last step, in milliseconds since 1970.
    pub last: i64,
    pub status: RequestStatus,
    pub received: RequestReceived,
    /// Reason for the last pause.
    pub paused: Option<PauseReason>,
    /// Time at which the client is expected to give up, in milliseconds since 1970.
    pub deadline: Option<i64>,
    /// Number of edits, undone edits included.
    pub edits: u64,
    /// Party that released it.
    pub resumed: Option<Resumer>,
    /// Body as sent; `None` if it equals the received body.
    pub sent: Option<BodyRecord>,
    /// Body with all edits, if it ended without being sent.
    pub edited: Option<BodyRecord>,
    /// Difference from the received body, as a JSON Patch; `None` if unknown.
    pub patch: Option<BodyRecord>,
    /// Earlier request whose edits were carried over.
    pub inherits: Option<RequestId>,
    /// State for the next engine.
    pub handover: Option<Handover>,
    /// Result of applying saved edits.
    pub overrides: OverrideReport,
    /// Last retryable upstream error.
    pub upstream_retry: Option<UpstreamRetry>,
    /// Response of the upstream.
    pub answer: Option<RequestAnswer>,
    /// Reason why there is no response.
    pub ended: Option<RequestEnd>,
}

impl RequestRecord {
    /// Returns the body with all edits, sent or not.
    pub fn latest(&self) -> &BodyRecord {
        self.sent.as_ref().or(self.edited.as_ref()).unwrap_or(&self.received.body)
    }

    /// `true` if that body differs from the received one.
    pub fn is_edited(&self) -> bool {
        self.sent.is_some() || self.edited.is_some()
    }

    /// Folds the events of one request. Returns `None` if it was never received.
    pub fn fold(events: impl IntoIterator<Item = Recorded>) -> Option<Self> {
        let (mut record, mut early) = (None, Vec::new());
        for Recorded { time, body, .. } in events {
            let EventBody::Known(Event::Request(RequestEvent { request, step })) = body else { continue };
            match (&mut record, step) {
                (None, RequestStep::Received(received)) => record = Some(Self::new(request, time, *received)),
                (Some(record), step) => {
                    record.last = time;
                    record.apply(step);
                }
                // An upstream can respond before the body is fully received. Such steps precede the receipt in the
                // journal.
                (None, step) => early.push(step),
            }
        }
        let mut record = record?;
        for step in early {
            record.apply(step);
        }
        Some(record)
    }

    fn new(request: RequestId, time: i64, received: RequestReceived) -> Self {
        Self {
            request,
            time,
            last: time,
            status: RequestStatus::Received,
            received,
            paused: None,
            deadline: None,
            edits: 0,
            resumed: None,
            sent: None,
            edited: None,
            patch: None,
            inherits: None,
            handover: None,
            overrides: OverrideReport::default(),
            upstream_retry: None,
            answer: None,
            ended: None,
        }
    }

    fn apply(&mut self, step: RequestStep) {
        match step {
            RequestStep::Received(_) => {}
            RequestStep::Paused { pause, deadline, inherits, handover } => {
                (self.paused, self.deadline, self.status) = (Some(pause), deadline, RequestStatus::Paused);
                self.patch = handover.as_ref().and_then(|handover| handover.patch.clone());
                (self.inherits, self.handover) = (inherits, handover.map(|handover| *handover));
            }
            RequestStep::Edited { version, patch, .. } => (self.edits, self.patch) = (version, patch),
            RequestStep::Resumed { by } => self.resumed = Some(by),
            RequestStep::Sent { body, patch, overrides } => {
                (self.sent, self.overrides, self.status) = (body, overrides, RequestStatus::Sent);
                self.patch = patch;
            }
            RequestStep::UpstreamRetry(retry) => self.upstream_retry = Some(retry),
            RequestStep::Answered(answer) => {
                (self.answer, self.status) = (Some(*answer), RequestStatus::Answered);
            }
            RequestStep::Ended { end, edited } => {
                // A request may end twice: its client disconnects, and then its session ends.
                self.edited = edited.or(self.edited.take());
                (self.ended, self.status) = (Some(end), RequestStatus::Ended);
            }
        }
    }
}
