//! Random trees and commands: the difference of two scans equals that of full reads.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use proptest::prelude::*;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps};
use sayso_review::{ContentHash, FileMode, Fingerprint, RecordedStep};
use sayso_workspace::{ScanIndex, TreeChanges, WsPath};

use crate::change::{Thing, Tree, at, put, set_mode, tree};
use crate::scan::Scene;

/// Names that sort around the slash, that patterns match, and that are both files and directories.
const NAMES: [&str; 8] = ["a", "a-b", "build", "f", "g.o", "k.o", ".env", "z"];

/// Lines of the ignore files.
#[derive(Clone, Debug)]
struct Rules {
    outer: Vec<&'static str>,
    /// Lines of `a/.gitignore`.
    inner: Vec<&'static str>,
}

impl Rules {
    fn write(&self, root: &Path) {
        put(root, ".gitignore", self.outer.join("\n"));
        if root.join("a").is_dir() && !root.join("a").is_symlink() {
            put(root, "a/.gitignore", self.inner.join("\n"));
        }
    }
}

/// `true` if patterns omit an entry, ignoring its directories.
fn is_named(tree: &Tree, path: &str) -> bool {
    let is_directory = is_directory(tree, path);
    match path.rsplit('/').next().unwrap() {
        // The inner ignore file may have moved with its directory.
        "k.o" if above(path).any(|part| has_line(tree, &format!("{part}/.gitignore"), "!k.o")) => false,
        "g.o" | "k.o" => has_line(tree, ".gitignore", "*.o"),
        "build" => is_directory && has_line(tree, ".gitignore", "build/"),
        // A directory is never precious.
        ".env" => is_directory && has_line(tree, ".gitignore", ".env"),
        _ => false,
    }
}

fn has_line(tree: &Tree, file: &str, line: &str) -> bool {
    let Some(Thing::File { bytes, .. }) = tree.get(file) else { return false };
    String::from_utf8_lossy(bytes).lines().any(|other| other == line)
}

/// Returns the parent directories of a path.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Returns the path and its parents.
fn lineage(path: &str) -> impl Iterator<Item = &str> {
    above(path).chain([path])
}

fn is_left_out(tree: &Tree, path: &str) -> bool {
    lineage(path).any(|part| tree.contains_key(part) && is_named(tree, part))
}

fn is_directory(tree: &Tree, path: &str) -> bool {
    matches!(tree.get(path), Some(Thing::Directory))
}

/// `true` if a path may have existed without being seen: in an ignored directory, or ignored itself.
fn was_hidden(before: &Tree, after: &Tree, path: &str) -> bool {
    let is_here = before.contains_key(path) && is_directory(before, path) == is_directory(after, path);
    let mut hidden = lineage(path).filter(|part| is_named(before, part));
    hidden.any(|part| if part == path { is_here } else { is_directory(before, part) })
}

fn is_seen(tree: &Tree, path: &str) -> bool {
    tree.contains_key(path) && !is_left_out(tree, path)
}

/// `true` if a directory is in an ignored one without known files.
fn is_out_of_sight(before: &Tree, after: &Tree, path: &str) -> bool {
    let is_known_below = |part: &str| {
        let below = format!("{part}/");
        let mut known = before.iter().filter(|(path, thing)| path.starts_with(&below) && **thing != Thing::Directory);
        known.any(|(path, _)| is_seen(before, path))
    };
    lineage(path).any(|part| is_directory(after, part) && is_left_out(after, part) && !is_known_below(part))
}

fn fingerprint(thing: Option<&Thing>) -> Fingerprint {
    match thing {
        Some(Thing::File { bytes, mode }) => {
            let mode = FileMode::new(*mode);
            Fingerprint::File { hash: ContentHash::of(bytes), size: bytes.len() as u64, mode }
        }
        Some(Thing::Link(target)) => Fingerprint::Link { target: target.clone() },
        Some(Thing::Directory | Thing::Pipe | Thing::Other) | None => Fingerprint::Absent,
    }
}

/// Computes the changes from full reads.
fn expected(before: &Tree, after: &Tree) -> TreeChanges {
    let mut changes = TreeChanges::default();
    let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for path in all {
        // Seen files are followed, ignored or not; formerly ignored files are not new.
        let counts = is_seen(before, path) || (is_seen(after, path) && !was_hidden(before, after, path));
        if !counts {
            continue;
        }
        // A formerly ignored path of another kind has no known state.
        let was = fingerprint(before.get(path).filter(|_| is_seen(before, path)));
        let is = fingerprint(after.get(path));
        if was != is {
            changes.steps.push(RecordedStep { path: at(path), before: was, after: is });
        }
        match (is_directory(before, path), is_directory(after, path)) {
            (false, true) if !is_left_out(after, path) => changes.made.push(at(path)),
            (true, false) if is_seen(before, path) && !is_out_of_sight(before, after, path) => {
                changes.removed.push(at(path));
            }
            _ => {}
        }
    }
    changes
}

#[derive(Clone, Debug)]
enum Act {
    Write(String, u8),
    /// An edit with the same size and time.
    Sneak(String),
    Mode(String, bool),
    Delete(String),
    Rename(String, String),
    Link(String, String),
    Directory(String),
    Rules(Rules),
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&NAMES), 1..4).prop_map(|names| names.join("/"))
}

fn rules() -> impl Strategy<Value = Rules> {
    let outer = prop::sample::subsequence(vec!["*.o", "build/", ".env"], 0..=3);
    let inner = prop::sample::subsequence(vec!["!k.o"], 0..=1);
    (outer, inner).prop_map(|(outer, inner)| Rules { outer, inner })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (path(), any::<u8>()).prop_map(|(path, byte)| Act::Write(path, byte)),
        3 => path().prop_map(Act::Sneak),
        1 => (path(), any::<bool>()).prop_map(|(path, run)| Act::Mode(path, run)),
        2 => path().prop_map(Act::Delete),
        2 => (path(), path()).prop_map(|(from, to)| Act::Rename(from, to)),
        1 => (path(), path()).prop_map(|(path, target)| Act::Link(path, target)),
        1 => path().prop_map(Act::Directory),
        1 => rules().prop_map(Act::Rules),
    ]
}

/// Runs the step; errors are ignored, as with commands. Paths never go through links, which could form cycles.
fn perform(root: &Path, act: &Act) {
    let plain = |path: &str| lineage(path).all(|part| !root.join(part).is_symlink());
    let make_parent = |path: &str| {
        let _ = std::fs::create_dir_all(root.join(path).parent().unwrap());
    };
    match act {
        Act::Write(path, byte) if plain(path) => {
            make_parent(path);
            let _ = std::fs::write(root.join(path), vec![*byte; usize::from(*byte % 4)]);
        }
        Act::Sneak(path) if root.join(path).is_file() && plain(path) => {
            let path = root.join(path);
            let Ok(mut bytes) = std::fs::read(&path) else { return };
            let stat = rustix::fs::stat(&path).unwrap();
            for byte in &mut bytes {
                *byte = byte.wrapping_add(1);
            }
            std::fs::write(&path, bytes).unwrap();
            let time = Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec.cast_signed() };
            let times = Timestamps { last_access: time, last_modification: time };
            rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
        }
        Act::Mode(path, run) if root.join(path).is_file() && plain(path) => {
            set_mode(root.join(path), if *run { 0o755 } else { 0o644 });
        }
        Act::Delete(path) => {
            let path = root.join(path);
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
        Act::Rename(from, to) => {
            make_parent(to);
            let _ = std::fs::rename(root.join(from), root.join(to));
        }
        Act::Link(path, target) => {
            make_parent(path);
            let _ = symlink(target, root.join(path));
        }
        Act::Directory(path) => {
            let _ = std::fs::create_dir_all(root.join(path));
        }
        Act::Rules(rules) => rules.write(root),
        Act::Write(..) | Act::Sneak(_) | Act::Mode(..) => {}
    }
}

/// As a set, because a walk has another order.
fn by_path(changes: &TreeChanges) -> BTreeMap<WsPath, (Fingerprint, Fingerprint)> {
    changes.steps.iter().map(|step| (step.path.clone(), (step.before.clone(), step.after.clone()))).collect()
}

/// Length of the header with the checksum.
const HEAD: usize = 13 + 32;

fn decode_body(body: &[u8]) -> ScanIndex {
    let sum = ContentHash::of(body);
    ScanIndex::decode(&[b"sayso tree 1\n", sum.as_bytes().as_slice(), body].concat()).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn scan_difference_matches_full_read(
        start in prop::collection::vec(act(), 0..25),
        first in rules(),
        commands in prop::collection::vec(prop::collection::vec(act(), 0..8), 1..4),
    ) {
        let mut scene = Scene::new();
        let root = scene.root();
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
        for act in &start {
            perform(&root, act);
        }
        first.write(&root);
        let mut known = ScanIndex::default();
        for command in commands {
            // As in production: a scan before the command from the stored index, and one after it.
            let before = (scene.scan(&known).index, tree(&root));
            // Files that left in the last round must be gone.
            let before = (scene.scan(&before.0).index, before.1);
            for act in &command {
                perform(&root, act);
            }
            let (after, now) = (scene.scan(&before.0), tree(&root));
            let told = TreeChanges::between(&before.0, &after.index);
            let expected = expected(&before.1, &now);
            prop_assert_eq!(by_path(&told), by_path(&expected));
            prop_assert!(told.steps.is_sorted_by(|one, two| one.path < two.path));
            prop_assert_eq!(&told.made, &expected.made);
            prop_assert_eq!(&told.removed, &expected.removed);
            prop_assert_eq!(&told.uncaptured, &[]);
            prop_assert_eq!(&after.not_captured, &[]);
            for step in &told.steps {
                for print in [&step.before, &step.after] {
                    if let Fingerprint::File { hash, .. } = print {
                        prop_assert!(scene.store.contents.contains_key(hash), "{} can be brought back", step.path);
                    }
                }
            }
            let bytes = after.index.encode();
            known = ScanIndex::decode(&bytes).unwrap();
            prop_assert_eq!(known.encode(), bytes);
            prop_assert!(TreeChanges::between(&after.index, &known).is_empty());
        }
    }

    #[test]
    fn damaged_index_decodes_to_none(
        acts in prop::collection::vec(act(), 1..20),
        flip in any::<prop::sample::Index>(),
        bit in 0..8u8,
        cut in any::<prop::sample::Index>(),
        more in prop::collection::vec(any::<u8>(), 1..9),
    ) {
        let mut scene = Scene::new();
        put(&scene.root(), "always", "there");
        for act in &acts {
            perform(&scene.root(), act);
        }
        let bytes = scene.first().index.encode();
        prop_assert!(ScanIndex::decode(&bytes).is_some());
        let mut flipped = bytes.clone();
        flipped[flip.index(bytes.len())] ^= 1 << bit;
        let longer = [bytes.as_slice(), &more].concat();
        for damaged in [flipped.as_slice(), &bytes[..cut.index(bytes.len())], &longer] {
            prop_assert!(ScanIndex::decode(damaged).is_none());
        }
        // Even with a correct checksum, decoding either fails or is stable.
        let head = bytes.len() - 1 - flip.index(bytes.len() - HEAD);
        let mut changed = bytes[HEAD..].to_vec();
        changed[head - HEAD] ^= 1 << bit;
        for body in [changed.as_slice(), &bytes[HEAD..head]] {
            let known = decode_body(body);
            let again = known.encode();
            prop_assert_eq!(ScanIndex::decode(&again).unwrap().encode(), again);
            let _ = TreeChanges::between(&known, &scene.scan(&known).index);
        }
    }

    #[test]
    fn any_bytes_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(ScanIndex::decode(&bytes).is_none());
        let _ = decode_body(&bytes);
    }
}
