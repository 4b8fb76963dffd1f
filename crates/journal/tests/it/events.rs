//! Events: numbers, order, keys, counters.

use sayso_journal::{AppendError, Batch, Reader};
use sayso_review::ContentHash;

use super::{all, event, open};

#[test]
fn event_numbers_are_dense_across_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for round in 0..4u64 {
        let mut journal = open(folder.path());
        assert_eq!(journal.reader().last_number().unwrap(), round * 3);
        let names = [0, 1, 2].map(|place| format!("{round}.{place}"));
        let events = names.iter().map(|name| event(name, &[])).collect();
        let numbers = journal.append(&Batch { events, ..Batch::default() }).unwrap();
        assert_eq!(numbers, round * 3 + 1..round * 3 + 4);
        expected.extend(numbers.zip(names));
        assert_eq!(all(journal.reader()), expected);
    }
}

#[test]
fn event_survives_storage() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let mut new = event("", &[]);
    (new.version, new.time, new.body) = (u32::MAX, i64::MIN, super::noise(1, 100_000));
    let number = journal.append(&Batch { events: vec![new.clone()], ..Batch::default() }).unwrap().start;
    let stored = journal.reader().event(number).unwrap().unwrap();
    assert_eq!((stored.number, stored.version, stored.time), (1, u32::MAX, i64::MIN));
    assert_eq!(stored.body, new.body);
    assert_eq!(journal.reader().event(2).unwrap(), None);
    assert_eq!(journal.reader().event(0).unwrap(), None);
}

#[test]
fn events_are_paged_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let events = (1..=9)
        .map(|n: u32| event(&n.to_string(), &[if n.is_multiple_of(2) { "even" } else { "odd" }, "all"]))
        .collect();
    journal.append(&Batch { events, ..Batch::default() }).unwrap();
    let reader = Reader::open(folder.path()).unwrap();
    let numbers = |events: Vec<sayso_journal::StoredEvent>| events.iter().map(|event| event.number).collect::<Vec<_>>();
    assert_eq!(numbers(reader.events(2, 3).unwrap()), [3, 4, 5]);
    assert_eq!(numbers(reader.events(8, 3).unwrap()), [9]);
    assert_eq!(numbers(reader.latest(None, 2).unwrap()), [9, 8]);
    assert_eq!(numbers(reader.latest(Some(3), 5).unwrap()), [2, 1]);
    assert_eq!(numbers(reader.events_with("even", 0, 10).unwrap()), [2, 4, 6, 8]);
    assert_eq!(numbers(reader.events_with("even", 4, 1).unwrap()), [6]);
    assert_eq!(numbers(reader.latest_with("odd", None, 2).unwrap()), [9, 7]);
    assert_eq!(numbers(reader.latest_with("odd", Some(7), 2).unwrap()), [5, 3]);
    assert_eq!(numbers(reader.events_with("all", 0, 100).unwrap()).len(), 9);
    assert_eq!(numbers(reader.events_with("eve", 0, 100).unwrap()), Vec::<u64>::new());
}

#[test]
fn duplicate_key_finds_event_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let events = vec![event("it", &["same", "same", "", "ключ"])];
    journal.append(&Batch { events, ..Batch::default() }).unwrap();
    for key in ["same", "", "ключ"] {
        assert_eq!(journal.reader().events_with(key, 0, 10).unwrap().len(), 1);
    }
}

#[test]
fn counters_never_decrease() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    assert_eq!(journal.reader().counter("change").unwrap(), 0);
    let counters =
        |value| Batch { events: vec![event("it", &[])], counters: vec![("change", value)], ..Batch::default() };
    journal.append(&counters(12)).unwrap();
    journal.append(&counters(12)).unwrap();
    let refused = journal.append(&counters(11)).unwrap_err();
    assert_eq!(refused.to_string(), "the counter `change` is at 12 and cannot be set back to 11");
    drop(journal);
    let journal = open(folder.path());
    assert_eq!(journal.reader().counter("change").unwrap(), 12);
    assert_eq!(journal.reader().last_number().unwrap(), 2, "the refused batch is not there at all");
}

#[test]
fn failed_append_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.append(&Batch { events: vec![event("before", &["key"])], ..Batch::default() }).unwrap();
    let sizes = journal.reader().sizes().unwrap();
    let missing = ContentHash::of(b"never stored");
    let mut bad = event("bad", &["key"]);
    bad.blobs = vec![missing];
    let blob = (ContentHash::of(b"content"), b"content".as_slice());
    let batch = Batch { blobs: vec![blob], events: vec![event("good", &["key"]), bad], counters: vec![("change", 5)] };
    let error = journal.append(&batch).unwrap_err();
    assert!(matches!(error, AppendError::MissingBlob(hash) if hash == missing));
    assert_eq!(journal.reader().sizes().unwrap(), sizes);
    assert_eq!(journal.reader().events_with("key", 0, 10).unwrap().len(), 1);
    assert_eq!(journal.reader().counter("change").unwrap(), 0);
    let next = journal.append(&Batch { events: vec![event("after", &[])], ..Batch::default() }).unwrap();
    assert_eq!(next, 2..3, "no number is skipped");
}

#[test]
fn empty_batch_uses_no_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    assert_eq!(journal.append(&Batch::default()).unwrap(), 1..1);
    assert_eq!(journal.reader().last_number().unwrap(), 0);
}

#[test]
fn writer_cache_matches_reader() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let reader = Reader::open(folder.path()).unwrap();
    let same = |journal: &sayso_journal::Journal, last: u64, value: u64| {
        for side in [journal.reader(), &reader] {
            assert_eq!((side.last_number().unwrap(), side.counter("changes").unwrap()), (last, value));
        }
    };
    same(&journal, 0, 0);
    let batch = |name: &str, value: u64| Batch {
        events: vec![event(name, &[])],
        counters: vec![("changes", value)],
        ..Batch::default()
    };
    journal.append(&batch("a", 7)).unwrap();
    same(&journal, 1, 7);
    // The failed batch used no number.
    assert!(matches!(journal.append(&batch("b", 6)), Err(AppendError::CounterBack { value: 7, asked: 6, .. })));
    same(&journal, 1, 7);
    assert_eq!(journal.append(&batch("c", 8)).unwrap(), 2..3);
    same(&journal, 2, 8);
    drop(journal);
    same(&open(folder.path()), 2, 8);
}
