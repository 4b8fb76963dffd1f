//! Order of journal entries: the response's entry follows the entry of its request.

use std::fmt;
use std::sync::Mutex;

use crate::lock;

type Job = Box<dyn FnOnce() + Send>;

/// Delays jobs until a request is recorded.
///
/// A forwarded body is compared with its base only after it was sent, and possibly after the response has started. Entries that belong
/// after the request's own entry pass through this barrier.
pub(crate) struct RecordBarrier {
    /// Delayed jobs; `None` after the release.
    delayed: Mutex<Option<Vec<Job>>>,
}

impl Default for RecordBarrier {
    fn default() -> Self {
        Self { delayed: Mutex::new(Some(Vec::new())) }
    }
}

impl fmt::Debug for RecordBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBarrier").finish_non_exhaustive()
    }
}

impl RecordBarrier {
    /// Runs a job after the release; at once if the barrier is released already.
    pub(crate) fn after(&self, job: impl FnOnce() + Send + 'static) {
        let mut delayed = lock(&self.delayed);
        if let Some(delayed) = &mut *delayed {
            return delayed.push(Box::new(job));
        }
        drop(delayed);
        job();
    }

    /// Runs the delayed jobs: the request is recorded.
    pub(crate) fn release(&self) {
        let delayed = lock(&self.delayed).take();
        for job in delayed.into_iter().flatten() {
            job();
        }
    }
}
