//! Tests of the client of MCP servers.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests panic to fail, make files and start programs"
)]

mod configuration;
mod fake;
mod faults;
mod filesystem_server;
mod over_http;

use std::collections::BTreeMap;
use std::path::Path;

use sayso_mcp::{CallProgress, McpServers, ProcessSettings, ServerConfig};

/// Settings with an environment of only `PATH` and `HOME`.
pub(crate) fn settings(directory: &Path) -> ProcessSettings {
    ProcessSettings {
        prefix: Vec::new(),
        directory: directory.to_owned(),
        environment: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOME".into(), directory.as_os_str().to_owned()),
        ],
    }
}

/// Creates one server with the name `fake`.
pub(crate) fn servers(directory: &Path, config: ServerConfig) -> McpServers {
    McpServers::new(BTreeMap::from([("fake".to_owned(), config)]), settings(directory))
}

pub(crate) fn ignore_progress(_: CallProgress) {}
