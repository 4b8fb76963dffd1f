//! Results of calls, in the types of `review`.

use sayso_review::{
    ApplyRecord, ChangeId, ChangeRecord, ChangeStatus, ContentHash, PlanStep, Preview, SeenMarks, Uncaptured, WsPath,
};

use super::error::ClientError;
use super::inbox::seen_marks;
use crate::proto;
use crate::proto::oneof::remembered_rule::Result as RuleResult;

/// Parts of a preview that a call returns. Contents can be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewDetail {
    Omitted,
    /// All files with their contents.
    Contents,
}

/// A change with its preview and the results of the call that returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeDetails {
    pub record: ChangeRecord,
    /// `None` if not requested, or if its contents are no longer stored.
    pub preview: Option<Preview>,
    /// Approved content for a change that the agent carries out.
    pub plan: Vec<PlanStep>,
    /// The pending change that merges this one with later edits, if it is stale.
    pub merged_change: Option<ChangeId>,
    /// Files with the names of attributes that could not be preserved.
    pub lost_attributes: Vec<(WsPath, Vec<String>)>,
    /// `None` if the verdict asked for no rule.
    pub remembered_rule: Option<RememberedRule>,
    /// Hunks that were on screen.
    pub seen: SeenMarks,
}

/// Result of remembering a verdict as a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RememberedRule {
    /// Kept in memory until the session ends.
    Session,
    /// Appended to this configuration file.
    File(String),
    /// No rule was created; the verdict counts all the same. Holds the reason, for a person.
    Failed(String),
}

/// State of an engine and its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Version of the engine.
    pub version: String,
    /// Process id of the engine.
    pub process: u32,
    /// Root of the workspace.
    pub workspace: String,
    /// Start of the engine, in milliseconds since 1970.
    pub started: i64,
    /// Number of recorded changes.
    pub changes: u64,
    /// Number of pending changes.
    pub pending: u64,
    /// Session and turn of changes that were applied under `later` rules and not reviewed.
    pub turns_to_review: Vec<(String, String)>,
    /// Number of the latest event.
    pub last_event: u64,
    /// Number of attached surfaces.
    pub surfaces: u32,
    /// Number of stored contents. 0 unless requested.
    pub contents: u64,
    /// Disk space of stored contents in bytes. 0 unless requested.
    pub stored_bytes: u64,
    /// Directory of the journal.
    pub journal: String,
    /// Newest first, up to the requested number.
    pub pending_changes: Vec<ChangeRecord>,
    /// `None` unless requested.
    pub last_change: Option<ChangeRecord>,
    /// Address of the HTTP server; `None` if none runs.
    pub url: Option<String>,
    /// Number of requests that are held for a person.
    pub held_requests: u64,
    /// Number of the last event that a person has read; 0 if there is none.
    pub read_through: u64,
}

/// Planned effect of an undo, redo or restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoPlan {
    /// Changes to undo or redo.
    pub changes: Vec<ChangeId>,
    /// A file with a problem blocks the whole plan.
    pub preview: Preview,
    /// Quoted when carrying the plan out, so that exactly this preview is applied.
    pub hash: ContentHash,
    /// Possible effects of the changes that undo cannot revert.
    pub uncaptured: Vec<Uncaptured>,
}

/// Observed effect of a change that the agent carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    pub record: ApplyRecord,
    /// Files whose content differs from the approval.
    pub differing_files: Vec<WsPath>,
    /// Files with their old content although a change was approved.
    pub unchanged: Vec<WsPath>,
    /// Possible changes that undo cannot revert.
    pub uncaptured: Vec<Uncaptured>,
}

impl From<PreviewDetail> for proto::PreviewView {
    fn from(detail: PreviewDetail) -> Self {
        match detail {
            PreviewDetail::Omitted => Self::Unspecified,
            PreviewDetail::Contents => Self::Content,
        }
    }
}

/// Takes a field that the engine always sets.
pub(super) fn required<T>(field: impl Into<Option<T>>, name: &'static str) -> Result<T, ClientError> {
    field.into().ok_or_else(|| ClientError::bad(format!("it has no {name}")))
}

pub(super) fn decode<T, F: TryInto<T>>(part: F) -> Result<T, ClientError>
where
    F::Error: ToString,
{
    part.try_into().map_err(ClientError::bad)
}

pub(super) fn decode_all<T, F: TryInto<T>>(parts: Vec<F>) -> Result<Vec<T>, ClientError>
where
    F::Error: ToString,
{
    parts.into_iter().map(decode).collect()
}

pub(super) fn path(text: &str) -> Result<WsPath, ClientError> {
    WsPath::parse(text).map_err(ClientError::bad)
}

fn paths(texts: &[String]) -> Result<Vec<WsPath>, ClientError> {
    texts.iter().map(|text| path(text)).collect()
}

impl ChangeDetails {
    /// Reads details. The preview of a pending change must have the hash that a verdict quotes: otherwise a person would
    /// decide about bytes that are not on the screen.
    pub(super) fn decode(message: proto::ChangeDetails) -> Result<Self, ClientError> {
        let record: ChangeRecord = decode(required::<proto::Change>(message.change, "change")?)?;
        let preview: Option<Preview> = message.preview.into_option().map(decode).transpose()?;
        if let (Some(preview), ChangeStatus::Pending) = (&preview, &record.status)
            && record.subject.bind(preview.hash()) != record.preview
        {
            return Err(ClientError::bad(format!("the preview of change {} does not match its hash", record.change)));
        }
        let lost = message.lost_attributes.into_iter().map(|lost| Ok((path(&lost.path)?, lost.attributes)));
        Ok(Self {
            preview,
            plan: decode_all(message.plan)?,
            merged_change: message.merged_change,
            lost_attributes: lost.collect::<Result<_, ClientError>>()?,
            remembered_rule: message.remembered_rule.into_option().map(decode).transpose()?,
            seen: seen_marks(&message.seen).map_err(ClientError::bad)?,
            record,
        })
    }

    pub(super) fn decode_field(field: impl Into<Option<proto::ChangeDetails>>) -> Result<Self, ClientError> {
        Self::decode(required::<proto::ChangeDetails>(field, "details")?)
    }
}

impl TryFrom<proto::RememberedRule> for RememberedRule {
    type Error = ClientError;

    fn try_from(rule: proto::RememberedRule) -> Result<Self, ClientError> {
        Ok(match required(rule.result, "result of the rule")? {
            RuleResult::Session(_) => Self::Session,
            RuleResult::File(file) => Self::File(file),
            RuleResult::Failure(reason) => Self::Failed(reason),
        })
    }
}

impl Status {
    pub(super) fn decode(message: proto::StatusResponse) -> Result<Self, ClientError> {
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
            pending_changes: decode_all(message.pending_changes)?,
            last_change: message.last_change.into_option().map(decode).transpose()?,
            url: message.url,
            held_requests: message.held_requests,
            read_through: message.read_through,
        })
    }
}

impl UndoPlan {
    pub(super) fn decode_field(field: impl Into<Option<proto::UndoPlan>>) -> Result<Self, ClientError> {
        let message: proto::UndoPlan = required(field, "plan")?;
        let hash = message.preview_hash.parse().map_err(ClientError::bad)?;
        let preview: Preview = decode(required::<proto::Preview>(message.preview, "preview")?)?;
        if preview.hash() != hash {
            return Err(ClientError::bad("the preview of the plan does not match its hash"));
        }
        let uncaptured = message.uncaptured.into_iter().map(Uncaptured::from).collect();
        Ok(Self { changes: message.changes, preview, hash, uncaptured })
    }
}

impl Finished {
    pub(super) fn decode(message: proto::FinishResponse) -> Result<Self, ClientError> {
        Ok(Self {
            record: decode(required::<proto::ApplyRecord>(message.record, "record")?)?,
            differing_files: paths(&message.differing_files)?,
            unchanged: paths(&message.unchanged)?,
            uncaptured: decode_all(message.uncaptured)?,
        })
    }
}
