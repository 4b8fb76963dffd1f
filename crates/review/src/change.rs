//! A change as its events tell it.

use std::collections::BTreeMap;
use std::fmt;

use sayso_base::{ContentHash, WsPath};
use serde::Serialize;

use crate::event::{
    Cause, ChangeId, Event, EventBody, FileRecord, Origin, Outcome, OutsideFile, Performer, Recorded, Refresh,
    RulingRecord, Subject, Uncaptured,
};
use crate::plan::{ApplyRecord, RecordedStep};
use crate::preview::Operation;
use crate::told::told_failure;
use crate::verdict::{Answer, Verdict};

/// A change as its events tell it: a fold over them and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeRecord {
    /// Its number.
    pub change: ChangeId,
    /// When it was proposed, in milliseconds since 1970.
    pub time: i64,
    /// How it stands.
    #[serde(flatten)]
    pub status: ChangeStatus,
    /// Where it comes from.
    pub origin: Origin,
    /// Why there is one.
    #[serde(flatten)]
    pub cause: Cause,
    /// What it was about.
    pub files: Vec<FileRecord>,
    /// What a verdict on it is bound to.
    pub preview: ContentHash,
    /// What was decided.
    pub verdict: Option<Verdict>,
    /// The message to the agent.
    pub told: Option<String>,
    /// How far that message has come.
    #[serde(skip_serializing_if = "Delivery::is_not_tracked")]
    pub delivery: Delivery,
    /// What happened to the tree.
    pub applied: Option<ApplyRecord>,
    /// Files that a start after a crash found to be neither as before nor as planned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<WsPath>,
    /// Where somebody's work is that was displaced in the moment of a crash.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<WsPath>,
    /// Whether less was approved, or something else, than was proposed.
    pub in_part: bool,
    /// What it is about besides files.
    #[serde(flatten)]
    pub subject: Subject,
    /// What policy said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ruled: Option<RulingRecord>,
    /// Who carries it out.
    pub performer: Performer,
    /// The intent as it came.
    #[serde(skip)]
    pub intent: Option<ContentHash>,
    /// When it is denied if nobody has decided, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Changes of the same files that were waiting when it came.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<ChangeId>,
    /// Those of them that did not happen, although it may have counted on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<ChangeId>,
    /// What whoever carries it out is expected to do to files.
    #[serde(skip)]
    pub expected: Vec<RecordedStep>,
    /// Files outside the workspace that it may write, as they were before.
    #[serde(skip)]
    pub outside: Vec<OutsideFile>,
    /// Files that whoever carried it out left otherwise than was approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<WsPath>,
    /// What may have changed and cannot be put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncaptured: Vec<Uncaptured>,
    /// The review at the end of the turn, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<ChangeId>,
    /// What it ended with, if it is a command that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// How it ran, if it is a command that did not run as usual.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_note: Option<String>,
    /// Files of it that were taken back by themselves, and by which change.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub undone_files: BTreeMap<WsPath, ChangeId>,
    /// The number of the event with which it was let go ahead.
    #[serde(skip)]
    pub permitted: u64,
    /// The number of the event with which it reached the tree.
    #[serde(skip)]
    pub happened: u64,
    /// The number of the event that made it what it is.
    #[serde(skip)]
    pub since: u64,
}

/// How far the message about a change has come on its way to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The answer to the call carries it, or there is nothing to say beyond it.
    #[default]
    NotTracked,
    /// No hook of the agent has carried it yet.
    Waiting,
    /// A hook handed it to the agent.
    Delivered,
}

impl Delivery {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
    fn is_not_tracked(&self) -> bool {
        *self == Self::NotTracked
    }
}

/// How much of a file's change happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    All,
    /// Some of it, or something else.
    Part,
    /// Nothing.
    Nothing,
}

/// How a change stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ChangeStatus {
    /// It waits for a verdict.
    Pending,
    /// A plan was on its way when something ended it.
    Interrupted,
    /// Whoever wanted to do it was let go ahead.
    Permitted,
    /// It is in the tree.
    Applied,
    /// It was taken back.
    Undone {
        /// By this change.
        by: ChangeId,
    },
    /// Nobody wanted it.
    Denied,
    /// The files were no longer those that were shown.
    Stale,
    /// It was withdrawn.
    Cancelled,
    /// It could not be done.
    Failed {
        /// Why.
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
    /// Reads a change from its events, in order. `None` if they do not begin with its proposal.
    pub fn fold(events: impl IntoIterator<Item = Recorded>) -> Option<Self> {
        let mut record: Option<Self> = None;
        for Recorded { number, time, body } in events {
            // What a later version added does not change what this one knows.
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
                        ruled,
                        performer,
                        intent,
                        deadline,
                        after,
                    },
                ) => {
                    record = Some(Self {
                        subject,
                        ruled,
                        performer,
                        intent,
                        deadline,
                        after,
                        without: Vec::new(),
                        expected: Vec::new(),
                        outside: Vec::new(),
                        differs: Vec::new(),
                        uncaptured: Vec::new(),
                        reviewed: None,
                        code: None,
                        run_note: None,
                        undone_files: BTreeMap::new(),
                        permitted: 0,
                        happened: 0,
                        change,
                        time,
                        status: ChangeStatus::Pending,
                        origin,
                        cause,
                        files,
                        preview,
                        verdict: None,
                        told: None,
                        delivery: Delivery::NotTracked,
                        applied: None,
                        left_alone: Vec::new(),
                        saved: Vec::new(),
                        in_part: false,
                        since: number,
                    });
                }
                (Some(record), event) => record.play(number, event),
                (None, _) => {}
            }
        }
        if let Some(record) = &mut record {
            record.in_part = record.files.iter().any(|file| record.extent(file) != Extent::All);
        }
        record
    }

    /// How much of what was proposed for a file is what happened.
    pub fn extent(&self, file: &FileRecord) -> Extent {
        let Some(applied) = &self.applied else { return Extent::All };
        let chosen = self.verdict.as_ref().is_some_and(|verdict| matches!(verdict.answer, Answer::Files { .. }));
        // Of what others did, all was let happen, unless somebody chose from it.
        if self.performer == Performer::Agent && !(chosen && self.subject.is_files()) {
            return Extent::All;
        }
        if matches!(self.cause, Cause::Review { .. }) {
            return match applied.steps.iter().find(|step| step.path == file.location) {
                None => Extent::All,
                Some(step) if step.after == file.before => Extent::Nothing,
                Some(_) => Extent::Part,
            };
        }
        match applied.steps.iter().find(|step| step.path == file.location) {
            _ if file.before == file.after && !matches!(file.operation, Operation::Rename { .. }) => Extent::All,
            None => Extent::Nothing,
            Some(step) if step.after == file.after => Extent::All,
            Some(_) => Extent::Part,
        }
    }

    fn play(&mut self, number: u64, event: Event) {
        let status = match event {
            Event::Refreshed { files, preview, why, .. } => {
                (self.files, self.preview) = (files, preview);
                if let Refresh::Without { before } = why {
                    self.without.push(before);
                }
                return;
            }
            Event::Permitted { expected, outside, .. } => {
                (self.expected, self.outside, self.permitted) = (expected, outside, number);
                ChangeStatus::Permitted
            }
            Event::Observed { record, differs, uncaptured, .. } => {
                (self.applied, self.happened) = (Some(record), number);
                (self.differs, self.uncaptured) = (differs, uncaptured);
                return;
            }
            Event::Reviewed { by, .. } => {
                self.reviewed = Some(by);
                return;
            }
            Event::Decided { verdict, told, .. } => {
                self.verdict = Some(verdict);
                self.told = Some(told);
                return;
            }
            Event::Message { .. } => {
                self.delivery = Delivery::Waiting;
                return;
            }
            Event::Told { .. } => {
                self.delivery = Delivery::Delivered;
                return;
            }
            Event::Applying { record, .. } => {
                (self.applied, self.happened) = (Some(record), number);
                ChangeStatus::Interrupted
            }
            Event::Ended { outcome, told, .. } => {
                self.told = told.or(self.told.take());
                if !matches!(outcome, Outcome::Applied | Outcome::Sent | Outcome::Ran { .. }) {
                    // A plan that found the files changed was on its way and never reached them.
                    self.applied = None;
                }
                match outcome {
                    Outcome::Applied | Outcome::Sent => ChangeStatus::Applied,
                    Outcome::Ran { code, note } => {
                        (self.code, self.run_note) = (code, note);
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
            Event::Recovered { finished, left_alone, saved, .. } => {
                (self.left_alone, self.saved) = (left_alone, saved);
                if finished {
                    ChangeStatus::Applied
                } else {
                    let reason = "it was interrupted, and taken back at the next start".to_owned();
                    self.told = Some(told_failure(&reason));
                    self.applied = None;
                    ChangeStatus::Failed { reason }
                }
            }
            _ => return,
        };
        self.since = number;
        self.status = status;
    }

    /// What it is about besides files, with the edits of whoever approved it.
    pub fn approved(&self) -> Subject {
        match self.verdict.as_ref().map(|verdict| &verdict.answer) {
            Some(Answer::Command { command }) => self.subject.with_command(command),
            Some(Answer::Arguments { arguments }) => self.subject.with_arguments(arguments),
            _ => self.subject.clone(),
        }
    }

    /// The message to the agent, if the agent has it: by the answer to its call, or through a hook.
    pub fn delivered(&self) -> Option<&str> {
        // A hook answers with a permission. The text of a plain approval goes nowhere.
        let by_answer = self.performer == Performer::Gate && self.delivery == Delivery::NotTracked;
        self.told.as_deref().filter(|_| by_answer || self.delivery == Delivery::Delivered)
    }

    /// The message to the agent, if no hook has delivered it yet.
    pub fn undelivered(&self) -> Option<&str> {
        self.told.as_deref().filter(|_| self.delivery == Delivery::Waiting)
    }

    /// Whether it is the review at the end of a turn.
    pub fn is_review(&self) -> bool {
        matches!(self.cause, Cause::Review { .. })
    }

    /// Whether it changed the tree by itself, and not to take back or repeat others.
    pub fn is_original(&self) -> bool {
        !matches!(self.cause, Cause::Undo { .. } | Cause::Redo { .. })
    }
}
