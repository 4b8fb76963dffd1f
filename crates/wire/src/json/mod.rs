//! Lossless JSON: a text with an index of where everything is, and edits laid over it.

mod document;
mod edit;
mod path;
mod render;
mod tape;
pub mod text;

pub use document::{Child, Children, Document, NoSuchTarget, Presence, Target};
pub use edit::Change;
pub use path::{NoSuchPath, Step};
pub use tape::{Kind, ParseError};
