//! Notifications about held requests while no surface is attached.

use std::sync::{Arc, Mutex};

use sayso_gate::Gate;
use sayso_review::RequestId;

use super::lock;

/// Sends notifications on a thread of its own: a notification command or a stopped terminal must not delay requests.
#[derive(Debug, Default)]
pub(super) struct Notifier(Arc<Mutex<NotifierState>>);

#[derive(Debug, Default)]
struct NotifierState {
    /// `true` while the thread runs.
    running: bool,
    /// The newest request to notify about. A notification includes the number of held requests, so older ones are skipped.
    pending: Option<RequestId>,
}

impl Notifier {
    pub(super) fn notify(&self, gate: &Gate, request: RequestId) {
        // An attached surface displays the request, also if it detaches right after.
        if gate.surfaces() > 0 {
            return;
        }
        let mut state = lock(&self.0);
        state.pending = Some(request);
        if std::mem::replace(&mut state.running, true) {
            return;
        }
        drop(state);
        let (state, gate) = (Arc::clone(&self.0), gate.clone());
        let run = move || {
            loop {
                let mut state = lock(&state);
                let Some(request) = state.pending.take() else {
                    state.running = false;
                    return;
                };
                drop(state);
                gate.notify_request(request);
            }
        };
        if let Err(error) = std::thread::Builder::new().name("notifier".to_owned()).spawn(run) {
            lock(&self.0).running = false;
            tracing::warn!(%error, request, "cannot notify about a paused request");
        }
    }
}
