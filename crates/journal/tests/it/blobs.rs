//! Blobs: stored once, returned unchanged, or reported as damaged.

use sayso_journal::{Batch, ReadJournalError};
use sayso_review::ContentHash;

use super::{append_contents, noise, open};

#[test]
fn blobs_are_readable_before_and_after_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let line = b"a line of source that is much like the others\n";
    let mut contents = vec![Vec::new(), b"x".to_vec(), vec![0; 63], noise(1, 64), noise(2, 5 << 20)];
    contents.extend(
        [64, 32 << 10, (32 << 10) + 1, 5 << 20].map(|size| line.repeat(size / line.len() + 1)[..size].to_vec()),
    );
    let borrowed: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    append_contents(&mut journal, 0, &borrowed);
    let raw: u64 = contents.iter().map(|content| content.len() as u64).sum();
    let before = journal.reader().sizes().unwrap();
    assert_eq!((before.blobs, before.raw_bytes), (contents.len() as u64, raw));
    assert!(before.uncompressed_bytes > 10 << 20, "large ones wait");

    let first = journal.compact(1).unwrap();
    assert_eq!(first.blobs, 1, "no more than asked for");
    assert!(first.uncompressed > 0);
    let rest = journal.compact(u64::MAX).unwrap();
    assert_eq!(rest.uncompressed, 0);
    assert_eq!(journal.compact(u64::MAX).unwrap().blobs, 0, "what does not shrink is not tried again");
    let after = journal.reader().sizes().unwrap();
    assert_eq!(after.uncompressed_bytes, 0);
    assert!(after.stored_bytes < 6 << 20, "the lines shrank: {after:?}");
    drop(journal);

    let journal = open(folder.path());
    for content in &contents {
        let hash = ContentHash::of(content);
        assert!(journal.reader().has_blob(hash).unwrap());
        assert!(journal.reader().blob(hash).unwrap().unwrap() == *content, "{} bytes", content.len());
    }
    assert_eq!(journal.reader().blob(ContentHash::of(b"other")).unwrap(), None);
    assert!(!journal.reader().has_blob(ContentHash::of(b"other")).unwrap());
    assert_eq!(journal.reader().check().unwrap().problems, []);
}

#[test]
fn equal_blobs_are_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let content = noise(3, 10_000);
    append_contents(&mut journal, 0, &[&content, &content]);
    append_contents(&mut journal, 0, &[&content]);
    let sizes = journal.reader().sizes().unwrap();
    assert_eq!((sizes.blobs, sizes.raw_bytes, sizes.events), (1, 10_000, 2));
}

#[test]
fn stored_blob_can_be_referenced() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    append_contents(&mut journal, 0, &[b"content"]);
    let mut event = super::event("again", &[]);
    event.blobs = vec![ContentHash::of(b"content")];
    assert_eq!(journal.append(&Batch { events: vec![event], ..Batch::default() }).unwrap(), 2..3);
}

#[test]
fn damaged_blob_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let compressed = b"compressed, compressed, compressed, compressed, compressed, compressed, compressed".repeat(3);
    let contents = [compressed, noise(4, 5000)];
    append_contents(&mut journal, 0, &[&contents[0], &contents[1]]);
    drop(journal);
    let file = rusqlite::Connection::open(folder.path().join("journal.db")).unwrap();
    let sql = "UPDATE blobs SET content = CAST(X'00' || substr(content, 2) AS BLOB)";
    assert_eq!(file.execute(sql, []).unwrap(), 2);
    drop(file);
    let journal = open(folder.path());
    for content in &contents {
        let hash = ContentHash::of(content);
        let error = journal.reader().blob(hash).unwrap_err();
        assert!(matches!(error, ReadJournalError::DamagedBlob { hash: named, .. } if named == hash));
        assert!(error.to_string().contains(&hash.to_string()));
        assert!(error.hint().unwrap().contains("repair"));
    }
    assert_eq!(journal.reader().check().unwrap().problems.len(), 2);
}

#[test]
fn missing_content_is_stored_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let content = noise(5, 5000);
    append_contents(&mut journal, 0, &[&content]);
    drop(journal);
    let file = rusqlite::Connection::open(folder.path().join("journal.db")).unwrap();
    file.execute("UPDATE blobs SET content = X''", []).unwrap();
    drop(file);
    let mut journal = open(folder.path());
    append_contents(&mut journal, 0, &[&content]);
    assert_eq!(journal.reader().blob(ContentHash::of(&content)).unwrap(), Some(content));
    assert_eq!(journal.reader().check().unwrap().problems, []);
}

#[test]
fn oversized_blob_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let mut event = super::event("", &[]);
    event.body = vec![0; sayso_journal::MAX_BLOB_BYTES + 1];
    let error = journal.append(&Batch { events: vec![event], ..Batch::default() }).unwrap_err();
    assert_eq!(error.to_string(), "an event has 536870913 bytes, more than the 536870912 that the journal stores");
}
