//! Malformed messages are rejected without a panic.

use std::fmt::Debug;

use buffa::Message;
use proptest::collection::vec;
use proptest::prelude::*;
use sayso_api::convert::{BadMessage, preview};
use sayso_api::proto::{self, PreviewView};
use sayso_review::{
    ApplyRecord, ChangeRecord, DryRunOutput, EventBody, Intent, PlanStep, Preview, Recorded, RememberAs, RequestRecord,
    SnapshotRecord, Subject, Target, Verdict,
};

use crate::arbitrary;

/// Decodes bytes as a message and converts it. An error must name a field.
fn read<M: Message, T: TryFrom<M> + Debug>(bytes: &[u8])
where
    BadMessage: From<T::Error>,
{
    let Ok(message) = M::decode_from_slice(bytes) else { return };
    if let Err(error) = T::try_from(message) {
        let error = BadMessage::from(error);
        assert!(!error.field.is_empty() && !error.reason.is_empty(), "{error:?}");
    }
}

fn read_as_everything(bytes: &[u8]) {
    read::<proto::Change, ChangeRecord>(bytes);
    read::<proto::Subject, Subject>(bytes);
    read::<proto::Preview, Preview>(bytes);
    read::<proto::Verdict, Verdict>(bytes);
    read::<proto::Intent, Intent>(bytes);
    read::<proto::Target, Target>(bytes);
    read::<proto::PlanStep, PlanStep>(bytes);
    read::<proto::ApplyRecord, ApplyRecord>(bytes);
    read::<proto::RememberAs, RememberAs>(bytes);
    read::<proto::SnapshotRecord, SnapshotRecord>(bytes);
    read::<proto::Event, Recorded>(bytes);
    read::<proto::RequestSummary, RequestRecord>(bytes);
    read::<proto::DryRunResponse, DryRunOutput>(bytes);
}

/// Replaces some bytes. Most results still decode, with wrong numbers, paths, hashes and JSON.
fn damaged(mut bytes: Vec<u8>, damage: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    for (index, byte) in damage {
        if !bytes.is_empty() {
            let position = index.index(bytes.len());
            bytes[position] = *byte;
        }
    }
    bytes
}

fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    vec((any::<prop::sample::Index>(), any::<u8>()), 1..5)
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn damaged_changes_never_panic(record in arbitrary::changes(), damage in damage()) {
        read_as_everything(&damaged(proto::Change::from(&record).encode_to_vec(), &damage));
    }

    #[test]
    fn damaged_events_never_panic(event in arbitrary::events(), damage in damage()) {
        let recorded = Recorded { number: 1, time: 0, body: EventBody::Known(event) };
        read_as_everything(&damaged(proto::Event::from(&recorded).encode_to_vec(), &damage));
    }

    #[test]
    fn damaged_previews_never_panic(shown in arbitrary::previews(), damage in damage()) {
        read_as_everything(&damaged(preview(&shown, PreviewView::Full).encode_to_vec(), &damage));
    }

    #[test]
    fn damaged_verdicts_and_intents_never_panic(
        verdict in arbitrary::verdicts(),
        intent in arbitrary::intents(),
        damage in damage(),
    ) {
        read_as_everything(&damaged(proto::Verdict::from(&verdict).encode_to_vec(), &damage));
        read_as_everything(&damaged(proto::Intent::from(&intent).encode_to_vec(), &damage));
    }
}
