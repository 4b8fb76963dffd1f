//! Review at the end of a turn: the net change of all changes that policy applied with the ruling `later`.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{AppliedChange, Cause, ChangeId, Event, Origin, Preview, ReviewState, Ruling, WsPath, net_change};

use crate::FILE_LIMIT;
use crate::engine::Engine;
use crate::error::GateError;
use crate::history::History;
use crate::pending_change::{NewChange, PendingChange};
use crate::record::{JournalBatch, LATER, turn_key};
use sayso_review::{ChangeRecord, ChangeStatus};

/// Message for the agent if files change during the review.
pub(crate) const REVIEW_RESTARTED: &str = "files changed during the review; their net change is reviewed again";

impl Engine {
    /// Ends a turn and starts the review of its `later` changes; `None` if there are none.
    pub fn end_turn(&mut self, session: &str, turn: &str, now: i64) -> Result<Option<PendingChange>, GateError> {
        let event = Event::TurnEnded { session: session.to_owned(), turn: turn.to_owned() };
        self.write(JournalBatch::from_events([event]), now)?;
        self.review_turn(session, turn, now)
    }

    /// Starts the review of a turn's `later` changes that were not reviewed yet, or returns the pending one. `None` if there are no such
    /// changes, or if their net change is empty.
    pub fn review_turn(&mut self, session: &str, turn: &str, now: i64) -> Result<Option<PendingChange>, GateError> {
        let records = self.history().changes_with_key(&turn_key(session, turn))?;
        let of: Vec<ChangeId> =
            records.iter().filter(|record| needs_turn_review(record)).map(|record| record.change).collect();
        if of.is_empty() {
            return Ok(None);
        }
        let agent = records.iter().find_map(|record| record.origin.agent.clone());
        let preview = self.net_preview(&of)?;
        // A pending review is returned if it is up to date, and replaced if not.
        for change in self.pending_changes()? {
            let record = self.history().change(change)?;
            if matches!(&record.cause, Cause::Review { turn: other, .. } if other == turn)
                && record.origin.session.as_deref() == Some(session)
            {
                if record.cause == (Cause::Review { changes: of.clone(), turn: turn.to_owned() })
                    && record.preview == preview.hash()
                {
                    return Ok(Some(self.pending_change(change)?));
                }
                self.cancel(change, now)?;
            }
        }
        let (session, turn) = (session.to_owned(), turn.to_owned());
        let origin = Origin { agent, session: Some(session), turn: Some(turn.clone()), call: None };
        let proposed =
            self.record_proposal(NewChange::files(preview, origin, Cause::Review { changes: of, turn }), now)?;
        if proposed.preview.files().is_empty() {
            // The changes of the turn cancel each other out. The approval of the empty review records them as reviewed.
            let approval = proposed.approval();
            self.decide(&proposed, &approval, now)?;
            return Ok(None);
        }
        Ok(Some(proposed))
    }

    /// Returns the net change of a turn's applied changes, reviewed or not. Records nothing.
    pub fn turn_preview(&self, session: &str, turn: &str) -> Result<Preview, GateError> {
        let records = self.history().changes_with_key(&turn_key(session, turn))?;
        let is_applied = |record: &&ChangeRecord| {
            record.is_original() && record.applied.is_some() && record.status == ChangeStatus::Applied
        };
        let of: Vec<ChangeId> = records.iter().filter(is_applied).map(|record| record.change).collect();
        self.net_preview(&of)
    }

    /// Cancels reviews whose changes were all reverted or reviewed otherwise.
    pub(crate) fn end_empty_reviews(&mut self, now: i64) -> Result<(), GateError> {
        for change in self.pending_changes()? {
            let record = self.history().change(change)?;
            let Cause::Review { changes: of, .. } = &record.cause else { continue };
            let mut ended = true;
            for &one in of {
                ended &= !needs_turn_review(&self.history().change(one)?);
            }
            if ended {
                self.cancel(change, now)?;
            }
        }
        Ok(())
    }

    /// Returns the turns with unreviewed changes as pairs of session and turn, oldest first.
    pub fn unreviewed(&self) -> Result<Vec<(String, String)>, GateError> {
        self.history().unreviewed()
    }

    /// Computes the net change of `of`, from before the first of them to the present files. Other changes of the same files count as
    /// approved.
    pub(crate) fn net_preview(&self, of: &[ChangeId]) -> Result<Preview, GateError> {
        let history = self.history();
        let open: BTreeSet<ChangeId> = of.iter().copied().collect();
        let (Some(&first), mut records) = (open.first(), Vec::new()) else {
            return Ok(net_change(&[], &BTreeMap::new()));
        };
        for record in history.changes(None) {
            let record = record?;
            if record.change < first {
                break;
            }
            // Failed changes left the tree as it was.
            if record.applied.is_some() && matches!(record.status, ChangeStatus::Applied | ChangeStatus::Undone { .. })
            {
                records.push(record);
            }
        }
        // In the order of application.
        records.sort_by_key(|record| record.applied_event);
        let mut happened = Vec::new();
        let paths: BTreeSet<WsPath> = records
            .iter()
            .filter(|record| open.contains(&record.change))
            .flat_map(|record| record.applied.iter().flat_map(|applied| &applied.steps))
            .map(|step| step.path.clone())
            .collect();
        for record in &records {
            let review = if open.contains(&record.change) { ReviewState::Pending } else { ReviewState::Done };
            for step in record.applied.iter().flat_map(|applied| &applied.steps) {
                if paths.contains(&step.path) {
                    let (before, after) = (history.state(&step.before)?, history.state(&step.after)?);
                    happened.push(AppliedChange { path: step.path.clone(), before, after, review });
                }
            }
        }
        Ok(net_change(&happened, &self.workspace.observe(paths, FILE_LIMIT).files))
    }
}

impl History<'_> {
    /// Returns the changes that policy applied with the ruling `later` and that were not reviewed, oldest first.
    pub fn unreviewed_changes(&self) -> Result<Vec<ChangeRecord>, GateError> {
        let mut records = self.changes_with_key(LATER)?;
        records.retain(needs_turn_review);
        Ok(records)
    }

    /// Returns the turns with unreviewed changes as pairs of session and turn, oldest first.
    pub fn unreviewed(&self) -> Result<Vec<(String, String)>, GateError> {
        let mut turns = Vec::new();
        for record in self.unreviewed_changes()?.into_iter().rev() {
            if let Some(session) = &record.origin.session {
                let turn = record.origin.turn.clone().unwrap_or_default();
                if !turns.contains(&(session.clone(), turn.clone())) {
                    turns.push((session.clone(), turn));
                }
            }
        }
        turns.reverse();
        Ok(turns)
    }
}

/// `true` if policy applied the change with the ruling `later` and it was not reviewed.
pub fn needs_turn_review(record: &ChangeRecord) -> bool {
    record.is_original()
        && record.reviewed.is_none()
        && record.applied.is_some()
        && record.status == ChangeStatus::Applied
        && record.ruling.as_ref().is_some_and(|ruled| ruled.ruling == Ruling::Later)
        // A change that became pending because of another one was decided by a person.
        && record.verdict.as_ref().is_none_or(|verdict| !verdict.by.is_person())
}
