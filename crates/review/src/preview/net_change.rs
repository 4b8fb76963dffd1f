//! The net change of a turn: all edits of a file folded into one diff for review.

use std::collections::BTreeMap;

use sayso_base::{FileState, WsPath};

use super::problem::Problem;
use super::rebase::merge_states;
use super::{FilePreview, Operation, Placement, Preview};
use crate::note::Note;
use crate::observed::{ObservedFile, Obstacle};

/// The recorded effect of a change on one path. `None` is a state whose content is no longer stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChange {
    pub path: WsPath,
    pub before: Option<FileState>,
    pub after: Option<FileState>,
    /// Review state of the change.
    pub review: ReviewState,
}

/// The review state of an applied change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewState {
    /// It still needs a review.
    Pending,
    /// It was decided before or already reviewed, so the net change is compared with its result.
    Done,
}

/// Folds applied changes, in order, into one diff per file between the approved and the current state.
///
/// Reviewed changes and edits by others count as approved and are merged into the old side. If a merge fails because
/// both touch the same lines, these lines are shown for review again.
pub fn net_change(changes: &[AppliedChange], observed: &BTreeMap<WsPath, ObservedFile>) -> Preview {
    let mut paths: BTreeMap<&WsPath, Vec<&AppliedChange>> = BTreeMap::new();
    for one in changes {
        paths.entry(&one.path).or_default().push(one);
    }
    let mut files = Vec::new();
    for (path, changes) in paths {
        let Some(first) = changes.iter().position(|one| one.review == ReviewState::Pending) else { continue };
        let file = fold(path, &changes[first..], observed.get(path));
        if file.problem.is_some() || file.before != file.after {
            files.push(file);
        }
    }
    Preview { placement: Placement::InPlace, ..Preview::new(files) }
}

impl Preview {
    /// Previews recorded effects after the fact, from path, old state and new state.
    pub fn happened(steps: Vec<(WsPath, FileState, FileState)>) -> Self {
        let file = |(path, before, after): (WsPath, FileState, FileState)| {
            let operation = Operation::between(&before, &after);
            let location = path.clone();
            let mut file = FilePreview { path, location, operation, before, after, notes: Vec::new(), problem: None };
            file.find_notes(Vec::new());
            file
        };
        Self { placement: Placement::InPlace, ..Self::new(steps.into_iter().map(file).collect()) }
    }
}

fn fold(path: &WsPath, changes: &[&AppliedChange], observed: Option<&ObservedFile>) -> FilePreview {
    let now = match observed {
        // Recorded paths name files and links themselves, so do not follow a link.
        Some(ObservedFile { link: Some(target), .. }) => Ok(FileState::Link { target: target.clone() }),
        Some(observed) => observed.found.clone(),
        None => Err(Obstacle::Unreadable { reason: "it was not observed".to_owned() }),
    };
    let (after, mut problem) = match now {
        Ok(state) => (state, None),
        Err(obstacle) => (FileState::Absent, Some(Problem::Blocked(obstacle))),
    };
    let mut before = None;
    if problem.is_none() {
        match approved(changes, &after) {
            Some(state) => before = Some(state),
            None => problem = Some(Problem::ContentGone),
        }
    }
    let before = before.unwrap_or_else(|| after.clone());
    let mut facts = observed.map(|observed| observed.facts.clone()).unwrap_or_default();
    if changes.last().is_some_and(|last| last.after.as_ref().is_some_and(|left| *left != after)) {
        facts.push(Note::ChangedSince);
    }
    let operation = Operation::between(&before, &after);
    let (path, location) = (path.clone(), path.clone());
    let mut file = FilePreview { path, location, operation, before, after, notes: Vec::new(), problem };
    file.find_notes(facts);
    file
}

/// Returns the state without the edits under review; `None` if a needed content is no longer stored.
fn approved(changes: &[&AppliedChange], now: &FileState) -> Option<FileState> {
    let mut approved = changes.first()?.before.clone()?;
    let mut last = approved.clone();
    for one in changes {
        let (before, after) = (one.before.clone()?, one.after.clone()?);
        // An edit by others in between counts as approved.
        approved = carried(&last, &before, approved);
        if one.review == ReviewState::Done {
            approved = carried(&before, &after, approved);
        }
        last = after;
    }
    Some(carried(&last, now, approved))
}

/// Applies a step to the approved state. If it does not merge cleanly, the approved state is unchanged.
fn carried(from: &FileState, to: &FileState, approved: FileState) -> FileState {
    if from == to { approved } else { merge_states(from, &approved, to).unwrap_or(approved) }
}
