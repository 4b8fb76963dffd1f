//! Edits: each of one leaf, or of what is there at all; all in one history.

use serde::Serialize;
use thiserror::Error;

use crate::json::{Change, NoSuchPath, ParseError};
use crate::section::SectionId;

/// What an edit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum EditTargetKind {
    /// A field of a message, such as its name.
    MessageField,
    /// The text of a part of a message.
    ContentText,
    /// What a tool is called with.
    ToolArguments,
    /// A setting of the request.
    RequestOption,
    /// The description of a tool.
    ToolSchema,
    /// A section that was taken out.
    Deletion,
    /// A section that was put back.
    Restoration,
    /// A section that was moved.
    Order,
    /// Sections that are kept at the top for the person.
    Pins,
    /// A message that was added.
    Addition,
    /// A long text of which the middle was left out.
    Shrinking,
    /// Everything, as it came.
    Reset,
    /// The whole request, where nothing in it is understood.
    Raw,
    /// Several things at once, from elsewhere.
    Patch,
}

/// An edit's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditId {
    /// The request.
    pub request: String,
    /// Which edit of the request; each has a higher number than those before it.
    pub version: u64,
}

/// One edit, with what it takes to take it back.
#[derive(Clone, Debug, PartialEq)]
pub struct EditOp {
    /// Its name.
    pub id: EditId,
    /// What it is about.
    pub target_kind: EditTargetKind,
    /// Where that was when it was edited.
    pub target_path: String,
    pub(crate) steps: Vec<Step>,
}

/// One thing that an edit does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// To the body.
    Body(Change),
    /// To what is kept at the top.
    Pins { old: Vec<SectionId>, new: Vec<SectionId> },
    /// To a body that is not understood.
    Raw { old: Option<std::sync::Arc<[u8]>>, new: Option<std::sync::Arc<[u8]>> },
}

impl EditOp {
    /// The same edit the other way round: what was old is new.
    #[must_use]
    pub fn inverted(&self) -> Self {
        let steps = self.steps.iter().rev().map(|step| match step.clone() {
            Step::Body(change) => Step::Body(change.inverted()),
            Step::Pins { old, new } => Step::Pins { old: new, new: old },
            Step::Raw { old, new } => Step::Raw { old: new, new: old },
        });
        Self { steps: steps.collect(), ..self.clone() }
    }
}

/// The edits of a request, and those that were taken back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EditHistory {
    /// What can be taken back, the last one last.
    pub undo: Vec<EditOp>,
    /// What can be made again, the next one last.
    pub redo: Vec<EditOp>,
}

/// Why an edit is refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// Nothing is there.
    #[error(transparent)]
    NoSuchPath(#[from] NoSuchPath),
    /// No section has this name.
    #[error("there is no section `{0}`")]
    NoSuchSection(String),
    /// It cannot be edited.
    #[error("`{path}` cannot be edited: {why}")]
    Fixed {
        /// Where.
        path: String,
        /// Why.
        why: &'static str,
    },
    /// It cannot be taken out.
    #[error("`{path}` cannot be deleted")]
    NotDeletable {
        /// Where.
        path: String,
    },
    /// It was taken out already, or is not.
    #[error("`{path}` is {state} already")]
    Already {
        /// Where.
        path: String,
        /// What it is.
        state: &'static str,
    },
    /// What it would be is no JSON.
    #[error("`{value}` is no JSON value for `{path}`: {error}")]
    NotJson {
        /// Where.
        path: String,
        /// What was given.
        value: String,
        /// What is wrong with it.
        error: ParseError,
    },
    /// What it would be is of another kind than what is there.
    #[error("`{path}` is {kind}, and `{value}` is none")]
    OtherKind {
        /// Where.
        path: String,
        /// What is there.
        kind: &'static str,
        /// What was given.
        value: String,
    },
    /// Several values are there.
    #[error("`{path}` holds several values")]
    NotALeaf {
        /// Where.
        path: String,
    },
    /// It has no long text.
    #[error("`{path}` is no tool result that could be shrunk")]
    NotShrinkable {
        /// Where.
        path: String,
    },
    /// The request is not understood.
    #[error("this request is not understood, so that it can be edited as a whole only")]
    NotUnderstood,
    /// A patch that does not fit.
    #[error("the patch does not fit at operation {operation}: {why}")]
    Patch {
        /// Which operation, from 0.
        operation: usize,
        /// Why.
        why: String,
    },
}

impl EditError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoSuchPath(error) => error.hint(),
            Self::OtherKind { .. } => "where another kind of value is meant, say so: `PATH:=JSON`",
            Self::NoSuchSection(_) => "list the sections to see their names",
            Self::Fixed { .. } => "append a message instead, or edit another section",
            Self::NotJson { .. } => "give a number, true, false, null, or a text in quotes",
            Self::NotALeaf { .. } => "name one of the values in it, or give all of it as JSON",
            Self::NotUnderstood => "edit it as a whole, or cancel it",
            Self::NotShrinkable { .. } => "name the section of a tool's result",
            Self::NotDeletable { .. } | Self::Already { .. } | Self::Patch { .. } => return None,
        })
    }
}
