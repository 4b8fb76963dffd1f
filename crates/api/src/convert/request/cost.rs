//! Costs and explanations of cache misses.

use buffa::MessageField;
use sayso_wire::price::{BilledTokens, NanoDollars};

use crate::convert::field::{enumeration, list, optional, required};
use crate::convert::{BadMessage, messages};
use crate::proto;
use crate::proto::get_cost_response;
use crate::request::{CacheMissReport, PromptDifference, RequestCost, RequestCosts, SessionCost, TurnCost};

impl From<&RequestCost> for proto::RequestCost {
    fn from(cost: &RequestCost) -> Self {
        let BilledTokens { input, cache_read, cache_written, output, reasoning } = cost.tokens;
        Self {
            input,
            cache_read,
            cache_written,
            output,
            reasoning,
            nano_dollars: cost.price.map(|NanoDollars(amount)| amount),
            cache_share: cost.tokens.cache_share(),
            context_share: cost.context_share,
            ..Default::default()
        }
    }
}

impl From<proto::RequestCost> for RequestCost {
    /// Leaves out the cache share, which follows from the tokens.
    fn from(cost: proto::RequestCost) -> Self {
        let tokens = BilledTokens {
            input: cost.input,
            cache_read: cost.cache_read,
            cache_written: cost.cache_written,
            output: cost.output,
            reasoning: cost.reasoning,
        };
        Self { tokens, price: cost.nano_dollars.map(NanoDollars), context_share: cost.context_share }
    }
}

impl From<&TurnCost> for get_cost_response::TurnCost {
    fn from(turn: &TurnCost) -> Self {
        Self {
            session: turn.session.clone(),
            turn: turn.turn.clone(),
            requests: turn.requests,
            cost: MessageField::some((&turn.cost).into()),
            ..Default::default()
        }
    }
}

impl TryFrom<get_cost_response::TurnCost> for TurnCost {
    type Error = BadMessage;

    fn try_from(turn: get_cost_response::TurnCost) -> Result<Self, BadMessage> {
        let cost = required(turn.cost, "cost")?;
        Ok(Self { session: turn.session, turn: turn.turn, requests: turn.requests, cost })
    }
}

impl From<&SessionCost> for get_cost_response::SessionCost {
    fn from(session: &SessionCost) -> Self {
        Self {
            session: session.session.clone(),
            agent: session.agent.clone(),
            requests: session.requests,
            cost: MessageField::some((&session.cost).into()),
            unknown_models: session.unknown_models.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<get_cost_response::SessionCost> for SessionCost {
    type Error = BadMessage;

    fn try_from(session: get_cost_response::SessionCost) -> Result<Self, BadMessage> {
        Ok(Self {
            session: session.session,
            agent: session.agent,
            requests: session.requests,
            cost: required(session.cost, "cost")?,
            unknown_models: session.unknown_models,
        })
    }
}

impl From<&RequestCosts> for proto::GetCostResponse {
    fn from(costs: &RequestCosts) -> Self {
        Self {
            turns: messages(&costs.turns),
            sessions: messages(&costs.sessions),
            total: MessageField::some((&costs.total).into()),
            prices_date: costs.prices_date.clone(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::GetCostResponse> for RequestCosts {
    type Error = BadMessage;

    fn try_from(costs: proto::GetCostResponse) -> Result<Self, BadMessage> {
        Ok(Self {
            turns: list(costs.turns, "turns")?,
            sessions: list(costs.sessions, "sessions")?,
            total: required(costs.total, "total")?,
            prices_date: costs.prices_date,
        })
    }
}

impl From<&CacheMissReport> for proto::CacheMiss {
    fn from(miss: &CacheMissReport) -> Self {
        let difference = miss.difference.as_ref();
        let text = |of: fn(&PromptDifference) -> &String| difference.map(|difference| of(difference).clone());
        Self {
            cause: proto::cache_miss::Cause::from(miss.cause).into(),
            expected: miss.expected,
            text: miss.text.clone(),
            previous_request: miss.previous_request,
            path: text(|difference| &difference.path),
            label: text(|difference| &difference.label),
            old: text(|difference| &difference.old),
            new: text(|difference| &difference.new),
            tokens_lost: difference.map(|difference| difference.tokens_lost.into()).into(),
            ..Default::default()
        }
    }
}

impl TryFrom<proto::CacheMiss> for CacheMissReport {
    type Error = BadMessage;

    fn try_from(miss: proto::CacheMiss) -> Result<Self, BadMessage> {
        let tokens_lost = optional(miss.tokens_lost, "tokens_lost")?.unwrap_or_default();
        let (label, old, new) = (miss.label, miss.old, miss.new);
        let difference = miss.path.map(|path| PromptDifference {
            path,
            label: label.unwrap_or_default(),
            old: old.unwrap_or_default(),
            new: new.unwrap_or_default(),
            tokens_lost,
        });
        Ok(Self {
            cause: enumeration(miss.cause, "cause")?,
            expected: miss.expected,
            text: miss.text,
            previous_request: miss.previous_request,
            difference,
        })
    }
}
