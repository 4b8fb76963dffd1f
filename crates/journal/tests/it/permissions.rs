//! Permissions of the journal's files.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use sayso_journal::{Batch, Journal, Reader};

use super::writers::{child, finish};
use super::{AT_ONCE, event, open};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The umask belongs to a process, so each case runs in a child process.
#[test]
fn journal_is_private_under_any_umask() {
    for umask in [0o000, 0o022, 0o777] {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("journal");
        let output =
            finish(child("permissions::umask_in_child_process", &folder, &[("JOURNAL_UMASK", &umask.to_string())]));
        assert!(output.contains("made"), "umask {umask:o}: {output}");
        assert_eq!(mode(&folder), 0o700, "umask {umask:o}");
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "umask {umask:o}: {}", path.display());
        }
    }
}

#[test]
#[ignore = "run by `journal_is_private_under_any_umask` in a process of its own"]
fn umask_in_child_process() {
    let Some(folder) = std::env::var_os("JOURNAL_FOLDER") else { return };
    let folder = Path::new(&folder);
    let umask: u32 = std::env::var("JOURNAL_UMASK").unwrap().parse().unwrap();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
    let mut journal = open(folder);
    journal.append(&Batch { events: vec![event("it", &[])], ..Batch::default() }).unwrap();
    for name in ["journal.db", "journal.db-wal", "journal.db-shm", "lock"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
    println!("made");
}

#[test]
fn journal_permissions_are_restricted_on_open() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()));
    let file = folder.path().join("journal.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(folder.path()));
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn links_in_journal_folder_are_rejected() {
    for name in ["journal.db", "lock"] {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("journal");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(outer.path().join("precious"), "precious").unwrap();
        symlink("../precious", folder.join(name)).unwrap();
        Journal::open(&folder, AT_ONCE).unwrap_err();
        assert_eq!(std::fs::read_to_string(outer.path().join("precious")).unwrap(), "precious");
    }
}

#[test]
fn missing_parents_are_created() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("state/sayso");
    Reader::open(&folder).unwrap_err();
    assert!(!folder.exists(), "a reader makes nothing");
    drop(Journal::open(&folder, AT_ONCE).unwrap());
    assert_eq!(mode(&folder), 0o700);
}
