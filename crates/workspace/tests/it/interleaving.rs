//! Random trees and changes, with user writes after the preview.

use std::path::Path;

use proptest::prelude::*;
use sayso_review::FileState;
use sayso_workspace::{ApplyError, Backend, Swap, Workspace};
use serde_json::Value;

use crate::change::{Thing, Tree, approve, contents, delete, files, preview, put, set_mode, tree, undo, write};

const PATHS: [&str; 8] = ["a", "b", "c", "d/a", "d/b", "d/e/a", "f/a", "f/g/h/a"];

#[derive(Clone, Debug)]
enum Act {
    Write(&'static str, String),
    Delete(&'static str),
    Mode(&'static str, u32),
}

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&PATHS[..])
}

fn text() -> impl Strategy<Value = String> {
    // Few lengths and letters, so that contents are often equal or of equal length.
    "[ab\n]{0,3}"
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (path(), text()).prop_map(|(path, text)| Act::Write(path, text)),
        2 => path().prop_map(Act::Delete),
        1 => (path(), prop::sample::select(&[0o600_u32, 0o644, 0o755][..])).prop_map(|(path, mode)| Act::Mode(path, mode)),
    ]
}

/// Step of the user.
fn act_on(root: &Path, act: &Act) {
    match act {
        Act::Write(path, text) => put(root, path, text),
        Act::Delete(path) => drop(std::fs::remove_file(root.join(path))),
        Act::Mode(path, mode) if root.join(path).exists() => set_mode(root.join(path), *mode),
        Act::Mode(..) => {}
    }
}

fn proposal(act: &Act) -> Option<Value> {
    match act {
        Act::Write(path, text) => Some(write(path, text)),
        Act::Delete(path) => Some(delete(path)),
        Act::Mode(..) => None,
    }
}

/// Returns the tree after a plan.
fn planned(mut tree: Tree, plan: &sayso_review::Plan) -> Tree {
    for step in plan.steps() {
        match &step.after {
            FileState::Absent => drop(tree.remove(step.path.as_str())),
            FileState::Link { target } => drop(tree.insert(step.path.to_string(), Thing::Link(target.clone()))),
            FileState::File { content, mode } => {
                let file = Thing::File { bytes: content.bytes().to_vec(), mode: mode.bits() };
                tree.insert(step.path.to_string(), file);
            }
        }
    }
    tree
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn interleaved_user_writes_are_never_lost(
        start in prop::collection::vec(act(), 0..8),
        wanted in prop::collection::vec(act(), 1..6),
        meanwhile in prop::collection::vec(act(), 0..3),
        backend in prop::sample::select(&[Backend::OpenAt2, Backend::Stepwise][..]),
        swap in prop::sample::select(&[Swap::Exchange, Swap::Replace][..]),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let workspace = Workspace::open_with(root, backend).unwrap().with_swap(swap);
        for act in &start {
            act_on(root, act);
        }
        let changes: Vec<Value> = wanted.iter().filter_map(proposal).collect();
        prop_assume!(!changes.is_empty());
        let shown = files(root);
        let Ok(plan) = approve(&preview(&workspace, &changes.into())) else {
            prop_assert_eq!(files(root), shown);
            return Ok(());
        };
        let prepared = workspace.prepare(plan.clone(), Vec::new()).unwrap();
        let record = prepared.record();
        for act in &meanwhile {
            act_on(root, act);
        }
        let (theirs, theirs_whole) = (files(root), tree(root));
        let untouched = plan.steps().iter().all(|step| theirs.get(step.path.as_str()) == shown.get(step.path.as_str()));
        let result = prepared.apply();
        match &result {
            Ok(_) => {
                prop_assert!(untouched, "it was stale");
                prop_assert_eq!(files(root), planned(theirs, &plan));
            }
            Err(error) => {
                prop_assert!(!untouched && matches!(error, ApplyError::Stale { .. }), "{}", error);
                prop_assert_eq!(tree(root), theirs_whole.clone());
            }
        }
        // Recovery from the record agrees with the reported result.
        let contents = contents(&plan);
        let now = files(root);
        let recovery = workspace.recover(&record, |hash| contents.get(hash).cloned()).unwrap();
        prop_assert!(recovery.rescued_files.is_empty());
        if result.is_ok() {
            prop_assert!(recovery.finished);
            prop_assert_eq!(files(root), now);
            workspace.prepare(undo(&workspace, &plan), record.directories.clone()).unwrap().apply().unwrap();
            let mut back = tree(root);
            // An empty directory that the user created after the record cannot be distinguished from a created one.
            for made in record.directories.iter().filter(|made| theirs_whole.contains_key(made.as_str())) {
                back.insert(made.to_string(), Thing::Directory);
            }
            prop_assert_eq!(back, theirs_whole);
        } else if recovery.finished {
            prop_assert_eq!(files(root), now);
        }
        prop_assert!(!tree(root).keys().any(|path| path.contains(".sayso-")));
    }
}
