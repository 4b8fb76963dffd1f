//! Maintenance of the records: crash recovery, cancellation of abandoned changes, and collection of old contents.

use std::collections::BTreeSet;

use sayso_journal::{Batch, CollectReport, CompactReport, Retention};
use sayso_review::{ChangeId, ContentHash, Event, EventBody, FileAccess, Subject};

use crate::command_scan::COLLECTIONS;
use crate::engine::{Engine, PhaseBefore, RecoveredChange, follow_up_events};
use crate::error::GateError;
use crate::history::{History, decode_event};
use crate::record::PERMITTED;
use sayso_review::ChangeStatus;

/// An older permitted action counts as over after so many later permissions.
const MAX_PERMITTED_EVENTS: usize = 10_000;

impl Engine {
    /// Completes or rolls back a change that a crash interrupted.
    pub(crate) fn recover(&mut self, now: i64) -> Result<Option<RecoveredChange>, GateError> {
        let Some(change) = self.history().status()?.interrupted else { return Ok(None) };
        let record = match self.history().change(change) {
            // A damaged journal lost the first event of the change, and with it the plan.
            Err(GateError::NoSuchChange(_)) => None,
            record => Some(record?),
        };
        let Some((record, applied)) = record.as_ref().and_then(|record| Some((record, record.applied.as_ref()?)))
        else {
            self.finish_change(Vec::new(), PhaseBefore::Applying, now)?;
            return Ok(None);
        };
        if record.status != ChangeStatus::Interrupted {
            self.finish_change(Vec::new(), PhaseBefore::Applying, now)?;
            return Ok(None);
        }
        let history = self.history();
        // Unreadable content counts as missing, which the report states.
        let recovery = self
            .workspace
            .recover(applied, |hash| history.content(*hash).ok().flatten())
            .map_err(|error| GateError::Recover { change, error })?;
        let mut events = vec![Event::Recovered {
            change,
            finished: recovery.finished,
            skipped_files: recovery.skipped_files.clone(),
            rescued_files: recovery.rescued_files.clone(),
        }];
        if recovery.finished {
            events.extend(follow_up_events(change, &record.cause));
        }
        // A change that an editor was permitted to apply was counted then.
        let was = if record.permitted_event > 0 { PhaseBefore::ApplyingPermitted } else { PhaseBefore::Applying };
        self.finish_change(events, was, now)?;
        Ok(Some(RecoveredChange { change, recovery }))
    }

    /// Cancels pending changes that no client waits for. Changes in `alive` stay, and so do reviews, which belong to
    /// the person.
    pub fn cancel_abandoned(&mut self, alive: &BTreeSet<ChangeId>, now: i64) -> Result<Vec<ChangeId>, GateError> {
        let mut waiting = Vec::new();
        if self.history().status()?.pending > 0 {
            for record in self.history().changes(None) {
                let record = record?;
                if History::is_pending(&record) && !record.is_review() && !alive.contains(&record.change) {
                    waiting.push(record.change);
                }
            }
        }
        for &change in &waiting {
            // A dependent change may have ended with another one.
            if self.pending_record(change).is_ok() {
                self.cancel(change, now)?;
            }
        }
        Ok(waiting)
    }

    /// Deletes the oldest contents until at most `max_bytes` are stored.
    pub(crate) fn release(&mut self, max_bytes: u64) -> Result<CollectReport, GateError> {
        self.collect_contents(None, Some(max_bytes))
    }

    fn collect_contents(&mut self, before: Option<i64>, max_bytes: Option<u64>) -> Result<CollectReport, GateError> {
        // Counted first, so that after an interruption no scan relies on deleted contents.
        let collections = self.journal.reader().counter(COLLECTIONS)? + 1;
        let counters = vec![(COLLECTIONS, collections)];
        self.journal.append(&Batch { blobs: Vec::new(), events: Vec::new(), counters })?;
        self.remove_finished_scans();
        let mut keep_blobs: BTreeSet<ContentHash> = self.scanned_contents().into_iter().collect();
        let (release, mut keep) = self.freed_and_pending()?;
        // Pending changes must stay displayable, and permitted changes must stay undoable.
        let mut open: BTreeSet<ChangeId> = self.pending_changes()?.into_iter().collect();
        open.extend(self.permitted_changes()?);
        for change in open {
            keep_blobs.extend(self.history().change(change)?.intent);
            keep.extend(self.history().events(Some(change), 0, usize::MAX)?.iter().map(|event| event.number));
        }
        keep.extend(self.agent_blobs_in_use(before)?);
        let retention = Retention { before, max_bytes, keep: &keep, release: &release, keep_blobs: &keep_blobs };
        let collected = self.journal.collect(retention);
        self.feed.cache().drop_contents();
        Ok(collected?)
    }

    /// Returns the permitted changes that have not ended.
    pub fn permitted_changes(&self) -> Result<Vec<ChangeId>, GateError> {
        let mut changes = Vec::new();
        for event in self.journal.reader().latest_with(PERMITTED, None, MAX_PERMITTED_EVENTS)? {
            if let EventBody::Known(Event::Permitted { change, .. }) = decode_event(&event).body
                && self.history().change(change)?.status == ChangeStatus::Permitted
            {
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// `true` while a permitted command or writing tool has not ended, or if the journal cannot tell.
    pub fn has_running_writer(&self) -> bool {
        let may_write = |subject: &Subject| match subject {
            Subject::Command { .. } => true,
            Subject::Tool { preview, .. } => preview.access == FileAccess::Writes,
            // Only approved bytes are written.
            Subject::Files => false,
        };
        let Ok(changes) = self.permitted_changes() else { return true };
        changes.iter().any(|change| self.history().change(*change).map_or(true, |record| may_write(&record.subject)))
    }

    /// Deletes contents that only old events need, and compresses the rest.
    pub fn collect(
        &mut self,
        before: Option<i64>,
        max_bytes: Option<u64>,
    ) -> Result<(CollectReport, CompactReport), GateError> {
        let collected = self.collect_contents(before, max_bytes)?;
        let compacted = self.journal.compact(u64::MAX)?;
        Ok((collected, compacted))
    }
}
