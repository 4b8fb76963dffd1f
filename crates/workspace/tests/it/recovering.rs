//! Recovery from every state that a crash can leave.

use std::path::{Path, PathBuf};

use sayso_review::{ApplyRecord, FileState, Plan, PlanStep};
use sayso_workspace::{RecoverError, Recovery, Workspace};
use serde_json::json;

use crate::change::{
    Thing, Tree, at, change, contents, delete, files, in_every_way, plan, prepare, put, set_mode, tree, write,
};

/// Progress of a step at the crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Untouched,
    /// The new content is partly written: this many bytes, still private.
    Written(usize),
    /// The new content is complete and has its permissions.
    Staged,
    /// Fallback exchange: the old file has its second name.
    Linked,
    /// Fallback exchange without hard links: the old file is aside, and its name is free.
    Aside,
    /// Fallback exchange: the new file replaced the first name.
    Replaced,
    Exchanged,
    /// The displaced file is removed.
    Cleared,
}

use Stage::{Aside, Cleared, Exchanged, Linked, Replaced, Staged, Untouched, Written};

const UPDATES: [Stage; 9] = [Untouched, Written(0), Written(3), Staged, Linked, Aside, Replaced, Exchanged, Cleared];
/// Steps of a creation. `Linked` is the fallback, in which the file has both names.
const CREATES: [Stage; 5] = [Untouched, Written(2), Staged, Linked, Cleared];
/// Steps of a deletion.
const DELETES: [Stage; 4] = [Untouched, Linked, Exchanged, Cleared];

/// A recorded plan, and a tree in any state of its application.
struct Crash<'w> {
    workspace: &'w Workspace,
    root: &'w Path,
    plan: Plan,
    record: ApplyRecord,
}

impl<'w> Crash<'w> {
    /// Changes `change`, creates `new/file`, deletes `remove`.
    fn new(workspace: &'w Workspace, root: &'w Path) -> Self {
        put(root, "change", "the old content\n");
        put(root, "remove", "to be removed\n");
        put(root, "beside", "never touched\n");
        let changes = json!([write("change", "a new content\n"), write("new/file", "made\n"), delete("remove")]);
        let plan = plan(workspace, &changes);
        let record = workspace.prepare(plan.clone(), Vec::new()).unwrap().record();
        assert_eq!(
            plan.steps().iter().map(|step| step.path.as_str()).collect::<Vec<_>>(),
            ["change", "new/file", "remove"]
        );
        Self { workspace, root, plan, record }
    }

    fn step(&self, index: usize) -> &PlanStep {
        &self.plan.steps()[index]
    }

    fn target(&self, index: usize) -> PathBuf {
        self.root.join(self.step(index).path.as_str())
    }

    fn temporary(&self, index: usize, suffix: &str) -> PathBuf {
        self.target(index).with_file_name(format!(".sayso-{}-{index}{suffix}", self.record.token))
    }

    fn place(path: &Path, state: &FileState) {
        let _ = std::fs::remove_file(path);
        if let FileState::File { content, mode } = state {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content.bytes()).unwrap();
            set_mode(path, mode.bits());
        }
    }

    /// Sets the tree to a state after a crash.
    fn set(&self, index: usize, stage: Stage) {
        let step = self.step(index);
        let (target, temporary, old) = (self.target(index), self.temporary(index, ""), self.temporary(index, "-old"));
        let (before, after) = (&step.before, &step.after);
        Self::place(&target, before);
        match stage {
            Untouched => {}
            Written(bytes) => {
                std::fs::create_dir_all(temporary.parent().unwrap()).unwrap();
                std::fs::write(&temporary, &after.bytes().unwrap()[..bytes]).unwrap();
                set_mode(&temporary, 0o600);
            }
            Staged => Self::place(&temporary, after),
            Linked => match (before, after) {
                (FileState::Absent, _) => {
                    Self::place(&temporary, after);
                    std::fs::hard_link(&temporary, &target).unwrap();
                }
                (_, FileState::Absent) => std::fs::hard_link(&target, &temporary).unwrap(),
                _ => {
                    Self::place(&temporary, after);
                    std::fs::hard_link(&target, &old).unwrap();
                }
            },
            Aside => {
                Self::place(&temporary, after);
                std::fs::rename(&target, &old).unwrap();
            }
            Replaced => {
                std::fs::rename(&target, &old).unwrap();
                Self::place(&target, after);
            }
            Exchanged => {
                Self::place(&temporary, before);
                Self::place(&target, after);
            }
            Cleared => Self::place(&target, after),
        }
    }

    fn recover(&self) -> Recovery {
        let contents = contents(&self.plan);
        self.workspace.recover(&self.record, |hash| contents.get(hash).cloned()).unwrap()
    }

    /// Returns the tree with each file before or after its step.
    fn expected(&self, state: impl Fn(&PlanStep) -> FileState) -> Tree {
        let mut tree = files(self.root);
        tree.retain(|path, _| path == "beside");
        for step in self.plan.steps() {
            if let FileState::File { content, mode } = state(step) {
                tree.insert(step.path.to_string(), Thing::File { bytes: content.bytes().to_vec(), mode: mode.bits() });
            }
        }
        tree
    }

    /// `true` if the file has the planned content.
    fn is_done(&self, index: usize, stage: Stage) -> bool {
        let (before, done) = (&self.step(index).before, matches!(stage, Exchanged | Cleared | Replaced));
        done || (*before == FileState::Absent && stage == Linked)
    }
}

#[test]
fn recovery_of_every_crash_state_is_atomic() {
    in_every_way(|workspace, root| {
        let crash = Crash::new(workspace, root);
        for update in UPDATES {
            for create in CREATES {
                for delete in DELETES {
                    let stages = [update, create, delete];
                    for (index, stage) in stages.into_iter().enumerate() {
                        crash.set(index, stage);
                    }
                    let all = stages.into_iter().enumerate().all(|(index, stage)| crash.is_done(index, stage));
                    let recovery = crash.recover();
                    let expected = crash.expected(|step| if all { step.after.clone() } else { step.before.clone() });
                    let wanted = Recovery { finished: all, skipped_files: Vec::new(), rescued_files: Vec::new() };
                    assert_eq!(recovery, wanted, "{stages:?}");
                    assert_eq!(files(root), expected, "{stages:?}");
                    assert_eq!(root.join("new").exists(), all, "{stages:?}: the directory that was made for it");
                    // An interrupted recovery runs again.
                    assert_eq!(crash.recover(), recovery, "{stages:?}");
                    assert_eq!(files(root), expected, "{stages:?}");
                }
            }
        }
    });
}

#[test]
fn interrupted_recovery_is_resumed() {
    in_every_way(|workspace, root| {
        let crash = Crash::new(workspace, root);
        let (target, temporary, back) = (crash.target(0), crash.temporary(0, ""), crash.temporary(0, "-back"));
        let (before, after) = (&crash.step(0).before, &crash.step(0).after);
        let whole = |path: &Path, state: &FileState| Crash::place(path, state);
        let part = |path: &Path| {
            std::fs::write(path, &before.bytes().unwrap()[..4]).unwrap();
            set_mode(path, 0o600);
        };
        let cases: [(&str, &dyn Fn()); 4] = [
            ("being written back", &|| (whole(&target, after), part(&back)).1),
            ("written back", &|| (whole(&target, after), whole(&back, before)).1),
            ("exchanged", &|| (whole(&target, before), whole(&back, after)).1),
            ("both there", &|| (whole(&target, after), whole(&temporary, before), part(&back)).2),
        ];
        for (what, state) in cases {
            crash.set(1, Staged);
            state();
            assert_eq!(crash.recover(), Recovery::default(), "{what}");
            assert_eq!(files(root), crash.expected(|step| step.before.clone()), "{what}");
        }
    });
}

/// Contents other than the old and the new, some of them easily mistaken.
fn third_contents() -> [Vec<u8>; 4] {
    [b"somebody's work\n".to_vec(), b"a new".to_vec(), b"the old".to_vec(), vec![b'x'; 100_000]]
}

#[test]
fn displaced_work_is_restored_after_crash() {
    in_every_way(|workspace, root| {
        for theirs in third_contents() {
            for suffix in ["", "-old"] {
                let crash = Crash::new(workspace, root);
                crash.set(1, Exchanged);
                crash.set(0, Cleared);
                std::fs::write(crash.temporary(0, suffix), &theirs).unwrap();
                set_mode(crash.temporary(0, suffix), 0o644);
                let recovery = crash.recover();
                assert_eq!(
                    (recovery.finished, recovery.skipped_files, recovery.rescued_files),
                    (false, vec![at("change")], vec![])
                );
                assert_eq!(std::fs::read(root.join("change")).unwrap(), theirs, "{suffix}");
                let names: Vec<String> = files(root).into_keys().collect();
                assert_eq!(names, ["beside", "change", "remove"]);
            }
            // The file to delete.
            let crash = Crash::new(workspace, root);
            std::fs::rename(crash.target(2), crash.temporary(2, "")).unwrap();
            std::fs::write(crash.temporary(2, ""), &theirs).unwrap();
            assert_eq!(crash.recover().skipped_files, [at("remove")]);
            assert_eq!(std::fs::read(root.join("remove")).unwrap(), theirs);
        }
    });
}

#[test]
fn displaced_work_without_name_is_rescued() {
    in_every_way(|workspace, root| {
        for (index, path) in [(0, "change"), (2, "remove")] {
            for suffix in ["", "-old", "-back", "-back-old"] {
                let crash = Crash::new(workspace, root);
                std::fs::write(crash.target(index), "a third\n").unwrap();
                std::fs::write(crash.temporary(index, suffix), "somebody's work\n").unwrap();
                let recovery = crash.recover();
                let saved = format!("{path}.sayso-saved-{}", crash.record.token);
                assert_eq!(
                    (&recovery.skipped_files, &recovery.rescued_files),
                    (&vec![at(path)], &vec![at(&saved)]),
                    "{suffix}"
                );
                assert_eq!(std::fs::read(root.join(path)).unwrap(), b"a third\n");
                assert_eq!(std::fs::read(root.join(&saved)).unwrap(), b"somebody's work\n");
                let again = crash.recover();
                assert_eq!((again.skipped_files, again.rescued_files), (recovery.skipped_files, Vec::new()));
                std::fs::remove_file(root.join(&saved)).unwrap();
            }
        }
    });
}

#[test]
fn rescued_file_gets_free_name() {
    in_every_way(|workspace, root| {
        let name = "ö".repeat(127);
        put(root, &name, "old");
        let prepared = prepare(workspace, &json!([write(&name, "new")]));
        let (record, contents) = (prepared.record(), contents(prepared.plan()));
        for text in ["one", "two"] {
            put(root, &name, "a third");
            put(root, &format!(".sayso-{}-0", record.token), text);
            let recovery = workspace.recover(&record, |hash| contents.get(hash).cloned()).unwrap();
            assert_eq!(std::fs::read(root.join(recovery.rescued_files[0].as_str())).unwrap(), text.as_bytes());
        }
        let saved: Vec<String> = files(root).into_keys().filter(|path| path.contains("sayso-saved")).collect();
        assert_eq!(saved.len(), 2);
        for path in saved {
            std::fs::remove_file(root.join(path)).unwrap();
        }
    });
}

#[test]
fn recovery_skips_files_in_third_state() {
    type Disturb = fn(&Path);
    let disturbances: [Disturb; 4] = [
        |path| std::fs::write(path, "a third\n").unwrap(),
        |path| std::fs::create_dir(path).unwrap(),
        |path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(),
        |path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap(),
    ];
    in_every_way(|workspace, root| {
        for disturb in disturbances {
            for disturbed in 0..3 {
                // A deletion stages no content.
                let leftovers = if disturbed == 2 { vec![Exchanged] } else { vec![Written(2), Staged, Exchanged] };
                for leftover in leftovers {
                    let crash = Crash::new(workspace, root);
                    (0..3).for_each(|index| crash.set(index, Exchanged));
                    crash.set(disturbed, leftover);
                    let _ = std::fs::remove_file(crash.target(disturbed));
                    disturb(&crash.target(disturbed));
                    let theirs = tree(root).remove(crash.step(disturbed).path.as_str());
                    let recovery = crash.recover();
                    let path = &crash.step(disturbed).path;
                    assert_eq!((&recovery.skipped_files, recovery.finished), (&vec![path.clone()], false));
                    assert!(recovery.rescued_files.is_empty());
                    let mut found = tree(root);
                    assert_eq!(found.remove(path.as_str()), theirs);
                    let mut expected = crash.expected(|step| step.before.clone());
                    expected.remove(path.as_str());
                    found.retain(|_, thing| *thing != Thing::Directory);
                    assert_eq!(found, expected);
                    let _ = std::fs::remove_file(root.join(path.as_str()));
                    let _ = std::fs::remove_dir(root.join(path.as_str()));
                }
            }
        }
    });
}

#[test]
fn doubtful_partial_file_is_kept() {
    // The file is private and truncated, so that it looks unfinished.
    in_every_way(|workspace, root| {
        put(root, "file", "before\n");
        set_mode(root.join("file"), 0o600);
        let prepared = prepare(workspace, &json!([write("file", "line one\nline two\n")]));
        let (record, contents) = (prepared.record(), contents(prepared.plan()));
        put(root, "file", "line one\nline two\n");
        let temporary = format!(".sayso-{}-0", record.token);
        put(root, &temporary, "line one\n");
        set_mode(root.join(&temporary), 0o600);
        let recovery = workspace.recover(&record, |hash| contents.get(hash).cloned()).unwrap();
        assert!(recovery.finished);
        let saved = root.join(recovery.rescued_files[0].as_str());
        assert_eq!(std::fs::read(&saved).unwrap(), b"line one\n");
        std::fs::remove_file(saved).unwrap();
    });
}

#[test]
fn regression_partial_file_never_replaces_planned_content() {
    in_every_way(|workspace, root| {
        let crash = Crash::new(workspace, root);
        crash.set(0, Written(5));
        std::fs::write(crash.target(0), crash.step(0).after.bytes().unwrap()).unwrap();
        let recovery = crash.recover();
        assert_eq!(recovery, Recovery::default());
        assert_eq!(files(root), crash.expected(|step| step.before.clone()));
    });
}

#[test]
fn recovery_without_content_can_be_retried() {
    in_every_way(|workspace, root| {
        let crash = Crash::new(workspace, root);
        crash.set(0, Cleared);
        let error = workspace.recover(&crash.record, |_| None).unwrap_err();
        assert!(matches!(error, RecoverError::ContentMissing { path } if path == at("change")));
        crash.recover();
        assert_eq!(files(root), crash.expected(|step| step.before.clone()));
    });
}

#[test]
fn recovery_skips_missing_and_redirected_directories() {
    in_every_way(|workspace, root| {
        put(root, "dir/update", "old\n");
        put(root, "dir/delete", "old\n");
        let prepared = prepare(workspace, &json!([write("dir/update", "new\n"), delete("dir/delete")]));
        let (record, contents) = (prepared.record(), contents(prepared.plan()));
        std::fs::rename(root.join("dir"), root.join("moved")).unwrap();
        let before = tree(root);
        let recover = || workspace.recover(&record, |hash| contents.get(hash).cloned()).unwrap();
        assert_eq!(recover().skipped_files, [at("dir/delete"), at("dir/update")]);
        std::os::unix::fs::symlink("../outside", root.join("dir")).unwrap();
        assert_eq!(recover().skipped_files, [at("dir/delete"), at("dir/update")]);
        std::fs::remove_file(root.join("dir")).unwrap();
        assert_eq!(tree(root), before);
    });
}

#[test]
fn applied_plan_needs_no_recovery() {
    in_every_way(|workspace, root| {
        put(root, "file", "old\n");
        let plan = plan(workspace, &json!([write("file", "new\n"), write("a/b", "x")]));
        let record = workspace.prepare(plan.clone(), Vec::new()).unwrap().record();
        change(workspace, &json!([write("file", "new\n"), write("a/b", "x")])).unwrap();
        let before = tree(root);
        let contents = contents(&plan);
        assert!(workspace.recover(&record, |hash| contents.get(hash).cloned()).unwrap().finished);
        assert_eq!(tree(root), before);
    });
}

#[test]
fn applied_plan_survives_later_edits() {
    in_every_way(|workspace, root| {
        put(root, "a", "old a");
        put(root, "b", "old b");
        let changes = serde_json::json!([write("a", "new a"), write("b", "new b"), write("c", "new c")]);
        let prepared = prepare(workspace, &changes);
        let record = prepared.record();
        let contents = contents(prepared.plan());
        prepared.apply().unwrap();
        put(root, "a", "new a, and more");
        let recovery = workspace.recover(&record, |hash| contents.get(hash).cloned()).unwrap();
        assert!(recovery.finished);
        assert_eq!(recovery.skipped_files, [at("a")]);
        assert_eq!(std::fs::read(root.join("b")).unwrap(), b"new b");
    });
}
