//! A conversation in a form shared by all dialects.

use crate::json::Target;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRole {
    System,
    /// The user, or tool results in the user's name.
    User,
    Assistant,
    Tool,
    /// An author that the API does not know.
    Other,
}

/// The kind of a message item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Text or media for the model.
    Content,
    /// Content without text or parts.
    Empty,
    Call {
        id: String,
        /// Arguments given as a string that must be JSON.
        arguments: Option<Target>,
    },
    Result {
        /// Id of the call.
        id: String,
    },
    /// Signed or encrypted content. A change of preceding content may invalidate it.
    Sealed,
}

/// An item of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageItem {
    /// Message that contains it.
    pub message: Target,
    pub target: Target,
    pub role: MessageRole,
    pub kind: ItemKind,
}
