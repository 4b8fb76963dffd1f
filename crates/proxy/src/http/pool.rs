//! Connections to models, of which each is free for the next request once its answer has been read.

use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use tokio::time::Instant;

use super::body::Outbound;

/// How long one that nobody uses is kept.
pub(super) const IDLE: Duration = Duration::from_secs(90);

/// Connections that were made.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The one that was used last is the last one: it is taken first, so that those who are too many grow old.
    pub(super) kept: Vec<Connection>,
    /// Whether somebody goes round to close those that nobody uses.
    pub(super) swept: bool,
    /// Whether somebody waits for the next one that becomes free. Two would wake each other in turns.
    awaited: bool,
}

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) to: Origin,
    pub(super) line: Line,
    pub(super) used: Instant,
}

/// A server.
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

    /// What a server is called by whoever speaks HTTP/1.1 to it.
    pub(super) fn host(&self) -> Option<HeaderValue> {
        let usual = if self.scheme == Scheme::HTTPS { 443 } else { 80 };
        let host = self.authority.host();
        match self.authority.port_u16() {
            Some(port) if port != usual => HeaderValue::try_from(format!("{host}:{port}")).ok(),
            _ => HeaderValue::try_from(host).ok(),
        }
    }
}

/// What a connection speaks.
#[derive(Debug)]
pub(super) enum Line {
    /// HTTP/1.1: one request at a time.
    One { sender: http1::SendRequest<Outbound>, host: HeaderValue },
    /// HTTP/2: many.
    Many(http2::SendRequest<Outbound>),
}

/// A request that was not sent, and why.
pub(super) struct Unsent {
    pub(super) request: Option<Box<Request<Outbound>>>,
    pub(super) error: hyper::Error,
}

impl From<TrySendError<Request<Outbound>>> for Unsent {
    fn from(mut error: TrySendError<Request<Outbound>>) -> Self {
        Self { request: error.take_message().map(Box::new), error: error.into_error() }
    }
}

impl Line {
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::One { sender, .. } => sender.is_closed(),
            Self::Many(sender) => sender.is_closed(),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::One { sender, .. } => sender.is_ready(),
            Self::Many(sender) => sender.is_ready(),
        }
    }

    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        match self {
            Self::One { sender, .. } => sender.poll_ready(cx),
            Self::Many(sender) => sender.poll_ready(cx),
        }
    }

    pub(super) async fn send(&mut self, mut request: Request<Outbound>) -> Result<Response<Incoming>, Unsent> {
        match self {
            Self::One { sender, host } => {
                let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
                let uri = std::mem::replace(request.uri_mut(), path.into());
                request.headers_mut().insert(HOST, host.clone());
                sender.try_send_request(request).await.map_err(|error| {
                    let mut unsent = Unsent::from(error);
                    if let Some(request) = &mut unsent.request {
                        *request.uri_mut() = uri;
                        request.headers_mut().remove(HOST);
                    }
                    unsent
                })
            }
            Self::Many(sender) => sender.try_send_request(request).await.map_err(Unsent::from),
        }
    }
}

impl Connection {
    /// Whether nobody has used it for long.
    fn is_idle(&self) -> bool {
        self.used.elapsed() >= IDLE && self.line.is_ready()
    }
}

impl Pool {
    /// A connection that is free, with others that are of no use any more thrown away on the way.
    pub(super) fn take(&mut self, to: &Uri) -> Option<Connection> {
        let mut at = self.kept.len();
        while at > 0 {
            at -= 1;
            let connection = &self.kept[at];
            if connection.line.is_closed() || connection.is_idle() {
                self.kept.remove(at);
            } else if connection.to.is_of(to) && connection.line.is_ready() {
                return Some(self.take_at(at));
            }
        }
        None
    }

    /// The next one that becomes free.
    pub(super) fn poll_free(&mut self, to: &Uri, cx: &mut Context<'_>) -> Poll<Connection> {
        let mut at = self.kept.len();
        while at > 0 {
            at -= 1;
            let connection = &mut self.kept[at];
            if !connection.to.is_of(to) {
                continue;
            }
            match connection.line.poll_ready(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(self.take_at(at)),
                Poll::Ready(Err(_)) => drop(self.kept.remove(at)),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    /// One that speaks HTTP/2 stays where it is.
    fn take_at(&mut self, at: usize) -> Connection {
        match &self.kept[at] {
            Connection { to, line: Line::Many(sender), .. } => {
                Connection { to: to.clone(), line: Line::Many(sender.clone()), used: Instant::now() }
            }
            Connection { line: Line::One { .. }, .. } => self.kept.remove(at),
        }
    }

    pub(super) fn keep(&mut self, mut connection: Connection) {
        if connection.line.is_closed() {
            return;
        }
        connection.used = Instant::now();
        let is_same = |kept: &&mut Connection| matches!(kept.line, Line::Many(_)) && kept.to == connection.to;
        if matches!(connection.line, Line::Many(_))
            && let Some(kept) = self.kept.iter_mut().find(is_same)
        {
            // One is enough, and others may be on it.
            if kept.line.is_closed() {
                *kept = connection;
            } else {
                kept.used = connection.used;
            }
            return;
        }
        self.kept.push(connection);
    }

    /// Closes those that nobody has used for long.
    pub(super) fn sweep(&mut self) {
        self.kept.retain(|kept| !kept.line.is_closed() && !kept.is_idle());
        for busy in self.kept.iter_mut().filter(|kept| !kept.line.is_ready()) {
            busy.used = Instant::now();
        }
    }
}

/// Waits for the next connection that becomes free, unless somebody does already.
pub(super) async fn free(pool: &Mutex<Pool>, to: &Uri) -> Connection {
    if std::mem::replace(&mut lock(pool).awaited, true) {
        return std::future::pending().await;
    }
    let _waits = Waits(pool);
    std::future::poll_fn(|cx| lock(pool).poll_free(to, cx)).await
}

/// Whoever waits for a connection to become free.
struct Waits<'a>(&'a Mutex<Pool>);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        lock(self.0).awaited = false;
    }
}

pub(super) fn lock(pool: &Mutex<Pool>) -> MutexGuard<'_, Pool> {
    // Nothing that holds it leaves it half changed.
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Goes round for as long as there are connections.
pub(super) async fn sweep(pool: Weak<Mutex<Pool>>) {
    loop {
        tokio::time::sleep(IDLE / 2).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut pool = lock(&pool);
        pool.sweep();
        if pool.kept.is_empty() {
            pool.swept = false;
            return;
        }
    }
}
