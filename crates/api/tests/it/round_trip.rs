//! Values survive the conversion to a message, the binary encoding and JSON.

use std::fmt::Debug;

use buffa::{Enumeration, Message};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use sayso_api::convert::BadMessage;
use sayso_api::proto;
use sayso_review::{Answer, Subject};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arbitrary;

/// The message itself, decoded from binary, and decoded from JSON.
pub(crate) fn received<M>(message: M) -> [M; 3]
where
    M: Message + Serialize + DeserializeOwned,
{
    let wire = M::decode_from_slice(&message.encode_to_vec()).unwrap();
    let json = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
    [message, wire, json]
}

/// Checks that a value survives each encoding.
pub(crate) fn round_trips<'a, M, T>(value: &'a T) -> Result<(), TestCaseError>
where
    M: Message + Serialize + DeserializeOwned + From<&'a T>,
    T: TryFrom<M> + PartialEq + Debug,
    BadMessage: From<T::Error>,
{
    for message in received(M::from(value)) {
        let arrived = T::try_from(message).map_err(BadMessage::from);
        prop_assert_eq!(arrived.as_ref(), Ok(value));
    }
    Ok(())
}

/// Checks that a value survives as an enumeration value other than `UNSPECIFIED`.
fn enum_round_trips<E, T>(value: T) -> Result<(), TestCaseError>
where
    E: Enumeration + From<T>,
    T: TryFrom<E> + PartialEq + Debug + Copy,
    BadMessage: From<T::Error>,
{
    let number = E::from(value).to_i32();
    prop_assert!(number != 0, "the first value is UNSPECIFIED");
    let arrived = T::try_from(E::from_i32(number).unwrap()).map_err(BadMessage::from);
    prop_assert_eq!(arrived, Ok(value));
    Ok(())
}

#[test]
fn argument_numbers_keep_every_digit() {
    for text in ["-7.388524936762384e+261", "-2.3616768517330694e+200", "0.30000000000000004", "-0.0"] {
        let arguments = text.parse().unwrap();
        let answer = Answer::Arguments { arguments };
        let arrived = Answer::try_from(proto::Answer::from(&answer)).unwrap();
        assert_eq!(serde_json::to_string(&arrived).unwrap(), format!(r#"{{"answer":"arguments","arguments":{text}}}"#));
    }
}

proptest! {
    #[test]
    fn notes_and_problems_round_trip(
        note in arbitrary::notes(),
        problem in arbitrary::problems(),
        mismatch in arbitrary::tool_problems(),
    ) {
        round_trips::<proto::Note, _>(&note)?;
        round_trips::<proto::Problem, _>(&problem)?;
        round_trips::<proto::tool_preview::Mismatch, _>(&mismatch)?;
    }

    #[test]
    fn note_message_has_text_and_kind(note in arbitrary::notes()) {
        let message = proto::Note::from(&note);
        prop_assert_eq!(&message.text, &note.to_string());
        let details: serde_json::Value = serde_json::from_str(&message.details_json).unwrap();
        prop_assert_eq!(details["note"].as_str(), Some(message.kind.as_str()));
    }

    #[test]
    fn effects_and_uncertainties_round_trip(effect in arbitrary::effects(), uncertainty in arbitrary::uncertainties()) {
        round_trips::<proto::command_preview::Effect, _>(&effect)?;
        round_trips::<proto::command_preview::Uncertainty, _>(&uncertainty)?;
        prop_assert!(!proto::command_preview::Effect::from(&effect).kind.is_empty());
        prop_assert!(!proto::command_preview::Uncertainty::from(&uncertainty).kind.is_empty());
    }

    #[test]
    fn file_states_round_trip(
        fingerprint in arbitrary::fingerprints(),
        state in arbitrary::file_states(),
        step in arbitrary::plan_steps(),
    ) {
        round_trips::<proto::Fingerprint, _>(&fingerprint)?;
        round_trips::<proto::FileState, _>(&state)?;
        round_trips::<proto::PlanStep, _>(&step)?;
    }

    #[test]
    fn file_records_round_trip(
        file in arbitrary::file_records(),
        step in arbitrary::recorded_steps(),
        record in arbitrary::apply_records(),
        uncaptured in arbitrary::uncaptured(),
    ) {
        round_trips::<proto::FileRecord, _>(&file)?;
        round_trips::<proto::RecordedStep, _>(&step)?;
        round_trips::<proto::ApplyRecord, _>(&record)?;
        round_trips::<proto::Uncaptured, _>(&uncaptured)?;
    }

    #[test]
    fn intents_round_trip(intent in arbitrary::intents(), file in arbitrary::file_intents()) {
        round_trips::<proto::Intent, _>(&intent)?;
        round_trips::<proto::FileIntent, _>(&file)?;
    }

    #[test]
    fn subject_round_trip_keeps_bound_hash(
        subject in arbitrary::subjects(),
        files in arbitrary::hash(),
    ) {
        round_trips::<proto::Subject, _>(&subject)?;
        for message in received(proto::Subject::from(&subject)) {
            // The hash also covers the order of JSON keys, which equality ignores.
            prop_assert_eq!(Subject::try_from(message).unwrap().bind(files), subject.bind(files));
        }
    }

    #[test]
    fn verdicts_round_trip(
        verdict in arbitrary::verdicts(),
        answer in arbitrary::answers(),
        file in arbitrary::file_answers(),
        comment in arbitrary::comments(),
        remember_as in arbitrary::remember_as(),
    ) {
        round_trips::<proto::Verdict, _>(&verdict)?;
        round_trips::<proto::Answer, _>(&answer)?;
        round_trips::<proto::FileAnswer, _>(&file)?;
        round_trips::<proto::Comment, _>(&comment)?;
        round_trips::<proto::RememberAs, _>(&remember_as)?;
        enum_round_trips::<proto::remember_as::Scope, _>(remember_as.scope)?;
        enum_round_trips::<proto::comment::Side, _>(comment.side)?;
    }

    #[test]
    fn origin_and_cause_round_trip(
        origin in arbitrary::origins(),
        cause in arbitrary::causes(),
        ruling in arbitrary::ruling_records(),
        performer in arbitrary::performers(),
        placement in arbitrary::placements(),
    ) {
        round_trips::<proto::Origin, _>(&origin)?;
        round_trips::<proto::Cause, _>(&cause)?;
        round_trips::<proto::RulingRecord, _>(&ruling)?;
        enum_round_trips::<proto::Ruling, _>(ruling.ruling)?;
        enum_round_trips::<proto::Performer, _>(performer)?;
        enum_round_trips::<proto::preview::Placement, _>(placement)?;
    }

    #[test]
    fn change_round_trips_with_applied_parts(record in arbitrary::changes()) {
        round_trips::<proto::Change, _>(&record)?;
        let message = proto::Change::from(&record);
        for (file, sent) in record.files.iter().zip(&message.files) {
            prop_assert_eq!(sent.applied_part, proto::file_record::AppliedPart::from(record.applied_part(file)));
        }
    }

    #[test]
    fn call_parameters_and_results_round_trip(
        target in arbitrary::targets(),
        if_changed in arbitrary::if_changed(),
        output in arbitrary::dry_runs(),
        record in arbitrary::snapshot_records(),
    ) {
        round_trips::<proto::Target, _>(&target)?;
        round_trips::<proto::DryRunResponse, _>(&output)?;
        round_trips::<proto::SnapshotRecord, _>(&record)?;
        round_trips::<proto::Snapshot, _>(&record.snapshot)?;
        enum_round_trips::<proto::IfChanged, _>(if_changed)?;
        enum_round_trips::<proto::Tier, _>(record.snapshot.tier)?;
        if let Some(freed) = record.freed {
            enum_round_trips::<proto::FreeReason, _>(freed)?;
        }
    }
}
