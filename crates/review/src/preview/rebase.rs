//! Rebases an approved plan onto files that changed in the meantime.

use std::collections::{BTreeMap, BTreeSet};

use sayso_base::{FileMode, FileState, WsPath};
use sayso_diff::{Encoding, Side, SideMerge, merge_sides};

use super::edit::conflicts;
use super::problem::{Conflict, Problem};
use super::{FilePreview, Operation, Preview};
use crate::note::Note;
use crate::observed::{ObservedFile, Obstacle};
use crate::plan::{Plan, PlanStep};

/// An approved plan after a rebase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebased {
    /// Merge of both changes. Only files that changed in the meantime need a decision.
    pub preview: Preview,
}

impl Plan {
    /// Merges the plan with the current files. `seen` is by location.
    pub fn rebase(&self, observed: &BTreeMap<WsPath, ObservedFile>) -> Rebased {
        let mut files = Vec::new();
        let mut settled = BTreeSet::new();
        let sources: BTreeSet<&WsPath> = self.renames().values().collect();
        for step in self.steps().iter().filter(|step| !sources.contains(&step.path)) {
            let target = found(step, observed);
            let (operation, base, now) = match self.renames().get(&step.path).and_then(|from| self.step(from)) {
                // Edits by others follow the file to its new path, if that path is still free.
                Some(source) if matches!(target, Ok(FileState::Absent)) => {
                    let from = source.path.clone();
                    (Some(Operation::Rename { from }), &source.before, found(source, observed))
                }
                Some(source) => {
                    let from = source.path.clone();
                    (Some(Operation::Rename { from }), &source.before, target.and(Err(Problem::Exists)))
                }
                None => (None, &step.before, target),
            };
            let (before, merged) = match now {
                Ok(now) => {
                    let merged = merge_states(base, &now, &step.after);
                    (now, merged)
                }
                Err(problem) => (FileState::Absent, Err(problem)),
            };
            let (after, problem) = match merged {
                Ok(after) => (after, None),
                Err(problem) => (before.clone(), Some(problem)),
            };
            let unchanged = before == *base && problem.is_none();
            if unchanged {
                settled.insert(step.path.clone());
            }
            let mut file = FilePreview {
                path: step.path.clone(),
                location: step.path.clone(),
                operation: operation.unwrap_or_else(|| Operation::between(&before, &after)),
                before,
                after,
                notes: if unchanged { Vec::new() } else { vec![Note::Merged] },
                problem,
            };
            file.find_notes(Vec::new());
            files.push(file);
        }
        let mut preview = Preview::new(files);
        preview.settled = settled;
        Rebased { preview }
    }
}

/// Returns the current state at the path of a step.
fn found(step: &PlanStep, observed: &BTreeMap<WsPath, ObservedFile>) -> Result<FileState, Problem> {
    match observed.get(&step.path) {
        // A step refers to the path itself, so do not follow a link that appeared there.
        Some(ObservedFile { link: Some(target), .. }) => Ok(FileState::Link { target: target.clone() }),
        Some(observed) => observed.found.clone().map_err(Problem::Blocked),
        None => Err(Problem::Blocked(Obstacle::Unreadable { reason: "it was not observed".to_owned() })),
    }
}

/// Merges two changes of the same base.
pub(super) fn merge_states(base: &FileState, current: &FileState, proposed: &FileState) -> Result<FileState, Problem> {
    if current == base || current == proposed {
        return Ok(proposed.clone());
    }
    if proposed == base {
        return Ok(current.clone());
    }
    let whole = |state: &FileState| match state {
        FileState::Absent => "(no file)".to_owned(),
        FileState::Link { target } => format!("(a symbolic link to {target})"),
        FileState::File { content, .. } => String::from_utf8_lossy(content.bytes()).into_owned(),
    };
    let conflict = || Problem::Conflicts {
        conflicts: vec![Conflict { line: 0, base: whole(base), current: whole(current), proposed: whole(proposed) }],
    };
    let side = |state| match state {
        &FileState::Absent => Some(Side::Absent),
        FileState::File { content, .. } => Some(Side::Present(content.bytes())),
        FileState::Link { .. } => None,
    };
    let (Some(base_side), Some(ours), Some(theirs)) = (side(base), side(current), side(proposed)) else {
        return Err(conflict());
    };
    // A merge of two encodings would be unreadable.
    if let (Some(ours), Some(theirs)) = (current.bytes(), proposed.bytes())
        && !ours.is_ascii()
        && !theirs.is_ascii()
        && Encoding::of(ours) != Encoding::of(theirs)
    {
        return Err(conflict());
    }
    let bytes = match merge_sides(base_side, ours, theirs) {
        SideMerge::Taken(Side::Absent) => return Ok(FileState::Absent),
        SideMerge::Taken(Side::Present(bytes)) => bytes.to_vec(),
        SideMerge::Merged(merge) => match merge.clean() {
            Some(bytes) => bytes,
            None => return Err(Problem::Conflicts { conflicts: conflicts(&merge) }),
        },
        SideMerge::Conflict(_) => return Err(conflict()),
    };
    let mode = merge_modes(base.mode(), current.mode(), proposed.mode()).ok_or_else(conflict)?;
    Ok(FileState::file(bytes, mode))
}

fn merge_modes(base: Option<FileMode>, current: Option<FileMode>, proposed: Option<FileMode>) -> Option<FileMode> {
    if current == base || current == proposed {
        proposed
    } else if proposed == base {
        current
    } else {
        None
    }
}
