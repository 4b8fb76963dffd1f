//! Makes people look at requests that wait.

use std::sync::{Arc, Mutex};

use sayso_gate::Gate;
use sayso_review::RequestId;

use super::lock;

/// Rings on a thread of its own: a terminal may be stopped, and no request waits for one.
#[derive(Debug, Default)]
pub(super) struct Bell(Arc<Mutex<Ringing>>);

#[derive(Debug, Default)]
struct Ringing {
    /// Whether somebody rings.
    rings: bool,
    /// The last one that is still to be rung for: the number of all that wait is told with it.
    next: Option<RequestId>,
}

impl Bell {
    pub(super) fn ring(&self, gate: &Gate, request: RequestId) {
        // Whoever looks in this moment sees it come; should they leave before the thread runs, they have seen it.
        if gate.surfaces() > 0 {
            return;
        }
        let mut ringing = lock(&self.0);
        ringing.next = Some(request);
        if std::mem::replace(&mut ringing.rings, true) {
            return;
        }
        drop(ringing);
        let (ringing, gate) = (Arc::clone(&self.0), gate.clone());
        let ring = move || {
            loop {
                let mut ringing = lock(&ringing);
                let Some(request) = ringing.next.take() else {
                    ringing.rings = false;
                    return;
                };
                drop(ringing);
                gate.announce_request(request);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("bell".to_owned()).spawn(ring) {
            lock(&self.0).rings = false;
            tracing::warn!(%error, "nobody could be told that a request waits");
        }
    }
}
