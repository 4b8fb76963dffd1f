//! Retention of blobs.

use std::collections::BTreeSet;

use sayso_journal::{Batch, Journal, Retention};
use sayso_review::ContentHash;

use super::{NO_BLOBS, NO_EVENTS, all, append_contents, noise, open};

fn has(journal: &Journal, content: &[u8]) -> bool {
    let there = journal.reader().has_blob(ContentHash::of(content)).unwrap();
    assert_eq!(journal.reader().blob(ContentHash::of(content)).unwrap().is_some(), there);
    there
}

#[test]
fn collection_keeps_events_and_deletes_blobs() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let [old, shared, new] = [1, 2, 3].map(|seed| noise(seed, 3000));
    append_contents(&mut journal, 10, &[&old, &shared]);
    append_contents(&mut journal, 20, &[&shared, &new]);
    let nothing = BTreeSet::new();
    let retention = |before| Retention {
        before: Some(before),
        max_bytes: None,
        keep: &nothing,
        release: &NO_EVENTS,
        keep_blobs: &NO_BLOBS,
    };
    assert_eq!(journal.collect(retention(10)).unwrap().blobs, 0, "older means older");
    let collected = journal.collect(retention(20)).unwrap();
    assert_eq!((collected.events, collected.blobs, collected.raw_bytes), (1, 1, 3000));
    assert_eq!([&old, &shared, &new].map(|content| has(&journal, content)), [false, true, true]);
    assert_eq!(journal.collect(retention(20)).unwrap().events, 0);
    assert_eq!(journal.collect(retention(21)).unwrap().blobs, 2);
    assert_eq!(all(journal.reader()).len(), 2);
    assert_eq!(journal.reader().check().unwrap().problems, []);
}

#[test]
fn open_changes_keep_their_blobs() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let [first, second] = [1, 2].map(|seed| noise(seed, 3000));
    let kept = append_contents(&mut journal, 10, &[&first]);
    append_contents(&mut journal, 10, &[&first, &second]);
    let keep = BTreeSet::from([kept]);
    journal
        .collect(Retention {
            before: Some(i64::MAX),
            max_bytes: Some(0),
            keep: &keep,
            release: &NO_EVENTS,
            keep_blobs: &NO_BLOBS,
        })
        .unwrap();
    assert_eq!([&first, &second].map(|content| has(&journal, content)), [true, false]);
}

#[test]
fn size_limit_releases_oldest_blobs() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let [again, second, third, fourth] = [1, 2, 3, 4].map(|seed| noise(seed, 1000));
    append_contents(&mut journal, 10, &[&again]);
    append_contents(&mut journal, 20, &[&second]);
    append_contents(&mut journal, 30, &[&third]);
    append_contents(&mut journal, 40, &[&fourth, &again]);
    let nothing = BTreeSet::new();
    let retention = |most| Retention {
        before: None,
        max_bytes: Some(most),
        keep: &nothing,
        release: &NO_EVENTS,
        keep_blobs: &NO_BLOBS,
    };
    assert_eq!(journal.collect(retention(4000)).unwrap().events, 0, "it fits");
    // A blob is as young as its last reference.
    let collected = journal.collect(retention(3500)).unwrap();
    assert_eq!((collected.events, collected.blobs, collected.stored_bytes), (2, 1, 1000));
    assert_eq!([&again, &second, &third, &fourth].map(|content| has(&journal, content)), [true, false, true, true]);
    journal.collect(retention(2000)).unwrap();
    assert_eq!([&again, &second, &third, &fourth].map(|content| has(&journal, content)), [true, false, false, true]);
    assert_eq!(journal.reader().sizes().unwrap().stored_bytes, 2000);
}

#[test]
fn collection_shrinks_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let contents: Vec<Vec<u8>> = (1..40).map(|seed| noise(seed, 200_000)).collect();
    for content in &contents {
        append_contents(&mut journal, 10, &[content]);
    }
    let before = journal.reader().sizes().unwrap().file_bytes;
    let nothing = BTreeSet::new();
    let collected = journal
        .collect(Retention {
            before: Some(11),
            max_bytes: None,
            keep: &nothing,
            release: &NO_EVENTS,
            keep_blobs: &NO_BLOBS,
        })
        .unwrap();
    assert_eq!(collected.blobs, 39);
    let after = journal.reader().sizes().unwrap().file_bytes;
    assert!(after < before / 10, "{before} → {after}");
    assert_eq!(collected.file_bytes, before - after);
    drop(journal);
    assert_eq!(std::fs::metadata(folder.path().join("journal.db")).unwrap().len(), after);
}

#[test]
fn unreferenced_blobs_are_collected() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let blobs = vec![(ContentHash::of(b"orphan"), b"orphan".as_slice())];
    journal.append(&Batch { blobs, ..Default::default() }).unwrap();
    assert!(has(&journal, b"orphan"));
    let nothing = BTreeSet::new();
    let collected = journal
        .collect(Retention {
            before: None,
            max_bytes: None,
            keep: &nothing,
            release: &NO_EVENTS,
            keep_blobs: &NO_BLOBS,
        })
        .unwrap();
    assert_eq!(collected.blobs, 1);
    assert!(!has(&journal, b"orphan"));
}

#[test]
fn blobs_in_keep_list_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let (wanted, unwanted) = (b"wanted".as_slice(), b"unwanted".as_slice());
    let hash = |bytes: &[u8]| ContentHash::of(bytes);
    let blobs = vec![(hash(wanted), wanted), (hash(unwanted), unwanted)];
    journal.append(&Batch { blobs, ..Batch::default() }).unwrap();
    let (nothing, keep_blobs) = (BTreeSet::new(), BTreeSet::from([hash(wanted)]));
    let retention = Retention {
        before: Some(i64::MAX),
        max_bytes: Some(0),
        keep: &nothing,
        release: &NO_EVENTS,
        keep_blobs: &keep_blobs,
    };
    assert_eq!(journal.collect(retention).unwrap().blobs, 1);
    assert_eq!(journal.reader().blob(hash(wanted)).unwrap().as_deref(), Some(wanted));
    assert_eq!(journal.reader().blob(hash(unwanted)).unwrap(), None);
}

#[test]
fn released_events_lose_blobs_at_any_age() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let released = append_contents(&mut journal, 10, &[b"released"]);
    append_contents(&mut journal, 10, &[b"kept"]);
    let (nothing, release) = (BTreeSet::new(), BTreeSet::from([released]));
    let retention =
        Retention { before: None, max_bytes: None, keep: &nothing, release: &release, keep_blobs: &NO_BLOBS };
    assert_eq!(journal.collect(retention).unwrap().blobs, 1);
    assert_eq!((has(&journal, b"released"), has(&journal, b"kept")), (false, true));
}
