//! Synchronization of answers with a test, without sleeping.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// A latch that holds answers back until a test opens it. Clones share their state.
#[derive(Clone, Debug)]
pub struct Latch(Arc<Semaphore>);

impl Latch {
    /// Creates a latch that holds every answer.
    pub fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Releases `count` answers: first the held answers, then later arrivals.
    pub fn release(&self, count: usize) {
        self.0.add_permits(count);
    }

    /// Releases all held and all later answers.
    pub fn open(&self) {
        self.0.close();
    }

    /// Waits until released.
    pub(crate) async fn pass(&self) {
        // An open latch is a closed semaphore: `acquire` fails at once instead of waiting for a permit.
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}
