//! A change as its events tell it.

use std::fmt;

use sayso_review::{
    ApplyRecord, Cause, ChangeId, ContentHash, Event, EventBody, FileRecord, Operation, Origin, Outcome, Recorded,
    Verdict, WsPath, told_failure,
};
use serde::Serialize;

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
    /// What the agent was told.
    pub told: Option<String>,
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
    /// The number of the event that made it what it is.
    #[serde(skip)]
    pub(crate) since: u64,
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
    pub(crate) fn fold(events: impl IntoIterator<Item = Recorded>) -> Option<Self> {
        let mut record: Option<Self> = None;
        for Recorded { number, time, body } in events {
            // What a later version added does not change what this one knows.
            let EventBody::Known(event) = body else { continue };
            match (&mut record, event) {
                (None, Event::Proposed { change, origin, cause, files, preview }) => {
                    record = Some(Self {
                        change,
                        time,
                        status: ChangeStatus::Pending,
                        origin,
                        cause,
                        files,
                        preview,
                        verdict: None,
                        told: None,
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
        match applied.steps.iter().find(|step| step.path == file.location) {
            _ if file.before == file.after && !matches!(file.operation, Operation::Rename { .. }) => Extent::All,
            None => Extent::Nothing,
            Some(step) if step.after == file.after => Extent::All,
            Some(_) => Extent::Part,
        }
    }

    fn play(&mut self, number: u64, event: Event) {
        let status = match event {
            Event::Proposed { .. } => return,
            Event::Decided { verdict, told, .. } => {
                self.verdict = Some(verdict);
                self.told = Some(told);
                return;
            }
            Event::Applying { record, .. } => {
                self.applied = Some(record);
                ChangeStatus::Interrupted
            }
            Event::Ended { outcome, told, .. } => {
                self.told = told.or(self.told.take());
                match outcome {
                    Outcome::Applied | Outcome::Sent | Outcome::Ran => ChangeStatus::Applied,
                    Outcome::Denied => ChangeStatus::Denied,
                    Outcome::Stale { .. } => ChangeStatus::Stale,
                    Outcome::Cancelled => ChangeStatus::Cancelled,
                    Outcome::Failed { reason } => ChangeStatus::Failed { reason },
                }
            }
            Event::Undone { by, .. } => ChangeStatus::Undone { by },
            Event::Redone { .. } => ChangeStatus::Applied,
            Event::Recovered { finished, left_alone, saved, .. } => {
                (self.left_alone, self.saved) = (left_alone, saved);
                if finished {
                    ChangeStatus::Applied
                } else {
                    let reason = "it was interrupted, and taken back at the next start".to_owned();
                    self.told = Some(told_failure(&reason));
                    ChangeStatus::Failed { reason }
                }
            }
        };
        self.since = number;
        self.status = status;
    }

    /// Whether it changed the tree by itself, and not to take back or repeat others.
    pub fn is_original(&self) -> bool {
        matches!(self.cause, Cause::Proposal | Cause::Rebase { .. })
    }
}
