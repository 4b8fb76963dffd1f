//! Totals and limits of an invocation.

use sayso_review::TokenUsage;
use sayso_wire::price::{BilledTokens, NanoDollars, PriceTable};
use sayso_wire::stream::{Api, Usage};

use crate::event::InvocationUsage;
use crate::settings::Limits;

/// Totals of an invocation so far.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    started_ms: i64,
    tokens: TokenUsage,
    cost: NanoDollars,
    has_unknown_price: bool,
    requests: u32,
    /// Tokens in the context after the last answer.
    pub(crate) context_tokens: u64,
    /// Size of the last body in bytes.
    pub(crate) last_body_bytes: u64,
    /// Number of times that the user raised a limit, by limit.
    raised: [u32; 3],
}

/// A limit that an invocation reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReachedLimit {
    index: usize,
    /// Such as "50 requests to the model".
    pub(crate) description: String,
}

impl Totals {
    pub(crate) fn new(started_ms: i64) -> Self {
        Self {
            started_ms,
            tokens: TokenUsage::default(),
            cost: NanoDollars::default(),
            has_unknown_price: false,
            requests: 0,
            context_tokens: 0,
            last_body_bytes: 0,
            raised: [0; 3],
        }
    }

    /// Adds the usage of a request.
    pub(crate) fn add(&mut self, api: Api, model: &str, usage: &Usage, prices: &PriceTable) {
        self.requests += 1;
        self.tokens = sum(
            &self.tokens,
            &TokenUsage {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_written: usage.cache_written,
                reasoning: usage.reasoning,
            },
        );
        let Some(billed) = BilledTokens::new(api, usage) else { return };
        self.context_tokens = billed.prompt() + billed.output + billed.reasoning;
        match prices.find(model) {
            Some(price) => self.cost = self.cost + price.cost(&billed),
            None => self.has_unknown_price = true,
        }
    }

    /// Adds the usage of a delegated session.
    pub(crate) fn add_delegated(&mut self, usage: &InvocationUsage) {
        self.tokens = sum(&self.tokens, &usage.tokens);
        match usage.cost_micro_usd {
            Some(cost) => self.cost = self.cost + NanoDollars(cost.saturating_mul(1_000)),
            None => self.has_unknown_price = true,
        }
    }

    pub(crate) fn usage(&self, context_window: Option<u64>) -> InvocationUsage {
        let percent = |window: u64| u32::try_from(self.context_tokens * 100 / window.max(1)).unwrap_or(u32::MAX);
        InvocationUsage {
            tokens: self.tokens,
            cost_micro_usd: (!self.has_unknown_price).then_some(self.cost.0 / 1_000),
            context_percent: context_window.filter(|_| self.context_tokens > 0).map(percent),
            requests: self.requests,
        }
    }

    /// Returns the first limit that is reached.
    pub(crate) fn reached(&self, limits: &Limits, now_ms: i64) -> Option<ReachedLimit> {
        let elapsed_ms = u64::try_from(now_ms.saturating_sub(self.started_ms)).unwrap_or(0);
        let cost = self.cost.0 / 1_000;
        let all = [
            (u64::from(limits.turns), u64::from(self.requests), format!("{} requests to the model", limits.turns)),
            (limits.cost_micro_usd, cost, format!("${:.2}", limits.cost_micro_usd as f64 / 1e6)),
            (limits.time_ms, elapsed_ms, format!("{} seconds", limits.time_ms / 1_000)),
        ];
        let mut reached = all.into_iter().enumerate().filter(|(index, (limit, used, _))| {
            *limit > 0 && *used >= limit.saturating_mul(u64::from(self.raised[*index]) + 1)
        });
        reached.next().map(|(index, (_, _, description))| ReachedLimit { index, description })
    }

    /// Allows as much again.
    pub(crate) fn raise(&mut self, limit: &ReachedLimit) {
        self.raised[limit.index] += 1;
    }
}

fn sum(left: &TokenUsage, right: &TokenUsage) -> TokenUsage {
    let add = |left: Option<u64>, right: Option<u64>| match (left, right) {
        (None, None) => None,
        (left, right) => Some(left.unwrap_or(0).saturating_add(right.unwrap_or(0))),
    };
    TokenUsage {
        input: add(left.input, right.input),
        output: add(left.output, right.output),
        cache_read: add(left.cache_read, right.cache_read),
        cache_written: add(left.cache_written, right.cache_written),
        reasoning: add(left.reasoning, right.reasoning),
    }
}
