//! Routes: the upstream URL, the API and the run of a request path.

use std::sync::{Arc, Mutex};

use http::header::CONTENT_ENCODING;
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use sayso_wire::RequestHead;
use sayso_wire::stream::Api;

use super::body::Reply;
use super::local_response::json_error;
use super::{headers, upstream};
use crate::endpoint::{self, AgentEndpoints};
use crate::interceptor::{AgentRun, Attribution, AttributionSource, BodyAttribution};
use crate::lock;
use crate::proxy::Proxy;
use crate::settings::Settings;

/// The destination of a request.
pub(crate) struct Route {
    pub(crate) run: AgentRun,
    pub(crate) upstream: String,
    pub(crate) base: Uri,
    /// The base without user and password, as it is recorded.
    pub(crate) server: String,
    pub(crate) address: Uri,
    /// The path beneath the upstream, with query.
    pub(crate) path: String,
    /// The path with masked credentials, as it is recorded.
    masked_path: String,
    /// `None` if the path is not that of a model request.
    pub(crate) api: Option<Api>,
    pub(crate) settings: Arc<Settings>,
    /// Consecutive requests of an agent usually belong to one session.
    last: Mutex<Option<LastAttribution>>,
}

/// The last attribution, and the identity headers that it follows from.
struct LastAttribution {
    head: RequestHead,
    attribution: Arc<Attribution>,
}

impl Route {
    pub(super) fn new(
        run: AgentRun,
        (upstream, base): (String, Uri),
        (address, path): (Uri, String),
        settings: Arc<Settings>,
    ) -> Self {
        let masked_path = headers::mask_query(&path);
        let route = path.split_once('?').map_or(path.as_str(), |(route, _)| route);
        let api = Api::from_path(route.trim_end_matches('/'));
        let server = upstream::without_userinfo(&base);
        Self { run, upstream, base, server, address, path, masked_path, api, settings, last: Mutex::default() }
    }

    /// Attributes a request by its headers. `None` if they name no session.
    fn attribution_by_headers(&self, headers: &HeaderMap) -> Option<Arc<Attribution>> {
        let mut last = lock(&self.last);
        if let Some(LastAttribution { head, attribution }) = &*last
            && headers::has_identity(headers, head)
        {
            return Some(Arc::clone(attribution));
        }
        let head = self.identity_head(headers);
        let attribution = Arc::new(Attribution::from_headers(&self.run, &head)?);
        *last = Some(LastAttribution { head, attribution: Arc::clone(&attribution) });
        Some(attribution)
    }

    /// Attributes a request that is forwarded while it is received. `None` if the complete body is needed.
    pub(super) fn attribution(&self, headers: &HeaderMap) -> Option<AttributionSource> {
        if let Some(attribution) = self.attribution_by_headers(headers) {
            return Some(AttributionSource::Headers(attribution));
        }
        // No known agent compresses bodies without naming the session in a header.
        if headers.contains_key(CONTENT_ENCODING) {
            return None;
        }
        let query = self.path.split_once('?').map(|(_, query)| query);
        let key = headers::key_hash(headers, query);
        let body = BodyAttribution::new(self.run.clone(), self.identity_head(headers), key);
        Some(AttributionSource::Body(Arc::new(body)))
    }

    /// The head with the identity headers only.
    pub(super) fn identity_head(&self, headers: &HeaderMap) -> RequestHead {
        headers::identity_head(&self.masked_path, headers)
    }

    /// The head as it is recorded.
    pub(super) fn head(&self, headers: &HeaderMap) -> RequestHead {
        headers::head(&self.masked_path, headers)
    }
}

/// Cached routes. An agent uses one or two.
const MAX_CACHED_ROUTES: usize = 16;

/// The routes of the last requests.
#[derive(Default)]
pub(crate) struct RouteCache(Mutex<Vec<CachedRoute>>);

struct CachedRoute {
    /// The request path, with the capability.
    uri: String,
    /// Version of the endpoints at the lookup.
    endpoints_version: u64,
    route: Arc<Route>,
}

impl std::fmt::Debug for RouteCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the routes, which contain capabilities and keys.
        f.debug_struct("RouteCache").finish_non_exhaustive()
    }
}

impl RouteCache {
    fn find(&self, uri: &str, endpoints_version: u64, settings: &Arc<Settings>) -> Option<Arc<Route>> {
        let routes = lock(&self.0);
        let found = routes.iter().find(|cached| {
            cached.endpoints_version == endpoints_version
                && Arc::ptr_eq(&cached.route.settings, settings)
                && endpoint::equal_in_constant_time(cached.uri.as_bytes(), uri.as_bytes())
        });
        found.map(|cached| Arc::clone(&cached.route))
    }

    fn insert(&self, uri: &str, endpoints_version: u64, route: &Arc<Route>) {
        let mut routes = lock(&self.0);
        routes.retain(|cached| cached.uri != uri && cached.endpoints_version == endpoints_version);
        if routes.len() == MAX_CACHED_ROUTES {
            routes.remove(0);
        }
        routes.push(CachedRoute { uri: uri.to_owned(), endpoints_version, route: Arc::clone(route) });
    }
}

impl Proxy {
    /// Finds the route of a request. The error is the reply to the client.
    pub(super) fn resolve_route<B>(
        &self,
        request: &Request<B>,
        settings: Arc<Settings>,
    ) -> Result<Arc<Route>, Box<Response<Reply>>> {
        let uri = request.uri().path_and_query().map_or("/", |uri| uri.as_str());
        // Read before the lookup, so that a concurrent change invalidates the route.
        let endpoints_version = self.endpoints.version();
        if let Some(route) = self.routes.find(uri, endpoints_version, &settings) {
            return Ok(route);
        }
        let route = Arc::new(resolve(&self.endpoints, request, settings)?);
        // The server of Codex depends on a header.
        if route.upstream != "codex" {
            self.routes.insert(uri, endpoints_version, &route);
        }
        Ok(route)
    }
}

fn resolve<B>(
    endpoints: &AgentEndpoints,
    request: &Request<B>,
    settings: Arc<Settings>,
) -> Result<Route, Box<Response<Reply>>> {
    let Some((capability, name, path)) = endpoint::parse(request.uri()) else {
        let message = "sayso serves paths beneath /p/<capability>/<upstream>; `sayso env` prints the address";
        return Err(json_error(StatusCode::NOT_FOUND, message).into());
    };
    let Some(endpoint) = endpoints.find(capability) else {
        let message = "this address is unknown, or its run has ended; start the agent with `sayso run`, or use the \
                       address that `sayso env` prints";
        return Err(json_error(StatusCode::UNAUTHORIZED, message).into());
    };
    if has_dot_segments(&path) {
        let message =
            "the path has `.` or `..` segments, which could leave the path of the upstream; send the resolved path";
        return Err(json_error(StatusCode::BAD_REQUEST, message).into());
    }
    let own = endpoint.upstreams.get(name).and_then(|base| base.parse().ok());
    let base = own.or_else(|| configured_base(&settings, name, request.headers()));
    let found = base.and_then(|base: Uri| upstream::address(&base, &path).map(|address| (base, address)));
    let Some((base, address)) = found else {
        let known: Vec<&str> = settings.upstreams.keys().map(String::as_str).collect();
        let message = format!(
            "there is no upstream `{name}`, only {}; add [upstream.{name}] with a `url` to your configuration",
            known.join(", ")
        );
        return Err(json_error(StatusCode::NOT_FOUND, &message).into());
    };
    Ok(Route::new(endpoint.run(), (name.to_owned(), base), (address, path), settings))
}

/// Nested percent-encodings that are decoded.
const MAX_DECODINGS: usize = 3;

/// Returns `true` for a path with a `.` or `..` segment, also a percent-encoded one.
fn has_dot_segments(path: &str) -> bool {
    let route = path.split_once('?').map_or(path, |(route, _)| route);
    let mut decoded = route.as_bytes().to_vec();
    for _ in 0..=MAX_DECODINGS {
        if decoded.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| matches!(segment, b"." | b"..")) {
            return true;
        }
        decoded = percent_decoded(&decoded);
    }
    false
}

fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let encoded = digit(at + 1).zip(digit(at + 2)).filter(|_| *byte == b'%');
        if let Some((high, low)) = encoded {
            decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
            at += 3;
        } else {
            decoded.push(*byte);
            at += 1;
        }
    }
    decoded
}

/// The base URL of an upstream in the configuration.
pub(super) fn configured_base(settings: &Settings, name: &str, headers: &HeaderMap) -> Option<Uri> {
    let base = |name: &str| settings.upstreams.get(name).map(|upstream| upstream.base.clone());
    // Codex uses another server for a user who logged in with a ChatGPT account.
    match name {
        "codex" if base("codex").is_some() => base("codex"),
        "codex" if headers.contains_key("chatgpt-account-id") => base("chatgpt"),
        "codex" => upstream::address(&base("openai")?, "/v1"),
        _ => base(name),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use http::HeaderValue;

    use super::*;

    fn route(path: &str) -> Route {
        let run = AgentRun { name: "run".to_owned(), agent: None };
        let base = Uri::from_static("http://127.0.0.1:8");
        let address = upstream::address(&base, path).unwrap();
        Route::new(run, ("anthropic".to_owned(), base), (address, path.to_owned()), Arc::new(Settings::usual()))
    }

    fn session_header(session: &'static str) -> HeaderMap {
        let value = HeaderValue::from_static(session);
        HeaderMap::from_iter([(http::HeaderName::from_static("x-claude-code-session-id"), value)])
    }

    #[test]
    fn attribution_cache_follows_changed_headers() {
        let route = route("/v1/messages");
        let session = |headers: &HeaderMap| route.attribution_by_headers(headers).map(|found| found.session.clone());
        let mut subagent = session_header("one");
        subagent.insert("x-claude-code-agent-id", HeaderValue::from_static("sub"));
        for _ in 0..2 {
            assert_eq!(session(&session_header("one")).as_deref(), Some("one"));
            assert_eq!(route.attribution_by_headers(&session_header("one")).unwrap().subagent, None);
            assert!(route.attribution_by_headers(&subagent).unwrap().subagent.is_some());
            assert_eq!(session(&session_header("other")).as_deref(), Some("other"));
            assert_eq!(session(&HeaderMap::new()), None);
        }
    }

    #[test]
    fn dot_segments_found_in_every_encoding() {
        for path in ["/../x", "/v1/..", "/v1/./x", "/%2e%2E/x", "/.%2e/x", "/v1%2f..%2fx", "/%252e%252e/x", "/..\\x?q"]
        {
            assert!(has_dot_segments(path), "{path}");
        }
        for path in ["", "/v1/messages", "/v1/a..b", "/v1/...", "/v1/.x", "/v1?path=../x", "/v1/100%"] {
            assert!(!has_dot_segments(path), "{path}");
        }
    }

    #[test]
    fn recorded_path_masks_keys() {
        let route = route("/v1beta/models/m:generateContent?key=sk-1&alt=sse");
        assert_eq!(route.api, Some(Api::Gemini));
        assert!(route.address.query().unwrap().contains("sk-1"));
        for head in [route.head(&HeaderMap::new()), route.identity_head(&HeaderMap::new())] {
            assert_eq!(head.path, "/v1beta/models/m:generateContent?key=…&alt=sse");
        }
    }
}
