//! Why the engine could not do what it was asked.

use sayso_journal::{AppendError, MaintainError, OpenJournalError, ReadJournalError};
use sayso_review::{ChangeId, ErrorKind, ProposalError, VerdictError};
use sayso_workspace::{ApplyError, RecoverError};
use thiserror::Error;

/// Why the engine could not do what it was asked.
#[derive(Debug, Error)]
pub enum GateError {
    /// The proposal cannot be previewed.
    #[error(transparent)]
    Proposal(#[from] ProposalError),
    /// The verdict does not fit.
    #[error(transparent)]
    Verdict(#[from] VerdictError),
    /// The journal cannot be opened.
    #[error(transparent)]
    OpenJournal(#[from] OpenJournalError),
    /// The journal cannot be read.
    #[error(transparent)]
    ReadJournal(#[from] ReadJournalError),
    /// The journal cannot be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The journal cannot be tidied.
    #[error(transparent)]
    Maintain(#[from] MaintainError),
    /// A plan that cannot even be prepared.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// A change that was interrupted cannot be settled.
    #[error("change {change} was interrupted and cannot be settled: {error}")]
    Recover {
        /// The change.
        change: ChangeId,
        /// Why.
        error: RecoverError,
    },
    /// A change that was carried out, of which that could not be recorded.
    #[error("change {change} was applied, but that could not be recorded: {error}")]
    NotRecorded {
        /// The change.
        change: ChangeId,
        /// Why.
        error: Box<GateError>,
    },
    /// There is no such change.
    #[error("there is no change {0}")]
    NoSuchChange(String),
    /// It is not in a state in which this can be done.
    #[error("change {change} cannot be {verb}: it is {status}")]
    WrongStatus {
        /// The change.
        change: ChangeId,
        /// What was asked.
        verb: &'static str,
        /// What it is.
        status: String,
    },
    /// There is nothing to undo or redo.
    #[error("there is nothing to {0}")]
    NothingTo(&'static str),
    /// What a change was about is no longer kept.
    #[error("what change {0} was about is no longer kept")]
    ContentGone(ChangeId),
}

impl GateError {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Proposal(error) => error.kind(),
            Self::Verdict(error) => error.kind(),
            Self::OpenJournal(error) => error.kind(),
            Self::ReadJournal(error) => error.kind(),
            Self::Append(error) => error.kind(),
            Self::Maintain(error) => error.kind(),
            Self::Apply(error) => error.kind(),
            Self::Recover { .. } | Self::NotRecorded { .. } => ErrorKind::Internal,
            Self::NoSuchChange(_) | Self::NothingTo(_) => ErrorKind::InvalidArgs,
            Self::WrongStatus { .. } => ErrorKind::Conflict,
            Self::ContentGone(_) => ErrorKind::Stale,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Proposal(error) => Some(error.hint().to_owned()),
            Self::OpenJournal(error) => error.hint().map(str::to_owned),
            Self::ReadJournal(error) => error.hint().map(str::to_owned),
            Self::Append(error) => error.hint().map(str::to_owned),
            Self::Maintain(error) => error.hint().map(str::to_owned),
            Self::NoSuchChange(_) | Self::NothingTo(_) | Self::WrongStatus { .. } => {
                Some("`sayso log` lists the changes of this workspace".to_owned())
            }
            Self::Verdict(VerdictError::UnknownFile(_) | VerdictError::UnknownHunk { .. }) => {
                Some("name hunks as the preview numbers them: 1,3 or path:1,path:3".to_owned())
            }
            Self::ContentGone(_) => Some("contents are dropped by `sayso gc` when they are old".to_owned()),
            Self::Recover { .. } => {
                Some("the tree may hold part of it; `sayso show` says which files it is about".to_owned())
            }
            Self::NotRecorded { .. } => Some("the next command finds it and records it".to_owned()),
            Self::Verdict(_) | Self::Apply(_) => None,
        }
    }
}
