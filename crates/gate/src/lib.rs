//! The engine of one workspace: intents in, previews and outcomes out, everything recorded.
//!
//! It brings together what the pure flow of `review`, the only writer `workspace` and the `journal` do, in the one order that
//! keeps what was promised: a change is recorded before its verdict counts, a plan is recorded before it reaches the tree, and a start
//! after a crash settles what was interrupted before anything else happens.
//!
//! Everything is synchronous and nothing is asked of the clock, the environment or a person: time is passed in, and a verdict
//! arrives as a value. An engine holds the journal's lock, so there is one at a time for a workspace; whoever waits for a person
//! lets go of it first, see [`Engine::propose`] and [`Engine::decide`].

mod change;
mod check;
mod engine;
mod error;
mod history;
mod mend;
mod undo;
mod upkeep;

pub use change::{ChangeRecord, ChangeStatus, Extent};
pub use check::{CheckLimits, DryRunEnd, DryRunOutput, check_syntax, run_dry};
pub use engine::{Decided, Engine, Proposed, RecoveredChange, preview};
pub use error::GateError;
pub use history::{History, Status};
pub use undo::UndoPlan;

use sayso_workspace::ReadLimit;

/// Larger files are neither compared nor changed.
pub const FILE_LIMIT: ReadLimit = ReadLimit(sayso_review::MOST_BYTES);
