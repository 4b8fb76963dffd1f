//! Actions that the agent performs after a verdict: commands, tool calls, and changes of files that it makes itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sayso_review::{
    Answer, ApplyRecord, ChangeId, ContentHash, Decision, Delivery, DryRun, DryRunOutput, Event, FilePreview,
    FileState, Fingerprint, Outcome, Plan, RecordedStep, RefreshReason, Subject, Uncaptured, Verdict, VerdictError,
    WsPath, action_message, failure_message, unperformed_message,
};
use sayso_workspace::ApplyError;

use crate::FILE_LIMIT;
use crate::check::{CheckLimits, run_dry};
use crate::engine::{Engine, PhaseBefore};
use crate::error::GateError;
use crate::pending_change::{DecisionResult, PendingChange};
use crate::record::{ENDED, JournalBatch, state_contents};
use sayso_review::{ChangeRecord, ChangeStatus};

/// Observed effects of an action that the agent performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Changed files, with their states before and after.
    pub record: ApplyRecord,
    /// Files whose content differs from the approved one.
    pub differs: Vec<WsPath>,
    /// Files that did not change, although a change of them was approved.
    pub unchanged: Vec<WsPath>,
    /// Possible changes that cannot be undone.
    pub uncaptured: Vec<Uncaptured>,
}

/// The agent's report about a permitted tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolReport<'r> {
    Ran,
    RanCommand {
        /// Exit code, if known.
        code: Option<i32>,
        /// Remark for the record, for instance that the command ran without marks.
        note: Option<&'r str>,
    },
    /// The tool failed with this message.
    Failed(&'r str),
    /// The turn or the session ended without a report.
    Missing,
}

/// Dry run that is ready to start. Needs no engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DryRunJob {
    dry_run: DryRun,
    directory: PathBuf,
}

impl DryRunJob {
    /// Runs the dry run. Call this only on a user's request.
    pub fn run(&self) -> DryRunOutput {
        run_dry(&self.dry_run, &self.directory, &CheckLimits::default_limits())
    }
}

impl Engine {
    /// Records a verdict on a command or a tool call.
    pub(crate) fn decide_action(
        &mut self,
        proposed: &PendingChange,
        verdict: &Verdict,
        now: i64,
    ) -> Result<DecisionResult, GateError> {
        let change = proposed.change;
        let agent_message = action_message(&proposed.subject, verdict);
        let decided = Event::Decided { change, verdict: verdict.clone(), agent_message: agent_message.clone() };
        let subject = match (&verdict.answer, &proposed.subject) {
            (Answer::Deny { .. }, _) => {
                let mut events = vec![decided, Event::Ended { change, outcome: Outcome::Denied, agent_message: None }];
                events.extend(self.queued_message(&proposed.origin, proposed.performer, change, &agent_message)?);
                self.finish_change(events, PhaseBefore::Pending, now)?;
                return Ok(DecisionResult::Denied { agent_message });
            }
            (Answer::Approve, subject) => subject.clone(),
            (Answer::Command { command }, subject @ Subject::Command { .. }) => subject.with_command(command),
            (Answer::Arguments { arguments }, subject @ Subject::Tool { .. }) => subject.with_arguments(arguments),
            (_, Subject::Command { .. }) => return Err(VerdictError::NotAnAnswer("a command").into()),
            (_, _) => return Err(VerdictError::NotAnAnswer("a tool call").into()),
        };
        // An approval covers the bytes that were shown, also if the agent writes them.
        let sight =
            self.workspace.observe(proposed.preview.files().iter().map(|file| file.location.clone()), FILE_LIMIT);
        let fits = |file: &FilePreview| {
            file.problem.is_some() || sight.files.get(&file.location).is_some_and(|seen| seen.is(&file.before))
        };
        if !proposed.preview.files().iter().all(fits) {
            self.pending_index()?;
            self.refresh(change, RefreshReason::FilesChanged, now)?;
            return Err(VerdictError::OtherPreview.into());
        }
        let edited = subject != proposed.subject;
        let expected: Vec<RecordedStep> = if edited { Vec::new() } else { expected_steps(proposed) };
        if matches!(subject, Subject::Command { .. }) {
            self.scan_before(change, &subject)?;
        }
        self.pending_index()?;
        let outside = Self::read_outside_files(&self.history().change(change)?);
        let blobs: Vec<(ContentHash, &[u8])> =
            outside.iter().filter_map(|(file, bytes)| Some((file.before?, bytes.as_deref()?))).collect();
        let mut entry = JournalBatch::from_events([decided]);
        let files = outside.iter().map(|(file, _)| file.clone()).collect();
        entry.push_event_with_blobs(Event::Permitted { change, expected, outside: files, editor: None }, &blobs, &[]);
        if (edited || verdict.has_remarks())
            && let Some(message) = self.queued_message(&proposed.origin, proposed.performer, change, &agent_message)?
        {
            entry.push_event(message, &[]);
        }
        entry.set_counter(ENDED, self.journal.reader().counter(ENDED)? + 1);
        self.write(entry, now)?;
        self.unindex_pending(change, now)?;
        Ok(DecisionResult::Permitted { agent_message, subject, plan: Plan::nothing() })
    }

    /// Permits an agent to make an approved change itself, if the files are still as shown.
    pub(crate) fn permit_change(
        &mut self,
        proposed: &PendingChange,
        verdict: &Verdict,
        decision: Decision,
        decided: Event,
        now: i64,
    ) -> Result<DecisionResult, GateError> {
        let change = proposed.change;
        let paths = decision.plan.steps().iter().map(|step| step.path.clone());
        let sight = self.workspace.observe(paths, FILE_LIMIT);
        let fits = |path: &WsPath, before: &FileState| sight.files.get(path).is_some_and(|seen| seen.is(before));
        if let Some(step) = decision.plan.steps().iter().find(|step| !fits(&step.path, &step.before)) {
            let error = ApplyError::Stale { path: step.path.clone() };
            return self.record_failed_apply(proposed, vec![decided], &decision.plan, error, PhaseBefore::Pending, now);
        }
        self.pending_index()?;
        let mut entry = JournalBatch::from_events([decided]);
        let kept = state_contents(decision.plan.steps().iter().map(|step| [&step.before, &step.after]));
        let (expected, outside) = (decision.plan.recorded(), Vec::new());
        entry.push_event(Event::Permitted { change, expected, outside, editor: None }, &kept);
        if decision.says_more(&proposed.preview, verdict)
            && let Some(message) =
                self.queued_message(&proposed.origin, proposed.performer, change, &decision.agent_message)?
        {
            entry.push_event(message, &[]);
        }
        entry.set_counter(ENDED, self.journal.reader().counter(ENDED)? + 1);
        self.write(entry, now)?;
        self.unindex_pending(change, now)?;
        Ok(DecisionResult::Permitted {
            agent_message: decision.agent_message,
            subject: Subject::Files,
            plan: decision.plan,
        })
    }

    /// Ends a permitted action: compares the files and records the difference.
    pub fn finish(&mut self, change: ChangeId, code: Option<i32>, now: i64) -> Result<Completion, GateError> {
        self.finish_with(change, FinishReport::Ran(code), now)
    }

    /// Ends a permitted action with the agent's report: compares the files and records the difference.
    pub fn finish_reported(
        &mut self,
        change: ChangeId,
        report: ToolReport<'_>,
        now: i64,
    ) -> Result<Completion, GateError> {
        self.finish_with(change, FinishReport::Reported(report), now)
    }

    /// Ends a permitted action that could not be started. If files changed all the same, records that it ran.
    pub fn finish_not_started(&mut self, change: ChangeId, reason: &str, now: i64) -> Result<Completion, GateError> {
        self.finish_with(change, FinishReport::NotStarted(reason), now)
    }

    fn finish_with(&mut self, change: ChangeId, ended: FinishReport<'_>, now: i64) -> Result<Completion, GateError> {
        let record = self.history().change(change)?;
        if record.status != ChangeStatus::Permitted {
            return Err(GateError::WrongStatus { change, verb: "finished", status: record.status.to_string() });
        }
        let (finished, kept) = match record.subject {
            Subject::Command { .. } => (self.scan_after(&record)?, BTreeMap::new()),
            Subject::Files | Subject::Tool { .. } => self.verify(&record),
        };
        let mut finished = match ended {
            // A tool that failed wrote only approved content. Any other content is another program's.
            FinishReport::Reported(ToolReport::Failed(_) | ToolReport::Missing) if record.subject.is_files() => {
                finished.keep_approved_only()
            }
            _ => finished,
        };
        finished.uncaptured.extend(Self::changed_outside(&record));
        if !matches!(ended, FinishReport::NotStarted(_) | FinishReport::Reported(ToolReport::Failed(_))) {
            finished.uncaptured.extend(self.unread_outside(&record));
        }
        let no_effects = finished.record.steps.is_empty() && finished.uncaptured.is_empty();
        let (outcome, agent_message) = match ended {
            FinishReport::NotStarted(reason) if no_effects => {
                (Outcome::Failed { reason: reason.to_owned() }, Some(failure_message(&reason)))
            }
            FinishReport::Reported(ToolReport::Failed(error)) if no_effects && !record.subject.is_command() => {
                let error = error.trim();
                let error = if error.is_empty() { "it gave no reason" } else { error };
                (Outcome::Failed { reason: format!("the agent's tool failed: {error}") }, None)
            }
            FinishReport::Reported(ToolReport::Missing)
                if no_effects && (record.subject.is_files() || !record.outside.is_empty()) =>
            {
                (Outcome::Failed { reason: "the agent's tool did not make the change".to_owned() }, None)
            }
            _ if no_effects && record.subject.is_files() && !finished.unchanged.is_empty() => {
                let reason = "the agent's tool ran, and the files are as they were".to_owned();
                (Outcome::Failed { reason }, None)
            }
            _ if record.subject.is_files() => (Outcome::Applied, None),
            FinishReport::Ran(code) => (Outcome::Ran { exit_code: code, note: None }, None),
            FinishReport::Reported(ToolReport::RanCommand { code, note }) => {
                (Outcome::Ran { exit_code: code, note: note.map(str::to_owned) }, None)
            }
            FinishReport::NotStarted(_) | FinishReport::Reported(_) => {
                (Outcome::Ran { exit_code: None, note: None }, None)
            }
        };
        // The queued message about the verdict announces a change that did not happen, so this one replaces it.
        let unmade = match (&outcome, &record.agent_message) {
            (Outcome::Failed { reason }, Some(verdict)) if record.delivery == Delivery::Waiting => {
                Some(unperformed_message(reason, verdict))
            }
            _ => None,
        };
        let agent_message = unmade.clone().or(agent_message);
        let Completion { record: applied, mut differs, unchanged, uncaptured } = finished.clone();
        differs.extend(unchanged);
        let mut entry = JournalBatch::default();
        if !applied.steps.is_empty() || !uncaptured.is_empty() {
            let blobs: Vec<(ContentHash, &[u8])> = kept.iter().map(|(hash, bytes)| (*hash, &bytes[..])).collect();
            let mut stored = Vec::new();
            for step in &applied.steps {
                for hash in [&step.before, &step.after].into_iter().filter_map(Fingerprint::hash) {
                    // A reference keeps blobs that are stored already.
                    if !kept.contains_key(&hash) && self.journal.reader().has_blob(hash)? {
                        stored.push(hash);
                    }
                }
            }
            entry.push_event_with_blobs(
                Event::Observed { change, record: applied, differing_files: differs, uncaptured },
                &blobs,
                &stored,
            );
        }
        entry.push_event(Event::Ended { change, outcome, agent_message }, &[]);
        if let Some(text) = unmade
            && let Some(message) = self.queued_message(&record.origin, record.performer, change, &text)?
        {
            entry.push_event(message, &[]);
        }
        self.write(entry, now)?;
        // The scan from before the command was needed until the record was written.
        self.remove_scan(change);
        Ok(finished)
    }

    /// Returns the dry run that the preview of a command offers.
    pub fn dry_run(&self, change: ChangeId) -> Result<DryRunJob, GateError> {
        let record = self.history().change(change)?;
        match &record.subject {
            Subject::Command { directory, preview, .. } => {
                let dry_run = preview.dry_run.clone().ok_or(GateError::NoDryRun(change))?;
                Ok(DryRunJob { dry_run, directory: self.workspace.path().join(directory.as_str()) })
            }
            Subject::Files | Subject::Tool { .. } => Err(GateError::NoDryRun(change)),
        }
    }

    /// Compares the files with the steps that were approved. Returns the contents to record.
    fn verify(&self, record: &ChangeRecord) -> (Completion, BTreeMap<ContentHash, Vec<u8>>) {
        let mut finished = Completion::empty();
        let mut kept = BTreeMap::new();
        let sight = self.workspace.observe(record.expected.iter().map(|step| step.path.clone()), FILE_LIMIT);
        for step in &record.expected {
            let path = step.path.clone();
            match sight.files.get(&step.path).map(|seen| seen.state()) {
                Some(Ok(state)) => {
                    let after = state.fingerprint();
                    if after != step.after && after == step.before {
                        finished.unchanged.push(path.clone());
                    } else if after != step.after {
                        finished.differs.push(path.clone());
                    }
                    kept.extend(state.content().map(|content| (content.hash(), content.bytes().to_vec())));
                    if after != step.before {
                        finished.record.steps.push(RecordedStep { path, before: step.before.clone(), after });
                    }
                }
                Some(Err(obstacle)) => {
                    finished.uncaptured.push(Uncaptured { path: path.to_string(), reason: obstacle.to_string() });
                }
                None => {}
            }
        }
        (finished, kept)
    }
}

/// Source of the report about the end of an action.
#[derive(Clone, Copy)]
enum FinishReport<'r> {
    /// It ran, with this exit code if it has one.
    Ran(Option<i32>),
    /// It could not be started, for this reason.
    NotStarted(&'r str),
    /// The agent's own report.
    Reported(ToolReport<'r>),
}

impl Completion {
    pub(crate) fn empty() -> Self {
        let record =
            ApplyRecord { token: String::new(), steps: Vec::new(), directories: Vec::new(), emptied: Vec::new() };
        Self { record, differs: Vec::new(), unchanged: Vec::new(), uncaptured: Vec::new() }
    }

    /// Keeps only the changes with approved content. The other files count as unchanged.
    fn keep_approved_only(mut self) -> Self {
        self.record.steps.retain(|step| !self.differs.contains(&step.path));
        self.unchanged.append(&mut self.differs);
        self
    }
}

/// Returns the steps that a tool call takes if it does what its arguments say.
fn expected_steps(proposed: &PendingChange) -> Vec<RecordedStep> {
    let possible = proposed.preview.files().iter().filter(|file| file.problem.is_none());
    possible.flat_map(|file| file.steps(file.after.clone())).map(|step| step.recorded()).collect()
}
