//! What becomes of a request whose body nobody has looked at yet.

use std::fmt;
use std::sync::Mutex;

use super::lock;

type Work = Box<dyn FnOnce() + Send>;

/// What comes after a request, and is recorded after it: its body is looked at when it is on its way, and perhaps after its answer has begun.
pub(crate) struct Sequel {
    /// What waits until the request is on record; `None` once it is.
    waits: Mutex<Option<Vec<Work>>>,
}

impl Default for Sequel {
    fn default() -> Self {
        Self { waits: Mutex::new(Some(Vec::new())) }
    }
}

impl fmt::Debug for Sequel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequel").finish_non_exhaustive()
    }
}

impl Sequel {
    /// Does something once the request is on record.
    pub(crate) fn then(&self, work: impl FnOnce() + Send + 'static) {
        let mut waits = lock(&self.waits);
        if let Some(waits) = &mut *waits {
            return waits.push(Box::new(work));
        }
        drop(waits);
        work();
    }

    /// The request is on record.
    pub(crate) fn recorded(&self) {
        let waits = lock(&self.waits).take();
        for work in waits.into_iter().flatten() {
            work();
        }
    }
}
