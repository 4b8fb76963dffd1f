//! A request between being sent and being answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sayso_review::{RequestEnd, RequestId, RequestStep};

use super::{Desk, Keeps, Sequel};
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
    /// What its end is recorded after, if that is to wait.
    pub(crate) sequel: Option<Arc<Sequel>>,
    /// Whether the engine stops.
    stops: Arc<AtomicBool>,
}

impl Desk {
    pub(crate) fn unanswered(&self, request: RequestId, keeps: Keeps) -> Unanswered {
        Unanswered { request, keeps, log: Some(Arc::clone(&self.log)), sequel: None, stops: Arc::clone(&self.stops) }
    }
}

impl Unanswered {
    /// Its answer is there.
    pub(crate) fn answered(mut self) -> (RequestId, Keeps, Option<Arc<Sequel>>) {
        self.log = None;
        (self.request, self.keeps, self.sequel.take())
    }

    /// That there will be none is recorded.
    pub(crate) fn ended(mut self) {
        self.log = None;
    }

    /// It could not be sent.
    pub(crate) fn failed(mut self, message: String) {
        self.end(RequestEnd::Failed { message });
    }

    fn end(&mut self, why: RequestEnd) {
        if let Some(log) = self.log.take()
            && self.keeps == Keeps::Yes
        {
            let request = self.request;
            let record = move || log.step(request, RequestStep::Ended { why, edited: None }, Haste::Soon);
            match self.sequel.take() {
                Some(sequel) => sequel.then(record),
                None => record(),
            }
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
