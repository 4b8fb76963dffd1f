//! Runs every folder of `tests/scenarios`. Adding a case is adding a folder.
//!
//! - `input/`: the tree before; absent if it is empty.
//! - `intent.json` or `intent.patch`: the proposal.
//! - `preview.txt`: the preview.
//! - `meanwhile/`: files that another program writes before the verdict.
//! - `verdict.json`: the answer and comments; without it, no verdict. `second-verdict.json` answers the replacement of
//!   a stale change.
//! - `expected/`: the tree afterwards; absent if it must not change.
//! - `told.txt`: the message to the agent.
//!
//! Each change is then undone and redone, which must restore both trees. `UPDATE_SCENARIOS=1` writes the results
//! instead of comparing them: read the difference before you commit it.

use std::path::{Path, PathBuf};

use sayso_gate::{DecisionResult, Engine, GateError, PendingChange, SubmitResult};
use sayso_review::{IfChanged, Operation, Origin, Preview, Proposal, Target, Verdict};

use crate::tree::{self, Tree};
use crate::{Scene, submit_for_verdict};

#[test]
fn scenarios_match_their_folders() {
    let update = std::env::var_os("UPDATE_SCENARIOS").is_some();
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&all).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    assert!(folders.len() > 30, "there are only {}", folders.len());
    let mut wrong = String::new();
    for folder in folders {
        let played = play(&folder);
        if update {
            played.write(&folder);
        }
        for difference in played.differences(&folder) {
            wrong.push_str(&format!("{}: {difference}\n", folder.file_name().unwrap().display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Result of a scenario.
struct Played {
    preview: String,
    told: Option<String>,
    before: Tree,
    after: Tree,
}

fn play(folder: &Path) -> Played {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let scene = Scene::new(&[]);
    tree::write(scene.root(), &tree::as_git_keeps_it(&tree::read(&folder.join("input"))));
    let mut engine = scene.engine();
    let intent = read(folder, "intent.json").or_else(|| read(folder, "intent.patch")).expect(name);
    let submitted = Proposal::parse(&intent)
        .map_err(GateError::from)
        .and_then(|proposal| submit_for_verdict(&mut engine, proposal, Origin::default(), 1));
    let proposed = match submitted {
        Ok(SubmitResult::Pending(proposed)) => *proposed,
        Ok(SubmitResult::Impossible { proposed, agent_message: told }) => {
            let before = tree::read(scene.root());
            let told = read(folder, "verdict.json").map(|_| format!("{told}\n"));
            return Played { preview: shown(&proposed.preview), told, before: before.clone(), after: before };
        }
        Ok(SubmitResult::Decided { .. }) => panic!("{name}: policy decided"),
        Err(error) => {
            let preview = format!("refused: {error}\nhint: {}\n", error.hint().unwrap_or_default());
            let before = tree::read(scene.root());
            return Played { preview, told: None, after: before.clone(), before };
        }
    };
    let mut preview = shown(&proposed.preview);
    tree::write(scene.root(), &tree::as_git_keeps_it(&tree::read(&folder.join("meanwhile"))));
    let before = tree::read(scene.root());
    let mut told = None;
    if let Some((verdict, next)) = decide(folder, "verdict.json", &mut engine, &proposed) {
        told = Some(verdict);
        if let Some(next) = next {
            preview.push_str("=== shown again, since files changed ===\n\n");
            preview.push_str(&shown(&next.preview));
            if let Some((second, _)) = decide(folder, "second-verdict.json", &mut engine, &next) {
                told = told.map(|first| format!("{first}\n=== after the second verdict ===\n{second}"));
            }
        }
    }
    let after = tree::read(scene.root());
    if before != after {
        undo_and_redo(name, &mut engine, &scene, &before, &after);
    }
    Played { preview, told, before, after }
}

/// Carries out a verdict, if the scenario has it. Returns the agent's message and the replacement.
fn decide(
    folder: &Path,
    file: &str,
    engine: &mut Engine,
    proposed: &PendingChange,
) -> Option<(String, Option<PendingChange>)> {
    let mut verdict: serde_json::Value = serde_json::from_slice(&read(folder, file)?).expect(file);
    verdict["preview"] = proposed.preview.hash().to_string().into();
    if verdict.get("by").is_none() {
        verdict["by"] = serde_json::json!({ "by": "person" });
    }
    let verdict: Verdict = serde_json::from_value(verdict).expect(file);
    let (told, next) = match engine.decide(proposed, &verdict, 2) {
        Ok(
            DecisionResult::Applied { agent_message: told, .. }
            | DecisionResult::Permitted { agent_message: told, .. }
            | DecisionResult::Denied { agent_message: told }
            | DecisionResult::Failed { agent_message: told, .. },
        ) => (told, None),
        Ok(DecisionResult::Stale { agent_message: told, next, .. }) => (told, Some(*next)),
        Err(error) => (proposed.preview.problems_message().unwrap_or_else(|| error.to_string()), None),
    };
    Some((format!("{told}\n"), next))
}

/// Checks that undo restores the tree with its directories, and redo the changed one.
fn undo_and_redo(name: &str, engine: &mut Engine, scene: &Scene, before: &Tree, after: &Tree) {
    let undo = engine.plan_undo(&Target::Last, IfChanged::Refuse).expect(name);
    engine.perform(undo, Origin::default(), 3).expect(name);
    assert_eq!(&tree::read(scene.root()), before, "{name}: undo");
    let redo = engine.plan_redo(&Target::Last, IfChanged::Refuse).expect(name);
    engine.perform(redo, Origin::default(), 4).expect(name);
    assert_eq!(&tree::read(scene.root()), after, "{name}: redo");
}

fn shown(preview: &Preview) -> String {
    let mut text = String::new();
    for file in preview.files() {
        let settled = if preview.is_settled(&file.path) { " (approved before)" } else { "" };
        let from =
            if let Operation::Rename { from } = &file.operation { format!(" from {from}") } else { String::new() };
        text.push_str(&format!("{}: {}{from}{settled}\n", file.path, file.operation.name()));
        for note in &file.notes {
            text.push_str(&format!("{}: {note}\n", note.severity()));
        }
        if let Some(problem) = &file.problem {
            text.push_str(&format!("cannot be done: {problem}\n"));
        }
        let diff = file.unified();
        text.push_str(diff.trim_end_matches('\n'));
        text.push_str(if diff.is_empty() { "\n" } else { "\n\n" });
    }
    text
}

fn read(folder: &Path, file: &str) -> Option<Vec<u8>> {
    std::fs::read(folder.join(file)).ok()
}

impl Played {
    fn differences(&self, folder: &Path) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |file: &str, now: Option<&str>| {
            let expected = read(folder, file).map(|bytes| String::from_utf8(bytes).unwrap());
            if expected.as_deref() != now {
                wrong.push(format!(
                    "{file}\nexpected:\n{}\nfound:\n{}",
                    expected.unwrap_or_default(),
                    now.unwrap_or("")
                ));
            }
        };
        check("preview.txt", Some(&self.preview));
        check("told.txt", self.told.as_deref());
        let expected = folder.join("expected");
        let expected = if expected.is_dir() { tree::read(&expected) } else { self.before.clone() };
        let (expected, after) = (tree::as_git_keeps_it(&expected), tree::as_git_keeps_it(&self.after));
        if expected != after {
            wrong.push(format!("the tree\nexpected: {expected:#?}\nfound: {after:#?}"));
        }
        wrong
    }

    fn write(&self, folder: &Path) {
        std::fs::write(folder.join("preview.txt"), &self.preview).unwrap();
        match &self.told {
            Some(told) => std::fs::write(folder.join("told.txt"), told).unwrap(),
            None => drop(std::fs::remove_file(folder.join("told.txt"))),
        }
        let expected = folder.join("expected");
        let _ = std::fs::remove_dir_all(&expected);
        if self.before != self.after {
            assert!(!self.after.is_empty(), "git keeps no empty folder: leave a file in {}", folder.display());
            tree::write(&expected, &tree::as_git_keeps_it(&self.after));
        }
    }
}
