//! What the user has configured, as far as requests go.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use sayso_wire::Scope;

/// How requests are treated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a paused request is held without a byte, so that every status and error stays faithful.
    pub grace: Duration,
    /// How often a held stream says that it is alive.
    pub keep_alive: Duration,
    /// What is recorded.
    pub keep: Keep,
    /// How many runs of subagents the monitor shows.
    pub monitor: usize,
    /// The largest body of a request, in bytes.
    pub largest_body: usize,
    /// How many requests are under way at a time.
    pub most_at_once: usize,
    /// What pauses, whatever the mode, and what does not: the first that fits decides.
    pub rules: Vec<PauseRule>,
    /// Tools whose calls wait in the answer for a person, by name.
    pub hold_tools: Vec<String>,
    /// Where captured edits are saved.
    pub scope: Scope,
    /// How many sections, from the first on, are shown and saved when edits are captured.
    pub preview_limit: Option<usize>,
    /// The upstreams by name.
    pub upstreams: BTreeMap<String, Upstream>,
    /// How an upstream that is overloaded is tried again once a client has its status.
    pub retry: Retry,
}

/// What of requests is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything.
    All,
    /// Those that wait for a person or that saved edits apply to.
    WhatPauses,
}

/// How an upstream that is overloaded is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often.
    pub times: u32,
    /// How long after the first time; twice as long each time after.
    pub first: Duration,
    /// And no longer than this.
    pub longest: Duration,
}

/// Where requests go.
#[derive(Clone)]
pub struct Upstream {
    /// What comes before the path.
    pub base: Uri,
    /// The credential for requests that are sent again, where none is in memory.
    pub credential: Option<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Upstream {
    /// An upstream without a credential of its own.
    pub fn new(base: Uri) -> Self {
        Self { base, credential: None }
    }
}

/// What pauses, or does not: all that it says has to be so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseRule {
    /// What a person calls it.
    pub name: String,
    /// Whether it pauses.
    pub pause: Pause,
    /// The agent's name.
    pub agent: Option<String>,
    /// Whether it is a subagent's.
    pub subagent: Option<bool>,
    /// More bytes than this.
    pub larger_than: Option<usize>,
    /// A new result of a tool with more tokens than this.
    pub tool_result_tokens: Option<u64>,
    /// A text that is in what is new.
    pub text: Option<String>,
}

/// Whether what a rule fits pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pause {
    /// It does, whatever the mode.
    #[default]
    Yes,
    /// It does not.
    No,
}

impl Settings {
    /// What suits people, with the upstreams of the three large makers.
    pub fn usual() -> Self {
        let maker = |name: &str, base: &'static str| (name.to_owned(), Upstream::new(Uri::from_static(base)));
        Self {
            grace: Duration::from_secs(20),
            keep_alive: Duration::from_secs(10),
            keep: Keep::All,
            monitor: 10,
            largest_body: 64 << 20,
            most_at_once: 1_024,
            rules: Vec::new(),
            hold_tools: Vec::new(),
            scope: Scope::Session,
            preview_limit: None,
            upstreams: BTreeMap::from([
                maker("anthropic", "https://api.anthropic.com"),
                maker("openai", "https://api.openai.com"),
                maker("gemini", "https://generativelanguage.googleapis.com"),
                maker("chatgpt", "https://chatgpt.com/backend-api/codex"),
            ]),
            retry: Retry { times: 8, first: Duration::from_secs(1), longest: Duration::from_secs(30) },
        }
    }
}
