//! Lossless JSON: a text with an index of where everything is, and edits laid over it.

mod document;
mod path;
mod render;
mod tape;
pub mod text;

pub use document::{Change, Child, Children, Document, NoSuchTarget, Presence, Target};
pub use path::{NoSuchPath, Step};
pub use tape::{Kind, ParseError};
