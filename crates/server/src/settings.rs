//! The user's configuration, as far as an engine needs it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use sayso_agent::Limits;
use sayso_gate::{Rules, SnapshotLimits};
use sayso_review::Rule;

use crate::failure::Failure;

/// Values of one version of the configuration.
#[derive(Debug)]
pub struct Current {
    pub rules: Rules,
    /// Limits on content stored to undo commands.
    pub snapshots: SnapshotLimits,
    /// Time after which a pending change is denied; `None` is never.
    pub deadline: Option<Duration>,
    /// Prefix of task branches.
    pub branch_prefix: String,
    /// Interception of requests to models.
    pub requests: sayso_proxy::Settings,
    /// The built-in agent.
    pub agent: AgentDefaults,
}

/// Settings of new sessions of the built-in agent. `None` takes the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentDefaults {
    pub model: Option<String>,
    /// Name of a dialect, such as `anthropic-messages`.
    pub dialect: Option<String>,
    pub upstream: Option<String>,
    pub scenario: Option<String>,
    pub limits: Limits,
    pub show_thinking: bool,
    /// Scenario files, as name and content. A later file replaces an earlier one with the same scenario.
    pub scenarios: Vec<(String, String)>,
    /// Dialects of configured upstreams, by name.
    pub dialects: BTreeMap<String, Vec<String>>,
    /// Environment variables with keys. Commands of the agent do not get them.
    pub key_variables: Vec<String>,
    /// MCP servers by name.
    pub mcp_servers: BTreeMap<String, sayso_mcp::ServerConfig>,
}

/// A header with the key of an upstream.
pub type CredentialHeader = (HeaderName, HeaderValue);

/// Source of the configuration. The program implements it, so that the server reads no configuration files.
pub trait Settings: Send + Sync + fmt::Debug {
    /// Returns the configuration if it may have changed since the last call. Must be fast: called before every policy decision.
    /// `has_running_writer` tells if a permitted change is not finished. Its edits of the configuration need an approval of their
    /// own before they count.
    fn changed(&self, has_running_writer: &dyn Fn() -> bool) -> Result<Option<Current>, Failure>;
    /// Returns the fallback for an unreadable configuration. It denies everything.
    fn strictest(&self) -> Result<Current, Failure>;
    /// Appends a rule to the user's configuration and returns the file name for display.
    fn append_rule(&self, rule: &Rule) -> Result<String, Failure>;
    /// Returns the text that [`Settings::append_rule`] would write. Changes nothing.
    fn rule_text(&self, rule: &Rule) -> Result<RuleText, Failure>;
    /// Returns the credential for the built-in agent's requests to an upstream; `None` if the upstream needs none. Fails if the key is
    /// missing or its file is readable by others. The engine stores and journals no credential.
    fn credential(&self, upstream: &str) -> Result<Option<CredentialHeader>, Failure>;
}

/// A rule as text of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// File name for display.
    pub file: String,
    pub toml: String,
}
