//! How waiting ends: a person resumes or cancels, or something happens that makes it pointless.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sayso_gate::{CutBody, RequestEntry};
use sayso_review::{
    ErrorKind, Event, ModeSet, OverridesSet, PauseReason, RequestEnd, RequestId, RequestMode, RequestStep, Resumer,
};
use sayso_wire::{Captured, Problem, Scope, TurnEdits};
use thiserror::Error;

use super::mode::{Modes, Once};
use super::passed::entry;
use super::past::Fate;
use super::saved::{Again, Edits, SavedError};
use super::{Captures, Desk, Keeps, Outgoing, State, Verdict, Waiting, Work, lock};
use crate::log::Haste;

/// Why a request could not be resumed or cancelled.
#[derive(Debug, Error)]
pub enum EndError {
    /// It does not wait.
    #[error("request {0} does not wait")]
    NotWaiting(RequestId),
    /// Somebody has edited it since.
    #[error("request {request} was edited since: it is at version {version}, not {expected}")]
    EditedSince {
        /// It.
        request: RequestId,
        /// What was expected.
        expected: u64,
        /// What it is.
        version: u64,
    },
    /// The model's maker would refuse it.
    #[error("request {request} would be refused: {}", problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; "))]
    Invalid {
        /// It.
        request: RequestId,
        /// What is wrong.
        problems: Vec<Problem>,
    },
    /// The edits could not be saved.
    #[error(transparent)]
    Saved(#[from] SavedError),
}

impl EndError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotWaiting(_) => ErrorKind::InvalidArgs,
            Self::EditedSince { .. } => ErrorKind::Stale,
            Self::Invalid { .. } => ErrorKind::Conflict,
            Self::Saved(error) => error.kind(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotWaiting(_) => "`sayso request list --waiting` shows those that do".to_owned(),
            Self::EditedSince { request, .. } => format!("look at it again: `sayso request diff {request}`"),
            Self::Invalid { request, .. } => {
                format!("mend it, or take your edits back with `sayso request reset {request}`")
            }
            Self::Saved(error) => error.hint().to_owned(),
        }
    }
}

/// Which state of a request somebody has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Whatever it is.
    Any,
    /// The one after so many edits.
    Version(u64),
}

impl Expected {
    /// Whether a request at this version is what was seen.
    pub(super) fn check(self, request: RequestId, version: u64) -> Result<(), EndError> {
        match self {
            Self::Version(expected) if expected != version => Err(EndError::EditedSince { request, expected, version }),
            Self::Any | Self::Version(_) => Ok(()),
        }
    }
}

/// What resuming a request led to besides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// What became of saved edits.
    pub captured: Captured,
    /// The mode that was switched to, so that they are applied.
    pub switched: Option<Switched>,
    /// Edits that stay for the rest of the turn.
    pub turn_edits: usize,
}

/// A mode that was switched to because edits were saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched {
    /// The mode.
    pub mode: RequestMode,
    /// The scope of the edits: of one session the session is switched, else all sessions.
    pub scope: Scope,
}

/// What saving the edits of a request led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Edits that were saved.
    pub saved: usize,
    /// The mode that was switched to, so that they are applied.
    pub switched: Option<Switched>,
}

/// What becomes of paused requests when requests are sent normally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWaiting {
    /// They go on with their edits.
    Resume,
    /// They end, and their agents are told.
    Cancel,
}

/// What a change of mode led to.
#[derive(Debug, Default)]
pub struct ModeChange {
    /// Requests that went on.
    pub resumed: usize,
    /// Requests that ended.
    pub ended: usize,
    /// Requests that still wait, each with the reason: they would be rejected with their edits.
    pub waiting: Vec<(RequestId, EndError)>,
}

/// A request that waits, as it was a moment ago.
struct Latest {
    work: Work,
    revision: u64,
    session: String,
    captures: Captures,
}

/// Whether the edits of a request that waits to be captured are saved when it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saves {
    AsAsked,
    Nothing,
}

#[derive(PartialEq, Eq)]
enum Went {
    On,
    EditedSince,
}

impl Desk {
    /// Lets a request go on, with its latest edits.
    pub fn resume(&self, request: RequestId, expected: Expected, now: i64) -> Result<Resumed, EndError> {
        self.let_go(request, expected, Saves::AsAsked, now)
    }

    fn let_go(&self, request: RequestId, expected: Expected, saves: Saves, now: i64) -> Result<Resumed, EndError> {
        let scope = self.settings().scope;
        loop {
            let seen = self.latest(request, expected)?;
            // Nobody else waits for a request to be looked through, or for a disk.
            let edited = seen.work.dirty();
            if let Some(parsed) = edited {
                let problems = parsed.blocking();
                if !problems.is_empty() {
                    return Err(EndError::Invalid { request, problems });
                }
            }
            let body = edited.map(|parsed| Arc::from(parsed.to_bytes().as_ref()));
            let mut resumed = Resumed::default();
            if let (Captures::Yes, Saves::AsAsked, Some(edits)) = (seen.captures, saves, self.own_edits(&seen.work)) {
                resumed.captured = self.save_edits(request, &seen.session, &edits, scope, now)?;
            }
            let turn_edits = self.turn_edits(&seen.work, &seen.session);
            resumed.turn_edits = turn_edits.as_ref().map_or(0, TurnEdits::len);
            if self.go_on(request, seen.revision, body, turn_edits, now)? == Went::On {
                resumed.switched = self.switch_for(resumed.captured, scope, &seen.session);
                return Ok(resumed);
            }
        }
    }

    /// A request that waits, as it is now.
    fn latest(&self, request: RequestId, expected: Expected) -> Result<Latest, EndError> {
        let state = lock(&self.state);
        let waiting = state.waiting.get(&request).ok_or(EndError::NotWaiting(request))?;
        expected.check(request, waiting.revision)?;
        Ok(Latest {
            work: waiting.work.clone(),
            revision: waiting.revision,
            session: waiting.whose.session.clone(),
            captures: waiting.captures,
        })
    }

    /// Lets a request go on with this body, unless somebody has edited it since.
    fn go_on(
        &self,
        request: RequestId,
        revision: u64,
        body: Option<Arc<[u8]>>,
        turn_edits: Option<TurnEdits>,
        now: i64,
    ) -> Result<Went, EndError> {
        let mut state = lock(&self.state);
        match state.waiting.get(&request) {
            None => return Err(EndError::NotWaiting(request)),
            Some(waiting) if waiting.revision != revision => return Ok(Went::EditedSince),
            Some(_) => {}
        }
        let Some(mut waiting) = state.waiting.remove(&request) else { return Err(EndError::NotWaiting(request)) };
        self.log.step(request, RequestStep::Resumed { by: Resumer::Person }, Haste::Now);
        let work = std::mem::take(&mut waiting.work);
        match &body {
            Some(body) => self.sent_edited(request, &work, body),
            None => self.sent(request, work.saved.clone()),
        }
        self.set_turn(&mut state, &waiting.whose, request, turn_edits);
        let fate = Fate::Approved { work };
        state.past.remember(request, waiting.whose.conversation(), waiting.identity.clone(), fate, now);
        // Should the client be gone by now, it is recorded that there will be no answer.
        let unanswered = self.unanswered(request, Keeps::Yes);
        let _ =
            waiting.verdict.send(Verdict::Send(Outgoing { api: waiting.api, whose: waiting.whose, body, unanswered }));
        self.notice(&state);
        Ok(Went::On)
    }

    /// Turns auto-apply on where edits were saved and requests are sent normally, in which mode they would not be applied.
    pub(super) fn switch_for(&self, captured: Captured, scope: Scope, session: &str) -> Option<Switched> {
        if captured.saved == 0 {
            return None;
        }
        let mode = RequestMode::AutoOverride;
        let is_off = |of| self.effective(of).mode == RequestMode::Off;
        let mut switched = None;
        for of in [None, Some(session)].into_iter().skip(usize::from(scope == Scope::Session)) {
            if is_off(of) {
                self.set_mode(of, Some(mode));
                switched = Some(Switched { mode, scope });
            }
        }
        switched
    }

    /// Ends a request: it is not sent, or not tried again.
    pub fn cancel(&self, request: RequestId, now: i64) -> Result<(), EndError> {
        let mut state = lock(&self.state);
        if self.cancel_tries(&mut state, request, now) {
            return Ok(());
        }
        let waiting = state.waiting.remove(&request).ok_or(EndError::NotWaiting(request))?;
        let (conversation, identity) = (waiting.whose.conversation(), waiting.identity.clone());
        state.past.remember(request, conversation, identity, Fate::Canceled, now);
        self.close(request, waiting, RequestEnd::Canceled);
        self.notice(&state);
        Ok(())
    }

    /// Ends a request that was taken out of those that wait.
    pub(super) fn close(&self, request: RequestId, waiting: Waiting, why: RequestEnd) {
        // What a person made of it is not lost with it.
        let edited = waiting.work.dirty().map(Arc::clone);
        let ended = why.clone();
        self.log.later(Haste::Now, None, move || {
            let body = edited.map(|parsed| CutBody::new(parsed.to_bytes().into_owned().into()));
            let step = RequestStep::Ended { why: ended, edited: body.as_ref().map(CutBody::record) };
            vec![RequestEntry { bodies: body.into_iter().collect(), ..entry(request, step) }]
        });
        let _ = waiting.verdict.send(Verdict::End(why));
    }

    /// The client of a request went away. Does nothing if it no longer waits.
    pub(super) fn client_gone(&self, request: RequestId, now: i64) {
        let mut state = lock(&self.state);
        let Some(waiting) = state.waiting.remove(&request) else { return };
        let fate = Fate::Gone { work: waiting.work.clone(), captures: waiting.captures };
        let (conversation, identity) = (waiting.whose.conversation(), waiting.identity.clone());
        state.past.remember(request, conversation, identity, fate, now);
        self.close(request, waiting, RequestEnd::ClientGone);
        self.notice(&state);
    }

    /// A request was answered, so that the same one again is another one.
    pub(crate) fn answered(&self, request: RequestId) {
        let mut state = lock(&self.state);
        state.past.answered(request);
        self.notice(&state);
    }

    /// Ends all requests that wait of which something is true.
    fn end_all(&self, state: &mut State, why: &RequestEnd, ends: impl Fn(&State, &Waiting) -> bool) -> usize {
        let ids: Vec<RequestId> =
            state.waiting.iter().filter(|(_, waiting)| ends(state, waiting)).map(|(id, _)| *id).collect();
        for id in &ids {
            if let Some(waiting) = state.waiting.remove(id) {
                self.close(*id, waiting, why.clone());
            }
        }
        self.notice(state);
        ids.len()
    }

    /// Records of requests that have ended, and would have waited again, that they will not: also not at the next engine.
    fn end_for_good(&self, requests: Vec<RequestId>, why: &RequestEnd) {
        for request in requests {
            self.log.step(request, RequestStep::Ended { why: why.clone(), edited: None }, Haste::Now);
        }
    }

    /// Treats requests otherwise from now on. If they are sent normally, those that wait go on or end; any other mode leaves
    /// them waiting.
    pub fn change_mode(
        &self,
        session: Option<&str>,
        mode: Option<RequestMode>,
        waiting: OnWaiting,
        now: i64,
    ) -> ModeChange {
        if waiting == OnWaiting::Cancel {
            return ModeChange { ended: self.set_mode(session, mode), ..ModeChange::default() };
        }
        let ids: Vec<RequestId> = {
            let mut state = lock(&self.state);
            let set = state.modes.set(session, mode);
            self.log.event(Event::RequestMode(set), Haste::Now);
            self.notice(&state);
            if state.modes.effective(session).mode != RequestMode::Off {
                return ModeChange::default();
            }
            let State { modes, past, waiting, .. } = &mut *state;
            let there = |of: &str| session.map_or_else(|| !modes.has_own(of), |session| of == session);
            past.approve_gone(there);
            waiting.iter().filter(|(_, waiting)| there(&waiting.whose.session)).map(|(id, _)| *id).collect()
        };
        let mut change = ModeChange::default();
        for id in ids {
            match self.let_go(id, Expected::Any, Saves::Nothing, now) {
                Ok(_) => change.resumed += 1,
                // Its client went away, or somebody else decided.
                Err(EndError::NotWaiting(_)) => {}
                Err(error) => change.waiting.push((id, error)),
            }
        }
        change
    }

    /// Treats requests otherwise from now on, in a session or in all that have no mode of their own. To send normally ends what
    /// waits there; any other mode leaves it waiting. Says how many ended.
    pub fn set_mode(&self, session: Option<&str>, mode: Option<RequestMode>) -> usize {
        let mut state = lock(&self.state);
        let set = state.modes.set(session, mode);
        self.log.event(Event::RequestMode(set), Haste::Now);
        self.notice(&state);
        if state.modes.effective(session).mode != RequestMode::Off {
            return 0;
        }
        let State { modes, past, .. } = &mut *state;
        let there = |modes: &Modes, of: &str| session.map_or_else(|| !modes.has_own(of), |session| of == session);
        // Nor does anything wait there because it comes again.
        self.end_for_good(past.forget_gone(|of| there(modes, of)), &RequestEnd::ModeDisabled);
        self.end_all(&mut state, &RequestEnd::ModeDisabled, |state, waiting| {
            there(&state.modes, &waiting.whose.session)
        })
    }

    /// Has the next turn wait, in a session or wherever it comes first.
    pub fn arm(&self, session: Option<&str>, once: Once) {
        let mut state = lock(&self.state);
        let set: ModeSet = state.modes.arm(session, once);
        self.log.event(Event::RequestMode(set), Haste::Now);
        self.notice(&state);
    }

    /// A session is over: what waits in it is discarded, and what is known of it is forgotten.
    pub fn session_over(&self, session: &str) {
        // Should its last request not have been looked at yet, the session would come back with it.
        self.log.flush();
        let mut state = lock(&self.state);
        self.end_all(&mut state, &RequestEnd::SessionDisposed, |_, waiting| waiting.whose.is_of(session));
        self.end_for_good(state.past.forget(|of| of == session), &RequestEnd::SessionDisposed);
        state.monitor.forget(session);
        state.sessions.remove(session);
        if state.turns.forget(session) {
            self.keep_turns(&state);
        }
        if let Some(set) = state.modes.forget(session) {
            self.log.event(Event::RequestMode(set), Haste::Now);
        }
        self.notice(&state);
        drop(state);
        lock(&self.bodies).forget(session);
    }

    /// A run is over, and with it the sessions that were seen in it.
    pub fn run_over(&self, run: &str) {
        self.log.flush();
        let of = |state: &State| -> Vec<String> {
            state.sessions.iter().filter(|(_, session)| session.run == run).map(|(name, _)| name.clone()).collect()
        };
        let sessions = of(&lock(&self.state));
        for session in sessions {
            self.session_over(&session);
        }
    }

    /// Waits until all that has happened is recorded.
    pub fn settle(&self) {
        self.log.flush();
    }

    /// The engine stops: whoever waits is told. What was to wait once waits at the next engine, should its client come again.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::Release);
        let mut state = lock(&self.state);
        let State { waiting, modes, .. } = &mut *state;
        for waiting in waiting.values() {
            let next = (waiting.why == PauseReason::NextTurn).then_some(Once::Pause);
            let capture = (waiting.captures == Captures::Yes).then_some(Once::Capture);
            for once in next.into_iter().chain(capture) {
                self.log.event(Event::RequestMode(modes.arm(Some(&waiting.whose.session), once)), Haste::Now);
            }
        }
        self.end_all(&mut state, &RequestEnd::EngineStopped, |_, _| true);
        drop(state);
        self.log.flush();
    }

    /// Saves what was edited in a request that waits, to be applied from now on.
    pub fn save(&self, request: RequestId, scope: Scope, now: i64) -> Result<Saved, EndError> {
        let Latest { work, session, .. } = self.latest(request, Expected::Any)?;
        // Those that saved edits made, too: that is how one of a session becomes one of all.
        let edits = self.own_edits(&work).map(|edits| Edits { since: None, again: Again::Yes, ..edits });
        let Some(edits) = edits else { return Ok(Saved::default()) };
        let captured = self.save_edits(request, &session, &edits, scope, now)?;
        Ok(Saved { saved: captured.saved, switched: self.switch_for(captured, scope, &session) })
    }

    /// The edits that a person made, beside those that were saved before and applied by themselves.
    fn own_edits<'w>(&self, work: &'w Work) -> Option<Edits<'w>> {
        let preview_limit = self.settings().preview_limit;
        let (request, since) = (work.edited.as_deref()?, work.laid.as_deref());
        Some(Edits { request, since, again: Again::No, preview_limit })
    }

    /// Saves what was edited. What is signed is never edited, so that there is nothing to save of it.
    pub(super) fn save_edits(
        &self,
        request: RequestId,
        session: &str,
        edits: &Edits<'_>,
        scope: Scope,
        now: i64,
    ) -> Result<Captured, EndError> {
        let (captured, total) = self.saved.capture(edits, scope, session, now)?;
        if captured != Captured::default() {
            let set = OverridesSet {
                scope: super::edit::scope_name(scope).to_owned(),
                session: (scope == Scope::Session).then(|| session.to_owned()),
                count: total as u64,
                from: Some(request),
            };
            self.log.event(Event::Overrides(set), Haste::Now);
        }
        Ok(captured)
    }

    /// Removes the saved edits of a scope; in Auto-apply the next turn is captured again.
    pub fn remove_saved(&self, scope: Scope, session: &str) -> Result<usize, SavedError> {
        let count = self.saved.remove(scope, session)?;
        let set = OverridesSet {
            scope: super::edit::scope_name(scope).to_owned(),
            session: (scope == Scope::Session).then(|| session.to_owned()),
            count: 0,
            from: None,
        };
        self.log.event(Event::Overrides(set), Haste::Now);
        Ok(count)
    }
}
