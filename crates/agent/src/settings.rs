//! Settings of a session, and their validation.

use sayso_wire::stream::Api;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;

/// Choices of a session. Keys of upstreams belong to the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Such as `claude-sonnet-4-5`.
    pub model: String,
    #[serde(with = "dialect_name")]
    pub dialect: Api,
    /// Name of the configured upstream.
    pub upstream: String,
    pub scenario: String,
    #[serde(default)]
    pub limits: Limits,
    /// Surfaces show thinking.
    #[serde(default)]
    pub show_thinking: bool,
    /// Budget of thinking in tokens. 0: as the model does by default.
    #[serde(default)]
    pub thinking_tokens: u32,
}

/// Limits of one invocation. 0 stands for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Requests to the model.
    pub turns: u32,
    /// Price in micro-dollars. Unknown prices count as 0.
    pub cost_micro_usd: u64,
    /// Milliseconds.
    pub time_ms: u64,
}

/// Settings to change. `None` keeps a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsPatch {
    pub model: Option<String>,
    /// Name of a dialect, see [`DIALECTS`].
    pub dialect: Option<String>,
    pub upstream: Option<String>,
    pub scenario: Option<String>,
    pub limits: Option<Limits>,
    pub show_thinking: Option<bool>,
    pub thinking_tokens: Option<u32>,
}

/// The names of the dialects in settings.
pub const DIALECTS: [(&str, Api); 4] = [
    ("anthropic-messages", Api::AnthropicMessages),
    ("openai-chat", Api::OpenAiChat),
    ("openai-responses", Api::OpenAiResponses),
    ("gemini", Api::Gemini),
];

/// Maximum budget of thinking, in tokens.
pub const MAX_THINKING_TOKENS: u32 = 128_000;

/// Returns the name of a dialect in settings.
pub fn name_of_dialect(api: Api) -> &'static str {
    match api {
        Api::AnthropicMessages => "anthropic-messages",
        Api::OpenAiChat => "openai-chat",
        Api::OpenAiResponses => "openai-responses",
        Api::Gemini => "gemini",
    }
}

/// Returns the dialect with this name.
pub fn dialect_named(name: &str) -> Option<Api> {
    DIALECTS.iter().find(|(known, _)| *known == name).map(|(_, api)| *api)
}

/// A value that settings do not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}: {value}` is not valid: {cause}")]
pub struct SettingsError {
    /// Name of the field, as in the protocol.
    pub field: &'static str,
    pub value: String,
    pub cause: String,
    /// Imperative with the accepted values.
    pub hint: String,
}

impl SettingsPatch {
    /// Applies the patch. A known model brings its dialect and upstream along, unless the patch names them. On failure the settings
    /// stay as they are.
    pub fn apply(&self, settings: &Settings, catalog: &Catalog) -> Result<Settings, SettingsError> {
        let mut next = settings.clone();
        if let Some(scenario) = &self.scenario {
            let Some(found) = catalog.scenarios.find(scenario) else {
                let hint = format!("use one of {}", catalog.scenarios.names().collect::<Vec<_>>().join(", "));
                return Err(error("scenario", scenario, "no such scenario", &hint));
            };
            next.scenario.clone_from(scenario);
            // The scenario asks for a model. A model in the patch wins.
            if let Some(known) = found.model.as_ref().and_then(|model| catalog.model(model)) {
                next.model.clone_from(&known.model);
                next.dialect = known.dialect;
                next.upstream.clone_from(&known.upstream);
            }
        }
        if let Some(model) = &self.model {
            if model.trim().is_empty() || model.chars().any(char::is_control) {
                return Err(error("model", model, "a model needs a name", "name a model, such as claude-sonnet-4-5"));
            }
            next.model.clone_from(model);
            if let Some(known) = catalog.model(model) {
                next.dialect = known.dialect;
                next.upstream.clone_from(&known.upstream);
            }
        }
        if let Some(name) = &self.dialect {
            next.dialect = dialect_named(name).ok_or_else(|| {
                let names: Vec<&str> = DIALECTS.iter().map(|(name, _)| *name).collect();
                error("dialect", name, "no such dialect", &format!("use one of {}", names.join(", ")))
            })?;
        }
        if let Some(upstream) = &self.upstream {
            next.upstream.clone_from(upstream);
        }
        self.check_upstream(&next, catalog)?;
        next.limits = self.limits.unwrap_or(next.limits);
        next.show_thinking = self.show_thinking.unwrap_or(next.show_thinking);
        if let Some(tokens) = self.thinking_tokens {
            if tokens > MAX_THINKING_TOKENS || (1..1024).contains(&tokens) {
                let hint = format!("use 0, or a number from 1024 to {MAX_THINKING_TOKENS}");
                return Err(error("thinking_tokens", &tokens.to_string(), "out of range", &hint));
            }
            next.thinking_tokens = tokens;
        }
        Ok(next)
    }

    fn check_upstream(&self, next: &Settings, catalog: &Catalog) -> Result<(), SettingsError> {
        let Some(upstream) = catalog.upstreams.iter().find(|known| known.name == next.upstream) else {
            let names: Vec<&str> = catalog.upstreams.iter().map(|known| known.name.as_str()).collect();
            let hint = if names.is_empty() {
                "configure an upstream first".to_owned()
            } else {
                format!("use one of {}", names.join(", "))
            };
            return Err(error("upstream", &next.upstream, "no such upstream", &hint));
        };
        if !upstream.dialects.contains(&next.dialect) {
            let dialects: Vec<&str> = upstream.dialects.iter().map(|api| name_of_dialect(*api)).collect();
            let cause = format!("the upstream `{}` does not speak it", upstream.name);
            let hint = format!("use one of {}, or another upstream", dialects.join(", "));
            return Err(error("dialect", name_of_dialect(next.dialect), &cause, &hint));
        }
        let chosen = self.model.is_some() || self.upstream.is_some();
        if chosen && !upstream.is_ready {
            return Err(error("upstream", &upstream.name, "it is not ready", &upstream.hint));
        }
        Ok(())
    }
}

fn error(field: &'static str, value: &str, cause: &str, hint: &str) -> SettingsError {
    SettingsError { field, value: value.to_owned(), cause: cause.to_owned(), hint: hint.to_owned() }
}

/// Serializes a dialect by its name in settings.
pub(crate) mod dialect_name {
    use sayso_wire::stream::Api;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
    pub(crate) fn serialize<S: Serializer>(api: &Api, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(super::name_of_dialect(*api))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Api, D::Error> {
        let name = String::deserialize(deserializer)?;
        super::dialect_named(&name).ok_or_else(|| Error::custom(format!("`{name}` is not a dialect")))
    }
}
