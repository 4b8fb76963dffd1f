//! Random operations, compared with a list as the reference.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sayso_journal::{Batch, Journal, NewEvent, Retention};
use sayso_review::ContentHash;

use super::{noise, open};

#[derive(Clone, Debug)]
enum Action {
    /// Appends events with times, keys and contents.
    Append(Vec<(i64, Vec<u8>, Vec<u8>)>),
    Collect {
        before: Option<i64>,
        keep: Vec<u64>,
    },
    Compact,
    Reopen,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let small = || prop::collection::vec(0..8u8, 0..3);
    let events = prop::collection::vec((0..100i64, small(), small()), 0..5);
    let collect = (prop::option::of(0..100i64), prop::collection::vec(1..20u64, 0..3));
    let action = prop_oneof![
        6 => events.prop_map(Action::Append),
        2 => collect.prop_map(|(before, keep)| Action::Collect { before, keep }),
        1 => Just(Action::Compact),
        2 => Just(Action::Reopen),
    ];
    prop::collection::vec(action, 1..20)
}

/// Eight contents of different kinds.
fn content(which: u8) -> Vec<u8> {
    match which {
        0 => Vec::new(),
        1 => b"short".to_vec(),
        2 => b"compressible at once ".repeat(100),
        3 => b"compressible later ".repeat(4000),
        other => noise(other.into(), 500 << other),
    }
}

struct Event {
    time: i64,
    keys: BTreeSet<u8>,
    contents: BTreeSet<u8>,
}

#[derive(Default)]
struct Model {
    events: Vec<Event>,
    stored: BTreeSet<u8>,
}

impl Model {
    fn collect(&mut self, before: Option<i64>, keep: &BTreeSet<u64>) {
        for (number, event) in (1..).zip(&mut self.events) {
            if before.is_some_and(|before| event.time < before) && !keep.contains(&number) {
                event.contents.clear();
            }
        }
        self.stored = self.events.iter().flat_map(|event| event.contents.iter().copied()).collect();
    }
}

fn compare(journal: &Journal, model: &Model) {
    let reader = journal.reader();
    assert_eq!(reader.last_number().unwrap(), model.events.len() as u64);
    let times: Vec<i64> = reader.events(0, usize::MAX).unwrap().iter().map(|event| event.time).collect();
    assert_eq!(times, model.events.iter().map(|event| event.time).collect::<Vec<_>>());
    for which in 0..8 {
        let expected: Vec<u64> = (1..)
            .zip(&model.events)
            .filter(|(_, event)| event.keys.contains(&which))
            .map(|(number, _)| number)
            .collect();
        let found = reader.events_with(&format!("key:{which}"), 0, usize::MAX).unwrap();
        assert_eq!(found.iter().map(|event| event.number).collect::<Vec<_>>(), expected);
        let bytes = content(which);
        let stored = reader.blob(ContentHash::of(&bytes)).unwrap();
        assert!(stored == model.stored.contains(&which).then_some(bytes), "content {which}");
    }
    let sizes = reader.sizes().unwrap();
    assert_eq!((sizes.events, sizes.blobs), (model.events.len() as u64, model.stored.len() as u64));
    assert_eq!(sizes.raw_bytes, model.stored.iter().map(|which| content(*which).len() as u64).sum::<u64>());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn journal_matches_reference_model(actions in actions()) {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Some(open(folder.path()));
        let mut model = Model::default();
        for action in actions {
            let open_journal = journal.as_mut().unwrap();
            match action {
                Action::Append(new) => {
                    let contents: BTreeMap<u8, Vec<u8>> =
                        new.iter().flat_map(|(_, _, which)| which).map(|which| (*which, content(*which))).collect();
                    let hash = |which: &u8| ContentHash::of(&contents[which]);
                    let events = new.iter().map(|(time, keys, which)| NewEvent {
                        version: 1,
                        time: *time,
                        keys: keys.iter().map(|key| format!("key:{key}")).collect(),
                        blobs: which.iter().map(hash).collect(),
                        body: Vec::new(),
                    });
                    let blobs = contents.iter().map(|(which, bytes)| (hash(which), bytes.as_slice())).collect();
                    let count = model.events.len() as u64;
                    let numbers =
                        open_journal.append(&Batch { blobs, events: events.collect(), counters: Vec::new() }).unwrap();
                    prop_assert_eq!(numbers, count + 1..count + 1 + new.len() as u64);
                    for (time, keys, which) in new {
                        model.stored.extend(&which);
                        let (keys, contents) = (keys.into_iter().collect(), which.into_iter().collect());
                        model.events.push(Event { time, keys, contents });
                    }
                }
                Action::Collect { before, keep } => {
                    let keep = keep.into_iter().collect();
                    open_journal.collect(Retention { before, max_bytes: None, keep: &keep, release: &super::NO_EVENTS, keep_blobs: &super::NO_BLOBS }).unwrap();
                    model.collect(before, &keep);
                }
                Action::Compact => {
                    prop_assert_eq!(open_journal.compact(u64::MAX).unwrap().uncompressed, 0);
                }
                Action::Reopen => {
                    drop(journal.take());
                    journal = Some(open(folder.path()));
                }
            }
            compare(journal.as_ref().unwrap(), &model);
        }
        prop_assert_eq!(journal.unwrap().reader().check().unwrap().problems, vec![]);
    }
}
