//! The engine of one workspace: it previews and decides intents, carries out the results and records everything.
//!
//! It combines the pure core of `review`, the only writer `workspace` and the `journal` in the one safe order. A change
//! is recorded before its verdict counts. A plan is recorded before it reaches the tree. After a crash, a start settles
//! the interrupted change first.
//!
//! All operations are synchronous. Time is a parameter, and verdicts are values; the engine never asks the clock or a
//! person. An engine holds the journal's lock, so a workspace has one at a time. A client that waits for a person does
//! not hold it: see [`Gate::submit`] and [`Gate::decide`].

mod action;
mod agent_log;
mod call;
mod capture;
mod check;
mod command_scan;
mod editor;
mod engine;
mod error;
mod feed;
mod gate;
mod history;
mod maintenance;
mod named_paths;
mod notify;
mod outside;
mod pending_change;
mod pending_index;
mod process_tree;
mod recent_cache;
mod record;
mod remember_rule;
mod repair_counters;
mod request;
mod rope;
mod rules;
mod seen;
mod session;
mod snapshot;
mod submit;
mod suggest;
mod turn_review;
mod undo;

pub use action::{Completion, DryRunJob, ToolReport};
pub use agent_log::{NewAgentEntry, StoredAgentEntry};
pub use call::{CallBasis, CallOrder, RuleSet};
pub use capture::{Capture, CaptureTiming, ToolCall};
pub use check::{CheckLimits, check_syntax, run_dry};
pub use command_scan::SnapshotLimits;
pub use editor::{
    Buffer, BufferLineBreak, BufferRead, EditorId, EditorName, EditorOrder, EditorReport, Editors, LineReplacement,
    NoEditors, OrderedFile, OrderedOperation,
};
pub use engine::{Engine, RecoveredChange, preview};
pub use error::GateError;
pub use feed::{Backlog, BacklogPage, NextEvent, Subscription};
pub use gate::{Gate, MaintenanceReport, Reversal, SurfaceGuard, VerdictResult};
pub use history::{History, WorkspaceStatus};
pub use notify::{NoNotify, Notification, NotificationSubject, Notify};
pub use pending_change::{DecisionResult, PendingChange};
pub use pending_index::{DEADLINE_RULE, TickReport};
pub use process_tree::{AgentProcesses, Process, parent_of};
pub use request::{Chunk, ChunkPresence, ChunkedBody, RequestEntry};
pub use rope::Rope;
pub use rules::Rules;
pub use sayso_review::{AppliedPart, ChangeRecord, ChangeStatus, DryRunEnd, DryRunOutput, SnapshotRecord};
pub use session::{NewSession, SessionRecord, SessionStatus, UnreadMessage};
pub use submit::{AskMode, Assessment, Submission, SubmitResult};
pub use suggest::{CoveredDecision, RuleSuggestion};
pub use turn_review::needs_turn_review;
pub use undo::UndoPlan;

use sayso_workspace::ReadLimit;

/// Files above this size are neither compared nor changed.
pub const FILE_LIMIT: ReadLimit = ReadLimit(sayso_review::MAX_FILE_BYTES);
