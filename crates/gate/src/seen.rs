//! Marks of a person: hunks of pending changes that were on screen, and the last event that was read.

use sayso_review::{ChangeId, ChangeRecord, Event, EventBody, SeenMarks, VerdictError, WsPath};

use crate::engine::Engine;
use crate::error::GateError;
use crate::history::{History, decode_event};
use crate::record::{JournalBatch, READ_THROUGH, seen_key};

/// Events of marks that are read for one change. Each event marks at least one new hunk.
const MAX_MARK_EVENTS: usize = 10_000;

impl History<'_> {
    /// Returns the marks that count for the current preview of a change.
    pub fn seen_marks(&self, record: &ChangeRecord) -> Result<SeenMarks, GateError> {
        let events = self.reader().events_with(&seen_key(record.change), 0, MAX_MARK_EVENTS)?;
        Ok(SeenMarks::fold(events.iter().map(decode_event), &record.files))
    }

    /// Returns the number of the last event that a person has read; 0 if there is none.
    pub fn read_through(&self) -> Result<u64, GateError> {
        let last = self.reader().latest_with(READ_THROUGH, None, 1)?.pop();
        Ok(match last.map(|event| EventBody::decode(&event.body)) {
            Some(EventBody::Known(Event::ReadThrough { through })) => through,
            _ => 0,
        })
    }
}

impl Engine {
    /// Marks hunks of a pending change as seen. Records the hunks that were not marked before, and returns all marks.
    pub fn mark_seen(
        &mut self,
        change: ChangeId,
        path: &WsPath,
        hunks: &[usize],
        now: i64,
    ) -> Result<SeenMarks, GateError> {
        let record = self.pending_record(change)?;
        let Some(file) = record.files.iter().find(|file| file.path == *path) else {
            return Err(VerdictError::UnknownFile(path.clone()).into());
        };
        if let Some(&hunk) = hunks.iter().find(|hunk| !(1..=file.max_hunks()).contains(*hunk)) {
            return Err(GateError::NoSuchHunk { path: path.to_string(), hunk });
        }
        let mut marks = self.history().seen_marks(&record)?;
        let known = marks.files.entry(path.clone()).or_default();
        let mut new: Vec<usize> = hunks.iter().copied().filter(|hunk| known.insert(*hunk)).collect();
        if new.is_empty() {
            marks.files.retain(|_, hunks| !hunks.is_empty());
            return Ok(marks);
        }
        new.sort_unstable();
        let event = Event::HunksSeen { change, path: path.clone(), file: file.preview_hash(), hunks: new };
        self.write(JournalBatch::from_events([event]), now)?;
        Ok(marks)
    }

    /// Records that a person has read all events up to a number. Returns the number that counts: it never decreases, and does not
    /// exceed the last event.
    pub fn mark_read(&mut self, through: u64, now: i64) -> Result<u64, GateError> {
        let through = through.min(self.feed.last());
        let known = self.history().read_through()?;
        if through <= known {
            return Ok(known);
        }
        self.write(JournalBatch::from_events([Event::ReadThrough { through }]), now)?;
        Ok(through)
    }
}
