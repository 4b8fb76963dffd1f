//! Upstream URLs and errors.

use bytes::Bytes;
use http::Uri;
use http::uri::{PathAndQuery, Scheme};
use http_body_util::Full;

use super::body::Outbound;

/// Joins the base URL of an upstream and a path with query.
pub(super) fn address(base: &Uri, path: &str) -> Option<Uri> {
    let prefix = base.path().trim_end_matches('/');
    let path = if path.is_empty() { "/" } else { path };
    let path: PathAndQuery = format!("{prefix}{path}").parse().ok()?;
    let mut parts = base.clone().into_parts();
    parts.scheme = parts.scheme.or(Some(Scheme::HTTPS));
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

/// Removes user and password from a base URL.
pub(super) fn without_userinfo(base: &Uri) -> String {
    let authority = base.authority().map_or("", http::uri::Authority::as_str);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}://{host}{}", base.scheme_str().unwrap_or("https"), base.path().trim_end_matches('/'))
}

/// Joins the messages of an error and its causes.
pub(super) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

pub(super) fn buffered(bytes: Bytes) -> Outbound {
    Outbound::Buffered(Full::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_userinfo_removes_password() {
        let url = |base: &'static str| without_userinfo(&Uri::from_static(base));
        assert_eq!(url("https://me:secret@gateway.example:8443/v1/"), "https://gateway.example:8443/v1");
        assert_eq!(url("http://127.0.0.1:8"), "http://127.0.0.1:8");
    }

    #[test]
    fn address_appends_path_to_base() {
        let at = |base: &'static str, path: &str| address(&Uri::from_static(base), path).map(|uri| uri.to_string());
        assert_eq!(
            at("https://api.anthropic.com", "/v1/messages?beta=true").as_deref(),
            Some("https://api.anthropic.com/v1/messages?beta=true")
        );
        assert_eq!(at("http://127.0.0.1:8/a/b/", "/c").as_deref(), Some("http://127.0.0.1:8/a/b/c"));
        assert_eq!(at("http://127.0.0.1:8", "").as_deref(), Some("http://127.0.0.1:8/"));
    }
}
