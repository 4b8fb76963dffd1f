//! Edits of a request as data.

use crate::request_edit::ShrinkLimits;
use crate::section::SectionId;
use crate::validate::Repair;

/// Target of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditTarget {
    /// A path, such as `messages[3].content[1].text`.
    Path(String),
    Section(SectionId),
}

/// An edit of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Replaces a value: a text by text, any other value by JSON.
    Set {
        at: EditTarget,
        value: String,
    },
    /// Replaces a value by JSON, or adds a missing setting.
    SetJson {
        at: EditTarget,
        /// JSON.
        value: String,
    },
    /// Deletes a section.
    Delete {
        at: EditTarget,
    },
    /// Restores a deleted section.
    Restore {
        at: EditTarget,
    },
    /// Appends a user message.
    Append {
        text: String,
    },
    /// Truncates a tool result, except its first and last lines.
    Shrink {
        at: EditTarget,
        keep: ShrinkLimits,
    },
    /// Repairs a problem for which the upstream would reject the request.
    Repair(Repair),
    /// Applies a JSON Patch.
    Patch(Vec<u8>),
    /// Displays a section first. The request is not changed.
    Pin {
        at: EditTarget,
        /// The pinned section after it; `None` puts it last.
        before: Option<SectionId>,
    },
    Unpin {
        at: EditTarget,
    },
    Undo,
    Redo,
    /// Undoes all edits.
    Reset,
}
