//! Cost of requests, and explanations of cache misses.

use sayso_review::RequestId;
use sayso_wire::CacheMissCause;
use sayso_wire::price::{BilledTokens, NanoDollars};
use sayso_wire::tokens::Tokens;

/// Tokens and price of one or more requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestCost {
    pub tokens: BilledTokens,
    /// `None` if the price of a model is unknown.
    pub price: Option<NanoDollars>,
    /// Fraction of the context window that the input fills. `None` if the window is unknown, and for sums.
    pub context_share: Option<f64>,
}

/// Sums of the cost of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestCosts {
    /// In the order of their first request.
    pub turns: Vec<TurnCost>,
    /// In the order of their first request.
    pub sessions: Vec<SessionCost>,
    pub total: RequestCost,
    /// Date of the built-in prices, such as `2025-11-24`.
    pub prices_date: String,
}

/// Cost of the requests of one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnCost {
    pub session: String,
    /// `None` for requests outside a turn.
    pub turn: Option<String>,
    /// Number of requests with reported usage.
    pub requests: u64,
    pub cost: RequestCost,
}

/// Cost of the requests of one session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionCost {
    /// `None` for requests without a session.
    pub session: Option<String>,
    pub agent: Option<String>,
    /// Number of requests with reported usage.
    pub requests: u64,
    pub cost: RequestCost,
    /// Names of the models without a price, sorted.
    pub unknown_models: Vec<String>,
}

/// Explanation of a prompt-cache miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMissReport {
    pub cause: CacheMissCause,
    /// `true` for a cause that is part of an agent's normal work.
    pub expected: bool,
    /// The cause as a sentence.
    pub text: String,
    /// The request that this one was compared with.
    pub previous_request: RequestId,
    /// The first difference. `None` if the prefix is the same.
    pub difference: Option<PromptDifference>,
}

/// The first part of a prompt that differs from the previous request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptDifference {
    pub path: String,
    /// Display name of the section at `path`.
    pub label: String,
    /// Previous content around the difference.
    pub old: String,
    /// New content around the difference.
    pub new: String,
    /// Tokens of the previous request behind the difference.
    pub tokens_lost: Tokens,
}
