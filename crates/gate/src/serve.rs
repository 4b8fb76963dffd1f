//! What a server needs besides commands: plans before they are carried out, rules that change, upkeep.

use std::collections::BTreeSet;

use sayso_journal::{Collected, Compacted};
use sayso_review::{
    Act, ChangeId, ChangeStatus, ContentHash, IfChanged, Origin, Policy, Ruled, SnapshotId, Target, VerdictError, Who,
};

use crate::action::{Finished, Report};
use crate::engine::Engine;
use crate::error::GateError;
use crate::live::{Gate, State};
use crate::observe::SnapshotLimits;
use crate::proposed::{Decided, Proposed};
use crate::rules::Rules;
use crate::submit::{Judged, Submission, syntax_of};
use crate::undo::UndoPlan;

/// What takes changes back, makes them again, or puts a file back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reversal {
    /// Takes changes back.
    Undo {
        /// Which.
        target: Target,
        /// What to do with files that changed since.
        if_changed: IfChanged,
    },
    /// Makes changes again.
    Redo {
        /// Which.
        target: Target,
        /// What to do with files that changed since.
        if_changed: IfChanged,
    },
    /// Puts a file back to what a snapshot kept.
    Restore {
        /// Which.
        snapshot: SnapshotId,
    },
}

/// What a collection did.
#[derive(Clone, Debug)]
pub struct Upkeep {
    /// Changes that waited, and that nobody was left to decide.
    pub cancelled: Vec<ChangeId>,
    /// What was dropped.
    pub collected: Collected,
    /// What was made smaller.
    pub compacted: Compacted,
}

impl Gate {
    /// Judges by other rules from now on.
    pub fn use_rules(&self, rules: Rules, limits: SnapshotLimits) {
        let mut state = self.state();
        state.rules = rules;
        state.engine.limits = limits;
    }

    /// What policy says to an intent, and what it would do. Nothing is recorded.
    pub fn judge(&self, submission: Submission) -> Result<Judged, GateError> {
        let syntax = submission.syntax.clone().or_else(|| syntax_of(&submission.intent));
        let mut state = self.state();
        let State { engine, rules, .. } = &mut *state;
        engine.judge(&Submission { syntax, ..submission }, rules)
    }

    /// What policy says to a request to a model; nothing, if it says nothing about any.
    pub fn judge_request(
        &self,
        upstream: &str,
        agent: Option<&str>,
        session: &str,
    ) -> Result<Option<Ruled>, GateError> {
        self.policy(Some(session), |policy| {
            let who = Who { agent, session: Some(session) };
            policy.judges_requests().then(|| policy.judge(&Act::Send { upstream }, &who))
        })
    }

    /// Looks at the policy as it is for a session.
    pub fn policy<T>(&self, session: Option<&str>, look: impl FnOnce(&Policy) -> T) -> Result<T, GateError> {
        let mut state = self.state();
        let State { engine, rules, .. } = &mut *state;
        let added = engine.history().rules_of(session)?;
        Ok(look(rules.with(session, &added)?))
    }

    /// What it would do. Nothing happens.
    pub fn plan(&self, reversal: &Reversal) -> Result<UndoPlan, GateError> {
        plan(&self.state().engine, reversal)
    }

    /// Carries it out; where somebody saw a plan, only if that is still what would happen.
    pub fn reverse(
        &self,
        reversal: &Reversal,
        shown: Option<ContentHash>,
        now: i64,
    ) -> Result<(ChangeId, Decided), GateError> {
        let mut state = self.state();
        let plan = plan(&state.engine, reversal)?;
        if shown.is_some_and(|shown| shown != plan.preview.hash()) {
            return Err(VerdictError::OtherPreview.into());
        }
        state.engine.perform_as_change(plan, Origin::default(), now)
    }

    /// Puts up for review what happened at once in a turn.
    pub fn review_turn(&self, session: &str, turn: &str, now: i64) -> Result<Option<Proposed>, GateError> {
        self.state().engine.review_turn(session, turn, now)
    }

    /// Ends what waits for nobody, drops contents that only old changes need, and makes what is kept smaller.
    pub fn collect(
        &self,
        alive: &BTreeSet<ChangeId>,
        before: i64,
        most_bytes: Option<u64>,
        now: i64,
    ) -> Result<Upkeep, GateError> {
        let mut state = self.state();
        let cancelled = state.engine.cancel_waiting(alive, now)?;
        state.engine.end_empty_reviews(now)?;
        state.engine.free_all_orphans(now)?;
        let (collected, compacted) = state.engine.collect(Some(before), most_bytes)?;
        Ok(Upkeep { cancelled, collected, compacted })
    }

    /// Ends what was permitted in a tool call, or in all of a session, as the agent reports.
    pub fn finish_all(
        &self,
        session: Option<&str>,
        call: Option<&str>,
        report: Report<'_>,
        now: i64,
    ) -> Result<Vec<Finished>, GateError> {
        let mut state = self.state();
        let mut finished = Vec::new();
        for change in state.engine.permitted()? {
            let origin = state.engine.history().change(change)?.origin;
            let is = |asked: Option<&str>, there: &Option<String>| asked.is_none() || asked == there.as_deref();
            if is(session, &origin.session) && is(call, &origin.call) {
                finished.push(state.engine.finish_reported(change, report, now)?);
            }
        }
        Ok(finished)
    }

    /// Says that what was permitted could not be started.
    pub fn not_started(&self, change: ChangeId, reason: &str, now: i64) -> Result<Finished, GateError> {
        self.state().engine.not_started(change, reason, now)
    }

    /// Ends a change whose agent is gone: one that waits is withdrawn, and of one that was let go ahead it is recorded what it did, with
    /// the exit code if that is known.
    pub fn abandon(&self, change: ChangeId, code: Option<i32>, now: i64) -> Result<(), GateError> {
        let mut state = self.state();
        let status = match state.engine.history().change(change) {
            Ok(record) => record.status,
            // There never was one.
            Err(GateError::NoSuchChange(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        match status {
            ChangeStatus::Pending => state.engine.cancel(change, now)?,
            ChangeStatus::Permitted if code.is_some() => drop(state.engine.finish(change, code, now)?),
            ChangeStatus::Permitted => drop(state.engine.finish_reported(change, Report::Missing, now)?),
            // It is over.
            _ => {}
        }
        Ok(())
    }

    /// Holds everything else up while something is done to the tree that is not a change, such as switching a branch.
    pub fn holding<T>(&self, work: impl FnOnce(&sayso_workspace::Workspace) -> T) -> T {
        work(self.state().engine.workspace())
    }
}

fn plan(engine: &Engine, reversal: &Reversal) -> Result<UndoPlan, GateError> {
    match reversal {
        Reversal::Undo { target, if_changed } => engine.plan_undo(target, *if_changed),
        Reversal::Redo { target, if_changed } => engine.plan_redo(target, *if_changed),
        Reversal::Restore { snapshot } => engine.plan_restore(*snapshot),
    }
}
