//! What was approved, brought onto files that changed meanwhile.

use std::collections::BTreeMap;

use sayso_diff::{Side, SideMerge, merge_sides};

use super::edit::clashes;
use super::problem::{Clash, Problem};
use super::{FilePreview, Operation, Preview};
use crate::file_state::{FileMode, FileState};
use crate::note::Note;
use crate::plan::Plan;
use crate::seen::{Obstacle, Seen};
use crate::ws_path::WsPath;

/// What an approved plan would be now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebased {
    /// Both changes together; only the files that changed meanwhile are asked about again.
    pub preview: Preview,
}

impl Plan {
    /// Merges what was approved with what is in the workspace now. `seen` is by location.
    pub fn rebase(&self, seen: &BTreeMap<WsPath, Seen>) -> Rebased {
        let mut files = Vec::new();
        let mut settled = Vec::new();
        for step in self.steps() {
            let path = step.path.clone();
            let found = match seen.get(&path) {
                // The plan is about the link itself where it says so.
                Some(Seen { link: Some(target), .. }) if matches!(step.before, FileState::Link { .. }) => {
                    Ok(FileState::Link { target: target.clone() })
                }
                Some(seen) => seen.found.clone(),
                None => Err(Obstacle::Unreadable { reason: "it was not looked at".to_owned() }),
            };
            let (before, merged) = match found {
                Ok(current) if current == step.before => {
                    settled.push(path.clone());
                    (current, Ok(step.after.clone()))
                }
                Ok(current) => {
                    let merged = merge_states(&step.before, &current, &step.after);
                    (current, merged)
                }
                Err(obstacle) => (FileState::Absent, Err(Problem::Blocked(obstacle))),
            };
            let (after, problem) = match merged {
                Ok(after) => (after, None),
                Err(problem) => (before.clone(), Some(problem)),
            };
            let mut file = FilePreview {
                location: path.clone(),
                operation: Operation::between(&before, &after),
                path,
                before,
                after,
                notes: vec![Note::Merged],
                problem,
            };
            if settled.last() == Some(&file.path) {
                file.notes.clear();
            }
            file.find_notes(Vec::new());
            files.push(file);
        }
        let mut preview = Preview::new(files);
        preview.settled = settled.into_iter().collect();
        Rebased { preview }
    }
}

/// Brings two changes of one state together.
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
        clashes: vec![Clash { line: 0, base: whole(base), current: whole(current), proposed: whole(proposed) }],
    };
    let side = |state| match state {
        &FileState::Absent => Some(Side::Absent),
        FileState::File { content, .. } => Some(Side::Present(content.bytes())),
        FileState::Link { .. } => None,
    };
    let (Some(base_side), Some(ours), Some(theirs)) = (side(base), side(current), side(proposed)) else {
        return Err(conflict());
    };
    let bytes = match merge_sides(base_side, ours, theirs) {
        SideMerge::Taken(Side::Absent) => return Ok(FileState::Absent),
        SideMerge::Taken(Side::Present(bytes)) => bytes.to_vec(),
        SideMerge::Merged(merge) => match merge.clean() {
            Some(bytes) => bytes,
            None => return Err(Problem::Conflicts { clashes: clashes(&merge) }),
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
