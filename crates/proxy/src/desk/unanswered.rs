//! A request between being sent and being answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sayso_review::{RequestEnd, RequestId, RequestStep};

use super::{Desk, Keeps};
use crate::log::{Haste, Log};

/// A request that was sent and has no answer yet. Dropped so, its client went away, or the engine stops: nobody can forget to record it.
#[derive(Debug)]
pub struct Unanswered {
    /// The request.
    pub request: RequestId,
    /// Whether what becomes of it is recorded.
    pub keeps: Keeps,
    /// `None` once it has an answer, or never will.
    log: Option<Arc<Log>>,
    /// Whether the engine stops.
    stops: Arc<AtomicBool>,
}

impl Desk {
    pub(crate) fn unanswered(&self, request: RequestId, keeps: Keeps) -> Unanswered {
        Unanswered { request, keeps, log: Some(Arc::clone(&self.log)), stops: Arc::clone(&self.stops) }
    }
}

impl Unanswered {
    /// Its answer is there.
    pub(crate) fn answered(mut self) -> (RequestId, Keeps) {
        self.log = None;
        (self.request, self.keeps)
    }

    /// It could not be sent.
    pub(crate) fn failed(mut self, message: String) {
        self.end(RequestEnd::Failed { message });
    }

    fn end(&mut self, why: RequestEnd) {
        if let Some(log) = self.log.take()
            && self.keeps == Keeps::Yes
        {
            log.step(self.request, RequestStep::Ended { why, edited: None }, Haste::Soon);
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let stops = self.stops.load(Ordering::Acquire);
        let stopped = || RequestEnd::Failed { message: "sayso stopped before there was an answer".to_owned() };
        self.end(if stops { stopped() } else { RequestEnd::ClientGone });
    }
}
