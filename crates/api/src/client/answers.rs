//! What calls return, in the words of `review`.

use sayso_review::{
    ApplyRecord, ChangeId, ChangeRecord, ChangeStatus, ContentHash, PlanStep, Preview, Uncaptured, WsPath,
};

use super::error::ClientError;
use crate::proto;

/// How much of a preview is wanted. Contents can be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// No preview.
    Nothing,
    /// All of it.
    Content,
}

/// How far a change has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The change as it stands.
    pub record: ChangeRecord,
    /// What it would do, or did, to files; only if it was asked for, and is still kept.
    pub preview: Option<Preview>,
    /// What was approved of the files, if somebody else carries it out.
    pub plan: Vec<PlanStep>,
    /// If files changed after they were shown: the change in which both changes together wait.
    pub next: Option<ChangeId>,
    /// What a file had besides its content that could not be kept.
    pub lost: Vec<(WsPath, Vec<String>)>,
    /// Where a rule for what comes was written, for a person.
    pub rule_kept: Option<String>,
}

/// How an engine and its workspace stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The version of sayso that runs the engine.
    pub version: String,
    /// The process that the engine is in.
    pub process: u32,
    /// The workspace's root.
    pub workspace: String,
    /// When the engine started, in milliseconds since 1970.
    pub started: i64,
    /// How many changes there were.
    pub changes: u64,
    /// How many wait for a verdict.
    pub pending: u64,
    /// Sessions and turns in which something happened at once that nobody has looked at.
    pub turns_to_review: Vec<(String, String)>,
    /// The number of the last event.
    pub last_event: u64,
    /// How many surfaces are attached.
    pub surfaces: u32,
    /// How many contents are kept.
    pub contents: u64,
    /// How much disk they take.
    pub stored_bytes: u64,
    /// The folder of the journal.
    pub journal: String,
    /// What waits, as far as it was asked for.
    pub waiting: Vec<ChangeRecord>,
    /// The last change.
    pub last: Option<ChangeRecord>,
    /// The address of the HTTP server, if there is one.
    pub url: Option<String>,
    /// How many requests to models wait for a person.
    pub requests_waiting: u64,
}

/// What an undo, a redo or a restore would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoPlan {
    /// The changes that it takes back or makes again.
    pub of: Vec<ChangeId>,
    /// What it would do to files. A file with a problem makes the whole of it impossible.
    pub preview: Preview,
    /// What carrying it out names, so that what was shown is what happens.
    pub hash: ContentHash,
    /// What may have changed with the changes that it takes back, and cannot be put back.
    pub uncaptured: Vec<Uncaptured>,
}

/// What somebody did who was let go ahead.
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

impl From<View> for proto::PreviewView {
    fn from(view: View) -> Self {
        match view {
            View::Nothing => Self::Unspecified,
            View::Content => Self::Content,
        }
    }
}

/// What a message has to have.
pub(super) fn required<T>(field: impl Into<Option<T>>, name: &'static str) -> Result<T, ClientError> {
    field.into().ok_or_else(|| ClientError::bad(format!("it has no {name}")))
}

/// Understands a part of an answer.
pub(super) fn understood<T, F: TryInto<T>>(part: F) -> Result<T, ClientError>
where
    F::Error: ToString,
{
    part.try_into().map_err(ClientError::bad)
}

/// Understands parts of an answer.
pub(super) fn each<T, F: TryInto<T>>(parts: Vec<F>) -> Result<Vec<T>, ClientError>
where
    F::Error: ToString,
{
    parts.into_iter().map(understood).collect()
}

pub(super) fn path(text: &str) -> Result<WsPath, ClientError> {
    WsPath::parse(text).map_err(ClientError::bad)
}

impl Progress {
    /// Understands how far a change has come. What is shown has to be what a verdict would be about.
    pub(super) fn read(message: proto::Progress) -> Result<Self, ClientError> {
        let record: ChangeRecord = understood(required::<proto::Change>(message.change, "change")?)?;
        let preview: Option<Preview> = message.preview.into_option().map(understood).transpose()?;
        if let (Some(preview), ChangeStatus::Pending) = (&preview, &record.status)
            && record.subject.bind(preview.hash()) != record.preview
        {
            return Err(ClientError::bad(format!("what it shows of change {} is not what waits", record.change)));
        }
        let lost = message.lost.into_iter().map(|lost| Ok((path(&lost.path)?, lost.what)));
        Ok(Self {
            preview,
            plan: each(message.plan)?,
            next: message.next,
            lost: lost.collect::<Result<_, ClientError>>()?,
            rule_kept: message.rule_kept,
            record,
        })
    }

    pub(super) fn of(field: impl Into<Option<proto::Progress>>) -> Result<Self, ClientError> {
        Self::read(required::<proto::Progress>(field, "progress")?)
    }
}

impl Status {
    pub(super) fn read(message: proto::StatusResponse) -> Result<Self, ClientError> {
        Ok(Self {
            version: message.version,
            process: message.process,
            workspace: message.workspace,
            started: message.started_ms,
            changes: message.changes,
            pending: message.pending,
            turns_to_review: message.turns_to_review.into_iter().map(|turn| (turn.session, turn.turn)).collect(),
            last_event: message.last_event,
            surfaces: message.surfaces,
            contents: message.contents,
            stored_bytes: message.stored_bytes,
            journal: message.journal,
            waiting: each(message.waiting)?,
            last: message.last.into_option().map(understood).transpose()?,
            url: message.url,
            requests_waiting: message.requests_waiting,
        })
    }
}

impl UndoPlan {
    pub(super) fn read(field: impl Into<Option<proto::UndoPlan>>) -> Result<Self, ClientError> {
        let message: proto::UndoPlan = required(field, "plan")?;
        let hash = message.preview_hash.parse().map_err(ClientError::bad)?;
        let preview: Preview = understood(required::<proto::Preview>(message.preview, "preview")?)?;
        if preview.hash() != hash {
            return Err(ClientError::bad("what it shows is not what would happen"));
        }
        let uncaptured = message.uncaptured.into_iter().map(Uncaptured::from).collect();
        Ok(Self { of: message.of, preview, hash, uncaptured })
    }
}

impl Finished {
    pub(super) fn read(message: proto::FinishResponse) -> Result<Self, ClientError> {
        Ok(Self {
            record: understood(required::<proto::ApplyRecord>(message.record, "record")?)?,
            differs: message.differs.iter().map(|text| path(text)).collect::<Result<_, _>>()?,
            unchanged: message.unchanged.iter().map(|text| path(text)).collect::<Result<_, _>>()?,
            uncaptured: each(message.uncaptured)?,
        })
    }
}
