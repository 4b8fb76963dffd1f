//! The built-in tools.
//!
//! A [`Tool`] has a name, a JSON schema, required grants, and a function over a [`Context`]. The context is the tool's only access
//! to files. The [`Registry`] checks the grant for the tool before the call, and the context checks the grant for each file when
//! it opens the file, so a tool cannot omit a check.
//!
//! The schema that a model sees is derived from the type that parses the arguments, so the two always agree.

mod apply_patch;
mod arguments;
mod ask;
mod context;
mod delegate;
mod diff;
mod echo;
mod edit;
mod error;
mod exec;
mod external;
mod fetch;
mod glob;
mod grep;
mod list;
mod output;
mod proposal_check;
mod propose;
mod read;
mod read_log;
mod registry;
mod step;
mod todo;
mod write;

pub use context::{Context, FILE_LIMIT, ReadFilter, UnsavedBuffers};
pub use diff::{BinaryContent, MAX_CONTEXT_LINES, MAX_DIFF_BYTES, diff_object};
pub use error::ToolError;
pub use exec::terminal_reason;
pub use external::{EXTERNAL_PREFIX, ExternalTool};
pub use fetch::FetchResponse;
pub use output::{ToolImage, ToolOutput};
pub use read_log::{ReadLog, ReadLogEntries, ReadState};
pub use registry::{Capability, Definition, Description, FileAccess, Needs, Registry, Tool};
pub use step::{
    CommandMode, CommandStep, Delegation, FetchStep, FileStep, Question, SessionAction, SessionStep, Step, StepNote,
    TerminalReason, TodoState, TodoWrite,
};
