//! The signal that interrupts an invocation.

use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use tokio::sync::watch;

/// A signal that is triggered at most once. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct InterruptSignal(Arc<watch::Sender<bool>>);

impl Default for InterruptSignal {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl InterruptSignal {
    pub(crate) fn trigger(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes when the signal is triggered.
    pub(crate) async fn triggered(&self) {
        let mut receiver = self.0.subscribe();
        // Fails only if the sender is gone, and `self` holds it.
        let _ = receiver.wait_for(|triggered| *triggered).await;
    }

    /// Runs a future until it completes, or drops it when the signal is triggered.
    pub(crate) async fn or_interrupted<F: Future>(&self, future: F) -> Option<F::Output> {
        match select(pin!(self.triggered()), pin!(future)).await {
            Either::Left(_) => None,
            Either::Right((output, _)) => Some(output),
        }
    }
}
