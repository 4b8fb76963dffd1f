//! Prices of model requests: token counts in one form for all APIs, and a dated table of prices.
//!
//! The APIs disagree on the meaning of their counts. Anthropic reports cached input beside `input_tokens`; OpenAI and Gemini
//! include it. Gemini reports reasoning beside `candidatesTokenCount`; the others include it. [`BilledTokens`] removes these
//! differences, so that every figure after it means the same for each API.
//!
//! # Limits
//!
//! - List prices only: no batch, priority or committed-use discounts, no charges for tools that run on the server.
//! - A model without a row in the table has no price. Nothing is guessed.

use serde::{Deserialize, Serialize};

use crate::stream::{Api, Usage};

/// An amount of money in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoDollars(pub u64);

impl std::ops::Add for NanoDollars {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for NanoDollars {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), std::ops::Add::add)
    }
}

impl std::fmt::Display for NanoDollars {
    /// Writes dollars with three decimal places below ten cents, and two from there on: `$0.014`, `$1.20`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dollars = self.0 as f64 / 1e9;
        match self.0 {
            0 => f.write_str("$0.00"),
            1..500_000 => f.write_str("<$0.001"),
            500_000..100_000_000 => write!(f, "${dollars:.3}"),
            _ => write!(f, "${dollars:.2}"),
        }
    }
}

/// Tokens of one request, in disjoint classes that add up to all tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BilledTokens {
    /// Input that was neither read from a cache nor written to one.
    pub input: u64,
    pub cache_read: u64,
    pub cache_written: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl BilledTokens {
    /// Converts the counts of an API. Returns `None` if the API reported neither input nor output.
    pub fn new(api: Api, usage: &Usage) -> Option<Self> {
        if usage.input.is_none() && usage.output.is_none() {
            return None;
        }
        let count = |count: Option<u64>| count.unwrap_or(0);
        let (input, output) = (count(usage.input), count(usage.output));
        let (cache_read, cache_written) = (count(usage.cache_read), count(usage.cache_written));
        let reasoning = count(usage.reasoning);
        let excludes_cache = api == Api::AnthropicMessages;
        let excludes_reasoning = api == Api::Gemini;
        Some(Self {
            input: if excludes_cache { input } else { input.saturating_sub(cache_read + cache_written) },
            cache_read,
            cache_written,
            output: if excludes_reasoning { output } else { output.saturating_sub(reasoning) },
            reasoning,
        })
    }

    /// Returns all input tokens: the part of the context window that the request filled.
    pub fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_written
    }

    /// Returns the fraction of the input that came from the cache, from 0 to 1.
    pub fn cache_share(&self) -> f64 {
        if self.prompt() == 0 { 0.0 } else { self.cache_read as f64 / self.prompt() as f64 }
    }
}

impl std::ops::Add for BilledTokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            cache_read: self.cache_read + other.cache_read,
            cache_written: self.cache_written + other.cache_written,
            output: self.output + other.output,
            reasoning: self.reasoning + other.reasoning,
        }
    }
}

/// Prices of the models whose names match a pattern, in US dollars per million tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// A model's name, or the start of names followed by `*`.
    pub model: String,
    pub input: f64,
    pub output: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl ModelPrice {
    fn matches(&self, model: &str) -> bool {
        match self.model.strip_suffix('*') {
            Some(start) => model.starts_with(start),
            None => model == self.model,
        }
    }

    /// Returns the price of a request. Reasoning is billed as output.
    #[expect(clippy::cast_sign_loss, reason = "a float converts to an integer with saturation at 0")]
    pub fn cost(&self, tokens: &BilledTokens) -> NanoDollars {
        // Dollars per million tokens are thousands of nano-dollars per token.
        let nano = |tokens: u64, price: f64| tokens as f64 * price * 1e3;
        let total = nano(tokens.input, self.input)
            + nano(tokens.cache_read, self.cache_read.unwrap_or(self.input))
            + nano(tokens.cache_written, self.cache_write.unwrap_or(self.input))
            + nano(tokens.output + tokens.reasoning, self.output);
        NanoDollars(total.round() as u64)
    }
}

/// A table of prices with the date on which they were looked up.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceTable {
    rows: Vec<ModelPrice>,
}

impl PriceTable {
    /// Date of the built-in prices.
    pub const DATE: &'static str = "2025-11-24";

    /// Builds the table. Rows of the user come first and win over built-in rows.
    pub fn with_rows(rows: Vec<ModelPrice>) -> Self {
        Self { rows: rows.into_iter().chain(built_in_rows()).collect() }
    }

    /// Returns the row of a model: an exact name wins, then the longest start, then the earlier row.
    /// A provider's prefix, as in `anthropic/claude-sonnet-4-5`, is ignored if the full name has no row.
    pub fn find(&self, model: &str) -> Option<&ModelPrice> {
        let best = |name: &str| {
            let rows = self.rows.iter().filter(|row| row.matches(name));
            // `max_by_key` returns the last maximum, so the rows are visited from the last to the first.
            rows.rev().max_by_key(|row| (!row.model.ends_with('*'), row.model.len()))
        };
        best(model).or_else(|| best(model.rsplit('/').next()?))
    }
}

impl Default for PriceTable {
    fn default() -> Self {
        Self::with_rows(Vec::new())
    }
}

/// Built-in rows: pattern, input, output, cache read, cache write (0: as input).
const BUILT_IN: &[(&str, f64, f64, f64, f64)] = &[
    ("claude-opus-4-5*", 5.0, 25.0, 0.5, 6.25),
    ("claude-opus-4*", 15.0, 75.0, 1.5, 18.75),
    ("claude-3-opus*", 15.0, 75.0, 1.5, 18.75),
    ("claude-sonnet-4*", 3.0, 15.0, 0.3, 3.75),
    ("claude-3-7-sonnet*", 3.0, 15.0, 0.3, 3.75),
    ("claude-3-5-sonnet*", 3.0, 15.0, 0.3, 3.75),
    ("claude-haiku-4-5*", 1.0, 5.0, 0.1, 1.25),
    ("claude-3-5-haiku*", 0.8, 4.0, 0.08, 1.0),
    ("gpt-5", 1.25, 10.0, 0.125, 0.0),
    ("gpt-5-20*", 1.25, 10.0, 0.125, 0.0),
    ("gpt-5-codex*", 1.25, 10.0, 0.125, 0.0),
    ("gpt-5.1*", 1.25, 10.0, 0.125, 0.0),
    ("gpt-5-mini*", 0.25, 2.0, 0.025, 0.0),
    ("gpt-5-nano*", 0.05, 0.4, 0.005, 0.0),
    ("gpt-4.1", 2.0, 8.0, 0.5, 0.0),
    ("gpt-4.1-20*", 2.0, 8.0, 0.5, 0.0),
    ("gpt-4.1-mini*", 0.4, 1.6, 0.1, 0.0),
    ("gpt-4.1-nano*", 0.1, 0.4, 0.025, 0.0),
    ("gpt-4o-mini*", 0.15, 0.6, 0.075, 0.0),
    ("gpt-4o", 2.5, 10.0, 1.25, 0.0),
    ("gpt-4o-20*", 2.5, 10.0, 1.25, 0.0),
    ("o3", 2.0, 8.0, 0.5, 0.0),
    ("o3-20*", 2.0, 8.0, 0.5, 0.0),
    ("o4-mini*", 1.1, 4.4, 0.275, 0.0),
    ("gemini-3-pro*", 2.0, 12.0, 0.2, 0.0),
    ("gemini-2.5-pro*", 1.25, 10.0, 0.125, 0.0),
    ("gemini-2.5-flash-lite*", 0.1, 0.4, 0.01, 0.0),
    ("gemini-2.5-flash*", 0.3, 2.5, 0.03, 0.0),
];

fn built_in_rows() -> impl Iterator<Item = ModelPrice> {
    BUILT_IN.iter().map(|&(model, input, output, read, write)| ModelPrice {
        model: model.to_owned(),
        input,
        output,
        cache_read: Some(read),
        cache_write: (write > 0.0).then_some(write),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn usage(input: u64, output: u64, cache_read: u64, cache_written: u64, reasoning: u64) -> Usage {
        Usage {
            input: Some(input),
            output: Some(output),
            cache_read: Some(cache_read),
            cache_written: Some(cache_written),
            reasoning: Some(reasoning),
        }
    }

    #[test]
    fn billed_tokens_of_each_api_are_disjoint() {
        let expected = BilledTokens { input: 100, cache_read: 800, cache_written: 50, output: 20, reasoning: 5 };
        for (api, reported) in [
            (Api::AnthropicMessages, usage(100, 25, 800, 50, 5)),
            (Api::OpenAiChat, usage(950, 25, 800, 50, 5)),
            (Api::OpenAiResponses, usage(950, 25, 800, 50, 5)),
            (Api::Gemini, usage(950, 20, 800, 50, 5)),
        ] {
            assert_eq!(BilledTokens::new(api, &reported), Some(expected), "{api:?}");
        }
        assert_eq!(expected.prompt(), 950);
        assert_eq!(BilledTokens::new(Api::Gemini, &Usage::default()), None);
    }

    #[test]
    fn inconsistent_counts_never_underflow() {
        let tokens = BilledTokens::new(Api::OpenAiChat, &usage(10, 1, 100, 0, 7)).unwrap();
        assert_eq!((tokens.input, tokens.output), (0, 0));
    }

    #[test]
    fn price_adds_every_class_of_tokens() {
        let table = PriceTable::default();
        let row = table.find("claude-sonnet-4-5-20250929").unwrap();
        let tokens =
            BilledTokens { input: 1_000, cache_read: 10_000, cache_written: 2_000, output: 300, reasoning: 200 };
        // 0.003 + 0.003 + 0.0075 + 0.0075 dollars.
        assert_eq!(row.cost(&tokens), NanoDollars(21_000_000));
        assert_eq!(row.cost(&tokens).to_string(), "$0.021");
    }

    #[test]
    fn find_prefers_exact_names_then_longest_start() {
        let own = |model: &str, input| ModelPrice {
            model: model.to_owned(),
            input,
            output: 1.0,
            cache_read: None,
            cache_write: None,
        };
        let table = PriceTable::with_rows(vec![own("gpt-5-mini*", 9.0), own("gpt*", 8.0), own("gpt-5", 7.0)]);
        for (model, input) in [
            ("gpt-5-mini-2025-08-07", Some(9.0)),
            ("gpt-5", Some(7.0)),
            ("gpt-6", Some(8.0)),
            ("openai/gpt-5", Some(7.0)),
            ("claude-opus-4-5", Some(5.0)),
            ("claude-opus-4-1-20250805", Some(15.0)),
            ("llama-4", None),
            ("", None),
        ] {
            assert_eq!(table.find(model).map(|row| row.input), input, "{model}");
        }
    }

    #[test]
    fn amounts_are_displayed_with_useful_digits() {
        for (nano, text) in
            [(0, "$0.00"), (1, "<$0.001"), (14_200_000, "$0.014"), (99_900_000, "$0.100"), (1_204_000_000, "$1.20")]
        {
            assert_eq!(NanoDollars(nano).to_string(), text);
        }
    }
}
