//! The values that settings accept: models, upstreams with their keys, scenarios and prices.

use sayso_agent::settings::{dialect_named, name_of_dialect};
use sayso_agent::{Catalog, ModelChoice, Scenarios, Settings, SettingsError, SettingsPatch, UpstreamChoice};
use sayso_review::ErrorKind;
use sayso_wire::stream::Api;

use crate::failure::Failure;
use crate::host::Host;
use crate::settings::AgentDefaults;

/// Scenario of new sessions without a configured one.
const DEFAULT_SCENARIO: &str = "CODE";

/// Builds the catalog from the present configuration.
pub(super) fn catalog(host: &Host, defaults: &AgentDefaults) -> Catalog {
    host.refresh_if_readable();
    let settings = host.proxy.interceptor.settings();
    let upstream = |name: &String| {
        // The subscription service of Codex has no key of its own.
        let dialects = dialects(name, defaults);
        let ready = host.settings.credential(name);
        let (is_ready, hint) = match ready {
            Ok(_) => (true, String::new()),
            Err(failure) => {
                let hint = failure.hint.map(|hint| format!(": {hint}")).unwrap_or_default();
                (false, format!("{}{hint}", failure.message))
            }
        };
        UpstreamChoice { name: name.clone(), dialects, is_ready, hint }
    };
    let tools: Vec<String> = host.agent_sessions.registry().names().map(str::to_owned).collect();
    let mut scenarios = Scenarios::built_in(&tools);
    let files = defaults.scenarios.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    scenarios.add_files(files, &tools);
    Catalog {
        models: ModelChoice::known(),
        upstreams: settings.upstreams.keys().filter(|name| *name != "chatgpt").map(upstream).collect(),
        scenarios,
        prices: settings.prices.clone(),
    }
}

fn dialects(name: &str, defaults: &AgentDefaults) -> Vec<Api> {
    let configured = defaults.dialects.get(name).filter(|dialects| !dialects.is_empty());
    match (configured, name) {
        (Some(dialects), _) => dialects.iter().filter_map(|name| dialect_named(name)).collect(),
        (None, "anthropic") => vec![Api::AnthropicMessages],
        (None, "openai") => vec![Api::OpenAiResponses, Api::OpenAiChat],
        (None, "gemini") => vec![Api::Gemini],
        // Compatible servers mostly speak this one first.
        (None, _) => vec![Api::OpenAiChat, Api::OpenAiResponses, Api::AnthropicMessages, Api::Gemini],
    }
}

/// Returns the settings of a new session: the configuration, then patches in order. Without a configured model, the first known model
/// of an upstream that is ready.
pub(super) fn new_settings(
    catalog: &Catalog,
    defaults: &AgentDefaults,
    patches: &[&SettingsPatch],
) -> Result<Settings, Failure> {
    let patches = || patches.iter().rev();
    let model = patches().find_map(|patch| patch.model.clone()).or_else(|| defaults.model.clone());
    let upstream = patches().find_map(|patch| patch.upstream.clone()).or_else(|| defaults.upstream.clone());
    let dialect = patches().find_map(|patch| patch.dialect.clone()).or_else(|| defaults.dialect.clone());
    let wanted = dialect.as_deref().and_then(dialect_named);
    let model = match (model, &upstream) {
        (Some(model), _) => model,
        (None, named) => first_model(catalog, named.as_deref(), wanted)?,
    };
    let known = catalog.model(&model);
    // An upstream for the model, else for the dialect, else the first one that is ready.
    let upstream = upstream.or_else(|| known.map(|known| known.upstream.clone())).or_else(|| {
        let speaks = |choice: &&UpstreamChoice| wanted.is_none_or(|api| choice.dialects.contains(&api));
        let ready = catalog.upstreams.iter().filter(|choice| choice.is_ready).find(speaks);
        ready.or_else(|| catalog.upstreams.iter().find(speaks)).map(|choice| choice.name.clone())
    });
    let upstream = upstream.unwrap_or_default();
    let speaks =
        |api: Api| catalog.upstreams.iter().any(|choice| choice.name == upstream && choice.dialects.contains(&api));
    let fitting = known.map(|known| known.dialect).filter(|api| speaks(*api));
    let first = || catalog.upstreams.iter().find(|choice| choice.name == upstream)?.dialects.first().copied();
    let base = Settings {
        model: model.clone(),
        dialect: wanted.or(fitting).or_else(first).unwrap_or(Api::AnthropicMessages),
        upstream: upstream.clone(),
        scenario: DEFAULT_SCENARIO.to_owned(),
        limits: defaults.limits,
        show_thinking: defaults.show_thinking,
        thinking_tokens: 0,
    };
    let scenario = patches().find_map(|patch| patch.scenario.clone()).or_else(|| defaults.scenario.clone());
    let patch = SettingsPatch {
        model: Some(model),
        dialect: Some(dialect.unwrap_or_else(|| name_of_dialect(base.dialect).to_owned())),
        upstream: Some(upstream),
        scenario,
        limits: patches().find_map(|patch| patch.limits),
        show_thinking: patches().find_map(|patch| patch.show_thinking),
        thinking_tokens: patches().find_map(|patch| patch.thinking_tokens),
    };
    patch.apply(&base, catalog).map_err(invalid)
}

/// Chooses a model if none is configured.
fn first_model(catalog: &Catalog, upstream: Option<&str>, dialect: Option<Api>) -> Result<String, Failure> {
    let fits = |model: &&ModelChoice| {
        upstream.is_none_or(|upstream| model.upstream == upstream) && dialect.is_none_or(|api| model.dialect == api)
    };
    let is_ready = |name: &str| catalog.upstreams.iter().any(|choice| choice.name == name && choice.is_ready);
    if let Some(model) = catalog.models.iter().filter(fits).find(|model| is_ready(&model.upstream)) {
        return Ok(model.model.clone());
    }
    let Some(first) = catalog.models.iter().find(fits) else {
        return Err(Failure::new(ErrorKind::InvalidArgs, "no model is chosen")
            .hint("name one with --model, or set `model` under [agent] in the configuration"));
    };
    let hint = catalog.upstreams.iter().find(|choice| choice.name == first.upstream).map(|choice| choice.hint.clone());
    Err(Failure::new(ErrorKind::InvalidArgs, "no upstream has a key").hint(hint.unwrap_or_default()))
}

/// Converts an error of settings. The field is named as in the protocol.
pub(crate) fn invalid(error: SettingsError) -> Failure {
    Failure::new(ErrorKind::InvalidArgs, error.to_string()).hint(error.hint)
}
