//! The engine of one workspace: intents in, previews and outcomes out, everything recorded.
//!
//! It brings together what the pure flow of `review`, the only writer `workspace` and the `journal` do, in the one order that
//! keeps what was promised: a change is recorded before its verdict counts, a plan is recorded before it reaches the tree, and a start
//! after a crash settles what was interrupted before anything else happens.
//!
//! Everything is synchronous and nothing is asked of the clock, the environment or a person: time is passed in, and a verdict
//! arrives as a value. An engine holds the journal's lock, so there is one at a time for a workspace; whoever waits for a person
//! lets go of it first, see [`Engine::propose`] and [`Engine::decide`].

mod action;
mod announce;
mod call;
mod capture;
mod check;
mod engine;
mod error;
mod feed;
mod from_now_on;
mod history;
mod lately;
mod later;
mod live;
mod mend;
mod named;
mod observe;
mod outside;
mod peer;
mod proposed;
mod record;
mod request;
mod rope;
mod rules;
mod serve;
mod session;
mod snapshot;
mod submit;
mod undo;
mod upkeep;
mod waiting;

pub use action::{Finished, Rehearsal, Report};
pub use announce::{Announce, Announced, Announcement, Silence};
pub use call::{CallBasis, CallOrder, RuleSet};
pub use capture::{Capture, Kept, ToolCall};
pub use check::{CheckLimits, check_syntax, run_dry};
pub use engine::{Engine, RecoveredChange, preview};
pub use error::GateError;
pub use feed::{Behind, Next, Older, Subscription};
pub use history::{History, Status};
pub use live::{Attached, Client, Gate, Reply};
pub use observe::SnapshotLimits;
pub use peer::{Agents, Process, parent_of};
pub use proposed::{Decided, Proposed};
pub use request::{CutBody, Piece, RequestEntry, Stored};
pub use rope::Rope;
pub use rules::Rules;
pub use sayso_review::{ChangeRecord, ChangeStatus, DryRunEnd, DryRunOutput, Extent, SnapshotRecord};
pub use serve::{Reversal, Upkeep};
pub use session::{NewSession, SessionRecord, SessionStatus, Unread};
pub use submit::{Asking, Judged, Submission, Submitted};
pub use undo::UndoPlan;
pub use waiting::{DEADLINE, Ticked};

use sayso_workspace::ReadLimit;

/// Larger files are neither compared nor changed.
pub const FILE_LIMIT: ReadLimit = ReadLimit(sayso_review::MOST_BYTES);
