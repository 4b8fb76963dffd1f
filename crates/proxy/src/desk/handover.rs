//! What one engine takes over from the one before: requests that waited there, with their edits.
//!
//! Their clients were cut off, and most of them send the same again. What a person had made of it by then is in the journal, edit by
//! edit, whether that engine was stopped or killed.

use std::collections::BTreeSet;
use std::sync::Arc;

use sayso_gate::{CutBody, Gate, GateError, History, RequestEntry};
use sayso_review::{BodyRecord, RequestEnd, RequestId, RequestRecord, RequestStatus, RequestStep};
use sayso_wire::{Head, ModelRequest};

use super::past::{Fate, MOST, OTHERS, Past};
use super::{Captures, Desk, Whose, entry, lock};
use crate::log::Haste;

/// How long ago an engine may have been killed, in milliseconds. Nobody knows when it was, and people think for long.
const KILLED: i64 = 24 * 60 * 60_000;

/// The requests that waited when the last engine ended, and what is to be recorded of those whose end nobody recorded.
pub(super) fn take_over(gate: &Gate, now: i64) -> Result<(Past, Vec<RequestEntry>), GateError> {
    gate.read(|history| {
        let records = history.paused_requests(MOST)?;
        // Somebody else goes on with these.
        let taken: BTreeSet<RequestId> = records.iter().filter_map(|record| record.inherits).collect();
        let (mut past, mut ended) = (Past::default(), Vec::new());
        for record in records.into_iter().rev() {
            let since = match (&record.ended, record.status) {
                (Some(RequestEnd::EngineStopped), _) if now - record.last < OTHERS => record.last,
                (None, RequestStatus::Paused) => {
                    ended.push(end(&history, &record));
                    if now - record.last >= KILLED {
                        continue;
                    }
                    now
                }
                _ => continue,
            };
            let Some(handover) = record.handover.filter(|_| !taken.contains(&record.request)) else { continue };
            let captures = if handover.captures { Captures::Yes } else { Captures::No };
            let conversation = Whose::recorded(&record.seen).conversation();
            let fate = Fate::HandedOver { patch: record.patch, captures };
            past.remember(record.request, conversation, handover.identity, fate, since);
        }
        Ok((past, ended))
    })
}

/// The end of a request that nobody recorded.
fn end(history: &History<'_>, record: &RequestRecord) -> RequestEntry {
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
    /// Records how the requests ended that waited at an engine that was killed.
    pub(super) fn settle_killed(&self, ended: Vec<RequestEntry>) {
        if !ended.is_empty() {
            self.log.later(Haste::Now, None, move || ended);
        }
    }

    /// What was made of a request at another engine, laid over it as it came again.
    pub(super) fn handed_over(
        &self,
        whose: &Whose,
        identity: &str,
        request: &ModelRequest,
    ) -> Option<Arc<ModelRequest>> {
        let patch: BodyRecord = lock(&self.state).past.handed_over(&whose.conversation(), identity)?;
        let patch = self.gate.read(|history| history.body(&patch));
        let mut request = request.clone();
        let made = patch
            .map_err(|error| error.to_string())
            .and_then(|patch| request.apply_patch(&patch).map(|_| ()).map_err(|error| error.to_string()));
        match made {
            Ok(()) => Some(Arc::new(request)),
            Err(error) => {
                tracing::warn!(error, "the edits of a request that waited at another engine could not be taken over");
                None
            }
        }
    }
}
