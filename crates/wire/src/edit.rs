//! Edits of a request and their history.

use serde::Serialize;
use thiserror::Error;

use crate::json::{DocumentChange, ParseError, PathError};
use crate::section::SectionId;

/// The kind of value that an edit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum EditTargetKind {
    /// A field of a message, such as its name.
    MessageField,
    /// The text of a message part.
    ContentText,
    /// The arguments of a tool call.
    ToolArguments,
    RequestOption,
    /// The description of a tool.
    ToolSchema,
    Deletion,
    /// A deleted section that is restored.
    Restoration,
    /// The position of a section.
    Order,
    /// Sections pinned to the top of the display.
    Pins,
    Addition,
    /// A long text truncated in the middle.
    Shrinking,
    /// All edits, which are reverted.
    Reset,
    /// The whole body of an unknown format.
    Raw,
    /// Several values, changed by a JSON Patch.
    Patch,
}

/// The id of an edit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditId {
    pub request: String,
    /// Sequence number of the edit within the request.
    pub version: u64,
}

/// An edit with the data to undo it.
#[derive(Clone, Debug, PartialEq)]
pub struct EditOp {
    pub id: EditId,
    pub target_kind: EditTargetKind,
    /// Path of the value at the time of the edit.
    pub target_path: String,
    pub(crate) steps: Vec<EditStep>,
}

/// A single step of an edit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EditStep {
    /// A change of the document.
    Body(DocumentChange),
    /// A change of the pinned sections.
    Pins { old: Vec<SectionId>, new: Vec<SectionId> },
    /// A change of a body of an unknown format.
    Raw { old: Option<std::sync::Arc<[u8]>>, new: Option<std::sync::Arc<[u8]>> },
}

impl EditOp {
    /// Returns the inverse edit.
    #[must_use]
    pub fn inverted(&self) -> Self {
        let steps = self.steps.iter().rev().map(|step| match step.clone() {
            EditStep::Body(change) => EditStep::Body(change.inverted()),
            EditStep::Pins { old, new } => EditStep::Pins { old: new, new: old },
            EditStep::Raw { old, new } => EditStep::Raw { old: new, new: old },
        });
        Self { steps: steps.collect(), ..self.clone() }
    }
}

/// The undo and redo stacks of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EditHistory {
    /// Edits to undo, most recent last.
    pub undo: Vec<EditOp>,
    /// Edits to redo, next one last.
    pub redo: Vec<EditOp>,
}

/// The reason why an edit was rejected. The request is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    #[error(transparent)]
    NoSuchPath(#[from] PathError),
    /// No section has this id.
    #[error("there is no section `{0}`")]
    NoSuchSection(String),
    /// The value is read-only.
    #[error("`{path}` cannot be edited: {why}")]
    ReadOnly { path: String, why: &'static str },
    /// The section cannot be deleted.
    #[error("`{path}` cannot be deleted")]
    NotDeletable { path: String },
    /// The section already is in the requested state.
    #[error("`{path}` is {state} already")]
    Already { path: String, state: &'static str },
    /// The new value is not valid JSON.
    #[error("`{value}` is not a JSON value for `{path}`: {error}")]
    NotJson { path: String, value: String, error: ParseError },
    /// The new value has another type than the current one.
    #[error("`{path}` is {kind}, but `{value}` is not")]
    WrongType { path: String, kind: &'static str, value: String },
    /// The path leads to a container, not to a single value.
    #[error("`{path}` holds several values")]
    NotALeaf { path: String },
    /// The section has no text long enough to shrink.
    #[error("`{path}` is not a tool result with a long text")]
    NotShrinkable { path: String },
    /// The request format is unknown.
    #[error("the request format is unknown; only the whole body can be edited")]
    UnknownFormat,
    /// A JSON Patch does not apply.
    #[error("cannot apply operation {operation} of the patch: {why}")]
    Patch {
        /// Index of the failed operation.
        operation: usize,
        why: String,
    },
}

impl EditError {
    /// Returns a hint on how to correct the edit.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoSuchPath(error) => error.hint(),
            Self::WrongType { .. } => "where another kind of value is meant, say so: `PATH:=JSON`",
            Self::NoSuchSection(_) => "list the sections to see their names",
            Self::ReadOnly { .. } => "append a message instead, or edit another section",
            Self::NotJson { .. } => "give a number, true, false, null, or a text in quotes",
            Self::NotALeaf { .. } => "name one of the values in it, or give all of it as JSON",
            Self::UnknownFormat => "edit it as a whole, or cancel it",
            Self::NotShrinkable { .. } => "name the section of a tool's result",
            Self::NotDeletable { .. } | Self::Already { .. } | Self::Patch { .. } => return None,
        })
    }
}
