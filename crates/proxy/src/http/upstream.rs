//! The way to a model.

use std::time::Duration;

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::body::Outbound;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(20);
/// How long one that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(90);

/// Sends requests to models, and keeps connections for the next ones.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Outbound>,
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
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .http2_adaptive_window(true)
            .build(connector);
        Self { client }
    }

    pub(super) async fn send(
        &self,
        request: Request<Outbound>,
    ) -> Result<Response<Incoming>, hyper_util::client::legacy::Error> {
        self.client.request(request).await
    }
}

fn no_roots() -> rustls::ClientConfig {
    let builder = rustls::ClientConfig::builder();
    builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
}

/// Where a path beneath an upstream is.
pub(super) fn address(base: &Uri, path: &str) -> Option<Uri> {
    let before = base.path().trim_end_matches('/');
    let path = if path.is_empty() { "/" } else { path };
    let path: PathAndQuery = format!("{before}{path}").parse().ok()?;
    let mut parts = base.clone().into_parts();
    parts.scheme = parts.scheme.or(Some(Scheme::HTTPS));
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

/// Why an upstream was not reached, down to the cause.
pub(super) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

/// A whole body.
pub(super) fn whole(bytes: Bytes) -> Outbound {
    Outbound::Whole(Full::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_beneath_the_upstreams_own() {
        let at = |base: &'static str, path: &str| address(&Uri::from_static(base), path).map(|uri| uri.to_string());
        assert_eq!(
            at("https://api.anthropic.com", "/v1/messages?beta=true").as_deref(),
            Some("https://api.anthropic.com/v1/messages?beta=true")
        );
        assert_eq!(at("http://127.0.0.1:8/a/b/", "/c").as_deref(), Some("http://127.0.0.1:8/a/b/c"));
        assert_eq!(at("http://127.0.0.1:8", "").as_deref(), Some("http://127.0.0.1:8/"));
    }
}
