//! A configured server: started when needed, and again after its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::JsonObject;
use sayso_tools::{ExternalTool, ToolOutput};

use crate::config::ServerConfig;
use crate::connection::{self, ProgressSink, ServerConnection};
use crate::error::McpError;
use crate::process::ProcessSettings;

/// Number of ends in a row after which a server is not started again.
const MAX_FAILURES: u32 = 5;

/// ServerState of a server, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerStatus {
    /// Nothing needed it yet, or it was closed.
    Stopped,
    Starting,
    Running,
    /// The last start or call failed.
    Failed {
        error: McpError,
    },
}

#[derive(Debug)]
pub(crate) struct ConfiguredServer {
    name: String,
    config: ServerConfig,
    settings: Arc<ProcessSettings>,
    /// Locked during a start.
    starting: tokio::sync::Mutex<()>,
    state: Mutex<ServerState>,
}

#[derive(Debug, Default)]
struct ServerState {
    connection: Option<Arc<ServerConnection>>,
    /// Ends and failed starts since the last successful call.
    failures: u32,
    last_error: Option<McpError>,
}

impl ConfiguredServer {
    pub(crate) fn new(name: String, config: ServerConfig, settings: Arc<ProcessSettings>) -> Self {
        Self { name, config, settings, starting: tokio::sync::Mutex::default(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the connection; starts the server if it does not run. Concurrent callers start it once.
    async fn connection(&self) -> Result<Arc<ServerConnection>, McpError> {
        let _starting = self.starting.lock().await;
        if let Some(connection) = self.usable_connection()? {
            return Ok(connection);
        }
        let connected = connection::connect(&self.name, &self.config, &self.settings).await;
        let mut state = self.state();
        match connected {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                state.failures += 1;
                state.last_error = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Returns the open connection, or `None` if the server has to be started. Fails if it ended too often.
    fn usable_connection(&self) -> Result<Option<Arc<ServerConnection>>, McpError> {
        let mut state = self.state();
        if let Some(connection) = state.connection.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Some(Arc::clone(connection)));
        }
        state.connection = None;
        if state.failures >= MAX_FAILURES {
            let reason = state.last_error.as_ref().map(ToString::to_string).unwrap_or_default();
            return Err(McpError::GivenUp { server: self.name.clone(), times: state.failures, reason });
        }
        Ok(None)
    }

    pub(crate) async fn tools(&self) -> Result<Vec<ExternalTool>, McpError> {
        let connection = self.connection().await?;
        let tools = connection.tools(&self.config).await;
        self.note(&connection, tools.as_ref().err());
        tools
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        sink: &dyn ProgressSink,
    ) -> Result<ToolOutput, McpError> {
        let connection = self.connection().await?;
        let called = connection.call(tool, arguments, &self.config, sink).await;
        self.note(&connection, called.as_ref().err());
        called
    }

    /// Records the result of a call. A server that ended loses its connection.
    fn note(&self, used: &Arc<ServerConnection>, error: Option<&McpError>) {
        let mut state = self.state();
        state.last_error = error.cloned();
        match error {
            Some(McpError::Ended { .. }) => {
                // Calls that run at the same time see the same end; it counts once.
                if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, used)) {
                    state.failures += 1;
                    state.connection = None;
                }
            }
            Some(_) => {}
            None => state.failures = 0,
        }
    }

    pub(crate) fn take_tools_changed(&self) -> bool {
        self.state().connection.as_ref().is_some_and(|connection| connection.take_tools_changed())
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let state = self.state();
        match (&state.connection, &state.last_error) {
            (Some(connection), _) if !connection.is_closed() => ServerStatus::Running,
            _ if self.starting.try_lock().is_err() => ServerStatus::Starting,
            (_, Some(error)) => ServerStatus::Failed { error: error.clone() },
            _ => ServerStatus::Stopped,
        }
    }

    /// Ends the server. A call that still runs keeps its connection until it ends.
    pub(crate) async fn close(&self) {
        let connection = self.state().connection.take();
        if let Some(connection) = connection.and_then(Arc::into_inner) {
            connection.close().await;
        }
    }
}
