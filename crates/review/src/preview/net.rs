//! What a turn changed in all, for review after it happened: many edits of one file folded into one diff.

use std::collections::BTreeMap;

use sayso_base::{FileState, WsPath};

use super::problem::Problem;
use super::rebase::merge_states;
use super::{FilePreview, Operation, Placement, Preview};
use crate::note::Note;
use crate::seen::{Obstacle, Seen};

/// What a recorded change did to a path. `None` is a state whose content is no longer kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// The file.
    pub path: WsPath,
    /// What was there.
    pub before: Option<FileState>,
    /// What was there afterwards.
    pub after: Option<FileState>,
    /// Whether it is to be reviewed, or was decided when it happened.
    pub review: Review,
}

/// Whether a change that happened has been looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// Not yet.
    Open,
    /// It has, so that it is part of what the rest is compared with.
    Done,
}

/// Folds what happened, in order, into one diff per file between what was approved of it and what is there now.
///
/// What was decided at once and what others did in between counts as approved: it is merged into the old side. Where that is not
/// possible, since both are about the same lines, it is shown again with the rest.
pub fn net(happened: &[Happened], seen: &BTreeMap<WsPath, Seen>) -> Preview {
    let mut paths: BTreeMap<&WsPath, Vec<&Happened>> = BTreeMap::new();
    for one in happened {
        paths.entry(&one.path).or_default().push(one);
    }
    let mut files = Vec::new();
    for (path, happened) in paths {
        let Some(first) = happened.iter().position(|one| one.review == Review::Open) else { continue };
        let file = fold(path, &happened[first..], seen.get(path));
        if file.problem.is_some() || file.before != file.after {
            files.push(file);
        }
    }
    Preview { placement: Placement::InPlace, ..Preview::new(files) }
}

impl Preview {
    /// What happened to files, as it is shown afterwards: path, what was there, what came.
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

fn fold(path: &WsPath, happened: &[&Happened], seen: Option<&Seen>) -> FilePreview {
    let now = match seen {
        // Recorded paths are those of files and links themselves: a link is never followed here.
        Some(Seen { link: Some(target), .. }) => Ok(FileState::Link { target: target.clone() }),
        Some(seen) => seen.found.clone(),
        None => Err(Obstacle::Unreadable { reason: "it was not looked at".to_owned() }),
    };
    let (after, mut problem) = match now {
        Ok(state) => (state, None),
        Err(obstacle) => (FileState::Absent, Some(Problem::Blocked(obstacle))),
    };
    let mut before = None;
    if problem.is_none() {
        match approved(happened, &after) {
            Some(state) => before = Some(state),
            None => problem = Some(Problem::ContentGone),
        }
    }
    let before = before.unwrap_or_else(|| after.clone());
    let mut facts = seen.map(|seen| seen.facts.clone()).unwrap_or_default();
    if happened.last().is_some_and(|last| last.after.as_ref().is_some_and(|left| *left != after)) {
        facts.push(Note::ChangedSince);
    }
    let operation = Operation::between(&before, &after);
    let (path, location) = (path.clone(), path.clone());
    let mut file = FilePreview { path, location, operation, before, after, notes: Vec::new(), problem };
    file.find_notes(facts);
    file
}

/// What the file would be with everything but what is to be reviewed. `None` if a content is gone that it takes to know.
fn approved(happened: &[&Happened], now: &FileState) -> Option<FileState> {
    let mut approved = happened.first()?.before.clone()?;
    let mut last = approved.clone();
    for one in happened {
        let (before, after) = (one.before.clone()?, one.after.clone()?);
        // Somebody else was there in between.
        approved = carried(&last, &before, approved);
        if one.review == Review::Done {
            approved = carried(&before, &after, approved);
        }
        last = after;
    }
    Some(carried(&last, now, approved))
}

/// A step that needs no review, made in what is approved so far too, if that is possible.
fn carried(from: &FileState, to: &FileState, approved: FileState) -> FileState {
    if from == to { approved } else { merge_states(from, &approved, to).unwrap_or(approved) }
}
