//! Why the engine could not do what it was asked.

use sayso_journal::{AppendError, MaintainError, OpenJournalError, ReadJournalError};
use sayso_review::{ChangeId, ErrorKind, FromNowOnError, PolicyError, ProposalError, VerdictError};
use sayso_workspace::{ApplyError, RecoverError, ScanError};
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
    /// A verdict by an agent about itself.
    #[error("process {process} belongs to an agent (process {agent}), and an agent cannot decide about what it does")]
    AgentDecides {
        /// Who tried.
        process: u32,
        /// The agent.
        agent: u32,
    },
    /// A verdict by a process that the kernel marks as one under the gate.
    #[error(
        "process {0} runs under the gate, as the kernel's marks on it show, and an agent cannot decide about what it does"
    )]
    Marked(u32),
    /// A verdict from another user or PID namespace.
    #[error(
        "process {0} is in another user or PID namespace than the engine, where it cannot be told from an agent, and an agent cannot decide"
    )]
    OtherNamespace(u32),
    /// A verdict by a process about which nothing can be learned.
    #[error("cannot tell process {process} from an agent, and an agent cannot decide: {reason}")]
    Unknown {
        /// The process that tried.
        process: u32,
        /// The kernel's answer.
        reason: String,
    },
    /// What somebody approves, as it is now or as they edited it, is denied by a rule.
    #[error("that is denied by the rule `{rule}`")]
    RuleDenies {
        /// Its name.
        rule: String,
    },
    /// A rule for what comes that does not follow from the verdict.
    #[error("the verdict does not make such a rule")]
    OtherRule,
    /// There is no such session.
    #[error("there is no session `{0}`")]
    NoSuchSession(String),
    /// There is no such request.
    #[error("there is no request {0}")]
    NoSuchRequest(sayso_review::RequestId),
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
    /// Something that cannot be the name of a session.
    #[error("`{}` is no name for a session", .0.escape_debug())]
    BadSession(String),
    /// There is no such snapshot.
    #[error("there is no snapshot {0}")]
    NoSuchSnapshot(String),
    /// A directory that a command cannot run in.
    #[error("the command cannot run there: {0}")]
    BadDirectory(String),
    /// The rules cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A verdict that cannot be made a rule.
    #[error(transparent)]
    FromNowOn(#[from] FromNowOnError),
    /// The tree cannot be captured.
    #[error("the tree cannot be captured before it is changed: {0}")]
    Scan(Box<ScanError<GateError>>),
    /// A file beside the journal cannot be used.
    #[error("`{path}` cannot be written: {reason}")]
    StateFile {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// A preview offers no rehearsal.
    #[error("change {0} offers no dry run")]
    NoDryRun(ChangeId),
    /// What this version does not do.
    #[error("this version does not judge {0}")]
    NotYet(&'static str),
    /// What a change was about is no longer kept.
    #[error("what change {0} was about is no longer kept")]
    ContentGone(ChangeId),
    /// A body of a request is no longer kept.
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
            Self::WrongStatus { .. } => ErrorKind::Conflict,
            Self::ContentGone(_) | Self::BodyGone => ErrorKind::Stale,
            Self::AgentDecides { .. }
            | Self::Marked(_)
            | Self::OtherNamespace(_)
            | Self::Unknown { .. }
            | Self::RuleDenies { .. } => ErrorKind::ToolDenied,
            Self::NoSuchChange(_)
            | Self::NothingTo(_)
            | Self::NoSuchSession(_)
            | Self::NoSuchRequest(_)
            | Self::BadSession(_)
            | Self::NoSuchSnapshot(_)
            | Self::NoDryRun(_)
            | Self::OtherRule
            | Self::NotYet(_) => ErrorKind::InvalidArgs,
            Self::BadDirectory(_) => ErrorKind::FsDenied,
            Self::Policy(error) => error.kind(),
            Self::FromNowOn(error) => error.kind(),
            Self::Scan(error) => error.kind(),
            Self::StateFile { .. } | Self::Thread(_) => ErrorKind::Unavailable,
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
            Self::FromNowOn(error) => Some(error.hint().to_owned()),
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
