//! MCP servers of the built-in agent: connected before an invocation, called with approved arguments.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sayso_mcp::{CallProgress, McpServers, ProcessSettings, ServerConfig};
use sayso_tools::{ExternalTool, Registry};
use serde_json::Value;

use super::{LiveSession, lock};
use crate::agent_registry::MARK;
use crate::host::{Host, now};

/// Time for all servers to end with the engine.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

/// The configured servers, and all tools of the agent.
#[derive(Debug)]
pub(super) struct McpConnections {
    state: Mutex<McpState>,
}

#[derive(Debug)]
struct McpState {
    configs: BTreeMap<String, ServerConfig>,
    /// `None` until an invocation needs them.
    servers: Option<McpServers>,
    /// Tools by server, as last listed. A server that ended keeps its tools: the next call starts it again, and the prompt stays.
    tools: BTreeMap<String, Vec<ExternalTool>>,
    registry: Arc<Registry>,
}

impl Default for McpConnections {
    fn default() -> Self {
        let registry = Arc::new(Registry::builtin());
        Self {
            state: Mutex::new(McpState { configs: BTreeMap::new(), servers: None, tools: BTreeMap::new(), registry }),
        }
    }
}

impl McpConnections {
    fn state(&self) -> MutexGuard<'_, McpState> {
        lock(&self.state)
    }

    /// Returns the built-in tools and those of connected servers.
    pub(super) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.state().registry)
    }

    /// Replaces the servers if their configuration changed. Calls that still run keep their servers.
    pub(super) fn configure(&self, configs: &BTreeMap<String, ServerConfig>) {
        let mut state = self.state();
        if state.configs != *configs {
            let registry = Arc::new(Registry::builtin());
            *state = McpState { configs: configs.clone(), servers: None, tools: BTreeMap::new(), registry };
        }
    }

    /// Returns the servers, or `None` if none is configured.
    fn servers(&self, host: &Host) -> Option<McpServers> {
        let mut state = self.state();
        if state.configs.is_empty() {
            return None;
        }
        if state.servers.is_none() {
            state.servers = Some(McpServers::new(state.configs.clone(), process_settings(host)));
        }
        state.servers.clone()
    }

    /// Starts servers that do not run, and lists their tools. Returns a sentence for each server that cannot be used.
    async fn connect(&self, host: &Host) -> Vec<String> {
        let Some(servers) = self.servers(host) else { return Vec::new() };
        let listed = servers.tools().await;
        let mut problems = Vec::new();
        let mut state = self.state();
        for (server, tools) in listed {
            match tools {
                // A reload of the configuration may have removed the server meanwhile.
                Ok(tools) if state.configs.contains_key(&server) => drop(state.tools.insert(server, tools)),
                Ok(_) => {}
                Err(error) => {
                    let hint = error.hint();
                    let hint = if hint.is_empty() { String::new() } else { format!(" (hint: {hint})") };
                    problems.push(format!("{error}{hint}"));
                }
            }
        }
        let mut registry = Registry::builtin();
        registry.add_external(state.tools.values().flatten().cloned());
        state.registry = Arc::new(registry);
        problems
    }

    /// Calls a tool. Dropping the future cancels the call on the server.
    pub(super) async fn call(
        &self,
        host: &Host,
        server: &str,
        tool: &str,
        arguments: &Value,
    ) -> Result<String, String> {
        let servers = self.servers(host).ok_or_else(|| format!("no MCP server `{server}` is configured"))?;
        let ignore_progress = |_: CallProgress| {};
        let output =
            servers.call(server, tool, arguments, &ignore_progress).await.map_err(|error| error.to_string())?;
        let mut text = output.text;
        if !output.images.is_empty() {
            text.push_str(&format!("\n[{} images were omitted]", output.images.len()));
        }
        if output.is_error { Err(text) } else { Ok(text) }
    }

    /// Ends all servers.
    pub(super) async fn close(&self) {
        let servers = self.state().servers.take();
        if let Some(servers) = servers
            && tokio::time::timeout(CLOSE_LIMIT, servers.close()).await.is_err()
        {
            tracing::warn!("MCP servers did not end in time");
        }
    }
}

/// Returns the settings of server processes: the kernel marks of an agent, and no variable of the engine but `PATH` and `HOME`.
fn process_settings(host: &Host) -> ProcessSettings {
    let program = host.program.clone().into_os_string();
    let engine = std::process::id().to_string();
    let prefix = [program, OsString::from("under-gate"), OsString::from("agent"), OsString::from(engine)];
    let mut environment =
        vec![(OsString::from("PATH"), host.environment.path.clone()), (OsString::from(MARK), OsString::from("mcp"))];
    environment.extend(host.environment.home.clone().map(|home| (OsString::from("HOME"), home)));
    ProcessSettings { prefix: prefix.into(), directory: host.root.clone(), environment }
}

/// Connects the servers before an invocation. The agent is told once about each server that cannot be used.
pub(crate) async fn connect_servers(host: &Arc<Host>, live: &Arc<LiveSession>) {
    host.refresh_if_readable();
    let problems = host.agent_sessions.mcp.connect(host).await;
    for problem in live.replace_mcp_problems(problems) {
        tracing::warn!(session = live.id, problem, "an MCP server cannot be used");
        let text = format!("{problem}. Its tools may be missing; go on without them, and tell the user.");
        let (host, session) = (Arc::clone(host), live.id.clone());
        let queued = tokio::task::spawn_blocking(move || host.gate.queue_message(&session, None, &text, now())).await;
        if let Ok(Err(error)) = queued {
            tracing::warn!(%error, "cannot queue a message about an MCP server");
        }
    }
}
