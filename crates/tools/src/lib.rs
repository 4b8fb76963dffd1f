//! The built-in tools.
//!
//! A [`Tool`] is a name, a JSON schema, what it needs, and a function over a narrow [`Context`]. The context is all a tool can
//! reach: it reads files through grants and by handle, and has no way to the file system beside that. A tool therefore cannot
//! forget a check; the [`Registry`] checks the capability before, the context checks the file at the moment it is opened.
//!
//! Arguments are types: the schema that a model sees is derived from the type that parses them, so the two cannot disagree.

mod arguments;
mod context;
mod diff;
mod echo;
mod error;
mod glob;
mod list;
mod propose;
mod read;
mod registry;
mod write;

pub use context::{Context, FILE_LIMIT};
pub use diff::{BinaryContent, DIFF_LIMIT, MOST_CONTEXT, diff_object};
pub use error::ToolError;
pub use registry::{Capability, Description, FileAccess, Needs, Registry, Tool};
