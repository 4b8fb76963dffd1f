//! Undo and redo: recorded changes played backwards, or again, on what is there now.

use std::collections::BTreeMap;

use sayso_base::{FileState, WsPath};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::rebase::merge_states;
use super::{FilePreview, Operation, Preview};
use crate::note::Note;
use crate::seen::{Obstacle, Seen};

/// What a recorded change did to a path, from which state to which. `None` is a state whose content is no longer kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The change it was part of.
    pub change: u64,
    /// The file.
    pub path: WsPath,
    /// The state to start from: what the change left, when undoing.
    pub from: Option<FileState>,
    /// The state to go to: what the change found, when undoing.
    pub to: Option<FileState>,
}

/// What to do with a file that is not as it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfChanged {
    /// Leave everything as it is and say so.
    Refuse,
    /// Merge the two, where they can be merged.
    Merge,
}

/// Plays transitions, in the order given, on what was seen. Never guesses: a file that is not in the state that a transition
/// starts from is a problem, or merged if asked.
pub fn reverse(transitions: &[Transition], seen: &BTreeMap<WsPath, Seen>, if_changed: IfChanged) -> Preview {
    let mut files: Vec<FilePreview> = Vec::new();
    let mut places: BTreeMap<&WsPath, usize> = BTreeMap::new();
    for transition in transitions {
        let place = *places.entry(&transition.path).or_insert_with(|| {
            files.push(start(transition, seen.get(&transition.path)));
            files.len() - 1
        });
        let file = &mut files[place];
        if file.problem.is_some() {
            continue;
        }
        match play(&file.after, transition, if_changed) {
            Ok((state, merged)) => {
                file.after = state;
                if merged && !file.notes.contains(&Note::Merged) {
                    file.notes.push(Note::Merged);
                }
            }
            Err(problem) => file.problem = Some(problem),
        }
    }
    for file in &mut files {
        file.operation = Operation::between(&file.before, &file.after);
        let facts = seen.get(&file.path).map(|seen| seen.facts.clone()).unwrap_or_default();
        file.find_notes(facts);
    }
    Preview::new(files)
}

fn start(transition: &Transition, seen: Option<&Seen>) -> FilePreview {
    let found = match seen {
        // Recorded paths are those of files and links themselves: a link is never followed here.
        Some(Seen { link: Some(target), .. }) => Ok(FileState::Link { target: target.clone() }),
        Some(seen) => seen.found.clone(),
        None => Err(Obstacle::Unreadable { reason: "it was not looked at".to_owned() }),
    };
    let (before, problem) = match found {
        Ok(state) => (state, None),
        Err(obstacle) => (FileState::Absent, Some(Problem::Blocked(obstacle))),
    };
    FilePreview {
        path: transition.path.clone(),
        location: transition.path.clone(),
        operation: Operation::Update,
        after: before.clone(),
        before,
        notes: Vec::new(),
        problem,
    }
}

fn play(now: &FileState, transition: &Transition, if_changed: IfChanged) -> Result<(FileState, bool), Problem> {
    let Some(to) = &transition.to else { return Err(Problem::ContentGone) };
    match (&transition.from, if_changed) {
        (Some(from), _) if from == now => Ok((to.clone(), false)),
        (_, IfChanged::Refuse) => Err(Problem::ChangedSince { change: transition.change }),
        (None, IfChanged::Merge) => Err(Problem::ContentGone),
        (Some(from), IfChanged::Merge) => merge_states(from, now, to).map(|state| (state, true)),
    }
}
