//! Previews of commands, tool calls and delegations.
//!
//! Actions are recognized by names and shapes. A preview informs a person and never decides, because a missing effect
//! proves nothing.

mod argument_paths;
mod command;
mod delegation;
mod dry_run;
mod infer_changes;
mod path_targets;
mod tool;

pub use command::{CommandPreview, ShownCommand, Syntax};
pub use delegation::DelegationPreview;
pub use dry_run::{DryRun, DryRunEnd, DryRunOutput};
pub use infer_changes::FileAccess;
pub use infer_changes::GuessedFrom;
pub use tool::{ShownArgument, ToolPreview, ToolProblem};
