//! Sends requests to models, over connections that are kept for the next ones.
//!
//! hyper's own client does this for everybody, with a queue of those who wait, a task for each answer and a choice of strategies. Here it
//! is between an agent and its answer: a connection that is free is taken, and put back when the head of the answer is there.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use thiserror::Error;
use tokio::time::Instant;
use tower_service::Service as _;

use super::body::{BodyError, Outbound};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(20);
/// How long one that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(90);

/// Why a request has no answer.
#[derive(Debug, Error)]
pub(super) enum SendError {
    #[error("there is no connection to it")]
    Connect(#[source] BodyError),
    #[error("the connection to it failed")]
    Broken(#[source] hyper::Error),
}

/// Sends requests to models.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    connector: HttpsConnector<HttpConnector>,
    pool: Arc<Mutex<Pool>>,
}

/// Connections that were made.
#[derive(Debug, Default)]
struct Pool {
    /// The one that was used last is the last one: it is taken first, so that those who are too many grow old.
    kept: Vec<Connection>,
    /// Whether somebody goes round to close those that nobody uses.
    swept: bool,
}

/// A connection to a server.
#[derive(Debug)]
struct Connection {
    to: Origin,
    line: Line,
    used: Instant,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: Scheme,
    authority: Authority,
}

impl Origin {
    fn of(uri: &Uri) -> Option<Self> {
        Some(Self { scheme: uri.scheme()?.clone(), authority: uri.authority()?.clone() })
    }

    fn is_of(&self, uri: &Uri) -> bool {
        uri.authority() == Some(&self.authority) && uri.scheme() == Some(&self.scheme)
    }

    /// What a server is called by whoever speaks HTTP/1.1 to it.
    fn host(&self) -> Option<HeaderValue> {
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
enum Line {
    /// HTTP/1.1: one request at a time.
    One { sender: http1::SendRequest<Outbound>, host: HeaderValue },
    /// HTTP/2: many.
    Many(http2::SendRequest<Outbound>),
}

/// A request that was not sent, and why.
struct Unsent {
    request: Option<Box<Request<Outbound>>>,
    error: hyper::Error,
}

impl From<TrySendError<Request<Outbound>>> for Unsent {
    fn from(mut error: TrySendError<Request<Outbound>>) -> Self {
        Self { request: error.take_message().map(Box::new), error: error.into_error() }
    }
}

impl Line {
    fn is_closed(&self) -> bool {
        match self {
            Self::One { sender, .. } => sender.is_closed(),
            Self::Many(sender) => sender.is_closed(),
        }
    }

    fn is_ready(&self) -> bool {
        match self {
            Self::One { sender, .. } => sender.is_ready(),
            Self::Many(sender) => sender.is_ready(),
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        match self {
            Self::One { sender, .. } => sender.poll_ready(cx),
            Self::Many(sender) => sender.poll_ready(cx),
        }
    }

    async fn send(&mut self, mut request: Request<Outbound>) -> Result<Response<Incoming>, Unsent> {
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

impl Pool {
    /// A connection that is free, with others that are of no use any more thrown away on the way.
    fn take(&mut self, to: &Uri) -> Option<Connection> {
        let mut at = self.kept.len();
        while at > 0 {
            at -= 1;
            let connection = &self.kept[at];
            if connection.line.is_closed() {
                self.kept.remove(at);
            } else if connection.to.is_of(to) && connection.line.is_ready() {
                return Some(self.take_at(at));
            }
        }
        None
    }

    /// The next one that becomes free.
    fn poll_free(&mut self, to: &Uri, cx: &mut Context<'_>) -> Poll<Connection> {
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

    fn keep(&mut self, mut connection: Connection) {
        connection.used = Instant::now();
        let is_same = |kept: &&mut Connection| matches!(kept.line, Line::Many(_)) && kept.to == connection.to;
        if matches!(connection.line, Line::Many(_))
            && let Some(kept) = self.kept.iter_mut().find(is_same)
        {
            *kept = connection;
            return;
        }
        self.kept.push(connection);
    }

    /// Closes those that nobody has used for long.
    fn sweep(&mut self) {
        self.kept.retain(|kept| !kept.line.is_closed() && !(kept.line.is_ready() && kept.used.elapsed() >= IDLE));
    }
}

fn lock(pool: &Mutex<Pool>) -> MutexGuard<'_, Pool> {
    // Nothing that holds it leaves it half changed.
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Goes round for as long as there are connections.
async fn sweep(pool: Weak<Mutex<Pool>>) {
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

impl Sender {
    pub(crate) fn new() -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        let builder = HttpsConnectorBuilder::new();
        // The system's certificates; a machine that has none gets those that browsers come with.
        let builder = match builder.with_provider_and_native_roots(rustls::crypto::ring::default_provider()) {
            Ok(builder) => builder,
            Err(error) => {
                tracing::warn!(%error, "the system has no certificates; those of browsers are used");
                let provider = rustls::crypto::ring::default_provider();
                match HttpsConnectorBuilder::new().with_provider_and_webpki_roots(provider) {
                    Ok(builder) => builder,
                    // The provider is complete, so that this cannot be; without roots every connection is refused.
                    Err(_) => HttpsConnectorBuilder::new().with_tls_config(no_roots()),
                }
            }
        };
        let connector = builder.https_or_http().enable_all_versions().wrap_connector(tcp);
        Self { connector, pool: Arc::default() }
    }

    /// Sends a request to the server that its address names; the head of the answer, whose body is on its way.
    pub(super) async fn send(&self, mut request: Request<Outbound>) -> Result<Response<Incoming>, SendError> {
        loop {
            let free = lock(&self.pool).take(request.uri());
            let (mut connection, is_new) = match free {
                Some(free) => (free, false),
                // In a box, since it is seldom: all that is sent would be as large.
                None => Box::pin(self.next(request.uri())).await.map_err(SendError::Connect)?,
            };
            match connection.line.send(request).await {
                Ok(answer) => {
                    self.keep(connection);
                    return Ok(answer);
                }
                // A server may close a connection that is not used, just when it is.
                Err(Unsent { request: Some(unsent), .. }) if !is_new => request = *unsent,
                Err(Unsent { error, .. }) => return Err(SendError::Broken(error)),
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut pool = lock(&self.pool);
        pool.keep(connection);
        if !std::mem::replace(&mut pool.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.pool)));
        }
    }

    /// A new connection, or one that becomes free before that is there; whether it is new.
    async fn next(&self, to: &Uri) -> Result<(Connection, bool), BodyError> {
        tokio::select! {
            biased;
            free = poll_fn(|cx| lock(&self.pool).poll_free(to, cx)) => Ok((free, false)),
            made = self.connect(to) => Ok((made?, true)),
        }
    }

    async fn connect(&self, to: &Uri) -> Result<Connection, BodyError> {
        let origin = Origin::of(to).ok_or("its address names no server")?;
        let host = origin.host().ok_or("its address is none that can be said")?;
        let mut connector = self.connector.clone();
        poll_fn(|cx| connector.poll_ready(cx)).await?;
        let stream = connector.call(to.clone()).await?;
        let mut line = if stream.connected().is_negotiated_h2() {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            let (sender, connection) =
                builder.timer(TokioTimer::new()).adaptive_window(true).handshake(stream).await?;
            tokio::spawn(async { log(connection.await) });
            Line::Many(sender)
        } else {
            let (sender, connection) = http1::handshake(stream).await?;
            tokio::spawn(async { log(connection.await) });
            Line::One { sender, host }
        };
        poll_fn(|cx| line.poll_ready(cx)).await?;
        Ok(Connection { to: origin, line, used: Instant::now() })
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to an upstream ended early");
    }
}

fn no_roots() -> rustls::ClientConfig {
    let builder = rustls::ClientConfig::builder();
    builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
}
