//! Undo and redo: applies recorded changes backward or forward to the current files.

use std::collections::BTreeMap;

use sayso_base::{FileState, WsPath};
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::rebase::merge_states;
use super::{FilePreview, Operation, Preview};
use crate::note::Note;
use crate::observed::{ObservedFile, Obstacle};

/// A recorded change of one path. `None` is a state whose content is no longer stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Change that it belongs to.
    pub change: u64,
    pub path: WsPath,
    /// Required state: for an undo, the result of the change.
    pub from: Option<FileState>,
    /// New state: for an undo, the state before the change.
    pub to: Option<FileState>,
}

/// The behaviour for a file that is not in the required state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfChanged {
    Refuse,
    /// Merge both changes if possible.
    Merge,
}

/// Applies transitions in order to the observed files. A file that is not in the required state is reported as a
/// problem, or merged on request.
pub fn reverse(
    transitions: &[Transition],
    observed: &BTreeMap<WsPath, ObservedFile>,
    if_changed: IfChanged,
) -> Preview {
    let mut files: Vec<FilePreview> = Vec::new();
    let mut places: BTreeMap<&WsPath, usize> = BTreeMap::new();
    for transition in transitions {
        let place = *places.entry(&transition.path).or_insert_with(|| {
            files.push(start(transition, observed.get(&transition.path)));
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
        let facts = observed.get(&file.path).map(|observed| observed.facts.clone()).unwrap_or_default();
        file.find_notes(facts);
    }
    Preview::new(files)
}

fn start(transition: &Transition, observed: Option<&ObservedFile>) -> FilePreview {
    let found = match observed {
        // Recorded paths name files and links themselves, so do not follow a link.
        Some(ObservedFile { link: Some(target), .. }) => Ok(FileState::Link { target: target.clone() }),
        Some(observed) => observed.found.clone(),
        None => Err(Obstacle::Unreadable { reason: "it was not observed".to_owned() }),
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
