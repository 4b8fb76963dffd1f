//! Configuration of servers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An MCP server in the configuration. Either `command` or `url` is given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Program of a local server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables added to the environment of a local server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Address of a server over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of each request to a server over HTTP.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Maximum time of the start, in milliseconds.
    #[serde(default = "startup_timeout")]
    pub startup_timeout_ms: u64,
    /// Maximum time of a call without progress, in milliseconds.
    #[serde(default = "call_timeout")]
    pub call_timeout_ms: u64,
}

fn startup_timeout() -> u64 {
    30_000
}

fn call_timeout() -> u64 {
    120_000
}

/// The way to reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTransport<'c> {
    Process { command: &'c str },
    Http { url: &'c str },
}

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the MCP server `{server}` cannot be used: {reason}")]
pub struct BadServerConfig {
    pub server: String,
    pub reason: String,
}

impl ServerConfig {
    /// Creates the configuration of a local server.
    pub fn process(command: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self { command: Some(command.into()), args, ..Self::empty() }
    }

    /// Creates the configuration of a server over HTTP.
    pub fn http(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            url: None,
            headers: BTreeMap::new(),
            startup_timeout_ms: startup_timeout(),
            call_timeout_ms: call_timeout(),
        }
    }

    /// Returns the transport. Fails if the fields contradict each other.
    pub fn transport(&self, server: &str) -> Result<ServerTransport<'_>, BadServerConfig> {
        let bad = |reason: &str| Err(BadServerConfig { server: server.to_owned(), reason: reason.to_owned() });
        if server.is_empty() || server.contains("__") {
            return bad("its name is empty or contains `__`, which separates it from the names of its tools");
        }
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => bad("it has both `command` and `url`; give one of them"),
            (None, None) => bad("it has neither `command` nor `url`; give one of them"),
            (Some(command), None) if command.trim().is_empty() => bad("`command` is empty"),
            (Some(_), None) if !self.headers.is_empty() => bad("`headers` need `url`"),
            (None, Some(_)) if !self.args.is_empty() || !self.env.is_empty() => bad("`args` and `env` need `command`"),
            (None, Some(url)) if !url.starts_with("http://") && !url.starts_with("https://") => {
                bad("`url` starts with neither `http://` nor `https://`")
            }
            _ if self.startup_timeout_ms == 0 || self.call_timeout_ms == 0 => bad("a time limit is 0"),
            (Some(command), None) => Ok(ServerTransport::Process { command }),
            (None, Some(url)) => Ok(ServerTransport::Http { url }),
        }
    }

    pub(crate) fn startup_timeout(&self) -> Duration {
        Duration::from_millis(self.startup_timeout_ms)
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        Duration::from_millis(self.call_timeout_ms)
    }
}

impl fmt::Debug for ServerConfig {
    /// Omits the values of variables and headers, which may be credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("url", &self.url)
            .field("headers", &self.headers.keys())
            .finish_non_exhaustive()
    }
}
