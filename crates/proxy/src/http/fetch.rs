//! Requests for web pages, for the built-in agent.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use thiserror::Error;

use super::upstream;
use crate::proxy::Proxy;

/// Limits of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Bytes of the body that are read.
    pub max_bytes: usize,
    pub max_redirects: usize,
    pub timeout: Duration,
}

/// A fetched page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    pub status: u16,
    /// URL after redirects.
    pub url: String,
    pub content_type: Option<String>,
    pub body: Bytes,
    /// The body is longer than the limit.
    pub is_truncated: bool,
}

/// Failure of a fetch.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("`{0}` is not a URL with the scheme http or https")]
    BadUrl(String),
    /// A redirect to another host needs a call of its own, because the decision was about the first host.
    #[error("it redirects to another host: {0}")]
    OtherHost(String),
    #[error("it redirects more than {0} times")]
    TooManyRedirects(usize),
    #[error("there was no answer in {0} s")]
    TimedOut(u64),
    #[error("cannot reach {host}: {cause}")]
    Unreachable { host: String, cause: String },
}

impl Proxy {
    /// Fetches a page. Follows redirects on the same host only.
    pub async fn fetch(&self, url: &str, limits: FetchLimits) -> Result<Fetched, FetchError> {
        let fetch = self.follow_redirects(url, limits);
        let timed_out = |_| FetchError::TimedOut(limits.timeout.as_secs());
        tokio::time::timeout(limits.timeout, fetch).await.map_err(timed_out)?
    }

    async fn follow_redirects(&self, url: &str, limits: FetchLimits) -> Result<Fetched, FetchError> {
        let mut uri = parse(url)?;
        for _ in 0..=limits.max_redirects {
            let host = uri.host().unwrap_or_default().to_owned();
            let unreachable = |cause: String| FetchError::Unreachable { host: host.clone(), cause };
            let response =
                self.sender().send(request(&uri)).await.map_err(|error| unreachable(upstream::reason(&error)))?;
            let (head, mut body) = response.into_parts();
            if let Some(next) = redirect(head.status, head.headers.get(LOCATION)) {
                let next = resolve(&uri, &next)?;
                if next.authority() != uri.authority() {
                    return Err(FetchError::OtherHost(next.to_string()));
                }
                uri = next;
                continue;
            }
            let (mut bytes, mut is_truncated) = (BytesMut::new(), false);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| unreachable(upstream::reason(&error)))?;
                let Ok(data) = frame.into_data() else { continue };
                let space = limits.max_bytes.saturating_sub(bytes.len());
                bytes.extend_from_slice(&data[..data.len().min(space)]);
                if data.len() > space {
                    is_truncated = true;
                    break;
                }
            }
            let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
            let status = head.status.as_u16();
            return Ok(Fetched { status, url: uri.to_string(), content_type, body: bytes.freeze(), is_truncated });
        }
        Err(FetchError::TooManyRedirects(limits.max_redirects))
    }
}

fn parse(url: &str) -> Result<Uri, FetchError> {
    let bad = || FetchError::BadUrl(url.to_owned());
    // A fragment is for the client only.
    let uri: Uri = url.split('#').next().unwrap_or_default().parse().map_err(|_| bad())?;
    let has_user = uri.authority().is_none_or(|authority| authority.as_str().contains('@'));
    if matches!(uri.scheme_str(), Some("http" | "https")) && !has_user { Ok(uri) } else { Err(bad()) }
}

fn request(uri: &Uri) -> Request<super::body::Outbound> {
    let mut request = Request::new(upstream::buffered(Bytes::new()));
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri.clone();
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static("sayso"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/html, text/plain, application/json;q=0.9, */*;q=0.5"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    request
}

fn redirect(status: StatusCode, location: Option<&HeaderValue>) -> Option<String> {
    location.filter(|_| status.is_redirection()).and_then(|location| location.to_str().ok()).map(str::to_owned)
}

/// Resolves the target of a redirect: a URL, or a path on the same host.
fn resolve(base: &Uri, location: &str) -> Result<Uri, FetchError> {
    if location.contains("://") {
        return parse(location);
    }
    let (scheme, authority) = (base.scheme_str().unwrap_or("https"), base.authority().map_or("", |it| it.as_str()));
    if let Some(rest) = location.strip_prefix("//") {
        return parse(&format!("{scheme}://{rest}"));
    }
    let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = if location.starts_with('/') { location.to_owned() } else { format!("{folder}/{location}") };
    parse(&format!("{scheme}://{authority}{path}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    #[test]
    fn redirects_resolve_against_their_page() {
        let base = Uri::from_static("https://a.example/docs/page?x=1");
        let to = |location: &str| resolve(&base, location).unwrap().to_string();
        assert_eq!(to("/other"), "https://a.example/other");
        assert_eq!(to("next"), "https://a.example/docs/next");
        assert_eq!(to("//b.example/x"), "https://b.example/x");
        assert_eq!(to("http://c.example/#top"), "http://c.example/");
        assert!(resolve(&base, "file:///etc/passwd").is_err());
    }

    #[test]
    fn url_with_credentials_is_refused() {
        for url in ["https://me:secret@a.example/", "ftp://a.example", "a.example", ""] {
            assert!(matches!(parse(url), Err(FetchError::BadUrl(_))), "{url}");
        }
    }
}
