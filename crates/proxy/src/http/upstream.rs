//! Where a model is.

use bytes::Bytes;
use http::Uri;
use http::uri::{PathAndQuery, Scheme};
use http_body_util::Full;

use super::body::Outbound;

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

/// The URL of an upstream without a user and a password.
pub(super) fn without_user(base: &Uri) -> String {
    let authority = base.authority().map_or("", http::uri::Authority::as_str);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}://{host}{}", base.scheme_str().unwrap_or("https"), base.path().trim_end_matches('/'))
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
    fn recorded_url_has_no_password() {
        let url = |base: &'static str| without_user(&Uri::from_static(base));
        assert_eq!(url("https://me:secret@gateway.example:8443/v1/"), "https://gateway.example:8443/v1");
        assert_eq!(url("http://127.0.0.1:8"), "http://127.0.0.1:8");
    }

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
