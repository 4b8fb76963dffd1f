//! The entries of the stream. They are only sent: a client reads them as they are.

use buffa::MessageField;
use sayso_review::{Event, EventBody, Outcome, Recorded, Refresh};

use super::{messages, texts};
use crate::proto;
use crate::proto::oneof::event::Kind;
use crate::proto::refreshed::Why;

impl From<&Recorded> for proto::Event {
    fn from(recorded: &Recorded) -> Self {
        let kind = match &recorded.body {
            EventBody::Known(event) => event.into(),
            EventBody::Unknown(value) => Kind::UnknownJson(value.to_string()),
        };
        Self { number: recorded.number, time_ms: recorded.time, kind: Some(kind), ..Default::default() }
    }
}

impl From<&Event> for Kind {
    fn from(event: &Event) -> Self {
        match event {
            // The intent is the engine's own, to make the preview anew.
            Event::Proposed {
                change,
                origin,
                cause,
                files,
                preview,
                subject,
                ruled,
                performer,
                intent: _,
                deadline,
                after,
            } => proto::Proposed {
                change: *change,
                origin: MessageField::some(origin.into()),
                cause: MessageField::some(cause.into()),
                subject: MessageField::some(subject.into()),
                files: messages(files),
                preview_hash: preview.to_string(),
                ruled: ruled.as_ref().map(|ruled| MessageField::some(ruled.into())).unwrap_or_default(),
                performer: proto::Performer::from(*performer).into(),
                deadline_ms: *deadline,
                after: after.clone(),
                ..Default::default()
            }
            .into(),
            Event::Refreshed { change, files, preview, why } => {
                let (why, before) = match why {
                    Refresh::FilesChanged => (Why::FilesChanged, None),
                    Refresh::Applied { before } => (Why::Applied, Some(*before)),
                    Refresh::Without { before } => (Why::Without, Some(*before)),
                };
                proto::Refreshed {
                    change: *change,
                    files: messages(files),
                    preview_hash: preview.to_string(),
                    why: why.into(),
                    before,
                    ..Default::default()
                }
                .into()
            }
            Event::Decided { change, verdict, told } => proto::Decided {
                change: *change,
                verdict: MessageField::some(verdict.into()),
                told: told.clone(),
                ..Default::default()
            }
            .into(),
            Event::Applying { change, record } => {
                proto::Applying { change: *change, record: MessageField::some(record.into()), ..Default::default() }
                    .into()
            }
            Event::Permitted { change, expected, outside } => {
                let outside = outside.iter().map(|file| proto::OutsideFile {
                    path: file.path.to_string(),
                    before_hash: file.before.map(|hash| hash.to_string()),
                    ..Default::default()
                });
                let (expected, outside) = (messages(expected), outside.collect());
                proto::Permitted { change: *change, expected, outside, ..Default::default() }.into()
            }
            Event::Observed { change, record, differs, uncaptured } => proto::Observed {
                change: *change,
                record: MessageField::some(record.into()),
                differs: texts(differs),
                uncaptured: messages(uncaptured),
                ..Default::default()
            }
            .into(),
            Event::Reviewed { change, by } => proto::Reviewed { change: *change, by: *by, ..Default::default() }.into(),
            Event::Ended { change, outcome, told } => proto::Ended {
                change: *change,
                outcome: MessageField::some(outcome.into()),
                told: told.clone(),
                ..Default::default()
            }
            .into(),
            Event::Undone { change, by, paths } => Self::Undone(Box::new(proto::Reversed {
                change: *change,
                by: *by,
                paths: texts(paths),
                ..Default::default()
            })),
            Event::Redone { change, by, paths } => Self::Redone(Box::new(proto::Reversed {
                change: *change,
                by: *by,
                paths: texts(paths),
                ..Default::default()
            })),
            Event::Recovered { change, finished, left_alone, saved } => proto::Recovered {
                change: *change,
                finished: *finished,
                left_alone: texts(left_alone),
                saved: texts(saved),
                ..Default::default()
            }
            .into(),
            Event::SessionStarted { session, agent, location, parent } => proto::SessionStarted {
                session: session.clone(),
                agent: agent.clone(),
                location: location.clone(),
                parent: parent.clone(),
                ..Default::default()
            }
            .into(),
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
            Event::RuleAdded { session, rule } => proto::RuleAdded {
                session: session.clone(),
                // Of data that always serialises.
                rule_json: serde_json::to_string(rule).unwrap_or_default(),
                ..Default::default()
            }
            .into(),
            Event::Message { session, change, call, text } => proto::Message {
                session: session.clone(),
                change: *change,
                text: text.clone(),
                call: call.clone(),
                ..Default::default()
            }
            .into(),
            Event::Told { session, change, message } => {
                proto::Told { session: session.clone(), change: *change, message: *message, ..Default::default() }
                    .into()
            }
            Event::Delivered { session, through } => {
                proto::Delivered { session: session.clone(), through: *through, ..Default::default() }.into()
            }
            Event::Captured(snapshot) => proto::Captured::from(snapshot).into(),
            Event::Correlated { snapshot, call, session } => proto::Correlated {
                snapshot: *snapshot,
                call: call.clone(),
                session: session.clone(),
                ..Default::default()
            }
            .into(),
            Event::Freed { snapshots, because } => proto::Freed {
                snapshots: snapshots.clone(),
                because: proto::FreedBecause::from(*because).into(),
                ..Default::default()
            }
            .into(),
            Event::Request(request) => proto::RequestEvent::from(request).into(),
            Event::RequestMode(set) => proto::RequestModeSet::from(set).into(),
            Event::Overrides(set) => proto::OverridesSet::from(set).into(),
            Event::RequestLook(look) => proto::RequestLook::from(*look).into(),
        }
    }
}

impl From<&Outcome> for proto::Outcome {
    fn from(outcome: &Outcome) -> Self {
        use proto::outcome::Kind;
        let of = |kind: Kind| Self { kind: kind.into(), ..Default::default() };
        match outcome {
            Outcome::Applied => of(Kind::Applied),
            Outcome::Sent => of(Kind::Sent),
            Outcome::Ran { code, note } => Self { code: *code, reason: note.clone(), ..of(Kind::Ran) },
            Outcome::Denied => of(Kind::Denied),
            Outcome::Stale { files } => Self { files: texts(files), ..of(Kind::Stale) },
            Outcome::Cancelled => of(Kind::Cancelled),
            Outcome::Failed { reason } => Self { reason: Some(reason.clone()), ..of(Kind::Failed) },
        }
    }
}
