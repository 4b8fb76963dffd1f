//! The versions that a diff compares, by its subject.

use std::sync::Arc;

use sayso_api::convert::BadMessage;
use sayso_api::convert::field::oneof;
use sayso_api::proto;
use sayso_diff::Counts;
use sayso_gate::{GateError, History, Reversal};
use sayso_review::{
    Cause, ChangeId, ChangeRecord, ChangeStatus, Content, ContentHash, FileRecord, FileState, Fingerprint, Operation,
    Performer, Preview, Problem, RecordedStep, WsPath,
};

use super::planned::PlanKey;
use crate::caller::Peer;
use crate::change_details;
use crate::failure::Failure;
use crate::host::{Host, now};
use crate::service::{read_target, request};

/// The part of a diff that is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageRequest {
    /// The files, or the first page of a file without a list before it.
    List,
    /// The first page of a file of a list.
    First,
    Later,
}

/// The files of a diff.
#[derive(Debug)]
pub(super) struct DiffedFiles {
    /// Hash of the compared versions.
    pub(super) hash: ContentHash,
    /// In review order.
    pub(super) files: Vec<SubjectFile>,
}

/// The versions of one file.
#[derive(Debug)]
pub(super) struct SubjectFile {
    pub(super) path: String,
    /// Display name of a request's section.
    pub(super) label: Option<String>,
    pub(super) operation: Operation,
    /// The common base, for a conflict. Their version is then `before`, and your version is `after`.
    pub(super) base: Option<Version>,
    pub(super) before: Version,
    pub(super) after: Version,
    /// `None` if they were not recorded.
    pub(super) counts: Option<Counts>,
    pub(super) problem: Option<Problem>,
    /// Paths that policy has to allow an agent to read.
    pub(super) locations: Vec<WsPath>,
}

/// A state of a file. The content is read when it is compared, unless it is at hand.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) fingerprint: Fingerprint,
    content: Option<Content>,
}

impl Version {
    /// Returns the hash of the compared bytes. `None` is an absent file.
    pub(super) fn hash(&self) -> Option<ContentHash> {
        match &self.fingerprint {
            Fingerprint::Absent => None,
            Fingerprint::File { hash, .. } => Some(*hash),
            Fingerprint::Link { target } => Some(ContentHash::of(target.as_bytes())),
        }
    }

    pub(super) fn size(&self) -> u64 {
        match &self.fingerprint {
            Fingerprint::Absent => 0,
            Fingerprint::File { size, .. } => *size,
            Fingerprint::Link { target } => target.len() as u64,
        }
    }

    /// Returns the size of the content in memory.
    pub(super) fn content_bytes(&self) -> usize {
        self.content.as_ref().map_or(0, |content| content.bytes().len())
    }

    /// Returns the bytes to compare. A link is compared by its target. Fails with `ContentGone` if the content was deleted.
    pub(super) fn load(&self, history: History<'_>) -> Result<Option<Content>, GateError> {
        if let Some(content) = &self.content {
            return Ok(Some(content.clone()));
        }
        Ok(match &self.fingerprint {
            Fingerprint::Absent => None,
            Fingerprint::Link { target } => Some(Content::new(target.clone().into_bytes())),
            // The number of the change is not known here, and the caller reports the file instead.
            Fingerprint::File { hash, .. } => {
                Some(Content::new(history.content(*hash)?.ok_or(GateError::ContentGone(0))?))
            }
        })
    }
}

impl From<&Fingerprint> for Version {
    fn from(fingerprint: &Fingerprint) -> Self {
        Self { fingerprint: fingerprint.clone(), content: None }
    }
}

impl From<&FileState> for Version {
    fn from(state: &FileState) -> Self {
        Self { fingerprint: state.fingerprint(), content: state.content().cloned() }
    }
}

impl From<Option<String>> for Version {
    fn from(text: Option<String>) -> Self {
        let state = text.map_or(FileState::Absent, |text| FileState::file(text, sayso_review::FileMode::PLAIN));
        Self::from(&state)
    }
}

/// Finds the versions of a subject. `hash` is that of the list that the client has.
pub(super) fn resolve(
    host: &Host,
    peer: Option<Peer>,
    asked: proto::DiffSubject,
    page: PageRequest,
    hash: Option<&str>,
) -> Result<Arc<DiffedFiles>, Failure> {
    use proto::oneof::diff_subject::Subject as Choice;
    Ok(Arc::new(match oneof(asked.subject.clone(), "subject")? {
        Choice::Change(change) => {
            // The later pages of a file do not look at the tree.
            if page != PageRequest::Later {
                host.gate.refresh_if_stale(change, now())?;
            }
            let record = host.gate.read(|history| history.change(change))?;
            DiffedFiles { hash: record.preview, files: record.files.iter().map(SubjectFile::from).collect() }
        }
        Choice::AppliedChange(change) => applied(&host.gate.read(|history| history.change(change))?),
        Choice::Conflict(change) => conflict(host, change)?,
        Choice::Request(request) => {
            Peer::require_person(peer, &host.agents)?;
            of_texts(request::edited_texts(host, request)?)
        }
        planned @ (Choice::Turn(_) | Choice::Undo(_) | Choice::Redo(_) | Choice::Restore(_)) => {
            // Read before the plan, which may already include later events.
            let last_event = host.gate.last_event();
            let key = hash.map_or(PlanKey::LastEvent(last_event), PlanKey::Hash);
            if page != PageRequest::List
                && let Some(found) = host.diff_plans.find(&asked, key)
            {
                return Ok(found);
            }
            let subject = Arc::new(of_preview(&plan(host, planned)?));
            host.work.diff_plans.add(1);
            host.diff_plans.add(asked, last_event, Arc::clone(&subject));
            return Ok(subject);
        }
    }))
}

/// Computes the net change of a turn, or the plan of a reversal.
fn plan(host: &Host, planned: proto::oneof::diff_subject::Subject) -> Result<Preview, Failure> {
    use proto::oneof::diff_subject::Subject as Choice;
    let target = |reversal: proto::diff_subject::Reversal| {
        let (target, if_changed) = (reversal.target.into_option(), reversal.if_changed);
        read_target(target, if_changed)
    };
    let reversal = match planned {
        Choice::Turn(turn) => return Ok(host.gate.turn_preview(&turn.session, &turn.turn)?),
        Choice::Undo(undo) => {
            let (target, if_changed) = target(*undo)?;
            Reversal::Undo { target, if_changed }
        }
        Choice::Redo(redo) => {
            let (target, if_changed) = target(*redo)?;
            Reversal::Redo { target, if_changed }
        }
        Choice::Restore(snapshot) => Reversal::Restore { snapshot },
        Choice::Change(_) | Choice::AppliedChange(_) | Choice::Conflict(_) | Choice::Request(_) => {
            return Err(BadMessage::new("subject", "it has no plan").into());
        }
    };
    Ok(host.gate.plan(&reversal)?.preview)
}

impl From<&FileRecord> for SubjectFile {
    fn from(file: &FileRecord) -> Self {
        Self {
            path: file.path.to_string(),
            label: None,
            operation: file.operation.clone(),
            base: None,
            before: (&file.before).into(),
            after: (&file.after).into(),
            counts: Some(Counts { added: file.added, removed: file.removed }),
            problem: file.problem.clone(),
            locations: locations(&file.path, &file.location, &file.operation),
        }
    }
}

fn locations(path: &WsPath, location: &WsPath, operation: &Operation) -> Vec<WsPath> {
    let mut locations = vec![path.clone(), location.clone()];
    if let Operation::Rename { from } = operation {
        locations.push(from.clone());
    }
    locations
}

fn of_preview(preview: &Preview) -> DiffedFiles {
    let file = |file: &sayso_review::FilePreview| SubjectFile {
        path: file.path.to_string(),
        label: None,
        operation: file.operation.clone(),
        base: None,
        before: (&file.before).into(),
        after: (&file.after).into(),
        counts: None,
        problem: file.problem.clone(),
        locations: locations(&file.path, &file.location, &file.operation),
    };
    DiffedFiles { hash: preview.hash(), files: preview.files().iter().map(file).collect() }
}

/// The effect of an applied change, as `History::applied_preview` finds it, without reading contents.
fn applied(record: &ChangeRecord) -> DiffedFiles {
    let Some(applied) = &record.applied else {
        return DiffedFiles { hash: record.preview, files: record.files.iter().map(SubjectFile::from).collect() };
    };
    let files: Vec<SubjectFile> = if record.performer == Performer::Agent || !record.subject.is_files() {
        applied.steps.iter().map(of_step).collect()
    } else {
        let applied_file = |file: &FileRecord| {
            let step = applied.steps.iter().find(|step| step.path == file.location)?;
            let counts = (step.after == file.after).then_some(Counts { added: file.added, removed: file.removed });
            Some(SubjectFile { after: (&step.after).into(), counts, ..file.into() })
        };
        record.files.iter().filter_map(applied_file).collect()
    };
    let hash = hash_of(&files);
    DiffedFiles { hash, files }
}

fn of_step(step: &RecordedStep) -> SubjectFile {
    let operation = match (&step.before, &step.after) {
        (Fingerprint::Absent, _) => Operation::Create,
        (_, Fingerprint::Absent) => Operation::Delete,
        _ => Operation::Update,
    };
    SubjectFile {
        path: step.path.to_string(),
        label: None,
        operation,
        base: None,
        before: (&step.before).into(),
        after: (&step.after).into(),
        counts: None,
        problem: None,
        locations: vec![step.path.clone()],
    }
}

/// The versions of the files of a stale change: its old side, the files as they are now, and the approved content.
fn conflict(host: &Host, change: ChangeId) -> Result<DiffedFiles, Failure> {
    let subject = host.gate.read(|history| {
        let record = history.change(change)?;
        let (original, merged) = match (&record.cause, &record.status) {
            (Cause::Rebase { original }, _) => (history.change(*original)?, record),
            (_, ChangeStatus::Stale) => match change_details::merged_change(history, change)? {
                Some(merged) => (record, history.change(merged)?),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let approved = approved_states(history, &original)?;
        let files = merged.files.iter().filter(|file| !file.settled).filter_map(|file| {
            let old = original.files.iter().find(|old| old.location == file.location)?;
            let yours = approved.iter().find(|(path, _)| *path == file.location);
            Some(SubjectFile {
                base: Some((&old.before).into()),
                before: (&file.before).into(),
                after: yours.map_or_else(|| (&old.after).into(), |(_, state)| state.into()),
                ..file.into()
            })
        });
        Ok(Some(DiffedFiles { hash: merged.preview, files: files.collect() }))
    })?;
    subject.ok_or_else(|| {
        let reason = format!("change {change} is neither stale nor a merge of a stale change");
        BadMessage::new("subject.conflict", reason).into()
    })
}

/// The contents that the verdict on a stale change approved. Empty if they cannot be computed any more.
fn approved_states(history: History<'_>, original: &ChangeRecord) -> Result<Vec<(WsPath, FileState)>, GateError> {
    let preview = match history.preview(original) {
        Ok(preview) => preview,
        Err(GateError::ContentGone(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let decided = original.verdict.as_ref().and_then(|verdict| preview.decide(verdict).ok());
    let steps = decided.iter().flat_map(|decision| decision.plan.steps());
    Ok(steps.map(|step| (step.path.clone(), step.after.clone())).collect())
}

/// The edited values of a request.
fn of_texts(edits: Vec<request::EditedText>) -> DiffedFiles {
    let file = |edit: request::EditedText| {
        let operation = match (&edit.old, &edit.new) {
            (None, _) => Operation::Create,
            (_, None) => Operation::Delete,
            _ => Operation::Update,
        };
        SubjectFile {
            path: edit.path,
            label: Some(edit.label),
            operation,
            base: None,
            before: edit.old.into(),
            after: edit.new.into(),
            counts: None,
            problem: None,
            locations: Vec::new(),
        }
    };
    let files: Vec<SubjectFile> = edits.into_iter().map(file).collect();
    DiffedFiles { hash: hash_of(&files), files }
}

/// Hashes the paths and versions of files.
fn hash_of(files: &[SubjectFile]) -> ContentHash {
    let mut text = String::new();
    for file in files {
        // Serializing this data cannot fail.
        let versions = serde_json::to_string(&(&file.path, &file.before.fingerprint, &file.after.fingerprint));
        text.push_str(&versions.unwrap_or_default());
        text.push('\n');
    }
    ContentHash::of(text.as_bytes())
}
