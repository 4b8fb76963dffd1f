//! A request that was sent and has no response yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sayso_review::{RequestEnd, RequestId, RequestStep};

use super::Interceptor;
use crate::recorder::{Flush, RecordBarrier, Recorder};

/// Journaling of a request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    Enabled,
    Disabled,
}

/// A request that was sent and has no response yet. Dropping it records that the client disconnected, or that the engine stopped, so no
/// path can leave a request without an end.
#[derive(Debug)]
pub struct InFlight {
    pub request: RequestId,
    pub recording: Recording,
    /// `None` once the end is known.
    recorder: Option<Arc<Recorder>>,
    /// Orders the end after the request's own entry.
    pub(crate) barrier: Option<Arc<RecordBarrier>>,
    shutting_down: Arc<AtomicBool>,
}

impl Interceptor {
    pub(crate) fn in_flight(&self, request: RequestId, recording: Recording) -> InFlight {
        InFlight {
            request,
            recording,
            recorder: Some(Arc::clone(&self.recorder)),
            barrier: None,
            shutting_down: Arc::clone(&self.shutting_down),
        }
    }
}

impl InFlight {
    /// The response has started; the response tap records its end.
    pub(crate) fn answered(mut self) -> (RequestId, Recording, Option<Arc<RecordBarrier>>) {
        self.recorder = None;
        (self.request, self.recording, self.barrier.take())
    }

    /// The end is recorded already.
    pub(crate) fn ended(mut self) {
        self.recorder = None;
    }

    /// Records that the request could not be sent.
    pub(crate) fn failed(mut self, message: String) {
        self.record_end(RequestEnd::Failed { message });
    }

    fn record_end(&mut self, end: RequestEnd) {
        if let Some(recorder) = self.recorder.take()
            && self.recording == Recording::Enabled
        {
            let request = self.request;
            let record = move || recorder.step(request, RequestStep::Ended { end, edited: None }, Flush::Batched);
            match self.barrier.take() {
                Some(barrier) => barrier.after(record),
                None => record(),
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let stopped = || RequestEnd::Failed { message: "sayso stopped before there was an answer".to_owned() };
        let end = if self.shutting_down.load(Ordering::Acquire) { stopped() } else { RequestEnd::ClientGone };
        self.record_end(end);
    }
}
