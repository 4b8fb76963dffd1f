//! Explanation of a prompt-cache miss: the first place at which a request differs from the previous one of its session.
//!
//! A server caches prompts by prefix, in the order in which it reads a request ([`Dialect::reading_order`]). So the first part that
//! differs decides how much is read anew, and its kind tells the cause. Cache breakpoints (`cache_control`) are ignored in the
//! comparison: agents move them to the newest message with every request.
//!
//! [`Dialect::reading_order`]: crate::dialect::Dialect::reading_order

use serde::Serialize;

use crate::edit_impact::{cache_units_of_member, count_value};
use crate::json::{Document, JsonKind, Target};
use crate::price::BilledTokens;
use crate::request::ModelRequest;
use crate::tokens::{TokenCounter, Tokens};

/// Idle time after which servers drop a cached prompt, in milliseconds.
pub const CACHE_TTL_MS: u64 = 5 * 60 * 1000;
/// Servers cache no shorter prompts.
const MIN_CACHEABLE_TOKENS: u64 = 1024;

/// The cause of a cache miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMissCause {
    ModelChanged,
    ToolsChanged,
    /// The agent replaced its history by a summary, or went back.
    Compaction,
    /// A person's edit, or a saved one, changed the prefix.
    Edited,
    /// The agent changed instructions or earlier messages by itself, such as a date in the system prompt.
    UnstablePrefix,
    /// The prefix is the same, and the previous request is older than [`CACHE_TTL_MS`].
    Expired,
    /// The prefix is the same, and the server reported no cached tokens nonetheless.
    Unexplained,
}

impl CacheMissCause {
    /// `true` for a cause that is part of an agent's normal work.
    pub fn is_expected(self) -> bool {
        matches!(self, Self::ModelChanged | Self::ToolsChanged | Self::Compaction)
    }
}

impl std::fmt::Display for CacheMissCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ModelChanged => "the model changed",
            Self::ToolsChanged => "the tools changed",
            Self::Compaction => "the agent shortened its history",
            Self::Edited => "an edit changed the prefix",
            Self::UnstablePrefix => "the agent changed instructions or earlier messages",
            Self::Expired => "the cache expired after five minutes",
            Self::Unexplained => "the upstream reported no cached tokens for the same prefix",
        })
    }
}

/// A cache miss and its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMiss {
    pub cause: CacheMissCause,
    /// The first difference. `None` if the prefix is the same.
    pub difference: Option<PrefixDifference>,
}

/// The first part of a request that differs from the previous request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixDifference {
    /// Path in the later request; in the earlier one if the part was removed.
    pub path: String,
    /// Display name of the section around it. Empty if no section covers the path.
    pub label: String,
    /// Content before and after, shortened to [`PrefixDifference::EXCERPT_CHARS`] around the first differing character.
    pub old: String,
    pub new: String,
    /// Tokens of the previous request behind the difference: the cache could have served them.
    pub tokens_lost: Tokens,
    part: PromptPart,
    is_history_shorter: bool,
}

impl PrefixDifference {
    pub const EXCERPT_CHARS: usize = 80;
}

/// The part of a request that a difference is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PromptPart {
    Model,
    Tools,
    Instructions,
    Messages,
}

impl PromptPart {
    fn from_member(name: &str) -> Self {
        match name {
            "model" => Self::Model,
            "tools" | "functions" => Self::Tools,
            "messages" | "contents" | "input" => Self::Messages,
            _ => Self::Instructions,
        }
    }
}

/// A request as the agent sent it and as sayso forwarded it.
#[derive(Clone, Copy, Debug)]
pub struct PromptVersions<'r> {
    pub received: &'r ModelRequest,
    pub sent: &'r ModelRequest,
}

/// Explains why the server could not reuse the prompt of `previous` for `current`. Returns `None` if the prefix is the same and
/// the reported usage shows no miss.
///
/// `usage` is that of `current`; `idle_ms` the time between the two requests.
pub fn explain_cache_miss(
    previous: PromptVersions<'_>,
    current: PromptVersions<'_>,
    usage: Option<&BilledTokens>,
    idle_ms: u64,
    counter: &mut TokenCounter,
) -> Option<CacheMiss> {
    let Some(difference) = first_difference(previous.sent, current.sent, counter) else {
        let usage = usage?;
        let cause = if idle_ms >= CACHE_TTL_MS { CacheMissCause::Expired } else { CacheMissCause::Unexplained };
        let is_miss = usage.prompt() >= MIN_CACHEABLE_TOKENS && usage.cache_read == 0;
        return is_miss.then_some(CacheMiss { cause, difference: None });
    };
    // The bodies from the agent agree beyond this difference, so an edit made it.
    let received = first_difference(previous.received, current.received, counter);
    let is_edit = received.is_none_or(|received| received.tokens_lost.count < difference.tokens_lost.count);
    let cause = match difference.part {
        _ if is_edit => CacheMissCause::Edited,
        PromptPart::Model => CacheMissCause::ModelChanged,
        PromptPart::Tools => CacheMissCause::ToolsChanged,
        PromptPart::Messages if difference.is_history_shorter => CacheMissCause::Compaction,
        PromptPart::Messages | PromptPart::Instructions => CacheMissCause::UnstablePrefix,
    };
    Some(CacheMiss { cause, difference: Some(difference) })
}

/// Finds the first difference before the end of `old`. Returns `None` if `new` extends `old`, or if one of them has no known
/// structure.
fn first_difference(old: &ModelRequest, new: &ModelRequest, counter: &mut TokenCounter) -> Option<PrefixDifference> {
    let (dialect, new_dialect) = (old.dialect()?, new.dialect()?);
    if dialect.api() != new_dialect.api() {
        return None;
    }
    let (old_body, new_body) = (old.document()?, new.document()?);
    // The server adds the history that `previous_response_id` names, so `input` holds the newest items only.
    let has_remote_history = new_body.member(new_body.root(), "previous_response_id").is_some();
    let is_compared = |name: &&str| match *name {
        "previous_response_id" => false,
        "input" => !has_remote_history,
        _ => true,
    };
    let order = ["model"].into_iter().chain(dialect.reading_order().iter().copied());
    let order: Vec<&str> = order.filter(is_compared).collect();
    for (index, name) in order.iter().enumerate() {
        let units = |body: &Document| -> Vec<Target> {
            let units = cache_units_of_member(body, name).into_iter();
            units.filter(|unit| !is_breakpoint(body, *unit)).collect()
        };
        let (old_units, new_units) = (units(old_body), units(new_body));
        let same = old_units.iter().zip(&new_units).take_while(|(old, new)| is_same(old_body, **old, new_body, **new));
        let same = same.count();
        let part = PromptPart::from_member(name);
        // New messages at the end are the normal case; a new tool or instruction changes all that follows.
        let is_extension = same == old_units.len() && (part == PromptPart::Messages || same == new_units.len());
        if is_extension {
            continue;
        }
        let (old_unit, new_unit) = (old_units.get(same).copied(), new_units.get(same).copied());
        let text = |body: &Document, unit: Option<Target>| unit.map(|unit| content(body, unit)).unwrap_or_default();
        let (old_text, new_text) = excerpts(&text(old_body, old_unit), &text(new_body, new_unit));
        let (request, body, unit) = match (new_unit, old_unit) {
            (Some(unit), _) => (new, new_body, unit),
            (None, Some(unit)) => (old, old_body, unit),
            (None, None) => return None,
        };
        let around = std::iter::successors(Some(unit), |inner| body.parent(*inner));
        let section = around.into_iter().find_map(|outer| request.section(outer.into()));
        let rest = order[index + 1..].iter().flat_map(|later| cache_units_of_member(old_body, later));
        let lost = old_units[same..].iter().copied().chain(rest);
        let tokenizer = old.tokenizer();
        let count = |body: &Document| body.member(body.root(), name).map_or(0, |list| body.children(list).count());
        return Some(PrefixDifference {
            path: body.path(unit),
            label: section.map(|section| section.label.clone()).unwrap_or_default(),
            old: old_text,
            new: new_text,
            tokens_lost: lost.map(|unit| count_value(old_body, counter, tokenizer, unit)).sum(),
            part,
            is_history_shorter: count(new_body) < count(old_body),
        });
    }
    None
}

/// Compares two values, cache breakpoints aside. The order of members counts, because servers hash what they read.
fn is_same(old_body: &Document, old: Target, new_body: &Document, new: Target) -> bool {
    if old_body.kind(old) != new_body.kind(new) || old_body.raw_key(old) != new_body.raw_key(new) {
        return false;
    }
    if old_body.kind(old).is_leaf() {
        return old_body.value_bytes(old) == new_body.value_bytes(new);
    }
    let children = |body: &Document, target: Target| -> Vec<Target> {
        body.children(target).filter(|child| !is_breakpoint(body, *child)).collect()
    };
    let (old_children, new_children) = (children(old_body, old), children(new_body, new));
    old_children.len() == new_children.len()
        && old_children.iter().zip(&new_children).all(|(old, new)| is_same(old_body, *old, new_body, *new))
}

fn is_breakpoint(body: &Document, target: Target) -> bool {
    body.raw_key(target) == Some(b"cache_control")
}

/// Returns the text of a value: its main text if it has one, else its JSON.
fn content(body: &Document, target: Target) -> String {
    let text = (body.kind(target) == JsonKind::Object).then(|| body.member(target, "text")).flatten();
    let shown = text.unwrap_or(target);
    match body.text(shown) {
        Some(text) => text.into_owned(),
        None => String::from_utf8_lossy(&body.value_bytes(shown)).into_owned(),
    }
}

/// Shortens two texts to the surroundings of their first differing character.
fn excerpts(old: &str, new: &str) -> (String, String) {
    const CHARS_BEFORE: usize = 24;
    let same = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let start = same.saturating_sub(CHARS_BEFORE);
    let cut = |text: &str| text.chars().skip(start).take(PrefixDifference::EXCERPT_CHARS).collect();
    (cut(old), cut(new))
}
