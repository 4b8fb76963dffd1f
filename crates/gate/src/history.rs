//! What happened in a workspace, read from its journal. Needs no lock, so it can be asked while an engine is at work.

use std::collections::BTreeSet;

use sayso_journal::{Reader, Sizes, StoredEvent};
use sayso_review::{
    Cause, ChangeId, ContentHash, Event, EventBody, FilePreview, FileRecord, FileState, Fingerprint, Performer,
    Placement, Preview, Recorded,
};
use serde::Serialize;

use crate::error::GateError;
use crate::feed::Feed;
use crate::record::{APPLYING, CHANGES, ENDED, PLANS, PLANS_ENDED, change_key, session_key};
use sayso_review::{ChangeRecord, ChangeStatus};

/// More events than any change has.
const MOST_EVENTS: usize = 10_000;
/// Events that are read in one go.
const PAGE: usize = 256;

/// What happened in a workspace.
#[derive(Clone, Copy)]
pub struct History<'j> {
    reader: &'j Reader,
    /// What need not be read, if it is an engine that is asked.
    feed: Option<&'j Feed>,
}

/// How a workspace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// How many changes there were.
    pub changes: u64,
    /// How many wait for a verdict.
    pub pending: u64,
    /// The change whose plan was on its way to the tree when something ended it.
    pub interrupted: Option<ChangeId>,
}

impl<'j> History<'j> {
    /// Reads a journal.
    pub fn new(reader: &'j Reader) -> Self {
        Self { reader, feed: None }
    }

    /// Reads the journal of an engine, and what that has at hand.
    pub(crate) fn of_engine(reader: &'j Reader, feed: &'j Feed) -> Self {
        Self { reader, feed: Some(feed) }
    }

    pub(crate) fn reader(self) -> &'j Reader {
        self.reader
    }

    /// One change.
    pub fn change(&self, change: ChangeId) -> Result<ChangeRecord, GateError> {
        let missing = || GateError::NoSuchChange(change.to_string());
        let lately = self.feed.and_then(|feed| feed.lately().events(change));
        if let Some(events) = lately {
            return ChangeRecord::fold(events.iter().map(|event| Recorded::clone(event))).ok_or_else(missing);
        }
        let events = self.reader.events_with(&change_key(change), 0, MOST_EVENTS)?;
        ChangeRecord::fold(events.iter().map(recorded)).ok_or_else(missing)
    }

    /// The files of a change as they were first recorded, before any refresh.
    pub(crate) fn first_files(&self, change: ChangeId) -> Result<Vec<FileRecord>, GateError> {
        let first = self.events(Some(change), 0, 1)?.into_iter().next();
        Ok(match first.map(|event| event.body) {
            Some(EventBody::Known(Event::Proposed { files, .. })) => files,
            _ => Vec::new(),
        })
    }

    /// The events of a change, or of the whole workspace, oldest first.
    pub fn events(&self, change: Option<ChangeId>, after: u64, limit: usize) -> Result<Vec<Recorded>, GateError> {
        let events = match change {
            Some(change) => self.reader.events_with(&change_key(change), after, limit)?,
            None => self.reader.events(after, limit)?,
        };
        Ok(events.iter().map(recorded).collect())
    }

    /// The changes before one, newest first.
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
        // One whose beginning was lost with a damaged journal is left out; the others are still there.
        let known = |record: &Result<ChangeRecord, GateError>| !matches!(record, Err(GateError::NoSuchChange(_)));
        first_error.into_iter().chain((1..=last).rev().map(move |change| history.change(change)).filter(known))
    }

    /// The changes of a session before one, newest first.
    pub fn changes_of(
        &self,
        session: &str,
        before: Option<ChangeId>,
        limit: usize,
    ) -> Result<Vec<ChangeRecord>, GateError> {
        let key = session_key(session);
        let (mut changes, mut page_before) = (Vec::new(), None);
        loop {
            let events = self.reader.latest_with(&key, page_before, PAGE)?;
            let Some(first) = events.last() else { return Ok(changes) };
            page_before = Some(first.number);
            for event in &events {
                // One event for each change, in the order in which they came.
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

    /// The changes of a session or a tool call, oldest first.
    pub(crate) fn with_key(self, key: &str) -> Result<Vec<ChangeRecord>, GateError> {
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

    /// How the workspace stands.
    pub fn status(&self) -> Result<Status, GateError> {
        let (changes, ended) = (self.reader.counter(CHANGES)?, self.reader.counter(ENDED)?);
        let interrupted = self.interrupted()?;
        let pending = changes.saturating_sub(ended + u64::from(interrupted.is_some()));
        Ok(Status { changes, pending, interrupted })
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

    /// How much is kept.
    pub fn sizes(&self) -> Result<Sizes, GateError> {
        Ok(self.reader.sizes()?)
    }

    /// A recorded state, whole; `None` if its content is no longer kept.
    pub fn state(&self, print: &Fingerprint) -> Result<Option<FileState>, GateError> {
        Ok(match print {
            Fingerprint::Absent => Some(FileState::Absent),
            Fingerprint::Link { target } => Some(FileState::Link { target: target.clone() }),
            Fingerprint::File { hash, mode, .. } => self.content(*hash)?.map(|bytes| FileState::file(bytes, *mode)),
        })
    }

    /// A recorded content.
    pub fn content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, GateError> {
        let lately = self.feed.and_then(|feed| feed.lately().content(hash));
        Ok(match lately {
            Some(bytes) => Some(bytes.to_vec()),
            None => self.reader.blob(hash)?,
        })
    }

    /// What a change did: like [`preview`](Self::preview), but with what was approved of it.
    pub fn applied(&self, record: &ChangeRecord) -> Result<Preview, GateError> {
        let Some(applied) = &record.applied else { return self.preview(record) };
        if record.performer == Performer::Agent || !record.subject.is_files() {
            // What others did need not be what was shown.
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

    /// A change as it was shown.
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

    /// Whether a change waits for a verdict.
    pub(crate) fn is_pending(record: &ChangeRecord) -> bool {
        record.status == ChangeStatus::Pending
    }
}

pub(crate) fn recorded(event: &StoredEvent) -> Recorded {
    Recorded { number: event.number, time: event.time, body: EventBody::decode(&event.body) }
}
