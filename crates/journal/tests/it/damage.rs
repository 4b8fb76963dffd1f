//! Damage is reported with the file's name, and everything readable is saved.

use std::path::{Path, PathBuf};

use sayso_journal::{Batch, DatabaseError, Journal, NewEvent, OpenJournalError, Reader, RepairReport, repair};
use sayso_review::ContentHash;

use super::{AT_ONCE, event, noise, open};

const PAGE: usize = 16384;

/// Writes 2000 events in 20 batches, each with a blob.
fn fill(folder: &Path) -> Vec<Vec<u8>> {
    let mut journal = open(folder);
    let contents: Vec<Vec<u8>> = (1..=20).map(|seed| noise(seed, 30_000)).collect();
    for (place, content) in contents.iter().enumerate() {
        let hash = ContentHash::of(content);
        let key = format!("change:{place}");
        let events = vec![NewEvent { blobs: vec![hash], ..event(&"body ".repeat(40), &["all", &key]) }; 100];
        let counters = vec![("change", place as u64 + 1)];
        journal.append(&Batch { blobs: vec![(hash, content)], events, counters }).unwrap();
    }
    contents
}

fn file(folder: &Path) -> PathBuf {
    folder.join("journal.db")
}

fn change(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(file(folder)).unwrap();
    change(&mut bytes);
    std::fs::write(file(folder), bytes).unwrap();
}

/// Checks that a journal cannot be opened, and the error.
fn refused(folder: &Path, reason: &str) {
    let opened = [Journal::open(folder, AT_ONCE).map(drop), Reader::open(folder).map(drop)];
    for error in opened.map(Result::unwrap_err) {
        assert!(matches!(error, OpenJournalError::Database(DatabaseError::Damaged { .. })), "{error}");
        assert_eq!(error.to_string(), format!("the journal `{}` is damaged: {reason}", file(folder).display()));
        assert!(error.hint().unwrap().contains("sayso gc --repair"));
    }
}

/// Checks a repaired journal against the report.
fn sound(folder: &Path, repaired: &RepairReport, contents: &[Vec<u8>]) {
    let mut journal = open(folder);
    let reader = journal.reader();
    let checked = reader.check().unwrap();
    assert_eq!(checked.problems, []);
    assert_eq!((checked.events, checked.blobs), (repaired.events_saved, repaired.blobs_saved));
    assert_eq!(reader.sizes().unwrap().events, repaired.events_saved);
    let last = reader.last_number().unwrap();
    assert_eq!(last, repaired.events_saved + repaired.events_lost);
    let there = contents.iter().filter(|content| reader.blob(ContentHash::of(content)).unwrap().is_some());
    assert_eq!(there.count() as u64, repaired.blobs_saved);
    let numbers = journal.append(&Batch { events: vec![event("after", &["all"])], ..Batch::default() }).unwrap();
    assert_eq!(numbers.start, last + 1, "no number is given twice");
    let newest = journal.reader().latest_with("all", None, 1).unwrap();
    assert_eq!(newest[0].number, last + 1);
}

#[test]
fn repair_keeps_intact_journal() {
    let folder = tempfile::tempdir().unwrap();
    let contents = fill(folder.path());
    let before = std::fs::read(file(folder.path())).unwrap();
    let repaired = repair(folder.path(), AT_ONCE).unwrap();
    let aside = folder.path().canonicalize().unwrap().join("journal.damaged-1.db");
    let expected =
        RepairReport { damaged: Some(aside.clone()), events_saved: 2000, blobs_saved: 20, ..RepairReport::default() };
    assert_eq!(repaired, expected);
    assert!(std::fs::read(aside).unwrap() == before, "the old one is kept as it was");
    sound(folder.path(), &repaired, &contents);
    let reader = Reader::open(folder.path()).unwrap();
    assert_eq!(reader.events_with("change:7", 0, 1000).unwrap().len(), 100);
    assert_eq!(reader.counter("change").unwrap(), 20);
    drop(reader);
    let again = repair(folder.path(), AT_ONCE).unwrap();
    assert!(again.damaged.unwrap().ends_with("journal.damaged-2.db"));
}

#[test]
fn truncated_file_is_rejected_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let contents = fill(folder.path());
    change(folder.path(), |bytes| bytes.truncate(bytes.len() / 2 / PAGE * PAGE + 100));
    refused(folder.path(), "its pages do not fit together");
    let repaired = repair(folder.path(), AT_ONCE).unwrap();
    assert!(repaired.events_saved > 200 && repaired.blobs_saved > 2, "{repaired:?}");
    assert!(repaired.blobs_lost > 2 && !repaired.read_errors.is_empty(), "{repaired:?}");
    sound(folder.path(), &repaired, &contents);
}

#[test]
fn garbage_in_middle_is_detected_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let contents = fill(folder.path());
    for place in 1..8 {
        change(folder.path(), |bytes| {
            let at = bytes.len() / 8 * place;
            bytes[at..at + 5000].copy_from_slice(&noise(99, 5000));
        });
    }
    let reader = Reader::open(folder.path()).unwrap();
    assert_ne!(reader.check().unwrap().problems, []);
    drop(reader);
    let repaired = repair(folder.path(), AT_ONCE).unwrap();
    assert!(repaired.events_saved > 1000 && repaired.blobs_saved > 10, "{repaired:?}");
    assert!(repaired.events_lost + repaired.blobs_lost > 0, "{repaired:?}");
    assert!(repaired.blobs_saved + repaired.blobs_lost >= 20);
    sound(folder.path(), &repaired, &contents);
}

/// With any garbled page, reads return no wrong data, and a repair works and loses little.
#[test]
fn garbage_page_loses_few_rows() {
    let source = tempfile::tempdir().unwrap();
    let contents = fill(source.path());
    let whole = std::fs::read(file(source.path())).unwrap();
    let pages = whole.len() / PAGE;
    for page in (1..pages).step_by(pages / 24) {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = whole.clone();
        bytes[page * PAGE..][..PAGE].copy_from_slice(&noise(page as u64, PAGE));
        std::fs::write(file(folder.path()), bytes).unwrap();
        if let Ok(reader) = Reader::open(folder.path()) {
            for content in &contents {
                if let Ok(read) = reader.blob(ContentHash::of(content)) {
                    assert!(read.is_none_or(|read| read == *content));
                }
            }
        }
        let repaired = repair(folder.path(), AT_ONCE).unwrap();
        assert!(repaired.events_lost <= 100 && repaired.blobs_lost <= 2, "page {page}: {repaired:?}");
        sound(folder.path(), &repaired, &contents);
    }
}

#[test]
fn tampered_event_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let connection = rusqlite::Connection::open(file(folder.path())).unwrap();
    connection.execute("UPDATE events SET body = CAST('other' AS BLOB) WHERE number = 7", []).unwrap();
    drop(connection);
    let reader = Reader::open(folder.path()).unwrap();
    let error = reader.event(7).unwrap_err();
    assert!(error.to_string().starts_with("event 7 in the journal `"), "{error}");
    assert!(reader.event(8).unwrap().is_some());
    drop(reader);
    let repaired = repair(folder.path(), AT_ONCE).unwrap();
    assert_eq!((repaired.events_saved, repaired.events_lost), (1999, 1));
    assert_eq!(open(folder.path()).reader().event(7).unwrap(), None);
}

#[test]
fn invalid_database_is_rejected_and_kept() {
    for (content, reason) in
        [("no database ".repeat(1000), "it is not a database"), (String::new(), "the file is empty")]
    {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(file(folder.path()), &content).unwrap();
        refused(&folder.path().canonicalize().unwrap(), reason);
        let repaired = repair(folder.path(), AT_ONCE).unwrap();
        assert_eq!(std::fs::read_to_string(repaired.damaged.unwrap()).unwrap(), content);
        assert_eq!(repaired.events_saved, 0);
        assert_eq!(open(folder.path()).reader().last_number().unwrap(), 0);
    }
}

#[test]
fn repair_saves_write_ahead_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.append(&Batch { events: vec![event("it", &["key"])], ..Batch::default() }).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for name in ["journal.db", "journal.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let repaired = repair(copy.path(), AT_ONCE).unwrap();
    assert_eq!(repaired.events_saved, 1);
    assert!(copy.path().join("journal.damaged-1.db-wal").exists());
    assert_eq!(open(copy.path()).reader().events_with("key", 0, 10).unwrap().len(), 1);
}

#[test]
fn lone_write_ahead_log_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("journal.db-wal"), "left over").unwrap();
    refused(&folder.path().canonicalize().unwrap(), "the file is missing, but its write-ahead log exists");
    repair(folder.path(), AT_ONCE).unwrap();
    assert!(folder.path().join("journal.damaged-1.db-wal").exists());
    drop(open(folder.path()));
}

#[test]
fn interrupted_repair_prevents_opening() {
    let folder = tempfile::tempdir().unwrap();
    let contents = fill(folder.path());
    std::fs::write(folder.path().join("repairing"), "1\n").unwrap();
    std::fs::rename(file(folder.path()), folder.path().join("journal.damaged-1.db")).unwrap();
    refused(&folder.path().canonicalize().unwrap(), "a repair is running or was interrupted");
    let repaired = repair(folder.path(), AT_ONCE).unwrap();
    assert_eq!((repaired.events_saved, repaired.blobs_saved), (2000, 20));
    sound(folder.path(), &repaired, &contents);
}

#[test]
fn repair_respects_lock() {
    let folder = tempfile::tempdir().unwrap();
    let _journal = open(folder.path());
    let error = repair(folder.path(), AT_ONCE).unwrap_err();
    assert!(error.to_string().starts_with("another sayso, process "), "{error}");
}
