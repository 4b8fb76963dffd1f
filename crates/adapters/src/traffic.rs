//! How each agent is told to send its requests through us, and where they would have gone.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use sayso_review::ErrorKind;
use serde_json::{Value, json};
use thiserror::Error;

/// An agent whose requests can be sent through us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Copilot CLI.
    Copilot,
    /// opencode.
    Opencode,
}

/// A name that is no agent's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no agent whose settings are known")]
pub struct UnknownSpeaker(String);

impl UnknownSpeaker {
    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidArgs
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "the agents are claude, codex, gemini, copilot and opencode"
    }
}

impl Speaker {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Copilot, Self::Opencode];

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
        }
    }
}

impl fmt::Display for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
            Self::Opencode => "opencode",
        })
    }
}

impl FromStr for Speaker {
    type Err = UnknownSpeaker;

    fn from_str(name: &str) -> Result<Self, UnknownSpeaker> {
        Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| UnknownSpeaker(name.to_owned()))
    }
}

/// What an agent's user has told it.
pub trait Told {
    /// A variable of its environment.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of its own configuration: Codex's `config.toml`, opencode's `opencode.json`.
    fn configuration(&self) -> Option<String>;
}

/// Where an agent's requests go, and how to have them come here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointing {
    speaker: Speaker,
    /// Where they would have gone by what the user has told it, by the names under which they come here.
    pub upstreams: BTreeMap<String, String>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Codex's provider, or opencode's.
    providers: Vec<String>,
    no_proxy: String,
}

/// What to tell an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    /// Variables for its environment.
    pub variables: Vec<(String, String)>,
    /// Arguments that come first.
    pub arguments: Vec<String>,
}

impl Pointing {
    /// Finds out where an agent's requests would go.
    pub fn new(speaker: Speaker, told: &dyn Told) -> Self {
        let variable = |name: &str| told.variable(name).filter(|value| !value.trim().is_empty());
        let (mut upstreams, mut notes, mut providers) = (BTreeMap::new(), Vec::new(), Vec::new());
        match speaker {
            Speaker::Claude => {
                upstreams.extend(variable("ANTHROPIC_BASE_URL").map(|url| ("anthropic".to_owned(), url)));
                for other in ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"] {
                    if variable(other).is_some_and(|value| value != "0") {
                        notes.push(format!("{other} is set, so that its requests do not come through sayso"));
                    }
                }
            }
            Speaker::Codex => {
                let config = told.configuration().and_then(|text| text.parse::<toml::Table>().ok()).unwrap_or_default();
                let provider = config.get("model_provider").and_then(toml::Value::as_str);
                let url = provider.and_then(|name| config.get("model_providers")?.get(name)?.get("base_url")?.as_str());
                let own = config.get("openai_base_url").and_then(toml::Value::as_str);
                upstreams.extend(url.or(own).map(|url| ("codex".to_owned(), url.to_owned())));
                providers.extend(provider.filter(|_| url.is_some()).map(str::to_owned));
            }
            Speaker::Gemini => {
                upstreams.extend(variable("GOOGLE_GEMINI_BASE_URL").map(|url| ("gemini".to_owned(), url)));
                if variable("GEMINI_API_KEY").is_none() {
                    notes.push("Gemini CLI heeds the address only where it uses GEMINI_API_KEY".to_owned());
                }
            }
            Speaker::Copilot => match variable("COPILOT_PROVIDER_BASE_URL") {
                Some(url) => drop(upstreams.insert("copilot".to_owned(), url)),
                None => notes.push(
                    "Copilot CLI sends its requests elsewhere only with a provider of your own: set COPILOT_PROVIDER_TYPE, \
                     COPILOT_PROVIDER_API_KEY and COPILOT_MODEL, too"
                        .to_owned(),
                ),
            },
            Speaker::Opencode => {
                let config: Value = told.configuration().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
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
        Self { speaker, upstreams, notes, providers, no_proxy }
    }

    /// What to tell the agent, given where we are: `http://127.0.0.1:7777/p/<capability>`.
    pub fn tell(&self, here: &str) -> Telling {
        let mut telling = Telling::default();
        let mut set = |name: &str, value: String| telling.variables.push((name.to_owned(), value));
        match self.speaker {
            Speaker::Claude => {
                set("ANTHROPIC_BASE_URL", format!("{here}/anthropic"));
                // Else it gives up on a stream that has only signs of life after five minutes, and asks again.
                set("CLAUDE_ENABLE_STREAM_WATCHDOG", "0".to_owned());
            }
            Speaker::Gemini => set("GOOGLE_GEMINI_BASE_URL", format!("{here}/gemini")),
            Speaker::Copilot if self.upstreams.is_empty() => {
                set("COPILOT_PROVIDER_BASE_URL", format!("{here}/openai/v1"));
            }
            Speaker::Copilot => set("COPILOT_PROVIDER_BASE_URL", format!("{here}/copilot")),
            Speaker::Opencode => set("OPENCODE_CONFIG_CONTENT", self.opencode(here).to_string()),
            Speaker::Codex => {}
        }
        for name in ["NO_PROXY", "no_proxy"] {
            set(name, self.no_proxy.clone());
        }
        if self.speaker == Speaker::Codex {
            let key = match self.providers.first() {
                Some(provider) => format!("model_providers.{provider}.base_url"),
                None => "openai_base_url".to_owned(),
            };
            telling.arguments = vec!["-c".to_owned(), format!("{key}=\"{here}/codex\"")];
        }
        telling
    }

    /// opencode's configuration: the addresses of providers, and nothing else.
    fn opencode(&self, here: &str) -> Value {
        let mut providers = serde_json::Map::new();
        for (name, path) in [("anthropic", "anthropic/v1"), ("openai", "openai/v1"), ("google", "gemini/v1beta")] {
            providers.insert(name.to_owned(), json!({"options": {"baseURL": format!("{here}/{path}")}}));
        }
        for name in &self.providers {
            let url = format!("{here}/opencode-{name}");
            providers.insert(name.clone(), json!({"options": {"baseURL": url}}));
        }
        json!({"provider": providers})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct User(&'static [(&'static str, &'static str)], Option<&'static str>);

    impl Told for User {
        fn variable(&self, name: &str) -> Option<String> {
            self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        }

        fn configuration(&self) -> Option<String> {
            self.1.map(str::to_owned)
        }
    }

    const HERE: &str = "http://127.0.0.1:7/p/c";

    fn told(speaker: Speaker, user: &User) -> (BTreeMap<String, String>, Telling) {
        let pointing = Pointing::new(speaker, user);
        (pointing.upstreams.clone(), pointing.tell(HERE))
    }

    fn value<'t>(telling: &'t Telling, name: &str) -> Option<&'t str> {
        telling.variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn what_the_user_has_told_an_agent_is_where_its_requests_go() {
        let (upstreams, telling) = told(Speaker::Claude, &User(&[("ANTHROPIC_BASE_URL", "http://gateway")], None));
        assert_eq!(upstreams["anthropic"], "http://gateway");
        assert_eq!(value(&telling, "ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:7/p/c/anthropic"));
        let config = "model_provider='x'\n[model_providers.x]\nbase_url='http://m/v1'\n";
        let (upstreams, telling) = told(Speaker::Codex, &User(&[], Some(config)));
        assert_eq!(upstreams["codex"], "http://m/v1");
        assert_eq!(telling.arguments, ["-c", "model_providers.x.base_url=\"http://127.0.0.1:7/p/c/codex\""]);
        let config = r#"{"provider":{"own":{"options":{"baseURL":"http://m/v1"}}}}"#;
        let (upstreams, telling) = told(Speaker::Opencode, &User(&[], Some(config)));
        assert_eq!(upstreams["opencode-own"], "http://m/v1");
        assert!(value(&telling, "OPENCODE_CONFIG_CONTENT").is_some_and(|text| text.contains("/p/c/opencode-own")));
    }

    #[test]
    fn without_a_word_from_the_user_the_makers_own_addresses_count() {
        let nothing = User(&[], None);
        for speaker in Speaker::ALL {
            assert!(told(speaker, &nothing).0.is_empty(), "{speaker}");
        }
        assert_eq!(
            told(Speaker::Codex, &nothing).1.arguments,
            ["-c", "openai_base_url=\"http://127.0.0.1:7/p/c/codex\""]
        );
    }

    #[test]
    fn a_proxy_of_the_users_is_not_asked_for_this_machine() {
        let (_, telling) = told(Speaker::Gemini, &User(&[("NO_PROXY", "intern")], None));
        assert_eq!(value(&telling, "NO_PROXY"), Some("intern,127.0.0.1,localhost"));
        assert_eq!(value(&telling, "no_proxy"), Some("intern,127.0.0.1,localhost"));
    }
}
