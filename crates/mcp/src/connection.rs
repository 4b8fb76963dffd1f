//! A connection to a running server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities, ClientConfig,
    ClientRequest, Implementation, JsonObject, PaginatedRequestParams, ProgressNotificationParam, RequestId,
    ServerResult, Tool,
};
use rmcp::service::{NotificationContext, Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError};
use rmcp::{ClientHandler, ServiceExt as _};
use sayso_tools::{ExternalTool, ToolOutput};
use tokio::sync::{broadcast, oneshot};

use crate::config::{ServerConfig, ServerTransport};
use crate::error::McpError;
use crate::line_limit::LineLimit;
use crate::names::tool_name;
use crate::process::{self, ProcessSettings, ServerProcess};
use crate::{http, result};

/// Maximum length of a message of a local server, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Maximum number of tools of a server.
const MAX_TOOLS: usize = 500;
/// Maximum number of pages of a list of tools.
const MAX_PAGES: usize = 100;
/// Maximum length of the description of a tool, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024;
/// Factor between the time limit without progress and the whole time limit of a call.
const MAX_TIMEOUTS_WITH_PROGRESS: u32 = 30;
/// Queued progress notifications. A slow reader loses the oldest.
const PROGRESS_QUEUE: usize = 64;

/// CallProgress of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProgress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Receiver of the progress of a call.
pub trait ProgressSink: Send + Sync {
    fn progress(&self, progress: CallProgress);
}

impl<F: Fn(CallProgress) + Send + Sync> ProgressSink for F {
    fn progress(&self, progress: CallProgress) {
        self(progress);
    }
}

/// A connection after its handshake.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    server: String,
    service: RunningService<RoleClient, Handler>,
    process: Option<ServerProcess>,
    /// Set when the server sent a message that is too long.
    excess: tokio::sync::Mutex<oneshot::Receiver<()>>,
}

/// Answers requests of the server, and passes its notifications on.
#[derive(Clone, Debug)]
struct Handler {
    progress: broadcast::Sender<ProgressNotificationParam>,
    are_tools_changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut client = Implementation::default();
        client.name = "sayso".into();
        client.version = env!("CARGO_PKG_VERSION").into();
        ClientConfig::new(ClientCapabilities::default(), client)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        // Without a call that listens, nobody needs it.
        let _ = self.progress.send(params);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.are_tools_changed.store(true, Ordering::Relaxed);
    }
}

/// Starts a server, or connects to it, within its time limit.
pub(crate) async fn connect(
    server: &str,
    config: &ServerConfig,
    settings: &ProcessSettings,
) -> Result<ServerConnection, McpError> {
    let failed = |reason: String| McpError::Start { server: server.to_owned(), reason };
    let handler =
        Handler { progress: broadcast::channel(PROGRESS_QUEUE).0, are_tools_changed: Arc::new(AtomicBool::new(false)) };
    let limit = config.startup_timeout();
    let late = || format!("it did not answer within {} s", limit.as_secs_f64());
    let (excess_sender, excess) = oneshot::channel();
    let (service, process) = match config.transport(server)? {
        ServerTransport::Http { url } => {
            let transport = http::transport(url, config).map_err(failed)?;
            match tokio::time::timeout(limit, handler.serve(transport)).await {
                Ok(Ok(service)) => (service, None),
                Ok(Err(error)) => return Err(failed(error.to_string())),
                Err(_) => return Err(failed(late())),
            }
        }
        ServerTransport::Process { command } => {
            let (process, stdin, stdout) = process::start(command, config, settings)
                .map_err(|error| failed(format!("cannot run `{command}`: {error}")))?;
            let stdout = LineLimit::new(stdout, MAX_MESSAGE_BYTES, excess_sender);
            match tokio::time::timeout(limit, handler.serve((stdout, stdin))).await {
                Ok(Ok(service)) => (service, Some(process)),
                Ok(Err(_)) => return Err(failed(process.end().await)),
                Err(_) => {
                    let output = process.stderr_tail();
                    let output = if output.is_empty() { output } else { format!("; its last output:\n{output}") };
                    return Err(failed(late() + &output));
                }
            }
        }
    };
    Ok(ServerConnection { server: server.to_owned(), service, process, excess: tokio::sync::Mutex::new(excess) })
}

impl ServerConnection {
    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Returns `true` once after the server changed its tools.
    pub(crate) fn take_tools_changed(&self) -> bool {
        self.service.service().are_tools_changed.swap(false, Ordering::Relaxed)
    }

    /// Lists the tools, page by page.
    pub(crate) async fn tools(&self, config: &ServerConfig) -> Result<Vec<ExternalTool>, McpError> {
        let mut tools = Vec::new();
        let (mut cursor, mut cursors) = (None, BTreeSet::new());
        for _ in 0..MAX_PAGES {
            let mut params = PaginatedRequestParams::default();
            params.cursor = cursor;
            let page =
                tokio::time::timeout(config.startup_timeout(), self.service.peer().list_tools(Some(params))).await;
            let page = match page {
                Ok(Ok(page)) => page,
                Ok(Err(error)) => return Err(self.error(error).await),
                Err(_) => return Err(self.timeout(config.startup_timeout())),
            };
            tools.extend(page.tools.into_iter().map(|tool| external(&self.server, tool)));
            match page.next_cursor {
                // A repeated cursor would never end.
                Some(next) if tools.len() < MAX_TOOLS && cursors.insert(next.clone()) => cursor = Some(next),
                _ => break,
            }
        }
        tools.truncate(MAX_TOOLS);
        Ok(tools)
    }

    /// Calls a tool. If the future is dropped, the server is told that the call is cancelled.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        config: &ServerConfig,
        sink: &dyn ProgressSink,
    ) -> Result<ToolOutput, McpError> {
        // Subscribed before the request is sent, so that no notification is lost.
        let mut notifications = self.service.service().progress.subscribe();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let timeout = config.call_timeout();
        let options = PeerRequestOptions::with_timeout(timeout)
            .reset_timeout_on_progress()
            .with_max_total_timeout(timeout * MAX_TIMEOUTS_WITH_PROGRESS);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let peer = self.service.peer();
        let handle = match peer.send_cancellable_request(request, options).await {
            Ok(handle) => handle,
            Err(error) => return Err(self.error(error).await),
        };
        let mut guard = CancelOnDrop { peer: peer.clone(), id: Some(handle.id.clone()) };
        let token = handle.progress_token.clone();
        let response = handle.await_response();
        tokio::pin!(response);
        let deliver = |notification: ProgressNotificationParam| {
            if notification.progress_token == token {
                let ProgressNotificationParam { progress, total, message, .. } = notification;
                sink.progress(CallProgress { done: progress, total, message });
            }
        };
        let answer = loop {
            tokio::select! {
                answer = &mut response => break answer,
                Ok(notification) = notifications.recv() => deliver(notification),
            }
        };
        guard.id = None;
        // Notifications that arrived before the answer are delivered before it.
        while let Ok(notification) = notifications.try_recv() {
            deliver(notification);
        }
        match answer {
            Ok(ServerResult::CallToolResult(called)) => Ok(result::output(called)),
            Ok(_) => Err(self.refused("it answered with another kind of result".to_owned())),
            Err(ServiceError::Timeout { timeout }) => Err(self.timeout(timeout)),
            Err(error) => Err(self.error(error).await),
        }
    }

    /// Closes the connection and ends a local server.
    pub(crate) async fn close(self) {
        let Self { service, process, .. } = self;
        // The process gets the end of its input, then is killed.
        let _ = service.cancel().await;
        drop(process);
    }

    fn refused(&self, reason: String) -> McpError {
        McpError::Refused { server: self.server.clone(), reason }
    }

    fn timeout(&self, limit: std::time::Duration) -> McpError {
        McpError::Timeout { server: self.server.clone(), seconds: limit.as_secs() }
    }

    async fn error(&self, error: ServiceError) -> McpError {
        if let ServiceError::McpError(error) = &error {
            return self.refused(error.message.to_string());
        }
        if self.excess.lock().await.try_recv().is_ok() {
            let reason = format!("it sent a message larger than {} MiB", MAX_MESSAGE_BYTES >> 20);
            return McpError::Ended { server: self.server.clone(), reason };
        }
        let reason = match &self.process {
            Some(process) => process.end().await,
            None => error.to_string(),
        };
        McpError::Ended { server: self.server.clone(), reason }
    }
}

/// Tells the server that a call is cancelled, unless it was answered.
struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some("the call was interrupted".to_owned()));
            let _ = peer.notify_cancelled(params).await;
        });
    }
}

fn external(server: &str, tool: Tool) -> ExternalTool {
    let mut description = tool.description.unwrap_or_default().into_owned();
    if description.len() > MAX_DESCRIPTION_BYTES {
        description.truncate(description.floor_char_boundary(MAX_DESCRIPTION_BYTES));
        description.push('…');
    }
    ExternalTool {
        name: tool_name(server, &tool.name),
        server: server.to_owned(),
        tool: tool.name.into_owned(),
        description,
        schema: serde_json::Value::Object((*tool.input_schema).clone()),
    }
}
