//! What others carry out after a verdict: commands, calls of tools, and changes that an agent makes by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sayso_review::{
    Answer, ApplyRecord, ChangeId, ContentHash, Decision, Delivery, DryRun, DryRunOutput, Event, FilePreview,
    FileState, Fingerprint, Outcome, Plan, RecordedStep, Refresh, Subject, Uncaptured, Verdict, VerdictError, WsPath,
    told_action, told_failure, told_unmade,
};
use sayso_workspace::ApplyError;

use crate::FILE_LIMIT;
use crate::check::{CheckLimits, run_dry};
use crate::engine::{Engine, Was};
use crate::error::GateError;
use crate::proposed::{Decided, Proposed};
use crate::record::{ENDED, Entry, contents};
use sayso_review::{ChangeRecord, ChangeStatus};

/// How something ended that somebody else carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// What was there and is there now, where that differs.
    pub record: ApplyRecord,
    /// Files that hold something else than was approved.
    pub differs: Vec<WsPath>,
    /// Files that are as they were before, although a change of them was approved.
    pub unchanged: Vec<WsPath>,
    /// What may have changed and cannot be put back.
    pub uncaptured: Vec<Uncaptured>,
}

/// The report of the agent about a tool that it was let use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report<'r> {
    /// The tool ran.
    Ran,
    /// The tool ran a command.
    RanCommand {
        /// What it ended with, if that is known.
        code: Option<i32>,
        /// How it ran, where that is not as usual.
        note: Option<&'r str>,
    },
    /// The tool failed with this error.
    Failed(&'r str),
    /// None came: the turn or the session ended without it.
    Missing,
}

/// A rehearsal that changes nothing, and needs no engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    dry_run: DryRun,
    directory: PathBuf,
}

impl Rehearsal {
    /// Runs it. Only ever on request.
    pub fn run(&self) -> DryRunOutput {
        run_dry(&self.dry_run, &self.directory, &CheckLimits::usual())
    }
}

impl Engine {
    /// Records a verdict on a command or a call of a tool.
    pub(crate) fn decide_action(
        &mut self,
        proposed: &Proposed,
        verdict: &Verdict,
        now: i64,
    ) -> Result<Decided, GateError> {
        let change = proposed.change;
        let told = told_action(&proposed.subject, verdict);
        let decided = Event::Decided { change, verdict: verdict.clone(), told: told.clone() };
        let subject = match (&verdict.answer, &proposed.subject) {
            (Answer::Deny { .. }, _) => {
                let mut events = vec![decided, Event::Ended { change, outcome: Outcome::Denied, told: None }];
                events.extend(self.message(&proposed.origin, proposed.performer, change, &told)?);
                self.end(events, Was::Pending, now)?;
                return Ok(Decided::Denied { told });
            }
            (Answer::Approve, subject) => subject.clone(),
            (Answer::Command { command }, subject @ Subject::Command { .. }) => subject.with_command(command),
            (Answer::Arguments { arguments }, subject @ Subject::Tool { .. }) => subject.with_arguments(arguments),
            (_, Subject::Command { .. }) => return Err(VerdictError::NotAnAnswer("a command").into()),
            (_, _) => return Err(VerdictError::NotAnAnswer("a tool call").into()),
        };
        // An approval covers the bytes that were shown, also where somebody else writes them.
        let sight = self.workspace.look(proposed.preview.files().iter().map(|file| file.location.clone()), FILE_LIMIT);
        let fits = |file: &FilePreview| {
            file.problem.is_some() || sight.files.get(&file.location).is_some_and(|seen| seen.is(&file.before))
        };
        if !proposed.preview.files().iter().all(fits) {
            self.held()?;
            self.refresh(change, Refresh::FilesChanged, now)?;
            return Err(VerdictError::OtherPreview.into());
        }
        let edited = subject != proposed.subject;
        let expected: Vec<RecordedStep> = if edited { Vec::new() } else { expected(proposed) };
        if matches!(subject, Subject::Command { .. }) {
            self.begin_observing(change, &subject)?;
        }
        self.held()?;
        let outside = Self::look_outside(&self.history().change(change)?);
        let blobs: Vec<(ContentHash, &[u8])> =
            outside.iter().filter_map(|(file, bytes)| Some((file.before?, bytes.as_deref()?))).collect();
        let mut entry = Entry::of([decided]);
        let files = outside.iter().map(|(file, _)| file.clone()).collect();
        entry.push_blobs(Event::Permitted { change, expected, outside: files }, &blobs, &[]);
        if (edited || !verdict.comments.is_empty())
            && let Some(message) = self.message(&proposed.origin, proposed.performer, change, &told)?
        {
            entry.push(message, &[]);
        }
        entry.count(ENDED, self.journal.reader().counter(ENDED)? + 1);
        self.write(entry, now)?;
        self.no_longer_waits(change, now)?;
        Ok(Decided::Permitted { told, subject, plan: Plan::nothing() })
    }

    /// Lets an agent make a change by itself that was approved, if its files still are those that were shown.
    pub(crate) fn permit_change(
        &mut self,
        proposed: &Proposed,
        verdict: &Verdict,
        decision: Decision,
        decided: Event,
        now: i64,
    ) -> Result<Decided, GateError> {
        let change = proposed.change;
        let paths = decision.plan.steps().iter().map(|step| step.path.clone());
        let sight = self.workspace.look(paths, FILE_LIMIT);
        let fits = |path: &WsPath, before: &FileState| sight.files.get(path).is_some_and(|seen| seen.is(before));
        if let Some(step) = decision.plan.steps().iter().find(|step| !fits(&step.path, &step.before)) {
            let error = ApplyError::Stale { path: step.path.clone() };
            return self.not_applied(proposed, Some(decided), &decision.plan, error, now);
        }
        self.held()?;
        let mut entry = Entry::of([decided]);
        let kept = contents(decision.plan.steps().iter().map(|step| [&step.before, &step.after]));
        let (expected, outside) = (decision.plan.recorded(), Vec::new());
        entry.push(Event::Permitted { change, expected, outside }, &kept);
        if decision.says_more(&proposed.preview, verdict)
            && let Some(message) = self.message(&proposed.origin, proposed.performer, change, &decision.told)?
        {
            entry.push(message, &[]);
        }
        entry.count(ENDED, self.journal.reader().counter(ENDED)? + 1);
        self.write(entry, now)?;
        self.no_longer_waits(change, now)?;
        Ok(Decided::Permitted { told: decision.told, subject: Subject::Files, plan: decision.plan })
    }

    /// Looks at what became of something that was permitted, and records it.
    pub fn finish(&mut self, change: ChangeId, code: Option<i32>, now: i64) -> Result<Finished, GateError> {
        self.finish_as(change, Ended::Ran(code), now)
    }

    /// Looks at what became of a tool call of an agent, and records that.
    pub fn finish_reported(&mut self, change: ChangeId, report: Report<'_>, now: i64) -> Result<Finished, GateError> {
        self.finish_as(change, Ended::Reported(report), now)
    }

    /// Records that something that was permitted could not be started, unless it left something behind all the same.
    pub fn not_started(&mut self, change: ChangeId, reason: &str, now: i64) -> Result<Finished, GateError> {
        self.finish_as(change, Ended::NotStarted(reason), now)
    }

    fn finish_as(&mut self, change: ChangeId, ended: Ended<'_>, now: i64) -> Result<Finished, GateError> {
        let record = self.history().change(change)?;
        if record.status != ChangeStatus::Permitted {
            return Err(GateError::WrongStatus { change, verb: "finished", status: record.status.to_string() });
        }
        let (finished, kept) = match record.subject {
            Subject::Command { .. } => (self.end_observing(&record)?, BTreeMap::new()),
            Subject::Files | Subject::Tool { .. } => self.verify(&record),
        };
        let mut finished = match ended {
            // A tool that did not run to its end wrote nothing else. What is there instead is somebody else's.
            Ended::Reported(Report::Failed(_) | Report::Missing) if record.subject.is_files() => {
                finished.only_as_approved()
            }
            _ => finished,
        };
        finished.uncaptured.extend(Self::changed_outside(&record));
        if !matches!(ended, Ended::NotStarted(_) | Ended::Reported(Report::Failed(_))) {
            finished.uncaptured.extend(self.unread_outside(&record));
        }
        let nothing = finished.record.steps.is_empty() && finished.uncaptured.is_empty();
        let (outcome, told) = match ended {
            Ended::NotStarted(reason) if nothing => {
                (Outcome::Failed { reason: reason.to_owned() }, Some(told_failure(&reason)))
            }
            Ended::Reported(Report::Failed(error)) if nothing && !record.subject.is_command() => {
                let error = error.trim();
                let error = if error.is_empty() { "it gave no reason" } else { error };
                (Outcome::Failed { reason: format!("the agent's tool failed: {error}") }, None)
            }
            Ended::Reported(Report::Missing)
                if nothing && (record.subject.is_files() || !record.outside.is_empty()) =>
            {
                (Outcome::Failed { reason: "the agent's tool did not make the change".to_owned() }, None)
            }
            _ if nothing && record.subject.is_files() && !finished.unchanged.is_empty() => {
                let reason = "the agent's tool ran, and the files are as they were".to_owned();
                (Outcome::Failed { reason }, None)
            }
            _ if record.subject.is_files() => (Outcome::Applied, None),
            Ended::Ran(code) => (Outcome::Ran { code, note: None }, None),
            Ended::Reported(Report::RanCommand { code, note }) => {
                (Outcome::Ran { code, note: note.map(str::to_owned) }, None)
            }
            Ended::NotStarted(_) | Ended::Reported(_) => (Outcome::Ran { code: None, note: None }, None),
        };
        // The message about the verdict says what was to happen.
        let unmade = match (&outcome, &record.told) {
            (Outcome::Failed { reason }, Some(verdict)) if record.delivery == Delivery::Waiting => {
                Some(told_unmade(reason, verdict))
            }
            _ => None,
        };
        let told = unmade.clone().or(told);
        let Finished { record: applied, mut differs, unchanged, uncaptured } = finished.clone();
        differs.extend(unchanged);
        let mut entry = Entry::default();
        if !applied.steps.is_empty() || !uncaptured.is_empty() {
            let blobs: Vec<(ContentHash, &[u8])> = kept.iter().map(|(hash, bytes)| (*hash, &bytes[..])).collect();
            let mut stored = Vec::new();
            for step in &applied.steps {
                for hash in [&step.before, &step.after].into_iter().filter_map(Fingerprint::hash) {
                    // What is there already is named, so that it stays.
                    if !kept.contains_key(&hash) && self.journal.reader().has_blob(hash)? {
                        stored.push(hash);
                    }
                }
            }
            entry.push_blobs(Event::Observed { change, record: applied, differs, uncaptured }, &blobs, &stored);
        }
        entry.push(Event::Ended { change, outcome, told }, &[]);
        if let Some(text) = unmade
            && let Some(message) = self.message(&record.origin, record.performer, change, &text)?
        {
            entry.push(message, &[]);
        }
        self.write(entry, now)?;
        // Only now is it on record what was there before.
        self.forget_scan(change);
        Ok(finished)
    }

    /// The rehearsal that the preview of a command offers.
    pub fn rehearsal(&self, change: ChangeId) -> Result<Rehearsal, GateError> {
        let record = self.history().change(change)?;
        match &record.subject {
            Subject::Command { directory, preview, .. } => {
                let dry_run = preview.dry_run.clone().ok_or(GateError::NoDryRun(change))?;
                Ok(Rehearsal { dry_run, directory: self.workspace.path().join(directory.as_str()) })
            }
            Subject::Files | Subject::Tool { .. } => Err(GateError::NoDryRun(change)),
        }
    }

    /// Compares what an agent did with what it was allowed to do.
    fn verify(&self, record: &ChangeRecord) -> (Finished, BTreeMap<ContentHash, Vec<u8>>) {
        let mut finished = Finished::nothing();
        let mut kept = BTreeMap::new();
        let sight = self.workspace.look(record.expected.iter().map(|step| step.path.clone()), FILE_LIMIT);
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

/// How whoever carried something out says that it ended.
#[derive(Clone, Copy)]
enum Ended<'r> {
    /// With this exit code, if it has one.
    Ran(Option<i32>),
    /// Before it began, for this reason.
    NotStarted(&'r str),
    /// As the agent reports.
    Reported(Report<'r>),
}

impl Finished {
    pub(crate) fn nothing() -> Self {
        let record =
            ApplyRecord { token: String::new(), steps: Vec::new(), directories: Vec::new(), emptied: Vec::new() };
        Self { record, differs: Vec::new(), unchanged: Vec::new(), uncaptured: Vec::new() }
    }

    /// Only the changes that are there as approved; the other files count as not changed.
    fn only_as_approved(mut self) -> Self {
        self.record.steps.retain(|step| !self.differs.contains(&step.path));
        self.unchanged.append(&mut self.differs);
        self
    }
}

/// What a call of a tool would do to files, if it does what its arguments seem to say.
fn expected(proposed: &Proposed) -> Vec<RecordedStep> {
    let possible = proposed.preview.files().iter().filter(|file| file.problem.is_none());
    possible.flat_map(|file| file.steps(file.after.clone())).map(|step| step.recorded()).collect()
}
