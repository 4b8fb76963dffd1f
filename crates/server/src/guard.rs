//! What stands before the services: where a request comes from, what it shows, and how much of it there is.
//!
//! Over the Unix socket the system vouches for who calls. Over TCP a request needs the token, must name this server as its host
//! (or a page elsewhere could have its own name point here), and, if a browser sends it, must come from an origin that was
//! configured. Whatever is refused is refused before anything of its body is looked at.

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

/// Wrong tokens within [`WINDOW`] after which whoever shows another is turned away without a look at it.
const MOST_WRONG: usize = 20;
/// For how long a wrong token counts.
const WINDOW: Duration = Duration::from_mins(1);

/// Who is let in over TCP.
#[derive(Debug)]
pub(crate) struct Guard {
    /// What has to be shown; `None` if nothing has.
    token: Option<Token>,
    /// Names of this server besides those of this machine, without a port.
    hosts: Vec<String>,
    /// Origins of pages that may call, such as `http://localhost:5173`.
    origins: Vec<String>,
    /// What a verdict has to be shown with, instead of the token.
    logins: Logins,
    /// When wrong tokens were shown, in milliseconds since 1970.
    wrong: Mutex<VecDeque<i64>>,
}

/// What to do with a request.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It goes on with what it has shown. A page of this origin may read the answer.
    Enter(Option<HeaderValue>, Credential),
    /// A browser asks whether a page of this origin may call.
    Preflight(HeaderValue),
    /// It ends here. A page of this origin may read why.
    Refuse(ConnectError, Option<HeaderValue>),
}

impl Guard {
    pub(crate) fn new(token: Option<Token>, hosts: Vec<String>, origins: Vec<String>, logins: Logins) -> Self {
        Self { token, hosts, origins, logins, wrong: Mutex::new(VecDeque::new()) }
    }

    /// Looks at the head of a request that came in at an address of ours.
    pub(crate) fn admit<B>(&self, request: &Request<B>, ours: SocketAddr) -> Admission {
        match self.origin(request, ours) {
            Err(refused) => Admission::Refuse(refused, None),
            Ok(Some(origin)) if is_preflight(request) => Admission::Preflight(origin),
            Ok(origin) => match self.check(request.headers()) {
                Ok(shown) => Admission::Enter(origin, shown),
                Err(error) => Admission::Refuse(error, origin),
            },
        }
    }

    /// The same for an agent's requests to a model, whose path is what they have to show. No page sends any.
    pub(crate) fn admit_agent<B>(&self, request: &Request<B>, ours: SocketAddr) -> Admission {
        match self.origin(request, ours) {
            Err(refused) => Admission::Refuse(refused, None),
            Ok(None) => Admission::Enter(None, Credential::Token),
            Ok(Some(_)) => Admission::Refuse(
                forbidden("pages may not send requests to models", "an agent sends them, as `sayso env` says"),
                None,
            ),
        }
    }

    /// Turns the code of a login link into the login. The path is what a browser has to show; it comes from no page.
    pub(crate) fn redeem<B>(&self, request: &Request<B>, ours: SocketAddr, code: &str) -> Result<Token, ConnectError> {
        self.origin(request, ours)?;
        let system = |error: std::io::Error| {
            refusal(ErrorCode::Internal, &format!("cannot make a login: {error}"), "run `sayso login` again")
        };
        let login = self.logins.redeem(code.as_bytes()).map_err(system)?;
        login.ok_or_else(|| forbidden("this link was used, or is too old", "run `sayso login` for another"))
    }

    /// The origin of the page that a request comes from, if it comes from one that may call; else why it may not.
    fn origin<B>(&self, request: &Request<B>, ours: SocketAddr) -> Result<Option<HeaderValue>, ConnectError> {
        let headers = request.headers();
        let host = request.uri().authority().map(http::uri::Authority::as_str);
        let host = host.or_else(|| headers.get(HOST).and_then(|host| host.to_str().ok()));
        if headers.get_all(HOST).iter().nth(1).is_some() {
            let message = "the request has two Host headers";
            return Err(refusal(ErrorCode::InvalidArgument, message, "send one Host header"));
        }
        if !host.is_some_and(|host| self.is_ours(host, ours.ip())) {
            let message = "the request does not name this server as its host";
            return Err(forbidden(
                message,
                "use the address that `sayso serve` printed, or start it with `--allow-host NAME`",
            ));
        }
        let origin = match headers.get(ORIGIN) {
            None => None,
            Some(origin) if self.may_call(origin, ours) => Some(origin.clone()),
            Some(_) => {
                let message = "pages of that origin may not call this server";
                return Err(forbidden(message, "start `sayso serve` with `--allow-origin ORIGIN`, should they"));
            }
        };
        // A browser that leaves the origin out says where it comes from all the same.
        let cross_site = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site");
        if origin.is_none() && cross_site {
            let message = "pages of other sites may not call this server";
            return Err(forbidden(message, "start `sayso serve` with `--allow-origin ORIGIN`, should they"));
        }
        Ok(origin)
    }

    /// Whether a host, with or without a port, is one of ours. The address that a request came in at is: no page can have made that its
    /// own name.
    fn is_ours(&self, host: &str, ours: IpAddr) -> bool {
        let name = match host.rsplit_once(':') {
            // The colons of an IPv6 address are within brackets.
            Some((name, port)) if !port.contains(']') && port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        // Most say the first; only what is something else is read.
        let address = || name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name == "127.0.0.1"
            || name.eq_ignore_ascii_case("localhost")
            || address().is_ok_and(|address| address.is_loopback() || address == ours.to_canonical())
            || self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }

    fn may_call(&self, origin: &HeaderValue, ours: SocketAddr) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        let own = |host: &str| origin == format!("http://{host}:{}", ours.port());
        let here = SocketAddr::new(ours.ip().to_canonical(), ours.port());
        origin == format!("http://{here}")
            || own("127.0.0.1")
            || own("localhost")
            || own("[::1]")
            || self.origins.iter().any(|allowed| allowed == origin)
    }

    fn check(&self, headers: &HeaderMap) -> Result<Credential, ConnectError> {
        let shown = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown
            .and_then(|value| value.split_at_checked(7))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        if shown.is_some_and(|(_, shown)| self.logins.accepts(shown)) || self.logins.accepts_cookie(headers) {
            return Ok(Credential::Login);
        }
        // The right one counts, however many wrong ones others have shown.
        if self.token.as_ref().is_none_or(|token| shown.is_some_and(|(_, shown)| token.is(shown))) {
            return Ok(Credential::Token);
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now() - i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX);
        wrong.retain(|time| *time > since);
        if wrong.len() >= MOST_WRONG {
            let message = "there were too many wrong tokens";
            return Err(refusal(ErrorCode::ResourceExhausted, message, "wait a minute, or show the right one"));
        }
        wrong.push_back(now());
        let (message, hint) = match shown {
            None => ("this server wants a token", "send the header `Authorization: Bearer TOKEN`"),
            Some(_) => {
                ("that is not the token", "`sayso serve` prints it when it starts, and it is another one each time")
            }
        };
        tracing::warn!(wrong = wrong.len(), "a request without the right token");
        Err(refusal(ErrorCode::Unauthenticated, message, hint))
    }
}

fn forbidden(message: &str, hint: &str) -> ConnectError {
    refusal(ErrorCode::PermissionDenied, message, hint)
}

/// An error from before the services, which says as much as one of theirs.
pub(crate) fn refusal(code: ErrorCode, message: &str, hint: &str) -> ConnectError {
    sayso_api::error::with_code(code, message.to_owned(), Some(hint.to_owned()))
}

fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// What a browser is told before it lets a page call.
pub(crate) fn preflight(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    // What the official clients may send; see `cors` in @connectrpc/connect.
    let sent = "authorization, content-type, connect-protocol-version, connect-timeout-ms, connect-content-encoding, \
                connect-accept-encoding, content-encoding, accept-encoding, grpc-message-type, x-grpc-web, x-user-agent, \
                grpc-timeout";
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(sent));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    readable(headers, origin);
}

/// Lets a page of an origin read an answer.
pub(crate) fn readable(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let read =
        "grpc-status, grpc-message, grpc-status-details-bin, content-encoding, connect-content-encoding, x-request-id";
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(read));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// The number of a request, by which its lines in the log are found. A number, and not a text: it is made and noted at every call,
/// and seldom read.
pub(crate) fn request_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Those of another process are others.
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

    fn said(headers: &[(&str, &str)]) -> String {
        admitted(&guard(), headers)
    }

    fn admitted(guard: &Guard, headers: &[(&str, &str)]) -> String {
        let mut request = Request::post("/sayso.v1.ReviewService/Status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let ours = SocketAddr::from(([127, 0, 0, 1], 7777));
        match guard.admit(&request.body(()).unwrap(), ours) {
            Admission::Enter(origin, _) => format!("enter {}", origin.is_some()),
            Admission::Preflight(_) => "preflight".to_owned(),
            Admission::Refuse(error, _) => error.code.as_str().to_owned(),
        }
    }

    /// What a request is told that came in at an address.
    fn told(headers: &[(&str, &str)], ours: &str) -> Option<RemoteError> {
        let mut request = Request::post("/sayso.v1.ReviewService/Status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match guard().admit(&request.body(()).unwrap(), ours.parse().unwrap()) {
            Admission::Refuse(error, _) => Some(error.into()),
            Admission::Enter(..) | Admission::Preflight(_) => None,
        }
    }

    #[test]
    fn whatever_is_refused_comes_with_its_kind_and_what_to_do() {
        let host = ("host", "localhost");
        for headers in [
            &[host][..],
            &[host, ("authorization", "Bearer wrong")],
            &[("host", "evil.example"), RIGHT],
            &[host, ("origin", "http://evil.example"), RIGHT],
            &[host, ("sec-fetch-site", "cross-site"), RIGHT],
        ] {
            let told = told(headers, "127.0.0.1:7777").unwrap();
            assert_eq!(told.kind, ErrorKind::ToolDenied, "{headers:?}");
            assert!(told.hint.is_some(), "{told:?}");
        }
        let guard = guard();
        guard.wrong.lock().unwrap().extend(vec![now(); MOST_WRONG]);
        let told = RemoteError::from(guard.check(&HeaderMap::new()).unwrap_err());
        assert_eq!((told.kind, told.hint.is_some()), (ErrorKind::Unavailable, true), "{told:?}");
    }

    /// What listens at all addresses is called by each of them, from other machines, too.
    #[test]
    fn the_address_that_a_request_came_in_at_is_a_name_of_ours() {
        for (host, ours) in [
            ("192.0.2.7:7777", "192.0.2.7:7777"),
            ("192.0.2.7", "[::ffff:192.0.2.7]:7777"),
            ("[2001:db8::7]:7777", "[2001:db8::7]:7777"),
        ] {
            assert_eq!(told(&[("host", host), RIGHT], ours), None, "{host}");
            let page = format!("http://{host}");
            let from_its_own_page = [("host", host), ("origin", page.as_str()), RIGHT];
            assert_eq!(told(&from_its_own_page, ours).is_some(), !host.ends_with(":7777"), "{host}");
        }
        assert!(told(&[("host", "192.0.2.7:7777"), RIGHT], "192.0.2.8:7777").is_some());
        let hint = told(&[("host", "box"), RIGHT], "192.0.2.7:7777").unwrap().hint.unwrap();
        assert!(hint.contains("--allow-host"), "{hint}");
    }

    const RIGHT: (&str, &str) = ("authorization", "Bearer 0123456789abcdef");

    #[test]
    fn two_host_headers_are_an_invalid_request() {
        let twice = [("host", "localhost"), ("host", "localhost"), RIGHT];
        assert_eq!(said(&twice), "invalid_argument");
    }

    #[test]
    fn hosts_other_than_this_machine_are_refused() {
        for host in ["127.0.0.1:7777", "localhost:7777", "LOCALHOST", "[::1]:7777", "127.3.2.1", "box.example:80"] {
            assert_eq!(said(&[("host", host), RIGHT]), "enter false", "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7777", "10.0.0.1:7777", "", "[::2]"]
        {
            assert_eq!(said(&[("host", host), RIGHT]), "permission_denied", "{host}");
        }
        assert_eq!(said(&[RIGHT]), "permission_denied");
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let host = ("host", "localhost:7777");
        for origin in ["http://localhost:7777", "http://127.0.0.1:7777", "http://localhost:5173"] {
            assert_eq!(said(&[host, ("origin", origin), RIGHT]), "enter true", "{origin}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:7778", "https://localhost:7777"] {
            assert_eq!(said(&[host, ("origin", origin), RIGHT]), "permission_denied", "{origin}");
        }
        assert_eq!(said(&[host, ("sec-fetch-site", "cross-site"), RIGHT]), "permission_denied");
        assert_eq!(said(&[host, ("sec-fetch-site", "none"), RIGHT]), "enter false");
    }

    #[test]
    fn the_token_is_wanted_and_too_many_wrong_ones_are_not_looked_at() {
        let (guard, host) = (guard(), ("host", "localhost"));
        assert_eq!(admitted(&guard, &[host]), "unauthenticated");
        assert_eq!(admitted(&guard, &[host, ("authorization", "Basic 0123456789abcdef")]), "unauthenticated");
        for _ in 2..MOST_WRONG {
            assert_eq!(admitted(&guard, &[host, ("authorization", "Bearer 0123456789abcdeX")]), "unauthenticated");
        }
        assert_eq!(admitted(&guard, &[host, ("authorization", "Bearer x")]), "resource_exhausted");
        assert_eq!(admitted(&guard, &[host, RIGHT]), "enter false");
        assert_eq!(admitted(&guard, &[host, ("authorization", "bearer 0123456789abcdef")]), "enter false");
    }
}
