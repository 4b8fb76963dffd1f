//! The `[request]` and `[upstream]` sections of the configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use sayso_wire::Scope;
use sayso_wire::price::PriceTable;

/// Settings of the gateway.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Grace period: until it ends, a held client gets no byte, so the upstream's own status can still be forwarded.
    pub grace: Duration,
    /// Interval of keep-alive events in a held stream.
    pub keep_alive: Duration,
    pub keep: Keep,
    /// Number of subagent runs that the monitor displays.
    pub monitor: usize,
    /// Maximum body size of a request, in bytes.
    pub max_body_size: usize,
    /// Maximum number of requests in progress; held requests do not count.
    pub max_concurrent: usize,
    /// Rules that precede the mode. The first match applies.
    pub rules: Vec<PauseRule>,
    /// Names of the tools whose calls are held in the response; `*` for all.
    pub hold_tools: Vec<String>,
    /// Scope of the overrides that are saved when a captured turn is resumed.
    pub scope: Scope,
    /// Number of sections, from the first, that are displayed and saved when a turn is captured; `None` for all.
    pub preview_limit: Option<usize>,
    pub upstreams: BTreeMap<String, Upstream>,
    /// Retries of an overloaded upstream after the client received its status.
    pub retry: Retry,
    pub prices: PriceTable,
}

/// Selects the requests that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    All,
    /// Held requests, and requests with overrides.
    WhatPauses,
}

/// Exponential backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of retries.
    pub times: u32,
    /// Delay before the first retry; doubled for each further one.
    pub first: Duration,
    /// Upper limit of the delay.
    pub longest: Duration,
}

/// A server that requests are forwarded to.
#[derive(Clone)]
pub struct Upstream {
    /// URL before the path of the request.
    pub base: Uri,
    /// Credential header for replays. It precedes cached credentials.
    pub credential: Option<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Upstream {
    pub fn new(base: Uri) -> Self {
        Self { base, credential: None }
    }
}

/// A pause rule. All given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseRule {
    /// Name as written in the configuration.
    pub name: String,
    pub pause: Pause,
    pub agent: Option<String>,
    /// `true` matches requests of subagents, `false` all others.
    pub subagent: Option<bool>,
    /// Matches bodies with more bytes.
    pub larger_than: Option<usize>,
    /// Matches a new tool result with more tokens.
    pub tool_result_tokens: Option<u64>,
    /// Matches a text in the new messages, ignoring case.
    pub text: Option<String>,
}

/// Effect of a matching rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pause {
    /// Holds the request in every mode.
    #[default]
    Yes,
    /// Forwards the request in every mode.
    No,
}

impl Settings {
    /// Default settings, with the upstreams of Anthropic, OpenAI and Google.
    pub fn usual() -> Self {
        let vendor = |name: &str, base: &'static str| (name.to_owned(), Upstream::new(Uri::from_static(base)));
        Self {
            grace: Duration::from_secs(20),
            keep_alive: Duration::from_secs(10),
            keep: Keep::All,
            monitor: 10,
            max_body_size: 64 << 20,
            max_concurrent: 1_024,
            rules: Vec::new(),
            hold_tools: Vec::new(),
            scope: Scope::Session,
            preview_limit: None,
            upstreams: BTreeMap::from([
                vendor("anthropic", "https://api.anthropic.com"),
                vendor("openai", "https://api.openai.com"),
                vendor("gemini", "https://generativelanguage.googleapis.com"),
                vendor("chatgpt", "https://chatgpt.com/backend-api/codex"),
            ]),
            retry: Retry { times: 8, first: Duration::from_secs(1), longest: Duration::from_secs(30) },
            prices: PriceTable::default(),
        }
    }
}
