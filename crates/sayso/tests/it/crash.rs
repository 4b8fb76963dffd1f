//! Invariant 4: a kill, or a failing disk, at every write-like system call of a change set of 20 files and of its undo. After the
//! next start the tree is all old or all new, no temporary file remains, and the journal agrees.
//!
//! `strace` ends the real program, or makes a call fail, right where the call enters the kernel. A first run without faults
//! tells which calls there are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use sayso_testkit::programs::run_with;
use serde_json::Value;
use tempfile::TempDir;

/// System calls that change a file, a name or durable state. `openat` counts if it creates a file.
const CALLS: &str = "write,pwrite64,writev,pwritev,ftruncate,fallocate,fsync,fdatasync,sync_file_range,rename,renameat,renameat2,\
                     unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,fchmod,fchmodat,fchown,fsetxattr,openat";

type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A workspace of 20 files that change: 12 are edited, 5 are made in new directories, 3 go.
struct Scene {
    root: TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { root: tempfile::tempdir().unwrap() };
        for number in 0..15 {
            let path = scene.workspace().join(format!("d{}/f{number}", number % 3));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, old(number)).unwrap();
        }
        std::fs::write(scene.workspace().join("bystander"), "not part of it\n").unwrap();
        std::fs::write(scene.root.path().join("proposal.json"), proposal().to_string()).unwrap();
        scene
    }

    fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    fn sayso(&self, before: &[&str], arguments: &[&str]) -> Output {
        let (workspace, state) = (self.workspace(), self.root.path().join("state"));
        let program = env!("CARGO_BIN_EXE_sayso");
        let all: Vec<&str> = before.iter().copied().chain([program]).chain(arguments.iter().copied()).collect();
        let environment = [("XDG_STATE_HOME", state.to_str().unwrap()), ("RUST_BACKTRACE", "1")];
        run_with(&workspace, all[0], &all[1..], &environment, b"")
    }

    fn tree(&self) -> Tree {
        tree(&self.workspace())
    }

    /// Returns the status of the newest change after a start has recovered.
    fn settled(&self) -> Option<Value> {
        let status = self.sayso(&[], &["status", "--json"]);
        assert!(status.status.success(), "{status:?}");
        let log = self.sayso(&[], &["log", "--json"]);
        let records: Value = serde_json::from_slice(&log.stdout).unwrap();
        records.as_array().unwrap().first().cloned()
    }
}

fn old(number: usize) -> String {
    (0..40).map(|line| format!("file {number}, line {line}\n")).collect()
}

fn proposal() -> Value {
    let mut changes = Vec::new();
    for number in 0..12 {
        let text = old(number).replace("line 7\n", "line seven\n");
        changes.push(serde_json::json!({"operation": "update", "path": format!("d{}/f{number}", number % 3), "new_content": text}));
    }
    for number in 12..15 {
        changes.push(serde_json::json!({"operation": "delete", "path": format!("d{}/f{number}", number % 3)}));
    }
    for number in 15..20 {
        let path = format!("new/e{}/f{number}", number % 2);
        changes.push(serde_json::json!({"operation": "create", "path": path, "new_content": old(number)}));
    }
    serde_json::json!({ "changes": changes })
}

/// Every file with its content, and every directory.
fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if path.is_dir() {
                found.insert(name, None);
                waiting.push(path);
            } else {
                found.insert(name, Some(std::fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// The interrupted operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Apply,
    Undo,
}

impl Job {
    /// A scene right before the job, and the two trees that are allowed after it.
    fn scene(self, trees: &(Tree, Tree)) -> (Scene, Tree, Tree) {
        let scene = Scene::new();
        if self == Self::Apply {
            return (scene, trees.0.clone(), trees.1.clone());
        }
        let applied = scene.sayso(&[], &Self::Apply.arguments());
        assert!(applied.status.success());
        (scene, trees.1.clone(), trees.0.clone())
    }

    fn arguments(self) -> Vec<&'static str> {
        match self {
            Self::Apply => vec!["propose", "../proposal.json", "--approve", "all", "--json"],
            Self::Undo => vec!["undo", "--json"],
        }
    }

    /// The calls of the job, each with its number among the calls of its name.
    fn calls(self, trees: &(Tree, Tree)) -> Vec<(String, usize)> {
        let (scene, _, after) = self.scene(trees);
        let log = scene.root.path().join("calls");
        let strace = ["strace", "-f", "-qq", "-o", log.to_str().unwrap(), "-e", &format!("trace={CALLS}")];
        let output = scene.sayso(&strace, &self.arguments());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(scene.tree() == after, "without a fault all is applied");
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut calls = Vec::new();
        for line in std::fs::read_to_string(log).unwrap().lines() {
            let Some((call, arguments)) = line.split_once(' ').and_then(|(_, call)| call.trim().split_once('(')) else {
                continue;
            };
            let number = counts.entry(call.to_owned()).or_default();
            *number += 1;
            if call != "openat" || arguments.contains("O_CREAT") {
                calls.push((call.to_owned(), *number));
            }
        }
        calls
    }
}

/// Runs the job once for each call, with a fault there, and looks at what the next start makes of it.
fn at_every_call(job: Job, fault: &str, calls: &[(String, usize)], trees: &(Tree, Tree)) {
    let next = AtomicUsize::new(0);
    let counts = Mutex::new((0, 0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((call, number)) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (scene, before, after) = job.scene(trees);
                    let inject = format!("inject={call}:{fault}:when={number}");
                    // The fault may hit the write that wakes a thread, which no disk makes fail; sayso then waits for ever. The kill
                    // that ends it is one more fault, after which the same must hold.
                    let traced = format!("trace={call}");
                    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &traced, "-e", &inject];
                    scene.sayso(&[&["timeout", "-s", "KILL", "60"], &strace[..]].concat(), &job.arguments());
                    let record = scene.settled();
                    let found = scene.tree();
                    let applied = record.as_ref().is_some_and(|record| record["status"] == "applied");
                    let applied = if job == Job::Undo {
                        applied && record.as_ref().is_some_and(|record| record["cause"] == "undo")
                    } else {
                        applied
                    };
                    let expected = if applied { &after } else { &before };
                    if found != *expected {
                        failures.lock().unwrap().push(format!(
                            "{job:?} {inject}: the journal says {:?}, and the tree holds {:?} instead",
                            record.map(|record| record["status"].clone()),
                            found
                                .iter()
                                .filter(|(path, content)| expected.get(*path) != Some(*content))
                                .map(|(path, _)| path)
                                .collect::<Vec<_>>()
                        ));
                    }
                    let mut counts = counts.lock().unwrap();
                    if applied { counts.1 += 1 } else { counts.0 += 1 }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), calls.len(), failures.join("\n"));
    let (old, new) = counts.into_inner().unwrap();
    assert!(old > 20, "only {old} runs were interrupted before the end, so nothing was tested");
    assert!(new > 0, "no run was interrupted after the end");
}

/// The tree before and after the change.
fn trees() -> (Tree, Tree) {
    let scene = Scene::new();
    let before = scene.tree();
    assert!(scene.sayso(&[], &Job::Apply.arguments()).status.success());
    (before, scene.tree())
}

#[test]
fn apply_killed_at_any_write_is_atomic() {
    let trees = trees();
    let calls = Job::Apply.calls(&trees);
    assert!(calls.len() > 100, "{} calls", calls.len());
    at_every_call(Job::Apply, "signal=SIGKILL", &calls, &trees);
}

#[test]
fn undo_killed_at_any_write_is_atomic() {
    let trees = trees();
    let calls = Job::Undo.calls(&trees);
    assert!(calls.len() > 100, "{} calls", calls.len());
    at_every_call(Job::Undo, "signal=SIGKILL", &calls, &trees);
}

#[test]
fn apply_on_full_disk_is_atomic() {
    let trees = trees();
    // What goes to the terminal or a pipe is no disk.
    let calls: Vec<_> = Job::Apply.calls(&trees).into_iter().filter(|(call, _)| call != "fchmod").collect();
    at_every_call(Job::Apply, "error=ENOSPC", &calls, &trees);
}

#[test]
fn large_apply_killed_in_parallel_writes_is_atomic() {
    // Calls are counted for each thread, so which files are there at the kill differs from run to run.
    for (call, number) in
        [("fsync", 1), ("fsync", 3), ("openat", 20), ("fchmod", 2), ("renameat2", 50), ("unlinkat", 70)]
    {
        let scene = Scene::new();
        let mut changes = Vec::new();
        for number in 0..120 {
            std::fs::write(scene.workspace().join(format!("d{}/many{number}", number % 3)), "old\n").unwrap();
            let path = format!("d{}/many{number}", number % 3);
            changes.push(serde_json::json!({"operation": "update", "path": path, "new_content": "new\n"}));
        }
        std::fs::write(scene.root.path().join("proposal.json"), Value::from(changes).to_string()).unwrap();
        let mut expected = scene.tree();
        if call == "unlinkat" {
            // By then every file is as planned, and only what was displaced remains.
            for (path, content) in &mut expected {
                if path.to_str().unwrap().contains("many") {
                    *content = Some(b"new\n".to_vec());
                }
            }
        }
        let inject = format!("inject={call}:signal=SIGKILL:when={number}");
        let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject];
        let output = scene.sayso(&strace, &Job::Apply.arguments());
        assert!(!output.status.success(), "{call} {number} was never reached");
        scene.settled();
        assert!(scene.tree() == expected, "{call} {number}");
    }
}
