//! Ends of holds: a person resumes or cancels a request, or its hold becomes pointless.

use std::sync::Arc;

use sayso_gate::{ChunkedBody, RequestEntry};
use sayso_review::{ErrorKind, RequestEnd, RequestId, RequestStep, Resumer};
use sayso_wire::{CaptureCounts, RequestProblem, TurnEdits};
use thiserror::Error;

use super::edits::RequestEdits;
use super::held::SaveOnResume;
use super::override_capture::ModeSwitch;
use super::override_store::StateFileError;
use super::recent_decisions::{DecisionKey, PriorDecision};
use super::{ForwardRequest, HeldRequest, HoldOutcome, Interceptor, Recording, State, entry, lock};
use crate::recorder::Flush;

/// Failure to resume or cancel a request, or to save its edits.
#[derive(Debug, Error)]
pub enum ResumeError {
    #[error("request {0} is not paused")]
    NotPaused(RequestId),
    /// Another surface edited the request after the caller read it.
    #[error("request {request} was edited since: it is at version {revision}, not {expected}")]
    EditedSince { request: RequestId, expected: u64, revision: u64 },
    #[error("request {request} would be rejected: {}", join_messages(problems))]
    Invalid { request: RequestId, problems: Vec<RequestProblem> },
    #[error(transparent)]
    Save(#[from] StateFileError),
}

fn join_messages(problems: &[RequestProblem]) -> String {
    problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("; ")
}

impl ResumeError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotPaused(_) => ErrorKind::InvalidArgs,
            Self::EditedSince { .. } => ErrorKind::Stale,
            Self::Invalid { .. } => ErrorKind::Conflict,
            Self::Save(error) => error.kind(),
        }
    }

    pub fn hint(&self) -> String {
        match self {
            Self::NotPaused(_) => "list paused requests with `sayso request list --waiting`".to_owned(),
            Self::EditedSince { request, .. } => format!("review it again with `sayso request diff {request}`"),
            Self::Invalid { request, .. } => {
                format!("repair it, or discard your edits with `sayso request reset {request}`")
            }
            Self::Save(error) => error.hint().to_owned(),
        }
    }
}

/// The revision of a request that the caller has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedRevision {
    Any,
    /// The revision after this many edits.
    Exactly(u64),
}

impl ExpectedRevision {
    pub(super) fn check(self, request: RequestId, revision: u64) -> Result<(), ResumeError> {
        match self {
            Self::Exactly(expected) if expected != revision => {
                Err(ResumeError::EditedSince { request, expected, revision })
            }
            Self::Any | Self::Exactly(_) => Ok(()),
        }
    }
}

/// Effects of resuming a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumeReport {
    pub captured: CaptureCounts,
    pub switched: Option<ModeSwitch>,
    /// Number of edits that stay for the rest of the turn.
    pub turn_edits: usize,
}

/// A held request at one moment, independent of the state lock.
pub(super) struct HeldSnapshot {
    pub(super) edits: RequestEdits,
    revision: u64,
    pub(super) session: String,
    save_on_resume: SaveOnResume,
}

/// Treatment of edits that were to be saved on resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnResume {
    Capture,
    DiscardCapture,
}

/// The body and turn edits of a resumed request, prepared without the state lock for one revision.
struct PreparedResume {
    revision: u64,
    body: Option<Arc<[u8]>>,
    turn_edits: Option<TurnEdits>,
}

#[derive(PartialEq, Eq)]
enum ResumeAttempt {
    Resumed,
    /// The request was edited while the resume was prepared.
    EditedSince,
}

impl Interceptor {
    /// Forwards a held request with its edits.
    pub fn resume(
        &self,
        request: RequestId,
        expected: ExpectedRevision,
        now: i64,
    ) -> Result<ResumeReport, ResumeError> {
        self.resume_with(request, expected, OnResume::Capture, now)
    }

    pub(super) fn resume_with(
        &self,
        request: RequestId,
        expected: ExpectedRevision,
        on_resume: OnResume,
        now: i64,
    ) -> Result<ResumeReport, ResumeError> {
        let scope = self.settings().scope;
        loop {
            let HeldSnapshot { edits, revision, session, save_on_resume } = self.held_snapshot(request, expected)?;
            let dirty = edits.dirty();
            if let Some(edited) = dirty {
                let problems = edited.blocking_problems();
                if !problems.is_empty() {
                    return Err(ResumeError::Invalid { request, problems });
                }
            }
            let body = dirty.map(|edited| Arc::from(edited.to_bytes().as_ref()));
            let mut report = ResumeReport::default();
            if let (SaveOnResume::Yes, OnResume::Capture, Some(captured)) =
                (save_on_resume, on_resume, self.captured_edits(&edits))
            {
                report.captured = self.save_edits(request, &session, &captured, scope, now)?;
            }
            let turn_edits = self.turn_edits(&edits, &session);
            report.turn_edits = turn_edits.as_ref().map_or(0, TurnEdits::len);
            let prepared = PreparedResume { revision, body, turn_edits };
            if self.try_resume(request, prepared, now)? == ResumeAttempt::Resumed {
                report.switched = self.switch_mode_for(report.captured, scope, &session);
                return Ok(report);
            }
        }
    }

    pub(super) fn held_snapshot(
        &self,
        request: RequestId,
        expected: ExpectedRevision,
    ) -> Result<HeldSnapshot, ResumeError> {
        let state = lock(&self.state);
        let held = state.held.get(&request).ok_or(ResumeError::NotPaused(request))?;
        expected.check(request, held.revision)?;
        Ok(HeldSnapshot {
            edits: held.edits.clone(),
            revision: held.revision,
            session: held.attribution.session.clone(),
            save_on_resume: held.save_on_resume,
        })
    }

    /// Forwards a held request, unless its revision has changed since it was prepared.
    fn try_resume(&self, request: RequestId, prepared: PreparedResume, now: i64) -> Result<ResumeAttempt, ResumeError> {
        let PreparedResume { revision, body, turn_edits } = prepared;
        let mut state = lock(&self.state);
        if state.held.get(&request).is_some_and(|held| held.revision != revision) {
            return Ok(ResumeAttempt::EditedSince);
        }
        let Some(held) = state.held.remove(&request) else { return Err(ResumeError::NotPaused(request)) };
        let HeldRequest { attribution, api, edits, retry_key, outcome, .. } = held;
        self.recorder.step(request, RequestStep::Resumed { by: Resumer::Person }, Flush::Immediate);
        match &body {
            Some(body) => self.record_sent_edited(request, &edits, body),
            None => self.record_sent_verbatim(request, edits.overrides.clone()),
        }
        self.set_turn_edits(&mut state, &attribution, request, turn_edits);
        let key = DecisionKey::new(&attribution, retry_key);
        state.decisions.remember(request, key, PriorDecision::Approved { edits }, now);
        let in_flight = self.in_flight(request, Recording::Enabled);
        // If the client has disconnected, the send fails and drops `in_flight`, which records the end.
        let _ = outcome.send(HoldOutcome::Forward(ForwardRequest { api, attribution, body, in_flight }));
        self.update_passthrough(&state);
        Ok(ResumeAttempt::Resumed)
    }

    /// Cancels a held request, or one that is still retried.
    pub fn cancel(&self, request: RequestId, now: i64) -> Result<(), ResumeError> {
        let mut state = lock(&self.state);
        if self.cancel_attempts(&mut state, request, now) {
            return Ok(());
        }
        let held = state.held.remove(&request).ok_or(ResumeError::NotPaused(request))?;
        let key = DecisionKey::new(&held.attribution, held.retry_key.clone());
        state.decisions.remember(request, key, PriorDecision::Canceled, now);
        self.close(request, held, RequestEnd::Canceled);
        self.update_passthrough(&state);
        Ok(())
    }

    /// Ends a request that was removed from the hold table. Its edited body is recorded.
    pub(super) fn close(&self, request: RequestId, held: HeldRequest, end: RequestEnd) {
        let edited = held.edits.dirty().map(Arc::clone);
        let recorded = end.clone();
        self.recorder.build_later(request, Flush::Immediate, None, move || {
            let body = edited.map(|edited| ChunkedBody::new(edited.to_bytes().into_owned().into()));
            let step = RequestStep::Ended { end: recorded, edited: body.as_ref().map(ChunkedBody::record) };
            vec![RequestEntry { bodies: body.into_iter().collect(), ..entry(request, step) }]
        });
        let _ = held.outcome.send(HoldOutcome::Terminate(end));
    }

    /// Ends a held request whose client disconnected. Does nothing if the hold has ended.
    pub(super) fn client_disconnected(&self, request: RequestId, now: i64) {
        let mut state = lock(&self.state);
        let Some(held) = state.held.remove(&request) else { return };
        let decision = PriorDecision::ClientGone { edits: held.edits.clone(), save_on_resume: held.save_on_resume };
        let key = DecisionKey::new(&held.attribution, held.retry_key.clone());
        state.decisions.remember(request, key, decision, now);
        self.close(request, held, RequestEnd::ClientGone);
        self.update_passthrough(&state);
    }

    /// Forgets the decision about a request that has a response: an equal request is a new one.
    pub(crate) fn answered(&self, request: RequestId) {
        let mut state = lock(&self.state);
        state.decisions.remove(request);
        self.update_passthrough(&state);
    }

    /// Ends the held requests that match, and returns their number.
    pub(super) fn end_held(
        &self,
        state: &mut State,
        end: &RequestEnd,
        matches: impl Fn(&State, &HeldRequest) -> bool,
    ) -> usize {
        let ids = state.held_ids(|held| matches(state, held));
        for id in &ids {
            if let Some(held) = state.held.remove(id) {
                self.close(*id, held, end.clone());
            }
        }
        self.update_passthrough(state);
        ids.len()
    }

    /// Records a final end of requests that ended before, but whose retry would have been held. The next engine then forgets them, too.
    pub(super) fn record_ends(&self, requests: Vec<RequestId>, end: &RequestEnd) {
        for request in requests {
            self.recorder.step(request, RequestStep::Ended { end: end.clone(), edited: None }, Flush::Immediate);
        }
    }
}
