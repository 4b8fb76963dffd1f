//! Cost of requests, and explanations of cache misses.

use std::collections::{BTreeMap, BTreeSet};

use sayso_api::proto;
use sayso_api::proto::get_cost_response::{SessionCost, TurnCost};
use sayso_api::request::RequestCost;
use sayso_proxy::interceptor::no_turn_because;
use sayso_review::{RequestRecord, TokenUsage};
use sayso_wire::price::{BilledTokens, NanoDollars, PriceTable};
use sayso_wire::stream::{Api, Usage};
use sayso_wire::tokens::TokenCounter;
use sayso_wire::{CacheMiss, ModelRequest, PromptVersions, RequestHead, explain_cache_miss};

use super::body::recorded;
use super::context_window;
use crate::failure::Failure;
use crate::host::Host;

/// Earlier requests of a session that are searched for the previous one of the same conversation.
const PREVIOUS_SEARCH_REQUESTS: usize = 20;
/// Requests read from the journal at a time.
const PAGE_SIZE: usize = 500;

/// Returns the tokens that a response reported.
fn billed(record: &RequestRecord) -> Option<BilledTokens> {
    let api = record.received.api.as_ref()?;
    let api: Api = serde_json::from_value(serde_json::Value::String(api.clone())).ok()?;
    let TokenUsage { input, output, cache_read, cache_written, reasoning } = record.answer.as_ref()?.usage;
    BilledTokens::new(api, &Usage { input, output, cache_read, cache_written, reasoning })
}

fn price(prices: &PriceTable, record: &RequestRecord, tokens: &BilledTokens) -> Option<NanoDollars> {
    Some(prices.find(record.received.model.as_deref()?)?.cost(tokens))
}

/// Returns the cost of a request. `None` until its response reported usage.
pub(super) fn cost(host: &Host, record: &RequestRecord) -> Option<proto::RequestCost> {
    let tokens = billed(record)?;
    let prices = &host.proxy.interceptor.settings().prices;
    let head = RequestHead { path: record.received.path.clone(), headers: record.received.headers.clone() };
    let window = record.received.model.as_deref().and_then(|model| context_window::of_model(model, &head));
    let context_share = window.map(|window| tokens.prompt() as f64 / window as f64);
    let cost = RequestCost { tokens, price: price(prices, record, &tokens), context_share };
    Some(proto::RequestCost::from(&cost))
}

/// A sum over requests.
#[derive(Default)]
struct Sum {
    requests: u64,
    tokens: BilledTokens,
    price: NanoDollars,
    agent: Option<String>,
    unknown_models: BTreeSet<String>,
    /// Number of the first request, by which sums are ordered.
    first: u64,
}

impl Sum {
    fn add(&mut self, record: &RequestRecord, tokens: BilledTokens, price: Option<NanoDollars>) {
        if self.requests == 0 || record.request < self.first {
            self.first = record.request;
        }
        self.requests += 1;
        self.tokens = self.tokens + tokens;
        if self.agent.is_none() {
            self.agent.clone_from(&record.received.origin.agent);
        }
        self.price = self.price + price.unwrap_or_default();
        if price.is_none() {
            let model = record.received.model.clone();
            self.unknown_models.insert(model.unwrap_or_else(|| "unknown".to_owned()));
        }
    }

    fn message(&self) -> proto::RequestCost {
        let price = self.unknown_models.is_empty().then_some(self.price);
        (&RequestCost { tokens: self.tokens, price, context_share: None }).into()
    }
}

/// Sums the cost of recorded requests per turn, per session and in total.
pub(super) fn sums(host: &Host, asked: &proto::GetCostRequest) -> Result<proto::GetCostResponse, Failure> {
    let interceptor = &host.proxy.interceptor;
    let settings = interceptor.settings();
    let mut turns: BTreeMap<(String, Option<String>), Sum> = BTreeMap::new();
    let mut sessions: BTreeMap<Option<String>, Sum> = BTreeMap::new();
    let mut total = Sum::default();
    let mut before = None;
    loop {
        let page = interceptor.records(asked.session.as_deref(), before, PAGE_SIZE)?;
        let is_last = page.len() < PAGE_SIZE;
        before = page.last().map(|record| record.request);
        for record in page.iter().filter(|record| record.time >= asked.since_ms) {
            let Some(tokens) = billed(record) else { continue };
            let price = price(&settings.prices, record, &tokens);
            let origin = &record.received.origin;
            if let Some(session) = &origin.session {
                let turn = turns.entry((session.clone(), origin.turn.clone())).or_default();
                turn.add(record, tokens, price);
            }
            sessions.entry(origin.session.clone()).or_default().add(record, tokens, price);
            total.add(record, tokens, price);
        }
        if is_last || page.last().is_some_and(|record| record.time < asked.since_ms) {
            break;
        }
    }
    let mut turns: Vec<_> = turns.into_iter().collect();
    turns.sort_by_key(|(_, sum)| sum.first);
    let mut sessions: Vec<_> = sessions.into_iter().collect();
    sessions.sort_by_key(|(_, sum)| sum.first);
    Ok(proto::GetCostResponse {
        turns: turns
            .into_iter()
            .map(|((session, turn), sum)| TurnCost {
                session,
                turn,
                requests: sum.requests,
                cost: sum.message().into(),
                ..Default::default()
            })
            .collect(),
        sessions: sessions
            .into_iter()
            .map(|(session, sum)| SessionCost {
                session,
                cost: sum.message().into(),
                requests: sum.requests,
                agent: sum.agent,
                unknown_models: sum.unknown_models.into_iter().collect(),
                ..Default::default()
            })
            .collect(),
        total: total.message().into(),
        prices_date: PriceTable::DATE.to_owned(),
        ..Default::default()
    })
}

/// A recorded request, as received and as sent.
struct RecordedPrompt {
    received: ModelRequest,
    sent: Option<ModelRequest>,
}

impl RecordedPrompt {
    /// Reads the bodies of a request. Fails if they are no longer stored.
    fn read(host: &Host, record: &RequestRecord) -> Result<Self, Failure> {
        let head = RequestHead { path: record.received.path.clone(), headers: record.received.headers.clone() };
        let parse =
            |body| Ok::<_, Failure>(ModelRequest::new(record.request.to_string(), head.clone(), recorded(host, body)?));
        Ok(Self { received: parse(&record.received.body)?, sent: record.sent.as_ref().map(parse).transpose()? })
    }

    fn versions(&self) -> PromptVersions<'_> {
        PromptVersions { received: &self.received, sent: self.sent.as_ref().unwrap_or(&self.received) }
    }
}

/// Explains the cache miss of a request. Returns `None` if there was none, or if the compared bodies are no longer stored.
pub(super) fn cache_miss(host: &Host, record: &RequestRecord) -> Result<Option<proto::CacheMiss>, Failure> {
    let Some(session) = record.received.origin.session.as_deref() else { return Ok(None) };
    let Ok(current) = RecordedPrompt::read(host, record) else { return Ok(None) };
    let is_subagent = record.received.subagent.is_some();
    let is_turn = |request: &ModelRequest| no_turn_because(is_subagent, request).is_none();
    let belongs = |earlier: &&RequestRecord| {
        let (ours, theirs) = (&record.received, &earlier.received);
        theirs.subagent == ours.subagent && theirs.api == ours.api && earlier.answer.is_some()
    };
    let earlier = host.proxy.interceptor.records(Some(session), Some(record.request), PREVIOUS_SEARCH_REQUESTS)?;
    for previous in earlier.iter().filter(belongs) {
        let Ok(prompt) = RecordedPrompt::read(host, previous) else { return Ok(None) };
        if is_turn(&prompt.received) != is_turn(&current.received) {
            continue;
        }
        let idle_ms = u64::try_from(record.time.saturating_sub(previous.last)).unwrap_or(0);
        let usage = billed(record);
        let mut counter = TokenCounter::default();
        let miss = explain_cache_miss(prompt.versions(), current.versions(), usage.as_ref(), idle_ms, &mut counter);
        return Ok(miss.map(|miss| miss_message(&miss, previous.request)));
    }
    Ok(None)
}

fn miss_message(miss: &CacheMiss, previous: u64) -> proto::CacheMiss {
    let difference = miss.difference.as_ref();
    let masked = |text: &str| sayso_review::redact::masked_text(text).into_owned();
    proto::CacheMiss {
        cause: proto::cache_miss::Cause::from(miss.cause).into(),
        expected: miss.cause.is_expected(),
        text: miss.cause.to_string(),
        previous_request: previous,
        path: difference.map(|difference| difference.path.clone()),
        label: difference.map(|difference| difference.label.clone()),
        old: difference.map(|difference| masked(&difference.old)),
        new: difference.map(|difference| masked(&difference.new)),
        tokens_lost: difference.map(|difference| difference.tokens_lost.into()).into(),
        ..Default::default()
    }
}
