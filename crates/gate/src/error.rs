//! Errors of the engine's operations.

use sayso_journal::{AppendError, MaintainError, OpenJournalError, ReadJournalError};
use sayso_review::{ChangeId, ErrorKind, PolicyError, ProposalError, RememberError, VerdictError};
use sayso_workspace::{ApplyError, RecoverError, ScanError};
use thiserror::Error;

/// Errors of the engine's operations.
#[derive(Debug, Error)]
pub enum GateError {
    #[error(transparent)]
    Proposal(#[from] ProposalError),
    #[error(transparent)]
    Verdict(#[from] VerdictError),
    #[error(transparent)]
    OpenJournal(#[from] OpenJournalError),
    #[error(transparent)]
    ReadJournal(#[from] ReadJournalError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Maintain(#[from] MaintainError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The tree can neither be completed nor restored after a crash.
    #[error("change {change} was interrupted and cannot be settled: {error}")]
    Recover { change: ChangeId, error: RecoverError },
    /// The files were written, but the journal could not record it.
    #[error("change {change} was applied, but that could not be recorded: {error}")]
    NotRecorded { change: ChangeId, error: Box<GateError> },
    #[error("there is no change {0}")]
    NoSuchChange(String),
    /// The change's status does not permit the operation.
    #[error("change {change} cannot be {verb}: it is {status}")]
    WrongStatus {
        change: ChangeId,
        /// Past participle for the message, such as `finished`.
        verb: &'static str,
        status: String,
    },
    /// No change can be undone or redone.
    #[error("there is nothing to {0}")]
    NothingTo(&'static str),
    /// The process that sent a verdict is an agent or descends from one.
    #[error("process {process} belongs to an agent (process {agent}), and an agent cannot decide about what it does")]
    AgentDecides {
        /// Number of the process that sent the verdict.
        process: u32,
        /// Number of the agent's process.
        agent: u32,
    },
    /// The process that sent a verdict carries the kernel marks of a command under the gate.
    #[error(
        "process {0} runs under the gate, as the kernel's marks on it show, and an agent cannot decide about what it does"
    )]
    Marked(u32),
    /// The process that sent a verdict is in another user or PID namespace than the engine.
    #[error(
        "process {0} is in another user or PID namespace than the engine, where it cannot be told from an agent, and an agent cannot decide"
    )]
    OtherNamespace(u32),
    /// The engine cannot learn anything about the process that sent a verdict.
    #[error("cannot tell process {process} from an agent, and an agent cannot decide: {reason}")]
    Unknown {
        process: u32,
        /// Error of the kernel.
        reason: String,
    },
    /// A rule denies the approved action, possibly after an edit of the command.
    #[error("that is denied by the rule `{rule}`")]
    RuleDenies { rule: String },
    /// The rule to remember has the opposite ruling, or the verdict decides file by file.
    #[error("cannot make a rule: the rule has to allow or deny the whole change, as the verdict does")]
    OtherRule,
    #[error("`{path}` has no hunk {hunk}")]
    NoSuchHunk { path: String, hunk: usize },
    #[error("there is no session `{0}`")]
    NoSuchSession(String),
    #[error("there is no request {0}")]
    NoSuchRequest(sayso_review::RequestId),
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
    /// The id of a session is empty or has control characters.
    #[error("`{}` is no name for a session", .0.escape_debug())]
    BadSession(String),
    #[error("there is no snapshot {0}")]
    NoSuchSnapshot(String),
    /// The directory of a command is not in the workspace.
    #[error("the command cannot run there: {0}")]
    BadDirectory(String),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Remember(#[from] RememberError),
    #[error("the tree cannot be captured before it is changed: {0}")]
    Scan(Box<ScanError<GateError>>),
    /// A file beside the journal cannot be written.
    #[error("`{path}` cannot be written: {reason}")]
    StateFile { path: String, reason: String },
    /// The preview offers no dry run.
    #[error("change {0} offers no dry run")]
    NoDryRun(ChangeId),
    /// This version has no preview for intents of this kind.
    #[error("this version does not judge {0}")]
    NotYet(&'static str),
    /// The contents of the change were deleted.
    #[error("what change {0} was about is no longer kept")]
    ContentGone(ChangeId),
    /// The body of a request was deleted.
    #[error("that body is no longer kept")]
    BodyGone,
}

impl From<ScanError<GateError>> for GateError {
    fn from(error: ScanError<GateError>) -> Self {
        match error {
            ScanError::Contents(error) => error,
            error => Self::Scan(Box::new(error)),
        }
    }
}

impl GateError {
    pub(crate) fn state_file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::StateFile { path: path.display().to_string(), reason: error.to_string() }
    }

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
            Self::WrongStatus { .. } => ErrorKind::Conflict,
            Self::ContentGone(_) | Self::BodyGone => ErrorKind::Stale,
            Self::AgentDecides { .. }
            | Self::Marked(_)
            | Self::OtherNamespace(_)
            | Self::Unknown { .. }
            | Self::RuleDenies { .. } => ErrorKind::ToolDenied,
            Self::NoSuchChange(_)
            | Self::NothingTo(_)
            | Self::NoSuchHunk { .. }
            | Self::NoSuchSession(_)
            | Self::NoSuchRequest(_)
            | Self::BadSession(_)
            | Self::NoSuchSnapshot(_)
            | Self::NoDryRun(_)
            | Self::OtherRule
            | Self::NotYet(_) => ErrorKind::InvalidArgs,
            Self::BadDirectory(_) => ErrorKind::FsDenied,
            Self::Policy(error) => error.kind(),
            Self::Remember(error) => error.kind(),
            Self::Scan(error) => error.kind(),
            Self::StateFile { .. } | Self::Thread(_) => ErrorKind::Unavailable,
        }
    }

    /// Returns advice for the user, if there is any.
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
            Self::NoSuchHunk { .. } => Some("name hunks as GetChange numbers them, from 1".to_owned()),
            Self::Verdict(VerdictError::UnknownFile(_) | VerdictError::UnknownHunk { .. }) => {
                Some("name hunks as the preview numbers them: 1,3 or path:1,path:3".to_owned())
            }
            Self::ContentGone(_) | Self::BodyGone => {
                Some("contents are dropped by `sayso gc` when they are old".to_owned())
            }
            Self::Recover { .. } => {
                Some("the tree may hold part of it; `sayso show` says which files it is about".to_owned())
            }
            Self::NotRecorded { .. } => Some("the next command finds it and records it".to_owned()),
            Self::AgentDecides { .. } => Some("decide in a terminal that the agent did not start".to_owned()),
            Self::Marked(_) => Some(
                "decide in a terminal that the agent did not start; one inside Flatpak or another sandbox looks the same"
                    .to_owned(),
            ),
            Self::OtherNamespace(_) => Some("decide in a terminal beside the engine, outside any container".to_owned()),
            Self::Unknown { .. } => Some("stay connected until the response arrives".to_owned()),
            Self::RuleDenies { .. } => Some("`sayso policy explain` says which rule that is and why".to_owned()),
            Self::BadDirectory(_) => Some("name a directory of the workspace".to_owned()),
            Self::Policy(error) => Some(error.hint().to_owned()),
            Self::Remember(error) => Some(error.hint().to_owned()),
            Self::Scan(error) => error.hint().map(str::to_owned),
            Self::StateFile { .. } => Some("look at the disk's free space and the folder's permissions".to_owned()),
            Self::NoSuchSnapshot(_) => Some("`sayso snapshot` lists what is kept".to_owned()),
            Self::NoSuchRequest(_) => Some("`sayso request list` lists them".to_owned()),
            Self::NoSuchSession(_) => Some("`sayso status` lists the sessions".to_owned()),
            Self::Verdict(_)
            | Self::Apply(_)
            | Self::Thread(_)
            | Self::BadSession(_)
            | Self::NoDryRun(_)
            | Self::OtherRule
            | Self::NotYet(_) => None,
        }
    }
}
