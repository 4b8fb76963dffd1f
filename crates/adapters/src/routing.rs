//! Routing of an agent's model requests through sayso, and the upstreams that the agent would use without it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::Agent;

/// The settings that the user has made for an agent.
pub trait AgentEnvironment {
    /// Returns an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// Returns the text of the agent's configuration file: `config.toml` of Codex, `opencode.json` of opencode.
    fn configuration(&self) -> Option<String>;
}

/// Upstreams of an agent's model requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamRouting {
    agent: Agent,
    /// Upstream URLs that the user has configured, by the last path segment under which sayso serves them.
    pub upstreams: BTreeMap<String, String>,
    /// Limits of the routing, for the user.
    pub notes: Vec<String>,
    /// Names of the configured providers of Codex (at most one) or opencode.
    providers: Vec<String>,
    no_proxy: String,
}

/// Settings with which an agent sends its model requests to sayso.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchSettings {
    /// Additional environment variables.
    pub variables: Vec<(String, String)>,
    /// Arguments to insert before the user's own.
    pub arguments: Vec<String>,
}

impl UpstreamRouting {
    /// Reads the agent's upstreams from its environment and configuration.
    pub fn new(agent: Agent, environment: &dyn AgentEnvironment) -> Self {
        let variable = |name: &str| environment.variable(name).filter(|value| !value.trim().is_empty());
        let (mut upstreams, mut notes, mut providers) = (BTreeMap::new(), Vec::new(), Vec::new());
        match agent {
            Agent::Claude => {
                upstreams.extend(variable("ANTHROPIC_BASE_URL").map(|url| ("anthropic".to_owned(), url)));
                for other in ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"] {
                    if variable(other).is_some_and(|value| value != "0") {
                        notes.push(format!("{other} is set: its requests bypass sayso"));
                    }
                }
            }
            Agent::Codex => {
                let config =
                    environment.configuration().and_then(|text| text.parse::<toml::Table>().ok()).unwrap_or_default();
                let provider = config.get("model_provider").and_then(toml::Value::as_str);
                let url = provider.and_then(|name| config.get("model_providers")?.get(name)?.get("base_url")?.as_str());
                let own = config.get("openai_base_url").and_then(toml::Value::as_str);
                upstreams.extend(url.or(own).map(|url| ("codex".to_owned(), url.to_owned())));
                providers.extend(provider.filter(|_| url.is_some()).map(str::to_owned));
            }
            Agent::Gemini => {
                upstreams.extend(variable("GOOGLE_GEMINI_BASE_URL").map(|url| ("gemini".to_owned(), url)));
                if variable("GEMINI_API_KEY").is_none() {
                    notes.push("Gemini CLI uses the address only with GEMINI_API_KEY, which is not set".to_owned());
                }
            }
            Agent::Copilot => match variable("COPILOT_PROVIDER_BASE_URL") {
                Some(url) => drop(upstreams.insert("copilot".to_owned(), url)),
                None => notes.push(
                    "Copilot CLI can be routed only with a provider of your own: set COPILOT_PROVIDER_TYPE, \
                     COPILOT_PROVIDER_API_KEY and COPILOT_MODEL"
                        .to_owned(),
                ),
            },
            Agent::Opencode => {
                let config: Value =
                    environment.configuration().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
                let configured = config["provider"].as_object().into_iter().flatten();
                for (name, provider) in configured {
                    if let Some(url) = provider.pointer("/options/baseURL").and_then(Value::as_str) {
                        upstreams.insert(format!("opencode-{name}"), url.to_owned());
                        providers.push(name.clone());
                    }
                }
            }
        }
        let proxied = variable("NO_PROXY").or_else(|| variable("no_proxy"));
        let no_proxy = proxied.map_or_else(String::new, |hosts| format!("{hosts},")) + "127.0.0.1,localhost";
        Self { agent, upstreams, notes, providers, no_proxy }
    }

    /// Returns the settings for the endpoint at this URL: `http://127.0.0.1:7777/p/<capability>`.
    pub fn launch_settings(&self, endpoint: &str) -> LaunchSettings {
        let mut settings = LaunchSettings::default();
        let mut set = |name: &str, value: String| settings.variables.push((name.to_owned(), value));
        match self.agent {
            Agent::Claude => {
                set("ANTHROPIC_BASE_URL", format!("{endpoint}/anthropic"));
                // The watchdog aborts and retries a stream that has carried only keep-alives for five minutes.
                set("CLAUDE_ENABLE_STREAM_WATCHDOG", "0".to_owned());
            }
            Agent::Gemini => set("GOOGLE_GEMINI_BASE_URL", format!("{endpoint}/gemini")),
            Agent::Copilot if self.upstreams.is_empty() => {
                set("COPILOT_PROVIDER_BASE_URL", format!("{endpoint}/openai/v1"));
            }
            Agent::Copilot => set("COPILOT_PROVIDER_BASE_URL", format!("{endpoint}/copilot")),
            Agent::Opencode => set("OPENCODE_CONFIG_CONTENT", self.opencode(endpoint).to_string()),
            Agent::Codex => {}
        }
        for name in ["NO_PROXY", "no_proxy"] {
            set(name, self.no_proxy.clone());
        }
        if self.agent == Agent::Codex {
            let key = match self.providers.first() {
                Some(provider) => format!("model_providers.{provider}.base_url"),
                None => "openai_base_url".to_owned(),
            };
            settings.arguments = vec!["-c".to_owned(), format!("{key}=\"{endpoint}/codex\"")];
        }
        settings
    }

    /// Returns a configuration for opencode with the base URLs of providers only.
    fn opencode(&self, endpoint: &str) -> Value {
        let mut providers = serde_json::Map::new();
        for (name, path) in [("anthropic", "anthropic/v1"), ("openai", "openai/v1"), ("google", "gemini/v1beta")] {
            providers.insert(name.to_owned(), json!({"options": {"baseURL": format!("{endpoint}/{path}")}}));
        }
        for name in &self.providers {
            let url = format!("{endpoint}/opencode-{name}");
            providers.insert(name.clone(), json!({"options": {"baseURL": url}}));
        }
        json!({"provider": providers})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct User(&'static [(&'static str, &'static str)], Option<&'static str>);

    impl AgentEnvironment for User {
        fn variable(&self, name: &str) -> Option<String> {
            self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        }

        fn configuration(&self) -> Option<String> {
            self.1.map(str::to_owned)
        }
    }

    const ENDPOINT: &str = "http://127.0.0.1:7/p/c";

    fn route(agent: Agent, user: &User) -> (BTreeMap<String, String>, LaunchSettings) {
        let routing = UpstreamRouting::new(agent, user);
        (routing.upstreams.clone(), routing.launch_settings(ENDPOINT))
    }

    fn value<'s>(settings: &'s LaunchSettings, name: &str) -> Option<&'s str> {
        settings.variables.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn configured_base_urls_become_upstreams() {
        let (upstreams, settings) = route(Agent::Claude, &User(&[("ANTHROPIC_BASE_URL", "http://gateway")], None));
        assert_eq!(upstreams["anthropic"], "http://gateway");
        assert_eq!(value(&settings, "ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:7/p/c/anthropic"));
        let config = "model_provider='x'\n[model_providers.x]\nbase_url='http://m/v1'\n";
        let (upstreams, settings) = route(Agent::Codex, &User(&[], Some(config)));
        assert_eq!(upstreams["codex"], "http://m/v1");
        assert_eq!(settings.arguments, ["-c", "model_providers.x.base_url=\"http://127.0.0.1:7/p/c/codex\""]);
        let config = r#"{"provider":{"own":{"options":{"baseURL":"http://m/v1"}}}}"#;
        let (upstreams, settings) = route(Agent::Opencode, &User(&[], Some(config)));
        assert_eq!(upstreams["opencode-own"], "http://m/v1");
        assert!(value(&settings, "OPENCODE_CONFIG_CONTENT").is_some_and(|text| text.contains("/p/c/opencode-own")));
    }

    #[test]
    fn empty_environment_configures_no_upstreams() {
        let empty = User(&[], None);
        for agent in Agent::ALL {
            assert!(route(agent, &empty).0.is_empty(), "{agent}");
        }
        assert_eq!(route(Agent::Codex, &empty).1.arguments, ["-c", "openai_base_url=\"http://127.0.0.1:7/p/c/codex\""]);
    }

    #[test]
    fn loopback_bypasses_the_users_proxy() {
        let (_, settings) = route(Agent::Gemini, &User(&[("NO_PROXY", "intern")], None));
        assert_eq!(value(&settings, "NO_PROXY"), Some("intern,127.0.0.1,localhost"));
        assert_eq!(value(&settings, "no_proxy"), Some("intern,127.0.0.1,localhost"));
    }
}
