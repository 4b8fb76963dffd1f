//! Results of edits, and the section or repair that a person means.

use sayso_api::request::{EditEffects, RequestDetails, RequestSection, SwitchedMode};
use sayso_wire::{Edit, EditTarget, Repair, Scope};

use super::assignment::edit_target;
use super::impact::{impact_text, problems_text, token_difference};
use crate::error::InputError;
use crate::escape::escape_unprintable;

/// The class of an edit in its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditKindText {
    Edited,
    Deleted,
    Restored,
    Added,
    Shrunk,
    Repaired,
    Pinned,
    Unpinned,
    Undone,
    Redone,
    Reset,
}

impl From<&Edit> for EditKindText {
    fn from(edit: &Edit) -> Self {
        match edit {
            Edit::Set { .. } | Edit::SetJson { .. } | Edit::Patch(..) => Self::Edited,
            Edit::Delete { .. } => Self::Deleted,
            Edit::Restore { .. } => Self::Restored,
            Edit::Append { .. } => Self::Added,
            Edit::Shrink { .. } => Self::Shrunk,
            Edit::Repair(..) => Self::Repaired,
            Edit::Pin { .. } => Self::Pinned,
            Edit::Unpin { .. } => Self::Unpinned,
            Edit::Undo => Self::Undone,
            Edit::Redo => Self::Redone,
            Edit::Reset => Self::Reset,
        }
    }
}

impl EditKindText {
    fn verb(self) -> &'static str {
        match self {
            Self::Edited => "Edited",
            Self::Deleted => "Left out",
            Self::Restored => "Put back",
            Self::Added => "Added",
            Self::Shrunk => "Shrank",
            Self::Repaired => "Repaired",
            Self::Pinned => "Pinned",
            Self::Unpinned => "Unpinned",
            Self::Undone => "Took back the edit of",
            Self::Redone => "Made again the edit of",
            Self::Reset => "Took back all edits",
        }
    }
}

/// An edit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeEdit {
    pub kind: EditKindText,
    /// Empty if the edit is of several values.
    pub path: String,
    /// Negative if the edit adds tokens.
    pub tokens_saved: i64,
}

impl MadeEdit {
    /// Combines the class of an edit with its result.
    pub fn new(kind: EditKindText, result: &EditEffects) -> Self {
        let kind = if result.added { EditKindText::Added } else { kind };
        Self { kind, path: result.path.clone(), tokens_saved: result.tokens_saved_here }
    }

    fn line(&self, request: u64) -> String {
        let path = match (self.kind, self.path.as_str()) {
            (EditKindText::Reset, _) => String::new(),
            (EditKindText::Undone | EditKindText::Redone, "") => " all".to_owned(),
            (_, path) => format!(" {}", escape_unprintable(path)),
        };
        let saved = match self.tokens_saved {
            0 => String::new(),
            saved => format!("; {}", token_difference(saved)),
        };
        format!("{}{path} in request {request}{saved}.\n", self.kind.verb())
    }
}

/// Renders the result of edits. `last` combines the results; `is_saving` if they were to be saved for new requests.
pub fn render_edits(request: u64, made: &[MadeEdit], last: &EditEffects, is_saving: bool) -> String {
    let mut text: String = made.iter().map(|edit| edit.line(request)).collect();
    text.push_str(&format!("revision: {}\n", last.revision));
    text.push_str(&impact_text(last.impact.as_ref()));
    if last.saved == 0 && last.removed == 0 && is_saving {
        text.push_str("saved: nothing, as no edit is left that could be\n");
    }
    text.push_str(&saved_edits_text(last.saved, last.removed));
    text.push_str(&new_mode_text(last.switched));
    text.push_str(&problems_text(request, &last.problems));
    text
}

/// Describes edits that were saved for new requests, or removed from the saved edits.
pub fn saved_edits_text(saved: u64, removed: u64) -> String {
    let mut text = match saved {
        0 => String::new(),
        1 => "saved: 1 edit, applied to every turn from now on that is not sent normally\n".to_owned(),
        saved => format!("saved: {saved} edits, applied to every turn from now on that is not sent normally\n"),
    };
    text.push_str(&match removed {
        0 => String::new(),
        1 => "removed: 1 saved edit, which was taken back here\n".to_owned(),
        removed => format!("removed: {removed} saved edits, which were taken back here\n"),
    });
    text
}

/// Describes the mode that the engine switched to so that saved edits apply. Empty if it did not.
pub fn new_mode_text(switched: Option<SwitchedMode>) -> String {
    let Some(SwitchedMode { mode, scope }) = switched else { return String::new() };
    let label = mode.label();
    match scope {
        Scope::Workspace => format!("mode: {label} in all sessions of this workspace from now on\n"),
        Scope::Global => format!(
            "mode: {label} in all sessions of this workspace from now on; other workspaces follow when their engine starts next\n"
        ),
        Scope::Session => format!("mode: {label} in this session from now on\n"),
    }
}

/// Describes edits that last for the rest of the turn.
pub fn turn_edits_text(edits: u64) -> String {
    let (edits, they_are) = match edits {
        0 => return String::new(),
        1 => ("1 edit stays".to_owned(), "it is"),
        edits => (format!("{edits} edits stay"), "they are"),
    };
    format!(
        "{edits} for the rest of this turn: {they_are} made again in each following request.\n\
         To keep an edit for good, make it with `sayso request edit … --from-now-on`.\n"
    )
}

/// Finds the deleted section that a path or id means. Its former path may name another section by now.
pub fn deleted_section(shown: &RequestDetails, given: &str) -> Result<EditTarget, InputError> {
    let deleted: Vec<&RequestSection> = shown.sections.iter().filter(|section| section.deleted).collect();
    let list = |sections: &[&RequestSection]| {
        let name = |section: &&RequestSection| format!("`{}` ({})", escape_unprintable(&section.raw_path), section.id);
        sections.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let is_given = |section: &&&RequestSection| section.raw_path == given || section.id.to_string() == given;
    let found: Vec<&RequestSection> = deleted.iter().filter(is_given).copied().collect();
    match found.as_slice() {
        [section] => Ok(EditTarget::Section(section.id)),
        [_, _, ..] => Err(InputError::new(
            format!("several sections were left out at `{}`", escape_unprintable(given)),
            format!("give the id of the section: {}", list(&found)),
        )),
        // The engine explains why it cannot restore this.
        [] if deleted.is_empty() || !shown.summary.held => Ok(edit_target(given)),
        [] => Err(InputError::new(
            format!("nothing was left out at `{}`", escape_unprintable(given)),
            format!("left out are: {}", list(&deleted)),
        )),
    }
}

/// Returns a repair by its number, as [`problems_text`] counts them.
pub fn nth_repair(shown: &RequestDetails, number: usize) -> Result<Repair, InputError> {
    let request = shown.summary.record.request;
    let mut repairs = shown.problems.iter().flat_map(|problem| &problem.repairs);
    let found = number.checked_sub(1).and_then(|place| repairs.nth(place)).map(|found| found.repair);
    found.ok_or_else(|| {
        InputError::new(
            format!("request {request} has no repair {number}"),
            format!("run `sayso request show {request}` for the list of problems and repairs"),
        )
    })
}
