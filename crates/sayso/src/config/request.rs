//! `[request]` and `[upstream.NAME]`: treatment and upstreams of requests to models.
//!
//! The workspace's file is not the user's own. It can pause more requests and hold more tools, never fewer. Even trusted, it cannot set
//! an upstream, because credentials are sent there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Uri};
use sayso_agent::settings::{DIALECTS, dialect_named};
use sayso_proxy::{Keep, Pause, PauseRule, Settings, Upstream};
use sayso_wire::Scope;
use sayso_wire::price::{ModelPrice, PriceTable};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::file::{Size, Span};
use super::{IgnoredSetting, ValueOrigin, Valued};

/// The table `[request]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestTable {
    grace: Option<Span>,
    keep_alive: Option<Span>,
    log: Option<LogChoice>,
    monitor: Option<usize>,
    max_body_size: Option<Size>,
    max_concurrent: Option<usize>,
    preview_limit: Option<usize>,
    scope: Option<Scope>,
    #[serde(default)]
    hold_tools: Vec<String>,
    #[serde(default)]
    rule: Vec<RuleTable>,
    /// Prices of models. They precede the built-in ones.
    #[serde(default)]
    price: Vec<ModelPrice>,
}

/// The requests that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LogChoice {
    All,
    /// Paused requests, and requests with saved edits.
    Paused,
}

/// A table `[[request.rule]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    name: Option<String>,
    #[serde(default = "yes")]
    pause: bool,
    agent: Option<String>,
    subagent: Option<bool>,
    larger_than: Option<Size>,
    tool_result_tokens: Option<u64>,
    text: Option<String>,
}

fn yes() -> bool {
    true
}

/// A table `[upstream.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpstreamTable {
    url: Option<UpstreamUrl>,
    key_variable: Option<String>,
    key_header: Option<String>,
    /// File with the key, readable by the user only.
    key_file: Option<PathBuf>,
    /// APIs that it speaks, for the built-in agent.
    #[serde(default, deserialize_with = "dialects")]
    dialects: Vec<String>,
}

/// Reads names of dialects.
fn dialects<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    match names.iter().find(|name| dialect_named(name).is_none()) {
        None => Ok(names),
        Some(unknown) => {
            let known: Vec<&str> = DIALECTS.iter().map(|(name, _)| *name).collect();
            Err(D::Error::custom(format!("`{unknown}` is not a dialect; use {}", known.join(", "))))
        }
    }
}

/// URL of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UpstreamUrl(Uri);

impl UpstreamUrl {
    fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        // Without credentials, which belong into variables.
        let plain = uri.query().is_none() && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        (known && plain).then_some(Self(uri))
    }
}

impl<'de> Deserialize<'de> for UpstreamUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(format!(
                "`{text}` is not a URL such as \"https://api.example.com\", without user or query"
            ))
        })
    }
}

/// An upstream, and the variable with its key for replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamSetting {
    pub(crate) url: Uri,
    pub(crate) key_variable: Option<String>,
    pub(super) key_header: Option<String>,
    pub(super) key_file: Option<PathBuf>,
    pub(crate) dialects: Vec<String>,
}

impl UpstreamSetting {
    pub(super) fn vendor(url: Uri) -> Self {
        Self { url, key_variable: None, key_header: None, key_file: None, dialects: Vec::new() }
    }
}

/// Settings for requests, with their origins.
#[derive(Debug)]
pub(crate) struct RequestSettings {
    pub(crate) grace: Valued<Duration>,
    pub(crate) keep_alive: Valued<Duration>,
    pub(crate) keep: Valued<Keep>,
    pub(crate) monitor: Valued<usize>,
    pub(crate) max_body_size: Valued<usize>,
    pub(crate) max_concurrent: Valued<usize>,
    pub(crate) preview_limit: Valued<Option<usize>>,
    pub(crate) scope: Valued<Scope>,
    pub(crate) hold_tools: Vec<Valued<String>>,
    /// The first match decides.
    pub(crate) rules: Vec<Valued<PauseRule>>,
    pub(crate) upstreams: BTreeMap<String, Valued<UpstreamSetting>>,
    pub(crate) prices: Vec<Valued<ModelPrice>>,
}

impl RequestSettings {
    pub(super) fn built_in() -> Self {
        let usual = Settings::usual();
        let upstream =
            |(name, upstream): (String, Upstream)| (name, Valued::default(UpstreamSetting::vendor(upstream.base)));
        Self {
            grace: Valued::default(usual.grace),
            keep_alive: Valued::default(usual.keep_alive),
            keep: Valued::default(usual.keep),
            monitor: Valued::default(usual.monitor),
            max_body_size: Valued::default(usual.max_body_size),
            max_concurrent: Valued::default(usual.max_concurrent),
            preview_limit: Valued::default(usual.preview_limit),
            scope: Valued::default(usual.scope),
            hold_tools: Vec::new(),
            rules: Vec::new(),
            upstreams: usual.upstreams.into_iter().map(upstream).collect(),
            prices: Vec::new(),
        }
    }

    /// Applies a file. Its rules precede the rules of earlier files.
    pub(super) fn apply(&mut self, table: RequestTable, upstreams: BTreeMap<String, UpstreamTable>, file: &str) {
        let size = |size: Size| usize::try_from(size.0).unwrap_or(usize::MAX);
        self.grace.set(table.grace.map(|span| span.0), file);
        self.keep_alive.set(table.keep_alive.map(|span| span.0), file);
        let keep = |choice| if choice == LogChoice::All { Keep::All } else { Keep::WhatPauses };
        self.keep.set(table.log.map(keep), file);
        self.monitor.set(table.monitor, file);
        self.max_body_size.set(table.max_body_size.map(size), file);
        self.max_concurrent.set(table.max_concurrent, file);
        self.preview_limit.set(table.preview_limit.map(Some), file);
        self.scope.set(table.scope, file);
        let origin = ValueOrigin::File(file.to_owned());
        for value in table.hold_tools {
            if !self.hold_tools.iter().any(|known| known.value == value) {
                self.hold_tools.push(Valued { value, origin: origin.clone() });
            }
        }
        let rule = |(at, rule): (usize, RuleTable)| {
            let value = PauseRule {
                name: rule.name.unwrap_or_else(|| format!("rule {} of {file}", at + 1)),
                pause: if rule.pause { Pause::Yes } else { Pause::No },
                agent: rule.agent,
                subagent: rule.subagent,
                larger_than: rule.larger_than.map(size),
                tool_result_tokens: rule.tool_result_tokens,
                text: rule.text,
            };
            Valued { value, origin: origin.clone() }
        };
        let rules: Vec<_> = table.rule.into_iter().enumerate().map(rule).collect();
        self.rules.splice(0..0, rules);
        let price = |value| Valued { value, origin: origin.clone() };
        self.prices.splice(0..0, table.price.into_iter().map(price));
        for (name, table) in upstreams {
            let known = self.upstreams.get(&name).map(|known| known.value.clone());
            let Some(url) = table.url.map(|url| url.0).or(known.map(|known| known.url)) else { continue };
            let UpstreamTable { key_variable, key_header, key_file, dialects, .. } = table;
            let value = UpstreamSetting { url, key_variable, key_header, key_file, dialects };
            self.upstreams.insert(name, Valued { value, origin: origin.clone() });
        }
    }

    /// Applies the variables `SAYSO_<NAME>_UPSTREAM`.
    pub(super) fn apply_environment(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        for (name, setting) in &mut self.upstreams {
            let key = format!(
                "SAYSO_{}_UPSTREAM",
                name.to_uppercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "_")
            );
            let Some(value) = variable(&key).filter(|value| !value.is_empty()) else { continue };
            let url = UpstreamUrl::parse(&value)
                .ok_or_else(|| format!("`{value}` in {key} is not a URL such as https://api.example.com"))?;
            *setting = Valued {
                value: UpstreamSetting { url: url.0, ..setting.value.clone() },
                origin: ValueOrigin::File(key),
            };
        }
        Ok(())
    }

    /// Returns the settings for the proxy. Keys come from the environment.
    pub(crate) fn settings(&self, variable: impl Fn(&str) -> Option<String>) -> Settings {
        let upstream = |(name, setting): (&String, &Valued<UpstreamSetting>)| {
            let credential = credential(name, &setting.value, &variable);
            (name.clone(), Upstream { base: setting.value.url.clone(), credential })
        };
        Settings {
            grace: self.grace.value,
            keep_alive: self.keep_alive.value,
            keep: self.keep.value,
            monitor: self.monitor.value,
            max_body_size: self.max_body_size.value,
            max_concurrent: self.max_concurrent.value,
            rules: self.rules.iter().map(|rule| rule.value.clone()).collect(),
            hold_tools: self.hold_tools.iter().map(|tool| tool.value.clone()).collect(),
            scope: self.scope.value,
            preview_limit: self.preview_limit.value,
            upstreams: self.upstreams.iter().map(upstream).collect(),
            prices: PriceTable::with_rows(self.prices.iter().map(|price| price.value.clone()).collect()),
            ..Settings::usual()
        }
    }
}

/// Returns the header with the key. `None` without a key.
fn credential(
    name: &str,
    setting: &UpstreamSetting,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<(HeaderName, HeaderValue)> {
    let key = variable(setting.key_variable.as_deref()?).filter(|key| !key.is_empty())?;
    credential_header(name, setting, &key)
}

/// Returns the header with a key, in the form of the upstream. `None` if the key cannot be a header.
pub(super) fn credential_header(name: &str, setting: &UpstreamSetting, key: &str) -> Option<(HeaderName, HeaderValue)> {
    let header = match (&setting.key_header, name) {
        (Some(header), _) => header.parse().ok()?,
        (None, "anthropic") => HeaderName::from_static("x-api-key"),
        (None, "gemini") => HeaderName::from_static("x-goog-api-key"),
        (None, _) => AUTHORIZATION,
    };
    let key = if header == AUTHORIZATION { format!("Bearer {key}") } else { key.to_owned() };
    let mut value = HeaderValue::try_from(key).ok()?;
    value.set_sensitive(true);
    Some((header, value))
}

/// Removes settings that the workspace's file may not make.
pub(super) fn restrict(
    table: &mut RequestTable,
    upstreams: &mut BTreeMap<String, UpstreamTable>,
    is_trusted: bool,
    ignored: &mut Vec<IgnoredSetting>,
) {
    let mut ignore = |key, is_set: bool, reason| {
        if is_set {
            ignored.push(IgnoredSetting { key, reason });
        }
    };
    let user_only = "only the user's own file can set it";
    ignore("upstream", !std::mem::take(upstreams).is_empty(), user_only);
    ignore("request.log", table.log.take().is_some(), user_only);
    ignore("request.scope", table.scope.take().is_some(), user_only);
    ignore("request.price", !std::mem::take(&mut table.price).is_empty(), user_only);
    let rules = table.rule.len();
    table.rule.retain(|rule| rule.pause);
    ignore("request.rule with pause = false", table.rule.len() < rules, "only the user's own file can loosen it");
    if is_trusted {
        return;
    }
    let reason = "the file is not trusted";
    ignore("request.grace", table.grace.take().is_some(), reason);
    ignore("request.keep_alive", table.keep_alive.take().is_some(), reason);
    ignore("request.monitor", table.monitor.take().is_some(), reason);
    ignore("request.max_body_size", table.max_body_size.take().is_some(), reason);
    ignore("request.max_concurrent", table.max_concurrent.take().is_some(), reason);
    ignore("request.preview_limit", table.preview_limit.take().is_some(), reason);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn upstream(text: &str) -> UpstreamTable {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn key_variable_sets_the_upstreams_header() {
        let mut requests = RequestSettings::built_in();
        let tables = BTreeMap::from([
            ("anthropic".to_owned(), upstream("key_variable = 'KEY'")),
            ("local".to_owned(), upstream("url = 'http://localhost:1/v1'\nkey_variable = 'KEY'")),
            ("odd".to_owned(), upstream("url = 'https://odd.example'\nkey_variable = 'KEY'\nkey_header = 'x-key'")),
            ("none".to_owned(), upstream("url = 'https://none.example'\nkey_variable = 'OTHER'")),
        ]);
        requests.apply(RequestTable::default(), tables, "config.toml");
        let settings = requests.settings(|name| (name == "KEY").then(|| "secret".to_owned()));
        let header = |name: &str| {
            let credential = settings.upstreams[name].credential.as_ref();
            credential.map(|(header, value)| format!("{header}: {}", value.to_str().unwrap()))
        };
        assert_eq!(header("anthropic").as_deref(), Some("x-api-key: secret"));
        assert_eq!(header("local").as_deref(), Some("authorization: Bearer secret"));
        assert_eq!(header("odd").as_deref(), Some("x-key: secret"));
        assert_eq!([header("none"), header("openai")], [None, None]);
        assert_eq!(settings.upstreams["anthropic"].base, "https://api.anthropic.com");
    }

    #[test]
    fn environment_overrides_upstream_url() {
        let mut requests = RequestSettings::built_in();
        let variable = |name: &str| (name == "SAYSO_ANTHROPIC_UPSTREAM").then(|| "http://127.0.0.1:9".to_owned());
        requests.apply_environment(variable).unwrap();
        assert_eq!(requests.upstreams["anthropic"].value.url, "http://127.0.0.1:9");
        let wrong = requests.apply_environment(|_| Some("ftp://x".to_owned())).unwrap_err();
        assert!(wrong.contains("`ftp://x` in SAYSO_"), "{wrong}");
        for address in ["x", "https://user:password@x", "https://x/?key=1", "/path"] {
            assert_eq!(UpstreamUrl::parse(address), None, "{address}");
        }
    }

    #[test]
    fn workspace_file_can_only_pause_more() {
        let text = "log = 'paused'\nscope = 'global'\ngrace = '1 s'\nhold_tools = ['Bash']\n[[rule]]\ntext = 'deploy'\n[[rule]]\npause = false";
        let mut table: RequestTable = toml::from_str(text).unwrap();
        let mut upstreams = BTreeMap::from([("anthropic".to_owned(), upstream("url = 'https://evil.example'"))]);
        let mut ignored = Vec::new();
        restrict(&mut table, &mut upstreams, true, &mut ignored);
        let keys: Vec<&str> = ignored.iter().map(|ignored| ignored.key).collect();
        assert_eq!(keys, ["upstream", "request.log", "request.scope", "request.rule with pause = false"]);
        let mut requests = RequestSettings::built_in();
        requests.apply(
            toml::from_str("[[rule]]\nname = 'mine'\npause = false").unwrap(),
            BTreeMap::new(),
            "config.toml",
        );
        requests.apply(table, upstreams, "sayso.toml");
        let settings = requests.settings(|_| None);
        let rules: Vec<(&str, Pause)> = settings.rules.iter().map(|rule| (rule.name.as_str(), rule.pause)).collect();
        assert_eq!(rules, [("rule 1 of sayso.toml", Pause::Yes), ("mine", Pause::No)]);
        assert_eq!(settings.hold_tools, ["Bash"]);
        assert_eq!(settings.grace, Duration::from_secs(1));
        assert_eq!(settings.upstreams["anthropic"].base, "https://api.anthropic.com");
    }
}
