//! Request records survive the wire.

use proptest::prelude::*;
use sayso_api::proto;
use sayso_review::{RequestEvent, RequestRecord};

use crate::arbitrary;
use crate::round_trip::received;

proptest! {
    #[test]
    fn request_summary_round_trips(record in arbitrary::request_records()) {
        for message in received(proto::RequestSummary::from(&record)) {
            prop_assert_eq!(message.edited, record.is_edited());
            let decoded = RequestRecord::try_from(message);
            prop_assert_eq!(decoded.as_ref(), Ok(&record));
        }
    }
}

#[test]
fn invalid_request_field_is_named() {
    use sayso_api::proto::oneof::request_event::Step;
    use sayso_api::proto::request_event::Edited;
    let error = |step: Option<Step>| {
        let event = proto::RequestEvent { request: 1, step, ..Default::default() };
        RequestEvent::try_from(event).unwrap_err()
    };
    assert_eq!(error(None).field, "step");
    let edited = Edited { edit: buffa::EnumValue::Unknown(99), ..Default::default() };
    assert_eq!(
        error(Some(edited.into())).to_string(),
        "cannot read field `edited.edit` of the message: this version does not know value 99"
    );
    let answer = proto::RequestAnswer { status: 70_000, ..Default::default() };
    assert_eq!(error(Some(answer.into())).field, "answered.status");
    let superseded = proto::RequestEnd { kind: proto::request_end::Kind::Superseded.into(), ..Default::default() };
    assert_eq!(error(Some(superseded.into())).field, "ended.superseded_by");
}
