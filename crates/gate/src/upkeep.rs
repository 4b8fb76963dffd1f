//! What keeps a workspace's records in order: settling what was interrupted, ending what nobody waits for, dropping what is old.

use std::collections::BTreeSet;

use sayso_journal::{Batch, Collected, Compacted, Retention};
use sayso_review::{ChangeId, ContentHash, Event, EventBody, Subject, Touch};

use crate::engine::{Engine, RecoveredChange, Was, effects};
use crate::error::GateError;
use crate::history::{History, recorded};
use crate::observe::COLLECTIONS;
use crate::record::PERMITTED;
use sayso_review::ChangeStatus;

/// What was let go ahead before so many others is over.
const MOST_PERMITTED: usize = 10_000;

impl Engine {
    /// Settles what was interrupted.
    pub(crate) fn recover(&mut self, now: i64) -> Result<Option<RecoveredChange>, GateError> {
        let Some(change) = self.history().status()?.interrupted else { return Ok(None) };
        let record = match self.history().change(change) {
            // Its beginning was lost with a damaged journal, and with it what was to happen.
            Err(GateError::NoSuchChange(_)) => None,
            record => Some(record?),
        };
        let Some((record, applied)) = record.as_ref().and_then(|record| Some((record, record.applied.as_ref()?)))
        else {
            self.end(Vec::new(), Was::Applying, now)?;
            return Ok(None);
        };
        if record.status != ChangeStatus::Interrupted {
            self.end(Vec::new(), Was::Applying, now)?;
            return Ok(None);
        }
        let history = self.history();
        // A content that cannot be read is as good as missing, and said to be.
        let recovery = self
            .workspace
            .recover(applied, |hash| history.content(*hash).ok().flatten())
            .map_err(|error| GateError::Recover { change, error })?;
        let mut events = vec![Event::Recovered {
            change,
            finished: recovery.finished,
            left_alone: recovery.left_alone.clone(),
            saved: recovery.saved.clone(),
        }];
        if recovery.finished {
            events.extend(effects(change, &record.cause));
        }
        self.end(events, Was::Applying, now)?;
        Ok(Some(RecoveredChange { change, recovery }))
    }

    /// Ends the changes that wait for a verdict which nobody is left to give: whoever proposed them went away. Those whose proposer is
    /// known to wait, and reviews, which are nobody's but the person's, stay.
    pub fn cancel_waiting(&mut self, alive: &BTreeSet<ChangeId>, now: i64) -> Result<Vec<ChangeId>, GateError> {
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
            // One that counted on another may have ended with it.
            if self.pending(change).is_ok() {
                self.cancel(change, now)?;
            }
        }
        Ok(waiting)
    }

    /// Releases the oldest contents until no more than a number of bytes is kept.
    pub(crate) fn release(&mut self, most_bytes: u64) -> Result<Collected, GateError> {
        self.collect_contents(None, Some(most_bytes))
    }

    fn collect_contents(&mut self, before: Option<i64>, most_bytes: Option<u64>) -> Result<Collected, GateError> {
        // Said first: should it be interrupted, nobody takes for granted what is gone.
        let collections = self.journal.reader().counter(COLLECTIONS)? + 1;
        let counters = vec![(COLLECTIONS, collections)];
        self.journal.append(&Batch { blobs: Vec::new(), events: Vec::new(), counters })?;
        self.forget_old_scans();
        let mut keep_blobs: BTreeSet<ContentHash> = self.scanned().into_iter().collect();
        let (release, mut keep) = self.freed_and_pending()?;
        // What waits for a verdict has to be shown, however long ago it came, and what others are at has to be undone afterwards.
        let mut open: BTreeSet<ChangeId> = self.waiting()?.into_iter().collect();
        open.extend(self.permitted()?);
        for change in open {
            keep_blobs.extend(self.history().change(change)?.intent);
            keep.extend(self.history().events(Some(change), 0, usize::MAX)?.iter().map(|event| event.number));
        }
        let retention = Retention { before, most_bytes, keep: &keep, release: &release, keep_blobs: &keep_blobs };
        let collected = self.journal.collect(retention);
        self.feed.lately().drop_contents();
        Ok(collected?)
    }

    /// The changes that others were let go ahead with and that are not over.
    pub fn permitted(&self) -> Result<Vec<ChangeId>, GateError> {
        let mut changes = Vec::new();
        for event in self.journal.reader().latest_with(PERMITTED, None, MOST_PERMITTED)? {
            if let EventBody::Known(Event::Permitted { change, .. }) = recorded(&event).body
                && self.history().change(change)?.status == ChangeStatus::Permitted
            {
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// `true` while a command or a tool that may write was let go ahead and is not over, or if that cannot be read.
    pub fn has_writer_under_way(&self) -> bool {
        let may_write = |subject: &Subject| match subject {
            Subject::Command { .. } => true,
            Subject::Tool { preview, .. } => preview.touch == Touch::Writes,
            // The bytes were approved.
            Subject::Files => false,
        };
        let Ok(changes) = self.permitted() else { return true };
        changes.iter().any(|change| self.history().change(*change).map_or(true, |record| may_write(&record.subject)))
    }

    /// Drops contents that only old changes need, and makes what is kept smaller.
    pub fn collect(
        &mut self,
        before: Option<i64>,
        most_bytes: Option<u64>,
    ) -> Result<(Collected, Compacted), GateError> {
        let collected = self.collect_contents(before, most_bytes)?;
        let compacted = self.journal.compact(u64::MAX)?;
        Ok((collected, compacted))
    }
}
