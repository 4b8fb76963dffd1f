//! Requests: admitted, authorized, and answered by a service.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use connectrpc::{ConnectError, ConnectRpcBody, ConnectRpcService, ErrorCode};
use http::header::{HeaderName, LOCATION, SET_COOKIE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use sayso_marks::PeerProcess;
use sayso_proxy::{Proxy, Reply};
use tower::Service as _;
use tracing::Instrument as _;

use crate::authority::{self, Authority};
use crate::bodies::{self, Timed};
use crate::caller::Peer;
use crate::failure::Failure;
use crate::guard::{self, Admission, Guard};
use crate::login;
use crate::standing;
use crate::token::Token;

/// Where login links lead. The code follows.
pub(crate) const LOGIN: &str = "/login/";

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) type Answer = Response<Either<ConnectRpcBody, Either<Full<Bytes>, Reply>>>;

/// A body of our own.
pub(crate) fn own(bytes: impl Into<Bytes>) -> Either<ConnectRpcBody, Either<Full<Bytes>, Reply>> {
    Either::Right(Either::Left(Full::new(bytes.into())))
}

/// The other end of a connection.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) peer: Peer,
    pub(crate) guard: Option<(Arc<Guard>, SocketAddr)>,
    /// On the verdict socket: the process itself, whatever its number becomes.
    pub(crate) process: Option<Arc<PeerProcess>>,
}

/// Answers an agent's request to a model. It shows what it may do in its path, and nothing of that is logged.
pub(crate) async fn agents(
    proxy: Arc<Proxy>,
    request: Request<Incoming>,
    guard: Option<(Arc<Guard>, SocketAddr)>,
) -> Answer {
    match guard.map(|(guard, ours)| guard.admit_agent(&request, ours)) {
        None | Some(Admission::Enter(..)) => proxy.serve(request).await.map(|body| Either::Right(Either::Right(body))),
        Some(Admission::Preflight(_)) => {
            let (message, hint) = ("pages may not send requests to models", "an agent sends them, as `sayso env` says");
            refused(request, guard::refusal(ErrorCode::PermissionDenied, message, hint), None, guard::request_id())
        }
        Some(Admission::Refuse(error, _)) => refused(request, error, None, guard::request_id()),
    }
}

/// Answers a request.
pub(crate) async fn answer(
    mut service: ConnectRpcService,
    mut request: Request<Incoming>,
    line: Line,
    whole: Duration,
) -> Result<Answer, Infallible> {
    let id = guard::request_id();
    let Line { mut peer, guard, process } = line;
    if let (Some(code), Some((guard, ours))) = (login_code(&request), &guard) {
        return Ok(match guard.redeem(&request, *ours, code) {
            Ok(login) => logged_in(&login),
            Err(error) => refused(request, error, None, id),
        });
    }
    // Whatever is logged on the way has the name of the request.
    let span = tracing::error_span!("call", id);
    let origin = match guard.map(|(guard, ours)| span.in_scope(|| guard.admit(&request, ours))) {
        None => None,
        Some(Admission::Enter(origin, shown)) => {
            peer = peer.showing(shown);
            origin
        }
        Some(Admission::Preflight(origin)) => {
            let mut response = Response::new(own(Bytes::new()));
            *response.status_mut() = StatusCode::NO_CONTENT;
            guard::preflight(response.headers_mut(), origin);
            return Ok(response);
        }
        Some(Admission::Refuse(error, origin)) => return Ok(refused(request, error, origin, id)),
    };
    let uri = request.uri().clone();
    let mut response = if *request.method() == Method::GET && uri.path() == "/" {
        Response::new(own(WELCOME))
    } else {
        if let Err(failure) = authorize(uri.path(), peer, process.as_deref()) {
            return Ok(refused(request, failure.into(), origin, id));
        }
        request.extensions_mut().insert(peer);
        let request = request.map(|body| Timed::new(body, whole));
        // The call makes a span of its own at once, which is to be within ours.
        let calling = span.in_scope(|| service.call(request));
        let Ok(response) = calling.instrument(span).await;
        response.map(Either::Left)
    };
    tracing::debug!(id, path = loggable(uri.path()), status = response.status().as_u16(), "answered");
    response.headers_mut().insert(&REQUEST_ID, id.into());
    if let Some(origin) = origin {
        guard::readable(response.headers_mut(), origin);
    }
    Ok(response)
}

/// Refuses a call that needs more than its caller may, before any service sees it.
fn authorize(path: &str, peer: Peer, process: Option<&PeerProcess>) -> Result<(), Failure> {
    let authority = authority::of_path(path);
    peer.channel_takes(authority)?;
    match process {
        // Looked at with each verdict: a process may have become a marked one since it connected.
        Some(process) if authority >= Authority::Decide => Ok(standing::refuse_marked_peer(process)?),
        _ => Ok(()),
    }
}

/// The code of a login link.
fn login_code<B>(request: &Request<B>) -> Option<&str> {
    let code = request.uri().path().strip_prefix(LOGIN)?;
    (*request.method() == Method::GET).then_some(code)
}

/// Gives a browser its login, and sends it on so that the link is not what it shows.
fn logged_in(login: &Token) -> Answer {
    let mut response = Response::new(own(Bytes::new()));
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
    if let Ok(mut cookie) = HeaderValue::try_from(login::cookie(login)) {
        cookie.set_sensitive(true);
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

/// A path as it is logged. Only calls of our services are: any other path may be a mistyped address with a capability in it.
fn loggable(path: &str) -> &str {
    let is_call = path.strip_prefix("/sayso.v1.").is_some_and(|call| {
        call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'/') && call.matches('/').count() == 1
    });
    if is_call || path == "/" { path } else { "(another path)" }
}

const WELCOME: &str = "This is sayso. Its protocol is in proto/sayso/v1; `sayso review` decides in a terminal.\n";

pub(crate) fn refused(request: Request<Incoming>, error: ConnectError, origin: Option<HeaderValue>, id: u64) -> Answer {
    let path = loggable(request.uri().path());
    tracing::warn!(id, path, code = error.code.as_str(), "refused");
    let mut response = error.into_http_response(request.headers()).map(Either::Left);
    response.headers_mut().insert(&REQUEST_ID, id.into());
    if let Some(origin) = origin {
        guard::readable(response.headers_mut(), origin);
    }
    if !request.body().is_end_stream() {
        tokio::spawn(tokio::time::timeout(bodies::UNWANTED_TIME, bodies::discard(request.into_body())));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::loggable;

    #[test]
    fn path_with_a_mistyped_capability_is_not_logged() {
        assert_eq!(loggable("/sayso.v1.RequestService/GetModes"), "/sayso.v1.RequestService/GetModes");
        for path in ["/p/0123/anthropic", "//p/0123/anthropic", "/P/0123", "/v1/p/0123", "/sayso.v1.X/p/0123", "/0123"]
        {
            assert_eq!(loggable(path), "(another path)", "{path}");
        }
    }
}
