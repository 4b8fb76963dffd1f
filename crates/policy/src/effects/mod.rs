//! Effects of commands, as far as the programs' names and words tell.
//!
//! A preview shows the effects to a person, and policy decides them as reads and writes. The absence of a known effect does
//! not prove that a command is harmless.

mod analyze;
pub(crate) mod arguments;
pub(crate) mod directory;
mod effect;
mod git;

pub use analyze::analyze_effects;
pub use effect::{Effect, PathTarget};
pub use git::subcommand as git_subcommand;
