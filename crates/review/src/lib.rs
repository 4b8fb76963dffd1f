//! Intents, previews, verdicts and plans: the review of an agent's actions as pure data and functions.
//!
//! This crate accesses no file, clock or network, so a preview or a decision is the same on every machine.
//!
//! Each stage is a type that only the previous stage can produce. A [`Proposal`] is the agent's request. A [`Draft`] is
//! a proposal with resolved paths. Together with an [`Observation`] of these paths it becomes a [`Preview`], and a
//! [`Verdict`] on the preview produces a [`Plan`]. There is no other way to a plan. Undo ([`reverse`]) and rebase
//! ([`Plan::rebase`]) produce previews too, which are shown and decided in the same way.
//!
//! # Limits
//!
//! - Whole contents are held in memory; the workspace refuses to read very large files.
//! - Hunks are numbered with three lines of context, whatever context a surface displays.

mod action;
mod agent_message;
mod change;
mod decide;
mod draft;
mod event;
mod intent;
mod note;
mod observed;
mod plan;
mod preview;
pub mod redact;
mod request;
mod seen;
mod surface;
mod target;
mod verdict;

pub use action::{
    CommandPreview, DelegationPreview, DryRun, DryRunEnd, DryRunOutput, FileAccess, GuessedFrom, ShownArgument,
    ShownCommand, Syntax, ToolPreview, ToolProblem,
};
pub use agent_message::{DENIED, action_message, dependency_denied, failure_message, unperformed_message};
pub use change::{AppliedPart, ChangeRecord, ChangeStatus, Delivery};
pub use decide::{Acceptance, Decision, FileDecision, VerdictError};
pub use draft::Draft;
pub use event::{
    AgentEntry, AgentEntryKind, BUILT_IN_AGENT, CardLine, CardLineKind, Cause, ChangeId, EVENT_VERSION, Event,
    EventBody, FileRecord, FreeReason, InlineCard, Origin, Outcome, OutsideFile, Performer, Recorded, RefreshReason,
    RulingRecord, Snapshot, SnapshotId, SnapshotRecord, Subject, Tier, Uncaptured,
};
pub use intent::{Bytes, FileIntent, Intent, NewContent, Proposal, ProposalError};
pub use note::{Note, Rights, SecretKind, notes};
pub use observed::{MAX_FILE_BYTES, Observation, ObservedFile, Obstacle};
pub use plan::{ApplyRecord, Plan, PlanStep, RecordedStep};
pub use preview::{
    AppliedChange, CONTEXT, Conflict, FilePreview, IfChanged, Operation, Placement, Preview, Problem, ProposedChange,
    ProposedChanges, ProposedHunk, ProposedNote, Rebased, ReviewState, Transition, net_change, reverse,
};
pub use request::{
    BodyRecord, CHUNK_SIZE, EditKind, Handover, MAX_REDACTIONS, ModeSet, OverrideReport, OverridesSet, PauseReason,
    RequestAnswer, RequestEnd, RequestEvent, RequestId, RequestMode, RequestReceived, RequestRecord, RequestStatus,
    RequestStep, Resumer, SkippedEdit, SubagentMark, TokenUsage, TurnEditReport, UpstreamRetry, ViewEvent,
};
pub use seen::SeenMarks;
pub use surface::{Surface, SurfaceKind};
pub use target::Target;
pub use verdict::{Answer, Comment, CommentSide, Decider, FileAnswer, HunkId, NotAHunk, Verdict};

// Re-exports of the pure crates below, so that dependents import one crate.
pub use sayso_base::{
    BadGlob, Content, ContentHash, ErrorKind, FileMode, FileState, Fingerprint, Grants, NotAHash, OutsidePath,
    OutsidePathError, PathGlobs, Severity, WsPath, WsPathError,
};
pub use sayso_policy::{
    Access, Defaults, Effect, IgnoredRule, Layer, LayerTrust, OverriddenRule, OverrideReason, PartDecision, PathTarget,
    Policy, PolicyDecision, PolicyError, PolicyQuery, Principal, RememberAs, RememberError, Rule, RuleId, RuleOptions,
    RuleScope, Ruling, STARTER_RULES,
};
pub use sayso_shell::{
    Certainty, Flow, Redirect, RedirectAccess, Script, SimpleCommand, UncertainSpan, Uncertainty, Word,
};
