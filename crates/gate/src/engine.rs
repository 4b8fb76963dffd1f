//! One change from proposal to outcome.

use std::sync::Arc;

use sayso_journal::Journal;
use sayso_review::{
    Answer, Cause, ChangeId, ContentHash, Decider, Decision, Event, Origin, Outcome, Performer, Plan, Preview,
    Proposal, Taken, Verdict, WsPath, told_failure,
};
use sayso_workspace::{ApplyError, Recovery, Workspace};

use crate::capture::Captures;
use crate::error::GateError;
use crate::feed::{Feed, Subscription};
use crate::history::History;
use crate::observe::SnapshotLimits;
use crate::proposed::{Decided, Proposed, Proposing};
use crate::record::{CHANGES, ENDED, Entry, PLANS, PLANS_ENDED, Telling, contents, file_records, shown};
use crate::waiting::Waiting;
use crate::{FILE_LIMIT, mend};
use sayso_review::{ChangeRecord, ChangeStatus};

/// The most files of a plan that is over before anybody has looked.
const QUICK: usize = 8;

/// The engine of one workspace. There is one at a time.
#[derive(Debug)]
pub struct Engine {
    pub(crate) workspace: Workspace,
    pub(crate) journal: Journal,
    pub(crate) feed: Arc<Feed>,
    /// What waits for a verdict, once somebody wanted to know.
    pub(crate) waiting: Option<Waiting>,
    pub(crate) limits: SnapshotLimits,
    pub(crate) captures: Captures,
}

/// What a change was until it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Was {
    /// Waiting for a verdict.
    Pending,
    /// On its way to the tree.
    Applying,
    /// With somebody else, who carries it out.
    Permitted,
}

/// What a start settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredChange {
    /// The change that was interrupted.
    pub change: ChangeId,
    /// What was done about it.
    pub recovery: Recovery,
}

impl Engine {
    /// Starts an engine, and first settles what an earlier one was interrupted in.
    pub fn open(
        workspace: Workspace,
        mut journal: Journal,
        now: i64,
    ) -> Result<(Self, Option<RecoveredChange>), GateError> {
        mend::mend(&mut journal)?;
        let reader = journal.reader();
        let folder = reader.path().parent().unwrap_or(reader.path()).to_owned();
        let feed = Arc::new(Feed::new(folder, reader.last_number()?));
        let mut engine = Self {
            workspace,
            journal,
            feed,
            waiting: None,
            limits: SnapshotLimits::USUAL,
            captures: Captures::default(),
        };
        let recovered = engine.recover(now)?;
        Ok((engine, recovered))
    }

    /// The same engine, which keeps more or less for the sake of undoing what commands do.
    #[must_use]
    pub fn keeping(self, limits: SnapshotLimits) -> Self {
        Self { limits, ..self }
    }

    /// What happened so far.
    pub fn history(&self) -> History<'_> {
        History::of_engine(self.journal.reader(), &self.feed)
    }

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Follows the stream, from after the event with this number on.
    pub fn subscribe(&self, after: u64) -> Subscription {
        Subscription::new(Arc::clone(&self.feed), after)
    }

    /// What a proposal would do. Nothing is recorded.
    pub fn preview(&self, proposal: &Proposal) -> Result<Preview, GateError> {
        preview(&self.workspace, proposal)
    }

    /// Previews a proposal and records it, so that it can be decided.
    pub fn propose(&mut self, proposal: &Proposal, origin: Origin, now: i64) -> Result<Proposed, GateError> {
        let preview = self.preview(proposal)?;
        self.record(preview, origin, now)
    }

    /// Records a proposal that was previewed before, so that it can be decided: for a surface that has asked already. The verdict
    /// covers what that preview showed, whatever became of the files since.
    pub fn record(&mut self, preview: Preview, origin: Origin, now: i64) -> Result<Proposed, GateError> {
        self.record_proposal(Proposing::files(preview, origin, Cause::Proposal), now)
    }

    /// A change that was proposed earlier and still waits.
    pub fn proposed(&self, change: ChangeId) -> Result<Proposed, GateError> {
        let record = self.pending(change)?;
        let preview = self.history().preview(&record)?;
        let ChangeRecord { subject, origin, cause, performer, .. } = record;
        Ok(Proposed { change, subject, preview, origin, cause, performer, emptied: Vec::new() })
    }

    /// Records a preview as a change that waits for a verdict.
    pub(crate) fn record_proposal(&mut self, proposing: Proposing, now: i64) -> Result<Proposed, GateError> {
        self.record_with(Entry::default(), proposing, now)
    }

    /// Records a preview as a change that waits for a verdict, together with what else happened: both or neither.
    fn record_with(&mut self, also: Entry<'static>, proposing: Proposing, now: i64) -> Result<Proposed, GateError> {
        let change = self.journal.reader().counter(CHANGES)? + 1;
        let Proposing { subject, preview, origin, cause, performer, emptied, ruled, intent, deadline } = proposing;
        let after = if intent.is_some() { self.waiting_for(&preview)? } else { Vec::new() };
        let intent = intent.map(|bytes| (ContentHash::of(&bytes), bytes));
        let event = Event::Proposed {
            change,
            origin: origin.clone(),
            cause: cause.clone(),
            files: file_records(&preview),
            preview: subject.bind(preview.hash()),
            subject: subject.clone(),
            ruled,
            performer,
            intent: intent.as_ref().map(|(hash, _)| *hash),
            deadline,
            after,
        };
        let mut entry: Entry<'_> = also;
        entry.push(event, &shown(&preview));
        // Of use while it waits, and no longer.
        entry.keep_loosely(intent.as_ref().map(|(hash, bytes)| (*hash, &bytes[..])));
        entry.count(CHANGES, change);
        self.write(entry, now)?;
        self.now_waits(change, &preview, deadline);
        Ok(Proposed { change, subject, preview, origin, cause, performer, emptied })
    }

    /// Carries a verdict out: what was approved is exactly what happens, or nothing does.
    pub fn decide(&mut self, proposed: &Proposed, verdict: &Verdict, now: i64) -> Result<Decided, GateError> {
        let change = proposed.change;
        // A plan that could not be taken back comes first, or the end of this one would pass for its end.
        self.recover(now)?;
        // While it still waits: who waits for it has to hear of its end.
        self.held()?;
        // The first verdict counts; whoever comes later learns what became of the change.
        let record = self.pending(change)?;
        // A verdict that comes before anybody has looked at the clock comes too late all the same.
        if verdict.by == Decider::Person && record.deadline.is_some_and(|deadline| deadline <= now) {
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
        let decided = Event::Decided { change, verdict: verdict.clone(), told: decision.told.clone() };
        if decision.plan.is_empty() {
            return self.decide_nothing(proposed, verdict, decision, decided, now);
        }
        if proposed.performer == Performer::Agent {
            return self.permit_change(proposed, verdict, decision, decided, now);
        }
        let prepared = match self.workspace.prepare(decision.plan.clone(), proposed.emptied.clone()) {
            Ok(prepared) => prepared,
            Err(error) => {
                return self.not_applied(proposed, Some(decided), &decision.plan, error, now);
            }
        };
        let mut entry = Entry::of([decided]);
        let steps = decision.plan.steps();
        let kept = contents(steps.iter().map(|step| [&step.before, &step.after]));
        entry.push(Event::Applying { change, record: prepared.record() }, &kept);
        entry.count(PLANS, self.journal.reader().counter(PLANS)? + 1);
        // Looked up before anything is on its way.
        let ending = self.ending(proposed, &decision)?;
        let (_, telling) = entry.record(&mut self.journal, &self.feed, now)?;
        // What is over in no time is told of in one go.
        let telling = (steps.len() <= QUICK).then_some(telling);
        match prepared.apply() {
            Ok(applied) => {
                self.end(ending, Was::Applying, now)
                    .map_err(|error| GateError::NotRecorded { change, error: Box::new(error) })?;
                telling.into_iter().for_each(Telling::drop_untold);
                Ok(Decided::Applied { told: decision.told.clone(), decision, lost: applied.lost })
            }
            // What is torn stays open, so that the next start settles it.
            Err(error @ ApplyError::Torn { .. }) => Ok(Decided::Failed { told: told_failure(&error), error }),
            Err(error) => self.not_applied(proposed, None, &decision.plan, error, now),
        }
    }

    /// Records a verdict that changes no file.
    fn decide_nothing(
        &mut self,
        proposed: &Proposed,
        verdict: &Verdict,
        decision: Decision,
        decided: Event,
        now: i64,
    ) -> Result<Decided, GateError> {
        // Taking back what came and went again changes no file, and is done all the same.
        let approved = decision.files.iter().any(|file| !matches!(file.taken, Taken::Nothing { .. }))
            || (decision.files.is_empty() && !matches!(verdict.answer, Answer::Deny { .. }));
        let mut events = vec![decided];
        if approved {
            events.extend(self.ending(proposed, &decision)?);
        } else {
            events.push(Event::Ended { change: proposed.change, outcome: Outcome::Denied, told: None });
        }
        if !approved || decision.says_more(&proposed.preview, verdict) {
            events.extend(self.message(&proposed.origin, proposed.performer, proposed.change, &decision.told)?);
        }
        self.end(events, Was::Pending, now)?;
        let told = decision.told.clone();
        Ok(if approved { Decided::Applied { told, decision, lost: Vec::new() } } else { Decided::Denied { told } })
    }

    /// Records that nothing was written and, where that is because files changed, what could be written instead.
    pub(crate) fn not_applied(
        &mut self,
        proposed: &Proposed,
        decided: Option<Event>,
        plan: &Plan,
        error: ApplyError,
        now: i64,
    ) -> Result<Decided, GateError> {
        let change = proposed.change;
        let was = if decided.is_some() { Was::Pending } else { Was::Applying };
        let mut events: Vec<Event> = decided.into_iter().collect();
        if !matches!(error, ApplyError::Stale { .. }) || !proposed.cause.is_rebased_if_stale() {
            let (reason, told) = (error.to_string(), told_failure(&error));
            events.push(Event::Ended { change, outcome: Outcome::Failed { reason }, told: Some(told.clone()) });
            events.extend(self.message(&proposed.origin, proposed.performer, change, &told)?);
            self.end(events, was, now)?;
            return Ok(Decided::Failed { told, error });
        }
        let (preview, told, cause) = self.instead(proposed, plan)?;
        let files: Vec<WsPath> = preview.asked().map(|file| file.path.clone()).collect();
        let outcome = Outcome::Stale { files: files.clone() };
        events.push(Event::Ended { change, outcome, told: Some(told.clone()) });
        let earlier = self.history().change(change)?;
        let proposing = Proposing {
            performer: proposed.performer,
            ruled: earlier.ruled,
            deadline: earlier.deadline,
            ..Proposing::files(preview, proposed.origin.clone(), cause)
        };
        // In one: whoever waits for the one never sees it over and the other not there.
        self.held()?;
        let ended = self.ended(events, was)?;
        let next = self.record_with(ended, proposing, now)?;
        self.after_the_end(change, now)?;
        Ok(Decided::Stale { told, files, next: Box::new(next) })
    }

    /// What can be decided in place of a plan whose files changed.
    fn instead(&self, proposed: &Proposed, plan: &Plan) -> Result<(Preview, String, Cause), GateError> {
        if let Cause::Review { of, .. } = &proposed.cause {
            // What happened is in the tree; all there is to do is to look again.
            let preview = self.net(of)?;
            return Ok((preview, crate::later::TOLD_AGAIN.to_owned(), proposed.cause.clone()));
        }
        let sight = self.workspace.look(plan.steps().iter().map(|step| step.path.clone()), FILE_LIMIT);
        let rebased = plan.rebase(&sight.files);
        let told = rebased.told();
        Ok((rebased.preview, told, Cause::Rebase { of: proposed.change }))
    }

    /// Withdraws a change that waits.
    pub fn cancel(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        self.pending(change)?;
        self.end(vec![Event::Ended { change, outcome: Outcome::Cancelled, told: None }], Was::Pending, now)
    }

    /// The record of a change that waits for a verdict.
    pub(crate) fn pending(&self, change: ChangeId) -> Result<ChangeRecord, GateError> {
        let record = self.history().change(change)?;
        if History::is_pending(&record) {
            return Ok(record);
        }
        Err(GateError::WrongStatus { change, verb: "decided", status: record.status.to_string() })
    }

    /// Records the end of a change, and that it no longer is what it was until now.
    pub(crate) fn end(&mut self, events: Vec<Event>, was: Was, now: i64) -> Result<(), GateError> {
        let change = events.iter().find_map(Event::change);
        // Before it ends: who waits for it is known now.
        self.held()?;
        let entry = self.ended(events, was)?;
        self.write(entry, now)?;
        match change {
            Some(change) => self.after_the_end(change, now),
            None => Ok(()),
        }
    }

    /// The end of a change, as it is recorded.
    fn ended(&self, events: Vec<Event>, was: Was) -> Result<Entry<'static>, GateError> {
        let mut entry = Entry::of(events);
        let reader = self.journal.reader();
        // What somebody else carries out was counted when they were let go ahead.
        if was != Was::Permitted {
            entry.count(ENDED, reader.counter(ENDED)? + 1);
        }
        if was == Was::Applying {
            entry.count(PLANS_ENDED, reader.counter(PLANS)?);
        }
        Ok(entry)
    }

    /// The end of a change that was carried out, and what it means for others.
    fn ending(&self, proposed: &Proposed, decision: &Decision) -> Result<Vec<Event>, GateError> {
        let change = proposed.change;
        let mut events = vec![Event::Ended { change, outcome: Outcome::Applied, told: None }];
        events.extend(effects(change, &proposed.cause));
        if let (Cause::Review { .. }, Some(session)) = (&proposed.cause, &proposed.origin.session)
            && !decision.plan.is_empty()
        {
            // The agent has gone on, and hears of it when it next listens.
            let (session, text) = (self.history().listener(session)?, decision.told.clone());
            events.push(Event::Message { session, change: Some(change), call: None, text });
        }
        Ok(events)
    }

    /// What follows from the end of a change.
    fn after_the_end(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        self.call_of_change_over(change, now)?;
        self.no_longer_waits(change, now)
    }
}

/// What a proposal would do in a workspace. Needs no journal.
pub fn preview(workspace: &Workspace, proposal: &Proposal) -> Result<Preview, GateError> {
    let draft = proposal.draft(|text| workspace.locate(text))?;
    Ok(draft.preview(&workspace.look(draft.paths(), FILE_LIMIT)))
}

pub(crate) fn effects(by: ChangeId, cause: &Cause) -> Vec<Event> {
    match cause {
        Cause::Undo { of, paths } => {
            of.iter().map(|&change| Event::Undone { change, by, paths: paths.clone() }).collect()
        }
        Cause::Redo { of, paths } => {
            of.iter().map(|&change| Event::Redone { change, by, paths: paths.clone() }).collect()
        }
        Cause::Review { of, .. } => of.iter().map(|&change| Event::Reviewed { change, by }).collect(),
        Cause::Proposal | Cause::Rebase { .. } | Cause::Restore { .. } => Vec::new(),
    }
}
