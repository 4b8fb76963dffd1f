//! Random proposals, user edits, verdicts, undos, redos and restarts in a real directory. Invariants 2 to 5 hold after
//! every step. The expected tree is computed here from the previews, independently of the code under test.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use sayso_gate::{ChangeStatus, DecisionResult, Engine, GateError, PendingChange, SubmitResult, UndoPlan};
use sayso_review::{
    Answer, ChangeId, Event, EventBody, FileAnswer, FileIntent, FileMode, FilePreview, FileState, Fingerprint, HunkId,
    IfChanged, Operation, Origin, Outcome, Preview, Proposal, Target, WsPath,
};

use crate::steps::{AgentStep, AnswerKind, NAMES, Step, TargetKind, intent, step};
use crate::tree::{self, Entry, Tree};
use crate::{Scene, submit_for_verdict};

/// States of paths before and after an applied change.
type Effects = BTreeMap<String, (Option<Entry>, Option<Entry>)>;

/// An applied change.
struct Applied {
    change: ChangeId,
    session: String,
    effects: Effects,
    stands: bool,
    /// Ordinal of its last undo.
    taken_back: usize,
}

struct World {
    scene: Scene,
    engine: Option<Engine>,
    pending: Vec<PendingChange>,
    /// In the order of application.
    applied: Vec<Applied>,
    taken_back: usize,
    /// Files that the user touched after the last application.
    touched: BTreeSet<String>,
    /// Directories that changes created.
    made: BTreeSet<String>,
    time: i64,
}

impl World {
    fn new() -> Self {
        let scene = Scene::in_memory();
        scene.write("a", (0..30).map(|line| format!("{line}\r\n")).collect::<String>().as_bytes());
        scene.write("d/a", (0..30).map(|line| format!("{line}\n")).collect::<String>().as_bytes());
        let engine = Some(scene.engine());
        let (pending, applied) = (Vec::new(), Vec::new());
        Self {
            scene,
            engine,
            pending,
            applied,
            taken_back: 0,
            touched: BTreeSet::new(),
            made: BTreeSet::new(),
            time: 10,
        }
    }

    fn engine(&mut self) -> &mut Engine {
        self.time += 1;
        self.engine.as_mut().unwrap()
    }

    fn tree(&self) -> Tree {
        tree::read(self.scene.root())
    }

    fn play(&mut self, step: &Step) {
        let before = self.tree();
        match step {
            Step::Propose { changes, session } => {
                self.propose(changes, *session, &before);
                assert_eq!(self.tree(), before, "a proposal writes nothing");
            }
            Step::Write { name, content } => self.user_writes(*name, content),
            Step::InsertLine { name, at, line } => self.user_inserts(*name, *at, line, &before),
            Step::Remove { name } => {
                if std::fs::remove_file(self.scene.path(NAMES[*name])).is_ok() {
                    self.touched.insert(NAMES[*name].to_owned());
                }
            }
            Step::Decide { which, answer } => self.decide(*which, answer, &before),
            Step::Undo { target, merge } => {
                self.undo(target, if_changed(*merge), &before);
            }
            Step::UndoAndRedo { target } => {
                if self.undo(target, IfChanged::Refuse, &before) {
                    let redo = self.engine().plan_redo(&Target::Last, IfChanged::Refuse).unwrap();
                    let middle = self.tree();
                    self.perform(redo, &middle);
                    assert_eq!(files(&self.tree()), files(&before), "undo and redo is nothing");
                }
            }
            Step::Redo { target, merge } => {
                let target = self.target(target);
                if let Ok(plan) = self.engine().plan_redo(&target, if_changed(*merge)) {
                    if !merge {
                        self.check_recorded(&plan.preview);
                    }
                    self.perform(plan, &before);
                }
            }
            Step::Restart => self.restart(),
        }
        self.check();
    }

    fn propose(&mut self, changes: &[AgentStep], session: usize, tree: &Tree) {
        let changes: Vec<FileIntent> = changes.iter().filter_map(|change| intent(change, tree)).collect();
        if changes.is_empty() {
            return;
        }
        let origin = Origin { session: Some(session.to_string()), ..Origin::default() };
        let time = self.time;
        match submit_for_verdict(self.engine(), Proposal { changes }, origin, time).unwrap() {
            SubmitResult::Pending(proposed) => self.pending.push(*proposed),
            SubmitResult::Impossible { proposed, .. } => assert!(proposed.preview.problems().next().is_some()),
            other @ SubmitResult::Decided { .. } => panic!("policy decided: {other:?}"),
        }
    }

    fn user_writes(&mut self, name: usize, content: &[u8]) {
        let path = self.scene.path(NAMES[name]);
        // The write fails if `f` is a directory.
        if std::fs::create_dir_all(path.parent().unwrap()).is_ok() && std::fs::write(path, content).is_ok() {
            self.touched.insert(NAMES[name].to_owned());
        }
    }

    fn user_inserts(&mut self, name: usize, at: Index, line: &str, tree: &Tree) {
        let Some(Entry::File { bytes, .. }) = tree.get(NAMES[name]) else { return };
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
        let line = format!("{line}\n");
        lines.insert(at.index(lines.len() + 1), line.as_bytes());
        self.user_writes(name, &lines.concat());
    }

    fn decide(&mut self, which: Index, answer: &AnswerKind, before: &Tree) {
        if self.pending.is_empty() {
            return;
        }
        let proposed = self.pending.remove(which.index(self.pending.len()));
        // An earlier change of the same files may have ended, so that this one has another preview by now.
        let proposed = self.engine().pending_change(proposed.change).unwrap();
        let (answer, steps) = expectation(&proposed.preview, answer);
        let fits = steps.iter().all(|(path, (was, _))| before.get(path) == was.as_ref());
        let reachable = steps.iter().all(|(path, (_, after))| after.is_none() || has_room(before, path));
        let verdict = proposed.verdict(answer);
        let time = self.time;
        match self.engine().decide(&proposed, &verdict, time) {
            Ok(DecisionResult::Applied { .. }) => {
                assert!(fits, "{steps:?} was written over something else: {before:?}");
                let after = self.tree();
                assert_eq!(files(&after), overlay(before, &steps));
                self.check_directories(before, &after);
                self.note_effects(&steps);
                if !steps.is_empty() {
                    let session = self.session(proposed.change);
                    self.applied.push(Applied {
                        change: proposed.change,
                        session,
                        effects: steps,
                        stands: true,
                        taken_back: 0,
                    });
                }
            }
            Ok(DecisionResult::Permitted { .. }) => unreachable!("nothing is left to others here"),
            Ok(DecisionResult::Denied { .. }) => {
                assert!(steps.is_empty(), "{steps:?} was approved");
                assert_eq!(&self.tree(), before);
            }
            Ok(DecisionResult::Stale { next, files, agent_message: told }) => {
                assert!(!fits || !reachable, "stale without a reason: {files:?}");
                assert!(told.starts_with("nothing was written: "), "{told}");
                assert_eq!(&self.tree(), before);
                self.pending.push(*next);
            }
            Ok(DecisionResult::Failed { error, .. }) => {
                assert!(!reachable, "{error}");
                assert_eq!(&self.tree(), before);
            }
            Err(GateError::Verdict(error)) => {
                let whole = proposed.preview.files().iter().any(FilePreview::changes_encoding);
                // Edited text may have characters that the file's encoding lacks.
                let unwritable = error.to_string().contains("has no way to write");
                assert!(whole || unwritable || proposed.preview.problems().next().is_some(), "{error}");
                assert_eq!(&self.tree(), before);
                self.engine().cancel(proposed.change, time).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
        assert!(self.engine().decide(&proposed, &verdict, time).is_err(), "one verdict counts");
    }

    fn session(&mut self, change: ChangeId) -> String {
        self.engine().history().change(change).unwrap().origin.session.unwrap()
    }

    fn target(&self, target: &TargetKind) -> Target {
        match target {
            TargetKind::Last => Target::Last,
            TargetKind::Session(session) => Target::Session { session: session.to_string() },
            TargetKind::Change(which) => {
                let changes: Vec<ChangeId> = self.applied.iter().map(|applied| applied.change).collect();
                Target::Change { change: if changes.is_empty() { 1 } else { changes[which.index(changes.len())] } }
            }
        }
    }

    /// Undoes a target. Returns `true` if the tree changed.
    fn undo(&mut self, target: &TargetKind, if_changed: IfChanged, before: &Tree) -> bool {
        let target = self.target(target);
        let expected: Vec<ChangeId> = match &target {
            Target::Last => {
                self.applied.iter().rev().find(|applied| applied.stands).map(|one| one.change).into_iter().collect()
            }
            Target::Change { change } => {
                self.applied.iter().filter(|one| one.stands && one.change == *change).map(|one| one.change).collect()
            }
            Target::Session { session } => {
                let of = self.applied.iter().rev().filter(|one| one.stands && one.session == *session);
                of.map(|one| one.change).collect()
            }
            _ => Vec::new(),
        };
        let plan = match self.engine().plan_undo(&target, if_changed) {
            Ok(plan) => plan,
            Err(error) => {
                assert!(expected.is_empty(), "{error}");
                return false;
            }
        };
        assert_eq!(plan.changes(), expected);
        let mut exact: Effects = Effects::new();
        let mut as_left = true;
        for applied in self.applied.iter().rev().filter(|applied| expected.contains(&applied.change)) {
            for (path, (was, became)) in &applied.effects {
                let now = exact.entry(path.clone()).or_insert_with(|| {
                    let now = before.get(path).cloned();
                    (now.clone(), now)
                });
                as_left &= now.1 == *became;
                now.1.clone_from(was);
            }
        }
        if if_changed == IfChanged::Refuse {
            assert!(as_left || plan.preview.problems().next().is_some(), "a changed file would be overwritten");
        }
        let paths: BTreeSet<&str> = plan.preview.files().iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, exact.keys().map(String::as_str).collect(), "recorded paths and no others");
        let done = self.perform(plan, before);
        if as_left && exact.iter().all(|(path, (_, after))| after.is_none() || has_room(before, path)) {
            assert!(done, "nothing stood in the way");
            exact.retain(|_, (was, after)| was != after);
            assert_eq!(files(&self.tree()), overlay(before, &exact));
        }
        done
    }

    /// Carries out an undo or redo. Returns `true` on success.
    fn perform(&mut self, plan: UndoPlan, before: &Tree) -> bool {
        let problems = plan.preview.problems().count();
        let shown: BTreeMap<String, FilePreview> =
            plan.preview.files().iter().map(|file| (file.path.to_string(), file.clone())).collect();
        let time = self.time;
        let origin = Origin { session: Some("person".to_owned()), ..Origin::default() };
        let decided = self.engine().perform(plan, origin, time);
        let after = self.tree();
        match decided {
            Ok(DecisionResult::Applied { .. }) => assert_eq!(problems, 0),
            Ok(DecisionResult::Failed { .. }) | Err(GateError::Verdict(_)) => {
                assert_eq!(&after, before, "nothing is undone in part");
                return false;
            }
            other => panic!("{other:?}"),
        }
        let effects: Effects = shown
            .iter()
            .map(|(path, file)| (path.clone(), (entry(&file.before), entry(&file.after))))
            .filter(|(_, (was, becomes))| was != becomes)
            .collect();
        assert_eq!(files(&after), overlay(before, &effects));
        self.check_directories(before, &after);
        self.note_effects(&effects);
        self.learn_what_stands();
        true
    }

    /// Reads the status of changes from the history, which other checks compare with the tree.
    fn learn_what_stands(&mut self) {
        let history = self.engine.as_ref().unwrap().history();
        let mut again = Vec::new();
        // The latest application is undone first.
        for mut applied in self.applied.drain(..).rev().collect::<Vec<_>>() {
            let stands = history.change(applied.change).unwrap().status == ChangeStatus::Applied;
            if applied.stands && !stands {
                self.taken_back += 1;
                applied.taken_back = self.taken_back;
            }
            let is_again = stands && !applied.stands;
            applied.stands = stands;
            if is_again { again.push(applied) } else { self.applied.insert(0, applied) }
        }
        // The latest undo is redone first.
        again.sort_by_key(|applied| std::cmp::Reverse(applied.taken_back));
        self.applied.extend(again);
    }

    /// Without a merge, a file can only get a recorded state.
    fn check_recorded(&mut self, preview: &Preview) {
        let mut known: BTreeSet<(String, String)> = BTreeSet::new();
        let name = |print: &Fingerprint| serde_json::to_string(print).unwrap();
        for recorded in self.engine().history().events(None, 0, 100_000).unwrap() {
            if let EventBody::Known(Event::Applying { record, .. }) = recorded.body {
                for step in record.steps {
                    known.insert((step.path.to_string(), name(&step.before)));
                    known.insert((step.path.to_string(), name(&step.after)));
                }
            }
        }
        for file in preview.files().iter().filter(|file| file.problem.is_none()) {
            assert!(known.contains(&(file.path.to_string(), name(&file.after.fingerprint()))), "{file:?}");
        }
    }

    fn note_effects(&mut self, effects: &Effects) {
        for path in effects.keys() {
            self.touched.remove(path);
        }
    }

    /// Directories are created for files, and only created ones are removed.
    fn check_directories(&mut self, before: &Tree, after: &Tree) {
        let needed: BTreeSet<String> = files(after).keys().flat_map(|path| parents(path)).collect();
        for path in after.iter().filter(|(path, entry)| **entry == Entry::Directory && !before.contains_key(*path)) {
            assert!(needed.contains(path.0), "{} was made for nothing", path.0);
            self.made.insert(path.0.clone());
        }
        for path in before.iter().filter(|(path, entry)| **entry == Entry::Directory && !after.contains_key(*path)) {
            assert!(self.made.contains(path.0), "{} was not ours to remove", path.0);
        }
    }

    fn restart(&mut self) {
        let previews = |engine: &Engine| -> Vec<Preview> {
            self.pending.iter().map(|proposed| engine.pending_change(proposed.change).unwrap().preview).collect()
        };
        let before = self.engine.take().map(|engine| previews(&engine)).unwrap();
        let engine = self.scene.engine();
        assert_eq!(previews(&engine), before, "a restart keeps the previews");
        self.engine = Some(engine);
    }

    /// Invariants after every step.
    fn check(&self) {
        let tree = self.tree();
        let left: Vec<&String> = tree.keys().filter(|path| path.contains(".sayso-")).collect();
        assert!(left.is_empty(), "{left:?}");
        let history = self.engine.as_ref().unwrap().history();
        let status = history.status().unwrap();
        assert_eq!(status.pending, self.pending.len() as u64);
        assert_eq!(status.interrupted, None);
        let mut plans = BTreeMap::new();
        let mut told: BTreeMap<WsPath, Fingerprint> = BTreeMap::new();
        for recorded in history.events(None, 0, 100_000).unwrap() {
            match recorded.body {
                EventBody::Known(Event::Applying { change, record, .. }) => drop(plans.insert(change, record)),
                EventBody::Known(Event::Ended { change, outcome: Outcome::Applied, .. }) => {
                    let steps = plans.remove(&change).map(|record| record.steps).unwrap_or_default();
                    told.extend(steps.into_iter().map(|step| (step.path, step.after)));
                }
                EventBody::Known(_) => {}
                EventBody::Unknown(body) => panic!("{body}"),
            }
        }
        for (path, print) in told.iter().filter(|(path, _)| !self.touched.contains(path.as_str())) {
            let now = tree.get(path.as_str()).map_or(Fingerprint::Absent, |entry| state(entry).fingerprint());
            assert_eq!(&now, print, "the history says otherwise about {path}");
        }
    }
}

fn if_changed(merge: bool) -> IfChanged {
    if merge { IfChanged::Merge } else { IfChanged::Refuse }
}

/// Returns an answer to a preview, and the expected file states.
fn expectation(preview: &Preview, kind: &AnswerKind) -> (Answer, Effects) {
    let mut effects = Effects::new();
    let mut answers = BTreeMap::new();
    let picks = if let AnswerKind::Some(picks) = kind { &picks[..] } else { &[] };
    for (index, file) in preview.files().iter().enumerate() {
        let pick = picks.get(index % picks.len().max(1));
        let (answer, after) = match (kind, pick) {
            (AnswerKind::Deny, _) => (FileAnswer::Deny { reason: None }, None),
            (AnswerKind::Edited(text), _) if index == 0 => {
                let base = file.before.bytes().or(file.after.bytes()).unwrap_or_default();
                let bytes = sayso_diff::encode_like(base, text).bytes;
                let mode = file.after.mode().or(file.before.mode());
                (
                    FileAnswer::EditedText { text: text.clone() },
                    Some(file_of(bytes, mode.map_or(0o644, FileMode::bits))),
                )
            }
            (AnswerKind::Some(_), Some((choice, _))) if choice % 4 == 0 => (FileAnswer::Deny { reason: None }, None),
            (AnswerKind::Some(_), Some((choice, bits))) if choice % 4 != 1 => some_hunks(file, *bits),
            _ => (FileAnswer::Approve, Some(file.after.clone())),
        };
        answers.insert(file.path.clone(), answer);
        let Some(after) = after else { continue };
        if let Operation::Rename { from } = &file.operation {
            effects.insert(from.to_string(), (entry(&file.before), None));
            effects.insert(file.location.to_string(), (None, entry(&after)));
        } else {
            effects.insert(file.location.to_string(), (entry(&file.before), entry(&after)));
        }
    }
    effects.retain(|_, (before, after)| before != after);
    let answer = match kind {
        AnswerKind::Approve => Answer::Approve,
        AnswerKind::Deny => Answer::Deny { reason: None },
        _ => Answer::Files { files: answers, reason: None },
    };
    (answer, effects)
}

/// Accepts the hunks, or every other part of a hunk, whose bits are set. Builds the result from the displayed lines.
fn some_hunks(file: &FilePreview, bits: u32) -> (FileAnswer, Option<FileState>) {
    let diff = file.diff();
    let old = file.before.bytes().unwrap_or_default();
    let new = file.after.bytes().unwrap_or_default();
    let mut wanted = BTreeSet::new();
    let mut result = Vec::new();
    let (mut at, mut all, mut any) = (0, true, false);
    for hunk in diff.hunks(sayso_review::CONTEXT) {
        let bit = |number: usize| bits >> (number % 32) & 1 == 1;
        let in_parts = bit(hunk.number + 16);
        if !in_parts && bit(hunk.number) {
            wanted.insert(HunkId::whole(hunk.number));
        }
        for (part, change) in hunk.changes().iter().enumerate() {
            let taken = bit(hunk.number + if in_parts { part } else { 0 });
            result.extend_from_slice(&old[at..change.old.start.offset]);
            result.extend_from_slice(if taken { change.new.of(new) } else { change.old.of(old) });
            at = change.old.end.offset;
            (all, any) = (all && taken, any || taken);
            if taken && in_parts {
                wanted.insert(HunkId { hunk: hunk.number, part: Some(part + 1) });
            }
        }
    }
    result.extend_from_slice(&old[at..]);
    let mode = file.before.mode().or(file.after.mode()).map_or(0o644, FileMode::bits);
    let after = match (any, all) {
        (false, _) => None,
        (true, true) => Some(file.after.clone()),
        (true, false) => Some(file_of(result, mode)),
    };
    (FileAnswer::Hunks { hunks: wanted }, after)
}

fn file_of(bytes: Vec<u8>, mode: u32) -> FileState {
    FileState::file(bytes, FileMode::new(mode))
}

fn entry(state: &FileState) -> Option<Entry> {
    match state {
        FileState::Absent => None,
        FileState::File { content, mode } => Some(Entry::File { bytes: content.bytes().to_vec(), mode: mode.bits() }),
        FileState::Link { target } => Some(Entry::Link { target: target.clone() }),
    }
}

fn state(entry: &Entry) -> FileState {
    match entry {
        Entry::File { bytes, mode } => file_of(bytes.clone(), *mode),
        Entry::Link { target } => FileState::Link { target: target.clone() },
        Entry::Directory => FileState::Absent,
    }
}

fn files(tree: &Tree) -> Tree {
    let is_file = |entry: &&Entry| **entry != Entry::Directory;
    tree.iter().filter(|(_, entry)| is_file(entry)).map(|(path, entry)| (path.clone(), entry.clone())).collect()
}

fn overlay(tree: &Tree, effects: &Effects) -> Tree {
    let mut tree = files(tree);
    for (path, (_, after)) in effects {
        match after {
            Some(entry) => drop(tree.insert(path.clone(), entry.clone())),
            None => drop(tree.remove(path)),
        }
    }
    tree
}

fn parents(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect()
}

/// `true` if a file can exist at a path.
fn has_room(tree: &Tree, path: &str) -> bool {
    let is_directory = |path: &String| tree.get(path).is_none_or(|entry| *entry == Entry::Directory);
    tree.get(path) != Some(&Entry::Directory) && parents(path).iter().all(is_directory)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold_after_every_step(steps in vec(step(), 1..60)) {
        let mut world = World::new();
        for step in &steps {
            world.play(step);
        }
    }
}
