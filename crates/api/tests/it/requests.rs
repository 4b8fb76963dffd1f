//! Request records and typed requests survive the wire.

use proptest::prelude::*;
use sayso_api::proto;
use sayso_review::{RequestEvent, RequestRecord};
use sayso_wire::Edit;

use crate::arbitrary;
use crate::arbitrary_request_view as view;
use crate::round_trip::{received, round_trips};

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

proptest! {
    #[test]
    fn request_details_round_trip(
        summary in view::request_summaries(),
        details in view::request_details(),
        diff in view::request_diffs(),
        runs in view::subagent_runs(),
        costs in view::request_costs(),
    ) {
        round_trips::<proto::RequestSummary, _>(&summary)?;
        round_trips::<proto::ShowRequestResponse, _>(&details)?;
        round_trips::<proto::DiffRequestResponse, _>(&diff)?;
        round_trips::<proto::ListSubagentsResponse, _>(&runs)?;
        round_trips::<proto::GetCostResponse, _>(&costs)?;
    }

    #[test]
    fn modes_and_edit_results_round_trip(
        modes in view::request_modes(),
        changed in view::mode_results(),
        edited in view::edit_results(),
        resumed in view::resume_results(),
        saved in view::save_results(),
        edit in view::saved_edits(),
    ) {
        round_trips::<proto::GetModesResponse, _>(&modes)?;
        round_trips::<proto::SetModeResponse, _>(&changed)?;
        round_trips::<proto::EditRequestResponse, _>(&edited)?;
        round_trips::<proto::ResumeRequestResponse, _>(&resumed)?;
        round_trips::<proto::SaveOverridesResponse, _>(&saved)?;
        round_trips::<proto::Override, _>(&edit)?;
    }

    #[test]
    fn edit_round_trips(edit in view::edits()) {
        let message = proto::EditRequestRequest { edit: Some((&edit).into()), ..Default::default() };
        for message in received(message) {
            let arrived = Edit::try_from(message.edit.unwrap());
            prop_assert_eq!(arrived.as_ref(), Ok(&edit));
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
