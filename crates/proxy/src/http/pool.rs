//! Pooled connections to upstreams. An HTTP/1.1 connection is reusable once its response was read.

use std::sync::{Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use tokio::time::Instant;

use super::body::Outbound;
use crate::lock;

/// Unused connections are closed after this time.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Open connections, busy ones included.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Ordered by last use. The newest is taken first, so surplus connections become idle and are closed.
    pub(super) connections: Vec<Connection>,
    /// `true` while the task that closes idle connections runs.
    pub(super) sweeping: bool,
    /// `true` while a request waits for a busy connection. Two waiting requests would wake each other in turns.
    has_waiter: bool,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) origin: Origin,
    pub(super) protocol: Protocol,
    pub(super) last_used: Instant,
}

/// Scheme and authority of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    scheme: Scheme,
    authority: Authority,
}

impl Origin {
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        Some(Self { scheme: uri.scheme()?.clone(), authority: uri.authority()?.clone() })
    }

    fn is_of(&self, uri: &Uri) -> bool {
        uri.authority() == Some(&self.authority) && uri.scheme() == Some(&self.scheme)
    }

    /// The `host` header for HTTP/1.1. A default port is omitted.
    pub(super) fn host(&self) -> Option<HeaderValue> {
        let default_port = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        let host = self.authority.host();
        match self.authority.port_u16() {
            Some(port) if port != default_port => HeaderValue::try_from(format!("{host}:{port}")).ok(),
            _ => HeaderValue::try_from(host).ok(),
        }
    }
}

/// Request handle of a connection.
#[derive(Debug)]
pub(super) enum Protocol {
    /// One request at a time.
    Http1 { sender: http1::SendRequest<Outbound>, host: HeaderValue },
    /// Any number of concurrent requests.
    Http2(http2::SendRequest<Outbound>),
}

/// A failed request. It can be sent again if the connection closed before it was written.
pub(super) struct SendFailure {
    pub(super) request: Option<Box<Request<Outbound>>>,
    pub(super) error: hyper::Error,
}

impl From<TrySendError<Request<Outbound>>> for SendFailure {
    fn from(mut error: TrySendError<Request<Outbound>>) -> Self {
        Self { request: error.take_message().map(Box::new), error: error.into_error() }
    }
}

impl Protocol {
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http1 { sender, .. } => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Http1 { sender, .. } => sender.is_ready(),
            Self::Http2(sender) => sender.is_ready(),
        }
    }

    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        match self {
            Self::Http1 { sender, .. } => sender.poll_ready(cx),
            Self::Http2(sender) => sender.poll_ready(cx),
        }
    }

    pub(super) async fn send(&mut self, mut request: Request<Outbound>) -> Result<Response<Incoming>, SendFailure> {
        match self {
            Self::Http1 { sender, host } => {
                let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
                let uri = std::mem::replace(request.uri_mut(), path.into());
                request.headers_mut().insert(HOST, host.clone());
                sender.try_send_request(request).await.map_err(|error| {
                    let mut failure = SendFailure::from(error);
                    if let Some(request) = &mut failure.request {
                        *request.uri_mut() = uri;
                        request.headers_mut().remove(HOST);
                    }
                    failure
                })
            }
            Self::Http2(sender) => sender.try_send_request(request).await.map_err(SendFailure::from),
        }
    }
}

impl Connection {
    fn is_idle(&self) -> bool {
        self.last_used.elapsed() >= IDLE_TIMEOUT && self.protocol.is_ready()
    }
}

impl Pool {
    /// Takes a free connection, and drops closed and idle ones.
    pub(super) fn take(&mut self, uri: &Uri) -> Option<Connection> {
        let mut at = self.connections.len();
        while at > 0 {
            at -= 1;
            let connection = &self.connections[at];
            if connection.protocol.is_closed() || connection.is_idle() {
                self.connections.remove(at);
            } else if connection.origin.is_of(uri) && connection.protocol.is_ready() {
                return Some(self.take_at(at));
            }
        }
        None
    }

    /// Takes the next connection that becomes free.
    pub(super) fn poll_free(&mut self, uri: &Uri, cx: &mut Context<'_>) -> Poll<Connection> {
        let mut at = self.connections.len();
        while at > 0 {
            at -= 1;
            let connection = &mut self.connections[at];
            if !connection.origin.is_of(uri) {
                continue;
            }
            match connection.protocol.poll_ready(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(self.take_at(at)),
                Poll::Ready(Err(_)) => drop(self.connections.remove(at)),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    /// Removes an HTTP/1.1 connection, or clones the handle of an HTTP/2 connection.
    fn take_at(&mut self, at: usize) -> Connection {
        match &self.connections[at] {
            Connection { origin, protocol: Protocol::Http2(sender), .. } => Connection {
                origin: origin.clone(),
                protocol: Protocol::Http2(sender.clone()),
                last_used: Instant::now(),
            },
            Connection { protocol: Protocol::Http1 { .. }, .. } => self.connections.remove(at),
        }
    }

    /// Returns a connection to the pool.
    pub(super) fn put(&mut self, mut connection: Connection) {
        if connection.protocol.is_closed() {
            return;
        }
        connection.last_used = Instant::now();
        let is_same =
            |kept: &&mut Connection| matches!(kept.protocol, Protocol::Http2(_)) && kept.origin == connection.origin;
        if matches!(connection.protocol, Protocol::Http2(_))
            && let Some(kept) = self.connections.iter_mut().find(is_same)
        {
            // One HTTP/2 connection per server is enough; other requests may use it.
            if kept.protocol.is_closed() {
                *kept = connection;
            } else {
                kept.last_used = connection.last_used;
            }
            return;
        }
        self.connections.push(connection);
    }

    /// Closes idle connections.
    pub(super) fn sweep(&mut self) {
        self.connections.retain(|kept| !kept.protocol.is_closed() && !kept.is_idle());
        for busy in self.connections.iter_mut().filter(|kept| !kept.protocol.is_ready()) {
            busy.last_used = Instant::now();
        }
    }
}

/// Waits for the next connection that becomes free. If another request waits already, the future never completes.
pub(super) async fn wait_for_free(pool: &Mutex<Pool>, uri: &Uri) -> Connection {
    if std::mem::replace(&mut lock(pool).has_waiter, true) {
        return std::future::pending().await;
    }
    let _waiter = Waiter(pool);
    std::future::poll_fn(|cx| lock(pool).poll_free(uri, cx)).await
}

/// Clears [`Pool::has_waiter`] when it is dropped.
struct Waiter<'a>(&'a Mutex<Pool>);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        lock(self.0).has_waiter = false;
    }
}

/// Closes idle connections periodically, until the pool is empty.
pub(super) async fn sweep(pool: Weak<Mutex<Pool>>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT / 2).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut pool = lock(&pool);
        pool.sweep();
        if pool.connections.is_empty() {
            pool.sweeping = false;
            return;
        }
    }
}
