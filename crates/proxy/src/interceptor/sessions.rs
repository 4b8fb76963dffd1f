//! Ends of sessions, runs and the engine.

use std::sync::atomic::Ordering;

use sayso_review::{Event, PauseReason, RequestEnd};

use super::held::SaveOnResume;
use super::{Interceptor, OneShot, State, lock};
use crate::recorder::Flush;

impl Interceptor {
    /// Ends a session: discards its held requests, and forgets its mode, prior decisions and bodies.
    pub fn end_session(&self, session: &str) {
        // A deferred request would bring the session back.
        self.recorder.flush();
        let mut state = lock(&self.state);
        self.end_held(&mut state, &RequestEnd::SessionDisposed, |_, held| held.attribution.belongs_to(session));
        self.record_ends(state.decisions.remove_sessions(|of| of == session), &RequestEnd::SessionDisposed);
        state.registry.remove(session);
        if state.turns.remove_session(session) {
            self.store_turns(&state);
        }
        if let Some(set) = state.registry.modes.remove_session(session) {
            self.recorder.event(Event::RequestMode(set), Flush::Immediate);
        }
        self.update_passthrough(&state);
        drop(state);
        self.bodies.remove_session(session);
    }

    /// Ends the sessions of a run.
    pub fn end_run(&self, run: &str) {
        self.recorder.flush();
        let sessions = lock(&self.state).registry.sessions_of_run(run);
        for session in sessions {
            self.end_session(&session);
        }
    }

    /// The run of a session that sent a request since the engine started.
    pub(crate) fn run_of(&self, session: &str) -> Option<String> {
        lock(&self.state).registry.get(session).map(|session| session.run.clone())
    }

    /// Ends all held requests because the engine stops. One-shot pauses are armed again: the client's retry is held by the next engine.
    pub fn stop(&self) {
        self.shutting_down.store(true, Ordering::Release);
        let mut state = lock(&self.state);
        let State { held, registry, .. } = &mut *state;
        for held in held.values() {
            let pause = (held.reason == PauseReason::NextTurn).then_some(OneShot::Pause);
            let capture = (held.save_on_resume == SaveOnResume::Yes).then_some(OneShot::Capture);
            for once in pause.into_iter().chain(capture) {
                let set = registry.modes.arm(Some(&held.attribution.session), once);
                self.recorder.event(Event::RequestMode(set), Flush::Immediate);
            }
        }
        self.end_held(&mut state, &RequestEnd::EngineStopped, |_, _| true);
        drop(state);
        self.recorder.flush();
    }
}
