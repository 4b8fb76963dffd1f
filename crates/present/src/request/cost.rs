//! Cost of requests as text: tokens, price, cache share and cache misses.

use sayso_api::proto::{CacheMiss, GetCostResponse, RequestCost};
use sayso_wire::price::NanoDollars;

use super::status::tokens_text;
use crate::escape::escape_unprintable;
use crate::span::{Style, StyledText};
use crate::words::{count, format_percent};

/// Describes the price and the cache share of a request, such as `$0.014 · cache 92%`. Without a price, only the cache share.
pub fn cost_text(cost: &RequestCost) -> String {
    let price = cost.nano_dollars.map(|amount| NanoDollars(amount).to_string());
    // APIs without a cache report no cached tokens at all.
    let has_cache = cost.cache_read > 0 || cost.cache_written > 0;
    let cache = has_cache.then(|| format!("cache {}", format_percent(cost.cache_share)));
    [price, cache].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Describes the tokens of one or more requests by class, such as `1200 in, 8000 from cache, 300 out`.
pub fn cost_tokens_text(cost: &RequestCost) -> String {
    let classes = [
        (cost.input, "in"),
        (cost.cache_read, "from cache"),
        (cost.cache_written, "to cache"),
        (cost.output, "out"),
        (cost.reasoning, "reasoning"),
    ];
    let shown = classes.into_iter().filter(|(tokens, name)| *tokens > 0 || matches!(*name, "in" | "out"));
    shown.map(|(tokens, name)| format!("{tokens} {name}")).collect::<Vec<_>>().join(", ")
}

/// Explains a cache miss in one or two lines.
pub fn cache_miss_text(miss: &CacheMiss) -> String {
    let expected = if miss.expected { " (expected)" } else { "" };
    let mut text = format!("{}{expected}", escape_unprintable(&miss.text));
    if let Some(path) = &miss.path {
        let lost = miss.tokens_lost.as_option();
        let lost = lost.map(|lost| format!(", {} tokens read again", tokens_text(Some(lost)))).unwrap_or_default();
        text.push_str(&format!(
            ": first difference from request {} at {}{lost}",
            miss.previous_request,
            escape_unprintable(path)
        ));
    }
    let excerpt = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default();
        let first_line: String = text.lines().next().unwrap_or_default().to_owned();
        escape_unprintable(&first_line).into_owned()
    };
    if miss.old.is_some() || miss.new.is_some() {
        text.push_str(&format!("\n  before: {}\n  now:    {}", excerpt(&miss.old), excerpt(&miss.new)));
    }
    text
}

/// Renders sums per session and in total, one line each.
pub fn render_costs(costs: &GetCostResponse) -> StyledText {
    let mut text = StyledText::new();
    let mut row = |name: &str, requests: u64, cost: &RequestCost, style: Style| {
        let price = cost.nano_dollars.map_or("unknown price".to_owned(), |amount| NanoDollars(amount).to_string());
        text.push(style, format!("{price:>13}"));
        text.plain(format!("  {}  ", escape_unprintable(name)));
        let cache = format_percent(cost.cache_share);
        text.push(Style::Dim, format!("{}: {}, cache {cache}\n", count(requests, "request"), cost_tokens_text(cost)));
    };
    for session in &costs.sessions {
        let agent = session.agent.as_deref().unwrap_or("agent");
        let id = session.session.as_deref().unwrap_or("no session");
        let cost = session.cost.as_option().cloned().unwrap_or_default();
        row(&format!("{agent} · {id}"), session.requests, &cost, Style::Title);
    }
    if costs.sessions.len() > 1 {
        let requests = costs.sessions.iter().map(|session| session.requests).sum();
        row("total", requests, &costs.total.as_option().cloned().unwrap_or_default(), Style::Title);
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
    use super::*;

    #[test]
    fn cost_shows_price_and_cache_share() {
        let cost = RequestCost {
            input: 80,
            cache_read: 920,
            nano_dollars: Some(14_200_000),
            cache_share: 0.92,
            ..Default::default()
        };
        assert_eq!(cost_text(&cost), "$0.014 · cache 92%");
        assert_eq!(cost_tokens_text(&cost), "80 in, 920 from cache, 0 out");
        assert_eq!(cost_text(&RequestCost { input: 80, ..Default::default() }), "");
    }

    #[test]
    fn cache_miss_escapes_untrusted_text() {
        let miss = CacheMiss {
            text: "the tools changed".to_owned(),
            expected: true,
            previous_request: 4,
            path: Some("tools[1]\u{202e}".to_owned()),
            old: Some("a\u{1b}[2J".to_owned()),
            new: Some("b".to_owned()),
            ..Default::default()
        };
        assert_eq!(
            cache_miss_text(&miss),
            "the tools changed (expected): first difference from request 4 at tools[1]⟨U+202E⟩\n  before: a␛[2J\n  now:    b"
        );
    }
}
