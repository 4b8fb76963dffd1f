//! Scans: found files, reads, and changes between two scans.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};
use sayso_review::{ContentHash, FileMode, Fingerprint, RecordedStep};
use sayso_workspace::{Backend, Contents, Moment, Scan, ScanIndex, ScanLimits, TreeChanges, Trust, Workspace, WsPath};

use crate::change::{at, put, set_mode};

pub(crate) const LIMITS: ScanLimits =
    ScanLimits { max_file_bytes: 1 << 20, max_files: 10_000, max_new_bytes: 1 << 30, max_ignored_bytes: 1 << 29 };

/// In-memory store.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) contents: BTreeMap<ContentHash, Vec<u8>>,
    /// Sizes of the batches.
    pub(crate) batches: Vec<usize>,
    pub(crate) asked: usize,
}

impl Contents for Store {
    type Error = Infallible;

    fn has(&mut self, hash: ContentHash) -> Result<bool, Infallible> {
        self.asked += 1;
        Ok(self.contents.contains_key(&hash))
    }

    fn keep(&mut self, contents: &[(ContentHash, &[u8])]) -> Result<(), Infallible> {
        assert!(!contents.is_empty());
        self.batches.push(contents.iter().map(|(_, bytes)| bytes.len()).sum());
        for (hash, bytes) in contents {
            assert_eq!(ContentHash::of(bytes), *hash);
            assert!(self.contents.insert(*hash, bytes.to_vec()).is_none(), "kept twice");
        }
        Ok(())
    }
}

/// Temporary workspace.
pub(crate) struct Scene {
    pub(crate) outer: tempfile::TempDir,
    pub(crate) workspace: Workspace,
    pub(crate) store: Store,
    pub(crate) limits: ScanLimits,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        let workspace = Workspace::open_with(&root, Backend::Stepwise).unwrap();
        Self { outer, workspace, store: Store::default(), limits: LIMITS }
    }

    pub(crate) fn root(&self) -> std::path::PathBuf {
        self.outer.path().join("ws")
    }

    pub(crate) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        put(&self.root(), path, bytes);
    }

    /// Scans as in production.
    pub(crate) fn scan(&mut self, known: &ScanIndex) -> Scan {
        self.workspace.scan(known, Trust::Kept, self.limits, &mut self.store).unwrap()
    }

    /// Scans long after all changes so far.
    pub(crate) fn later(&mut self, known: &ScanIndex) -> Scan {
        self.later_with(known, Trust::Kept)
    }

    pub(crate) fn later_with(&mut self, known: &ScanIndex, trust: Trust) -> Scan {
        let later = Moment::from_nanoseconds(i64::MAX);
        self.workspace.scan_begun_at(later, known, trust, self.limits, &mut self.store).unwrap()
    }

    pub(crate) fn first(&mut self) -> Scan {
        self.later(&ScanIndex::default())
    }

    /// Returns the files of a first scan.
    pub(crate) fn found(&mut self) -> Vec<String> {
        let scan = self.first();
        paths(&scan.index)
    }
}

pub(crate) fn paths(known: &ScanIndex) -> Vec<String> {
    let steps = TreeChanges::between(&ScanIndex::default(), known).steps;
    steps.into_iter().map(|step| step.path.to_string()).collect()
}

fn file(bytes: &str, mode: u32) -> Fingerprint {
    let mode = FileMode::new(mode);
    Fingerprint::File { hash: ContentHash::of(bytes.as_bytes()), size: bytes.len() as u64, mode }
}

fn link(target: &str) -> Fingerprint {
    Fingerprint::Link { target: target.to_owned() }
}

fn step(path: &str, before: Fingerprint, after: Fingerprint) -> RecordedStep {
    RecordedStep { path: at(path), before, after }
}

fn set_time(path: &Path, seconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

#[test]
fn every_file_and_link_is_captured() {
    let mut scene = Scene::new();
    scene.put("f", "one");
    scene.put("d/e/g", "two");
    set_mode(scene.root().join("f"), 0o600);
    set_mode(scene.root().join("d/e/g"), 0o755);
    symlink("../outside", scene.root().join("d/link")).unwrap();
    let scan = scene.first();
    assert_eq!(scan.not_captured, []);
    assert_eq!(scan.index.at(&at("f")), Some(file("one", 0o600)));
    assert_eq!(scan.index.at(&at("d/e/g")), Some(file("two", 0o755)));
    assert_eq!(scan.index.at(&at("d/link")), Some(link("../outside")), "links are not followed");
    assert_eq!(scan.index.at(&at("d")), None);
    assert_eq!((scan.cost.found, scan.cost.read, scan.cost.kept, scan.cost.kept_bytes), (3, 2, 2, 6));
    let kept: Vec<&[u8]> = scan.index.contents().map(|hash| scene.store.contents[&hash].as_slice()).collect();
    assert_eq!(kept, [b"two", b"one"]);
    let changes = TreeChanges::between(&ScanIndex::default(), &scan.index);
    assert_eq!(changes.made, [at("d"), at("d/e")], "outermost first");
}

#[test]
fn unchanged_tree_is_not_read() {
    let mut scene = Scene::new();
    for number in 0..50 {
        scene.put(&format!("d{}/f{number}", number % 7), format!("{number}"));
    }
    symlink("f", scene.root().join("link")).unwrap();
    let first = scene.first();
    assert_eq!(first.cost.read, 50);
    let second = scene.later(&first.index);
    assert_eq!((second.cost.read, second.cost.kept, second.cost.found), (0, 0, 51));
    assert_eq!(second.index.encode(), first.index.encode());
    assert!(TreeChanges::between(&first.index, &second.index).is_empty());
    let stored = ScanIndex::decode(&first.index.encode()).unwrap();
    assert_eq!(scene.later(&stored).cost.read, 0);
}

#[test]
fn files_written_during_scan_are_read_again() {
    let mut scene = Scene::new();
    scene.put("f", "one");
    let begun_long_ago = Moment::from_nanoseconds(1);
    let Scene { workspace, store, .. } = &mut scene;
    let first = workspace.scan_begun_at(begun_long_ago, &ScanIndex::default(), Trust::Kept, LIMITS, store).unwrap();
    let second = scene.later(&first.index);
    assert_eq!((second.cost.read, second.cost.kept), (1, 0), "it is read, found to be the same, and not kept again");
    assert_eq!(scene.later(&second.index).cost.read, 0);
}

#[test]
fn edit_in_same_instant_is_detected() {
    let mut scene = Scene::new();
    for round in 0..200 {
        let (old, new) = (format!("old {round:03}"), format!("new {round:03}"));
        scene.put("f", &old);
        let before = scene.scan(&ScanIndex::default());
        scene.put("f", &new);
        let after = scene.scan(&before.index);
        let changes = TreeChanges::between(&before.index, &after.index);
        assert_eq!(changes.steps, [step("f", file(&old, 0o644), file(&new, 0o644))]);
    }
}

#[test]
fn edit_with_same_size_and_time_is_detected() {
    let mut scene = Scene::new();
    scene.put("f", "one");
    set_time(&scene.root().join("f"), 1_000_000);
    let before = scene.scan(&ScanIndex::default());
    scene.put("f", "two");
    set_time(&scene.root().join("f"), 1_000_000);
    let after = scene.scan(&before.index);
    let changes = TreeChanges::between(&before.index, &after.index);
    assert_eq!(changes.steps, [step("f", file("one", 0o644), file("two", 0o644))]);
}

#[test]
fn every_path_change_is_reported() {
    let mut scene = Scene::new();
    let root = scene.root();
    for path in ["deleted", "edited", "mode", "to-link", "to-directory", "renamed", "touched", "old/inner/f"] {
        scene.put(path, path);
    }
    symlink("a", root.join("retargeted")).unwrap();
    symlink("a", root.join("to-file")).unwrap();
    std::fs::create_dir(root.join("empty")).unwrap();
    let before = scene.scan(&ScanIndex::default());
    std::fs::remove_file(root.join("deleted")).unwrap();
    scene.put("edited", "other");
    set_mode(root.join("mode"), 0o755);
    for path in ["to-link", "to-directory", "retargeted", "to-file"] {
        std::fs::remove_file(root.join(path)).unwrap();
    }
    symlink("x", root.join("to-link")).unwrap();
    symlink("b", root.join("retargeted")).unwrap();
    scene.put("to-file", "file");
    scene.put("to-directory/f", "in it");
    std::fs::rename(root.join("renamed"), root.join("renamed-to")).unwrap();
    set_time(&root.join("touched"), 5);
    std::fs::remove_dir_all(root.join("old")).unwrap();
    std::fs::remove_dir(root.join("empty")).unwrap();
    std::fs::create_dir_all(root.join("new/inner")).unwrap();
    scene.put("created", "new");
    let after = scene.scan(&before.index);
    let changes = TreeChanges::between(&before.index, &after.index);
    let (plain, absent) = (|text| file(text, 0o644), Fingerprint::Absent);
    let expected = [
        step("created", absent.clone(), plain("new")),
        step("deleted", plain("deleted"), absent.clone()),
        step("edited", plain("edited"), plain("other")),
        step("mode", plain("mode"), file("mode", 0o755)),
        step("old/inner/f", plain("old/inner/f"), absent.clone()),
        step("renamed", plain("renamed"), absent.clone()),
        step("renamed-to", absent.clone(), plain("renamed")),
        step("retargeted", link("a"), link("b")),
        step("to-directory", plain("to-directory"), absent.clone()),
        step("to-directory/f", absent, plain("in it")),
        step("to-file", link("a"), plain("file")),
        step("to-link", plain("to-link"), link("x")),
    ];
    assert_eq!(changes.steps, expected);
    assert_eq!(changes.made, ["new", "new/inner", "to-directory"].map(at));
    assert_eq!(changes.removed, ["empty", "old", "old/inner"].map(at));
    assert_eq!(changes.uncaptured, []);
}

#[test]
fn ignored_files_are_omitted() {
    let mut scene = Scene::new();
    for path in
        ["a.o", "keep.o", "src/b.o", "build/out", "src/build/out", "top", "src/top", "src/x", "src/y", "private"]
    {
        scene.put(path, path);
    }
    scene.put(".gitignore", "\u{feff}*.o\r\n!keep.o\nbuild/\n/top\n# comment\n\nsrc/x\n[\n");
    scene.put("src/.gitignore", "!b.o\ny\n");
    assert!(Command::new("git").arg("init").arg("-q").current_dir(scene.root()).status().unwrap().success());
    scene.put(".git/info/exclude", "private\n");
    let ours = scene.found();
    let output = Command::new("git")
        .args(["-c", "core.excludesFile=/dev/null", "ls-files", "--others", "--exclude-standard"])
        .current_dir(scene.root())
        .output()
        .unwrap();
    let mut git: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    git.sort();
    assert_eq!(ours, git);
    assert_eq!(ours, [".gitignore", "keep.o", "src/.gitignore", "src/b.o", "src/top"]);
}

#[test]
fn precious_ignored_files_are_captured() {
    let mut scene = Scene::new();
    let personal = [".env", ".env.local", ".envrc", "a/prod.env", "a/secrets.yaml"];
    for path in personal.iter().chain(&["debug.log", "node_modules/.env", "node_modules/p/.env", ".env.d/f"]) {
        scene.put(path, path);
    }
    scene.put(".gitignore", ".env*\n*.env\nsecrets.*\n*.log\nnode_modules\n");
    let mut expected = vec![".gitignore"];
    expected.extend(personal);
    expected.sort_unstable();
    assert_eq!(scene.found(), expected);
}

#[test]
fn git_directories_are_omitted_at_every_depth() {
    let mut scene = Scene::new();
    scene.put(".git/HEAD", "ref");
    scene.put("module/.git", "gitdir: elsewhere");
    scene.put("module/f", "in a submodule");
    scene.put("nested/.git/HEAD", "ref");
    scene.put("nested/f", "in a repository");
    scene.put("nested/.git/info/exclude", "*.tmp");
    scene.put("nested/a.tmp", "");
    scene.put("b.tmp", "");
    scene.put(".github/ci", "");
    assert_eq!(scene.found(), [".github/ci", "b.tmp", "module/f", "nested/f"]);
}

#[test]
fn protected_directory_is_omitted() {
    let mut scene = Scene::new();
    scene.put("state/journal", "ours");
    scene.put("state2", "theirs");
    scene.workspace = Workspace::open(&scene.root()).unwrap().protecting(&scene.root().join("state"));
    let scan = scene.first();
    assert_eq!(paths(&scan.index), ["state2"]);
    assert!(TreeChanges::between(&ScanIndex::default(), &scan.index).made.is_empty());
}

#[test]
fn newly_ignored_file_reports_last_change() {
    let mut scene = Scene::new();
    for path in ["src/a", "src/b", "src/c", "src/deep/d", "config"] {
        scene.put(path, "old");
    }
    let before = scene.scan(&ScanIndex::default());
    scene.put(".gitignore", "src\nconfig\n");
    scene.put("src/a", "new");
    scene.put("src/unknown", "new");
    std::fs::remove_file(scene.root().join("src/b")).unwrap();
    scene.put("config", "new");
    let after = scene.scan(&before.index);
    let changes = TreeChanges::between(&before.index, &after.index);
    let told: Vec<String> = changes.steps.iter().map(|step| step.path.to_string()).collect();
    assert_eq!(told, [".gitignore", "config", "src/a", "src/b"]);
    assert_eq!((changes.made, changes.removed), (Vec::<WsPath>::new(), Vec::new()));
    // From then on the files are omitted, and their changes are not reported.
    let after = ScanIndex::decode(&after.index.encode()).unwrap();
    scene.put("src/a", "newer");
    let last = scene.scan(&after);
    assert_eq!(paths(&last.index), [".gitignore"]);
    assert!(TreeChanges::between(&after, &last.index).is_empty());
}

#[test]
fn regression_ignored_link_over_directory_is_reported() {
    let mut scene = Scene::new();
    let root = scene.root();
    std::fs::create_dir(root.join("g.o")).unwrap();
    let before = scene.scan(&ScanIndex::default()).index;
    std::fs::remove_dir(root.join("g.o")).unwrap();
    symlink("a", root.join("g.o")).unwrap();
    put(&root, ".gitignore", "*.o\n");
    let changes = TreeChanges::between(&before, &scene.scan(&before).index);
    assert_eq!(changes.removed, [at("g.o")]);
    assert_eq!(changes.steps.last(), Some(&step("g.o", Fingerprint::Absent, link("a"))));
}

#[test]
fn unignored_files_are_not_new() {
    let mut scene = Scene::new();
    scene.put(".gitignore", "node_modules/\n*.log\n");
    scene.put("node_modules/p/index.js", "");
    scene.put("a.log", "");
    let before = scene.scan(&ScanIndex::default());
    scene.put(".gitignore", "\n");
    scene.put("b.log", "");
    let after = scene.scan(&before.index);
    let changes = TreeChanges::between(&before.index, &after.index);
    let told: Vec<String> = changes.steps.iter().map(|step| step.path.to_string()).collect();
    assert_eq!(told, [".gitignore", "b.log"], "an undo must not remove what was there before");
    assert_eq!(changes.made, []);
    assert_eq!(paths(&after.index).len(), 4);
}

#[test]
fn released_contents_are_read_again() {
    let mut scene = Scene::new();
    scene.put("f", "one");
    scene.put("g", "two");
    let first = scene.first();
    scene.store.contents.remove(&ContentHash::of(b"one"));
    scene.store.asked = 0;
    assert_eq!(scene.later(&first.index).cost.read, 0, "taken on trust");
    assert_eq!(scene.store.asked, 0);
    let asked = scene.later_with(&first.index, Trust::Ask);
    assert_eq!((asked.cost.read, asked.cost.kept), (1, 1));
    assert_eq!(scene.store.contents[&ContentHash::of(b"one")], b"one");
}

#[test]
fn equal_contents_are_stored_once() {
    let mut scene = Scene::new();
    for number in 0..10 {
        scene.put(&number.to_string(), "the same");
    }
    scene.put("empty", "");
    let scan = scene.first();
    assert_eq!((scan.cost.read, scan.cost.kept, scan.cost.kept_bytes), (11, 2, 8));
    // The index is lost, but the contents are stored.
    assert_eq!(scene.first().cost.kept, 0);
}

#[test]
fn changes_are_sorted_by_path() {
    let mut scene = Scene::new();
    let mut expected = ["a", "a!b", "a-b/c", "a.b", "a0", "b", "b-/x", "b.x/y", "c/a", "c/a-", "c/b/d", "ä/ö"];
    for path in expected {
        scene.put(path, path);
    }
    expected.sort_unstable();
    let first = scene.first();
    assert_eq!(paths(&first.index), expected);
    for path in expected {
        assert!(first.index.at(&at(path)).is_some(), "{path}");
    }
    assert_eq!(scene.later(&first.index).cost.read, 0, "each is found beside what is known of it");
}
