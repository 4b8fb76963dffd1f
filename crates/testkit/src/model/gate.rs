//! A gate that a test opens, so that nothing has to wait for a clock.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// A gate that answers wait at until a test lets them through. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// A gate that lets nobody through yet.
    pub fn shut() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets the next ones through: those who wait, then those who come.
    pub fn let_through(&self, count: usize) {
        self.0.add_permits(count);
    }

    /// Lets everybody through from now on.
    pub fn open(&self) {
        self.0.close();
    }

    /// Waits to be let through.
    pub(super) async fn pass(&self) {
        // A closed semaphore gives no permits, and stands for an open gate.
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}
