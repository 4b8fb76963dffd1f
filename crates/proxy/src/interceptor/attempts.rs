//! Cancellable upstream attempts of requests whose client already received its status.

use std::sync::Arc;

use sayso_review::{RequestEnd, RequestId, RequestStep, UpstreamRetry};
use tokio::sync::oneshot;

use super::{Interceptor, State, lock};
use crate::recorder::{Flush, now};

/// A request that is retried until its upstream accepts it. It can be canceled until this value is dropped.
#[derive(Debug)]
pub(crate) struct UpstreamAttempts {
    interceptor: Arc<Interceptor>,
    request: RequestId,
    canceled: oneshot::Receiver<()>,
}

/// End of the attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptsEnd {
    Settled,
    /// A person canceled the request; the end is recorded.
    Canceled,
}

impl Interceptor {
    /// Makes a sent request cancellable.
    pub(crate) fn start_attempts(self: &Arc<Self>, request: RequestId) -> UpstreamAttempts {
        let (cancel, canceled) = oneshot::channel();
        lock(&self.state).attempts.insert(request, cancel);
        UpstreamAttempts { interceptor: Arc::clone(self), request, canceled }
    }

    /// Cancels the attempts of a request. Returns `false` if there are none.
    pub(super) fn cancel_attempts(&self, state: &mut State, request: RequestId, now: i64) -> bool {
        let Some(cancel) = state.attempts.remove(&request) else { return false };
        // A client's retry is rejected without asking again.
        state.decisions.cancel(request, now);
        let end = RequestEnd::Canceled;
        self.recorder.step(request, RequestStep::Ended { end, edited: None }, Flush::Immediate);
        // The receiver lives as long as the table entry.
        let _ = cancel.send(());
        true
    }
}

impl UpstreamAttempts {
    /// Records a rejection by the upstream, and the time of the next attempt.
    pub(crate) fn record_retry(&self, retry: UpstreamRetry) {
        let mut state = lock(&self.interceptor.state);
        state.decisions.renew(self.request, now());
        if state.attempts.contains_key(&self.request) {
            self.interceptor.recorder.step(self.request, RequestStep::UpstreamRetry(retry), Flush::Immediate);
        }
    }

    /// Waits for a cancellation. Cancel-safe.
    pub(crate) async fn canceled(&mut self) {
        if (&mut self.canceled).await.is_err() {
            // `finish` and `drop` remove the sender without a cancellation.
            let () = std::future::pending().await;
        }
    }

    /// Ends the attempts, and with them the possibility to cancel.
    pub(crate) fn finish(self) -> AttemptsEnd {
        let is_listed = lock(&self.interceptor.state).attempts.remove(&self.request).is_some();
        if is_listed { AttemptsEnd::Settled } else { AttemptsEnd::Canceled }
    }
}

impl Drop for UpstreamAttempts {
    fn drop(&mut self) {
        lock(&self.interceptor.state).attempts.remove(&self.request);
    }
}
