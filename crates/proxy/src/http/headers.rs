//! Header classes: hop-by-hop, credentials, and identity of the sender.

use http::header::{AUTHORIZATION, CONNECTION, COOKIE, EXPECT, HOST, PROXY_AUTHORIZATION, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use sayso_review::ContentHash;
use sayso_wire::RequestHead;

/// Returns `true` for a header that concerns one connection only (RFC 9110, section 7.6.1).
fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Removes hop-by-hop headers, including the headers that `connection` names.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // Most messages have none of them: one pass over the names is cheaper than nine lookups.
    let mut named: Vec<HeaderName> = headers.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    if named.contains(&CONNECTION) {
        let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        named.extend(values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()));
    }
    for name in named {
        headers.remove(name);
    }
}

/// Removes hop-by-hop headers, and the headers that concern sayso as the server.
pub(super) fn prepare_upstream(headers: &mut HeaderMap) {
    remove_hop_by_hop(headers);
    headers.remove(HOST);
    headers.remove(EXPECT);
}

/// Returns `true` for a header that may be a credential. Such headers are never recorded.
pub(super) fn is_secret(name: &HeaderName) -> bool {
    if [AUTHORIZATION, COOKIE, SET_COOKIE, PROXY_AUTHORIZATION].contains(name) {
        return true;
    }
    let name = name.as_str().as_bytes();
    // One pass, because every header of every request is checked.
    let has_keyword = (0..name.len()).any(|at| {
        let rest = &name[at..];
        match rest[0] {
            b'a' => rest.starts_with(b"auth"),
            b'b' => rest.starts_with(b"bearer"),
            b'c' => rest.starts_with(b"credential") || rest.starts_with(b"cookie"),
            b'j' => rest.starts_with(b"jwt"),
            b'k' => rest.starts_with(b"key"),
            b'p' => rest.starts_with(b"password"),
            b's' => [&b"secret"[..], b"signature"].iter().any(|word| rest.starts_with(word)),
            b't' => rest.starts_with(b"token"),
            _ => false,
        }
    });
    // `anthropic-beta` may contain `oauth`, but lists features only.
    has_keyword && !name.starts_with(b"anthropic-beta")
}

/// Copies the credential headers of a request, for replays.
pub(crate) fn credentials(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if is_secret(name) && *name != SET_COOKIE {
            // A received value shares the read buffer of the connection, which a cached one would keep alive.
            let mut value = HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
            value.set_sensitive(true);
            kept.append(name.clone(), value);
        }
    }
    kept
}

/// Returns `true` if a request has exactly these credential headers.
pub(crate) fn are_credentials(known: &HeaderMap, headers: &HeaderMap) -> bool {
    let mut found = headers.iter().filter(|(name, _)| is_secret(name) && **name != SET_COOKIE);
    let mut count = 0;
    let all = found.all(|(name, value)| {
        count += 1;
        known.get_all(name).iter().any(|own| own == value)
    });
    all && count == known.len()
}

/// Hashes the API key of a request.
pub(super) fn key_hash(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let names = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];
    let by_header = names.iter().find_map(|name| headers.get(*name)).map(|value| value.as_bytes().to_vec());
    let by_query = || parameters(query?).find(|(name, _)| is_secret_parameter(name)).map(|(_, value)| value.into());
    by_header.or_else(by_query).map(|key: Vec<u8>| ContentHash::of(&key).short())
}

fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "signature", "sig", "password", "credential", "code", "auth"]
        .iter()
        .any(|part| name.contains(part))
}

/// Credentials in a query string. Never written to disk.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct SecretQuery(Vec<(String, String)>);

impl SecretQuery {
    pub(crate) fn of(path: &str) -> Self {
        let Some((_, query)) = path.split_once('?') else { return Self::default() };
        let secret = parameters(query).filter(|(name, _)| is_secret_parameter(name));
        Self(secret.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Puts the credentials back into a recorded path.
    pub(crate) fn restore(&self, path: &str) -> String {
        let Some((route, query)) = path.split_once('?') else { return path.to_owned() };
        let value = |name: &str| self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value);
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, MASK)) => value(name).map_or_else(|| pair.to_owned(), |value| format!("{name}={value}")),
            _ => pair.to_owned(),
        };
        format!("{route}?{}", query.split('&').map(pair).collect::<Vec<_>>().join("&"))
    }
}

/// Replaces a credential in a recorded path.
const MASK: &str = "…";

/// Masks the credentials in a path with query.
pub(super) fn mask_query(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let kept = parameters(query).map(|(name, value)| match (is_secret_parameter(name), value) {
        (true, _) => format!("{name}={MASK}"),
        (false, "") => name.to_owned(),
        (false, value) => format!("{name}={value}"),
    });
    format!("{path}?{}", kept.collect::<Vec<_>>().join("&"))
}

/// Builds the recorded head of a request: the masked path, and the headers that are not credentials.
pub(super) fn head(path: &str, headers: &HeaderMap) -> RequestHead {
    let readable = headers.iter().filter(|(name, _)| !is_secret(name));
    let kept = readable.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    RequestHead { path: path.to_owned(), headers: kept.collect() }
}

/// Builds a head with the identity headers only, for a request that is not recorded.
pub(super) fn identity_head(path: &str, headers: &HeaderMap) -> RequestHead {
    let kept = identity_headers(headers).map(|(name, value)| (name.to_owned(), value.to_owned()));
    RequestHead { path: path.to_owned(), headers: kept.collect() }
}

/// Returns `true` if a request and a recorded head have equal identity headers.
pub(super) fn has_identity(headers: &HeaderMap, head: &RequestHead) -> bool {
    identity_headers(headers).eq(head.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

fn identity_headers(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    // A scan of the short list is faster than fourteen lookups by hash.
    let found = headers.iter().filter(|(name, _)| RequestHead::IDENTITY_HEADERS.contains(&name.as_str()));
    found.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
}

/// Returns `true` if the body is signed: AWS SigV4 signs its hash, in a header or in the query.
pub(super) fn is_signed(headers: &HeaderMap, query: Option<&str>) -> bool {
    let sigv4 = |value: &HeaderValue| value.as_bytes().starts_with(b"AWS4-");
    let in_query = |query: &str| query.split('&').any(|pair| pair.starts_with("X-Amz-Signature="));
    headers.get(AUTHORIZATION).is_some_and(sigv4)
        || headers.contains_key("x-amz-content-sha256")
        || query.is_some_and(in_query)
}

/// The client's timeout in seconds, as sent by the SDKs of OpenAI and Anthropic (`x-stainless-timeout`) and of Google.
pub(super) fn client_timeout(headers: &HeaderMap) -> Option<f64> {
    let timeout = ["x-stainless-timeout", "x-server-timeout"].into_iter().find_map(|name| headers.get(name));
    timeout?.to_str().ok()?.parse().ok().filter(|seconds| *seconds > 0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
        let mut all = headers(&[
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("host", "127.0.0.1"),
            ("x-stays", "1"),
        ]);
        prepare_upstream(&mut all);
        assert_eq!(all.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-stays"]);
    }

    #[test]
    fn recorded_head_has_no_credential() {
        let all = headers(&[
            ("authorization", "Bearer sk-1"),
            ("x-api-key", "sk-2"),
            ("x-goog-api-key", "sk-3"),
            ("api-key", "sk-4"),
            ("cookie", "sk-5"),
            ("x-amz-security-token", "sk-6"),
            ("proxy-authorization", "sk-7"),
            ("cf-access-jwt-assertion", "sk-10"),
            ("x-cookie", "sk-11"),
            ("chatgpt-account-id", "a"),
            ("anthropic-beta", "oauth-2025-04-20"),
        ]);
        let head = head(&mask_query("/v1/models?key=sk-8&alt=sse&access_token=sk-9"), &all);
        assert!(!format!("{head:?}").contains("sk-"), "{head:?}");
        assert_eq!(head.path, "/v1/models?key=…&alt=sse&access_token=…");
        assert_eq!(head.headers.len(), 2);
        assert_eq!(credentials(&all).len(), 9);
        assert!(credentials(&all).values().all(HeaderValue::is_sensitive));
    }

    #[test]
    fn cached_credential_does_not_share_read_buffer() {
        let all = headers(&[("x-api-key", "a key that is longer than an inline value")]);
        let kept = credentials(&all);
        assert_eq!(kept, all);
        assert_ne!(kept["x-api-key"].as_bytes().as_ptr(), all["x-api-key"].as_bytes().as_ptr());
    }

    #[test]
    fn masked_query_restores_to_original() {
        let path = "/v1beta/models/m:generateContent?key=sk-8&alt=sse";
        let recorded = mask_query(path);
        assert!(!recorded.contains("sk-8"));
        assert_eq!(SecretQuery::of(path).restore(&recorded), path);
        assert_eq!(SecretQuery::of("/v1/messages").restore("/v1/messages?beta=true"), "/v1/messages?beta=true");
    }

    #[test]
    fn key_hash_is_equal_in_header_and_query() {
        let one = key_hash(&headers(&[("x-api-key", "k")]), None);
        assert!(one.is_some());
        assert_eq!(key_hash(&HeaderMap::new(), Some("alt=sse&key=k")), one);
        assert_ne!(key_hash(&headers(&[("x-api-key", "l")]), None), one);
        assert_eq!(key_hash(&HeaderMap::new(), None), None);
    }

    #[test]
    fn sigv4_is_detected_in_header_and_query() {
        assert!(is_signed(&headers(&[("authorization", "AWS4-HMAC-SHA256 Credential=…")]), None));
        assert!(is_signed(&HeaderMap::new(), Some("X-Amz-Date=1&X-Amz-Signature=2")));
        assert!(!is_signed(&headers(&[("authorization", "Bearer x")]), Some("beta=true")));
    }

    #[test]
    fn client_timeout_is_read_from_sdk_headers() {
        for (name, value, seconds) in [
            ("x-stainless-timeout", "600", Some(600.0)),
            ("x-server-timeout", "30", Some(30.0)),
            ("x-server-timeout", "-1", None),
            ("x-server-timeout", "soon", None),
            ("timeout", "9", None),
        ] {
            assert_eq!(client_timeout(&headers(&[(name, value)])), seconds, "{name}: {value}");
        }
    }
}
