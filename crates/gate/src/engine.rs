//! [`Engine`]: one change from its proposal to its outcome.

use std::sync::Arc;

use sayso_journal::Journal;
use sayso_review::{
    Acceptance, Answer, Cause, ChangeId, ContentHash, Decision, Event, Outcome, Performer, Plan, Preview, Proposal,
    Verdict, WsPath, failure_message,
};
use sayso_workspace::{ApplyError, Recovery, Workspace};

use crate::capture::CaptureCache;
use crate::command_scan::SnapshotLimits;
use crate::editor::{Editors, KnownBuffers, NoEditors, OpenOrder, PreviewBase};
use crate::error::GateError;
use crate::feed::{Feed, Subscription};
use crate::history::History;
use crate::pending_change::{DecisionResult, NewChange, PendingChange};
use crate::pending_index::PendingIndex;
use crate::record::{
    CHANGES, ENDED, JournalBatch, PLANS, PLANS_ENDED, WakeOnDrop, file_records, preview_contents, state_contents,
};
use crate::{FILE_LIMIT, repair_counters};
use sayso_review::{ChangeRecord, ChangeStatus};

/// Maximum number of files of a plan whose begin and end wake the subscribers only once.
const MAX_FILES_FOR_ONE_WAKE: usize = 8;

/// The engine of one workspace. Only one exists at a time.
#[derive(Debug)]
pub struct Engine {
    pub(crate) workspace: Workspace,
    pub(crate) journal: Journal,
    pub(crate) feed: Arc<Feed>,
    /// Built on first use.
    pub(crate) pending_index: Option<PendingIndex>,
    pub(crate) limits: SnapshotLimits,
    pub(crate) capture_cache: CaptureCache,
    pub(crate) editors: Arc<dyn Editors>,
    /// Unsaved texts in editors, as last known.
    pub(crate) buffers: KnownBuffers,
    /// Order of the last decision, until the gate sends it.
    pub(crate) open_order: Option<OpenOrder>,
}

/// Phase of a change before its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhaseBefore {
    Pending,
    /// A plan is being applied.
    Applying,
    /// The agent or an editor carries the change out.
    Permitted,
    /// A plan is being applied that an editor was permitted to apply.
    ApplyingPermitted,
}

/// Interrupted change that a start settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredChange {
    pub change: ChangeId,
    pub recovery: Recovery,
}

impl Engine {
    /// Opens an engine. First settles a change that a crash interrupted.
    pub fn open(
        workspace: Workspace,
        mut journal: Journal,
        now: i64,
    ) -> Result<(Self, Option<RecoveredChange>), GateError> {
        repair_counters::repair_counters(&mut journal)?;
        let reader = journal.reader();
        let folder = reader.path().parent().unwrap_or(reader.path()).to_owned();
        let feed = Arc::new(Feed::new(folder, reader.last_number()?));
        let mut engine = Self {
            workspace,
            journal,
            feed,
            pending_index: None,
            limits: SnapshotLimits::DEFAULT,
            capture_cache: CaptureCache::default(),
            editors: Arc::new(NoEditors),
            buffers: KnownBuffers::default(),
            open_order: None,
        };
        let recovered = engine.recover(now)?;
        Ok((engine, recovered))
    }

    /// Sets the limits for captures of commands.
    #[must_use]
    pub fn with_limits(self, limits: SnapshotLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the editors of the workspace.
    #[must_use]
    pub fn with_editors(self, editors: Arc<dyn Editors>) -> Self {
        Self { editors, ..self }
    }

    /// Returns read access to the journal.
    pub fn history(&self) -> History<'_> {
        History::with_cache(self.journal.reader(), &self.feed)
    }

    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Subscribes to the events after the one with number `after`.
    pub fn subscribe(&self, after: u64) -> Subscription {
        Subscription::new(Arc::clone(&self.feed), after)
    }

    /// Previews a proposal for its performer. Does not write to the journal.
    pub fn preview(&self, proposal: &Proposal, performer: Performer) -> Result<Preview, GateError> {
        let draft = proposal.draft(|text| self.workspace.locate(text))?;
        Ok(draft.preview(&self.observe(draft.paths(), PreviewBase::of(performer))))
    }

    /// Returns a pending change with its preview.
    pub fn pending_change(&self, change: ChangeId) -> Result<PendingChange, GateError> {
        let record = self.pending_record(change)?;
        let preview = self.history().preview(&record)?;
        let ChangeRecord { subject, origin, cause, performer, .. } = record;
        Ok(PendingChange { change, subject, preview, origin, cause, performer, emptied: Vec::new() })
    }

    /// Records a pending change.
    pub(crate) fn record_proposal(&mut self, proposing: NewChange, now: i64) -> Result<PendingChange, GateError> {
        self.record_together(JournalBatch::default(), proposing, now)
    }

    /// Records a pending change and `also` in one transaction.
    fn record_together(
        &mut self,
        also: JournalBatch<'static>,
        proposing: NewChange,
        now: i64,
    ) -> Result<PendingChange, GateError> {
        let change = self.journal.reader().counter(CHANGES)? + 1;
        let NewChange { subject, preview, origin, cause, performer, emptied, ruled, intent, deadline } = proposing;
        let after = if intent.is_some() { self.pending_with_same_files(&preview)? } else { Vec::new() };
        let intent = intent.map(|bytes| (ContentHash::of(&bytes), bytes));
        let event = Event::Proposed {
            change,
            origin: origin.clone(),
            cause: cause.clone(),
            files: file_records(&preview),
            preview: subject.bind(preview.hash()),
            subject: subject.clone(),
            ruling: ruled,
            performer,
            intent: intent.as_ref().map(|(hash, _)| *hash),
            deadline,
            predecessors: after,
        };
        let mut entry: JournalBatch<'_> = also;
        entry.push_event(event, &preview_contents(&preview));
        // The intent is only needed while the change is pending.
        entry.add_unreferenced_blob(intent.as_ref().map(|(hash, bytes)| (*hash, &bytes[..])));
        entry.set_counter(CHANGES, change);
        self.write(entry, now)?;
        self.index_pending(change, &preview, deadline);
        Ok(PendingChange { change, subject, preview, origin, cause, performer, emptied })
    }

    /// Carries out a verdict: writes either exactly the approved content or no file at all.
    pub fn decide(
        &mut self,
        proposed: &PendingChange,
        verdict: &Verdict,
        now: i64,
    ) -> Result<DecisionResult, GateError> {
        let change = proposed.change;
        // Settles an interrupted plan first; otherwise the end of this one would count as its end.
        self.recover(now)?;
        // Built while the change is pending, so that its dependents learn of its end.
        self.pending_index()?;
        // Only the first verdict counts. A later verdict gets the status of the change.
        let record = self.pending_record(change)?;
        // The deadline counts even if no tick has expired the change yet.
        if verdict.by.is_person() && record.deadline.is_some_and(|deadline| deadline <= now) {
            self.expire(change, now)?;
            let status = ChangeStatus::Denied.to_string();
            return Err(GateError::WrongStatus { change, verb: "decided", status });
        }
        if record.preview != proposed.hash() || verdict.preview != record.preview {
            return Err(sayso_review::VerdictError::OtherPreview.into());
        }
        if !proposed.subject.is_files() {
            return self.decide_action(proposed, verdict, now);
        }
        let decision = proposed.preview.decide(verdict)?;
        let decided =
            Event::Decided { change, verdict: verdict.clone(), agent_message: decision.agent_message.clone() };
        if decision.plan.is_empty() {
            return self.record_empty_decision(proposed, verdict, decision, decided, now);
        }
        if proposed.performer == Performer::Agent {
            return self.permit_change(proposed, verdict, decision, decided, now);
        }
        if let Some(order) = self.editor_order(proposed, &decision.plan) {
            return self.order_editor(proposed, decision, decided, order, now);
        }
        self.apply_plan(proposed, decision, vec![decided], None, PhaseBefore::Pending, now)
    }

    /// Writes an approved plan to the tree. `events` are recorded with its begin. `was` is the phase before it.
    pub(crate) fn apply_plan(
        &mut self,
        proposed: &PendingChange,
        decision: Decision,
        events: Vec<Event>,
        note: Option<String>,
        was: PhaseBefore,
        now: i64,
    ) -> Result<DecisionResult, GateError> {
        let change = proposed.change;
        let prepared = match self.workspace.prepare(decision.plan.clone(), proposed.emptied.clone()) {
            Ok(prepared) => prepared,
            Err(error) => return self.record_failed_apply(proposed, events, &decision.plan, error, was, now),
        };
        let mut entry = JournalBatch::from_events(events);
        let steps = decision.plan.steps();
        let kept = state_contents(steps.iter().map(|step| [&step.before, &step.after]));
        entry.push_event(Event::Applying { change, record: prepared.record(), note }, &kept);
        entry.set_counter(PLANS, self.journal.reader().counter(PLANS)? + 1);
        // Read before the tree changes, so that a read error cannot leave it unrecorded.
        let ending = self.outcome_events(proposed, &decision)?;
        let (_, telling) = entry.append_to(&mut self.journal, &self.feed, now)?;
        // For small plans the subscribers wake once, at the end.
        let telling = (steps.len() <= MAX_FILES_FOR_ONE_WAKE).then_some(telling);
        let applying =
            if was == PhaseBefore::Permitted { PhaseBefore::ApplyingPermitted } else { PhaseBefore::Applying };
        match prepared.apply() {
            Ok(applied) => {
                self.finish_change(ending, applying, now)
                    .map_err(|error| GateError::NotRecorded { change, error: Box::new(error) })?;
                telling.into_iter().for_each(WakeOnDrop::disarm);
                Ok(DecisionResult::Applied {
                    agent_message: decision.agent_message.clone(),
                    decision,
                    lost: applied.lost,
                })
            }
            // A torn change stays open, and the next start settles it.
            Err(error @ ApplyError::Torn { .. }) => {
                Ok(DecisionResult::Failed { agent_message: failure_message(&error), error })
            }
            Err(error) => self.record_failed_apply(proposed, Vec::new(), &decision.plan, error, applying, now),
        }
    }

    fn record_empty_decision(
        &mut self,
        proposed: &PendingChange,
        verdict: &Verdict,
        decision: Decision,
        decided: Event,
        now: i64,
    ) -> Result<DecisionResult, GateError> {
        // Undoing changes that cancel each other out changes no file, and still counts as applied.
        let approved = decision.files.iter().any(|file| !matches!(file.acceptance, Acceptance::Denied { .. }))
            || (decision.files.is_empty() && !matches!(verdict.answer, Answer::Deny { .. }));
        let mut events = vec![decided];
        if approved {
            events.extend(self.outcome_events(proposed, &decision)?);
        } else {
            events.push(Event::Ended { change: proposed.change, outcome: Outcome::Denied, agent_message: None });
        }
        if !approved || decision.says_more(&proposed.preview, verdict) {
            events.extend(self.queued_message(
                &proposed.origin,
                proposed.performer,
                proposed.change,
                &decision.agent_message,
            )?);
        }
        self.finish_change(events, PhaseBefore::Pending, now)?;
        let agent_message = decision.agent_message.clone();
        Ok(if approved {
            DecisionResult::Applied { agent_message, decision, lost: Vec::new() }
        } else {
            DecisionResult::Denied { agent_message }
        })
    }

    /// Records a failed application. If files changed, records a merged change that can be decided instead.
    pub(crate) fn record_failed_apply(
        &mut self,
        proposed: &PendingChange,
        mut events: Vec<Event>,
        plan: &Plan,
        error: ApplyError,
        was: PhaseBefore,
        now: i64,
    ) -> Result<DecisionResult, GateError> {
        let change = proposed.change;
        if !matches!(error, ApplyError::Stale { .. }) || !proposed.cause.can_rebase() {
            let (reason, agent_message) = (error.to_string(), failure_message(&error));
            events.push(Event::Ended {
                change,
                outcome: Outcome::Failed { reason },
                agent_message: Some(agent_message.clone()),
            });
            events.extend(self.queued_message(&proposed.origin, proposed.performer, change, &agent_message)?);
            self.finish_change(events, was, now)?;
            return Ok(DecisionResult::Failed { agent_message, error });
        }
        let (preview, agent_message, cause) = self.replacement(proposed, plan)?;
        let files: Vec<WsPath> = preview.asked().map(|file| file.path.clone()).collect();
        let outcome = Outcome::Stale { files: files.clone() };
        events.push(Event::Ended { change, outcome, agent_message: Some(agent_message.clone()) });
        let earlier = self.history().change(change)?;
        let proposing = NewChange {
            performer: proposed.performer,
            ruled: earlier.ruling,
            deadline: earlier.deadline,
            ..NewChange::files(preview, proposed.origin.clone(), cause)
        };
        // One transaction, so that no subscriber sees the end without the replacement.
        self.pending_index()?;
        let ended = self.end_entry(events, was)?;
        let next = self.record_together(ended, proposing, now)?;
        self.on_change_ended(change, now)?;
        Ok(DecisionResult::Stale { agent_message, files, next: Box::new(next) })
    }

    /// Returns the preview that replaces a plan whose files changed, the message for the agent, and the cause.
    fn replacement(&self, proposed: &PendingChange, plan: &Plan) -> Result<(Preview, String, Cause), GateError> {
        if let Cause::Review { changes: of, .. } = &proposed.cause {
            // The changes are in the tree already; the review only starts again.
            let preview = self.net_preview(of)?;
            return Ok((preview, crate::turn_review::REVIEW_RESTARTED.to_owned(), proposed.cause.clone()));
        }
        let applies = self.can_apply_over_buffers(&proposed.cause, plan);
        let base = if applies { PreviewBase::of(proposed.performer) } else { PreviewBase::SavedFiles };
        let sight = self.observe(plan.steps().iter().map(|step| step.path.clone()), base);
        let rebased = plan.rebase(&sight.files);
        let agent_message = rebased.agent_message();
        Ok((rebased.preview, agent_message, Cause::Rebase { original: proposed.change }))
    }

    /// Cancels a pending change.
    pub fn cancel(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        self.pending_record(change)?;
        self.finish_change(
            vec![Event::Ended { change, outcome: Outcome::Cancelled, agent_message: None }],
            PhaseBefore::Pending,
            now,
        )
    }

    /// Returns the record of a pending change.
    pub(crate) fn pending_record(&self, change: ChangeId) -> Result<ChangeRecord, GateError> {
        let record = self.history().change(change)?;
        if History::is_pending(&record) {
            return Ok(record);
        }
        Err(GateError::WrongStatus { change, verb: "decided", status: record.status.to_string() })
    }

    /// Records the events of a change's end, and updates the counters and the index.
    pub(crate) fn finish_change(&mut self, events: Vec<Event>, was: PhaseBefore, now: i64) -> Result<(), GateError> {
        let change = events.iter().find_map(Event::change);
        // Built while the change is pending, so that its dependents are known.
        self.pending_index()?;
        let entry = self.end_entry(events, was)?;
        self.write(entry, now)?;
        match change {
            Some(change) => self.on_change_ended(change, now),
            None => Ok(()),
        }
    }

    /// Creates the batch of a change's end, with its counters.
    fn end_entry(&self, events: Vec<Event>, was: PhaseBefore) -> Result<JournalBatch<'static>, GateError> {
        let mut entry = JournalBatch::from_events(events);
        let reader = self.journal.reader();
        // A permitted change was counted when it was permitted.
        if !matches!(was, PhaseBefore::Permitted | PhaseBefore::ApplyingPermitted) {
            entry.set_counter(ENDED, reader.counter(ENDED)? + 1);
        }
        if matches!(was, PhaseBefore::Applying | PhaseBefore::ApplyingPermitted) {
            entry.set_counter(PLANS_ENDED, reader.counter(PLANS)?);
        }
        Ok(entry)
    }

    /// Returns the events that end an applied change, with their effects on other changes.
    fn outcome_events(&self, proposed: &PendingChange, decision: &Decision) -> Result<Vec<Event>, GateError> {
        let change = proposed.change;
        let mut events = vec![Event::Ended { change, outcome: Outcome::Applied, agent_message: None }];
        events.extend(follow_up_events(change, &proposed.cause));
        if let (Cause::Review { .. }, Some(session)) = (&proposed.cause, &proposed.origin.session)
            && !decision.plan.is_empty()
        {
            // The agent has continued, and gets the message at its next hook.
            let (session, text) = (self.history().listening_session(session)?, decision.agent_message.clone());
            events.push(Event::MessageQueued { session, change: Some(change), call: None, text });
        }
        Ok(events)
    }

    /// Updates the tool call and the dependents of a change that ended.
    fn on_change_ended(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        self.finish_call_of_change(change, now)?;
        self.unindex_pending(change, now)
    }
}

/// Previews a proposal in a workspace, without a journal.
pub fn preview(workspace: &Workspace, proposal: &Proposal) -> Result<Preview, GateError> {
    let draft = proposal.draft(|text| workspace.locate(text))?;
    Ok(draft.preview(&workspace.observe(draft.paths(), FILE_LIMIT)))
}

pub(crate) fn follow_up_events(by: ChangeId, cause: &Cause) -> Vec<Event> {
    match cause {
        Cause::Undo { changes: of, paths } => {
            of.iter().map(|&change| Event::Undone { change, by, paths: paths.clone() }).collect()
        }
        Cause::Redo { changes: of, paths } => {
            of.iter().map(|&change| Event::Redone { change, by, paths: paths.clone() }).collect()
        }
        Cause::Review { changes: of, .. } => of.iter().map(|&change| Event::Reviewed { change, by }).collect(),
        Cause::Proposal | Cause::Rebase { .. } | Cause::Restore { .. } => Vec::new(),
    }
}
