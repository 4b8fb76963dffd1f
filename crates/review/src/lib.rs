//! What is asked, and what may be answered.
//!
//! The vocabulary that every other part shares, as data, and the one flow over it, as functions that touch nothing: no file,
//! clock or network, so that a preview, a decision or a path check gives the same answer on any machine.
//!
//! Each stage is a type that only the one before it makes: a [`Proposal`] is what an agent said; a [`Draft`] knows which files
//! that is about; with what was [`Seen`] there it becomes a [`Preview`]; a [`Verdict`] on it makes a [`Plan`], and there is no
//! other way to one. Undo ([`reverse`]) and a change that went stale ([`Plan::rebase`]) come back as previews too, so that
//! they are shown and decided like anything else.
//!
//! # Limits
//!
//! - Whole contents are held in memory; the workspace refuses to read very large files.
//! - Hunks are numbered with three lines of context, whatever a surface shows around them.

mod action;
mod change;
mod command;
mod decide;
mod draft;
mod event;
mod intent;
mod note;
mod plan;
mod preview;
pub mod redact;
mod request;
mod seen;
mod told;
mod verdict;

pub use action::{
    CommandPreview, DelegationPreview, DryRun, DryRunEnd, DryRunOutput, GuessedFrom, ShownArgument, ShownCommand,
    Syntax, ToolPreview, ToolProblem, Touch,
};
pub use change::{ChangeRecord, ChangeStatus, Delivery, Extent};
pub use command::{Command, Target};
pub use decide::{Decision, FileDecision, Taken, VerdictError};
pub use draft::Draft;
pub use event::{
    Cause, ChangeId, EVENT_VERSION, Event, EventBody, FileRecord, Freed, Origin, Outcome, OutsideFile, Performer,
    Recorded, Refresh, RulingRecord, Snapshot, SnapshotId, SnapshotRecord, Subject, Tier, Uncaptured,
};
pub use intent::{Bytes, FileIntent, Intent, NewContent, Proposal, ProposalError};
pub use note::{Note, Rights, SecretKind, notes};
pub use plan::{ApplyRecord, Plan, PlanStep, RecordedStep};
pub use preview::{
    CONTEXT, Clash, FilePreview, Happened, IfChanged, Operation, Placement, Preview, Problem, ProposedChange,
    ProposedChanges, ProposedHunk, ProposedNote, Rebased, Review, Transition, net, reverse,
};
pub use request::{
    BodyRecord, EditKind, Handover, MAX_REDACTIONS, ModeSet, OverridesSet, PIECE, PauseReason, RequestAnswer,
    RequestEnd, RequestEvent, RequestId, RequestLook, RequestMode, RequestRecord, RequestSeen, RequestStatus,
    RequestStep, Resumer, SavedEdits, SubagentMark, TokenUsage, TurnEditsOutcome, TurnedAway,
};
pub use seen::{MOST_BYTES, Obstacle, Seen, Sight};
pub use told::{DENIED, told_action, told_failure, told_unmade, told_without};
pub use verdict::{Answer, Comment, CommentSide, Decider, FileAnswer, HunkId, NotAHunk, Verdict};

// The vocabulary of the crates below, so that those above need one name for all of it.
pub use sayso_base::{
    BadGlob, Content, ContentHash, ErrorKind, FileMode, FileState, Fingerprint, Grants, NotAHash, OutsidePath,
    OutsidePathError, PathGlobs, Severity, WsPath, WsPathError,
};
pub use sayso_policy::{
    Access, Act, Defaults, Effect, FromNowOn, FromNowOnError, Ignored, Layer, Lost, Part, Place, Policy, PolicyError,
    Rule, RuleId, RuleOptions, RuleScope, Ruled, Ruling, STARTER_RULES, Standing, Who, Why,
};
pub use sayso_shell::{Certainty, Course, Doubt, Redirect, RedirectAccess, Script, SimpleCommand, Word};
