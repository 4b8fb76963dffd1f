//! Events survive the wire in both directions.

use proptest::prelude::*;
use sayso_api::proto;
use sayso_api::proto::oneof::event::Kind;
use sayso_review::{ChangeRecord, EventBody, Recorded};
use serde_json::json;

use crate::arbitrary;
use crate::round_trip::received;

proptest! {
    #[test]
    fn event_round_trips(event in arbitrary::events(), number in any::<u64>(), time in any::<i64>()) {
        let recorded = Recorded { number, time, body: EventBody::Known(event) };
        for message in received(proto::Event::from(&recorded)) {
            let decoded = Recorded::try_from(message);
            prop_assert_eq!(decoded.as_ref(), Ok(&recorded));
        }
    }

    #[test]
    fn unknown_event_round_trips_as_json(value in arbitrary::json()) {
        let recorded = Recorded { number: 1, time: 2, body: EventBody::Unknown(value) };
        for message in received(proto::Event::from(&recorded)) {
            let decoded = Recorded::try_from(message);
            prop_assert_eq!(decoded.as_ref(), Ok(&recorded));
        }
    }

    /// A surface folds what it receives. The result must equal the record that the engine sends for the same change.
    #[test]
    fn received_events_fold_to_the_same_record(events in proptest::collection::vec(arbitrary::events(), 1..8)) {
        let recorded: Vec<Recorded> = (1_u64..)
            .zip(events)
            .map(|(number, event)| Recorded { number, time: 0, body: EventBody::Known(event) })
            .collect();
        let decoded: Vec<Recorded> =
            recorded.iter().map(|event| proto::Event::from(event).try_into().unwrap()).collect();
        prop_assert_eq!(ChangeRecord::fold(decoded), ChangeRecord::fold(recorded));
    }
}

#[test]
fn event_of_unknown_kind_keeps_its_number() {
    let message = proto::Event { number: 9, time_ms: 5, ..Default::default() };
    let recorded = Recorded { number: 9, time: 5, body: EventBody::Unknown(json!({})) };
    assert_eq!(Recorded::try_from(message), Ok(recorded));
}

#[test]
fn invalid_event_field_is_named() {
    let field = |kind: Kind| {
        let event = proto::Event { kind: Some(kind), ..Default::default() };
        Recorded::try_from(event).unwrap_err().field
    };
    assert_eq!(field(proto::ChangeEnded::default().into()), "ended.outcome");
    assert_eq!(field(proto::ApplyStarted::default().into()), "applying.record");
    assert_eq!(field(proto::ChangeProposed::default().into()), "proposed.origin");
    assert_eq!(field(proto::RuleAdded::default().into()), "rule_added.rule_json");
    assert_eq!(field(proto::SnapshotsFreed::default().into()), "snapshots_freed.reason");
    assert_eq!(field(proto::RequestEvent::default().into()), "request.step");
    assert_eq!(field(Kind::UnknownJson("{".to_owned())), "unknown_json");
    let refreshed = proto::PreviewRefreshed {
        reason: proto::preview_refreshed::Reason::PredecessorApplied.into(),
        ..Default::default()
    };
    assert_eq!(field(refreshed.into()), "refreshed.predecessor");
    let undone = proto::ChangeReversed { paths: vec!["../up".to_owned()], ..Default::default() };
    assert_eq!(field(Kind::Undone(Box::new(undone))), "undone.paths[0]");
}
