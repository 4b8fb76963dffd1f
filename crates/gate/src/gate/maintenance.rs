//! Maintenance of a shared engine: rule changes, abandoned changes and the collection of old contents.

use std::collections::BTreeSet;

use sayso_journal::{CollectReport, CompactReport};
use sayso_review::{ChangeId, ChangeStatus};

use super::Gate;
use crate::action::ToolReport;
use crate::command_scan::SnapshotLimits;
use crate::error::GateError;
use crate::rules::Rules;

/// Result of [`Gate::collect`].
#[derive(Clone, Debug)]
pub struct MaintenanceReport {
    /// Pending changes that no client was waiting for any more.
    pub cancelled: Vec<ChangeId>,
    pub collected: CollectReport,
    pub compacted: CompactReport,
}

impl Gate {
    /// Replaces the rules and the limits for snapshots of commands.
    pub fn use_rules(&self, rules: Rules, limits: SnapshotLimits) {
        let mut state = self.state();
        state.rules = rules;
        state.engine.limits = limits;
    }

    /// Cancels abandoned changes, frees orphaned snapshots, deletes old contents and compacts the journal.
    ///
    /// `alive` are the changes that a client waits for. Contents go if only events before the time `before` need them, and
    /// oldest first while there are more than `max_bytes`.
    pub fn collect(
        &self,
        alive: &BTreeSet<ChangeId>,
        before: i64,
        max_bytes: Option<u64>,
        now: i64,
    ) -> Result<MaintenanceReport, GateError> {
        let mut state = self.state();
        let cancelled = state.engine.cancel_abandoned(alive, now)?;
        state.engine.end_empty_reviews(now)?;
        state.engine.free_all_orphans(now)?;
        let (collected, compacted) = state.engine.collect(Some(before), max_bytes)?;
        Ok(MaintenanceReport { cancelled, collected, compacted })
    }

    /// Ends a change whose agent is gone. A pending change is cancelled; the effects of a permitted one are recorded, with the
    /// exit code if known.
    pub fn abandon(&self, change: ChangeId, code: Option<i32>, now: i64) -> Result<(), GateError> {
        let mut state = self.state();
        let status = match state.engine.history().change(change) {
            Ok(record) => record.status,
            Err(GateError::NoSuchChange(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        match status {
            ChangeStatus::Pending => state.engine.cancel(change, now)?,
            ChangeStatus::Permitted if code.is_some() => drop(state.engine.finish(change, code, now)?),
            ChangeStatus::Permitted => drop(state.engine.finish_reported(change, ToolReport::Missing, now)?),
            // Already over.
            _ => {}
        }
        Ok(())
    }

    /// Calls `work` with the workspace while no change can be applied, for instance to switch a branch.
    pub fn with_workspace<T>(&self, work: impl FnOnce(&sayso_workspace::Workspace) -> T) -> T {
        work(self.state().engine.workspace())
    }
}
