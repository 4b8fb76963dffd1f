//! Commands of agents and people. Each method holds the engine's lock for its duration.

use sayso_review::{
    ChangeId, ContentHash, DryRunOutput, IfChanged, Origin, Policy, PolicyDecision, PolicyQuery, Preview, Principal,
    RememberAs, Rule, RuleScope, SeenMarks, SnapshotId, Target, Tier, Verdict, VerdictError, WsPath,
};
use serde_json::Value;

use super::{Gate, State};
use crate::action::{Completion, ToolReport};
use crate::capture::{Capture, ToolCall};
use crate::engine::Engine;
use crate::error::GateError;
use crate::pending_change::{DecisionResult, PendingChange};
use crate::session::{NewSession, SessionRecord, UnreadMessage};
use crate::submit::{Assessment, Submission, SubmitResult, syntax_of_intent};
use crate::undo::UndoPlan;

/// Result of a verdict.
#[derive(Debug)]
pub struct VerdictResult {
    pub result: DecisionResult,
    /// Rule for the user's configuration, if the verdict asked for a permanent one. The caller stores it.
    pub permanent_rule: Option<Rule>,
}

/// Request to undo or redo changes, or to restore a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reversal {
    Undo {
        target: Target,
        /// Applies to files that changed after the change.
        if_changed: IfChanged,
    },
    Redo {
        target: Target,
        /// Applies to files that changed after the undo.
        if_changed: IfChanged,
    },
    /// Writes the state that a snapshot captured back to its file.
    Restore { snapshot: SnapshotId },
}

impl Gate {
    /// Previews an intent, asks policy and records both. Carries the intent out if policy allows it, else leaves it pending.
    pub fn submit(&self, submission: Submission, now: i64) -> Result<SubmitResult, GateError> {
        let submission = with_syntax(submission);
        let mut state = self.state_with_buffers(|engine| Ok(engine.files_of_intent(&submission.intent)))?;
        let State { engine, rules } = &mut *state;
        let mut submitted = engine.submit(submission, rules, now)?;
        if let SubmitResult::Decided { proposed, decided } = &mut submitted
            && let Some(order) = engine.take_order(proposed.change)
        {
            drop(state);
            *decided = self.carry_out(order, now)?;
            return Ok(submitted);
        }
        let pending = match &submitted {
            SubmitResult::Pending(proposed) => Some(proposed.change),
            _ => None,
        };
        self.notify_pending(state, pending)?;
        Ok(submitted)
    }

    /// Returns the preview of an intent and the decision of policy. Does not write to the journal.
    pub fn assess(&self, submission: Submission) -> Result<Assessment, GateError> {
        let submission = with_syntax(submission);
        let mut state = self.state_with_buffers(|engine| Ok(engine.files_of_intent(&submission.intent)))?;
        let State { engine, rules } = &mut *state;
        engine.assess(&submission, rules)
    }

    /// Returns the present rules for a session, compiled, to decide about many files at once.
    pub fn session_policy(&self, session: &str) -> Result<Policy, GateError> {
        let state = self.state();
        let added = state.engine.history().session_rules(Some(session))?;
        Ok(state.rules.snapshot(Some(session), &added).policy()?)
    }

    /// Returns the decision of policy on a request to a model; `None` if no rule is about requests.
    pub fn evaluate_request(
        &self,
        upstream: &str,
        agent: Option<&str>,
        session: &str,
    ) -> Result<Option<PolicyDecision>, GateError> {
        self.policy(Some(session), |policy| {
            let principal = Principal { agent, session: Some(session) };
            policy.evaluates_requests().then(|| policy.evaluate(&PolicyQuery::Send { upstream }, &principal))
        })
    }

    /// Calls `inspect` with the policy of a session.
    pub fn policy<T>(&self, session: Option<&str>, inspect: impl FnOnce(&Policy) -> T) -> Result<T, GateError> {
        let mut state = self.state();
        let State { engine, rules } = &mut *state;
        let added = engine.history().session_rules(session)?;
        Ok(inspect(rules.for_session(session, &added)?))
    }

    /// Carries out a person's verdict on a pending change. `remember` asks to make it a rule for later actions.
    pub fn decide(
        &self,
        change: ChangeId,
        verdict: &Verdict,
        remember: Option<RememberAs>,
        now: i64,
    ) -> Result<VerdictResult, GateError> {
        let mut state = self.state_with_buffers(|engine| engine.paths_of_pending(change))?;
        if !state.engine.buffers.is_empty() {
            // Text that was typed since makes another preview, which the verdict does not answer.
            state.engine.refresh_if_stale(change, now)?;
        }
        let mut decided = state.decide(change, verdict, remember, now)?;
        if let Some(order) = state.engine.take_order(change) {
            drop(state);
            decided.result = self.carry_out(order, now)?;
            return Ok(decided);
        }
        let pending = match &decided.result {
            DecisionResult::Stale { next, .. } => Some(next.change),
            _ => None,
        };
        self.notify_pending(state, pending)?;
        Ok(decided)
    }

    /// Marks hunks of a pending change as seen, and returns all marks of the change.
    pub fn mark_seen(
        &self,
        change: ChangeId,
        path: &WsPath,
        hunks: &[usize],
        now: i64,
    ) -> Result<SeenMarks, GateError> {
        self.state().engine.mark_seen(change, path, hunks, now)
    }

    /// Records that a person has read all events up to a number. Returns the number that counts.
    pub fn mark_read(&self, through: u64, now: i64) -> Result<u64, GateError> {
        self.state().engine.mark_read(through, now)
    }

    /// Cancels a pending change.
    pub fn withdraw(&self, change: ChangeId, now: i64) -> Result<(), GateError> {
        self.state().engine.cancel(change, now)
    }

    /// Records the end of a permitted change. `code` is the exit code of a command.
    pub fn finish(&self, change: ChangeId, code: Option<i32>, now: i64) -> Result<Completion, GateError> {
        self.state().engine.finish(change, code, now)
    }

    /// Records the end of the permitted changes of a tool call, or of a whole session if `call` is `None`.
    pub fn finish_matching(
        &self,
        session: Option<&str>,
        call: Option<&str>,
        report: ToolReport<'_>,
        now: i64,
    ) -> Result<Vec<Completion>, GateError> {
        let mut state = self.state();
        let mut finished = Vec::new();
        for change in state.engine.permitted_changes()? {
            let origin = state.engine.history().change(change)?.origin;
            let matches =
                |wanted: Option<&str>, actual: &Option<String>| wanted.is_none() || wanted == actual.as_deref();
            if matches(session, &origin.session) && matches(call, &origin.call) {
                finished.push(state.engine.finish_reported(change, report, now)?);
            }
        }
        Ok(finished)
    }

    /// Records that a permitted change could not be started.
    pub fn report_not_started(&self, change: ChangeId, reason: &str, now: i64) -> Result<Completion, GateError> {
        self.state().engine.finish_not_started(change, reason, now)
    }

    /// Makes the dry run that the preview of a command offers. Other commands proceed meanwhile.
    pub fn dry_run(&self, change: ChangeId) -> Result<DryRunOutput, GateError> {
        let job = self.state().engine.dry_run(change)?;
        Ok(job.run())
    }

    /// Captures the files that a tool call is about to change.
    pub fn capture(&self, tier: Tier, call: &ToolCall, arguments: &Value, now: i64) -> Result<Capture, GateError> {
        self.state().engine.capture(tier, call, arguments, now)
    }

    /// Starts a session, or resumes the one with that id.
    pub fn start_session(&self, session: NewSession, now: i64) -> Result<SessionRecord, GateError> {
        self.state().engine.start_session(session, now)
    }

    /// Ends a session.
    pub fn end_session(&self, session: &str, now: i64) -> Result<(), GateError> {
        self.state().engine.end_session(session, now)
    }

    /// Starts a turn.
    pub fn start_turn(&self, session: &str, turn: &str, now: i64) -> Result<(), GateError> {
        self.state().engine.start_turn(session, turn, now)
    }

    /// Ends a turn. Returns the review of its `later` changes, if it made any.
    pub fn end_turn(&self, session: &str, turn: &str, now: i64) -> Result<Option<PendingChange>, GateError> {
        let mut state = self.state();
        let review = state.engine.end_turn(session, turn, now)?;
        self.notify_pending(state, review.as_ref().map(|review| review.change))?;
        Ok(review)
    }

    /// Starts the review of a turn's `later` changes before the turn ends.
    pub fn review_turn(&self, session: &str, turn: &str, now: i64) -> Result<Option<PendingChange>, GateError> {
        self.state().engine.review_turn(session, turn, now)
    }

    /// Returns the net change of a turn's applied changes, reviewed or not. Records nothing.
    pub fn turn_preview(&self, session: &str, turn: &str) -> Result<Preview, GateError> {
        self.state().engine.turn_preview(session, turn)
    }

    /// Returns the queued messages for a session's agent and records their delivery.
    pub fn take_messages(&self, session: &str, now: i64) -> Result<Vec<String>, GateError> {
        self.state().engine.take_messages(session, now)
    }

    /// Queues a message for the agent of a session.
    pub fn queue_message(
        &self,
        session: &str,
        change: Option<ChangeId>,
        text: &str,
        now: i64,
    ) -> Result<(), GateError> {
        self.state().engine.queue_message(session, change, text, now)
    }

    /// Adds a rule for the rest of a session.
    pub fn add_rule(&self, session: &str, rule: Rule, now: i64) -> Result<(), GateError> {
        self.state().engine.add_rule(session, rule, now)
    }

    /// Returns the messages that a session's agent has not received.
    pub fn unread_messages(&self, session: &str) -> Result<Vec<UnreadMessage>, GateError> {
        self.state().engine.unread_messages(session)
    }

    /// Records the delivery of messages, given the numbers of their events.
    pub fn acknowledge_messages(&self, session: &str, numbers: &[u64], now: i64) -> Result<(), GateError> {
        self.state().engine.acknowledge_messages(session, numbers, now)
    }

    /// Returns the plan of a reversal. Does not change the tree.
    pub fn plan(&self, reversal: &Reversal) -> Result<UndoPlan, GateError> {
        plan(&self.state().engine, reversal)
    }

    /// Carries out a reversal. If `shown` is the hash of a plan's preview, the reversal fails when the plan is now another.
    pub fn reverse(
        &self,
        reversal: &Reversal,
        shown: Option<ContentHash>,
        now: i64,
    ) -> Result<(ChangeId, DecisionResult), GateError> {
        let mut state = self.state();
        let plan = plan(&state.engine, reversal)?;
        if shown.is_some_and(|shown| shown != plan.preview.hash()) {
            return Err(VerdictError::OtherPreview.into());
        }
        state.engine.perform_as_change(plan, Origin::default(), now)
    }
}

impl State {
    fn decide(
        &mut self,
        change: ChangeId,
        verdict: &Verdict,
        remember: Option<RememberAs>,
        now: i64,
    ) -> Result<VerdictResult, GateError> {
        // The engine alone asks policy. A client that claims to answer for a rule is rejected.
        if !verdict.by.is_person() {
            return Err(VerdictError::NotAnAnswer("anything: it claims to be a rule's").into());
        }
        let proposed = self.engine.pending_change(change)?;
        self.engine.check_rules(&proposed, &verdict.answer, &mut self.rules)?;
        // Derived before the verdict takes effect, so that an impossible rule fails the whole command.
        let rule = remember
            .map(|meant| self.engine.derive_effective_rule(&proposed, &verdict.answer, meant, &mut self.rules))
            .transpose()?;
        let result = self.engine.decide(&proposed, verdict, now)?;
        let mut permanent_rule = None;
        let took_effect = !matches!(result, DecisionResult::Stale { .. } | DecisionResult::Failed { .. });
        if let (Some(rule), Some(remember), true) = (rule, remember, took_effect) {
            match (remember.scope, &proposed.origin.session) {
                (RuleScope::Session, Some(session)) => self.engine.add_rule(session, rule, now)?,
                _ => permanent_rule = Some(rule),
            }
        }
        Ok(VerdictResult { result, permanent_rule })
    }
}

/// Checks the syntax of a command. Runs bash, so callers do it before they take the engine's lock.
fn with_syntax(submission: Submission) -> Submission {
    let syntax = submission.syntax.clone().or_else(|| syntax_of_intent(&submission.intent));
    Submission { syntax, ..submission }
}

fn plan(engine: &Engine, reversal: &Reversal) -> Result<UndoPlan, GateError> {
    match reversal {
        Reversal::Undo { target, if_changed } => engine.plan_undo(target, *if_changed),
        Reversal::Redo { target, if_changed } => engine.plan_redo(target, *if_changed),
        Reversal::Restore { snapshot } => engine.plan_restore(*snapshot),
    }
}
