//! Read model of a workspace: changes, sessions, snapshots and requests, folded from journal events. Needs no lock, so
//! it can be read while an engine runs.

use std::collections::BTreeSet;

use sayso_journal::{JournalSizes, Reader, StoredEvent};
use sayso_review::{
    Cause, ChangeId, ContentHash, Event, EventBody, FilePreview, FileRecord, FileState, Fingerprint, Performer,
    Placement, Preview, Recorded,
};
use serde::Serialize;

use crate::error::GateError;
use crate::feed::Feed;
use crate::record::{APPLYING, CHANGES, ENDED, PLANS, PLANS_ENDED, change_key, session_key};
use sayso_review::{ChangeRecord, ChangeStatus};

/// Larger than the number of events of any change.
const MAX_EVENTS_PER_CHANGE: usize = 10_000;
const PAGE_SIZE: usize = 256;

/// Read access to the history of a workspace.
#[derive(Clone, Copy)]
pub struct History<'j> {
    reader: &'j Reader,
    /// Cache of a running engine.
    feed: Option<&'j Feed>,
}

/// Counts of changes in a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WorkspaceStatus {
    /// Number of all changes.
    pub changes: u64,
    /// Number of pending changes.
    pub pending: u64,
    /// Change whose application a crash interrupted.
    pub interrupted: Option<ChangeId>,
}

impl<'j> History<'j> {
    pub fn new(reader: &'j Reader) -> Self {
        Self { reader, feed: None }
    }

    /// Reads the journal of a running engine, with its cache.
    pub(crate) fn with_cache(reader: &'j Reader, feed: &'j Feed) -> Self {
        Self { reader, feed: Some(feed) }
    }

    pub(crate) fn reader(self) -> &'j Reader {
        self.reader
    }

    /// Returns a change.
    pub fn change(&self, change: ChangeId) -> Result<ChangeRecord, GateError> {
        let missing = || GateError::NoSuchChange(change.to_string());
        let cached = self.feed.and_then(|feed| feed.cache().events(change));
        if let Some(events) = cached {
            return ChangeRecord::fold(events.iter().map(|event| Recorded::clone(event))).ok_or_else(missing);
        }
        let events = self.reader.events_with(&change_key(change), 0, MAX_EVENTS_PER_CHANGE)?;
        ChangeRecord::fold(events.iter().map(decode_event)).ok_or_else(missing)
    }

    /// Returns the files of a change as first recorded, before any refresh.
    pub(crate) fn first_files(&self, change: ChangeId) -> Result<Vec<FileRecord>, GateError> {
        let first = self.events(Some(change), 0, 1)?.into_iter().next();
        Ok(match first.map(|event| event.body) {
            Some(EventBody::Known(Event::Proposed { files, .. })) => files,
            _ => Vec::new(),
        })
    }

    /// Returns the events of a change or of the whole workspace, oldest first.
    pub fn events(&self, change: Option<ChangeId>, after: u64, limit: usize) -> Result<Vec<Recorded>, GateError> {
        let events = match change {
            Some(change) => self.reader.events_with(&change_key(change), after, limit)?,
            None => self.reader.events(after, limit)?,
        };
        Ok(events.iter().map(decode_event).collect())
    }

    /// Returns the changes before a change, or all, newest first.
    pub fn changes(&self, before: Option<ChangeId>) -> impl Iterator<Item = Result<ChangeRecord, GateError>> + 'j {
        let history = *self;
        let last = match before {
            Some(before) => Ok(before.saturating_sub(1)),
            None => self.reader.counter(CHANGES).map_err(GateError::from),
        };
        let (first_error, last) = match last {
            Ok(last) => (None, last),
            Err(error) => (Some(Err(error)), 0),
        };
        // Skips changes whose first event was lost in a damaged journal.
        let known = |record: &Result<ChangeRecord, GateError>| !matches!(record, Err(GateError::NoSuchChange(_)));
        first_error.into_iter().chain((1..=last).rev().map(move |change| history.change(change)).filter(known))
    }

    /// Returns the changes of a session before a change, or the last changes, newest first.
    pub fn changes_of(
        &self,
        session: &str,
        before: Option<ChangeId>,
        limit: usize,
    ) -> Result<Vec<ChangeRecord>, GateError> {
        let key = session_key(session);
        let (mut changes, mut page_before) = (Vec::new(), None);
        loop {
            let events = self.reader.latest_with(&key, page_before, PAGE_SIZE)?;
            let Some(first) = events.last() else { return Ok(changes) };
            page_before = Some(first.number);
            for event in &events {
                // Each change has exactly one such event.
                let EventBody::Known(Event::Proposed { change, .. }) = EventBody::decode(&event.body) else { continue };
                if before.is_some_and(|before| change >= before) {
                    continue;
                }
                if changes.len() == limit {
                    return Ok(changes);
                }
                changes.push(self.change(change)?);
            }
        }
    }

    /// Returns the changes whose events have a key, oldest first.
    pub(crate) fn changes_with_key(self, key: &str) -> Result<Vec<ChangeRecord>, GateError> {
        let mut changes = BTreeSet::new();
        let mut after = 0;
        loop {
            let events = self.reader.events_with(key, after, 1_000)?;
            let Some(last) = events.last() else { break };
            after = last.number;
            for event in events {
                if let EventBody::Known(event) = EventBody::decode(&event.body) {
                    changes.extend(event.change());
                }
            }
        }
        changes.into_iter().map(|change| self.change(change)).collect()
    }

    /// Counts the changes.
    pub fn status(&self) -> Result<WorkspaceStatus, GateError> {
        let (changes, ended) = (self.reader.counter(CHANGES)?, self.reader.counter(ENDED)?);
        let interrupted = self.interrupted()?;
        let pending = changes.saturating_sub(ended + u64::from(interrupted.is_some()));
        Ok(WorkspaceStatus { changes, pending, interrupted })
    }

    fn interrupted(self) -> Result<Option<ChangeId>, GateError> {
        if self.reader.counter(PLANS)? == self.reader.counter(PLANS_ENDED)? {
            return Ok(None);
        }
        let last = self.reader.latest_with(APPLYING, None, 1)?.pop();
        Ok(last.and_then(|event| match EventBody::decode(&event.body) {
            EventBody::Known(event) => event.change(),
            EventBody::Unknown(_) => None,
        }))
    }

    /// Returns the sizes of the journal.
    pub fn sizes(&self) -> Result<JournalSizes, GateError> {
        Ok(self.reader.sizes()?)
    }

    /// Returns a recorded file state with its content; `None` if the content was deleted.
    pub fn state(&self, print: &Fingerprint) -> Result<Option<FileState>, GateError> {
        Ok(match print {
            Fingerprint::Absent => Some(FileState::Absent),
            Fingerprint::Link { target } => Some(FileState::Link { target: target.clone() }),
            Fingerprint::File { hash, mode, .. } => self.content(*hash)?.map(|bytes| FileState::file(bytes, *mode)),
        })
    }

    /// Returns recorded content; `None` if it was deleted.
    pub fn content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, GateError> {
        let cached = self.feed.and_then(|feed| feed.cache().content(hash));
        Ok(match cached {
            Some(bytes) => Some(bytes.to_vec()),
            None => self.reader.blob(hash)?,
        })
    }

    /// Returns what a change did to files, like [`preview`](Self::preview) but limited to the approved part.
    pub fn applied_preview(&self, record: &ChangeRecord) -> Result<Preview, GateError> {
        let Some(applied) = &record.applied else { return self.preview(record) };
        if record.performer == Performer::Agent || !record.subject.is_files() {
            // The agent's effects may differ from the preview.
            let gone = || GateError::ContentGone(record.change);
            let mut steps = Vec::new();
            for step in &applied.steps {
                let (before, after) = (self.state(&step.before)?, self.state(&step.after)?);
                steps.push((step.path.clone(), before.ok_or_else(gone)?, after.ok_or_else(gone)?));
            }
            return Ok(Preview::happened(steps));
        }
        let mut happened = record.clone();
        happened.files.retain_mut(|file| {
            let step = applied.steps.iter().find(|step| step.path == file.location);
            if let Some(step) = step {
                file.after = step.after.clone();
            }
            step.is_some()
        });
        self.preview(&happened)
    }

    /// Returns the preview of a change as it was shown.
    pub fn preview(&self, record: &ChangeRecord) -> Result<Preview, GateError> {
        let gone = || GateError::ContentGone(record.change);
        let file = |file: &FileRecord| -> Result<(FilePreview, bool), GateError> {
            let preview = FilePreview {
                path: file.path.clone(),
                location: file.location.clone(),
                operation: file.operation.clone(),
                before: self.state(&file.before)?.ok_or_else(gone)?,
                after: self.state(&file.after)?.ok_or_else(gone)?,
                notes: file.notes.clone(),
                problem: file.problem.clone(),
            };
            Ok((preview, file.settled))
        };
        let files = record.files.iter().map(file).collect::<Result<Vec<_>, _>>()?;
        let in_place = matches!(record.cause, Cause::Review { .. });
        Ok(Preview::recorded(files, if in_place { Placement::InPlace } else { Placement::Proposed }))
    }

    pub(crate) fn is_pending(record: &ChangeRecord) -> bool {
        record.status == ChangeStatus::Pending
    }
}

pub(crate) fn decode_event(event: &StoredEvent) -> Recorded {
    Recorded { number: event.number, time: event.time, body: EventBody::decode(&event.body) }
}
