//! Model APIs as data.
//!
//! A request to a model is kept as the bytes that the agent sent, with an index of where everything is. What a person sees is a
//! projection into sections; what they edit is one leaf; what is sent is the same bytes but for those of that leaf.
//!
//! A stream from a model is decoded as it comes, at any boundary, without keeping what was passed on.

mod apply;
mod compare;
mod consequence;
mod conversation;
pub mod dialect;
mod edit;
pub mod json;
mod overrides;
mod patch;
mod request;
mod section;
pub mod stream;
pub mod tags;
pub mod tokens;
mod turn_edits;
mod validate;

pub use apply::Keep;
pub use compare::{Became, SectionDiff};
pub use consequence::Consequences;
pub use conversation::Glance;
pub use dialect::{Head, Marks, Purpose, Subagent};
pub use edit::{EditError, EditHistory, EditId, EditOp, EditTargetKind};
pub use overrides::{Anchor, AnchorPart, Applied, Captured, Drift, Form, Override, Overrides, Scope};
pub use request::{Folded, ModelRequest};
pub use section::{ContentKind, Editable, Invocation, NodeType, Section, SectionId, SectionKind};
pub use turn_edits::{TurnEdits, TurnOutcome};
pub use validate::{Problem, ProblemKind, Repair, validate};
