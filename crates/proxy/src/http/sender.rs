//! HTTP client with a connection pool.
//!
//! hyper-util's pooled client adds a wait queue and a task per response to the latency of every request. This client takes a free
//! connection from the pool, and returns it when the head of the response was received.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower_service::Service as _;

use super::body::{BodyError, Outbound};
use super::pool::{Connection, Origin, Pool, Protocol, SendFailure, sweep, wait_for_free};
use crate::lock;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Failure before the head of a response.
#[derive(Debug, Error)]
pub(super) enum SendError {
    /// The request was not sent.
    #[error("cannot connect")]
    Connect(#[source] BodyError),
    /// The request may have been sent.
    #[error("the connection failed")]
    Broken(#[source] hyper::Error),
}

/// The HTTP client of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    connector: HttpsConnector<HttpConnector>,
    pool: Arc<Mutex<Pool>>,
}

impl Sender {
    pub(crate) fn new() -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let builder = HttpsConnectorBuilder::new();
        // The system's root certificates, or the built-in ones of browsers.
        let builder = match builder.with_provider_and_native_roots(rustls::crypto::ring::default_provider()) {
            Ok(builder) => builder,
            Err(error) => {
                tracing::warn!(%error, "cannot load the system's root certificates; using the built-in ones");
                let provider = rustls::crypto::ring::default_provider();
                match HttpsConnectorBuilder::new().with_provider_and_webpki_roots(provider) {
                    Ok(builder) => builder,
                    // Unreachable with a complete provider. Without roots, every TLS connection fails.
                    Err(_) => HttpsConnectorBuilder::new().with_tls_config(no_roots()),
                }
            }
        };
        let connector = builder.https_or_http().enable_all_versions().wrap_connector(tcp);
        Self { connector, pool: Arc::default() }
    }

    /// Sends a request, and returns the head of the response with a streaming body.
    pub(super) async fn send(&self, mut request: Request<Outbound>) -> Result<Response<Incoming>, SendError> {
        loop {
            let free = lock(&self.pool).take(request.uri());
            let (mut connection, is_new) = match free {
                Some(free) => (free, false),
                // Boxed, because it is rare: it would enlarge the future of every request.
                None => Box::pin(self.free_or_new(request.uri())).await.map_err(SendError::Connect)?,
            };
            match connection.protocol.send(request).await {
                Ok(response) => {
                    self.put(connection);
                    return Ok(response);
                }
                // The server closed an idle connection just before it was used.
                Err(SendFailure { request: Some(unsent), .. }) if !is_new => request = *unsent,
                Err(SendFailure { error, .. }) => return Err(SendError::Broken(error)),
            }
        }
    }

    fn put(&self, connection: Connection) {
        let mut pool = lock(&self.pool);
        pool.put(connection);
        if !std::mem::replace(&mut pool.sweeping, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.pool)));
        }
    }

    /// Connects, or takes a connection that becomes free before. Returns `true` with a new connection.
    async fn free_or_new(&self, uri: &Uri) -> Result<(Connection, bool), BodyError> {
        tokio::select! {
            biased;
            free = wait_for_free(&self.pool, uri) => Ok((free, false)),
            new = self.connect(uri) => Ok((new?, true)),
        }
    }

    async fn connect(&self, uri: &Uri) -> Result<Connection, BodyError> {
        let origin = Origin::of(uri).ok_or("the URL has no host")?;
        let host = origin.host().ok_or("the host is not a valid header value")?;
        let mut connector = self.connector.clone();
        poll_fn(|cx| connector.poll_ready(cx)).await?;
        let stream = connector.call(uri.clone()).await?;
        let (report, cause) = oneshot::channel();
        let mut protocol = if stream.connected().is_negotiated_h2() {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            let (sender, connection) = builder.timer(TokioTimer::new()).adaptive_window(true).handshake(stream).await?;
            tokio::spawn(async { report_end(connection.await, report) });
            // Pooled at once: other requests can share it before this response.
            let shared = Protocol::Http2(sender.clone());
            self.put(Connection { origin: origin.clone(), protocol: shared, last_used: Instant::now() });
            Protocol::Http2(sender)
        } else {
            let (sender, connection) = http1::handshake(stream).await?;
            tokio::spawn(async { report_end(connection.await, report) });
            Protocol::Http1 { sender, host }
        };
        if let Err(closed) = poll_fn(|cx| protocol.poll_ready(cx)).await {
            // The task of the connection has the cause.
            return Err(cause.await.unwrap_or(closed).into());
        }
        Ok(Connection { origin, protocol, last_used: Instant::now() })
    }
}

/// Reports the error of an ended connection.
fn report_end(ended: hyper::Result<()>, report: oneshot::Sender<hyper::Error>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "the connection to an upstream broke");
        // Only a connection that never became ready has a receiver.
        let _: Result<(), _> = report.send(error);
    }
}

fn no_roots() -> rustls::ClientConfig {
    let builder = rustls::ClientConfig::builder();
    builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
}

#[cfg(test)]
mod tests;
