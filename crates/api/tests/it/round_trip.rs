//! What is sent is what arrives: as a message, through the wire, and through JSON.

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

/// A message as whoever gets it reads it: as it is, from its bytes, and from its JSON.
pub(crate) fn received<M>(message: M) -> [M; 3]
where
    M: Message + Serialize + DeserializeOwned,
{
    let wire = M::decode_from_slice(&message.encode_to_vec()).unwrap();
    let json = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
    [message, wire, json]
}

/// Sends a value every way there is, and compares what arrives.
fn travels<'a, M, T>(value: &'a T) -> Result<(), TestCaseError>
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

/// The same for what is a value of an enumeration.
fn is_named<E, T>(value: T) -> Result<(), TestCaseError>
where
    E: Enumeration + From<T>,
    T: TryFrom<E> + PartialEq + Debug + Copy,
    BadMessage: From<T::Error>,
{
    let number = E::from(value).to_i32();
    prop_assert!(number != 0, "the first value stands for nothing said");
    let arrived = T::try_from(E::from_i32(number).unwrap()).map_err(BadMessage::from);
    prop_assert_eq!(arrived, Ok(value));
    Ok(())
}

#[test]
fn a_number_among_arguments_arrives_to_its_last_digit() {
    for text in ["-7.388524936762384e+261", "-2.3616768517330694e+200", "0.30000000000000004", "-0.0"] {
        let arguments = text.parse().unwrap();
        let answer = Answer::Arguments { arguments };
        let arrived = Answer::try_from(proto::Answer::from(&answer)).unwrap();
        assert_eq!(serde_json::to_string(&arrived).unwrap(), format!(r#"{{"answer":"arguments","arguments":{text}}}"#));
    }
}

proptest! {
    #[test]
    fn notes_and_problems_arrive(
        note in arbitrary::notes(),
        problem in arbitrary::problems(),
        mismatch in arbitrary::tool_problems(),
    ) {
        travels::<proto::Note, _>(&note)?;
        travels::<proto::Problem, _>(&problem)?;
        travels::<proto::tool_preview::Mismatch, _>(&mismatch)?;
    }

    #[test]
    fn what_a_note_says_is_beside_its_data(note in arbitrary::notes()) {
        let message = proto::Note::from(&note);
        prop_assert_eq!(&message.text, &note.to_string());
        let details: serde_json::Value = serde_json::from_str(&message.details_json).unwrap();
        prop_assert_eq!(details["note"].as_str(), Some(message.kind.as_str()));
    }

    #[test]
    fn effects_and_doubts_arrive(effect in arbitrary::effects(), doubt in arbitrary::doubts()) {
        travels::<proto::command_preview::Effect, _>(&effect)?;
        travels::<proto::command_preview::Doubt, _>(&doubt)?;
        prop_assert!(!proto::command_preview::Effect::from(&effect).kind.is_empty());
        prop_assert!(!proto::command_preview::Doubt::from(&doubt).kind.is_empty());
    }

    #[test]
    fn what_is_at_a_path_arrives(
        fingerprint in arbitrary::fingerprints(),
        state in arbitrary::file_states(),
        step in arbitrary::plan_steps(),
    ) {
        travels::<proto::Fingerprint, _>(&fingerprint)?;
        travels::<proto::FileState, _>(&state)?;
        travels::<proto::PlanStep, _>(&step)?;
    }

    #[test]
    fn records_of_files_arrive(
        file in arbitrary::file_records(),
        step in arbitrary::recorded_steps(),
        record in arbitrary::apply_records(),
        uncaptured in arbitrary::uncaptured(),
    ) {
        travels::<proto::FileRecord, _>(&file)?;
        travels::<proto::RecordedStep, _>(&step)?;
        travels::<proto::ApplyRecord, _>(&record)?;
        travels::<proto::Uncaptured, _>(&uncaptured)?;
    }

    #[test]
    fn intents_arrive(intent in arbitrary::intents(), file in arbitrary::file_intents()) {
        travels::<proto::Intent, _>(&intent)?;
        travels::<proto::FileIntent, _>(&file)?;
    }

    #[test]
    fn a_subject_arrives_with_all_that_a_verdict_is_bound_to(
        subject in arbitrary::subjects(),
        files in arbitrary::hash(),
    ) {
        travels::<proto::Subject, _>(&subject)?;
        for message in received(proto::Subject::from(&subject)) {
            // Equality of JSON does not see the order of keys; this does.
            prop_assert_eq!(Subject::try_from(message).unwrap().bind(files), subject.bind(files));
        }
    }

    #[test]
    fn verdicts_arrive(
        verdict in arbitrary::verdicts(),
        answer in arbitrary::answers(),
        file in arbitrary::file_answers(),
        comment in arbitrary::comments(),
        from_now_on in arbitrary::from_now_on(),
    ) {
        travels::<proto::Verdict, _>(&verdict)?;
        travels::<proto::Answer, _>(&answer)?;
        travels::<proto::FileAnswer, _>(&file)?;
        travels::<proto::Comment, _>(&comment)?;
        travels::<proto::FromNowOn, _>(&from_now_on)?;
        is_named::<proto::from_now_on::Scope, _>(from_now_on.scope)?;
        is_named::<proto::comment::Side, _>(comment.side)?;
    }

    #[test]
    fn where_a_change_comes_from_arrives(
        origin in arbitrary::origins(),
        cause in arbitrary::causes(),
        ruled in arbitrary::ruling_records(),
        performer in arbitrary::performers(),
        placement in arbitrary::placements(),
    ) {
        travels::<proto::Origin, _>(&origin)?;
        travels::<proto::Cause, _>(&cause)?;
        travels::<proto::RulingRecord, _>(&ruled)?;
        is_named::<proto::Ruling, _>(ruled.ruling)?;
        is_named::<proto::Performer, _>(performer)?;
        is_named::<proto::preview::Placement, _>(placement)?;
    }

    #[test]
    fn a_change_arrives_with_how_much_of_each_file_happened(record in arbitrary::changes()) {
        travels::<proto::Change, _>(&record)?;
        let message = proto::Change::from(&record);
        for (file, sent) in record.files.iter().zip(&message.files) {
            prop_assert_eq!(sent.extent, proto::file_record::Extent::from(record.extent(file)));
        }
    }

    #[test]
    fn what_surfaces_ask_for_arrives(
        target in arbitrary::targets(),
        if_changed in arbitrary::if_changed(),
        output in arbitrary::dry_runs(),
        record in arbitrary::snapshot_records(),
    ) {
        travels::<proto::Target, _>(&target)?;
        travels::<proto::RehearseResponse, _>(&output)?;
        travels::<proto::SnapshotRecord, _>(&record)?;
        travels::<proto::Captured, _>(&record.snapshot)?;
        is_named::<proto::IfChanged, _>(if_changed)?;
        is_named::<proto::Tier, _>(record.snapshot.tier)?;
        if let Some(freed) = record.freed {
            is_named::<proto::FreedBecause, _>(freed)?;
        }
    }
}
