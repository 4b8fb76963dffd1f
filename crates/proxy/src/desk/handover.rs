//! What one engine takes over from the one before: requests that have no answer yet, with their edits.
//!
//! Their clients were cut off, and most of them send the same again. What a person had made of it by then is in the journal, edit by
//! edit, whether that engine was stopped or killed.

use std::collections::BTreeSet;
use std::sync::Arc;

use sayso_gate::{CutBody, Gate, GateError, History, RequestEntry};
use sayso_review::{BodyRecord, RequestEnd, RequestId, RequestRecord, RequestStatus, RequestStep};
use sayso_wire::{Head, ModelRequest};

use super::past::{Fate, Handed, MOST, Past, RecordedWork};
use super::{Captures, Desk, Whose, Work, entry, lock};
use crate::log::Haste;

/// How long ago a request may have ended, in milliseconds: clients try again within minutes.
const ENDED: i64 = 60 * 60_000;
/// How long ago something may have happened to one of which nobody recorded the end. People think for long.
const KILLED: i64 = 24 * 60 * 60_000;

/// The requests that had no answer when the last engine ended, and what is to be recorded of those whose end nobody recorded.
pub(super) fn take_over(gate: &Gate, now: i64) -> (Past, Vec<RequestEntry>) {
    // Without it, what comes again is asked about again, or sent as it comes.
    gate.read(|history| read(&history, now)).unwrap_or_else(|error| {
        tracing::error!(%error, "what waited at the last engine could not be taken over");
        (Past::default(), Vec::new())
    })
}

fn read(history: &History<'_>, now: i64) -> Result<(Past, Vec<RequestEntry>), GateError> {
    let records = history.paused_requests(MOST)?;
    // Somebody else goes on with these.
    let taken: BTreeSet<RequestId> = records.iter().filter_map(|record| record.inherits).collect();
    let (mut past, mut ended) = (Past::default(), Vec::new());
    for record in records.into_iter().rev() {
        let is_open = record.ended.is_none() && record.answer.is_none();
        if is_open {
            ended.push(end(history, &record));
        }
        let Some(left) = left(&record) else { continue };
        let recent = now - record.last < if is_open { KILLED } else { ENDED };
        let Some(handover) = record.handover.filter(|_| recent && !taken.contains(&record.request)) else { continue };
        let fate = match left {
            Left::Canceled => Fate::Canceled,
            Left::Open(verdict) => {
                let (request, edited, saved) = (record.request, record.patch, handover.saved);
                let captures = if handover.captures { Captures::Yes } else { Captures::No };
                let edits = Box::new(RecordedWork { request, edited, laid: handover.laid, saved });
                Fate::HandedOver { edits, captures, verdict }
            }
        };
        // Whoever cancelled it did so then; others have from now on for coming again.
        let time = if matches!(fate, Fate::Canceled) { record.last } else { now };
        let conversation = Whose::recorded(&record.seen).conversation();
        past.remember(record.request, conversation, handover.identity, fate, time);
    }
    past.forget_old(now);
    Ok((past, ended))
}

/// What a request left behind.
enum Left {
    Canceled,
    Open(Handed),
}

fn left(record: &RequestRecord) -> Option<Left> {
    let answered = record.answer.as_ref().is_some_and(|answer| !answer.may_come_again());
    match (&record.ended, record.resumed) {
        _ if answered => None,
        (Some(RequestEnd::Canceled), _) => Some(Left::Canceled),
        (None | Some(RequestEnd::ClientGone | RequestEnd::EngineStopped | RequestEnd::Failed { .. }), Some(_)) => {
            Some(Left::Open(Handed::Approved))
        }
        (None | Some(RequestEnd::ClientGone | RequestEnd::EngineStopped), None) => Some(Left::Open(Handed::Waiting)),
        _ => None,
    }
}

/// The end of a request that nobody recorded.
fn end(history: &History<'_>, record: &RequestRecord) -> RequestEntry {
    if record.resumed.is_some() || record.status == RequestStatus::Sent {
        let why = RequestEnd::Failed { message: "sayso was killed before there was an answer".to_owned() };
        return entry(record.request, RequestStep::Ended { why, edited: None });
    }
    let edited = record.patch.as_ref().and_then(|patch| {
        let head = Head { path: record.seen.path.clone(), headers: record.seen.headers.clone() };
        let body: Arc<[u8]> = history.body(&record.seen.body).ok()?.into();
        let mut request = ModelRequest::new(record.request.to_string(), head, body);
        request.apply_patch(&history.body(patch).ok()?).ok()?;
        Some(CutBody::new(request.to_bytes().into_owned().into()))
    });
    let step = RequestStep::Ended { why: RequestEnd::EngineStopped, edited: edited.as_ref().map(CutBody::record) };
    RequestEntry { bodies: edited.into_iter().collect(), ..entry(record.request, step) }
}

impl Desk {
    /// Records how the requests ended that were at an engine that was killed.
    pub(super) fn settle_killed(&self, ended: Vec<RequestEntry>) {
        if !ended.is_empty() {
            self.log.later(Haste::Now, None, move || ended);
        }
    }

    /// What was made of a request at another engine, made of it again as it comes again.
    pub(super) fn handed_over(&self, whose: &Whose, identity: &str, request: &ModelRequest) -> Option<Work> {
        let edits = lock(&self.state).past.handed_over(&whose.conversation(), identity)?;
        let again = |patch: &Option<BodyRecord>| -> Result<Option<Arc<ModelRequest>>, String> {
            let Some(patch) = patch else { return Ok(None) };
            if let Some(redaction) = patch.redactions.first() {
                return Err(format!("they hold a credential that is not on record (`{}`)", redaction.name));
            }
            let patch = self.gate.read(|history| history.body(patch)).map_err(|error| error.to_string())?;
            let mut request = request.clone();
            request.apply_patch(&patch).map_err(|error| error.to_string())?;
            Ok(Some(Arc::new(request)))
        };
        let made = again(&edits.edited).and_then(|edited| Ok((edited, again(&edits.laid)?)));
        Some(match made {
            Ok((edited, laid)) => Work { edited, laid, saved: edits.saved, ..Work::default() },
            Err(error) => {
                let unmade = format!("the edits of request {} could not be made again: {error}", edits.request);
                tracing::warn!(request = edits.request, error, "edits could not be taken over");
                let mut work = Work { unmade: Some(unmade.clone()), ..Work::default() };
                work.saved.drifted.push(unmade);
                work
            }
        })
    }
}
