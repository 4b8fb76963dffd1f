//! `[agent]` and the keys of `[upstream.NAME]`: the built-in agent.
//!
//! A key comes from an environment variable, or from a file that only the user can read. The workspace's file cannot name one, because
//! it cannot set an upstream.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use http::Uri;
use sayso_agent::Limits;
use sayso_review::ErrorKind;
use sayso_server::{AgentDefaults, CredentialHeader, McpServerConfig};
use serde::Deserialize;

use super::file::Span;
use super::request::{UpstreamSetting, credential_header};
use super::{IgnoredSetting, ValueOrigin, Valued};
use crate::error::CliError;

/// Size of the largest file with a key.
const MAX_KEY_BYTES: u64 = 64 << 10;
/// Variables with the keys of the vendors' own services.
const VENDOR_VARIABLES: [(&str, &[&str]); 3] = [
    ("anthropic", &["ANTHROPIC_API_KEY"]),
    ("openai", &["OPENAI_API_KEY"]),
    ("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
];

/// The table `[agent]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentTable {
    model: Option<String>,
    dialect: Option<String>,
    upstream: Option<String>,
    scenario: Option<String>,
    max_turns: Option<u32>,
    /// In dollars.
    max_cost: Option<f64>,
    max_time: Option<Span>,
    show_thinking: Option<bool>,
}

/// The tables `[mcp_servers.NAME]`.
pub(super) type McpTables = BTreeMap<String, McpServerConfig>;

/// Settings of the built-in agent, with their origins.
#[derive(Debug)]
pub(crate) struct AgentSettings {
    pub(crate) model: Valued<Option<String>>,
    pub(crate) dialect: Valued<Option<String>>,
    pub(crate) upstream: Valued<Option<String>>,
    pub(crate) scenario: Valued<Option<String>>,
    pub(crate) limits: Valued<Limits>,
    pub(crate) show_thinking: Valued<bool>,
    pub(crate) mcp_servers: BTreeMap<String, Valued<McpServerConfig>>,
}

impl AgentSettings {
    pub(super) fn built_in() -> Self {
        Self {
            model: Valued::default(None),
            dialect: Valued::default(None),
            upstream: Valued::default(None),
            scenario: Valued::default(None),
            limits: Valued::default(Limits::default()),
            show_thinking: Valued::default(true),
            mcp_servers: BTreeMap::new(),
        }
    }

    pub(super) fn apply(&mut self, table: AgentTable, servers: McpTables, file: &str) {
        for (name, server) in servers {
            // A workspace cannot replace a server of the user.
            self.mcp_servers
                .entry(name)
                .or_insert_with(|| Valued { value: server, origin: ValueOrigin::File(file.to_owned()) });
        }
        self.model.set(table.model.map(Some), file);
        self.dialect.set(table.dialect.map(Some), file);
        self.upstream.set(table.upstream.map(Some), file);
        self.scenario.set(table.scenario.map(Some), file);
        self.show_thinking.set(table.show_thinking, file);
        let old = self.limits.value;
        let limits = Limits {
            turns: table.max_turns.unwrap_or(old.turns),
            cost_micro_usd: table.max_cost.map_or(old.cost_micro_usd, micro_dollars),
            time_ms: table.max_time.map_or(old.time_ms, |span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)),
        };
        self.limits.set((limits != old).then_some(limits), file);
    }

    /// Returns the settings for an engine.
    pub(crate) fn defaults(
        &self,
        scenarios: Vec<(String, String)>,
        upstreams: &BTreeMap<String, Valued<UpstreamSetting>>,
    ) -> AgentDefaults {
        let named = || upstreams.iter().map(|(name, setting)| (name, &setting.value));
        AgentDefaults {
            model: self.model.value.clone(),
            dialect: self.dialect.value.clone(),
            upstream: self.upstream.value.clone(),
            scenario: self.scenario.value.clone(),
            limits: self.limits.value,
            show_thinking: self.show_thinking.value,
            scenarios,
            dialects: named().map(|(name, setting)| (name.clone(), setting.dialects.clone())).collect(),
            key_variables: named().flat_map(|(name, setting)| key_variables(name, setting)).collect(),
            mcp_servers: self.mcp_servers.iter().map(|(name, server)| (name.clone(), server.value.clone())).collect(),
        }
    }
}

/// Converts dollars. Negative amounts and amounts that are no number count as no limit.
fn micro_dollars(dollars: f64) -> u64 {
    let micro = (dollars * 1e6).round();
    #[expect(clippy::cast_sign_loss, reason = "the amount is positive, and the cast saturates")]
    if micro > 0.0 { micro as u64 } else { 0 }
}

/// Removes the settings of a workspace's file that is not trusted. An upstream is the user's own choice in any case.
pub(super) fn restrict(table: &mut AgentTable, is_trusted: bool, ignored: &mut Vec<IgnoredSetting>) {
    let mut ignore = |key, is_set: bool, reason| {
        if is_set {
            ignored.push(IgnoredSetting { key, reason });
        }
    };
    ignore("agent.upstream", table.upstream.take().is_some(), "only the user's own file can set it");
    if !is_trusted {
        let is_set = table.model.is_some() || table.dialect.is_some() || table.scenario.is_some();
        let has_limits = table.max_turns.is_some() || table.max_cost.is_some() || table.max_time.is_some();
        ignore("agent", is_set || has_limits || table.show_thinking.is_some(), "the file is not trusted");
        *table = AgentTable::default();
    }
}

/// Removes the servers of a workspace's file that is not trusted: each is a program that the agent starts.
pub(super) fn restrict_servers(servers: &mut McpTables, is_trusted: bool, ignored: &mut Vec<IgnoredSetting>) {
    if !is_trusted && !servers.is_empty() {
        servers.clear();
        ignored.push(IgnoredSetting { key: "mcp_servers", reason: "the file is not trusted" });
    }
}

/// Checks the servers of a file.
pub(super) fn check_servers(servers: &McpTables, file: &str) -> Result<(), CliError> {
    for (name, server) in servers {
        server.transport(name).map_err(|error| {
            CliError::invalid_input(format!("cannot read {file}"))
                .because(error.to_string())
                .hint(format!("correct [mcp_servers.{name}]"))
        })?;
    }
    Ok(())
}

/// Returns the variables that may have the key of an upstream.
pub(crate) fn key_variables(name: &str, setting: &UpstreamSetting) -> Vec<String> {
    if let Some(variable) = &setting.key_variable {
        vec![variable.clone()]
    } else {
        let vendor = VENDOR_VARIABLES.iter().find(|(vendor, _)| *vendor == name);
        vendor.map(|(_, variables)| variables.iter().map(ToString::to_string).collect()).unwrap_or_default()
    }
}

/// Returns the credential header of an upstream; `None` if the upstream needs none. `keys` is the folder with key files.
pub(crate) fn credential(
    name: &str,
    setting: &UpstreamSetting,
    keys: Option<&Path>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<CredentialHeader>, CliError> {
    let variables = key_variables(name, setting);
    let from_variable = variables.iter().find_map(|name| variable(name).filter(|key| !key.is_empty()));
    let file = setting.key_file.clone().or_else(|| Some(keys?.join(name)));
    let key = match (from_variable, &file) {
        (Some(key), _) => Some(key),
        (None, Some(file)) => read_key(file)?,
        (None, None) => None,
    };
    let Some(key) = key else {
        if setting.key_file.is_none() && setting.key_variable.is_none() && is_local(&setting.url) {
            return Ok(None);
        }
        return Err(no_key(name, &variables, file.as_deref()));
    };
    credential_header(name, setting, &key).map(Some).ok_or_else(|| {
        CliError::invalid_input(format!("the key of upstream `{name}` cannot be sent as a header"))
            .hint("check it for line breaks and other control characters")
    })
}

/// `true` for a server of this machine, which usually needs no key.
fn is_local(url: &Uri) -> bool {
    url.host().is_some_and(|host| {
        let host = host.trim_matches(['[', ']']);
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

fn no_key(name: &str, variables: &[String], file: Option<&Path>) -> CliError {
    let mut places: Vec<String> = variables.iter().take(1).map(|variable| format!("set {variable}")).collect();
    places.extend(file.map(|file| {
        let file = file.display();
        format!("write the key to {file} (chmod 600)")
    }));
    CliError::invalid_input(format!("there is no key for upstream `{name}`"))
        .hint(format!("{}; `sayso demo` needs no key", places.join(", or ")))
}

/// Reads a key from a file that only the user can read; `None` if there is no file.
fn read_key(path: &Path) -> Result<Option<String>, CliError> {
    let failed = |error: &std::io::Error| CliError::io(format!("cannot read the key file {}", path.display()), error);
    // The mode of the opened file is checked, so that a file cannot be replaced in between.
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let mode = file.metadata().map_err(|error| failed(&error))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.display();
        return Err(CliError::new(
            ErrorKind::InvalidArgs,
            format!("other users can read the key file {path} (mode {mode:o})"),
        )
        .hint(format!("run `chmod 600 {path}`")));
    }
    let mut text = String::new();
    file.take(MAX_KEY_BYTES).read_to_string(&mut text).map_err(|error| failed(&error))?;
    let key = text.trim();
    if key.is_empty() {
        return Err(CliError::invalid_input(format!("the key file {} is empty", path.display()))
            .hint("write the key on one line"));
    }
    Ok(Some(key.to_owned()))
}

/// Returns the scenario files of folders, as name and content, in order of their names.
pub(crate) fn scenario_files(folders: &[PathBuf]) -> Vec<(String, String)> {
    const MAX_FILES: usize = 200;
    const MAX_BYTES: u64 = 1 << 20;
    let mut files = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_scenario(path)).collect();
        paths.sort();
        paths.truncate(MAX_FILES);
        for path in paths {
            let mut text = String::new();
            let read = std::fs::File::open(&path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
            // A file that cannot be read is reported like one that cannot be parsed.
            let text = read.map_or_else(|error| format!("# cannot read this file: {error}"), |_| text);
            files.push((path.display().to_string(), text));
        }
    }
    files
}

fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn setting(url: &'static str) -> UpstreamSetting {
        UpstreamSetting::vendor(Uri::from_static(url))
    }

    fn header(found: Result<Option<CredentialHeader>, CliError>) -> Option<String> {
        let (name, value) = found.unwrap_or_else(|error| panic!("{}", error.message_with_hint()))?;
        Some(format!("{name}: {}", value.to_str().unwrap()))
    }

    #[test]
    fn key_comes_from_variable_then_private_file() {
        let keys = tempfile::tempdir().unwrap();
        let anthropic = setting("https://api.anthropic.com");
        let file = keys.path().join("anthropic");
        std::fs::write(&file, "from file\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let with = |name: &'static str| move |asked: &str| (asked == name).then(|| "from variable".to_owned());
        let ask =
            |variable: &'static str| header(credential("anthropic", &anthropic, Some(keys.path()), with(variable)));
        assert_eq!(ask("ANTHROPIC_API_KEY").as_deref(), Some("x-api-key: from variable"));
        assert_eq!(ask("OTHER").as_deref(), Some("x-api-key: from file"));
        let local = setting("http://127.0.0.1:1");
        assert_eq!(header(credential("local", &local, None, |_| None)), None, "a local server needs no key");
    }

    #[test]
    fn readable_key_file_is_refused_with_remedy() {
        let keys = tempfile::tempdir().unwrap();
        let file = keys.path().join("openai");
        std::fs::write(&file, "secret").unwrap();
        for mode in [0o640, 0o604, 0o644] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let failed = credential("openai", &setting("https://api.openai.com"), Some(keys.path()), |_| None);
            let text = failed.unwrap_err().message_with_hint();
            assert!(text.contains(&format!("chmod 600 {}", file.display())) && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn missing_key_names_places_and_demo() {
        let failed = credential("gemini", &setting("https://x.example"), Some(Path::new("/no/keys")), |_| None);
        let text = failed.unwrap_err().message_with_hint();
        assert!(text.contains("GEMINI_API_KEY") && text.contains("/no/keys/gemini"), "{text}");
        assert!(text.contains("sayso demo"), "{text}");
    }

    #[test]
    fn untrusted_workspace_adds_no_mcp_server() {
        let tables = || toml::from_str::<McpTables>("[files]\ncommand = 'theirs'").unwrap();
        let (mut untrusted, mut trusted, mut ignored) = (tables(), tables(), Vec::new());
        restrict_servers(&mut untrusted, false, &mut ignored);
        restrict_servers(&mut trusted, true, &mut ignored);
        assert_eq!((untrusted.len(), trusted.len(), ignored.len()), (0, 1, 1));
        let mut settings = AgentSettings::built_in();
        settings.apply(AgentTable::default(), toml::from_str("[files]\ncommand = 'mine'").unwrap(), "user");
        settings.apply(AgentTable::default(), trusted, "workspace");
        assert_eq!(settings.mcp_servers["files"].value.command.as_deref(), Some("mine"));
    }

    #[test]
    fn contradictory_mcp_server_is_named_with_file() {
        let tables = toml::from_str::<McpTables>("[files]\ncommand = 'x'\nurl = 'https://x.example'").unwrap();
        let text = check_servers(&tables, "config.toml").unwrap_err().message_with_hint();
        assert!(text.contains("config.toml") && text.contains("[mcp_servers.files]"), "{text}");
    }

    #[test]
    fn untrusted_workspace_sets_nothing_for_agent() {
        let table = || toml::from_str::<AgentTable>("model = 'm'\nupstream = 'u'\nmax_turns = 3").unwrap();
        let (mut untrusted, mut trusted, mut ignored) = (table(), table(), Vec::new());
        restrict(&mut untrusted, false, &mut ignored);
        assert_eq!((untrusted.model, untrusted.max_turns), (None, None));
        restrict(&mut trusted, true, &mut ignored);
        assert_eq!((trusted.model.as_deref(), trusted.upstream), (Some("m"), None));
        let keys: Vec<&str> = ignored.iter().map(|ignored| ignored.key).collect();
        assert_eq!(keys, ["agent.upstream", "agent", "agent.upstream"]);
    }
}
