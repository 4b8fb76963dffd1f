//! Every event says over the wire all that it says in the journal.

use proptest::prelude::*;
use sayso_api::convert::BadMessage;
use sayso_api::convert::field::{enumeration, hash, json, list, optional, paths, required};
use sayso_api::proto;
use sayso_api::proto::oneof::event::Kind;
use sayso_review::{Event, EventBody, Outcome, Recorded, Refresh, Uncaptured};
use sayso_review::{OutsideFile, OutsidePath};

use crate::arbitrary;
use crate::round_trip::received;

proptest! {
    #[test]
    fn all_of_an_event_is_sent(event in arbitrary::events(), number in any::<u64>(), time in any::<i64>()) {
        let recorded = Recorded { number, time, body: EventBody::Known(event.clone()) };
        for message in received(proto::Event::from(&recorded)) {
            prop_assert_eq!((message.number, message.time_ms), (number, time));
            prop_assert_eq!(read(message.kind.unwrap()), Ok(event.clone()));
        }
    }

    #[test]
    fn an_event_that_this_version_does_not_know_is_sent_as_it_is(value in arbitrary::json()) {
        let recorded = Recorded { number: 1, time: 2, body: EventBody::Unknown(value.clone()) };
        for message in received(proto::Event::from(&recorded)) {
            let Some(Kind::UnknownJson(text)) = message.kind else { panic!("{message:?}") };
            prop_assert_eq!(&text, &value.to_string());
        }
    }
}

/// What a client could make of an event.
fn read(kind: Kind) -> Result<Event, BadMessage> {
    Ok(match kind {
        Kind::Proposed(event) => Event::Proposed {
            change: event.change,
            origin: required(event.origin, "origin")?,
            cause: required(event.cause, "cause")?,
            files: list(event.files, "files")?,
            preview: hash(&event.preview_hash, "preview_hash")?,
            subject: required(event.subject, "subject")?,
            ruled: optional(event.ruled, "ruled")?,
            performer: enumeration(event.performer, "performer")?,
            intent: None,
            deadline: event.deadline_ms,
            after: event.after,
        },
        Kind::Refreshed(event) => Event::Refreshed {
            change: event.change,
            files: list(event.files, "files")?,
            preview: hash(&event.preview_hash, "preview_hash")?,
            why: match enumeration::<_, proto::refreshed::Why>(event.why, "why")? {
                proto::refreshed::Why::Unspecified => panic!("it is said"),
                proto::refreshed::Why::FilesChanged => Refresh::FilesChanged,
                proto::refreshed::Why::Applied => Refresh::Applied { before: event.before.unwrap() },
                proto::refreshed::Why::Without => Refresh::Without { before: event.before.unwrap() },
            },
        },
        Kind::Decided(event) => {
            Event::Decided { change: event.change, verdict: required(event.verdict, "verdict")?, told: event.told }
        }
        Kind::Applying(event) => Event::Applying { change: event.change, record: required(event.record, "record")? },
        Kind::Permitted(event) => {
            let outside = event.outside.into_iter().map(|file| OutsideFile {
                path: OutsidePath::parse(&file.path).unwrap(),
                before: file.before_hash.map(|hash| hash.parse().unwrap()),
            });
            let (expected, outside) = (list(event.expected, "expected")?, outside.collect());
            Event::Permitted { change: event.change, expected, outside }
        }
        Kind::Observed(event) => Event::Observed {
            change: event.change,
            record: required(event.record, "record")?,
            differs: paths(&event.differs, "differs")?,
            uncaptured: event.uncaptured.into_iter().map(Uncaptured::from).collect(),
        },
        Kind::Reviewed(event) => Event::Reviewed { change: event.change, by: event.by },
        Kind::Ended(event) => {
            Event::Ended { change: event.change, outcome: outcome(event.outcome.unwrap())?, told: event.told }
        }
        Kind::Undone(event) => {
            Event::Undone { change: event.change, by: event.by, paths: paths(&event.paths, "paths")? }
        }
        Kind::Redone(event) => {
            Event::Redone { change: event.change, by: event.by, paths: paths(&event.paths, "paths")? }
        }
        Kind::Recovered(event) => Event::Recovered {
            change: event.change,
            finished: event.finished,
            left_alone: paths(&event.left_alone, "left_alone")?,
            saved: paths(&event.saved, "saved")?,
        },
        Kind::SessionStarted(event) => Event::SessionStarted {
            session: event.session,
            agent: event.agent,
            location: event.location,
            parent: event.parent,
        },
        Kind::SessionResumed(event) => Event::SessionResumed { session: event.session },
        Kind::SessionEnded(event) => Event::SessionEnded { session: event.session },
        Kind::TurnStarted(event) => Event::TurnStarted { session: event.session, turn: event.turn },
        Kind::TurnEnded(event) => Event::TurnEnded { session: event.session, turn: event.turn },
        Kind::RuleAdded(event) => {
            Event::RuleAdded { session: event.session, rule: json(&event.rule_json, "rule_json")? }
        }
        Kind::Message(event) => {
            Event::Message { session: event.session, change: event.change, call: event.call, text: event.text }
        }
        Kind::Told(event) => Event::Told { session: event.session, change: event.change, message: event.message },
        Kind::Delivered(event) => Event::Delivered { session: event.session, through: event.through },
        Kind::Captured(event) => Event::Captured((*event).try_into()?),
        Kind::Correlated(event) => {
            Event::Correlated { snapshot: event.snapshot, call: event.call, session: event.session }
        }
        Kind::Freed(event) => {
            Event::Freed { snapshots: event.snapshots, because: enumeration(event.because, "because")? }
        }
        Kind::Request(event) => Event::Request((*event).try_into()?),
        Kind::RequestMode(set) => Event::RequestMode((*set).try_into()?),
        Kind::RequestLook(look) => Event::RequestLook((*look).try_into()?),
        Kind::Overrides(set) => Event::Overrides((*set).into()),
        Kind::UnknownJson(json) => panic!("it is known: {json}"),
    })
}

fn outcome(outcome: proto::Outcome) -> Result<Outcome, BadMessage> {
    use proto::outcome::Kind;
    Ok(match enumeration::<_, Kind>(outcome.kind, "kind")? {
        Kind::Unspecified => panic!("it is said"),
        Kind::Applied => Outcome::Applied,
        Kind::Sent => Outcome::Sent,
        Kind::Ran => Outcome::Ran { code: outcome.code, note: outcome.reason },
        Kind::Denied => Outcome::Denied,
        Kind::Stale => Outcome::Stale { files: paths(&outcome.files, "files")? },
        Kind::Cancelled => Outcome::Cancelled,
        Kind::Failed => Outcome::Failed { reason: outcome.reason.unwrap() },
    })
}
