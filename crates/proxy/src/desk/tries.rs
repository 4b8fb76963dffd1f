//! Requests that were sent after their client had its status: what an upstream turns away is tried again by us, and a person can cancel
//! it until there is an answer.

use std::sync::Arc;

use sayso_review::{RequestEnd, RequestId, RequestStep, TurnedAway};
use tokio::sync::oneshot;

use super::{Desk, State, lock};
use crate::log::{Haste, now};

/// A request that is tried until its upstream takes it. Dropped, it can no longer be cancelled.
#[derive(Debug)]
pub(crate) struct Tries {
    desk: Arc<Desk>,
    request: RequestId,
    canceled: oneshot::Receiver<()>,
}

/// What became of a request while it was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    /// Nobody minds.
    On,
    /// A person cancelled it, which is recorded.
    Canceled,
}

impl Desk {
    /// Has a request be one that can be cancelled although it was sent.
    pub(crate) fn tries(self: &Arc<Self>, request: RequestId) -> Tries {
        let (cancel, canceled) = oneshot::channel();
        lock(&self.state).tried.insert(request, cancel);
        Tries { desk: Arc::clone(self), request, canceled }
    }

    /// Cancels a request that is being tried again; whether it is one.
    pub(super) fn cancel_tries(&self, state: &mut State, request: RequestId, now: i64) -> bool {
        let Some(cancel) = state.tried.remove(&request) else { return false };
        // Should its client try again, nobody is asked again.
        state.past.cancel(request, now);
        let why = RequestEnd::Canceled;
        self.log.step(request, RequestStep::Ended { why, edited: None }, Haste::Now);
        // Whoever tries is there for as long as it is listed.
        let _ = cancel.send(());
        true
    }
}

impl Tries {
    /// The upstream turned it away once more.
    pub(crate) fn turned_away(&self, by: TurnedAway) {
        let mut state = lock(&self.desk.state);
        state.past.renew(self.request, now());
        if state.tried.contains_key(&self.request) {
            self.desk.log.step(self.request, RequestStep::TurnedAway(by), Haste::Now);
        }
    }

    /// Waits until somebody cancels it. Can be called again when it was given up in between.
    pub(crate) async fn canceled(&mut self) {
        if (&mut self.canceled).await.is_err() {
            // Only this one's end takes it from the list without a word.
            let () = std::future::pending().await;
        }
    }

    /// It has an answer, or will have none: from here on nobody cancels it.
    pub(crate) fn over(self) -> Tried {
        let listed = lock(&self.desk.state).tried.remove(&self.request).is_some();
        if listed { Tried::On } else { Tried::Canceled }
    }
}

impl Drop for Tries {
    fn drop(&mut self) {
        lock(&self.desk.state).tried.remove(&self.request);
    }
}
