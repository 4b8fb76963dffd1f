//! Files that a scan cannot or must not capture, and the reports about them.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fmt;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use ChangeKind::{Created, Modified, Removed};
use sayso_review::{ContentHash, ErrorKind};
use sayso_workspace::{
    ChangeKind, Contents, Moment, NotCaptured, Reason, ScanError, ScanIndex, TreeChanges, Trust, UncapturedChange,
    Workspace,
};

use crate::change::{at, set_mode};
use crate::respawn::again_as_nobody;
use crate::scan::{LIMITS, Scene, Store, paths};

/// Size of a file that takes long to read.
const SIZE: u64 = 1 << 20;

fn said(path: &str, reason: Reason) -> NotCaptured {
    NotCaptured { path: path.to_owned(), reason }
}

fn uncaptured(path: &str, change: ChangeKind) -> UncapturedChange {
    UncapturedChange { path: at(path), change }
}

#[test]
fn large_file_change_is_reported_without_content() {
    let mut scene = Scene::new();
    scene.limits.max_file_bytes = 10;
    for path in ["stays", "changes", "goes", "shrinks"] {
        scene.put(path, "eleven byte");
    }
    scene.put("fits", "ten bytes.");
    scene.put("grows", "small");
    let before = scene.first();
    let large = |path| said(path, Reason::TooLarge { size: 11, limit: 10 });
    assert_eq!(before.not_captured, ["changes", "goes", "shrinks", "stays"].map(large));
    assert_eq!((before.cost.read, before.cost.found), (2, 6));
    scene.put("changes", "bytes eleve");
    scene.put("comes", "eleven byte");
    std::fs::remove_file(scene.root().join("goes")).unwrap();
    scene.put("shrinks", "small");
    scene.put("grows", "eleven byte");
    let after = scene.scan(&before.index);
    let changes = TreeChanges::between(&before.index, &after.index);
    assert_eq!(changes.steps, []);
    let expected =
        [("changes", Modified), ("comes", Created), ("goes", Removed), ("grows", Modified), ("shrinks", Modified)];
    assert_eq!(changes.uncaptured, expected.map(|(path, change)| uncaptured(path, change)));
    assert!(after.not_captured[0].to_string().contains("`changes`: it has 11 bytes, more than the limit of 10"));
}

#[test]
fn new_bytes_stay_within_limit() {
    let mut scene = Scene::new();
    scene.limits.max_new_bytes = 10;
    scene.put("a", "aaaa");
    scene.put("b", "aaaa");
    scene.put("c", "ccccc");
    scene.put("d", "dd");
    scene.put("e", "e");
    let first = scene.first();
    assert_eq!(first.not_captured, [said("d", Reason::TooMuch { limit: 10 })]);
    assert_eq!(
        (first.cost.kept_bytes, first.cost.read),
        (10, 4),
        "equal contents count once, and what fits later is taken"
    );
    let second = scene.later(&first.index);
    assert_eq!((second.not_captured.len(), second.cost.read), (0, 1), "the next scan takes the rest");
    let changes = TreeChanges::between(&first.index, &second.index);
    assert!(changes.is_empty(), "to be captured is no change: {changes:?}");
}

#[test]
fn racy_file_is_read_at_size_limit() {
    let mut scene = Scene::new();
    scene.put("f", "same");
    let begun_long_ago = Moment::from_nanoseconds(1);
    let Scene { workspace, store, .. } = &mut scene;
    let racy = workspace.scan_begun_at(begun_long_ago, &ScanIndex::default(), Trust::Kept, LIMITS, store).unwrap();
    scene.limits.max_new_bytes = 0;
    let next = scene.later(&racy.index);
    assert_eq!((next.cost.read, next.not_captured.len()), (1, 0));
}

#[test]
fn scan_at_file_limit_reports_no_deletions() {
    let mut scene = Scene::new();
    let all = ["a", "b-/x", "b/x", "b/y", "c", "d/e/f"];
    for path in all {
        scene.put(path, path);
    }
    let whole = scene.first();
    for most in 1..6 {
        scene.limits.max_files = most;
        let part = scene.first();
        let [.., last] = part.not_captured.as_slice() else { panic!("{most}: it is said") };
        assert_eq!(last.reason, Reason::TooMany { limit: most });
        assert!(paths(&part.index).len() <= most);
        let part = ScanIndex::decode(&part.index.encode()).unwrap();
        for (before, after) in [(&whole.index, &part), (&part, &whole.index)] {
            let changes = TreeChanges::between(before, after);
            assert!(changes.is_empty(), "{most}: {changes:?}");
        }
    }
    scene.limits.max_files = 6;
    assert_eq!(scene.first().not_captured, []);
    // Files before the end of the scan are compared.
    scene.limits.max_files = 5;
    let before = scene.first();
    scene.put("a", "other");
    std::fs::remove_file(scene.root().join("b/y")).unwrap();
    let after = scene.scan(&before.index);
    let changes = TreeChanges::between(&before.index, &after.index);
    let told: Vec<String> = changes.steps.iter().map(|step| step.path.to_string()).collect();
    assert_eq!(told, ["a", "b/y"]);
}

#[test]
fn oversized_directory_is_not_listed() {
    let mut scene = Scene::new();
    for number in 0..20 {
        scene.put(&format!("d/{number}"), "");
    }
    scene.put("-first", "");
    scene.put("last", "");
    scene.limits.max_files = 10;
    let scan = scene.first();
    assert_eq!(scan.not_captured, [said("d", Reason::TooMany { limit: 10 })]);
    assert_eq!(paths(&scan.index), ["-first"]);
    scene.limits.max_files = 2;
    assert_eq!(scene.first().not_captured, [said(".", Reason::TooMany { limit: 2 })]);
}

#[test]
fn too_deep_tree_is_reported() {
    let mut scene = Scene::new();
    let mut deep = "d".to_owned();
    for _ in 0..300 {
        deep.push_str("/d");
    }
    std::fs::create_dir_all(scene.root().join(&deep)).unwrap();
    scene.put("f", "");
    let scan = scene.first();
    assert_eq!(scan.not_captured.len(), 1);
    assert_eq!(scan.not_captured[0].reason, Reason::TooDeep);
    assert_eq!(paths(&scan.index), ["f"]);
    assert!(TreeChanges::between(&scan.index, &scene.first().index).is_empty());
}

#[test]
fn non_utf8_names_and_targets_are_reported() {
    let mut scene = Scene::new();
    let name = |bytes: &'static [u8]| OsStr::from_bytes(bytes);
    scene.put("d/f", "");
    std::fs::write(scene.root().join("d").join(name(b"x\xff")), "").unwrap();
    std::fs::create_dir(scene.root().join(name(b"y\xff"))).unwrap();
    symlink(name(b"z\xff"), scene.root().join("link")).unwrap();
    let scan = scene.first();
    let expected = [said("y\u{fffd}", Reason::Name), said("d/x\u{fffd}", Reason::Name), said("link", Reason::Target)];
    assert_eq!(scan.not_captured, expected);
    assert_eq!(paths(&scan.index), ["d/f"]);
}

#[test]
fn special_files_are_reported() {
    let mut scene = Scene::new();
    let root = scene.root();
    assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    let before = scene.first();
    assert_eq!(before.not_captured, [said("pipe", Reason::Pipe), said("socket", Reason::Socket)]);
    assert_eq!(scene.later(&before.index).not_captured, before.not_captured, "every time");
    // Using a pipe is no change; creating or removing it is.
    let opened = rustix::fs::open(root.join("pipe"), rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty()).unwrap();
    rustix::io::write(&opened, b"x").unwrap();
    std::fs::remove_file(root.join("socket")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(root.join("other")).status().unwrap().success());
    let after = scene.scan(&before.index);
    let changes = TreeChanges::between(&before.index, &after.index);
    assert_eq!(changes.uncaptured, [uncaptured("other", Created), uncaptured("socket", Removed)]);
    let mut byte = [0];
    assert_eq!(rustix::io::read(&opened, &mut byte).unwrap(), 1, "nobody read from it");
}

#[test]
fn unreadable_directory_reports_no_deletions() {
    if again_as_nobody("scan_limits::unreadable_directory_reports_no_deletions") {
        return;
    }
    let mut scene = Scene::new();
    let root = scene.root();
    for path in ["closed/f", "closed/d/f", "file", "no-entry/f"] {
        scene.put(path, path);
    }
    let before = scene.first();
    set_mode(root.join("closed"), 0o000);
    set_mode(root.join("file"), 0o000);
    set_mode(root.join("no-entry"), 0o600);
    let after = scene.scan(&before.index);
    let unreadable: Vec<&str> = after.not_captured.iter().map(|said| said.path.as_str()).collect();
    assert_eq!(unreadable, ["closed", "file", "no-entry/f"]);
    for said in &after.not_captured {
        assert!(said.to_string().contains("cannot be read: Permission denied"), "{said}");
    }
    let changes = TreeChanges::between(&before.index, &after.index);
    assert_eq!(changes.steps, []);
    assert_eq!(changes.uncaptured, [uncaptured("file", Modified)]);
    assert_eq!(changes.removed, []);
    set_mode(root.join("closed"), 0o755);
    set_mode(root.join("no-entry"), 0o755);
    set_mode(root.join("file"), 0o644);
    let again = scene.scan(&after.index);
    assert_eq!(again.not_captured, []);
    assert_eq!(TreeChanges::between(&after.index, &again.index).steps, [], "nothing new in what was closed");
    assert!(TreeChanges::between(&before.index, &again.index).is_empty());
}

#[test]
fn constantly_changing_file_is_reported() {
    let mut scene = Scene::new();
    scene.limits.max_file_bytes = 2 * SIZE;
    scene.put("f", vec![0; SIZE as usize]);
    let file = std::fs::OpenOptions::new().write(true).open(scene.root().join("f")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for size in SIZE - 3..=SIZE {
                    file.set_len(size).unwrap();
                }
            }
        });
        let mut seen = false;
        for _ in 0..10_000 {
            let scan = scene.scan(&ScanIndex::default());
            match scan.not_captured.as_slice() {
                [] => assert_eq!(scan.cost.found, 1),
                [one] => {
                    assert_eq!(*one, said("f", Reason::KeptChanging));
                    seen = true;
                }
                more => panic!("{more:?}"),
            }
            if seen {
                break;
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(seen, "the race happened");
    });
}

#[test]
fn scan_stays_inside_during_directory_swap() {
    let mut scene = Scene::new();
    let root = scene.root();
    scene.put("swap/inner/f", "inside");
    std::fs::create_dir_all(scene.outer.path().join("out/inner")).unwrap();
    std::fs::write(scene.outer.path().join("out/inner/f"), "secret").unwrap();
    symlink("../out", root.join("evil")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let (one, two) = (root.join("swap"), root.join("evil"));
                let _ = rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, two, flags);
            }
        });
        let (mut inside, mut changing) = (0, 0);
        for _ in 0..5_000 {
            let scan = scene.scan(&ScanIndex::default());
            inside += usize::from(scan.index.at(&at("swap/inner/f")).is_some());
            changing += usize::from(scan.not_captured.iter().any(|said| said.reason == Reason::KeptChanging));
        }
        done.store(true, Ordering::Relaxed);
        assert!(inside > 0 && changing > 0, "the race happened: {inside} inside, {changing} changing");
    });
    assert!(!scene.store.contents.contains_key(&ContentHash::of(b"secret")));
}

#[test]
fn contents_are_stored_in_batches() {
    let mut scene = Scene::new();
    scene.limits.max_file_bytes = 32 << 20;
    for number in 0..20u8 {
        scene.put(&format!("f{number:02}"), vec![number; 1 << 20]);
    }
    scene.put("huge", vec![99; 20 << 20]);
    let scan = scene.first();
    assert_eq!(scene.store.batches, [8 << 20, 8 << 20, 4 << 20, 20 << 20]);
    assert_eq!(scan.cost.kept, 21);
}

/// Store that rejects all contents.
struct Full;

#[derive(Debug)]
struct DiskFull;

impl fmt::Display for DiskFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk is full")
    }
}

impl std::error::Error for DiskFull {}

impl Contents for Full {
    type Error = DiskFull;

    fn has(&mut self, _: ContentHash) -> Result<bool, DiskFull> {
        Ok(false)
    }

    fn keep(&mut self, _: &[(ContentHash, &[u8])]) -> Result<(), DiskFull> {
        Err(DiskFull)
    }
}

#[test]
fn store_error_ends_scan() {
    let scene = Scene::new();
    scene.put("f", "one");
    let error = scene.workspace.scan(&ScanIndex::default(), Trust::Kept, LIMITS, &mut Full).unwrap_err();
    assert_eq!(error.to_string(), "cannot store file contents: the disk is full");
    assert!(matches!(error, ScanError::Contents(DiskFull)));
    assert_eq!((error.kind(), error.hint()), (ErrorKind::Unavailable, None));
}

#[test]
fn removed_workspace_scans_as_empty() {
    let mut scene = Scene::new();
    std::fs::remove_dir(scene.root()).unwrap();
    let scan = scene.workspace.scan(&ScanIndex::default(), Trust::Kept, LIMITS, &mut scene.store);
    let _: Result<_, ScanError<Infallible>> = scan.map(|scan| assert!(scan.index.is_empty()));
}

#[test]
fn concurrent_file_changes_do_not_break_scan() {
    let mut scene = Scene::new();
    let root = scene.root();
    scene.put("stays/f", "stays");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for number in 0..20 {
                    let directory = root.join(format!("d{number}"));
                    let _ = std::fs::create_dir(&directory);
                    let _ = std::fs::File::create(directory.join("f")).and_then(|mut file| file.write_all(b"x"));
                }
                for number in 0..20 {
                    let _ = std::fs::remove_dir_all(root.join(format!("d{number}")));
                }
            }
        });
        let mut known = ScanIndex::default();
        for _ in 0..500 {
            known = scene.scan(&known).index;
            assert_eq!(ScanIndex::decode(&known.encode()).unwrap().len(), known.len(), "it is in order");
            assert!(known.at(&at("stays/f")).is_some());
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn both_backends_find_the_same() {
    let scene = Scene::new();
    scene.put("d/f", "one");
    let mut store = Store::default();
    let kernel = Workspace::open(&scene.root()).unwrap();
    let one = kernel.scan(&ScanIndex::default(), Trust::Kept, LIMITS, &mut store).unwrap();
    let two = scene.workspace.scan(&ScanIndex::default(), Trust::Kept, LIMITS, &mut store).unwrap();
    assert!(TreeChanges::between(&one.index, &two.index).is_empty());
    assert_eq!(paths(&one.index), ["d/f"]);
}
