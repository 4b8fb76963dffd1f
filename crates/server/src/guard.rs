//! Admission of requests over TCP: host, origin and credential.
//!
//! A request needs a token or a login. It must name this server as its host, which defeats DNS rebinding: a hostile page could
//! otherwise let its own host name resolve to this machine. A request from a browser must come from a configured origin. Requests are
//! rejected before their body is read. Unix sockets need no admission: the kernel identifies their callers.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use connectrpc::{ConnectError, ErrorCode};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, HOST, ORIGIN,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request};

use crate::caller::Credential;
use crate::host::now;
use crate::login::Logins;
use crate::token::Token;
use crate::web_app;

/// Wrong tokens within [`WRONG_TOKEN_WINDOW`] after which further wrong tokens are rejected as too many.
const MAX_WRONG_TOKENS: usize = 20;
const WRONG_TOKEN_WINDOW: Duration = Duration::from_mins(1);

/// Admission rules for requests over TCP.
#[derive(Debug)]
pub(crate) struct Guard {
    /// `None` if no token is required.
    token: Option<Token>,
    /// Host names of this server in addition to those of this machine, without a port.
    hosts: Vec<String>,
    /// Origins of pages that may call in addition to its own, such as `http://localhost:5173`.
    origins: Vec<String>,
    /// Credentials for verdicts.
    logins: Logins,
    /// Times of recent wrong tokens, in milliseconds since 1970.
    wrong: Mutex<VecDeque<i64>>,
}

/// Decision about a request.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Serve it, and let a page of the origin read the response.
    Accept(Option<HeaderValue>, Credential),
    /// Answer the CORS preflight of a page of the origin.
    Preflight(HeaderValue),
    /// Reject it, and let a page of the origin read the error.
    Reject(ConnectError, Option<HeaderValue>),
}

impl Guard {
    pub(crate) fn new(token: Option<Token>, hosts: Vec<String>, origins: Vec<String>, logins: Logins) -> Self {
        Self { token, hosts, origins, logins, wrong: Mutex::new(VecDeque::new()) }
    }

    /// Decides about a request by its head. `ours` is the local address of the connection.
    pub(crate) fn admit<B>(&self, request: &Request<B>, ours: SocketAddr) -> Admission {
        match self.origin(request, ours) {
            Err(error) => Admission::Reject(error, None),
            Ok(Some(origin)) if is_preflight(request) => Admission::Preflight(origin),
            Ok(origin) => match self.check(request.headers(), ours.port()) {
                Ok(credential) => Admission::Accept(origin, credential),
                Err(error) => Admission::Reject(error, origin),
            },
        }
    }

    /// Decides about a request to a model. The capability in its path authenticates it. Pages may not send any.
    pub(crate) fn admit_agent<B>(&self, request: &Request<B>, ours: SocketAddr) -> Admission {
        match self.origin(request, ours) {
            Err(error) => Admission::Reject(error, None),
            Ok(None) => Admission::Accept(None, Credential::Token),
            Ok(Some(_)) => Admission::Reject(
                forbidden("web pages may not send requests to models", "run `sayso env AGENT` to configure an agent"),
                None,
            ),
        }
    }

    /// Exchanges the code of a login link for a login. The code authenticates the request, and no page may send it.
    pub(crate) fn redeem<B>(&self, request: &Request<B>, ours: SocketAddr, code: &str) -> Result<Token, ConnectError> {
        self.origin(request, ours)?;
        let system = |error: std::io::Error| {
            rejection(ErrorCode::Internal, &format!("cannot create a login: {error}"), "run `sayso login` again")
        };
        let login = self.logins.redeem(code.as_bytes()).map_err(system)?;
        login.ok_or_else(|| forbidden("this login link is used or expired", "run `sayso open` for a new link"))
    }

    /// Checks a request for a page or file of the web app, which needs no credential. A link on another site may open a page: the page
    /// is not in a frame, and its calls are those of this origin.
    pub(crate) fn admit_page<B>(&self, request: &Request<B>, ours: SocketAddr) -> Result<(), ConnectError> {
        if web_app::is_navigation(request.headers()) {
            return self.check_host(request, ours);
        }
        self.origin(request, ours).map(drop)
    }

    /// `true` if the request has a login cookie and names this server.
    pub(crate) fn is_logged_in<B>(&self, request: &Request<B>, ours: SocketAddr) -> bool {
        self.origin(request, ours).is_ok() && self.logins.accepts_cookie(request.headers(), ours.port())
    }

    /// Checks the host and the origin. Returns the origin of a page that may call, or `None` if no page sent the request.
    fn origin<B>(&self, request: &Request<B>, ours: SocketAddr) -> Result<Option<HeaderValue>, ConnectError> {
        self.check_host(request, ours)?;
        let headers = request.headers();
        let origin = match headers.get(ORIGIN) {
            None => None,
            Some(origin) if self.is_allowed_origin(origin, ours) => Some(origin.clone()),
            Some(_) => {
                let message = "pages of this origin may not call this server";
                return Err(forbidden(message, "restart `sayso serve` with `--allow-origin ORIGIN` to allow it"));
            }
        };
        // Browsers omit `Origin` on some requests but send `Sec-Fetch-Site`.
        let cross_site = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site");
        if origin.is_none() && cross_site {
            let message = "pages of other sites may not call this server";
            return Err(forbidden(message, "restart `sayso serve` with `--allow-origin ORIGIN` to allow it"));
        }
        Ok(origin)
    }

    fn check_host<B>(&self, request: &Request<B>, ours: SocketAddr) -> Result<(), ConnectError> {
        let headers = request.headers();
        let host = request.uri().authority().map(http::uri::Authority::as_str);
        let host = host.or_else(|| headers.get(HOST).and_then(|host| host.to_str().ok()));
        if headers.get_all(HOST).iter().nth(1).is_some() {
            let message = "the request has two Host headers";
            return Err(rejection(ErrorCode::InvalidArgument, message, "send one Host header"));
        }
        if !host.is_some_and(|host| self.is_own_host(host, ours.ip())) {
            let message = "the Host header does not name this server";
            return Err(forbidden(
                message,
                "use the address that `sayso serve` printed, or restart it with `--allow-host NAME`",
            ));
        }
        Ok(())
    }

    /// `true` if a host, with or without a port, names this server. The local address of the connection does: unlike a host name, a
    /// page cannot redirect it.
    fn is_own_host(&self, host: &str, ours: IpAddr) -> bool {
        let name = match host.rsplit_once(':') {
            // The colons of an IPv6 address are in brackets.
            Some((name, port)) if !port.contains(']') && port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        // Parsed last: nearly all clients use one of the first two names.
        let address = || name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name == "127.0.0.1"
            || name.eq_ignore_ascii_case("localhost")
            || address().is_ok_and(|address| address.is_loopback() || address == ours.to_canonical())
            || self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }

    fn is_allowed_origin(&self, origin: &HeaderValue, ours: SocketAddr) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        let own = |host: &str| origin == format!("http://{host}:{}", ours.port());
        let here = SocketAddr::new(ours.ip().to_canonical(), ours.port());
        origin == format!("http://{here}")
            || own("127.0.0.1")
            || own("localhost")
            || own("[::1]")
            || self.origins.iter().any(|allowed| allowed == origin)
    }

    fn check(&self, headers: &HeaderMap, port: u16) -> Result<Credential, ConnectError> {
        let shown = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown
            .and_then(|value| value.split_at_checked(7))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        if shown.is_some_and(|(_, shown)| self.logins.accepts(shown)) || self.logins.accepts_cookie(headers, port) {
            return Ok(Credential::Login);
        }
        // Checked before the limit, so that wrong tokens of other clients do not lock this one out.
        if self.token.as_ref().is_none_or(|token| shown.is_some_and(|(_, shown)| token.is(shown))) {
            return Ok(Credential::Token);
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now() - i64::try_from(WRONG_TOKEN_WINDOW.as_millis()).unwrap_or(i64::MAX);
        wrong.retain(|time| *time > since);
        if wrong.len() >= MAX_WRONG_TOKENS {
            let message = "too many requests with wrong tokens";
            return Err(rejection(ErrorCode::ResourceExhausted, message, "wait a minute, or send the right token"));
        }
        wrong.push_back(now());
        let (message, hint) = match shown {
            None => ("this server requires a token", "send the header `Authorization: Bearer TOKEN`"),
            Some(_) => ("wrong token", "use the token that `sayso serve` printed at its latest start"),
        };
        tracing::warn!(wrong = wrong.len(), "request with a wrong or missing token");
        Err(rejection(ErrorCode::Unauthenticated, message, hint))
    }
}

fn forbidden(message: &str, hint: &str) -> ConnectError {
    rejection(ErrorCode::PermissionDenied, message, hint)
}

/// Builds an error of the server, with the same detail as errors of services.
pub(crate) fn rejection(code: ErrorCode, message: &str, hint: &str) -> ConnectError {
    sayso_api::error::with_code(code, message.to_owned(), Some(hint.to_owned()))
}

fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Sets the response headers of a CORS preflight.
pub(crate) fn set_preflight_headers(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    // The headers of the official clients; see `cors` in @connectrpc/connect.
    let allowed = "authorization, content-type, connect-protocol-version, connect-timeout-ms, connect-content-encoding, \
                connect-accept-encoding, content-encoding, accept-encoding, grpc-message-type, x-grpc-web, x-user-agent, \
                grpc-timeout";
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    expose_to(headers, origin);
}

/// Lets a page of an origin read the response.
pub(crate) fn expose_to(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed =
        "grpc-status, grpc-message, grpc-status-details-bin, content-encoding, connect-content-encoding, x-request-id";
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(exposed));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// Returns a new id, which identifies a request in the log. A number, because every call formats it at most once.
pub(crate) fn request_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // The process id in the upper half keeps the ids of different engines apart.
    static PROCESS: LazyLock<u64> = LazyLock::new(|| u64::from(std::process::id()) << 32);
    *PROCESS + LAST.fetch_add(1, Ordering::Relaxed) + 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic to fail")]

    use sayso_api::error::RemoteError;
    use sayso_review::ErrorKind;

    use super::*;

    fn guard() -> Guard {
        let token = Token::new("0123456789abcdef").unwrap();
        Guard::new(
            Some(token),
            vec!["box.example".to_owned()],
            vec!["http://localhost:5173".to_owned()],
            Logins::default(),
        )
    }

    fn outcome(headers: &[(&str, &str)]) -> String {
        outcome_at(&guard(), headers)
    }

    fn outcome_at(guard: &Guard, headers: &[(&str, &str)]) -> String {
        let mut request = Request::post("/sayso.v1.ReviewService/Status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let ours = SocketAddr::from(([127, 0, 0, 1], 7777));
        match guard.admit(&request.body(()).unwrap(), ours) {
            Admission::Accept(origin, _) => format!("accept {}", origin.is_some()),
            Admission::Preflight(_) => "preflight".to_owned(),
            Admission::Reject(error, _) => error.code.as_str().to_owned(),
        }
    }

    /// The error for a request to a local address; `None` if it is accepted.
    fn error_at(headers: &[(&str, &str)], ours: &str) -> Option<RemoteError> {
        let mut request = Request::post("/sayso.v1.ReviewService/Status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match guard().admit(&request.body(()).unwrap(), ours.parse().unwrap()) {
            Admission::Reject(error, _) => Some(error.into()),
            Admission::Accept(..) | Admission::Preflight(_) => None,
        }
    }

    #[test]
    fn rejection_has_kind_and_hint() {
        let host = ("host", "localhost");
        for headers in [
            &[host][..],
            &[host, ("authorization", "Bearer wrong")],
            &[("host", "evil.example"), RIGHT],
            &[host, ("origin", "http://evil.example"), RIGHT],
            &[host, ("sec-fetch-site", "cross-site"), RIGHT],
        ] {
            let error = error_at(headers, "127.0.0.1:7777").unwrap();
            assert_eq!(error.kind, ErrorKind::ToolDenied, "{headers:?}");
            assert!(error.hint.is_some(), "{error:?}");
        }
        let guard = guard();
        guard.wrong.lock().unwrap().extend(vec![now(); MAX_WRONG_TOKENS]);
        let error = RemoteError::from(guard.check(&HeaderMap::new(), 7777).unwrap_err());
        assert_eq!((error.kind, error.hint.is_some()), (ErrorKind::Unavailable, true), "{error:?}");
    }

    /// A server that listens at all addresses is reached by each of them, also from other machines.
    #[test]
    fn local_address_of_connection_is_own_host() {
        for (host, ours) in [
            ("192.0.2.7:7777", "192.0.2.7:7777"),
            ("192.0.2.7", "[::ffff:192.0.2.7]:7777"),
            ("[2001:db8::7]:7777", "[2001:db8::7]:7777"),
        ] {
            assert_eq!(error_at(&[("host", host), RIGHT], ours), None, "{host}");
            let page = format!("http://{host}");
            let from_own_page = [("host", host), ("origin", page.as_str()), RIGHT];
            assert_eq!(error_at(&from_own_page, ours).is_some(), !host.ends_with(":7777"), "{host}");
        }
        assert!(error_at(&[("host", "192.0.2.7:7777"), RIGHT], "192.0.2.8:7777").is_some());
        let hint = error_at(&[("host", "box"), RIGHT], "192.0.2.7:7777").unwrap().hint.unwrap();
        assert!(hint.contains("--allow-host"), "{hint}");
    }

    const RIGHT: (&str, &str) = ("authorization", "Bearer 0123456789abcdef");

    #[test]
    fn two_host_headers_are_rejected() {
        let twice = [("host", "localhost"), ("host", "localhost"), RIGHT];
        assert_eq!(outcome(&twice), "invalid_argument");
    }

    #[test]
    fn foreign_hosts_are_rejected() {
        for host in ["127.0.0.1:7777", "localhost:7777", "LOCALHOST", "[::1]:7777", "127.3.2.1", "box.example:80"] {
            assert_eq!(outcome(&[("host", host), RIGHT]), "accept false", "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7777", "10.0.0.1:7777", "", "[::2]"]
        {
            assert_eq!(outcome(&[("host", host), RIGHT]), "permission_denied", "{host}");
        }
        assert_eq!(outcome(&[RIGHT]), "permission_denied");
    }

    #[test]
    fn foreign_origins_are_rejected() {
        let host = ("host", "localhost:7777");
        for origin in ["http://localhost:7777", "http://127.0.0.1:7777", "http://localhost:5173"] {
            assert_eq!(outcome(&[host, ("origin", origin), RIGHT]), "accept true", "{origin}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:7778", "https://localhost:7777"] {
            assert_eq!(outcome(&[host, ("origin", origin), RIGHT]), "permission_denied", "{origin}");
        }
        assert_eq!(outcome(&[host, ("sec-fetch-site", "cross-site"), RIGHT]), "permission_denied");
        assert_eq!(outcome(&[host, ("sec-fetch-site", "none"), RIGHT]), "accept false");
    }

    #[test]
    fn token_is_required_and_wrong_tokens_are_limited() {
        let (guard, host) = (guard(), ("host", "localhost"));
        assert_eq!(outcome_at(&guard, &[host]), "unauthenticated");
        assert_eq!(outcome_at(&guard, &[host, ("authorization", "Basic 0123456789abcdef")]), "unauthenticated");
        for _ in 2..MAX_WRONG_TOKENS {
            assert_eq!(outcome_at(&guard, &[host, ("authorization", "Bearer 0123456789abcdeX")]), "unauthenticated");
        }
        assert_eq!(outcome_at(&guard, &[host, ("authorization", "Bearer x")]), "resource_exhausted");
        assert_eq!(outcome_at(&guard, &[host, RIGHT]), "accept false");
        assert_eq!(outcome_at(&guard, &[host, ("authorization", "bearer 0123456789abcdef")]), "accept false");
    }
}
