//! Review at the end of the turn: changes that policy let happen at once, folded into what the turn changed in all.

use std::collections::{BTreeMap, BTreeSet};

use sayso_review::{Cause, ChangeId, Decider, Event, Happened, Origin, Preview, Review, Ruling, WsPath, net};

use crate::FILE_LIMIT;
use crate::engine::Engine;
use crate::error::GateError;
use crate::history::History;
use crate::proposed::{Proposed, Proposing};
use crate::record::{Entry, LATER, turn_key};
use sayso_review::{ChangeRecord, ChangeStatus};

/// What the agent is told if files change while a review of them is answered.
pub(crate) const TOLD_AGAIN: &str = "files changed while they were reviewed; what changed in all is reviewed again";

impl Engine {
    /// Ends a turn, and puts up for review what happened in it at once. `None` if there is nothing to review.
    pub fn end_turn(&mut self, session: &str, turn: &str, now: i64) -> Result<Option<Proposed>, GateError> {
        let event = Event::TurnEnded { session: session.to_owned(), turn: turn.to_owned() };
        self.write(Entry::of([event]), now)?;
        self.review_turn(session, turn, now)
    }

    /// Puts up for review what happened at once in a turn and was not reviewed yet.
    pub fn review_turn(&mut self, session: &str, turn: &str, now: i64) -> Result<Option<Proposed>, GateError> {
        let records = self.history().with_key(&turn_key(session, turn))?;
        let of: Vec<ChangeId> = records.iter().filter(|record| is_open(record)).map(|record| record.change).collect();
        if of.is_empty() {
            return Ok(None);
        }
        let agent = records.iter().find_map(|record| record.origin.agent.clone());
        let preview = self.net(&of)?;
        // Put up once: the review that waits is the same, or no longer about what there is to review.
        for change in self.waiting()? {
            let record = self.history().change(change)?;
            if matches!(&record.cause, Cause::Review { turn: other, .. } if other == turn)
                && record.origin.session.as_deref() == Some(session)
            {
                if record.cause == (Cause::Review { of: of.clone(), turn: turn.to_owned() })
                    && record.preview == preview.hash()
                {
                    return Ok(Some(self.proposed(change)?));
                }
                self.cancel(change, now)?;
            }
        }
        let (session, turn) = (session.to_owned(), turn.to_owned());
        let origin = Origin { agent, session: Some(session), turn: Some(turn.clone()), call: None };
        let proposed = self.record_proposal(Proposing::files(preview, origin, Cause::Review { of, turn }), now)?;
        if proposed.preview.files().is_empty() {
            // What came went again within the turn: there is nothing to say.
            let approval = proposed.approval();
            self.decide(&proposed, &approval, now)?;
            return Ok(None);
        }
        Ok(Some(proposed))
    }

    /// Ends reviews that have nothing left to show, since what happened at once was taken back otherwise.
    pub(crate) fn end_empty_reviews(&mut self, now: i64) -> Result<(), GateError> {
        for change in self.waiting()? {
            let record = self.history().change(change)?;
            let Cause::Review { of, .. } = &record.cause else { continue };
            let mut ended = true;
            for &one in of {
                ended &= !is_open(&self.history().change(one)?);
            }
            if ended {
                self.cancel(change, now)?;
            }
        }
        Ok(())
    }

    /// The turns of which something is still to be reviewed, oldest first: session and turn.
    pub fn unreviewed(&self) -> Result<Vec<(String, String)>, GateError> {
        self.history().unreviewed()
    }

    /// What some changes, and those between them, did in all, with what was decided at once taken as approved.
    pub(crate) fn net(&self, of: &[ChangeId]) -> Result<Preview, GateError> {
        let history = self.history();
        let open: BTreeSet<ChangeId> = of.iter().copied().collect();
        let (Some(&first), mut records) = (open.first(), Vec::new()) else { return Ok(net(&[], &BTreeMap::new())) };
        for record in history.changes(None) {
            let record = record?;
            if record.change < first {
                break;
            }
            // What was planned and failed was never there.
            if record.applied.is_some() && matches!(record.status, ChangeStatus::Applied | ChangeStatus::Undone { .. })
            {
                records.push(record);
            }
        }
        // In the order in which they reached the tree.
        records.sort_by_key(|record| record.happened);
        let mut happened = Vec::new();
        let paths: BTreeSet<WsPath> = records
            .iter()
            .filter(|record| open.contains(&record.change))
            .flat_map(|record| record.applied.iter().flat_map(|applied| &applied.steps))
            .map(|step| step.path.clone())
            .collect();
        for record in &records {
            let review = if open.contains(&record.change) { Review::Open } else { Review::Done };
            for step in record.applied.iter().flat_map(|applied| &applied.steps) {
                if paths.contains(&step.path) {
                    let (before, after) = (history.state(&step.before)?, history.state(&step.after)?);
                    happened.push(Happened { path: step.path.clone(), before, after, review });
                }
            }
        }
        Ok(net(&happened, &self.workspace.look(paths, FILE_LIMIT).files))
    }
}

impl History<'_> {
    /// The turns of which something is still to be reviewed, oldest first: session and turn.
    pub fn unreviewed(&self) -> Result<Vec<(String, String)>, GateError> {
        let mut turns = Vec::new();
        for record in self.with_key(LATER)?.into_iter().rev() {
            if let (true, Some(session)) = (is_open(&record), &record.origin.session) {
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

/// Whether it happened at once and has not been reviewed.
fn is_open(record: &ChangeRecord) -> bool {
    record.is_original()
        && record.reviewed.is_none()
        && record.applied.is_some()
        && record.status == ChangeStatus::Applied
        && record.ruled.as_ref().is_some_and(|ruled| ruled.ruling == Ruling::Later)
        // What had to wait for another change after all, a person has looked at.
        && record.verdict.as_ref().is_none_or(|verdict| verdict.by != Decider::Person)
}
