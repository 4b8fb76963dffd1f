//! The state of a change, folded from its events.

use std::collections::BTreeMap;
use std::fmt;

use sayso_base::{ContentHash, WsPath};
use serde::Serialize;

use crate::agent_message::failure_message;
use crate::event::{
    Cause, ChangeId, Event, EventBody, FileRecord, Origin, Outcome, OutsideFile, Performer, Recorded, RefreshReason,
    RulingRecord, Subject, Uncaptured,
};
use crate::plan::{ApplyRecord, RecordedStep};
use crate::preview::Operation;
use crate::verdict::{Answer, Verdict};

/// The state of a change, computed from its events only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeRecord {
    pub change: ChangeId,
    /// Time of the proposal, in milliseconds since 1970.
    pub time: i64,
    #[serde(flatten)]
    pub status: ChangeStatus,
    pub origin: Origin,
    #[serde(flatten)]
    pub cause: Cause,
    /// Effects on files, as previewed.
    pub files: Vec<FileRecord>,
    /// Hash of the preview; a verdict must carry it.
    pub preview: ContentHash,
    pub verdict: Option<Verdict>,
    /// Message to the agent.
    pub agent_message: Option<String>,
    /// Delivery state of that message.
    #[serde(skip_serializing_if = "Delivery::is_not_tracked")]
    pub delivery: Delivery,
    /// Recorded steps, once the change reached the tree.
    pub applied: Option<ApplyRecord>,
    /// Files that crash recovery left untouched, because they equal neither the old nor the new content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_files: Vec<WsPath>,
    /// Rescue copies of edits by others that an interrupted plan had displaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rescued_files: Vec<WsPath>,
    /// `true` if only a part of the proposal, or other content, was approved.
    pub partial: bool,
    /// The command or tool call, if the change is more than file edits.
    #[serde(flatten)]
    pub subject: Subject,
    /// Decision of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ruling: Option<RulingRecord>,
    /// Party that carries out the change.
    pub performer: Performer,
    /// Blob with the submitted intent.
    #[serde(skip)]
    pub intent: Option<ContentHash>,
    /// Time at which an undecided change is denied, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Pending changes of the same files at the time of submission.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predecessors: Vec<ChangeId>,
    /// Predecessors that were dropped, although this change may depend on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped_predecessors: Vec<ChangeId>,
    /// Expected effect of the performer on files.
    #[serde(skip)]
    pub expected: Vec<RecordedStep>,
    /// Files outside the workspace that the performer may write, with their previous content.
    #[serde(skip)]
    pub outside: Vec<OutsideFile>,
    /// Files that the performer left with other content than approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differing_files: Vec<WsPath>,
    /// Changed paths that cannot be undone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncaptured: Vec<Uncaptured>,
    /// Review at the end of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<ChangeId>,
    /// Exit code of a command that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Deviation from a normal run of a command, or from the way in which files are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_note: Option<String>,
    /// Files that were undone one by one, with the change that undid each.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub undone_files: BTreeMap<WsPath, ChangeId>,
    /// Number of the event that permitted the change; 0 before.
    #[serde(skip)]
    pub permitted_event: u64,
    /// Number of the event that applied or observed the change; 0 before.
    #[serde(skip)]
    pub applied_event: u64,
    /// Number of the event that set the status.
    #[serde(skip)]
    pub status_event: u64,
}

/// The delivery state of the message about a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The response to the call carries the message, or there is no message.
    #[default]
    NotTracked,
    /// The message is queued for a hook of the agent.
    Waiting,
    /// A hook delivered the message to the agent.
    Delivered,
}

impl Delivery {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
    fn is_not_tracked(&self) -> bool {
        *self == Self::NotTracked
    }
}

/// The applied share of a proposed file change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedPart {
    All,
    /// A part of the proposal, or other content.
    Partial,
    Nothing,
}

/// The status of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ChangeStatus {
    /// It is waiting for a verdict.
    Pending,
    /// A plan was started and no outcome is recorded.
    Interrupted,
    /// It was approved, and its performer has not finished.
    Permitted,
    /// It is in the tree.
    Applied,
    Undone {
        by: ChangeId,
    },
    /// A person or a rule denied it.
    Denied,
    /// Files changed after the preview was made.
    Stale,
    /// The agent withdrew it.
    Cancelled,
    /// It failed, and the tree is unchanged.
    Failed {
        reason: String,
    },
}

impl fmt::Display for ChangeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("pending"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Permitted => f.write_str("permitted"),
            Self::Applied => f.write_str("applied"),
            Self::Undone { by } => write!(f, "undone by {by}"),
            Self::Denied => f.write_str("denied"),
            Self::Stale => f.write_str("stale"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Failed { .. } => f.write_str("failed"),
        }
    }
}

impl ChangeRecord {
    /// Folds the events of one change, in order. Returns `None` if its proposal is missing.
    pub fn fold(events: impl IntoIterator<Item = Recorded>) -> Option<Self> {
        let mut record: Option<Self> = None;
        for Recorded { number, time, body } in events {
            // Skip events of a later version; they do not affect the state known here.
            let EventBody::Known(event) = body else { continue };
            match (&mut record, event) {
                (
                    None,
                    Event::Proposed {
                        change,
                        origin,
                        cause,
                        files,
                        preview,
                        subject,
                        ruling,
                        performer,
                        intent,
                        deadline,
                        predecessors,
                    },
                ) => {
                    record = Some(Self {
                        subject,
                        ruling,
                        performer,
                        intent,
                        deadline,
                        predecessors,
                        dropped_predecessors: Vec::new(),
                        expected: Vec::new(),
                        outside: Vec::new(),
                        differing_files: Vec::new(),
                        uncaptured: Vec::new(),
                        reviewed: None,
                        exit_code: None,
                        run_note: None,
                        undone_files: BTreeMap::new(),
                        permitted_event: 0,
                        applied_event: 0,
                        change,
                        time,
                        status: ChangeStatus::Pending,
                        origin,
                        cause,
                        files,
                        preview,
                        verdict: None,
                        agent_message: None,
                        delivery: Delivery::NotTracked,
                        applied: None,
                        skipped_files: Vec::new(),
                        rescued_files: Vec::new(),
                        partial: false,
                        status_event: number,
                    });
                }
                (Some(record), event) => record.apply(number, event),
                (None, _) => {}
            }
        }
        if let Some(record) = &mut record {
            record.partial = record.files.iter().any(|file| record.applied_part(file) != AppliedPart::All);
        }
        record
    }

    /// Returns the applied share of the change proposed for a file.
    pub fn applied_part(&self, file: &FileRecord) -> AppliedPart {
        let Some(applied) = &self.applied else { return AppliedPart::All };
        let chosen = self.verdict.as_ref().is_some_and(|verdict| matches!(verdict.answer, Answer::Files { .. }));
        // A performing agent applies the whole change, unless the verdict selected files or hunks.
        if self.performer == Performer::Agent && !(chosen && self.subject.is_files()) {
            return AppliedPart::All;
        }
        if matches!(self.cause, Cause::Review { .. }) {
            return match applied.steps.iter().find(|step| step.path == file.location) {
                None => AppliedPart::All,
                Some(step) if step.after == file.before => AppliedPart::Nothing,
                Some(_) => AppliedPart::Partial,
            };
        }
        match applied.steps.iter().find(|step| step.path == file.location) {
            _ if file.before == file.after && !matches!(file.operation, Operation::Rename { .. }) => AppliedPart::All,
            None => AppliedPart::Nothing,
            Some(step) if step.after == file.after => AppliedPart::All,
            Some(_) => AppliedPart::Partial,
        }
    }

    fn apply(&mut self, number: u64, event: Event) {
        let status = match event {
            Event::Refreshed { files, preview, reason, .. } => {
                (self.files, self.preview) = (files, preview);
                if let RefreshReason::PredecessorDropped { predecessor } = reason {
                    self.dropped_predecessors.push(predecessor);
                }
                return;
            }
            Event::Permitted { expected, outside, editor, .. } => {
                (self.expected, self.outside, self.permitted_event) = (expected, outside, number);
                self.run_note = editor.map(|editor| format!("applied by {editor}"));
                ChangeStatus::Permitted
            }
            Event::Observed { record, differing_files, uncaptured, .. } => {
                (self.applied, self.applied_event) = (Some(record), number);
                (self.differing_files, self.uncaptured) = (differing_files, uncaptured);
                return;
            }
            Event::Reviewed { by, .. } => {
                self.reviewed = Some(by);
                return;
            }
            Event::Decided { verdict, agent_message, .. } => {
                self.verdict = Some(verdict);
                self.agent_message = Some(agent_message);
                return;
            }
            Event::MessageQueued { .. } => {
                self.delivery = Delivery::Waiting;
                return;
            }
            Event::MessageDelivered { .. } => {
                self.delivery = Delivery::Delivered;
                return;
            }
            Event::Applying { record, note, .. } => {
                (self.applied, self.applied_event) = (Some(record), number);
                self.run_note = note;
                ChangeStatus::Interrupted
            }
            Event::Ended { outcome, agent_message, .. } => {
                self.agent_message = agent_message.or(self.agent_message.take());
                if !matches!(outcome, Outcome::Applied | Outcome::Sent | Outcome::Ran { .. }) {
                    // The plan found the files changed and wrote nothing.
                    self.applied = None;
                }
                match outcome {
                    Outcome::Applied | Outcome::Sent => ChangeStatus::Applied,
                    Outcome::Ran { exit_code, note } => {
                        (self.exit_code, self.run_note) = (exit_code, note);
                        ChangeStatus::Applied
                    }
                    Outcome::Denied => ChangeStatus::Denied,
                    Outcome::Stale { .. } => ChangeStatus::Stale,
                    Outcome::Cancelled => ChangeStatus::Cancelled,
                    Outcome::Failed { reason } => ChangeStatus::Failed { reason },
                }
            }
            Event::Undone { by, paths, .. } if !paths.is_empty() => {
                self.undone_files.extend(paths.into_iter().map(|path| (path, by)));
                let steps = self.applied.as_ref().map_or(&[][..], |applied| &applied.steps);
                if !steps.iter().all(|step| self.undone_files.contains_key(&step.path)) {
                    return;
                }
                ChangeStatus::Undone { by }
            }
            Event::Undone { by, .. } => ChangeStatus::Undone { by },
            Event::Redone { paths, .. } => {
                self.undone_files.retain(|path, _| !paths.is_empty() && !paths.contains(path));
                ChangeStatus::Applied
            }
            Event::Recovered { finished, skipped_files, rescued_files, .. } => {
                (self.skipped_files, self.rescued_files) = (skipped_files, rescued_files);
                if finished {
                    ChangeStatus::Applied
                } else {
                    let reason = "it was interrupted, and rolled back at the next start".to_owned();
                    self.agent_message = Some(failure_message(&reason));
                    self.applied = None;
                    ChangeStatus::Failed { reason }
                }
            }
            _ => return,
        };
        self.status_event = number;
        self.status = status;
    }

    /// Returns the subject with the edits of the approving person.
    pub fn approved(&self) -> Subject {
        match self.verdict.as_ref().map(|verdict| &verdict.answer) {
            Some(Answer::Command { command }) => self.subject.with_command(command),
            Some(Answer::Arguments { arguments }) => self.subject.with_arguments(arguments),
            _ => self.subject.clone(),
        }
    }

    /// Returns the message to the agent if the agent has received it, in the response to its call or through a hook.
    pub fn delivered(&self) -> Option<&str> {
        // A hook answers with a permission only, so the text of a plain approval is never delivered.
        let by_answer = self.performer == Performer::Gate && self.delivery == Delivery::NotTracked;
        self.agent_message.as_deref().filter(|_| by_answer || self.delivery == Delivery::Delivered)
    }

    /// Returns the message to the agent while no hook has delivered it.
    pub fn undelivered(&self) -> Option<&str> {
        self.agent_message.as_deref().filter(|_| self.delivery == Delivery::Waiting)
    }

    /// `true` for the review at the end of a turn.
    pub fn is_review(&self) -> bool {
        matches!(self.cause, Cause::Review { .. })
    }

    /// `true` unless the change undoes or redoes other changes.
    pub fn is_original(&self) -> bool {
        !matches!(self.cause, Cause::Undo { .. } | Cause::Redo { .. })
    }
}
