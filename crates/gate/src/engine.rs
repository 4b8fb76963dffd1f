//! One change from proposal to outcome.

use sayso_journal::{Batch, Journal, NewEvent};
use sayso_review::{
    Answer, Cause, ChangeId, Content, Decider, Decision, EVENT_VERSION, Event, FilePreview, FileRecord, FileState,
    Origin, Outcome, Plan, Preview, Proposal, Taken, Verdict, WsPath, told_failure,
};
use sayso_workspace::{ApplyError, Recovery, Workspace};

use crate::change::ChangeRecord;
use crate::error::GateError;
use crate::history::{APPLYING, CHANGES, ENDED, History, PLANS, PLANS_ENDED, change_key};
use crate::{FILE_LIMIT, mend};

/// The engine of one workspace. There is one at a time.
#[derive(Debug)]
pub struct Engine {
    pub(crate) workspace: Workspace,
    pub(crate) journal: Journal,
}

/// A change that waits for a verdict.
#[derive(Clone, Debug)]
pub struct Proposed {
    /// Its number.
    pub change: ChangeId,
    /// What it would do.
    pub preview: Preview,
    pub(crate) origin: Origin,
    pub(crate) cause: Cause,
    /// Directories that are to go if nothing is left in them.
    pub(crate) emptied: Vec<WsPath>,
}

/// How a verdict ended.
#[derive(Debug)]
pub enum Decided {
    /// What was approved is in the tree.
    Applied {
        /// What the agent is told.
        told: String,
        /// What was approved.
        decision: Decision,
        /// What files had besides their content that could not be kept.
        lost: Vec<(WsPath, Vec<&'static str>)>,
    },
    /// Nothing was approved.
    Denied {
        /// What the agent is told.
        told: String,
    },
    /// Files changed after they were shown. Nothing was written; both changes together wait for a verdict of their own.
    Stale {
        /// What the agent is told.
        told: String,
        /// The files.
        files: Vec<WsPath>,
        /// What is to be decided instead.
        next: Box<Proposed>,
    },
    /// It could not be done. Nothing was written, unless the error says so.
    Failed {
        /// What the agent is told.
        told: String,
        /// Why.
        error: ApplyError,
    },
}

/// What a change was until it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Was {
    Pending,
    Applying,
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
        let mut engine = Self { workspace, journal };
        let recovered = engine.recover(now)?;
        Ok((engine, recovered))
    }

    /// What happened so far.
    pub fn history(&self) -> History<'_> {
        History::new(self.journal.reader())
    }

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
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
        self.record_proposal(preview, origin, Cause::Proposal, Vec::new(), now)
    }

    /// A change that was proposed earlier and still waits.
    pub fn proposed(&self, change: ChangeId) -> Result<Proposed, GateError> {
        let record = self.pending(change)?;
        let preview = self.history().preview(&record)?;
        Ok(Proposed { change, preview, origin: record.origin, cause: record.cause, emptied: Vec::new() })
    }

    /// Records a preview as a change that waits for a verdict.
    pub(crate) fn record_proposal(
        &mut self,
        preview: Preview,
        origin: Origin,
        cause: Cause,
        emptied: Vec<WsPath>,
        now: i64,
    ) -> Result<Proposed, GateError> {
        let change = self.journal.reader().counter(CHANGES)? + 1;
        let contents: Vec<&Content> = preview
            .files()
            .iter()
            .flat_map(|file| [&file.before, &file.after])
            .filter_map(FileState::content)
            .collect();
        let mut keys = vec![change_key(change)];
        keys.extend(origin.session.iter().map(|session| session_key(session)));
        keys.extend(origin.call.iter().map(|call| call_key(call)));
        let event = Event::Proposed {
            change,
            origin: origin.clone(),
            cause: cause.clone(),
            files: preview.files().iter().map(|file| file_record(file, preview.is_settled(&file.path))).collect(),
            preview: preview.hash(),
        };
        let events = vec![NewEvent { keys, blobs: hashes(&contents), ..new_event(&event, now) }];
        self.journal.append(&Batch { blobs: blobs(&contents), events, counters: vec![(CHANGES, change)] })?;
        Ok(Proposed { change, preview, origin, cause, emptied })
    }

    /// Carries a verdict out: what was approved is exactly what happens, or nothing does.
    pub fn decide(&mut self, proposed: &Proposed, verdict: &Verdict, now: i64) -> Result<Decided, GateError> {
        let change = proposed.change;
        // A plan that could not be taken back comes first, or the end of this one would pass for its end.
        self.recover(now)?;
        // The first verdict counts; whoever comes later learns what became of the change.
        let record = self.pending(change)?;
        if record.preview != proposed.preview.hash() {
            return Err(sayso_review::VerdictError::OtherPreview.into());
        }
        let decision = proposed.preview.decide(verdict)?;
        let decided = Event::Decided { change, verdict: verdict.clone(), told: decision.told.clone() };
        if decision.plan.is_empty() {
            // Taking back what came and went again changes no file, and is done all the same.
            let approved = decision.files.iter().any(|file| !matches!(file.taken, Taken::Nothing { .. }))
                || (decision.files.is_empty() && !matches!(verdict.answer, Answer::Deny { .. }));
            let mut events = vec![decided];
            if approved {
                events.extend(ending(change, &proposed.cause));
            } else {
                events.push(Event::Ended { change, outcome: Outcome::Denied, told: None });
            }
            self.end(&events, Was::Pending, now)?;
            let told = decision.told.clone();
            return Ok(if approved {
                Decided::Applied { told, decision, lost: Vec::new() }
            } else {
                Decided::Denied { told }
            });
        }
        let prepared = match self.workspace.prepare(decision.plan.clone(), proposed.emptied.clone()) {
            Ok(prepared) => prepared,
            Err(error) => {
                return self.not_applied(proposed, Some(decided), &decision.plan, error, now);
            }
        };
        let contents: Vec<&Content> = decision
            .plan
            .steps()
            .iter()
            .flat_map(|step| [&step.before, &step.after])
            .filter_map(FileState::content)
            .collect();
        let applying = Event::Applying { change, record: prepared.record() };
        let events = vec![
            new_event(&decided, now),
            NewEvent {
                keys: vec![change_key(change), APPLYING.to_owned()],
                blobs: hashes(&contents),
                ..new_event(&applying, now)
            },
        ];
        let plans = self.journal.reader().counter(PLANS)? + 1;
        self.journal.append(&Batch { blobs: blobs(&contents), events, counters: vec![(PLANS, plans)] })?;
        match prepared.apply() {
            Ok(applied) => {
                self.end(&ending(change, &proposed.cause), Was::Applying, now)
                    .map_err(|error| GateError::NotRecorded { change, error: Box::new(error) })?;
                Ok(Decided::Applied { told: decision.told.clone(), decision, lost: applied.lost })
            }
            // What is torn stays open, so that the next start settles it.
            Err(error @ ApplyError::Torn { .. }) => Ok(Decided::Failed { told: told_failure(&error), error }),
            Err(error) => self.not_applied(proposed, None, &decision.plan, error, now),
        }
    }

    /// Records that nothing was written and, where that is because files changed, what could be written instead.
    fn not_applied(
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
        let stale = matches!(error, ApplyError::Stale { .. })
            && matches!(proposed.cause, Cause::Proposal | Cause::Rebase { .. });
        if !stale {
            let (reason, told) = (error.to_string(), told_failure(&error));
            events.push(Event::Ended { change, outcome: Outcome::Failed { reason }, told: Some(told.clone()) });
            self.end(&events, was, now)?;
            return Ok(Decided::Failed { told, error });
        }
        let sight = self.workspace.look(plan.steps().iter().map(|step| step.path.clone()), FILE_LIMIT);
        let rebased = plan.rebase(&sight.files);
        let told = rebased.told();
        let files: Vec<WsPath> = rebased.preview.asked().map(|file| file.path.clone()).collect();
        let outcome = Outcome::Stale { files: files.clone() };
        events.push(Event::Ended { change, outcome, told: Some(told.clone()) });
        self.end(&events, was, now)?;
        let cause = Cause::Rebase { of: change };
        let next = self.record_proposal(rebased.preview, proposed.origin.clone(), cause, Vec::new(), now)?;
        Ok(Decided::Stale { told, files, next: Box::new(next) })
    }

    /// Withdraws a change that waits.
    pub fn cancel(&mut self, change: ChangeId, now: i64) -> Result<(), GateError> {
        self.pending(change)?;
        self.end(&[Event::Ended { change, outcome: Outcome::Cancelled, told: None }], Was::Pending, now)
    }

    /// The record of a change that waits for a verdict.
    fn pending(&self, change: ChangeId) -> Result<ChangeRecord, GateError> {
        let record = self.history().change(change)?;
        if History::is_pending(&record) {
            return Ok(record);
        }
        Err(GateError::WrongStatus { change, verb: "decided", status: record.status.to_string() })
    }

    /// Records the end of a change, and that it no longer is what it was until now.
    pub(crate) fn end(&mut self, events: &[Event], was: Was, now: i64) -> Result<(), GateError> {
        let reader = self.journal.reader();
        let mut counters = vec![(ENDED, reader.counter(ENDED)? + 1)];
        if was == Was::Applying {
            counters.push((PLANS_ENDED, reader.counter(PLANS)?));
        }
        let events = events.iter().map(|event| new_event(event, now)).collect();
        self.journal.append(&Batch { blobs: Vec::new(), events, counters })?;
        Ok(())
    }
}

/// What a proposal would do in a workspace. Needs no journal.
pub fn preview(workspace: &Workspace, proposal: &Proposal) -> Result<Preview, GateError> {
    let draft = proposal.draft(|text| workspace.locate(text))?;
    Ok(draft.preview(&workspace.look(draft.paths(), FILE_LIMIT)))
}

impl Proposed {
    /// The verdict that takes all of it.
    pub fn approval(&self) -> Verdict {
        self.verdict(Answer::Approve)
    }

    /// A person's verdict on it.
    pub fn verdict(&self, answer: Answer) -> Verdict {
        Verdict { preview: self.preview.hash(), answer, comments: Vec::new(), by: Decider::Person }
    }
}

pub(crate) fn session_key(session: &str) -> String {
    format!("session:{session}")
}

pub(crate) fn call_key(call: &str) -> String {
    format!("call:{call}")
}

fn new_event(event: &Event, now: i64) -> NewEvent {
    NewEvent {
        version: EVENT_VERSION,
        time: now,
        keys: vec![change_key(event.change())],
        blobs: Vec::new(),
        // Made of strings, numbers and lists only, which always have a JSON form.
        body: serde_json::to_vec(event).unwrap_or_default(),
    }
}

fn hashes(contents: &[&Content]) -> Vec<sayso_review::ContentHash> {
    contents.iter().map(|content| content.hash()).collect()
}

fn blobs<'c>(contents: &[&'c Content]) -> Vec<(sayso_review::ContentHash, &'c [u8])> {
    contents.iter().map(|content| (content.hash(), content.bytes())).collect()
}

fn file_record(file: &FilePreview, settled: bool) -> FileRecord {
    let counts = file.counts();
    FileRecord {
        path: file.path.clone(),
        location: file.location.clone(),
        operation: file.operation.clone(),
        before: file.before.fingerprint(),
        after: file.after.fingerprint(),
        added: counts.added,
        removed: counts.removed,
        notes: file.notes.clone(),
        problem: file.problem.clone(),
        settled,
    }
}

/// The events of a change that was carried out: its end, and what it means for others.
fn ending(change: ChangeId, cause: &Cause) -> Vec<Event> {
    let mut events = vec![Event::Ended { change, outcome: Outcome::Applied, told: None }];
    events.extend(effects(change, cause));
    events
}

pub(crate) fn effects(by: ChangeId, cause: &Cause) -> Vec<Event> {
    match cause {
        Cause::Undo { of } => of.iter().map(|&change| Event::Undone { change, by }).collect(),
        Cause::Redo { of } => of.iter().map(|&change| Event::Redone { change, by }).collect(),
        Cause::Proposal | Cause::Rebase { .. } => Vec::new(),
    }
}
