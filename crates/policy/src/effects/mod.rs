//! Effects of commands, as far as the programs' names and words tell.
//!
//! Effects put something before a person's eyes and are judged as the reads and writes that they are. That nothing was
//! recognised proves nothing.

pub(crate) mod arguments;
pub(crate) mod directory;
mod effect;
mod git;
mod judge;

pub use effect::{Effect, Place};
pub use git::subcommand as git_subcommand;
pub use judge::effects;
