//! Files of other versions and of other programs.

use std::collections::BTreeSet;

use std::path::Path;

use rusqlite::{Connection, params};
use sayso_journal::{Batch, Journal, OpenJournalError, Reader};
use sayso_review::ContentHash;

use super::{AT_ONCE, all, event, noise, open};

/// A journal as version 1 wrote it.
fn version_1(folder: &Path) -> Vec<Vec<u8>> {
    let contents = vec![noise(1, 2000), b"compressible ".repeat(10_000)];
    let file = Connection::open(folder.join("journal.db")).unwrap();
    file.execute_batch(
        "PRAGMA application_id = 0x5361536f; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;
         CREATE TABLE events (number INTEGER PRIMARY KEY, version INTEGER NOT NULL, time INTEGER NOT NULL, body BLOB NOT NULL);
         CREATE TABLE event_keys (key TEXT NOT NULL, event INTEGER NOT NULL, PRIMARY KEY (key, event)) WITHOUT ROWID;
         CREATE TABLE blobs (hash BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
         CREATE TABLE blob_references (event INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY (event, hash)) WITHOUT ROWID;
         CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
         INSERT INTO events VALUES (1, 3, 10, CAST('first' AS BLOB)), (2, 3, 20, CAST('second' AS BLOB));
         INSERT INTO event_keys VALUES ('change:1', 1), ('session:a', 1), ('session:a', 2);
         INSERT INTO counters VALUES ('change', 7);",
    )
    .unwrap();
    for content in &contents {
        let hash = ContentHash::of(content);
        file.execute("INSERT INTO blobs VALUES (?1, ?2)", params![hash.as_bytes(), content]).unwrap();
        file.execute("INSERT INTO blob_references VALUES (2, ?1)", [hash.as_bytes()]).unwrap();
    }
    contents
}

#[test]
fn version_1_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let contents = version_1(folder.path());
    let error = Reader::open(folder.path()).unwrap_err();
    assert!(matches!(error, OpenJournalError::Outdated { version: 1, .. }), "{error}");

    let mut journal = open(folder.path());
    let reader = journal.reader();
    assert_eq!(all(reader), [(1, "first".to_owned()), (2, "second".to_owned())]);
    let first = reader.event(1).unwrap().unwrap();
    assert_eq!((first.version, first.time), (3, 10));
    assert_eq!(reader.events_with("session:a", 0, 10).unwrap().len(), 2);
    assert_eq!(reader.events_with("change:1", 0, 10).unwrap().len(), 1);
    assert_eq!(reader.counter("change").unwrap(), 7);
    for content in &contents {
        assert!(reader.blob(ContentHash::of(content)).unwrap().as_ref() == Some(content));
    }
    assert_eq!(reader.check().unwrap().problems, []);
    assert!(journal.compact(u64::MAX).unwrap().after < 10_000, "what was never compressed waits for it");
    assert_eq!(journal.append(&Batch { events: vec![event("third", &[])], ..Batch::default() }).unwrap(), 3..4);
    let keep = BTreeSet::new();
    let retention = |before| sayso_journal::Retention {
        before: Some(before),
        most_bytes: None,
        keep: &keep,
        release: &super::NO_EVENTS,
        keep_blobs: &super::NO_BLOBS,
    };
    assert_eq!(journal.collect(retention(20)).unwrap().blobs, 0, "the second event still refers to them");
    assert_eq!(journal.collect(retention(21)).unwrap().blobs, 2);
    drop(journal);
    assert_eq!(all(&Reader::open(folder.path()).unwrap()).len(), 3);
}

#[test]
fn a_migration_that_fails_leaves_version_1() {
    let folder = tempfile::tempdir().unwrap();
    version_1(folder.path());
    let path = folder.path().join("journal.db");
    // A body that is no bytes is what no version wrote, and the migration stumbles over it half way.
    Connection::open(&path).unwrap().execute("UPDATE events SET body = 5 WHERE number = 2", []).unwrap();
    let error = Journal::open(folder.path(), AT_ONCE).unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
    let file = Connection::open(&path).unwrap();
    let version: i64 = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    let keys: i64 = file.query_row("SELECT count(key) FROM event_keys", [], |row| row.get(0)).unwrap();
    assert_eq!((version, keys), (1, 3));
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let path = folder.path().join("journal.db");
    let file = Connection::open(&path).unwrap();
    file.execute_batch("PRAGMA user_version = 99; CREATE TABLE future (x); PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
    drop(file);
    let before = std::fs::read(&path).unwrap();
    for error in [Journal::open(folder.path(), AT_ONCE).map(drop), Reader::open(folder.path()).map(drop)] {
        let error = error.unwrap_err();
        let text =
            format!("`{}` was written by a newer sayso: its version is 99, this one knows up to 2", path.display());
        assert_eq!((error.to_string(), error.hint()), (text, Some("update sayso")));
    }
    let error = sayso_journal::repair(folder.path(), AT_ONCE).unwrap_err();
    assert!(error.to_string().contains("newer sayso"));
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn another_programs_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let file = Connection::open(&path).unwrap();
    file.execute_batch("CREATE TABLE bookmarks (x); INSERT INTO bookmarks VALUES (1);").unwrap();
    drop(file);
    let before = std::fs::read(&path).unwrap();
    let text = format!("`{}` is not a journal of sayso, and was left alone", path.display());
    assert_eq!(Journal::open(folder.path(), AT_ONCE).unwrap_err().to_string(), text);
    assert_eq!(Reader::open(folder.path()).unwrap_err().to_string(), text);
    assert_eq!(sayso_journal::repair(folder.path(), AT_ONCE).unwrap_err().to_string(), text);
    assert!(std::fs::read(&path).unwrap() == before);
}
