//! Files of other formats and of other programs.

use std::path::Path;

use rusqlite::Connection;
use sayso_journal::{Journal, Reader, repair};

use super::{AT_ONCE, open};

/// Makes a journal that claims another format, and returns its bytes.
fn with_format(folder: &Path, format: i64) -> Vec<u8> {
    drop(open(folder));
    let path = folder.join("journal.db");
    let file = Connection::open(&path).unwrap();
    let statements =
        format!("PRAGMA user_version = {format}; CREATE TABLE other (x); PRAGMA wal_checkpoint(TRUNCATE);");
    file.execute_batch(&statements).unwrap();
    drop(file);
    std::fs::read(&path).unwrap()
}

/// Checks that the journal in `folder` can be neither opened nor repaired, and that its file stays unchanged.
fn check_rejected(folder: &Path, before: &[u8], message: &str, hint: &str) {
    for error in [Journal::open(folder, AT_ONCE).map(drop), Reader::open(folder).map(drop)] {
        let error = error.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.hint()), (message, Some(hint)));
    }
    let error = repair(folder, AT_ONCE).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.hint()), (message, Some(hint)));
    assert!(std::fs::read(folder.join("journal.db")).unwrap() == before);
}

#[test]
fn older_format_is_rejected_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    for format in [1, 2] {
        let before = with_format(folder.path(), format);
        let path = folder.path().join("journal.db");
        let message = format!(
            "the journal `{}` was written by an older sayso (format {format}); this one reads format 3",
            path.display()
        );
        let hint = "move the journal's folder away to start a new journal, or run the older sayso to read this one";
        check_rejected(folder.path(), &before, &message, hint);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn newer_format_is_rejected_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let before = with_format(folder.path(), 99);
    let path = folder.path().join("journal.db");
    let message =
        format!("the journal `{}` was written by a newer sayso (format 99); this one reads format 3", path.display());
    check_rejected(folder.path(), &before, &message, "update sayso");
}

#[test]
fn foreign_file_is_rejected_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let file = Connection::open(&path).unwrap();
    file.execute_batch("CREATE TABLE bookmarks (x); INSERT INTO bookmarks VALUES (1);").unwrap();
    drop(file);
    let before = std::fs::read(&path).unwrap();
    let message = format!("`{}` is not a journal of sayso", path.display());
    check_rejected(folder.path(), &before, &message, "move the file elsewhere, or choose another folder");
}
