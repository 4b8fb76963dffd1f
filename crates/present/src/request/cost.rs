//! Cost of requests as text: tokens, price, cache share and cache misses.

use sayso_api::request::{CacheMissReport, RequestCost, RequestCosts};

use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{count, format_percent};

/// Describes the price and the cache share of a request, such as `$0.014 · cache 92%`. Without a price, only the cache share.
pub fn cost_text(cost: &RequestCost) -> String {
    let price = cost.price.map(|price| price.to_string());
    // APIs without a cache report no cached tokens at all.
    let has_cache = cost.tokens.cache_read > 0 || cost.tokens.cache_written > 0;
    let cache = has_cache.then(|| format!("cache {}", format_percent(cost.tokens.cache_share())));
    [price, cache].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Describes the tokens of one or more requests by class, such as `1200 in, 8000 from cache, 300 out`.
pub fn cost_tokens_text(cost: &RequestCost) -> String {
    let tokens = &cost.tokens;
    let classes = [
        (tokens.input, "in"),
        (tokens.cache_read, "from cache"),
        (tokens.cache_written, "to cache"),
        (tokens.output, "out"),
        (tokens.reasoning, "reasoning"),
    ];
    let shown = classes.into_iter().filter(|(tokens, name)| *tokens > 0 || matches!(*name, "in" | "out"));
    shown.map(|(tokens, name)| format!("{tokens} {name}")).collect::<Vec<_>>().join(", ")
}

/// Explains a cache miss in one or two lines.
pub fn cache_miss_text(miss: &CacheMissReport) -> String {
    let expected = if miss.expected { " (expected)" } else { "" };
    let text = format!("{}{expected}", escape_unprintable(&miss.text));
    let Some(difference) = &miss.difference else { return text };
    let excerpt = |text: &str| escape_unprintable(text.lines().next().unwrap_or_default()).into_owned();
    format!(
        "{text}: first difference from request {} at {}, {} tokens read again\n  before: {}\n  now:    {}",
        miss.previous_request,
        escape_unprintable(&difference.path),
        difference.tokens_lost,
        excerpt(&difference.old),
        excerpt(&difference.new),
    )
}

/// Renders sums per session and in total, one line each.
pub fn render_costs(costs: &RequestCosts) -> StyledText {
    let mut text = StyledText::new();
    let mut row = |name: &str, requests: u64, cost: &RequestCost, style: Style| {
        let price = cost.price.map_or("unknown price".to_owned(), |price| price.to_string());
        text.push(style, format!("{price:>13}"));
        text.plain(format!("  {}  ", escape_unprintable(name)));
        let cache = format_percent(cost.tokens.cache_share());
        text.push(Style::Dim, format!("{}: {}, cache {cache}\n", count(requests, "request"), cost_tokens_text(cost)));
    };
    for session in &costs.sessions {
        let agent = session.agent.as_deref().unwrap_or("agent");
        let id = session.session.as_deref().unwrap_or("no session");
        row(&format!("{agent} · {id}"), session.requests, &session.cost, Style::Title);
    }
    if costs.sessions.len() > 1 {
        let requests = costs.sessions.iter().map(|session| session.requests).sum();
        row("total", requests, &costs.total, Style::Title);
    }
    let unknown: std::collections::BTreeSet<&str> =
        costs.sessions.iter().flat_map(|session| &session.unknown_models).map(String::as_str).collect();
    if !unknown.is_empty() {
        let names: Vec<_> = unknown.into_iter().map(|name| escape_unprintable(name).into_owned()).collect();
        let names = names.join(", ");
        text.push(Style::Note, format!("No price for {names}: add a [[request.price]] to the configuration.\n"));
    }
    text.push(Style::Dim, format!("List prices of {}.\n", escape_unprintable(&costs.prices_date)));
    text
}

#[cfg(test)]
mod tests {
    use sayso_api::request::PromptDifference;
    use sayso_wire::CacheMissCause;
    use sayso_wire::price::{BilledTokens, NanoDollars};
    use sayso_wire::tokens::Tokens;

    use super::*;

    #[test]
    fn cost_shows_price_and_cache_share() {
        let tokens = BilledTokens { input: 80, cache_read: 920, ..BilledTokens::default() };
        let cost = RequestCost { tokens, price: Some(NanoDollars(14_200_000)), context_share: None };
        assert_eq!(cost_text(&cost), "$0.014 · cache 92%");
        assert_eq!(cost_tokens_text(&cost), "80 in, 920 from cache, 0 out");
        let tokens = BilledTokens { input: 80, ..BilledTokens::default() };
        assert_eq!(cost_text(&RequestCost { tokens, ..RequestCost::default() }), "");
    }

    #[test]
    fn cache_miss_escapes_untrusted_text() {
        let miss = CacheMissReport {
            cause: CacheMissCause::ToolsChanged,
            text: "the tools changed".to_owned(),
            expected: true,
            previous_request: 4,
            difference: Some(PromptDifference {
                path: "tools[1]\u{202e}".to_owned(),
                label: String::new(),
                old: "a\u{1b}[2J".to_owned(),
                new: "b".to_owned(),
                tokens_lost: Tokens::estimate(1_200),
            }),
        };
        assert_eq!(
            cache_miss_text(&miss),
            "the tools changed (expected): first difference from request 4 at tools[1]⟨U+202E⟩, ≈ 1,200 tokens read again\n  \
             before: a␛[2J\n  now:    b"
        );
    }
}
