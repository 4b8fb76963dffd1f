//! Requests on their way to an upstream, forwarded without an admission.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use sayso_review::RequestId;
use sayso_wire::stream::Api;

use super::body::{Outbound, Reply, ReplyBody, TooLarge};
use super::encoding::Inflate;
use super::local_response::{bad_gateway, too_large, upstream_error};
use super::request_tap::RequestTap;
use super::tool_calls::Audience;
use super::{ResponseContext, Route, decode, headers, map_body, upstream};
use crate::bodies::{BodyDelta, BodyExtent, CaptureMode, OnRecorded};
use crate::interceptor::{Attribution, AttributionSource, ForwardedBody, Recording, RequestEnvelope};
use crate::proxy::Proxy;
use crate::recorder::now;
use crate::settings::Keep;

/// Compressed bytes that are decompressed for the attribution.
const COMPRESSED_PREFIX_BYTES: usize = 4 << 10;

/// The head of a forwarded request, kept until its body was sent.
struct ForwardedHead {
    proxy: Arc<Proxy>,
    route: Arc<Route>,
    request: RequestId,
    method: Method,
    headers: HeaderMap,
    attribution: AttributionSource,
}

impl ForwardedHead {
    fn is_compressed(&self) -> bool {
        self.headers.contains_key(CONTENT_ENCODING)
    }

    /// Only the body of a subagent, and a compressed one, are needed in one piece.
    fn capture_mode(&self) -> CaptureMode {
        if self.attribution.is_subagent() || self.is_compressed() {
            return CaptureMode::Full;
        }
        CaptureMode::Delta {
            bodies: Arc::clone(&self.proxy.interceptor.bodies),
            recorder: Arc::clone(&self.proxy.interceptor.recorder),
            attribution: self.attribution.clone(),
        }
    }

    fn record(self, body: BodyDelta, extent: BodyExtent) {
        self.proxy.cache_credentials(&self.route, &self.headers);
        let head = self.route.head(&self.headers);
        let metadata = Proxy::metadata(&self.route, &self.method, &self.headers, head);
        let (interceptor, max) = (&self.proxy.interceptor, self.route.settings.max_body_size);
        if !self.is_compressed() || self.attribution.is_subagent() {
            let (body, extent) = decode_captured(metadata.encoding.as_deref(), body, extent, max);
            let envelope = RequestEnvelope::new(self.request, self.attribution.resolve().as_ref().clone(), metadata);
            return interceptor.record_forwarded(envelope, ForwardedBody::Plain(body, extent), now());
        }
        let (raw, encoding) = (body.to_bytes(), metadata.encoding.clone());
        let prefix = &raw[..raw.len().min(COMPRESSED_PREFIX_BYTES)];
        let prefix = Bytes::from(Inflate::new(encoding.as_deref()).feed(prefix));
        let attribution = Attribution::from_prefix(&metadata, &mut prefix.into());
        // This is a forwarding thread, so the rest is decompressed on the recorder thread.
        let size = raw.len();
        let decompress = Box::new(move || {
            let (body, extent) = decode_captured(encoding.as_deref(), raw.into(), extent, max);
            (body.to_bytes(), extent)
        });
        let body = ForwardedBody::Compressed { size, decompress };
        interceptor.record_forwarded(RequestEnvelope::new(self.request, attribution, metadata), body, now());
    }
}

impl Proxy {
    /// Forwards a request that is not a model request, such as a list of models.
    pub(super) async fn forward_opaque(&self, route: Arc<Route>, request: Request<Incoming>) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let request = upstream_request(&route, parts.method, parts.headers, Outbound::Streamed(body));
        match self.sender().send(request).await {
            Ok(response) => map_body(response, |_, body| Reply(ReplyBody::Streamed(body))),
            Err(error) => bad_gateway(None, None, &route, &error),
        }
    }

    /// Forwards a model request while it is received, and captures its body on the side.
    pub(super) async fn forward_streaming(
        self: Arc<Self>,
        route: Arc<Route>,
        api: Api,
        attribution: AttributionSource,
        request: Request<Incoming>,
    ) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let id = self.interceptor.next_id();
        let max = route.settings.max_body_size;
        let recording = if route.settings.keep == Keep::All { Recording::Enabled } else { Recording::Disabled };
        let started = Instant::now();
        let mut in_flight = self.interceptor.in_flight(id, recording);
        let (mode, on_recorded) = if recording == Recording::Enabled {
            let size = body.size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
            self.interceptor.recorder.wait_for_budget(size).await;
            let head = ForwardedHead {
                proxy: Arc::clone(&self),
                route: Arc::clone(&route),
                request: id,
                method: parts.method.clone(),
                headers: parts.headers.clone(),
                attribution: attribution.clone(),
            };
            let mode = head.capture_mode();
            let on_recorded: OnRecorded = Box::new(|body, extent| head.record(body, extent));
            (mode, on_recorded)
        } else {
            self.unrecorded(&route, id, (&parts.method, &parts.headers), &attribution)
        };
        let tapped = RequestTap::new(id, body, max, (mode, &attribution), on_recorded);
        in_flight.barrier = tapped.barrier();
        let request = upstream_request(&route, parts.method, parts.headers, Outbound::Tapped(Box::new(tapped)));
        match self.sender().send(request).await {
            Ok(response) => {
                let audience = Audience::Agent;
                let context = ResponseContext { in_flight, api: Some(api), attribution, started, retries: 0, audience };
                self.tap_response(response, context)
            }
            Err(error) if TooLarge::is_cause_of(&error) => {
                in_flight.failed(upstream::reason(&error));
                too_large(Some(api), max)
            }
            Err(error) => {
                in_flight.failed(upstream_error(&route, &error));
                bad_gateway(Some(id), Some(api), &route, &error)
            }
        }
    }

    /// Capture of a request that is not recorded: its session is still counted, and a subagent's body is displayed.
    fn unrecorded(
        &self,
        route: &Arc<Route>,
        request: RequestId,
        (method, headers): (&Method, &HeaderMap),
        attribution: &AttributionSource,
    ) -> (CaptureMode, OnRecorded) {
        self.cache_credentials(route, headers);
        let is_subagent = attribution.is_subagent();
        let mode = if is_subagent { CaptureMode::Full } else { CaptureMode::Prefix };
        let metadata = Self::metadata(route, method, headers, route.identity_head(headers));
        let (interceptor, attribution) = (Arc::clone(&self.interceptor), attribution.clone());
        let max = route.settings.max_body_size;
        let on_recorded = move |body: BodyDelta, extent| {
            let encoding = metadata.encoding.as_deref();
            let (body, extent) = if is_subagent {
                decode_captured(encoding, body, extent, max)
            } else {
                (body.map(|bytes| Inflate::new(encoding).feed(&bytes).into()), extent)
            };
            let envelope = RequestEnvelope::new(request, attribution.resolve().as_ref().clone(), metadata);
            interceptor.record_forwarded(envelope, ForwardedBody::Plain(body, extent), now());
        };
        (mode, Box::new(on_recorded))
    }
}

/// Decompresses a captured body. A body that cannot be decoded is recorded as truncated and empty.
fn decode_captured(encoding: Option<&str>, body: BodyDelta, extent: BodyExtent, max: usize) -> (BodyDelta, BodyExtent) {
    if encoding.is_none() {
        return (body, extent);
    }
    match decode(encoding, body.to_bytes(), max) {
        Ok(body) => (body.into(), extent),
        Err(_) => (BodyDelta::default(), BodyExtent::Truncated),
    }
}

/// Builds the request to the upstream.
pub(super) fn upstream_request(
    route: &Route,
    method: Method,
    mut headers: HeaderMap,
    body: Outbound,
) -> Request<Outbound> {
    headers::prepare_upstream(&mut headers);
    if !route.settings.hold_tools.is_empty() {
        // Tool calls must be readable in the response.
        accept_identity(&mut headers);
    }
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = route.address.clone();
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = headers;
    request
}

/// Builds the request to the upstream with an edited body, which is not compressed.
pub(super) fn edited_request(
    route: &Route,
    method: Method,
    mut headers: HeaderMap,
    body: &Arc<[u8]>,
) -> Request<Outbound> {
    headers.remove(CONTENT_ENCODING);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.remove("content-md5");
    headers.remove("digest");
    upstream_request(route, method, headers, upstream::buffered(Bytes::from_owner(Arc::clone(body))))
}

/// Asks the upstream for an uncompressed response.
pub(super) fn accept_identity(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}
