//! Handover between engines: requests without a response, with their edits.
//!
//! When an engine ends, its clients lose their connections, and most of them retry. Every edit is in the journal, whether the engine was
//! stopped or killed, so the next engine continues with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use sayso_gate::{ChunkedBody, Gate, GateError, History, RequestEntry};
use sayso_review::{BodyRecord, RequestEnd, RequestId, RequestRecord, RequestStatus, RequestStep, SkippedEdit};
use sayso_wire::{ModelRequest, RequestHead};

use super::edits::RequestEdits;
use super::held::SaveOnResume;
use super::recent_decisions::{
    DecisionKey, HandoverState, MAX_DECISIONS, PriorDecision, RecentDecisions, RecordedEdits,
};
use super::{Attribution, Interceptor, entry, lock};
use crate::recorder::Flush;

/// Age in milliseconds up to which an ended request is handed over: clients retry within minutes.
const MAX_ENDED_AGE_MS: i64 = 60 * 60_000;
/// Age in milliseconds up to which a request without a recorded end is handed over: a person may take hours to decide.
const MAX_OPEN_AGE_MS: i64 = 24 * 60 * 60_000;

/// Reads the requests that had no response when the last engine ended, and the ends that it could not record.
pub(super) fn take_over(gate: &Gate, now: i64) -> (RecentDecisions, Vec<RequestEntry>) {
    // Without the handover, a retry is admitted like a new request.
    gate.read(|history| read(&history, now)).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot take over the paused requests of the last engine");
        (RecentDecisions::default(), Vec::new())
    })
}

fn read(history: &History<'_>, now: i64) -> Result<(RecentDecisions, Vec<RequestEntry>), GateError> {
    let records = history.paused_requests(MAX_DECISIONS)?;
    // A later request continues these.
    let continued: BTreeSet<RequestId> = records.iter().filter_map(|record| record.inherits).collect();
    let (mut decisions, mut ended) = (RecentDecisions::default(), Vec::new());
    for record in records.into_iter().rev() {
        let is_open = record.ended.is_none() && record.answer.is_none();
        if is_open {
            ended.push(missing_end(history, &record));
        }
        let Some(last_state) = last_state(&record) else { continue };
        let is_recent = now - record.last < if is_open { MAX_OPEN_AGE_MS } else { MAX_ENDED_AGE_MS };
        let is_eligible = is_recent && !continued.contains(&record.request);
        let Some(handover) = record.handover.filter(|_| is_eligible) else { continue };
        let (decision, time) = match last_state {
            LastState::Canceled => (PriorDecision::Canceled, record.last),
            LastState::Open(state) => {
                let save_on_resume = if handover.save_on_resume { SaveOnResume::Yes } else { SaveOnResume::No };
                let edits = Box::new(RecordedEdits {
                    request: record.request,
                    edited: record.patch,
                    with_overrides: handover.with_overrides,
                    overrides: handover.overrides,
                });
                // The time to live starts with this engine: no client could retry while there was none.
                (PriorDecision::HandedOver { edits, save_on_resume, state }, now)
            }
        };
        let key = DecisionKey::new(&Attribution::from_record(&record.received), handover.identity);
        decisions.remember(record.request, key, decision, time);
    }
    decisions.remove_expired(now);
    Ok((decisions, ended))
}

/// The state of a request when its engine ended.
enum LastState {
    Canceled,
    Open(HandoverState),
}

/// `None` if a retry of the request is a new request.
fn last_state(record: &RequestRecord) -> Option<LastState> {
    let is_answered = record.answer.as_ref().is_some_and(|answer| !answer.may_be_retried());
    match (&record.ended, record.resumed) {
        _ if is_answered => None,
        (Some(RequestEnd::Canceled), _) => Some(LastState::Canceled),
        (None | Some(RequestEnd::ClientGone | RequestEnd::EngineStopped | RequestEnd::Failed { .. }), Some(_)) => {
            Some(LastState::Open(HandoverState::Approved))
        }
        (None | Some(RequestEnd::ClientGone | RequestEnd::EngineStopped), None) => {
            Some(LastState::Open(HandoverState::Held))
        }
        _ => None,
    }
}

/// The end that a killed engine could not record.
fn missing_end(history: &History<'_>, record: &RequestRecord) -> RequestEntry {
    if record.resumed.is_some() || record.status == RequestStatus::Sent {
        let end = RequestEnd::Failed { message: "sayso was killed before there was an answer".to_owned() };
        return entry(record.request, RequestStep::Ended { end, edited: None });
    }
    let edited = record.patch.as_ref().and_then(|patch| {
        let head = RequestHead { path: record.received.path.clone(), headers: record.received.headers.clone() };
        let body: Arc<[u8]> = history.body(&record.received.body).ok()?.into();
        let mut request = ModelRequest::new(record.request.to_string(), head, body);
        request.apply_patch(&history.body(patch).ok()?).ok()?;
        Some(ChunkedBody::new(request.to_bytes().into_owned().into()))
    });
    let step = RequestStep::Ended { end: RequestEnd::EngineStopped, edited: edited.as_ref().map(ChunkedBody::record) };
    RequestEntry { bodies: edited.into_iter().collect(), ..entry(record.request, step) }
}

impl Interceptor {
    /// Records the ends that a killed engine could not record.
    pub(super) fn record_killed(&self, ended: Vec<RequestEntry>) {
        if let Some(request) = ended.first().and_then(|entry| entry.event.request()) {
            self.recorder.build_later(request, Flush::Immediate, None, move || ended);
        }
    }

    /// Applies the edits that another engine recorded to a retry of the request. `None` if there was no such request.
    pub(super) fn handed_over(
        &self,
        attribution: &Attribution,
        retry_key: &str,
        request: &ModelRequest,
    ) -> Option<RequestEdits> {
        let key = DecisionKey::new(attribution, retry_key.to_owned());
        let recorded = lock(&self.state).decisions.handed_over(&key)?;
        let apply = |patch: &Option<BodyRecord>| -> Result<Option<Arc<ModelRequest>>, String> {
            let Some(patch) = patch else { return Ok(None) };
            if let Some(redaction) = patch.redactions.first() {
                return Err(format!("they contain a credential that is not recorded (`{}`)", redaction.name));
            }
            let patch = self.gate.read(|history| history.body(patch)).map_err(|error| error.to_string())?;
            let mut request = request.clone();
            request.apply_patch(&patch).map_err(|error| error.to_string())?;
            Ok(Some(Arc::new(request)))
        };
        let applied = apply(&recorded.edited).and_then(|edited| Ok((edited, apply(&recorded.with_overrides)?)));
        Some(match applied {
            Ok((edited, with_overrides)) => {
                RequestEdits { edited, with_overrides, overrides: recorded.overrides, ..RequestEdits::default() }
            }
            Err(error) => {
                let message = format!("cannot reapply the edits of request {}: {error}", recorded.request);
                tracing::warn!(request = recorded.request, error, "cannot reapply the edits of a paused request");
                let mut edits = RequestEdits { reapply_error: Some(message.clone()), ..RequestEdits::default() };
                edits.overrides.skipped.push(SkippedEdit::failed(String::new(), message));
                edits
            }
        })
    }
}
