//! Items of the inbox, built from records.

use sayso_api::convert;
use sayso_api::proto::inbox_item::{ChangeSubject, RequestSubject, TurnSubject};
use sayso_api::proto::{self, InboxItem};
use sayso_present::change::change_summary;
use sayso_present::inbox::{request_summary, turn_summary};
use sayso_review::{ChangeId, ChangeRecord, FileRecord, Note, RequestId, RequestRecord, SeenMarks, Severity, Subject};

/// Largest number of notes of an item.
const MAX_NOTES: usize = 50;

pub(super) fn change_key(change: ChangeId) -> String {
    format!("change:{change}")
}

pub(super) fn turn_key(session: &str, turn: &str) -> String {
    format!("turn:{session}/{turn}")
}

pub(super) fn request_key(request: RequestId) -> String {
    format!("request:{request}")
}

/// Builds the item of a change. `reason` is the agent's last text before it.
pub(super) fn change_item(
    record: &ChangeRecord,
    marks: &SeenMarks,
    location: Option<String>,
    reason: Option<String>,
) -> InboxItem {
    let subject =
        ChangeSubject { change: record.change, preview_hash: record.preview.to_string(), ..Default::default() };
    let item = InboxItem {
        key: change_key(record.change),
        subject: Some(subject.into()),
        summary: change_summary(record),
        agent: record.origin.agent.clone(),
        session: record.origin.session.clone(),
        location,
        agent_reason: reason.or_else(|| description(&record.subject)),
        deadline_ms: record.deadline,
        since_ms: record.time,
        seen: convert::seen(marks),
        ..Default::default()
    };
    with_files(item, &record.files, subject_severity(&record.subject))
}

/// Builds the item of a turn. `records` are its changes to review, oldest first.
pub(super) fn turn_item(
    (session, turn): &(String, String),
    records: &[&ChangeRecord],
    review: Option<&ChangeRecord>,
    location: Option<String>,
    agent_reason: Option<String>,
) -> InboxItem {
    let subject = TurnSubject {
        session: session.clone(),
        turn: turn.clone(),
        changes: records.iter().map(|record| record.change).collect(),
        review: review.map(|review| review.change),
        ..Default::default()
    };
    let item = InboxItem {
        key: turn_key(session, turn),
        subject: Some(subject.into()),
        summary: review.map_or_else(|| turn_summary(records), change_summary),
        agent: records.iter().find_map(|record| record.origin.agent.clone()),
        session: Some(session.clone()),
        location,
        agent_reason,
        since_ms: records.first().map_or(0, |record| record.time),
        ..Default::default()
    };
    if let Some(review) = review {
        return with_files(item, &review.files, Severity::Info);
    }
    let severity = records.iter().map(|record| subject_severity(&record.subject)).max();
    with_files(item, records.iter().flat_map(|record| &record.files), severity.unwrap_or(Severity::Info))
}

pub(super) fn request_item(
    record: &RequestRecord,
    location: Option<String>,
    agent_reason: Option<String>,
) -> InboxItem {
    let origin = &record.received.origin;
    InboxItem {
        key: request_key(record.request),
        subject: Some(RequestSubject { request: record.request, ..Default::default() }.into()),
        summary: request_summary(record),
        agent: origin.agent.clone(),
        session: origin.session.clone(),
        location,
        agent_reason,
        severity: proto::Severity::Info.into(),
        deadline_ms: record.deadline,
        since_ms: record.time,
        ..Default::default()
    }
}

/// Adds counts, notes and the severity.
fn with_files<'r>(
    item: InboxItem,
    files: impl IntoIterator<Item = &'r FileRecord>,
    subject_severity: Severity,
) -> InboxItem {
    let (mut notes, mut paths) = (Vec::new(), std::collections::BTreeSet::new());
    let (mut added, mut removed) = (0, 0);
    for file in files {
        paths.insert(&file.path);
        added += file.added as u64;
        removed += file.removed as u64;
        notes.extend(&file.notes);
    }
    notes.sort_by_key(|note| std::cmp::Reverse(note.severity()));
    let severity = notes.first().map_or(Severity::Info, |note| note.severity()).max(subject_severity);
    InboxItem {
        severity: proto::Severity::from(severity).into(),
        notes: notes.into_iter().take(MAX_NOTES).map(|note: &Note| proto::Note::from(note)).collect(),
        files: paths.len() as u64,
        added,
        removed,
        ..item
    }
}

fn subject_severity(subject: &Subject) -> Severity {
    match subject {
        Subject::Command { preview, .. } => preview.severity(),
        Subject::Files | Subject::Tool { .. } => Severity::Info,
    }
}

/// The agent's own description of a command or tool call.
fn description(subject: &Subject) -> Option<String> {
    match subject {
        Subject::Files => None,
        Subject::Command { description, .. } => description.clone(),
        Subject::Tool { arguments, .. } => arguments.get("description")?.as_str().map(str::to_owned),
    }
}
