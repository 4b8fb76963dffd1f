//! All configured servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use sayso_tools::{ExternalTool, ToolOutput};
use serde_json::Value;

use crate::config::ServerConfig;
use crate::connection::ProgressSink;
use crate::error::McpError;
use crate::process::ProcessSettings;
use crate::server::{ConfiguredServer, ServerStatus};

/// The configured servers by name. Cheap to clone; all clones share the connections.
#[derive(Clone, Debug)]
pub struct McpServers {
    servers: Arc<BTreeMap<String, ConfiguredServer>>,
}

impl McpServers {
    /// Creates the servers. Starts none of them.
    pub fn new(configs: BTreeMap<String, ServerConfig>, settings: ProcessSettings) -> Self {
        let settings = Arc::new(settings);
        let server = |(name, config): (String, ServerConfig)| {
            (name.clone(), ConfiguredServer::new(name, config, Arc::clone(&settings)))
        };
        Self { servers: Arc::new(configs.into_iter().map(server).collect()) }
    }

    /// Returns the names of the servers, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// Lists the tools of all servers, by server. Starts servers that do not run, all at the same time.
    pub async fn tools(&self) -> Vec<(String, Result<Vec<ExternalTool>, McpError>)> {
        let lists = self.servers.iter().map(|(name, server)| async move { (name.clone(), server.tools().await) });
        join_all(lists).await
    }

    /// Calls a tool of a server. `tool` is the name on the server. Dropping the future cancels the call on the server.
    ///
    /// A result with `is_error` is an answer of the tool. An error concerns the server.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: &Value,
        progress: &dyn ProgressSink,
    ) -> Result<ToolOutput, McpError> {
        let known = self.find(server)?;
        let arguments = arguments.as_object().cloned().ok_or_else(|| McpError::Refused {
            server: server.to_owned(),
            reason: "the arguments are not a JSON object".to_owned(),
        })?;
        known.call(tool, arguments, progress).await
    }

    /// Returns the names of the servers that changed their tools since the last call of this function.
    pub fn take_changed(&self) -> Vec<String> {
        let changed = self.servers.iter().filter(|(_, server)| server.take_tools_changed());
        changed.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the state of a server.
    pub fn status(&self, server: &str) -> Result<ServerStatus, McpError> {
        Ok(self.find(server)?.status())
    }

    /// Ends all servers. A later call starts them again.
    pub async fn close(&self) {
        join_all(self.servers.values().map(ConfiguredServer::close)).await;
    }

    fn find(&self, server: &str) -> Result<&ConfiguredServer, McpError> {
        self.servers.get(server).ok_or_else(|| McpError::UnknownServer { server: server.to_owned() })
    }
}
