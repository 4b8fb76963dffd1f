//! Connections to servers over HTTP.

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::config::ServerConfig;

/// Maximum size of one event of a server, in bytes.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Creates the transport to a server. It connects with the first message.
pub(crate) fn transport(
    url: &str,
    config: &ServerConfig,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        // A redirect would send the headers of the configuration elsewhere.
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|error| format!("the HTTP client cannot be set up: {error}"))?;
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        let parsed = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value.as_str()).ok());
        let (header, mut value) = parsed.ok_or_else(|| format!("the header `{name}` is not valid"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    let mut settings = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers);
    settings.max_sse_event_size = MAX_EVENT_BYTES;
    Ok(StreamableHttpClientTransport::with_client(client, settings))
}
