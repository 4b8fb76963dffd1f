//! The choices of settings: models, upstreams, scenarios and prices. The host provides it.

use sayso_wire::price::PriceTable;
use sayso_wire::stream::Api;

use crate::scenario::Scenarios;

/// The values that settings accept.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// Known models. Other names are accepted with a dialect and an upstream.
    pub models: Vec<ModelChoice>,
    pub upstreams: Vec<UpstreamChoice>,
    pub scenarios: Scenarios,
    pub prices: PriceTable,
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChoice {
    pub model: String,
    pub dialect: Api,
    pub upstream: String,
    /// Size of the context window in tokens.
    pub context_tokens: Option<u64>,
    /// Maximum length of an answer in tokens. `None` uses a default.
    pub max_output_tokens: Option<u64>,
}

/// An upstream that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamChoice {
    pub name: String,
    pub dialects: Vec<Api>,
    /// A key is configured, or none is needed.
    pub is_ready: bool,
    /// The missing part and the place for it. Empty if ready.
    pub hint: String,
}

/// Known models: name, dialect, upstream, context window and answer in tokens.
const KNOWN_MODELS: &[(&str, Api, &str, u64, u64)] = &[
    ("claude-opus-4-5", Api::AnthropicMessages, "anthropic", 200_000, 64_000),
    ("claude-sonnet-4-5", Api::AnthropicMessages, "anthropic", 200_000, 64_000),
    ("claude-haiku-4-5", Api::AnthropicMessages, "anthropic", 200_000, 64_000),
    ("gpt-5.1", Api::OpenAiResponses, "openai", 400_000, 128_000),
    ("gpt-5.1-codex", Api::OpenAiResponses, "openai", 400_000, 128_000),
    ("gpt-5-mini", Api::OpenAiResponses, "openai", 400_000, 128_000),
    ("gpt-4.1", Api::OpenAiResponses, "openai", 1_047_576, 32_768),
    ("gemini-3-pro-preview", Api::Gemini, "gemini", 1_048_576, 65_536),
    ("gemini-2.5-pro", Api::Gemini, "gemini", 1_048_576, 65_536),
    ("gemini-2.5-flash", Api::Gemini, "gemini", 1_048_576, 65_536),
];

/// Context windows by the start of a model's name, for models that are not listed.
const CONTEXT_WINDOWS: &[(&str, u64)] = &[
    ("claude-", 200_000),
    ("gemini-", 1_048_576),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

impl ModelChoice {
    /// Returns the models of the three vendors' own services, for upstreams named `anthropic`, `openai` and `gemini`.
    pub fn known() -> Vec<Self> {
        let choice = |(model, dialect, upstream, context, output): &(&str, Api, &str, u64, u64)| Self {
            model: (*model).to_owned(),
            dialect: *dialect,
            upstream: (*upstream).to_owned(),
            context_tokens: Some(*context),
            max_output_tokens: Some(*output),
        };
        KNOWN_MODELS.iter().map(choice).collect()
    }
}

impl Catalog {
    /// Returns the entry of a model.
    pub fn model(&self, name: &str) -> Option<&ModelChoice> {
        self.models.iter().find(|known| known.model == name)
    }

    /// Returns the size of a model's context window in tokens.
    pub fn context_tokens(&self, model: &str) -> Option<u64> {
        let listed = self.model(model).and_then(|known| known.context_tokens);
        let bare = model.rsplit('/').next().unwrap_or(model);
        listed.or_else(|| CONTEXT_WINDOWS.iter().find(|(start, _)| bare.starts_with(start)).map(|(_, size)| *size))
    }

    /// Returns the maximum length of an answer in tokens.
    pub fn max_output_tokens(&self, model: &str) -> u64 {
        const DEFAULT: u64 = 8_192;
        const MAX: u64 = 32_000;
        let listed = self.model(model).and_then(|known| known.max_output_tokens);
        listed.unwrap_or(DEFAULT).min(MAX)
    }
}
