//! What is recorded of a request says the same over the wire.

use proptest::prelude::*;
use sayso_api::convert::field::{enumeration, optional, required};
use sayso_api::proto;
use sayso_review::{PauseReason, RequestAnswer, RequestEnd, RequestEvent, RequestSeen, Resumer, SavedEdits};

use crate::arbitrary;
use crate::round_trip::received;

proptest! {
    #[test]
    fn all_of_a_request_is_sent(record in arbitrary::request_records()) {
        for message in received(proto::RequestSummary::from(&record)) {
            prop_assert_eq!((message.request, message.time_ms), (record.request, record.time));
            prop_assert_eq!((message.deadline_ms, message.revision), (record.deadline, record.edits));
            prop_assert_eq!(required::<_, _, RequestSeen>(message.seen, "seen"), Ok(record.seen.clone()));
            prop_assert_eq!(optional::<_, _, PauseReason>(message.paused, "paused"), Ok(record.paused.clone()));
            prop_assert_eq!(enumeration::<_, Resumer>(message.resumed_by, "resumed_by").ok(), record.resumed);
            prop_assert_eq!(optional::<_, _, RequestAnswer>(message.answer, "answer"), Ok(record.answer.clone()));
            prop_assert_eq!(optional::<_, _, RequestEnd>(message.ended, "ended"), Ok(record.ended.clone()));
            prop_assert_eq!(message.edited, record.is_edited());
            let saved = optional::<_, _, SavedEdits>(message.saved, "saved").unwrap().unwrap_or_default();
            prop_assert_eq!(saved, record.saved.clone());
        }
    }
}

#[test]
fn what_this_version_does_not_know_names_its_field() {
    use sayso_api::proto::oneof::request_event::Step;
    use sayso_api::proto::request_event::Edited;
    let said = |step: Option<Step>| {
        let event = proto::RequestEvent { request: 1, step, ..Default::default() };
        RequestEvent::try_from(event).unwrap_err().to_string()
    };
    assert!(said(None).contains("`step`"));
    let edited = Edited { edit: buffa::EnumValue::Unknown(99), ..Default::default() };
    assert!(said(Some(edited.into())).contains("`edited.edit` of the message is not understood"));
    let answer = proto::RequestAnswer { status: 70_000, ..Default::default() };
    assert!(said(Some(answer.into())).contains("`answered.status`"));
    let superseded = proto::RequestEnd { kind: proto::request_end::Kind::Superseded.into(), ..Default::default() };
    assert!(said(Some(superseded.into())).contains("`ended.superseded_by`"));
}
