//! Model APIs as data.
//!
//! A request is stored as the bytes that the agent sent, with an index of all values. It is displayed as a list of
//! sections. An edit replaces one value and leaves all other bytes unchanged.
//!
//! A streamed response is decoded incrementally, at any chunk boundary, without keeping forwarded content.

mod conversation;
pub mod dialect;
mod edit;
mod edit_impact;
pub mod json;
mod overrides;
mod patch;
pub mod price;
mod prompt_cache;
mod request;
mod request_diff;
mod request_edit;
mod requested_edit;
mod section;
pub mod stream;
pub mod tags;
pub mod tokens;
mod transcript;
mod turn_edits;
mod validate;

pub use conversation::PrefixScan;
pub use dialect::{RequestHead, RequestIdentity, RequestPurpose, Subagent};
pub use edit::{EditError, EditHistory, EditId, EditOp, EditTargetKind};
pub use edit_impact::EditImpact;
pub use overrides::{
    Anchor, AnchorPart, CaptureCounts, Drift, Override, OverrideFormat, OverrideOutcome, Overrides, Scope,
};
pub use prompt_cache::{CACHE_TTL_MS, CacheMiss, CacheMissCause, PrefixDifference, PromptVersions, explain_cache_miss};
pub use request::ModelRequest;
pub use request_diff::{SectionChange, SectionDiff};
pub use request_edit::ShrinkLimits;
pub use requested_edit::{Edit, EditTarget};
pub use section::{ContentKind, Editable, Invocation, NodeType, Section, SectionId, SectionKind};
pub use transcript::{ToolReference, Transcript, TranscriptBlock, TranscriptBlockKind};
pub use turn_edits::{TurnEdits, TurnOutcome};
pub use validate::{Repair, RequestProblem, RequestProblemKind, validate};
