//! Connections: accepting, limiting and serving them.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use connectrpc::{ConnectRpcService, DeadlinePolicy, ErrorCode, Limits, Router};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use sayso_api::LocalStream;
use sayso_api::proto::{
    AgentServiceExt as _, ConversationServiceExt as _, EditorServiceExt as _, IntentServiceExt as _,
    RequestServiceExt as _, ReviewServiceExt as _, ToolServiceExt as _, WorkspaceServiceExt as _,
};
use sayso_marks::PeerProcess;
use sayso_proxy::Proxy;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::agent_sessions::SurfaceTiming;
use crate::caller::{Credential, Peer, SocketKind};
use crate::editors::EditorTiming;
use crate::guard::{self, Guard};
use crate::host::Host;
use crate::login::Logins;
use crate::proxy_thread::starts_with_model_request;
use crate::respond::{Responder, bytes_body, reject, respond, respond_to_agent};
use crate::service::agent::AgentCalls;
use crate::service::conversation::ConversationReader;
use crate::service::editor::EditorCalls;
use crate::service::intent::Intents;
use crate::service::request::Requests;
use crate::service::review::Review;
use crate::service::tool::Tools;
use crate::service::workspace::Workspaces;
use crate::start::loopback;

/// Fits a proposal with several files of 16 MB.
const MAX_REQUEST_BYTES: usize = 96 << 20;
/// Fits the body of a typical request to a model in one read, since each read has a fixed cost.
const READ_BUFFER_BYTES: usize = 1 << 20;
/// Limit on path and headers. Agents send a few kilobytes.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Limit on open connections, per kind of transport.
const MAX_CONNECTIONS: usize = 4_096;
/// Interval of HTTP/2 pings on an idle connection.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);
/// Time limit for open requests when the engine stops.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// Time limits for clients. Not configurable; tests use shorter ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From accepting a connection to the head of its first request.
    pub head: Duration,
    /// From a response to the head of the next request. Agents and HTTP libraries keep idle connections.
    pub idle: Duration,
    /// From the head of a request to the end of its body.
    pub body: Duration,
    /// From a request to an editor to its answer.
    pub editor: EditorTiming,
    /// From a request of the built-in agent to a surface to its answer.
    pub agent: SurfaceTiming,
}

impl Timing {
    pub const DEFAULT: Self = Self {
        head: Duration::from_secs(10),
        idle: Duration::from_mins(2),
        body: Duration::from_mins(1),
        editor: EditorTiming::DEFAULT,
        agent: SurfaceTiming::DEFAULT,
    };
}

/// Path prefix of requests to models.
pub(crate) const MODEL_PATH: &str = "/p/";

/// Purpose of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// All calls except verdicts.
    Api,
    /// All calls.
    Verdicts,
    /// Requests to models only.
    Proxy,
}

/// Serves connections. Clones share limits.
#[derive(Clone)]
pub(crate) struct ConnectionServer {
    service: ConnectRpcService,
    // Separate limits, so that unauthenticated TCP clients cannot exhaust the connections of local ones.
    unix_permits: Arc<Semaphore>,
    tcp_permits: Arc<Semaphore>,
    host: Arc<Host>,
    timing: Timing,
    /// Runtime for requests to models. `None`: the same as for calls.
    proxy_runtime: Option<Handle>,
}

/// Context of an accepted connection.
struct Accepted {
    responder: Responder,
    listener: Listener,
    /// Deadline for the head of the first request.
    deadline: Instant,
    watcher: Watcher,
    permit: OwnedSemaphorePermit,
}

/// Handler of a request.
enum Target {
    Proxy(Arc<Proxy>),
    Services(ConnectRpcService),
}

impl ConnectionServer {
    pub(crate) fn new(host: &Arc<Host>, timing: Timing, proxy_runtime: Option<Handle>) -> Self {
        let router = Router::new();
        let router = Arc::new(Review(Arc::clone(host))).register(router);
        let router = Arc::new(Intents(Arc::clone(host))).register(router);
        let router = Arc::new(Workspaces(Arc::clone(host))).register(router);
        let router = Arc::new(Tools(Arc::clone(host))).register(router);
        let router = Arc::new(Requests(Arc::clone(host))).register(router);
        let router = Arc::new(ConversationReader(Arc::clone(host))).register(router);
        let router = Arc::new(EditorCalls(Arc::clone(host))).register(router);
        let router = Arc::new(AgentCalls(Arc::clone(host))).register(router);
        let limits =
            Limits::default().with_max_request_body_size(MAX_REQUEST_BYTES).with_max_message_size(MAX_REQUEST_BYTES);
        // A deadline of the client also ends a stream.
        let deadlines = DeadlinePolicy::new().with_enforce_on_streams(true);
        let service = ConnectRpcService::new(router).with_limits(limits).with_deadline_policy(deadlines);
        let permits = || Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let (unix_permits, tcp_permits) = (permits(), permits());
        Self { service, unix_permits, tcp_permits, host: Arc::clone(host), timing, proxy_runtime }
    }

    fn first_request_deadline(&self) -> Instant {
        Instant::now() + self.timing.head
    }

    /// Serves a Unix socket until the engine stops.
    pub(crate) async fn serve_unix(self, socket: UnixListener, listener: Listener) {
        let graceful = GracefulShutdown::new();
        // `sayso run` forwards the TCP connections of its agent here, so hosts and origins are checked as over TCP.
        let guard = match listener {
            Listener::Api | Listener::Verdicts => None,
            Listener::Proxy => {
                Some((Arc::new(Guard::new(None, Vec::new(), Vec::new(), Logins::default())), loopback(0)))
            }
        };
        let own_user = rustix::process::geteuid().as_raw();
        loop {
            let Some(((stream, _), permit)) = self.accept(&self.unix_permits, || socket.accept()).await else { break };
            // The directory excludes other users already. Root is admitted.
            let id = match stream.peer_cred() {
                Ok(peer) if peer.uid() == own_user || peer.uid() == 0 => {
                    peer.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
                }
                _ => {
                    tracing::warn!("rejected a connection of another user");
                    continue;
                }
            };
            let (kind, process) = match listener {
                Listener::Verdicts => (SocketKind::Verdicts, PeerProcess::of_socket(&stream).ok().map(Arc::new)),
                Listener::Api | Listener::Proxy => (SocketKind::Path, None),
            };
            match stream.into_std().and_then(LocalStream::new) {
                Ok(stream) => {
                    let peer = Peer::Process { id, socket: kind };
                    let responder = Responder { peer, guard: guard.clone(), process };
                    let (server, watcher) = (self.clone(), graceful.watcher());
                    let deadline = self.first_request_deadline();
                    let accepted = Accepted { responder, listener, deadline, watcher, permit };
                    tokio::spawn(async move { server.serve_connection(stream, accepted).await });
                }
                Err(error) => tracing::warn!(%error, "cannot serve a connection"),
            }
        }
        drop(socket);
        // Connections that remain after the limit are dropped.
        let _ = tokio::time::timeout(SHUTDOWN_LIMIT, graceful.shutdown()).await;
    }

    /// Serves TCP until the engine stops.
    pub(crate) async fn serve_tcp(self, socket: TcpListener, guard: Arc<Guard>) {
        let graceful = GracefulShutdown::new();
        loop {
            let Some(((stream, theirs), permit)) = self.accept(&self.tcp_permits, || socket.accept()).await else {
                break;
            };
            let Ok(ours) = stream.local_addr() else { continue };
            // Nagle's algorithm would delay the last bytes of a response until the previous ones are acknowledged.
            let _ = stream.set_nodelay(true);
            let peer = Peer::Address { theirs, ours, shown: Credential::Token };
            let responder = Responder { peer, guard: Some((Arc::clone(&guard), ours)), process: None };
            let (watcher, deadline) = (graceful.watcher(), self.first_request_deadline());
            let accepted = Accepted { responder, listener: Listener::Api, deadline, watcher, permit };
            tokio::spawn(self.clone().dispatch(stream, accepted));
        }
        drop(socket);
        let _ = tokio::time::timeout(SHUTDOWN_LIMIT, graceful.shutdown()).await;
    }

    /// Accepts the next connection within the limit; `None` once the engine stops.
    async fn accept<T, F: Future<Output = io::Result<T>>>(
        &self,
        permits: &Arc<Semaphore>,
        accept: impl Fn() -> F,
    ) -> Option<(T, OwnedSemaphorePermit)> {
        let mut stopping = self.host.stopping.subscribe();
        loop {
            // At the limit, new connections wait in the backlog of the socket.
            let permit = tokio::select! {
                permit = Arc::clone(permits).acquire_owned() => permit.ok()?,
                _ = stopping.wait_for(|stopping| *stopping) => return None,
            };
            let accepted = tokio::select! {
                accepted = accept() => accepted,
                _ = stopping.wait_for(|stopping| *stopping) => return None,
            };
            match accepted {
                Ok(connection) => return Some((connection, permit)),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Most likely out of file descriptors, until other connections close.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Serves a connection to its end.
    async fn serve_connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        accepted: Accepted,
    ) {
        let Accepted { responder, listener, deadline, watcher, permit: _permit } = accepted;
        let has_request = Arc::new(AtomicBool::new(false));
        let (service, first_request, timing) = (self.service.clone(), Arc::clone(&has_request), self.timing);
        let proxy = Arc::clone(&self.host.proxy);
        let service = service_fn(move |request: Request<Incoming>| {
            first_request.store(true, Ordering::Relaxed);
            let responder = responder.clone();
            let is_too_large = head_size(&request) > MAX_HEAD_BYTES;
            let target = if request.uri().path().starts_with(MODEL_PATH) {
                Target::Proxy(Arc::clone(&proxy))
            } else {
                Target::Services(service.clone())
            };
            async move {
                match target {
                    _ if is_too_large => {
                        let mut response = Response::new(bytes_body("request headers exceed 64 kB\n"));
                        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                        Ok(response)
                    }
                    Target::Proxy(proxy) => Ok(respond_to_agent(proxy, request, responder.guard).await),
                    Target::Services(_) if listener == Listener::Proxy => {
                        let message = "this socket accepts requests to models only";
                        let error = guard::rejection(ErrorCode::PermissionDenied, message, "use the service socket");
                        Ok(reject(request, error, None, guard::request_id()))
                    }
                    // Boxed, so that the future of a forwarded request stays small.
                    Target::Services(service) => Box::pin(respond(service, request, responder, timing.body)).await,
                }
            }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(timing.idle)
            .max_headers(64)
            .max_buf_size(READ_BUFFER_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(HTTP2_PING_INTERVAL)
            .keep_alive_timeout(timing.head)
            .max_concurrent_streams(1_024)
            .max_header_list_size(16 << 10);
        let connection = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned());
        let mut connection = std::pin::pin!(connection);
        // Hyper detects HTTP/1 or HTTP/2 from the first bytes and has no time limit for them.
        tokio::select! {
            result = &mut connection => return log_end(result),
            () = tokio::time::sleep_until(deadline) => {}
        }
        if has_request.load(Ordering::Relaxed) {
            log_end(connection.await);
        }
    }

    /// Serves a TCP connection on the runtime for its kind of requests.
    async fn dispatch(self, stream: TcpStream, accepted: Accepted) {
        let Some(runtime) = &self.proxy_runtime else { return self.serve_connection(stream, accepted).await };
        let mut stopping = self.host.stopping.subscribe();
        let for_model = tokio::select! {
            for_model = starts_with_model_request(&stream) => for_model,
            () = tokio::time::sleep_until(accepted.deadline) => return,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        match for_model {
            Ok(false) => self.serve_connection(stream, accepted).await,
            Ok(true) => {
                let Ok(stream) = stream.into_std() else { return };
                let runtime = runtime.clone();
                runtime.spawn(async move {
                    match TcpStream::from_std(stream) {
                        Ok(stream) => self.serve_connection(stream, accepted).await,
                        Err(error) => tracing::warn!(%error, "cannot serve a connection"),
                    }
                });
            }
            Err(error) => tracing::debug!(%error, "connection closed before its first request"),
        }
    }
}

fn head_size<B>(request: &Request<B>) -> usize {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>();
    headers + request.uri().path().len() + request.uri().query().map_or(0, str::len)
}

fn log_end(result: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = result {
        tracing::debug!(%error, "connection failed");
    }
}
