//! Responses: admission, authorization and dispatch of requests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use connectrpc::{ConnectError, ConnectRpcBody, ConnectRpcService, ErrorCode};
use http::header::HeaderName;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use sayso_marks::PeerProcess;
use sayso_proxy::{Proxy, Reply};
use tower::Service as _;
use tracing::Instrument as _;

use crate::authority::{self, Authority};
use crate::body_timeout::{self, TimedBody};
use crate::caller::Peer;
use crate::failure::Failure;
use crate::guard::{self, Admission, Guard};
use crate::kernel_marks;
use crate::web_app;

/// Path prefix of login links, followed by the code.
pub(crate) const LOGIN_PATH: &str = "/login/";

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Body of a service, of this module or of the proxy.
pub(crate) type ResponseBody = Either<ConnectRpcBody, Either<Full<Bytes>, Reply>>;

pub(crate) fn bytes_body(bytes: impl Into<Bytes>) -> ResponseBody {
    Either::Right(Either::Left(Full::new(bytes.into())))
}

/// Context of a connection for its responses.
#[derive(Clone)]
pub(crate) struct Responder {
    pub(crate) peer: Peer,
    /// Admission rules and local address. `None` on Unix sockets for calls.
    pub(crate) guard: Option<(Arc<Guard>, SocketAddr)>,
    /// Handle of the peer on the verdict socket. Safe against reuse of its process id.
    pub(crate) process: Option<Arc<PeerProcess>>,
}

/// Responds to a request to a model. Its path contains the capability, so it is never logged.
pub(crate) async fn respond_to_agent(
    proxy: Arc<Proxy>,
    request: Request<Incoming>,
    guard: Option<(Arc<Guard>, SocketAddr)>,
) -> Response<ResponseBody> {
    match guard.map(|(guard, ours)| guard.admit_agent(&request, ours)) {
        None | Some(Admission::Accept(..)) => proxy.serve(request).await.map(|body| Either::Right(Either::Right(body))),
        Some(Admission::Preflight(_)) => {
            let message = "web pages may not send requests to models";
            let hint = "run `sayso env AGENT` to configure an agent";
            reject(request, guard::rejection(ErrorCode::PermissionDenied, message, hint), None, guard::request_id())
        }
        Some(Admission::Reject(error, _)) => reject(request, error, None, guard::request_id()),
    }
}

/// Responds to any other request. `body_limit` limits the time for the body.
pub(crate) async fn respond(
    mut service: ConnectRpcService,
    mut request: Request<Incoming>,
    responder: Responder,
    body_limit: Duration,
) -> Result<Response<ResponseBody>, Infallible> {
    let id = guard::request_id();
    let Responder { mut peer, guard, process } = responder;
    if let Some((guard, ours)) = &guard {
        if let Some(code) = login_code(&request) {
            return Ok(match guard.redeem(&request, *ours, code) {
                Ok(login) => web_app::logged_in(&login, ours.port(), next_view(&request)),
                Err(_) if guard.is_logged_in(&request, *ours) => web_app::redirect(next_view(&request)),
                Err(_) if web_app::accepts_html(request.headers()) => web_app::login_failed(),
                Err(error) => reject(request, error, None, id),
            });
        }
        if let Some(page) = web_app::find(&request) {
            return Ok(match guard.admit_page(&request, *ours) {
                Ok(()) => page,
                Err(error) => reject(request, error, None, id),
            });
        }
    }
    // Adds the request id to all log lines of the call.
    let span = tracing::error_span!("call", id);
    let origin = match guard.map(|(guard, ours)| span.in_scope(|| guard.admit(&request, ours))) {
        None => None,
        Some(Admission::Accept(origin, credential)) => {
            peer = peer.with_credential(credential);
            origin
        }
        Some(Admission::Preflight(origin)) => {
            let mut response = Response::new(bytes_body(Bytes::new()));
            *response.status_mut() = StatusCode::NO_CONTENT;
            guard::set_preflight_headers(response.headers_mut(), origin);
            return Ok(response);
        }
        Some(Admission::Reject(error, origin)) => return Ok(reject(request, error, origin, id)),
    };
    let uri = request.uri().clone();
    let mut response = if *request.method() == Method::GET && uri.path() == "/" {
        Response::new(bytes_body(WELCOME))
    } else {
        if let Err(failure) = authorize(uri.path(), peer, process.as_deref()) {
            return Ok(reject(request, failure.into(), origin, id));
        }
        request.extensions_mut().insert(peer);
        let request = request.map(|body| TimedBody::new(body, body_limit));
        // `call` creates a child span before it returns the future.
        let call = span.in_scope(|| service.call(request));
        let Ok(response) = call.instrument(span).await;
        response.map(Either::Left)
    };
    tracing::debug!(id, path = loggable(uri.path()), status = response.status().as_u16(), "responded");
    response.headers_mut().insert(&REQUEST_ID, id.into());
    if let Some(origin) = origin {
        guard::expose_to(response.headers_mut(), origin);
    }
    Ok(response)
}

/// Rejects a call that needs more authority than its caller has.
fn authorize(path: &str, peer: Peer, process: Option<&PeerProcess>) -> Result<(), Failure> {
    let authority = authority::of_path(path);
    peer.require_channel(authority)?;
    match process {
        // Checked at each call: the process may have become marked since it connected.
        Some(process) if authority >= Authority::Decide => Ok(kernel_marks::reject_marked_peer(process)?),
        _ => Ok(()),
    }
}

/// Extracts the code of a login link.
fn login_code<B>(request: &Request<B>) -> Option<&str> {
    let code = request.uri().path().strip_prefix(LOGIN_PATH)?;
    (*request.method() == Method::GET).then_some(code)
}

/// Extracts the view to open after a login.
fn next_view<B>(request: &Request<B>) -> Option<&str> {
    request.uri().query()?.strip_prefix("next=")
}

/// The loggable form of a path. Hides all paths except calls of services: others may contain a capability.
fn loggable(path: &str) -> &str {
    let is_call = path.strip_prefix("/sayso.v1.").is_some_and(|call| {
        call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'/') && call.matches('/').count() == 1
    });
    if is_call || path == "/" { path } else { "(hidden)" }
}

const WELCOME: &str = "sayso engine. Protocol: proto/sayso/v1. To decide in a terminal, run `sayso review`.\n";

/// Responds with an error without calling a service.
pub(crate) fn reject(
    request: Request<Incoming>,
    error: ConnectError,
    origin: Option<HeaderValue>,
    id: u64,
) -> Response<ResponseBody> {
    let path = loggable(request.uri().path());
    tracing::warn!(id, path, code = error.code.as_str(), "rejected");
    let mut response = error.into_http_response(request.headers()).map(Either::Left);
    response.headers_mut().insert(&REQUEST_ID, id.into());
    if let Some(origin) = origin {
        guard::expose_to(response.headers_mut(), origin);
    }
    if !request.body().is_end_stream() {
        tokio::spawn(tokio::time::timeout(body_timeout::DISCARD_TIMEOUT, body_timeout::discard(request.into_body())));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::loggable;

    #[test]
    fn path_with_capability_is_not_logged() {
        assert_eq!(loggable("/sayso.v1.RequestService/GetModes"), "/sayso.v1.RequestService/GetModes");
        for path in ["/p/0123/anthropic", "//p/0123/anthropic", "/P/0123", "/v1/p/0123", "/sayso.v1.X/p/0123", "/0123"]
        {
            assert_eq!(loggable(path), "(hidden)", "{path}");
        }
    }
}
