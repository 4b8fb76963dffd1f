//! Headers: which are for one connection only, which are credentials, and which tell whose a request is.

use http::header::{AUTHORIZATION, CONNECTION, COOKIE, EXPECT, HOST, PROXY_AUTHORIZATION, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};
use sayso_review::ContentHash;
use sayso_wire::Head;

/// Whether a header is for one connection only.
fn is_for_connection(name: &HeaderName) -> bool {
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

/// Takes out what is for one connection only.
pub(super) fn end_to_end(headers: &mut HeaderMap) {
    // Most have none of these: looking at each name once is less than looking for nine.
    let mut named: Vec<HeaderName> = headers.keys().filter(|name| is_for_connection(name)).cloned().collect();
    if named.contains(&CONNECTION) {
        let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
        named.extend(values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()));
    }
    for name in named {
        headers.remove(name);
    }
}

/// Takes out what is for us, too.
pub(super) fn onward(headers: &mut HeaderMap) {
    end_to_end(headers);
    headers.remove(HOST);
    headers.remove(EXPECT);
}

/// Whether a header is a credential, or may be one: it is never recorded.
pub(super) fn is_secret(name: &HeaderName) -> bool {
    if [AUTHORIZATION, COOKIE, SET_COOKIE, PROXY_AUTHORIZATION].contains(name) {
        return true;
    }
    let name = name.as_str().as_bytes();
    // One pass: it is asked about every header of every request.
    let telling = (0..name.len()).any(|at| {
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
    // What an agent calls its session is no secret, and says whose a request is.
    telling && !name.starts_with(b"anthropic-beta")
}

/// The credentials of a request, for those that are sent again.
pub(crate) fn credentials(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if is_secret(name) && *name != SET_COOKIE {
            // A copy: what came shares its memory with all that was read with it, and this is kept for long.
            let mut value = HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone());
            value.set_sensitive(true);
            kept.append(name.clone(), value);
        }
    }
    kept
}

/// Whether these are the credentials of a request.
pub(crate) fn are_credentials(known: &HeaderMap, headers: &HeaderMap) -> bool {
    let mut found = headers.iter().filter(|(name, _)| is_secret(name) && **name != SET_COOKIE);
    let mut count = 0;
    let all = found.all(|(name, value)| {
        count += 1;
        known.get_all(name).iter().any(|own| own == value)
    });
    all && count == known.len()
}

/// The hash of the key that a request came with.
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

/// The keys in a path's query, for those that are sent again. In memory only.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct SecretQuery(Vec<(String, String)>);

impl SecretQuery {
    pub(crate) fn of(path: &str) -> Self {
        let Some((_, query)) = path.split_once('?') else { return Self::default() };
        let secret = parameters(query).filter(|(name, _)| is_secret_parameter(name));
        Self(secret.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// A path that was recorded, with the keys that it came without.
    pub(crate) fn with_keys(&self, path: &str) -> String {
        let Some((route, query)) = path.split_once('?') else { return path.to_owned() };
        let value = |name: &str| self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value);
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, HIDDEN)) => value(name).map_or_else(|| pair.to_owned(), |value| format!("{name}={value}")),
            _ => pair.to_owned(),
        };
        format!("{route}?{}", query.split('&').map(pair).collect::<Vec<_>>().join("&"))
    }
}

/// What stands in the place of a key.
const HIDDEN: &str = "…";

/// A path with its query, without keys.
pub(super) fn without_keys(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let kept = parameters(query).map(|(name, value)| match (is_secret_parameter(name), value) {
        (true, _) => format!("{name}={HIDDEN}"),
        (false, "") => name.to_owned(),
        (false, value) => format!("{name}={value}"),
    });
    format!("{path}?{}", kept.collect::<Vec<_>>().join("&"))
}

/// What is known of a request before its body: its path, which has no keys any more, and the headers that are no credentials.
pub(super) fn head(path: &str, headers: &HeaderMap) -> Head {
    let readable = headers.iter().filter(|(name, _)| !is_secret(name));
    let kept = readable.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Head { path: path.to_owned(), headers: kept.collect() }
}

/// The same with the headers only that tell whose a request is, which is all that is needed of one that is not recorded.
pub(super) fn marks(path: &str, headers: &HeaderMap) -> Head {
    let kept = telling(headers).map(|(name, value)| (name.to_owned(), value.to_owned()));
    Head { path: path.to_owned(), headers: kept.collect() }
}

/// Whether these headers say the same of whose a request is.
pub(super) fn has_marks(headers: &HeaderMap, marks: &Head) -> bool {
    telling(headers).eq(marks.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

fn telling(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    // In this order: each name is looked for by its length, which is faster than by its hash.
    let found = headers.iter().filter(|(name, _)| Head::MARKS.contains(&name.as_str()));
    found.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
}

/// Whether a body is signed, so that nobody can edit it: AWS signs the hash of the body, and says so in a header or in the query.
pub(super) fn is_signed(headers: &HeaderMap, query: Option<&str>) -> bool {
    let sigv4 = |value: &HeaderValue| value.as_bytes().starts_with(b"AWS4-");
    let in_query = |query: &str| query.split('&').any(|pair| pair.starts_with("X-Amz-Signature="));
    headers.get(AUTHORIZATION).is_some_and(sigv4)
        || headers.contains_key("x-amz-content-sha256")
        || query.is_some_and(in_query)
}

/// How many seconds a client waits for its answer, if it says so, in the words of OpenAI's and Anthropic's libraries or of Google's.
pub(super) fn patience(headers: &HeaderMap) -> Option<f64> {
    let said = ["x-stainless-timeout", "x-server-timeout"].into_iter().find_map(|name| headers.get(name));
    said?.to_str().ok()?.parse().ok().filter(|seconds| *seconds > 0.0)
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
    fn what_is_for_one_connection_stays_there() {
        let mut all = headers(&[
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("expect", "100-continue"),
            ("host", "127.0.0.1"),
            ("x-stays", "1"),
        ]);
        onward(&mut all);
        assert_eq!(all.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-stays"]);
    }

    #[test]
    fn no_credential_is_kept() {
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
        let head = head(&without_keys("/v1/models?key=sk-8&alt=sse&access_token=sk-9"), &all);
        assert!(!format!("{head:?}").contains("sk-"), "{head:?}");
        assert_eq!(head.path, "/v1/models?key=…&alt=sse&access_token=…");
        assert_eq!(head.headers.len(), 2);
        assert_eq!(credentials(&all).len(), 9);
        assert!(credentials(&all).values().all(HeaderValue::is_sensitive));
    }

    #[test]
    fn a_credential_that_is_kept_keeps_nothing_else_in_memory() {
        let all = headers(&[("x-api-key", "a key that is longer than what would be copied anyway")]);
        let kept = credentials(&all);
        assert_eq!(kept, all);
        assert_ne!(kept["x-api-key"].as_bytes().as_ptr(), all["x-api-key"].as_bytes().as_ptr());
    }

    #[test]
    fn keys_of_a_query_come_back_where_they_were() {
        let path = "/v1beta/models/m:generateContent?key=sk-8&alt=sse";
        let recorded = without_keys(path);
        assert!(!recorded.contains("sk-8"));
        assert_eq!(SecretQuery::of(path).with_keys(&recorded), path);
        assert_eq!(SecretQuery::of("/v1/messages").with_keys("/v1/messages?beta=true"), "/v1/messages?beta=true");
    }

    #[test]
    fn a_key_is_known_by_its_hash() {
        let one = key_hash(&headers(&[("x-api-key", "k")]), None);
        assert!(one.is_some());
        assert_eq!(key_hash(&HeaderMap::new(), Some("alt=sse&key=k")), one);
        assert_ne!(key_hash(&headers(&[("x-api-key", "l")]), None), one);
        assert_eq!(key_hash(&HeaderMap::new(), None), None);
    }

    #[test]
    fn signed_bodies_are_known() {
        assert!(is_signed(&headers(&[("authorization", "AWS4-HMAC-SHA256 Credential=…")]), None));
        assert!(is_signed(&HeaderMap::new(), Some("X-Amz-Date=1&X-Amz-Signature=2")));
        assert!(!is_signed(&headers(&[("authorization", "Bearer x")]), Some("beta=true")));
    }

    #[test]
    fn clients_say_how_long_they_wait() {
        for (name, value, seconds) in [
            ("x-stainless-timeout", "600", Some(600.0)),
            ("x-server-timeout", "30", Some(30.0)),
            ("x-server-timeout", "-1", None),
            ("x-server-timeout", "soon", None),
            ("timeout", "9", None),
        ] {
            assert_eq!(patience(&headers(&[(name, value)])), seconds, "{name}: {value}");
        }
    }
}
