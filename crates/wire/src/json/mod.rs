//! Lossless JSON: a text with an index of its values, and edits as overlays.

mod document;
mod edit;
mod path;
mod render;
mod tape;
pub mod text;

pub use document::{Child, Children, Document, NoSuchTarget, Presence, Target};
pub use edit::DocumentChange;
pub use path::{PathError, PathStep};
pub use tape::{JsonKind, ParseError};
