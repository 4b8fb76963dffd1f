//! Requests to models as typed values: summaries, sections, edits, modes, saved edits and costs.
//!
//! Values of the wire formats (section kinds, token counts, prices, edits) are types of `wire`. Values of the journal are types of
//! `review`.

mod cost;
mod edit;
mod mode;
mod query;
mod section;

use sayso_review::{RequestId, RequestRecord, RequestStatus, SubagentMark};
use sayso_wire::SectionId;
use sayso_wire::tokens::Tokens;

pub use cost::{CacheMissReport, PromptDifference, RequestCost, RequestCosts, SessionCost, TurnCost};
pub use edit::{
    DefectRepair, EditEffects, EditEntry, EditOptions, ImpactReport, RequestDefect, ResumeResult, SaveResult,
    SwitchedMode,
};
pub use mode::{
    AutoApply, HeldFate, ModeLabel, ModeResult, ModeState, RequestModes, SavedEdit, SessionMode, StillHeld,
};
pub use query::{BodyOf, DetailQuery, ReplayOf, RequestQuery, SubagentQuery};
pub use section::{AppliedOverride, Editability, RequestDiff, RequestSection, SectionDifference, SectionTool};

/// A request to a model, without its content.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSummary {
    pub record: RequestRecord,
    /// `true` while the running engine holds it. A paused request that is not held was orphaned when its engine was killed.
    pub held: bool,
    /// `true` if the forwarded body differs from the received one, or would.
    pub edited: bool,
    /// Display name: agent, model or subagent, and the end of the session id.
    pub conversation: String,
    /// `None` until the response has reported its usage.
    pub cost: Option<RequestCost>,
}

impl RequestSummary {
    /// `true` while sayso retries a request that its upstream rejected.
    pub fn is_retrying(&self) -> bool {
        self.record.upstream_retry.is_some() && self.record.status == RequestStatus::Sent
    }
}

/// A request in sections: with its edits while it is held, afterwards as forwarded.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestDetails {
    pub summary: RequestSummary,
    /// In reading order. A section follows its parent.
    pub sections: Vec<RequestSection>,
    /// Pinned sections in display order.
    pub pinned: Vec<SectionId>,
    pub pinned_tokens: Tokens,
    pub tokens: Tokens,
    /// Size of the model's context window in tokens. `None` if unknown.
    pub context_window: Option<u64>,
    /// Output limit set by the request, in tokens.
    pub max_output_tokens: Option<u64>,
    /// Defects of the body as it would be sent.
    pub problems: Vec<RequestDefect>,
    /// `None` without edits.
    pub impact: Option<ImpactReport>,
    /// Oldest first.
    pub edits: Vec<EditEntry>,
    /// Undone edits. The last one is redone first.
    pub undone: Vec<EditEntry>,
    /// Cause why the body cannot be parsed.
    pub parse_error: Option<String>,
    /// Cause why the request cannot be edited at all.
    pub read_only_reason: Option<String>,
    /// Names and values of the metadata strip.
    pub metadata: Vec<(String, String)>,
    /// Mode of its session.
    pub mode: ModeState,
    /// Cause why no mode pauses the request. `None` for a turn, or if it was paused.
    pub exempt_reason: Option<String>,
    /// Number of leading sections whose edits are saved. `None` if all are, or if its edits are not captured.
    pub captured_sections: Option<usize>,
    /// `true` if the response is a stream, which sayso keeps alive while the request is held.
    pub streaming: bool,
    /// Paths of masked credentials.
    pub redacted: Vec<String>,
    /// `None` if the upstream could use its cache, or if the request is the first of its conversation.
    pub cache_miss: Option<CacheMissReport>,
}

/// The latest runs of subagents.
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentRuns {
    /// Newest first.
    pub runs: Vec<ListedRun>,
    /// Number of runs that the engine keeps.
    pub max_runs: u64,
}

/// A run of a subagent.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedRun {
    /// Its latest request.
    pub request: RequestId,
    /// Display name: agent, subagent and the end of the session id.
    pub conversation: String,
    pub session: String,
    pub agent: Option<String>,
    pub subagent: Option<SubagentMark>,
    pub model: Option<String>,
    /// Time of its first request, in milliseconds since 1970.
    pub started: i64,
    /// Time of its latest request, in milliseconds since 1970.
    pub last: i64,
    /// Number of requests.
    pub requests: u64,
    /// Tokens of its latest request.
    pub tokens: Tokens,
    /// Sections of its latest request.
    pub sections: Vec<RequestSection>,
}

/// The result of sending a recorded request again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayResult {
    /// Number of the new request.
    pub request: RequestId,
    /// HTTP status.
    pub status: u16,
    /// The new response, for display.
    pub answer: String,
    /// The recorded response, for display. `None` if there is none.
    pub earlier_answer: Option<String>,
    /// Unified diff of the two.
    pub diff: String,
}

/// A capability URL through which an agent sends its requests.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointAddress {
    /// Secret part of the URL. Authenticates the agent's requests and grants no other access.
    pub capability: String,
    /// `None` for any agent.
    pub agent: Option<String>,
    /// Name of the run in records.
    pub run: String,
    /// `None` while no HTTP server runs.
    pub url: Option<String>,
}

impl std::fmt::Debug for EndpointAddress {
    /// Leaves out the capability and the URL that contains it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointAddress").field("agent", &self.agent).field("run", &self.run).finish_non_exhaustive()
    }
}
