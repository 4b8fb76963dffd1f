//! Mode changes, and their effect on held requests.

use sayso_review::{Event, ModeSet, RequestEnd, RequestId, RequestMode};

use super::modes::Modes;
use super::resume::{ExpectedRevision, OnResume, ResumeError};
use super::{Interceptor, OneShot, State, lock};
use crate::recorder::Flush;

/// Action on held requests when their mode changes to "send normally".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldAction {
    /// Forwards them with their edits.
    Resume,
    Cancel,
}

/// Effect of a mode change on held requests.
#[derive(Debug, Default)]
pub struct ModeChange {
    pub resumed: usize,
    pub ended: usize,
    /// Requests that stay held, because the upstream would reject them with their edits.
    pub still_held: Vec<(RequestId, ResumeError)>,
}

impl Interceptor {
    /// Sets the mode of a session, or of all sessions without their own (`session` is `None`). A change to "send normally" resumes or
    /// cancels the held requests; any other change leaves them held.
    pub fn change_mode(
        &self,
        session: Option<&str>,
        mode: Option<RequestMode>,
        action: HeldAction,
        now: i64,
    ) -> ModeChange {
        if action == HeldAction::Cancel {
            return ModeChange { ended: self.set_mode(session, mode), ..ModeChange::default() };
        }
        let ids: Vec<RequestId> = {
            let mut state = lock(&self.state);
            let set = state.registry.modes.set(session, mode);
            self.recorder.event(Event::RequestMode(set), Flush::Immediate);
            self.update_passthrough(&state);
            if state.registry.modes.effective(session).mode != RequestMode::Off {
                return ModeChange::default();
            }
            let State { registry, decisions, held, .. } = &mut *state;
            let is_affected = |of: &str| session.map_or_else(|| !registry.modes.has_own(of), |session| of == session);
            decisions.approve_held(is_affected);
            held.iter().filter(|(_, held)| is_affected(&held.attribution.session)).map(|(id, _)| *id).collect()
        };
        let mut change = ModeChange::default();
        for id in ids {
            match self.resume_with(id, ExpectedRevision::Any, OnResume::DiscardCapture, now) {
                Ok(_) => change.resumed += 1,
                // The client disconnected, or another surface decided.
                Err(ResumeError::NotPaused(_)) => {}
                Err(error) => change.still_held.push((id, error)),
            }
        }
        change
    }

    /// Sets a mode and cancels the held requests if it is "send normally". Returns their number.
    pub fn set_mode(&self, session: Option<&str>, mode: Option<RequestMode>) -> usize {
        let mut state = lock(&self.state);
        let set = state.registry.modes.set(session, mode);
        self.recorder.event(Event::RequestMode(set), Flush::Immediate);
        self.update_passthrough(&state);
        if state.registry.modes.effective(session).mode != RequestMode::Off {
            return 0;
        }
        let State { registry, decisions, .. } = &mut *state;
        let is_affected = |modes: &Modes, of: &str| session.map_or_else(|| !modes.has_own(of), |session| of == session);
        // Retries of disconnected clients are not held either.
        let ended = decisions.remove_held(|of| is_affected(&registry.modes, of));
        self.record_ends(ended, &RequestEnd::ModeDisabled);
        self.end_held(&mut state, &RequestEnd::ModeDisabled, |state, held| {
            is_affected(&state.registry.modes, &held.attribution.session)
        })
    }

    /// Holds the next turn, in a session or in the first session that sends one.
    pub fn arm(&self, session: Option<&str>, once: OneShot) {
        let mut state = lock(&self.state);
        let set: ModeSet = state.registry.modes.arm(session, once);
        self.recorder.event(Event::RequestMode(set), Flush::Immediate);
        self.update_passthrough(&state);
    }
}
