//! Connections: accepted, bounded, served until the end.

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
    IntentServiceExt as _, RequestServiceExt as _, ReviewServiceExt as _, ToolServiceExt as _, WorkspaceServiceExt as _,
};
use sayso_marks::PeerProcess;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::answer::{Line, agents, answer, own, refused};
use crate::caller::{Credential, Peer, SocketKind};
use crate::guard::{self, Guard};
use crate::host::Host;
use crate::login::Logins;
use crate::service::intent::Intents;
use crate::service::request::Requests;
use crate::service::review::Review;
use crate::service::tool::Tools;
use crate::service::workspace::Workspaces;
use crate::start::loopback;
use crate::traffic;

/// The largest request: a proposal with some files of 16 MB.
const LARGEST: usize = 96 << 20;
/// What is read in one go at most: bodies of agents have a megabyte, and reading costs by how often.
const LARGEST_READ: usize = 1 << 20;
/// The largest head, of which one of an agent has a few kilobytes.
const LARGEST_HEAD: usize = 64 << 10;
/// Connections at a time, each of which costs memory whatever is sent on it.
const MOST_CONNECTIONS: usize = 4_096;
/// After which an HTTP/2 connection that says nothing is asked whether it is there.
const QUIET: Duration = Duration::from_secs(30);
/// How long those who are served are waited for at the end.
const GOODBYE: Duration = Duration::from_secs(5);

/// How long a client may take. What a person has configured does not change it; tests take less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A connection to its first request.
    pub head: Duration,
    /// A connection to each of its next ones: agents keep theirs while they work, and so do libraries.
    pub idle: Duration,
    /// A request to arrive whole.
    pub whole: Duration,
}

impl Timing {
    /// What suits people.
    pub const USUAL: Self =
        Self { head: Duration::from_secs(10), idle: Duration::from_mins(2), whole: Duration::from_mins(1) };
}

/// Where agents' requests to models come in.
pub(crate) const ENTRANCE: &str = "/p/";
/// What is served where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Everything but verdicts.
    Services,
    /// Everything.
    Verdicts,
    /// Requests to models, and nothing else.
    Models,
}

/// Whoever serves connections.
#[derive(Clone)]
pub(crate) struct Serving {
    service: ConnectRpcService,
    /// Places on the socket, and over TCP: those who have shown nothing yet do not take the place of those who are known.
    near: Arc<Semaphore>,
    far: Arc<Semaphore>,
    host: Arc<Host>,
    timing: Timing,
    /// Where requests to models pass, if that is elsewhere.
    traffic: Option<Handle>,
}

/// Whoever has a connection.
struct Caller {
    line: Line,
    door: Door,
    /// When they are to have said something.
    until: Instant,
    watcher: Watcher,
    permit: OwnedSemaphorePermit,
}

impl Serving {
    pub(crate) fn new(host: &Arc<Host>, timing: Timing, traffic: Option<Handle>) -> Self {
        let router = Router::new();
        let router = Arc::new(Review(Arc::clone(host))).register(router);
        let router = Arc::new(Intents(Arc::clone(host))).register(router);
        let router = Arc::new(Workspaces(Arc::clone(host))).register(router);
        let router = Arc::new(Tools(Arc::clone(host))).register(router);
        let router = Arc::new(Requests(Arc::clone(host))).register(router);
        let limits = Limits::default().with_max_request_body_size(LARGEST).with_max_message_size(LARGEST);
        // Streams, too, end when their caller said that they should.
        let deadlines = DeadlinePolicy::new().with_enforce_on_streams(true);
        let service = ConnectRpcService::new(router).with_limits(limits).with_deadline_policy(deadlines);
        let places = || Arc::new(Semaphore::new(MOST_CONNECTIONS));
        Self { service, near: places(), far: places(), host: Arc::clone(host), timing, traffic }
    }

    /// By when a new connection is to have said something.
    fn soon(&self) -> Instant {
        Instant::now() + self.timing.head
    }

    /// Serves a Unix socket until the engine stops.
    pub(crate) async fn unix(self, listener: UnixListener, door: Door) {
        let graceful = GracefulShutdown::new();
        // What comes there has come over TCP, from an agent that `sayso run` has started.
        let guard = match door {
            Door::Services | Door::Verdicts => None,
            Door::Models => Some((Arc::new(Guard::new(None, Vec::new(), Vec::new(), Logins::default())), loopback(0))),
        };
        let us = rustix::process::geteuid().as_raw();
        loop {
            let Some(((stream, _), permit)) = self.accept(&self.near, || listener.accept()).await else { break };
            // The folder is closed to others; should it not be, they are turned away here. Who runs everything may come.
            let id = match stream.peer_cred() {
                Ok(them) if them.uid() == us || them.uid() == 0 => {
                    them.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
                }
                _ => {
                    tracing::warn!("another user on the socket was turned away");
                    continue;
                }
            };
            let (socket, process) = match door {
                Door::Verdicts => (SocketKind::Verdicts, PeerProcess::of_socket(&stream).ok().map(Arc::new)),
                Door::Services | Door::Models => (SocketKind::Path, None),
            };
            match stream.into_std().and_then(LocalStream::new) {
                Ok(stream) => {
                    let line = Line { peer: Peer::Process { id, socket }, guard: guard.clone(), process };
                    let (serving, watcher) = (self.clone(), graceful.watcher());
                    let caller = Caller { line, door, until: self.soon(), watcher, permit };
                    tokio::spawn(async move { serving.connection(stream, caller).await });
                }
                Err(error) => tracing::warn!(%error, "a connection could not be taken up"),
            }
        }
        drop(listener);
        // Whoever does not go by themselves is left behind.
        let _ = tokio::time::timeout(GOODBYE, graceful.shutdown()).await;
    }

    /// Serves TCP until the engine stops.
    pub(crate) async fn tcp(self, listener: TcpListener, guard: Arc<Guard>) {
        let graceful = GracefulShutdown::new();
        loop {
            let Some(((stream, theirs), permit)) = self.accept(&self.far, || listener.accept()).await else { break };
            let Ok(ours) = stream.local_addr() else { continue };
            // Otherwise the last bytes of an answer wait for those before them to be confirmed.
            let _ = stream.set_nodelay(true);
            let peer = Peer::Address { theirs, ours, shown: Credential::Token };
            let line = Line { peer, guard: Some((Arc::clone(&guard), ours)), process: None };
            let watcher = graceful.watcher();
            let caller = Caller { line, door: Door::Services, until: self.soon(), watcher, permit };
            tokio::spawn(self.clone().where_it_belongs(stream, caller));
        }
        drop(listener);
        let _ = tokio::time::timeout(GOODBYE, graceful.shutdown()).await;
    }

    /// The next connection; `None` once the engine stops.
    async fn accept<T, F: Future<Output = io::Result<T>>>(
        &self,
        permits: &Arc<Semaphore>,
        accept: impl Fn() -> F,
    ) -> Option<(T, OwnedSemaphorePermit)> {
        let mut stopping = self.host.stopping.subscribe();
        loop {
            // Those who come while all places are taken wait to be accepted.
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
                    tracing::warn!(%error, "a connection could not be accepted");
                    // Out of file descriptors, most likely: those who are served give some back.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Serves a connection to its end.
    async fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S, caller: Caller) {
        let Caller { line, door, until, watcher, permit: _permit } = caller;
        let started = Arc::new(AtomicBool::new(false));
        let (service, saw, timing) = (self.service.clone(), Arc::clone(&started), self.timing);
        let proxy = Arc::clone(&self.host.proxy);
        let service = service_fn(move |request: Request<Incoming>| {
            saw.store(true, Ordering::Relaxed);
            let line = line.clone();
            let large = size_of_head(&request) > LARGEST_HEAD;
            // What is passed on verbatim costs no more than it must.
            let goes_to =
                if request.uri().path().starts_with(ENTRANCE) { Ok(Arc::clone(&proxy)) } else { Err(service.clone()) };
            async move {
                match goes_to {
                    _ if large => {
                        let mut response = Response::new(own("the head of this request is larger than 64 kB\n"));
                        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                        Ok(response)
                    }
                    Ok(proxy) => Ok(agents(proxy, request, line.guard).await),
                    Err(_) if door == Door::Models => {
                        let (message, hint) =
                            ("only requests to models come in here", "the services have a socket of their own");
                        let error = guard::refusal(ErrorCode::PermissionDenied, message, hint);
                        Ok(refused(request, error, None, guard::request_id()))
                    }
                    // In a box, so that what is passed on is no larger for it.
                    Err(service) => Box::pin(answer(service, request, line, timing.whole)).await,
                }
            }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(timing.idle)
            .max_headers(64)
            .max_buf_size(LARGEST_READ);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(QUIET)
            .keep_alive_timeout(timing.head)
            .max_concurrent_streams(1_024)
            .max_header_list_size(16 << 10);
        let connection = watcher.watch(builder.serve_connection(TokioIo::new(stream), service).into_owned());
        let mut connection = std::pin::pin!(connection);
        // Which protocol it speaks is not known before it has said something, which it has to do soon.
        tokio::select! {
            ended = &mut connection => return log(ended),
            () = tokio::time::sleep_until(until) => {}
        }
        if started.load(Ordering::Relaxed) {
            log(connection.await);
        }
    }

    /// Serves a connection over TCP where its requests belong.
    async fn where_it_belongs(self, stream: TcpStream, caller: Caller) {
        let Some(traffic) = &self.traffic else { return self.connection(stream, caller).await };
        let mut stopping = self.host.stopping.subscribe();
        let to_model = tokio::select! {
            to_model = traffic::begins(&stream) => to_model,
            // Whoever says nothing is not waited for.
            () = tokio::time::sleep_until(caller.until) => return,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        match to_model {
            Ok(false) => self.connection(stream, caller).await,
            Ok(true) => {
                let Ok(stream) = stream.into_std() else { return };
                let traffic = traffic.clone();
                traffic.spawn(async move {
                    match TcpStream::from_std(stream) {
                        Ok(stream) => self.connection(stream, caller).await,
                        Err(error) => tracing::warn!(%error, "a connection could not be taken up"),
                    }
                });
            }
            Err(error) => tracing::debug!(%error, "a connection ended before it began"),
        }
    }
}

fn size_of_head<B>(request: &Request<B>) -> usize {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>();
    headers + request.uri().path().len() + request.uri().query().map_or(0, str::len)
}

fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
