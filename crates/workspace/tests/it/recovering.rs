//! Every state that a crash can leave behind, made by hand, and what a start makes of it.

use std::path::{Path, PathBuf};

use sayso_review::{ApplyRecord, FileState, Plan, PlanStep};
use sayso_workspace::{RecoverError, Recovery, Workspace};
use serde_json::json;

use crate::change::{
    Thing, Tree, at, change, contents, delete, files, in_every_way, plan, prepare, put, set_mode, tree, write,
};

/// How far a step got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Untouched,
    /// The new content is being written: this many bytes so far, still private.
    Written(usize),
    /// It is whole and has its permissions.
    Staged,
    /// A fallback's exchange: the old file has its second name.
    Linked,
    /// The same, where nothing can have two names: the old file is aside, and its name free.
    Aside,
    /// The same, and the new one replaced the first.
    Replaced,
    /// Exchanged.
    Exchanged,
    /// What was displaced is removed.
    Cleared,
}

use Stage::{Aside, Cleared, Exchanged, Linked, Replaced, Staged, Untouched, Written};

const UPDATES: [Stage; 9] = [Untouched, Written(0), Written(3), Staged, Linked, Aside, Replaced, Exchanged, Cleared];
/// A file that is made: `Linked` is a fallback's move, in which it has both names.
const CREATES: [Stage; 5] = [Untouched, Written(2), Staged, Linked, Cleared];
/// A file that is removed: likewise.
const DELETES: [Stage; 4] = [Untouched, Linked, Exchanged, Cleared];

/// A plan that was written down and never carried out, in a tree that is put into any state.
struct Crash<'w> {
    workspace: &'w Workspace,
    root: &'w Path,
    plan: Plan,
    record: ApplyRecord,
}

impl<'w> Crash<'w> {
    /// `change` is changed, `new/file` made, `remove` removed.
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

    /// Puts the tree into a state as after a crash.
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

    /// The tree with each file as before or as planned.
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

    /// Whether the name holds what was planned.
    fn is_done(&self, index: usize, stage: Stage) -> bool {
        let (before, done) = (&self.step(index).before, matches!(stage, Exchanged | Cleared | Replaced));
        done || (*before == FileState::Absent && stage == Linked)
    }
}

#[test]
fn every_state_that_a_crash_leaves_becomes_all_old_or_all_new() {
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
                    let wanted = Recovery { finished: all, left_alone: Vec::new(), saved: Vec::new() };
                    assert_eq!(recovery, wanted, "{stages:?}");
                    assert_eq!(files(root), expected, "{stages:?}");
                    assert_eq!(root.join("new").exists(), all, "{stages:?}: the directory that was made for it");
                    // A start that was itself interrupted looks again.
                    assert_eq!(crash.recover(), recovery, "{stages:?}");
                    assert_eq!(files(root), expected, "{stages:?}");
                }
            }
        }
    });
}

#[test]
fn a_rescue_that_was_itself_cut_off_is_taken_up() {
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

/// Bytes that are neither old nor new, some of them such that they are easily mistaken.
fn third_contents() -> [Vec<u8>; 4] {
    [b"somebody's work\n".to_vec(), b"a new".to_vec(), b"the old".to_vec(), vec![b'x'; 100_000]]
}

#[test]
fn work_that_was_displaced_in_the_moment_of_the_crash_goes_back() {
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
                    (recovery.finished, recovery.left_alone, recovery.saved),
                    (false, vec![at("change")], vec![])
                );
                assert_eq!(std::fs::read(root.join("change")).unwrap(), theirs, "{suffix}");
                let names: Vec<String> = files(root).into_keys().collect();
                assert_eq!(names, ["beside", "change", "remove"]);
            }
            // One that was to be removed.
            let crash = Crash::new(workspace, root);
            std::fs::rename(crash.target(2), crash.temporary(2, "")).unwrap();
            std::fs::write(crash.temporary(2, ""), &theirs).unwrap();
            assert_eq!(crash.recover().left_alone, [at("remove")]);
            assert_eq!(std::fs::read(root.join("remove")).unwrap(), theirs);
        }
    });
}

#[test]
fn work_that_has_no_name_to_go_back_to_is_saved_and_told() {
    in_every_way(|workspace, root| {
        for (index, path) in [(0, "change"), (2, "remove")] {
            for suffix in ["", "-old", "-back", "-back-old"] {
                let crash = Crash::new(workspace, root);
                std::fs::write(crash.target(index), "a third\n").unwrap();
                std::fs::write(crash.temporary(index, suffix), "somebody's work\n").unwrap();
                let recovery = crash.recover();
                let saved = format!("{path}.sayso-saved-{}", crash.record.token);
                assert_eq!((&recovery.left_alone, &recovery.saved), (&vec![at(path)], &vec![at(&saved)]), "{suffix}");
                assert_eq!(std::fs::read(root.join(path)).unwrap(), b"a third\n");
                assert_eq!(std::fs::read(root.join(&saved)).unwrap(), b"somebody's work\n");
                let again = crash.recover();
                assert_eq!((again.left_alone, again.saved), (recovery.left_alone, Vec::new()));
                std::fs::remove_file(root.join(&saved)).unwrap();
            }
        }
    });
}

#[test]
fn saving_finds_a_free_name_whatever_the_length() {
    in_every_way(|workspace, root| {
        let name = "ö".repeat(127);
        put(root, &name, "old");
        let prepared = prepare(workspace, &json!([write(&name, "new")]));
        let (record, contents) = (prepared.record(), contents(prepared.plan()));
        for text in ["one", "two"] {
            put(root, &name, "a third");
            put(root, &format!(".sayso-{}-0", record.token), text);
            let recovery = workspace.recover(&record, |hash| contents.get(hash).cloned()).unwrap();
            assert_eq!(std::fs::read(root.join(recovery.saved[0].as_str())).unwrap(), text.as_bytes());
        }
        let saved: Vec<String> = files(root).into_keys().filter(|path| path.contains("sayso-saved")).collect();
        assert_eq!(saved.len(), 2);
        for path in saved {
            std::fs::remove_file(root.join(path)).unwrap();
        }
    });
}

#[test]
fn a_third_state_is_left_alone_and_the_rest_is_taken_back() {
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
                // What is to be removed is never staged.
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
                    assert_eq!((&recovery.left_alone, recovery.finished), (&vec![path.clone()], false));
                    assert!(recovery.saved.is_empty());
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
fn a_part_that_could_be_somebody_s_is_not_removed() {
    // The file is private and was cut short, so that it looks like one that is being written.
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
        let saved = root.join(recovery.saved[0].as_str());
        assert_eq!(std::fs::read(&saved).unwrap(), b"line one\n");
        std::fs::remove_file(saved).unwrap();
    });
}

#[test]
fn regression_a_half_written_file_never_replaces_one_that_was_already_as_planned() {
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
fn without_the_content_nothing_is_guessed_and_trying_again_helps() {
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
fn directories_that_went_away_or_lead_elsewhere_are_left_alone() {
    in_every_way(|workspace, root| {
        put(root, "dir/update", "old\n");
        put(root, "dir/delete", "old\n");
        let prepared = prepare(workspace, &json!([write("dir/update", "new\n"), delete("dir/delete")]));
        let (record, contents) = (prepared.record(), contents(prepared.plan()));
        std::fs::rename(root.join("dir"), root.join("moved")).unwrap();
        let before = tree(root);
        let recover = || workspace.recover(&record, |hash| contents.get(hash).cloned()).unwrap();
        assert_eq!(recover().left_alone, [at("dir/delete"), at("dir/update")]);
        std::os::unix::fs::symlink("../outside", root.join("dir")).unwrap();
        assert_eq!(recover().left_alone, [at("dir/delete"), at("dir/update")]);
        std::fs::remove_file(root.join("dir")).unwrap();
        assert_eq!(tree(root), before);
    });
}

#[test]
fn a_plan_that_was_carried_out_needs_nothing() {
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
fn a_plan_that_was_carried_out_is_not_taken_back_because_somebody_went_on() {
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
        assert_eq!(recovery.left_alone, [at("a")]);
        assert_eq!(std::fs::read(root.join("b")).unwrap(), b"new b");
    });
}
