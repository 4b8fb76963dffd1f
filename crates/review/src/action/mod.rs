//! Previews of what is not a change to files by itself: commands, calls of tools, delegations.
//!
//! All of it is recognised by names and shapes. It puts something before a person's eyes and never decides: that nothing
//! was recognised proves nothing.

mod command;
mod delegation;
mod dry_run;
mod guess;
mod named;
mod places;
mod tool;

pub use command::{CommandPreview, ShownCommand, Syntax};
pub use delegation::DelegationPreview;
pub use dry_run::{DryRun, DryRunEnd, DryRunOutput};
pub use guess::GuessedFrom;
pub use guess::Touch;
pub use tool::{ShownArgument, ToolPreview, ToolProblem};
