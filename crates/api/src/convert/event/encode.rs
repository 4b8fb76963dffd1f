//! Conversion of events to messages.

use buffa::MessageField;
use sayso_review::{
    AgentEntry, ApplyRecord, ChangeId, ContentHash, Event, FileRecord, FreeReason, Outcome, OutsideFile, RecordedStep,
    RefreshReason, Rule, SnapshotId, Uncaptured, WsPath,
};

use crate::convert::{messages, texts};
use crate::proto;
use crate::proto::oneof::event::Kind;
use crate::proto::preview_refreshed::Reason;

impl From<&Event> for Kind {
    fn from(event: &Event) -> Self {
        match event {
            // `intent` is left out: only the engine renews a preview.
            Event::Proposed {
                change,
                origin,
                cause,
                files,
                preview,
                subject,
                ruling,
                performer,
                intent: _,
                deadline,
                predecessors,
            } => proto::ChangeProposed {
                change: *change,
                origin: MessageField::some(origin.into()),
                cause: MessageField::some(cause.into()),
                subject: MessageField::some(subject.into()),
                files: messages(files),
                preview_hash: preview.to_string(),
                ruling: ruling.as_ref().map(proto::RulingRecord::from).into(),
                performer: proto::Performer::from(*performer).into(),
                deadline_ms: *deadline,
                predecessors: predecessors.clone(),
                ..Default::default()
            }
            .into(),
            Event::Refreshed { change, files, preview, reason } => refreshed(*change, files, preview, reason),
            Event::Decided { change, verdict, agent_message } => {
                let (verdict, agent_message) = (MessageField::some(verdict.into()), agent_message.clone());
                proto::ChangeDecided { change: *change, verdict, agent_message, ..Default::default() }.into()
            }
            Event::Applying { change, record, note } => {
                let (record, note) = (MessageField::some(record.into()), note.clone());
                proto::ApplyStarted { change: *change, record, note, ..Default::default() }.into()
            }
            Event::Permitted { change, expected, outside, editor } => {
                permitted(*change, expected, outside, editor.as_deref())
            }
            Event::Observed { change, record, differing_files, uncaptured } => {
                observed(*change, record, differing_files, uncaptured)
            }
            Event::Reviewed { change, by } => {
                proto::ChangeReviewed { change: *change, by: *by, ..Default::default() }.into()
            }
            Event::Ended { change, outcome, agent_message } => {
                let (outcome, agent_message) = (MessageField::some(outcome.into()), agent_message.clone());
                proto::ChangeEnded { change: *change, outcome, agent_message, ..Default::default() }.into()
            }
            Event::Undone { change, by, paths } => Self::Undone(Box::new(reversed(*change, *by, paths))),
            Event::Redone { change, by, paths } => Self::Redone(Box::new(reversed(*change, *by, paths))),
            Event::Recovered { change, finished, skipped_files, rescued_files } => {
                recovered(*change, *finished, skipped_files, rescued_files)
            }
            Event::SessionStarted { session, agent, location, parent } => {
                let (agent, location, parent) = (agent.clone(), location.clone(), parent.clone());
                let session = session.clone();
                proto::SessionStarted { session, agent, location, parent, ..Default::default() }.into()
            }
            Event::SessionResumed { session } => {
                proto::SessionResumed { session: session.clone(), ..Default::default() }.into()
            }
            Event::SessionEnded { session } => {
                proto::SessionEnded { session: session.clone(), ..Default::default() }.into()
            }
            Event::TurnStarted { session, turn } => {
                proto::TurnStarted { session: session.clone(), turn: turn.clone(), ..Default::default() }.into()
            }
            Event::TurnEnded { session, turn } => {
                proto::TurnEnded { session: session.clone(), turn: turn.clone(), ..Default::default() }.into()
            }
            Event::RuleAdded { session, rule } => rule_added(session, rule),
            Event::MessageQueued { session, change, call, text } => {
                message_queued(session, *change, call.as_deref(), text)
            }
            Event::MessageDelivered { session, change, message } => {
                let (session, change, message) = (session.clone(), *change, *message);
                proto::MessageDelivered { session, change, message, ..Default::default() }.into()
            }
            Event::Delivered { session, through } => {
                proto::MessagesDelivered { session: session.clone(), through: *through, ..Default::default() }.into()
            }
            Event::SnapshotCaptured(snapshot) => proto::Snapshot::from(snapshot).into(),
            Event::SnapshotCorrelated { snapshot, call, session } => {
                let (snapshot, call, session) = (*snapshot, call.clone(), session.clone());
                proto::SnapshotCorrelated { snapshot, call, session, ..Default::default() }.into()
            }
            Event::SnapshotsFreed { snapshots, reason } => freed(snapshots, *reason),
            Event::Request(event) => proto::RequestEvent::from(event).into(),
            Event::RequestMode(set) => proto::RequestModeSet::from(set).into(),
            Event::Overrides(set) => proto::OverridesSet::from(set).into(),
            Event::RequestViewed(view) => proto::ViewEvent::from(*view).into(),
            Event::HunksSeen { change, path, file, hunks } => hunks_seen(*change, path, file, hunks),
            Event::Agent(entry) => agent_entry(entry),
            Event::ReadThrough { through } => proto::ReadThrough { through: *through, ..Default::default() }.into(),
        }
    }
}

fn agent_entry(entry: &AgentEntry) -> Kind {
    proto::AgentLogEntry {
        session: entry.session.clone(),
        kind: proto::agent_log_entry::Kind::from(entry.kind).into(),
        version: entry.version,
        ..Default::default()
    }
    .into()
}

fn message_queued(session: &str, change: Option<ChangeId>, call: Option<&str>, text: &str) -> Kind {
    let (session, call, text) = (session.to_owned(), call.map(str::to_owned), text.to_owned());
    proto::MessageQueued { session, change, text, call, ..Default::default() }.into()
}

fn hunks_seen(change: ChangeId, path: &WsPath, file: &ContentHash, hunks: &[usize]) -> Kind {
    let hunks = hunks.iter().map(|hunk| *hunk as u64).collect();
    let (path, file_hash) = (path.to_string(), file.to_string());
    proto::HunksSeen { change, path, file_hash, hunks, ..Default::default() }.into()
}

fn refreshed(change: ChangeId, files: &[FileRecord], preview: &ContentHash, reason: &RefreshReason) -> Kind {
    let (reason, predecessor) = match reason {
        RefreshReason::FilesChanged => (Reason::FilesChanged, None),
        RefreshReason::PredecessorApplied { predecessor } => (Reason::PredecessorApplied, Some(*predecessor)),
        RefreshReason::PredecessorDropped { predecessor } => (Reason::PredecessorDropped, Some(*predecessor)),
    };
    proto::PreviewRefreshed {
        change,
        files: messages(files),
        preview_hash: preview.to_string(),
        reason: reason.into(),
        predecessor,
        ..Default::default()
    }
    .into()
}

fn permitted(change: ChangeId, expected: &[RecordedStep], outside: &[OutsideFile], editor: Option<&str>) -> Kind {
    let outside = outside.iter().map(|file| proto::OutsideFile {
        path: file.path.to_string(),
        before_hash: file.before.map(|hash| hash.to_string()),
        ..Default::default()
    });
    let (expected, outside, editor) = (messages(expected), outside.collect(), editor.map(str::to_owned));
    proto::ChangePermitted { change, expected, outside, editor, ..Default::default() }.into()
}

fn observed(change: ChangeId, record: &ApplyRecord, differing: &[WsPath], uncaptured: &[Uncaptured]) -> Kind {
    proto::ChangeObserved {
        change,
        record: MessageField::some(record.into()),
        differing_files: texts(differing),
        uncaptured: messages(uncaptured),
        ..Default::default()
    }
    .into()
}

fn reversed(change: ChangeId, by: ChangeId, paths: &[WsPath]) -> proto::ChangeReversed {
    proto::ChangeReversed { change, by, paths: texts(paths), ..Default::default() }
}

fn recovered(change: ChangeId, completed: bool, skipped: &[WsPath], rescued: &[WsPath]) -> Kind {
    let (skipped_files, rescued_files) = (texts(skipped), texts(rescued));
    proto::ChangeRecovered { change, completed, skipped_files, rescued_files, ..Default::default() }.into()
}

fn rule_added(session: &str, rule: &Rule) -> Kind {
    // A rule always serialises. If it did not, the receiver would reject the event.
    let rule_json = serde_json::to_string(rule).unwrap_or_default();
    proto::RuleAdded { session: session.to_owned(), rule_json, ..Default::default() }.into()
}

fn freed(snapshots: &[SnapshotId], reason: FreeReason) -> Kind {
    let reason = proto::FreeReason::from(reason).into();
    proto::SnapshotsFreed { snapshots: snapshots.to_vec(), reason, ..Default::default() }.into()
}

impl From<&Outcome> for proto::Outcome {
    fn from(outcome: &Outcome) -> Self {
        use proto::outcome::Kind;
        let of = |kind: Kind| Self { kind: kind.into(), ..Default::default() };
        match outcome {
            Outcome::Applied => of(Kind::Applied),
            Outcome::Sent => of(Kind::Sent),
            Outcome::Ran { exit_code, note } => Self { exit_code: *exit_code, reason: note.clone(), ..of(Kind::Ran) },
            Outcome::Denied => of(Kind::Denied),
            Outcome::Stale { files } => Self { files: texts(files), ..of(Kind::Stale) },
            Outcome::Cancelled => of(Kind::Cancelled),
            Outcome::Failed { reason } => Self { reason: Some(reason.clone()), ..of(Kind::Failed) },
        }
    }
}
