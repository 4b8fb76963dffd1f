//! A conversation in a form that all dialects share.

use crate::json::Target;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions.
    System,
    /// The user, or what tools answered on their behalf.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// Somebody else.
    Other,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saying {
    /// Something that a model reads.
    Content,
    /// Nothing: an empty text, or no parts.
    Nothing,
    /// A call of a tool.
    Call {
        /// Its name.
        id: String,
        /// What the tool is called with, if that is a text that has to be JSON.
        arguments: Option<Target>,
    },
    /// What a tool answered.
    Result {
        /// The call's name.
        id: String,
    },
    /// What is signed or encrypted: only the model's maker can read it, and changing what comes before it may make it invalid.
    Sealed,
}

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The message that it is in.
    pub message: Target,
    /// Itself.
    pub target: Target,
    /// Who says it.
    pub role: Role,
    /// What.
    pub saying: Saying,
}
