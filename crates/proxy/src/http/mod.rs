//! Model traffic over HTTP: forwarded verbatim, or buffered and held for a person.

mod body;
mod encoding;
mod fetch;
mod forward;
pub(crate) mod headers;
mod hold;
mod local_response;
mod pool;
mod replay;
mod request_tap;
mod response;
mod retry;
mod route;
mod sender;
mod sse;
mod tool_calls;
mod upstream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use sayso_wire::RequestHead;
use sayso_wire::stream::Api;

pub use body::{BodyError, Reply};
pub use fetch::{FetchError, FetchLimits, Fetched};
pub use replay::{ReplayError, ReplayForm, ReplayReport};

use crate::interceptor::{Admission, AttributionSource, BodySignature, InFlight, Interceptor, RequestMetadata};
use crate::proxy::{ConcurrencyPermit, Proxy};
use crate::recorder::now;
use body::{ReplyBody, TooLarge};
use encoding::Encoding;
use local_response::{api_error, json_error, terminated, too_large};
use response::{Exchange, ResponseTap};
pub(crate) use route::{Route, RouteCache};
pub(crate) use sender::Sender;
use tool_calls::{Audience, ToolCallHold};

/// Time limit for receiving a buffered request.
const RECEIVE_TIMEOUT: Duration = Duration::from_mins(5);

/// The request that a response belongs to.
struct ResponseContext {
    in_flight: InFlight,
    api: Option<Api>,
    attribution: AttributionSource,
    started: Instant,
    /// Failed attempts before the successful one.
    retries: u32,
    audience: Audience,
}

impl Proxy {
    /// Serves a request beneath `/p/`.
    pub async fn serve(self: Arc<Self>, request: Request<Incoming>) -> Response<Reply> {
        let settings = self.interceptor.settings();
        let max_concurrent = settings.max_concurrent;
        let route = match self.resolve_route(&request, settings) {
            Ok(route) => route,
            Err(error) => return *error,
        };
        // Held until the response starts, or until the request is held.
        let Some(permit) = self.try_acquire(max_concurrent) else {
            let message = "too many requests are in progress; raise `max_concurrent` under [request]";
            let mut response = json_error(StatusCode::SERVICE_UNAVAILABLE, message);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return response;
        };
        self.dispatch(route, request, permit).await
    }

    async fn dispatch(
        self: Arc<Self>,
        route: Arc<Route>,
        request: Request<Incoming>,
        permit: ConcurrencyPermit,
    ) -> Response<Reply> {
        let upgrades =
            request.headers().get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
        if upgrades {
            // Clients that prefer a WebSocket fall back to HTTP, which can be inspected.
            let message = "sayso forwards HTTP only; it cannot inspect a WebSocket";
            let mut response = json_error(StatusCode::UPGRADE_REQUIRED, message);
            response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
            return response;
        }
        let api = route.api.filter(|_| request.method() == Method::POST);
        let max = route.settings.max_body_size;
        // The size limit applies to model requests only.
        let Some(api) = api else { return Box::pin(self.forward_opaque(route, request)).await };
        if request.body().size_hint().exact().is_some_and(|length| length > max as u64) {
            return too_large(Some(api), max);
        }
        if self.interceptor.is_passthrough()
            && let Some(attribution) = route.attribution(request.headers())
        {
            return self.forward_streaming(route, api, attribution, request).await;
        }
        self.cache_credentials(&route, request.headers());
        // Boxed, so that the future of a streamed request stays small.
        Box::pin(self.buffer_and_admit(route, api, request, permit)).await
    }

    fn metadata(route: &Route, method: &Method, headers: &HeaderMap, head: RequestHead) -> RequestMetadata {
        let encoding = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let query = route.path.split_once('?').map(|(_, query)| query);
        let deadline = headers::client_timeout(headers).map(|seconds| now().saturating_add((seconds * 1e3) as i64));
        RequestMetadata {
            run: route.run.clone(),
            upstream: route.upstream.clone(),
            server: route.server.clone(),
            method: method.to_string(),
            encoding,
            key: if head.session().is_none() { headers::key_hash(headers, query) } else { None },
            signed: if headers::is_signed(headers, query) { BodySignature::Signed } else { BodySignature::Unsigned },
            deadline,
            replay_of: None,
            head,
        }
    }

    /// Receives a request completely, and does what the interceptor decides.
    async fn buffer_and_admit(
        self: Arc<Self>,
        route: Arc<Route>,
        api: Api,
        request: Request<Incoming>,
        permit: ConcurrencyPermit,
    ) -> Response<Reply> {
        let head = route.head(request.headers());
        let (parts, body) = request.into_parts();
        let max = route.settings.max_body_size;
        let raw = match tokio::time::timeout(RECEIVE_TIMEOUT, body::read_to_end(body, max)).await {
            Ok(Ok(raw)) => raw,
            Ok(Err(error)) if error.is::<TooLarge>() => return too_large(Some(api), max),
            Ok(Err(error)) => return api_error(api, &format!("cannot receive the request: {error}")),
            Err(_) => return api_error(api, "the request was not received in time"),
        };
        let metadata = Self::metadata(&route, &parts.method, &parts.headers, head);
        let interceptor = Arc::clone(&self.interceptor);
        // Parsing a megabyte takes milliseconds, so it must not block the async threads. The semaphore bounds the blocking threads.
        let permit_to_admit = Arc::clone(&self.admissions).acquire_owned().await;
        let admitting = tokio::task::spawn_blocking(move || {
            let _permit = permit_to_admit;
            decode_and_admit(&interceptor, metadata, api, raw, max)
        });
        let Ok((admission, raw)) = admitting.await else {
            return api_error(api, "sayso failed while it processed this request; see its log");
        };
        let (method, headers) = (parts.method, parts.headers);
        let pending = hold::PendingForward { proxy: Arc::clone(&self), route, method, headers, raw };
        match admission {
            Admission::Forward(outgoing) => pending.forward(outgoing).await,
            Admission::Reject { api: known, end, .. } => terminated(known.unwrap_or(api), &end),
            Admission::Hold(guard) => {
                // A held request does not count as in progress.
                drop(permit);
                pending.forward_when_resumed(guard, api).await
            }
        }
    }

    /// Wraps a response so that it is decoded and recorded while it is forwarded.
    fn tap_response(&self, mut response: Response<Incoming>, context: ResponseContext) -> Response<Reply> {
        if !self.interceptor.settings().hold_tools.is_empty() {
            // A keep-alive event or a denial changes the length.
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        map_body(response, |head, body| {
            let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
            let ResponseContext { in_flight, api, attribution, started, retries, audience } = context;
            let (request, recording, barrier) = in_flight.answered();
            let interceptor = Arc::clone(&self.interceptor);
            let exchange = Exchange {
                request,
                api,
                started,
                status: head.status.as_u16(),
                content_type: text(CONTENT_TYPE),
                encoding: text(CONTENT_ENCODING),
                recording,
                retries,
                barrier,
                tool_calls: ToolCallHold { interceptor: Arc::clone(&interceptor), request, attribution, audience },
                interceptor,
            };
            Reply(ReplyBody::Tapped(Box::new(ResponseTap::new(body, exchange))))
        })
    }
}

/// Decodes and admits a body. Returns it with the bytes to send if it is not edited.
fn decode_and_admit(
    interceptor: &Arc<Interceptor>,
    metadata: RequestMetadata,
    api: Api,
    raw: Bytes,
    max: usize,
) -> (Admission, Bytes) {
    match decode(metadata.encoding.as_deref(), raw.clone(), max) {
        Ok(body) => {
            // The hold table and the sender share one copy: a request may be held for hours.
            let body: Arc<[u8]> = Arc::from(&body[..]);
            let raw = if metadata.encoding.is_none() { Bytes::from_owner(Arc::clone(&body)) } else { raw };
            (interceptor.admit(metadata, body, now()), raw)
        }
        Err(error) => (interceptor.admit_undecodable(metadata, api, &error.to_string(), now()), raw),
    }
}

/// Decompresses a body of at most `max` bytes.
fn decode(encoding: Option<&str>, raw: Bytes, max: usize) -> std::io::Result<Bytes> {
    match Encoding::parse(encoding).map_err(std::io::Error::other)? {
        None => Ok(raw),
        Some(encoding) => encoding.decode(&raw, max).map(Bytes::from),
    }
}

/// Removes hop-by-hop headers, and replaces the body.
fn map_body(
    response: Response<Incoming>,
    body: impl FnOnce(&http::response::Parts, Incoming) -> Reply,
) -> Response<Reply> {
    let (mut parts, incoming) = response.into_parts();
    headers::remove_hop_by_hop(&mut parts.headers);
    parts.version = Version::HTTP_11;
    let body = body(&parts, incoming);
    Response::from_parts(parts, body)
}
